//! The visible messages of a session and the stages that compactions ended, as places in the file, without contents.

use core::hash::BuildHasher as _;
use std::collections::HashMap;
use std::hash::RandomState;

use epitome_core::message::Role;
use epitome_message::Message;

use crate::transcript::{CompactionTree, Timeline, ToolCompaction, ToolCompactions, TranscriptEntry};

/// A session during its reading: some sixty bytes for each message. A report is an `R`.
#[derive(Debug)]
pub(super) struct Thread<R> {
    /// The stages in which a model sees each message. Each compaction begins a stage.
    pub(super) timeline: Timeline,
    /// The visible messages from before the latest compaction.
    kept: Vec<Slot>,
    /// The messages since the latest compaction.
    new: Vec<Slot>,
    /// Number of messages of the file.
    messages: u32,
    /// Number of visible messages with each digest, among the messages with a digest.
    said: HashMap<u64, u32>,
    /// The stages that compactions ended.
    pub(super) left: Vec<Left>,
    /// The compactions, each with its place at that time.
    compactions: Vec<ToolCompaction>,
    /// Reports without a response so far, each with the number of messages before it.
    open: Vec<Report<R>>,
    /// The reports, each at the last message of its response.
    pub(super) reports: Vec<Report<R>>,
    /// The secret for the digests of contents.
    secret: RandomState,
}

/// A stage that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    pub(super) stage: u32,
    pub(super) messages: usize,
}

/// A report on a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report<R> {
    /// The message: its place in the stage, and, once the response is known, its number in the file.
    pub(super) at: usize,
    pub(super) stage: u32,
    pub(super) report: R,
    /// The size of the response's request.
    input: Option<u64>,
}

/// A message that is still there.
#[derive(Debug, Clone, Copy)]
struct Slot {
    entry: u32,
    life: usize,
    role: Role,
    /// Whether the message is the instructions, with which every conversation of the file begins.
    is_base: bool,
    /// A digest of the parts. If the messages are stored, it is made only for a compaction that needs it: most files
    /// have none.
    said: Option<u64>,
}

impl<R> Default for Thread<R> {
    fn default() -> Self {
        Self {
            timeline: Timeline::default(),
            kept: Vec::new(),
            new: Vec::new(),
            messages: 0,
            said: HashMap::new(),
            left: Vec::new(),
            compactions: Vec::new(),
            open: Vec::new(),
            reports: Vec::new(),
            secret: RandomState::new(),
        }
    }
}

impl<R: Copy> Thread<R> {
    /// Adds the messages of a line. `earlier` are all messages before them, if they are stored.
    pub(super) fn push(&mut self, messages: &[Message], earlier: Option<&[TranscriptEntry]>) {
        messages.iter().for_each(|message| self.add(message, false, earlier));
    }

    fn add(&mut self, message: &Message, is_base: bool, earlier: Option<&[TranscriptEntry]>) {
        let entry = self.messages;
        self.messages = self.messages.saturating_add(1);
        let life = self.timeline.begin(entry, entry);
        let said = if earlier.is_some() { None } else { Some(self.digest(message)) };
        self.new.push(Slot { entry, life, role: message.role(), is_base, said });
    }

    /// Makes and counts the digest of a visible message.
    fn digest(&mut self, message: &Message) -> u64 {
        let said = self.secret.hash_one(message.parts());
        let count = self.said.entry(said).or_default();
        *count = count.saturating_add(1);
        said
    }

    /// Makes the missing digests of new messages.
    fn digest_new(&mut self, earlier: &[TranscriptEntry]) {
        let mut new = core::mem::take(&mut self.new);
        for slot in new.iter_mut().filter(|slot| slot.said.is_none()) {
            slot.said = earlier.get(slot.entry as usize).map(|entry| self.digest(entry.message()));
        }
        self.new = new;
    }

    /// Number of messages that the model sees now.
    pub(super) fn len(&self) -> usize {
        self.kept.len().saturating_add(self.new.len())
    }

    /// Begins with these instructions, and returns true. If a resumed file repeats them, it does nothing and returns
    /// false.
    pub(super) fn begin(&mut self, instructions: &Message, earlier: Option<&[TranscriptEntry]>) -> bool {
        let is_first = self.len() == 0;
        if is_first {
            self.add(instructions, true, earlier);
        }
        is_first
    }

