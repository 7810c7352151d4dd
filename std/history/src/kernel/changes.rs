//! The changes that a decision makes, for a store to write in one step.

use std::borrow::Cow;

use epitome_core::{Head, Revision, Seq, Turn};

use super::{Counters, SummaryPlace};
use crate::rules::Restored;
use crate::{
    AppendToken, Appended, CompactionRecord, Entry, Pruned, RecordId, StateRevision, Timestamp,
    UnansweredCall,
};

/// The changes that a store writes in one step. A store writes the fields in this order: a hidden message leaves its key before
/// another is shown there.
#[derive(Debug, Default)]
pub struct Changes<'a> {
    /// The counters of the session from now on. Messages that it hides are hidden by their revision.
    pub after: Counters,
    /// The messages to append.
    pub insert: Option<Insert<'a>>,
    /// The visible messages that are hidden from now on: ascending.
    pub hide: Vec<Seq>,
    /// The visible summaries that are hidden from now on.
    pub hide_summaries: Vec<SummaryPlace>,
    /// The hidden messages that are visible again: ascending.
    pub show: Vec<Seq>,
    /// The hidden summaries that are visible again.
    pub show_summaries: Vec<SummaryPlace>,
    /// The stand-ins of visible messages that change.
    pub edits: Edits,
    /// The record to keep. Its summaries become visible.
    pub record: Option<NewRecord<'a>>,
    /// The record that made this revision is undone.
    pub undone: Option<Revision>,
    /// The hidden calls that have an answer now, or are visible again: their groups and places in them.
    pub answered: Vec<(Seq, u32)>,
    /// The calls that are hidden from now on and have no answer.
    pub unanswered: &'a [UnansweredCall],
    /// The texts to delete.
    pub pruned: Option<Prune<'a>>,
    /// The state to keep in place of the one before.
    pub state: Option<NewKeptState<'a>>,
}

/// For each visible message that is edited, the stand-ins of its parts; `None` where there are none any more.
pub type Edits = Vec<(Seq, Option<Restored>)>;

/// Messages that are appended, and the receipt for their token.
#[derive(Debug)]
pub struct Insert<'a> {
    /// The name of the append.
    pub token: &'a AppendToken,
    /// The messages, in order. Their numbers begin at `appended.first`.
    pub entries: Cow<'a, [Entry]>,
    /// For each entry the revision that hides it from the start.
    pub hidden_by: Vec<Option<Revision>>,
    /// The answer to the append, to be given again when the token comes again.
    pub appended: Appended,
    /// When it was: not before the append before it.
    pub time: Option<Timestamp>,
}

impl Insert<'_> {
    /// The entries with their numbers, each with the revision that hides it.
    pub fn placed(&self) -> impl Iterator<Item = (Seq, &Entry, Option<Revision>)> {
        let seqs = (self.appended.first.0..).map(Seq);
        seqs.zip(&*self.entries).zip(&self.hidden_by).map(|((seq, entry), by)| (seq, entry, *by))
    }
}

/// A record that is committed.
#[derive(Debug)]
pub struct NewRecord<'a> {
    /// The record, with its summaries. Its revision is that of the counters after the change.
    pub record: &'a CompactionRecord,
    /// The id of the record, by which a repeated commit is recognized.
    pub id: RecordId,
    /// The turn of each of its summaries: that of the first message that it covers.
    pub turns: Vec<Turn>,
}

/// Messages and summaries that lose what they say.
#[derive(Debug)]
pub struct Prune<'a> {
    /// The answer to the prune, to be listed by [`Tables::prunes`](super::Tables::prunes).
    pub pruned: Pruned,
    /// In the order in which they were found.
    pub messages: &'a [Seq],
    /// The summaries.
    pub summaries: &'a [SummaryPlace],
}

/// A state in place of the one before.
#[derive(Debug, Clone, Copy)]
pub struct NewKeptState<'a> {
    /// The revision of the state.
    pub revision: StateRevision,
    /// The head of the session then.
    pub head: Head,
    /// The state itself.
    pub text: &'a str,
}

impl Changes<'_> {
    /// Changes of a session with these counters that change nothing yet.
    pub fn of(before: Option<Counters>) -> Self {
        Self { after: before.unwrap_or_default(), ..Self::default() }
    }
}

/// Ascending numbers as runs without gaps: the first and the last of each.
pub fn runs(seqs: &[Seq]) -> impl Iterator<Item = (Seq, Seq)> {
    let follows = |one: &Seq, next: &Seq| one.next() == *next;
    seqs.chunk_by(follows).filter_map(|run| Some((*run.first()?, *run.last()?)))
}
