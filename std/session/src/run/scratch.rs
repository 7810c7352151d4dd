//! Compaction of a request, before all of it is stored.
//!
//! A compactor works on a [`History`], and the request of a run is none: a part of it is stored, a part will be stored,
//! and a part never is. The run therefore copies its request into a temporary history in memory, with the same groups
//! and sizes. It then reads back the commit of the compactor. The stored history gets its share when the run stores.

use std::sync::Arc;

use epitome_core::Seq;
use epitome_core::attribution::{Retention, SeqRange};

use super::working::{Compacted, Working};
use crate::history::inner::joined;
use crate::history::{Append, AppendToken, Entry, History, HistoryStore, Live, MemoryStore, Pins, SessionId};
use crate::session::SessionError;

/// Copies the request of a run into a history. The number of a message is its position in the run's index, so messages
/// that `pins` hold are marked as pinned in the copy. The copy also has the late answers of the `stored` history.
pub(super) async fn history_of(
    working: &Working,
    pins: &Pins,
    stored: Option<&History>,
) -> Result<History, SessionError> {
    let (store, session) = (MemoryStore::new(), SessionId::new("run"));
    let live = working.visible().live();
    let entries: Vec<Entry> = live
        .iter()
        .zip(0_u64..)
        .map(|(each, at)| {
            let anchor = live.binary_search_by_key(&each.entry.anchor, |live| live.key);
            let mut entry = each.entry.clone();
            entry.anchor = Seq(anchor.map_or(at, |position| position as u64));
            // The group of a late answer gives its place: nothing is appended to this history any more.
            entry.late = false;
            if pins.holds(working.stored_number(each.key), &entry.message) {
                let attribution = entry.message.attribution().clone().with_retention(Retention::Pinned);
                entry.message = entry.message.with_attribution(attribution);
            }
            entry
        })
        .collect();
    if !entries.is_empty() {
        store.append(&session, &Append::new(&AppendToken::new("run"), Seq(0), &entries)).await?;
    }
    let late = working.late_answers(stored).await?;
    let history = History::open(Arc::new(store), session, Arc::clone(working.counter())).await?;
    Ok(history.with_late_answers(late))
}

/// Shows the messages of the compacted copy in the run. Returns whether the request is smaller than before.
///
/// # Errors
/// `Invalid` if a summary was shortened: a compactor writes it anew or lets it stay. Nothing is changed then.
pub(super) fn adopt(
    working: &mut Working,
    compacted: &History,
    strategy: &str,
) -> Result<bool, SessionError> {
    let mut read = ReadBack::of(working, strategy);
    for each in compacted.live() {
        match each.covers.is_empty() {
            true => read.stays(each)?,
            false => read.stands_for_others(each),
        }
    }
    let left = read.finish();
    if left.hidden.is_empty() && left.edited.is_empty() {
        return Ok(false);
    }
    working.adopt(left)?;
    Ok(true)
}

/// Translation from the numbers of the copy, which are positions, to the numbers of the run.
struct ReadBack<'w> {
    working: &'w Working,
    /// Whether each position is still visible.
    kept: Vec<bool>,
    left: Compacted,
}

impl<'w> ReadBack<'w> {
    fn of(working: &'w Working, strategy: &str) -> Self {
        let left = Compacted { strategy: strategy.into(), ..Compacted::default() };
        Self { working, kept: vec![false; working.visible().live().len()], left }
    }

    /// A message stays, perhaps with shortened parts.
    fn stays(&mut self, copy: &Live) -> Result<(), SessionError> {
        let Some((at, original)) = self.original(copy) else { return Ok(()) };
        if let Some(kept) = self.kept.get_mut(at) {
            *kept = true;
        }
        if copy.stand_ins.is_empty() {
            self.left.live.push(original.clone());
            return Ok(());
        }
        if !original.covers.is_empty() {
            let strategy = &*self.left.strategy;
            return Err(SessionError::invalid(format!("{strategy} has shortened a summary: let it stay")));
        }
        self.left.edited.push((original.key, original.stand_ins.clone()));
        self.left.live.push(original.shortened_as(copy));
        Ok(())
    }

    /// A summary stands in the place of other messages.
    fn stands_for_others(&mut self, copy: &Live) {
        let Some((_, original)) = self.original(copy) else { return };
        let covers = self.numbers(&copy.covers);
        let key = covers.first().map_or(original.key, |range| range.first);
        let mut entry = copy.entry.clone();
        (entry.anchor, entry.turn) = (key, original.entry.turn);
        let attribution = entry.message.attribution().clone().with_derived_from(covers.clone());
        entry.message = entry.message.with_attribution(attribution);
        self.left.made.push(key);
        self.left.live.push(Live::summary(key, entry, covers));
    }

    fn finish(mut self) -> Compacted {
        let gone = self.kept.iter().zip(0_u64..).filter(|(kept, _)| !**kept);
        let gone: Vec<SeqRange> = gone.map(|(_, at)| SeqRange { first: Seq(at), last: Seq(at) }).collect();
        self.left.hidden = self.numbers(&gone);
        self.left
    }

    fn original(&self, copy: &Live) -> Option<(usize, &'w Live)> {
        let at = usize::try_from(copy.key.0).ok()?;
        Some((at, self.working.visible().live().get(at)?))
    }

    fn numbers(&self, ranges: &[SeqRange]) -> Vec<SeqRange> {
        let positions = ranges.iter().flat_map(|range| range.first.0..=range.last.0);
        let covered =
            positions.flat_map(|at| self.working.covers_at(usize::try_from(at).unwrap_or(usize::MAX)));
        joined(covered.collect())
    }
}