    /// Adds a report on an adjacent response. `input` is the size of its request.
    pub(super) fn reported(&mut self, report: R, input: Option<u64>) {
        self.open.push(Report { at: self.len(), stage: self.timeline.now(), report, input });
    }

    /// Replaces all messages by the messages of a line, except the instructions. If the line is no complete `history`,
    /// the users' messages stay too.
    pub(super) fn compact(
        &mut self,
        messages: &[Message],
        is_history: bool,
        earlier: Option<&[TranscriptEntry]>,
    ) {
        self.settle();
        if let Some(earlier) = earlier {
            self.digest_new(earlier);
        }
        let before = Left { stage: self.timeline.now(), messages: self.len() };
        // Messages of the replacement with the content of an earlier message were kept.
        let is_known = |message: &&Message| self.said.contains_key(&self.secret.hash_one(message.parts()));
        let again = messages.iter().filter(is_known).count();
        let input = self.reports.last().filter(|last| last.stage == before.stage).and_then(|last| last.input);
        self.timeline.advance();
        // The kept messages are only visited if they are removed.
        let mut going = core::mem::take(&mut self.new);
        if is_history {
            going.append(&mut self.kept);
            going.sort_unstable_by_key(|slot| slot.entry);
        }
        for slot in going {
            match slot.is_base || (slot.role == Role::User && !is_history) {
                true => self.kept.push(slot),
                false => self.end(&slot),
            }
        }
        let mut compaction = ToolCompaction::new(self.kept.len());
        let dropped = before.messages.saturating_sub(self.kept.len().saturating_add(again));
        compaction.dropped = u64::try_from(dropped).ok();
        compaction.tokens_before = input;
        self.compactions.push(compaction);
        self.push(messages, earlier);
        self.left.extend(Some(before).filter(|before| before.messages > 0));
    }

    fn end(&mut self, slot: &Slot) {
        self.timeline.end(slot.life);
        let Some(said) = slot.said else { return };
        if let Some(count) = self.said.get_mut(&said) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.said.remove(&said);
            }
        }
    }

    /// The compactions before each of the stages.
    pub(super) fn compactions(&self) -> impl Fn(u32) -> ToolCompactions + use<R> {
        let mut tree = CompactionTree::default();
        // The messages that stay of a conversation are earlier than all compactions but the last.
        let at_start = |compaction: &ToolCompaction| ToolCompaction { at: 0, ..compaction.clone() };
        let link = |before, compaction| Some(tree.push(before, at_start(compaction)));
        self.compactions.iter().fold(None, link);
        let (lists, all) = (tree.lists(), self.compactions.clone());
        move |stage| match stage.checked_sub(1) {
            Some(last) => lists(last.checked_sub(1)).and(all.get(last as usize).cloned()),
            None => ToolCompactions::default(),
        }
    }

    /// Assigns the reports to their responses. A report is behind the items of its response, or, in older files, before
    /// them.
    pub(super) fn settle(&mut self) {
        let open = core::mem::take(&mut self.open);
        if open.is_empty() {
            return;
        }
        // Only messages of users and instructions are kept.
        let first = self.kept.len();
        let is_model = |at: usize| {
            at.checked_sub(first)
                .and_then(|at| self.new.get(at))
                .is_some_and(|slot| slot.role == Role::Assistant)
        };
        let ends = self.run_ends();
        let mut reported = 0;
        for report in open {
            let behind = report.at.checked_sub(1).filter(|last| *last >= reported && is_model(*last));
            let next = || {
                let end = ends.get(report.at.checked_sub(first)?)?;
                Some(end.saturating_add(first)).filter(|_| is_model(report.at))
            };
            let Some(at) = behind.or_else(next) else { continue };
            if let Some(slot) = at.checked_sub(first).and_then(|at| self.new.get(at)) {
                self.reports.push(Report { at: slot.entry as usize, ..report });
                reported = at.saturating_add(1);
            }
        }
    }

    /// For each message since the latest compaction, the last place of its run of model messages; for other messages
    /// their own place.
    fn run_ends(&self) -> Vec<usize> {
        let mut ends: Vec<_> = (0..self.new.len()).collect();
        let mut last = None;
        for (slot, end) in self.new.iter().zip(&mut ends).rev() {
            last = if slot.role == Role::Assistant { last.or(Some(*end)) } else { None };
            *end = last.unwrap_or(*end);
        }
        ends
    }
}
