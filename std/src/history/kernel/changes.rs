//! The changes that a decision makes, for a store to write in one step.

use std::borrow::Cow;

use epitome_core::{Head, Revision, Seq, Turn};

use super::{Counters, SummaryPlace};
use crate::history::rules::Restored;
use crate::history::{
    AppendToken, Appended, CompactionRecord, Entry, Pruned, RecordId, StateRevision, Timestamp,
    UnansweredCall,
};

/// What is written in one step. A store writes the fields in this order: what is hidden leaves its key before another thing is
/// shown there.
#[derive(Debug, Default)]
pub(in crate::history) struct Changes<'a> {
    /// The counters after it. What is hidden is hidden by their revision.
    pub(in crate::history) after: Counters,
    pub(in crate::history) insert: Option<Insert<'a>>,
    /// The visible messages that are hidden from now on: ascending.
    pub(in crate::history) hide: Vec<Seq>,
    pub(in crate::history) hide_summaries: Vec<SummaryPlace>,
    /// The hidden messages that are visible again: ascending.
    pub(in crate::history) show: Vec<Seq>,
    pub(in crate::history) show_summaries: Vec<SummaryPlace>,
    pub(in crate::history) edits: Edits,
    pub(in crate::history) record: Option<NewRecord<'a>>,
    /// The record that made this revision is undone.
    pub(in crate::history) undone: Option<Revision>,
    /// The hidden calls that have an answer now, or are visible again: their groups and places in them.
    pub(in crate::history) answered: Vec<(Seq, u32)>,
    pub(in crate::history) unanswered: &'a [UnansweredCall],
    pub(in crate::history) pruned: Option<Prune<'a>>,
    pub(in crate::history) state: Option<KeptState<'a>>,
}

/// For each visible message that is edited, what stands in place of its parts; `None` where nothing does any more.
pub(in crate::history) type Edits = Vec<(Seq, Option<Restored>)>;

/// Messages that are appended, and the receipt for their token.
#[derive(Debug)]
pub(in crate::history) struct Insert<'a> {
    pub(in crate::history) token: &'a AppendToken,
    pub(in crate::history) entries: Cow<'a, [Entry]>,
    /// For each entry the revision that hides it from the start.
    pub(in crate::history) hidden_by: Vec<Option<Revision>>,
    pub(in crate::history) appended: Appended,
    /// When it was: not before the append before it.
    pub(in crate::history) time: Option<Timestamp>,
}

impl Insert<'_> {
    /// The entries with their numbers, each with the revision that hides it.
    pub(in crate::history) fn placed(&self) -> impl Iterator<Item = (Seq, &Entry, Option<Revision>)> {
        let seqs = (self.appended.first.0..).map(Seq);
        seqs.zip(&*self.entries).zip(&self.hidden_by).map(|((seq, entry), by)| (seq, entry, *by))
    }
}

/// A record that is committed.
#[derive(Debug)]
pub(in crate::history) struct NewRecord<'a> {
    pub(in crate::history) record: &'a CompactionRecord,
    pub(in crate::history) id: RecordId,
    /// The turn of each of its summaries: that of the first message that it covers.
    pub(in crate::history) turns: Vec<Turn>,
}

/// Messages and summaries that lose what they say.
#[derive(Debug)]
pub(in crate::history) struct Prune<'a> {
    pub(in crate::history) pruned: Pruned,
    /// In the order in which they were found.
    pub(in crate::history) messages: &'a [Seq],
    pub(in crate::history) summaries: &'a [SummaryPlace],
}

/// A state in place of the one before.
#[derive(Debug, Clone, Copy)]
pub(in crate::history) struct KeptState<'a> {
    pub(in crate::history) revision: StateRevision,
    /// The head of the session then.
    pub(in crate::history) head: Head,
    pub(in crate::history) text: &'a str,
}

impl Changes<'_> {
    /// Changes of a session with these counters that change nothing yet.
    pub(in crate::history) fn of(before: Option<Counters>) -> Self {
        Self { after: before.unwrap_or_default(), ..Self::default() }
    }
}

/// Ascending numbers as runs without gaps: the first and the last of each.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(in crate::history) fn runs(seqs: &[Seq]) -> impl Iterator<Item = (Seq, Seq)> {
    let follows = |one: &Seq, next: &Seq| one.next() == *next;
    seqs.chunk_by(follows).filter_map(|run| Some((*run.first()?, *run.last()?)))
}
