//! The facts that a decision may want of a session.

use epitome_core::{Head, Revision, Seq, Turn};

use super::Extent;
use crate::history::rules::{Anchor, Restored, VisibleMessage, VisibleSummary};
use crate::history::{
    AppendToken, Appended, CompactionRecord, Entry, Loaded, MessageEdit, Pruned, RecordId, StateRevision,
    Timestamp, TokenCount, UnansweredCall,
};
use crate::message::Message;

/// The facts that a decision wants. The counters of the session are always among them.
#[derive(Debug, Clone, Default)]
pub(in crate::history) struct Needs<'a> {
    /// The append under this token, compared with these entries.
    pub(in crate::history) receipt: Option<(&'a AppendToken, &'a [Entry])>,
    /// The groups of these messages: ascending.
    pub(in crate::history) anchors: Vec<Seq>,
    /// The live projection, to place entries behind it.
    pub(in crate::history) projection: Option<Extent>,
    /// The hidden calls without an answer.
    pub(in crate::history) calls: bool,
    /// The revision of the state.
    pub(in crate::history) state: bool,
    /// The text of the state.
    pub(in crate::history) state_text: bool,
    /// The id of the record that made this revision.
    pub(in crate::history) record_id: Option<Revision>,
    /// What is visible.
    pub(in crate::history) visible: bool,
    /// These messages as they were appended, and what stands in them: ascending.
    pub(in crate::history) edited: Vec<Seq>,
    /// The turns of these messages.
    pub(in crate::history) turns: Vec<Seq>,
    /// The record that made this revision, and what has to be known to undo it.
    pub(in crate::history) made: Option<Revision>,
    /// The edits of these messages by the records that hold and came before a revision.
    pub(in crate::history) earlier_edits: Option<(Revision, Vec<Seq>)>,
    /// What is hidden at this revision or before, and not pruned.
    pub(in crate::history) prunable: Option<Revision>,
}

/// What a store has found of that. A fact that was not asked for is empty.
#[derive(Debug, Default)]
pub(in crate::history) struct Facts {
    /// `None`: there is no such session.
    pub(in crate::history) session: Option<Counters>,
    pub(in crate::history) receipt: Option<Receipt>,
    /// Those of the messages asked for that are in the log.
    pub(in crate::history) anchors: Vec<(Seq, Anchor)>,
    /// The messages whose groups were asked for last.
    pub(in crate::history) anchors_asked: Vec<Seq>,
    pub(in crate::history) projection: Option<(Extent, Loaded)>,
    /// By group and place in it; `None` where nobody has asked.
    pub(in crate::history) calls: Option<Vec<UnansweredCall>>,
    /// 0 if there is none.
    pub(in crate::history) state: StateRevision,
    /// `None` where nobody has asked.
    pub(in crate::history) state_text: Option<Box<str>>,
    pub(in crate::history) record_id: Option<RecordId>,
    pub(in crate::history) visible: Visible,
    /// Those of the messages asked for that are in the log.
    pub(in crate::history) edited: Vec<Edited>,
    /// Those of the messages asked for that are in the log.
    pub(in crate::history) turns: Vec<(Seq, Turn)>,
    pub(in crate::history) made: Option<Made>,
    /// The latest revision that a record made which is not undone.
    pub(in crate::history) latest_held: Option<Revision>,
    /// `None` where nobody has asked. Oldest record first.
    pub(in crate::history) earlier_edits: Option<Vec<(Revision, MessageEdit)>>,
    pub(in crate::history) prunable: Prunable,
}

/// The counters of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::history) struct Counters {
    pub(in crate::history) head: Head,
    pub(in crate::history) revision: Revision,
    pub(in crate::history) live_messages: u64,
    pub(in crate::history) live_tokens: u64,
    /// When its first append of a known time was.
    pub(in crate::history) created: Option<Timestamp>,
    /// When its last append of a known time was.
    pub(in crate::history) appended: Option<Timestamp>,
}

/// An append that was done under a token.
#[derive(Debug, Clone, Copy)]
pub(in crate::history) struct Receipt {
    pub(in crate::history) appended: Appended,
    pub(in crate::history) said: SaidBefore,
}

/// How the messages of an append compare with those of another one under its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::history) enum SaidBefore {
    Same,
    Other,
    /// One of them was pruned: they cannot be compared any more.
    Pruned,
}

/// What is visible, or was hidden by one record, in the order of keys.
#[derive(Debug, Default)]
pub(in crate::history) struct Visible {
    pub(in crate::history) messages: Vec<VisibleMessage>,
    pub(in crate::history) summaries: Vec<VisibleSummary>,
}

/// A message of the log, and what stands in place of its parts.
#[derive(Debug)]
pub(in crate::history) struct Edited {
    pub(in crate::history) seq: Seq,
    /// As it was appended.
    pub(in crate::history) message: Message,
    /// Its size then.
    pub(in crate::history) whole: TokenCount,
    pub(in crate::history) shortened: Option<Restored>,
}

/// A record that was committed, with what has to be known to undo it.
#[derive(Debug)]
pub(in crate::history) struct Made {
    /// With its edits and what it hides; its summaries may be missing.
    pub(in crate::history) record: CompactionRecord,
    pub(in crate::history) undone_by: Option<Revision>,
    /// Whether there was a prune after it, through it or a later revision.
    pub(in crate::history) pruned_since: bool,
    /// What it has hidden. Empty if it is undone.
    pub(in crate::history) hidden: Visible,
}

/// Where a summary is: the revision that its record made, and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::history) struct SummaryPlace {
    pub(in crate::history) made: Revision,
    pub(in crate::history) key: Seq,
}

/// What a prune through a revision would delete.
#[derive(Debug, Default)]
pub(in crate::history) struct Prunable {
    /// In the order in which the store has found them.
    pub(in crate::history) messages: Vec<Seq>,
    pub(in crate::history) summaries: Vec<SummaryPlace>,
    /// The latest prune through the same revision.
    pub(in crate::history) before: Option<Pruned>,
}

impl Facts {
    pub(in crate::history) fn anchor(&self, seq: Seq) -> Option<Anchor> {
        found(&self.anchors, seq)
    }

    pub(in crate::history) fn turn(&self, seq: Seq) -> Option<Turn> {
        found(&self.turns, seq)
    }

    pub(in crate::history) fn edited(&self, seq: Seq) -> Option<&Edited> {
        let at = self.edited.binary_search_by_key(&seq, |edited| edited.seq).ok()?;
        self.edited.get(at)
    }
}

fn found<T: Copy>(facts: &[(Seq, T)], seq: Seq) -> Option<T> {
    let at = facts.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
    facts.get(at).map(|(_, fact)| *fact)
}
