//! What goes on in a session and what compactions left behind, as places in its file. What is said is not held.

use core::hash::BuildHasher as _;
use std::collections::HashSet;
use std::hash::RandomState;
use std::sync::Arc;

use epitome_core::message::Role;

use crate::message::Message;
use crate::wire::transcript::{Compactions, ToolCompaction};

/// A session while it is read: some thirty bytes for each message. A report is an `R`.
#[derive(Debug)]
pub(super) struct Thread<R> {
    pub(super) now: Stage<R>,
    /// What the model no longer sees since the last compaction, until somebody takes it: all of them together would grow with
    /// the square of their number.
    pub(super) left: Option<Stage<R>>,
    /// Each by its place when it happened.
    compactions: Vec<ToolCompaction>,
    /// Reports, and how many messages there were when they came.
    reports: Vec<Report<R>>,
    /// For the digests of what is said.
    secret: RandomState,
}

/// What a model sees at some time.
#[derive(Debug)]
pub(super) struct Stage<R> {
    pub(super) slots: Vec<Slot>,
    /// How many compactions were before it.
    pub(super) compactions: usize,
    /// Each at the last message of its response.
    pub(super) reports: Vec<Report<R>>,
}

/// What was reported of a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report<R> {
    pub(super) at: usize,
    pub(super) report: R,
    /// The size of its request.
    input: Option<u64>,
}

/// A message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// The line that it stands in, counted from 0, and which message of the line it is.
    pub(super) line: u32,
    pub(super) piece: u32,
    role: Role,
    /// Whether it is the instructions, which every conversation of the file begins with.
    is_base: bool,
    /// A digest of its parts.
    said: u64,
}

impl<R> Default for Stage<R> {
    fn default() -> Self {
        Self { slots: Vec::new(), compactions: 0, reports: Vec::new() }
    }
}

impl<R> Default for Thread<R> {
    fn default() -> Self {
        let (compactions, reports) = (Vec::new(), Vec::new());
        Self { now: Stage::default(), left: None, compactions, reports, secret: RandomState::new() }
    }
}

impl<R> Thread<R> {
    fn slots(&self, line: u32, messages: &[Message]) -> impl Iterator<Item = Slot> {
        let slot = move |(message, piece): (&Message, u32)| {
            let said = self.secret.hash_one(message.parts());
            Slot { line, piece, role: message.role(), is_base: false, said }
        };
        messages.iter().zip(0..).map(slot)
    }

    /// Adds the messages of a line.
    pub(super) fn push(&mut self, line: u32, messages: &[Message]) {
        let slots: Vec<_> = self.slots(line, messages).collect();
        self.now.slots.extend(slots);
    }

    /// Begins with these instructions. A resumed file may say them again: then nothing is done, and the answer is no.
    pub(super) fn begin(&mut self, line: u32, instructions: &Message) -> bool {
        let is_first = self.now.slots.is_empty();
        if is_first {
            self.push(line, core::slice::from_ref(instructions));
            self.now.slots.iter_mut().for_each(|slot| slot.is_base = true);
        }
        is_first
    }

    /// Takes note of a report on a response nearby, whose request had this size.
    pub(super) fn reported(&mut self, report: R, input: Option<u64>) {
        self.reports.push(Report { at: self.now.slots.len(), report, input });
    }

    /// Puts the messages of a line in the place of all, but for the instructions and, where they are no whole `history`, what
    /// the users said.
    pub(super) fn compact(&mut self, line: u32, messages: &[Message], is_history: bool) {
        self.settle();
        let new: Vec<_> = self.slots(line, messages).collect();
        let stays = |slot: &&Slot| slot.is_base || (slot.role == Role::User && !is_history);
        let mut slots: Vec<_> = self.now.slots.iter().filter(stays).copied().collect();
        let mut compaction = ToolCompaction::new(slots.len());
        // Messages of the replacement that say what an earlier one said were kept.
        let known: HashSet<u64> = self.now.slots.iter().map(|slot| slot.said).collect();
        let again = new.iter().filter(|new| known.contains(&new.said)).count();
        let dropped = self.now.slots.len().saturating_sub(slots.len().saturating_add(again));
        compaction.dropped = u64::try_from(dropped).ok();
        compaction.tokens_before = self.now.reports.last().and_then(|last| last.input);
        self.compactions.push(compaction);
        slots.extend(new);
        let next = Stage { slots, compactions: self.compactions.len(), reports: Vec::new() };
        let before = core::mem::replace(&mut self.now, next);
        self.left = Some(before).filter(|before| !before.slots.is_empty());
    }

    /// What was compacted before each of the stages, by how many compactions that are.
    pub(super) fn compactions(&self) -> impl Fn(usize) -> Compactions {
        // What stays of a conversation was said before all compactions but the last.
        let at_start =
            self.compactions.iter().cloned().map(|compaction| ToolCompaction { at: 0, ..compaction });
        let list: Arc<[_]> = at_start.collect();
        move |count| match count.checked_sub(1) {
            Some(last) => Compactions::first_of(&list, last).and(self.compactions.get(last).cloned()),
            None => Compactions::default(),
        }
    }

    /// Gives the reports to their responses. A report stands behind the items of its response, or, in older files,
    /// before them.
    pub(super) fn settle(&mut self) {
        let slots = &self.now.slots;
        let is_model = |at: usize| slots.get(at).is_some_and(|slot| slot.role == Role::Assistant);
        let mut reported = 0;
        for report in core::mem::take(&mut self.reports) {
            let behind = report.at.checked_sub(1).filter(|last| *last >= reported && is_model(*last));
            let next = || (report.at..slots.len()).take_while(|next| is_model(*next)).last();
            if let Some(at) = behind.or_else(next) {
                self.now.reports.push(Report { at, ..report });
                reported = at.saturating_add(1);
            }
        }
    }
}
