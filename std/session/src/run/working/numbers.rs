//! The numbers in the log of the messages of a run.

use std::collections::BTreeMap;

use epitome_core::Seq;
use epitome_core::attribution::SeqRange;

use super::Working;
use crate::history::Entry;
use crate::history::inner::covered;

/// Messages of a run that are never stored have numbers from here on: no log has so many.
const NOT_STORED_FROM: u64 = 1 << 32;

impl Working {
    /// The numbers in the log of the messages that the run adds, in the order of storage. Messages that are stored
    /// already have their numbers; the others have the next ones.
    pub(in crate::run) fn log_numbers(&self) -> impl Iterator<Item = Seq> {
        self.places.logged.iter().copied().chain((self.stored_len()..).map(Seq))
    }

    /// The numbers in the log of the messages that the run has stored itself.
    pub(in crate::run) fn stored_here(&self) -> &[Seq] {
        &self.places.logged
    }

    /// Messages outside the history that are read by number: each with its number in the run and the number by which it is read. `logged`
    /// are the numbers of the messages that are to be stored; context is read only if it is stored.
    pub(in crate::run) fn own<'w>(
        &'w self,
        logged: &'w BTreeMap<Seq, Seq>,
    ) -> impl Iterator<Item = (Seq, u64, &'w Entry)> {
        self.own.iter().zip(NOT_STORED_FROM..).filter_map(|((seq, entry), other)| {
            let is_said = seq.0 >= self.places.input;
            let number = logged.get(seq).map(|seq| seq.0).or(is_said.then_some(other))?;
            Some((*seq, number, entry))
        })
    }

    /// The lowest and the highest number in the log of each visible message, or of the messages that it stands for.
    /// `logged` has the numbers of the messages outside the history.
    pub(in crate::run) fn numbers_of_live(&self, logged: &BTreeMap<Seq, Seq>) -> Vec<Option<SeqRange>> {
        let numbers = |live| {
            let ranges = self.in_history(&covered(live), logged);
            Some(SeqRange { first: ranges.first()?.first, last: ranges.last()?.last })
        };
        self.visible.live().iter().map(numbers).collect()
    }
}
