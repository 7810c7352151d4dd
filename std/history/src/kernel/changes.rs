//! The changes that a decision makes, for a store to write in one step.

use std::borrow::Cow;

use epitome_core::{Head, Revision, Seq, Turn};

use super::{Counters, SummaryPlace};
use crate::rules::Restored;
use crate::{
    AppendToken, Appended, CompactionRecord, Entry, Pruned, RecordId, StateRevision, Timestamp,
    UnansweredCall,
};

/// The changes that a store writes in one step. A store writes the fields in their order here: a hidden message frees
/// its key before another one becomes visible at that key.
#[derive(Debug, Default)]
pub struct Changes<'a> {
    /// The counters of the session after the change. The revision of these counters is the one that hides the messages
    /// in `hide`.
    pub after: Counters,
    /// The messages to append.
    pub insert: Option<Insert<'a>>,
    /// The visible messages to hide, ascending.
    pub hide: Vec<Seq>,
    /// The visible summaries to hide.
    pub hide_summaries: Vec<SummaryPlace>,
    /// The hidden messages to show again, ascending.
    pub show: Vec<Seq>,
    /// The hidden summaries to show again.
    pub show_summaries: Vec<SummaryPlace>,
    /// The stand-ins of visible messages that change.
    pub edits: Edits,
    /// The record to keep. Its summaries become visible.
    pub record: Option<NewRecord<'a>>,
    /// The revision of the record that is undone.
    pub undone: Option<Revision>,
    /// The hidden calls that are now answered or visible again, each as its group and its place in the group.
    pub answered: Vec<(Seq, u32)>,
    /// The calls without an answer that become hidden.
    pub unanswered: &'a [UnansweredCall],
    /// The texts to delete.
    pub pruned: Option<Prune<'a>>,
    /// The state that replaces the one before.
    pub state: Option<NewKeptState<'a>>,
}

/// For each edited visible message, the stand-ins of its parts; `None` for a message that has no stand-ins any more.
pub type Edits = Vec<(Seq, Option<Restored>)>;

/// The messages of an append, and the receipt for its token.
#[derive(Debug)]
pub struct Insert<'a> {
    /// The idempotency key of the append.
    pub token: &'a AppendToken,
    /// The messages, in order. Their sequence numbers begin at `appended.first`.
    pub entries: Cow<'a, [Entry]>,
    /// For each entry, the revision that hides it from the start, if there is one.
    pub hidden_by: Vec<Option<Revision>>,
    /// The answer to the append. A repetition with the same token gets the same answer.
    pub appended: Appended,
    /// The time of the append. It is never before the time of the append before.
    pub time: Option<Timestamp>,
}

impl Insert<'_> {
    /// The entries with their sequence numbers, each with the revision that hides it from the start.
    pub fn placed(&self) -> impl Iterator<Item = (Seq, &Entry, Option<Revision>)> {
        let seqs = (self.appended.first.0..).map(Seq);
        seqs.zip(&*self.entries).zip(&self.hidden_by).map(|((seq, entry), by)| (seq, entry, *by))
    }
}

/// A record to commit.
#[derive(Debug)]
pub struct NewRecord<'a> {
    /// The record, with its summaries. Its revision is the revision of the counters after the change.
    pub record: &'a CompactionRecord,
    /// The id of the record. It identifies a repeated commit.
    pub id: RecordId,
    /// The turn of each of its summaries: the turn of the first message that the summary covers.
    pub turns: Vec<Turn>,
}

/// The messages and summaries whose texts are deleted.
#[derive(Debug)]
pub struct Prune<'a> {
    /// The answer to the prune. [`Tables::prunes`](super::Tables::prunes) lists it later.
    pub pruned: Pruned,
    /// The messages, in the order in which the store found them.
    pub messages: &'a [Seq],
    /// The summaries.
    pub summaries: &'a [SummaryPlace],
}

/// A new state.
#[derive(Debug, Clone, Copy)]
pub struct NewKeptState<'a> {
    /// The revision of the state.
    pub revision: StateRevision,
    /// The head of the session at the time of the save.
    pub head: Head,
    /// The text of the state.
    pub text: &'a str,
}

impl Changes<'_> {
    /// Makes changes that change nothing yet, for a session with these counters.
    pub fn of(before: Option<Counters>) -> Self {
        Self { after: before.unwrap_or_default(), ..Self::default() }
    }
}

/// Splits ascending numbers into runs without gaps. Returns the first and the last number of each run.
pub fn runs(seqs: &[Seq]) -> impl Iterator<Item = (Seq, Seq)> {
    let follows = |one: &Seq, next: &Seq| one.next() == *next;
    seqs.chunk_by(follows).filter_map(|run| Some((*run.first()?, *run.last()?)))
}
