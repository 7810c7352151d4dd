//! The outline of a Codex session: its thread, and where its lines begin. What they say is not held.

use std::sync::Arc;

use super::session::{Session, label};
use crate::message::Str;
use crate::wire::WireError;
use crate::wire::outline::{Outline, OutlinedConversation, Outliner, Place};
use crate::wire::transcript::Relation;

/// The lines of a file.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Of a report it keeps where its line begins.
    session: Session<u64>,
    /// Where those begin that hold messages, in their order: each by its place here is what the session calls a line.
    offsets: Vec<u64>,
    /// What compactions left behind.
    before: Vec<OutlinedConversation>,
}

impl Outliner for Lines {
    fn push(&mut self, text: &Arc<str>, offset: u64) -> Result<(), WireError> {
        let line = u32::try_from(self.offsets.len()).unwrap_or(u32::MAX);
        if self.session.push(text, line, text, |_| offset)?.is_some() {
            self.offsets.push(offset);
        }
        if let Some(left) = self.session.thread.left.take() {
            let label = label(self.before.len().saturating_add(1));
            self.before.push(OutlinedConversation::other(label, Relation::Branch(0), left.slots.len()));
        }
        Ok(())
    }

    /// Its conversations have no leaf to name.
    fn finish(mut self: Box<Self>, _: Option<&str>) -> Result<Outline, WireError> {
        self.session.thread.settle();
        let active = core::mem::take(&mut self.session.thread.now);
        let compactions = self.session.thread.compactions()(active.compactions);
        let mut found = OutlinedConversation::active(self.session.id, Str::default(), active.slots.len());
        found.compactions = compactions;
        let runs = active
            .slots
            .chunk_by(|one, next| (one.line, one.piece.wrapping_add(1)) == (next.line, next.piece));
        let place = |run: &[super::thread::Slot]| {
            let first = run.first()?;
            let end = run.last()?.piece.saturating_add(1);
            Some(Place { offset: *self.offsets.get(first.line as usize)?, first: first.piece, end })
        };
        let places = runs.filter_map(place).collect();
        let mut conversations = vec![found];
        conversations.extend(self.before);
        let reports = active.reports.iter().map(|found| (found.at, found.report)).collect();
        Ok(Outline { conversations, places, reports })
    }
}
