//! The facts about a session that a decision may need.

use epitome_core::{Head, Revision, Seq, Turn};
use epitome_message::Message;

use super::Extent;
use crate::rules::{Anchor, Restored, VisibleMessage, VisibleSummary};
use crate::{
    AppendToken, Appended, CompactionRecord, Entry, Loaded, MessageEdit, Pruned, RecordId, StateRevision,
    Timestamp, TokenCount, UnansweredCall,
};

/// The facts that a decision needs. The counters of the session are always included.
#[derive(Debug, Clone, Default)]
pub struct Needs<'a> {
    /// The append under this token, and its comparison with these entries.
    pub receipt: Option<(&'a AppendToken, &'a [Entry])>,
    /// The groups of these messages, ascending.
    pub anchors: Vec<Seq>,
    /// The live projection, for the grouping of appended entries.
    pub projection: Option<Extent>,
    /// The hidden calls without an answer.
    pub calls: bool,
    /// The revision of the state.
    pub state: bool,
    /// The text of the state.
    pub state_text: bool,
    /// The id of the record that made this revision.
    pub record_id: Option<Revision>,
    /// The visible messages and summaries.
    pub visible: bool,
    /// The messages in their appended form, with their stand-ins, ascending.
    pub edited: Vec<Seq>,
    /// The turns of these messages.
    pub turns: Vec<Seq>,
    /// The record of this revision, with the facts that its uncompact needs.
    pub made: Option<Revision>,
    /// The edits of these messages by the records before a revision that are not undone.
    pub earlier_edits: Option<(Revision, Vec<Seq>)>,
    /// The messages that were hidden at this revision or before, and are not pruned.
    pub prunable: Option<Revision>,
}

/// The facts that a store has read. A fact that was not requested is empty.
#[derive(Debug, Default)]
pub struct Facts {
    /// The counters; `None` if there is no such session.
    pub session: Option<Counters>,
    /// The append under the requested token, if there is one.
    pub receipt: Option<Receipt>,
    /// The groups of the requested messages that are in the log.
    pub anchors: Vec<(Seq, Anchor)>,
    /// The messages of the last request for groups.
    pub anchors_asked: Vec<Seq>,
    /// The live projection, and its extent.
    pub projection: Option<(Extent, Loaded)>,
    /// The hidden calls without an answer, by group and by place in the group; `None` if not requested.
    pub calls: Option<Vec<UnansweredCall>>,
    /// The revision of the state; 0 if there is none.
    pub state: StateRevision,
    /// The text of the state, empty if there is none; `None` if not requested.
    pub state_text: Option<Box<str>>,
    /// The id of the record of the requested revision.
    pub record_id: Option<RecordId>,
    /// The visible messages and summaries.
    pub visible: Visible,
    /// The requested messages that are in the log.
    pub edited: Vec<Edited>,
    /// The turns of the requested messages that are in the log.
    pub turns: Vec<(Seq, Turn)>,
    /// The record of the requested revision.
    pub made: Option<Made>,
    /// The revision of the latest record that is not undone.
    pub latest_held: Option<Revision>,
    /// The edits of the requested messages, oldest record first; `None` if not requested.
    pub earlier_edits: Option<Vec<(Revision, MessageEdit)>>,
    /// The messages that the requested prune would delete.
    pub prunable: Prunable,
}

/// The counters of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of messages that were appended.
    pub head: Head,
    /// The number of commits, uncompacts, prunes and late answers.
    pub revision: Revision,
    /// The number of visible messages and summaries.
    pub live_messages: u64,
    /// The tokens of the visible messages and summaries.
    pub live_tokens: u64,
    /// The time of the first append with a known time.
    pub created: Option<Timestamp>,
    /// The time of the last append with a known time.
    pub appended: Option<Timestamp>,
}

/// An earlier append under a token.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    /// The answer to the earlier append.
    pub appended: Appended,
    /// The comparison of its messages with the new ones.
    pub said: SaidBefore,
}

/// The comparison of an append with an earlier one under the same token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaidBefore {
    /// The messages are equal.
    Same,
    /// The messages differ.
    Other,
    /// One of the messages was pruned, so they cannot be compared any more.
    Pruned,
}

/// Messages that are visible, or that one record hid, ordered by key.
#[derive(Debug, Default)]
pub struct Visible {
    /// The messages of the log.
    pub messages: Vec<VisibleMessage>,
    /// The summaries.
    pub summaries: Vec<VisibleSummary>,
}

/// A message of the log, and the stand-ins of its parts.
#[derive(Debug)]
pub struct Edited {
    /// The number of the message.
    pub seq: Seq,
    /// The message in its appended form.
    pub message: Message,
    /// The size of the appended message.
    pub whole: TokenCount,
    /// The stand-ins of its parts, if there are any.
    pub shortened: Option<Restored>,
}

/// A committed record, with the facts that its uncompact needs.
#[derive(Debug)]
pub struct Made {
    /// The record with its edits and hidden ranges; its summaries may be missing.
    pub record: CompactionRecord,
    /// The revision of the uncompact, if the record is undone.
    pub undone_by: Option<Revision>,
    /// Whether there was a prune after the record, through its revision or a later one.
    pub pruned_since: bool,
    /// The messages that the record has hidden. Empty if it is undone.
    pub hidden: Visible,
}

/// The identity of a summary: the revision of its record, and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SummaryPlace {
    /// The revision of its record.
    pub made: Revision,
    /// Its key: the lowest number that it covers.
    pub key: Seq,
}

/// The messages that a prune through a revision would delete.
#[derive(Debug, Default)]
pub struct Prunable {
    /// The messages, in the order in which the store found them.
    pub messages: Vec<Seq>,
    /// The summaries.
    pub summaries: Vec<SummaryPlace>,
    /// The latest prune through the same revision.
    pub before: Option<Pruned>,
}

impl Facts {
    /// The group of the message `seq`, if it was requested.
    pub fn anchor(&self, seq: Seq) -> Option<Anchor> {
        found(&self.anchors, seq)
    }

    /// The turn of the message `seq`, if it was requested.
    pub fn turn(&self, seq: Seq) -> Option<Turn> {
        found(&self.turns, seq)
    }

    /// The appended form of the message `seq`, if it was requested.
    pub fn edited(&self, seq: Seq) -> Option<&Edited> {
        let at = self.edited.binary_search_by_key(&seq, |edited| edited.seq).ok()?;
        self.edited.get(at)
    }
}

fn found<T: Copy>(facts: &[(Seq, T)], seq: Seq) -> Option<T> {
    let at = facts.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
    facts.get(at).map(|(_, fact)| *fact)
}
