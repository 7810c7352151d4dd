//! The outline of a Codex session: its thread, and the offsets of its lines, without their contents.

use std::sync::Arc;

use epitome_message::Str;

use super::session::{Session, label};
use crate::WireError;
use crate::outline::{Outline, OutlinedConversation, Outliner, Place};
use crate::transcript::Relation;

/// The lines of a file.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The session, with the offset of the line of each report.
    session: Session<u64>,
    /// The lines with messages: the number of the first message, and the offset of the line.
    lines: Vec<(u32, u64)>,
    messages: u32,
}

impl Outliner for Lines {
    fn push(&mut self, text: &Arc<str>, offset: u64) -> Result<(), WireError> {
        if let Some(said) = self.session.push(text, text, None, |_| offset)? {
            self.lines.push((self.messages, offset));
            let count = u32::try_from(said.messages.len()).unwrap_or(u32::MAX);
            self.messages = self.messages.saturating_add(count);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, leaf: Option<&str>) -> Result<Outline, WireError> {
        if leaf.is_some() {
            return Err(super::SPEC.no_branches());
        }
        let thread = &mut self.session.thread;
        thread.settle();
        let now = thread.timeline.now();
        let mut found =
            OutlinedConversation::active(core::mem::take(&mut self.session.id), Str::default(), thread.len());
        found.compactions = thread.compactions()(now);
        let numbers: Vec<_> = thread.timeline.at(now).iter().map(|life| life.entry).collect();
        let own = thread.reports.iter().filter(|report| report.stage == now);
        let reports = own.filter_map(|found| {
            let at = numbers.binary_search(&u32::try_from(found.at).ok()?).ok()?;
            Some((at, found.report))
        });
        let reports = reports.collect();
        let before = (1_usize..).zip(&thread.left).map(|(number, left)| {
            OutlinedConversation::other(label(number), Relation::Branch(0), left.messages)
        });
        let conversations = core::iter::once(found).chain(before).collect();
        Ok(Outline { conversations, places: self.places(&numbers), reports })
    }
}

impl Lines {
    /// The places of these messages. Successive messages of one line share a place.
    fn places(&self, numbers: &[u32]) -> Vec<Place> {
        let line = |number: u32| self.lines.partition_point(|(first, _)| *first <= number).checked_sub(1);
        let runs = numbers.chunk_by(|one, next| one.wrapping_add(1) == *next && line(*one) == line(*next));
        let place = |run: &[u32]| {
            let (from, offset) = *self.lines.get(line(*run.first()?)?)?;
            let end = run.last()?.saturating_sub(from).saturating_add(1);
            Some(Place { offset, first: run.first()?.saturating_sub(from), end })
        };
        runs.filter_map(place).collect()
    }
}
