//! The index of a session without its texts: the position of each line, the visible messages, and the append of each
//! token.

mod undo;

pub(super) use self::undo::Undone;

use std::collections::{BTreeMap, HashMap};

use epitome_core::{Head, Revision, Seq, Tokens, Turn};
use sha2::{Digest, Sha256};

use crate::kernel::{Counters, Visible};
use crate::rules::{self, Anchor, Restored, Standing, VisibleMessage, VisibleSummary};
use crate::tail::last_turn;
use crate::{
    AppendToken, Appended, CompactionRecord, Entry, Pruned, RecordId, SessionId, SessionInfo, StateRevision,
    StoreError, Timestamp, UnansweredCall, edit,
};

/// A line of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) at: u64,
    pub(super) len: u64,
}

impl Span {
    pub(super) const fn end(self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

/// A message of the log. Its sequence number is its index in the list of slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) line: Span,
    pub(super) anchor: Seq,
    pub(super) turn: Turn,
    pub(super) tokens: Tokens,
    pub(super) standing: Standing,
    pub(super) hidden_by: Option<Revision>,
    pub(super) late: bool,
    pub(super) orphan: bool,
    /// The number of the prune that deleted its text, counted from 1.
    pub(super) pruned: u32,
}

impl Slot {
    /// The slot of an entry. `hidden_by` is set for an entry that is hidden from the start.
    pub(super) fn of(entry: &Entry, hidden_by: Option<Revision>, line: Span) -> Self {
        let Entry { anchor, turn, late, orphan, .. } = *entry;
        let (tokens, standing) = (entry.count.tokens, Standing::of(&entry.message));
        Self { line, anchor, turn, tokens, standing, hidden_by, late, orphan, pruned: 0 }
    }
}

/// A summary of a record, visible or hidden. Its text is in the record's line.
#[derive(Debug, Clone, Copy)]
pub(super) struct SummarySlot {
    /// The revision that its record made.
    pub(super) made: Revision,
    pub(super) key: Seq,
    pub(super) hidden_by: Option<Revision>,
    pub(super) pruned: bool,
}

/// An append. Its token is in its line.
#[derive(Debug, Clone, Copy)]
pub(super) struct AppendSlot {
    pub(super) line: Span,
    pub(super) appended: Appended,
    pub(super) time: Option<Timestamp>,
}

/// A message of an append that is being read or written.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) slot: Slot,
    /// The entry, if it is hidden from the start: it may answer a hidden call.
    pub(super) answers: Option<Entry>,
}

/// The session's state; its text is in the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateSlot {
    pub(super) revision: StateRevision,
    pub(super) line: Span,
}

/// A committed record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) revision: Revision,
    pub(super) id: RecordId,
    pub(super) line: Span,
    pub(super) undone_by: Option<Revision>,
}

/// The visible item at a key.
#[derive(Debug)]
pub(super) enum Shown {
    Message,
    /// A summary, with the revision of its record.
    Summary(Revision, Box<Entry>),
}

#[derive(Debug, Default)]
pub(super) struct Index {
    revision: Revision,
    slots: Vec<Slot>,
    live: BTreeMap<Seq, Shown>,
    live_tokens: u64,
    shortened: BTreeMap<Seq, Restored>,
    appends: Vec<AppendSlot>,
    /// For each token, the number of its append. Tokens may be long, so the keys are digests.
    receipts: HashMap<[u8; 16], u32>,
    /// The records, ordered by revision.
    records: Vec<Kept>,
    /// The summaries, in the order of their records.
    summaries: Vec<SummarySlot>,
    prunes: Vec<Pruned>,
    unanswered: BTreeMap<(Seq, u32), UnansweredCall>,
    state: Option<StateSlot>,
}

impl Index {
    pub(super) fn head(&self) -> Head {
        Seq(self.slots.len() as u64)
    }

    pub(super) const fn revision(&self) -> Revision {
        self.revision
    }

    /// All counters except the time of the first append, which only a list needs.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            head: self.head(),
            revision: self.revision,
            live_messages: self.live.len() as u64,
            live_tokens: self.live_tokens,
            created: None,
            appended: self.last_time(),
        }
    }

    /// The approximate size in memory, in entries.
    pub(super) fn weight(&self) -> usize {
        self.slots.len().saturating_add(self.receipts.len()).saturating_add(self.records.len())
    }

    pub(super) fn receipt(&self, token: &AppendToken) -> Option<Appended> {
        let at = usize::try_from(*self.receipts.get(&digest(token.as_str()))?).ok()?;
        self.appends.get(at).map(|append| append.appended)
    }

    pub(super) fn slot(&self, seq: Seq) -> Result<&Slot, StoreError> {
        usize::try_from(seq.0).ok().and_then(|index| self.slots.get(index)).ok_or_else(lost)
    }

    pub(super) fn anchor(&self, seq: Seq) -> Result<Anchor, StoreError> {
        let slot = self.slot(seq)?;
        Ok(Anchor { anchor: slot.anchor, hidden_by: slot.hidden_by })
    }

    pub(super) fn shortened(&self, seq: Seq) -> Option<&Restored> {
        self.shortened.get(&seq)
    }

    pub(super) const fn state(&self) -> Option<StateSlot> {
        self.state
    }

    /// The revision of the saved state.
    pub(super) fn state_revision(&self) -> StateRevision {
        self.state.map(|state| state.revision).unwrap_or_default()
    }

    /// Adds a saved state to the index.
    pub(super) const fn keep_state(&mut self, revision: StateRevision, line: Span) {
        self.state = Some(StateSlot { revision, line });
    }

    /// The visible items from `from` on, ordered by key.
    pub(super) fn live(&self, from: Seq) -> impl Iterator<Item = (Seq, &Shown)> {
        self.live.range(from..).map(|(key, shown)| (*key, shown))
    }

    /// The end of the last line of the messages that are visible from `from` on. The index holds the texts of summaries
    /// itself.
    pub(super) fn live_end(&self, from: Seq) -> Result<u64, StoreError> {
        let last = self.live.range(from..).rev().find(|(_, shown)| matches!(shown, Shown::Message));
        last.map_or(Ok(0), |(key, _)| Ok(self.slot(*key)?.line.end()))
    }

    pub(super) fn unanswered(&self) -> Vec<UnansweredCall> {
        self.unanswered.values().cloned().collect()
    }

    /// The record that made `revision`.
    pub(super) fn record_at(&self, revision: Revision) -> Option<&Kept> {
        let at = self.records.binary_search_by_key(&revision, |kept| kept.revision).ok()?;
        self.records.get(at)
    }

    /// The records that made a revision after `after`.
    pub(super) fn records(&self, after: Option<Revision>) -> &[Kept] {
        let from = self.records.partition_point(|kept| Some(kept.revision) <= after);
        self.records.get(from..).unwrap_or_default()
    }

    /// The first message of the last turn.
    pub(super) fn last_turn(&self) -> Result<Seq, StoreError> {
        let mut failed = None;
        let newest_first = self.live.iter().rev().map_while(|(key, shown)| match shown {
            Shown::Summary(_, entry) => Some((*key, entry.turn, false)),
            Shown::Message => match self.slot(*key) {
                Ok(slot) => Some((*key, slot.turn, slot.late)),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            },
        });
        let begin = last_turn(newest_first).map_or(self.head(), |(begin, _)| begin);
        failed.map_or(Ok(begin), Err)
    }

    pub(super) fn info(&self, id: &SessionId) -> SessionInfo {
        let mut info = SessionInfo::new(id.clone());
        info.head = self.head();
        info.revision = self.revision;
        info.live_messages = self.live.len() as u64;
        info.live_tokens = self.live_tokens;
        info.created = self.appends.iter().find_map(|append| append.time);
        info.appended = self.last_time();
        info
    }

    pub(super) fn visible(&self) -> Result<Visible, StoreError> {
        let (mut messages, mut summaries) = (Vec::new(), Vec::new());
        for (key, shown) in &self.live {
            match shown {
                Shown::Message => messages.push(self.seen(*key)?),
                Shown::Summary(made, entry) => {
                    let made = *made;
                    let covers = entry.message.attribution().derived_from.clone();
                    let (tokens, standing) = (entry.count.tokens, Standing::of(&entry.message));
                    summaries.push(VisibleSummary { key: *key, made, covers, tokens, standing });
                }
            }
        }
        Ok(Visible { messages, summaries })
    }

    /// A message in the form that the checks of a commit use.
    fn seen(&self, seq: Seq) -> Result<VisibleMessage, StoreError> {
        let Slot { anchor, standing, .. } = *self.slot(seq)?;
        Ok(VisibleMessage { seq, anchor, tokens: self.tokens(seq)?, standing })
    }

    /// The messages that the record of revision `by` has hidden.
    pub(super) fn hidden_by(&self, by: Revision) -> Result<Vec<VisibleMessage>, StoreError> {
        let slots = (0..).map(Seq).zip(&self.slots).filter(|(_, slot)| slot.hidden_by == Some(by));
        slots.map(|(seq, _)| self.seen(seq)).collect()
    }

    /// The time of the last append.
    pub(super) fn last_time(&self) -> Option<Timestamp> {
        self.appends.last().and_then(|append| append.time)
    }

    /// Adds a written append to the index. `line` is its last line.
    pub(super) fn append(
        &mut self,
        token: &str,
        incoming: Vec<Incoming>,
        revision: Revision,
        (line, time): (Span, Option<Timestamp>),
    ) {
        let first = self.head();
        for Incoming { slot, answers } in incoming {
            if slot.hidden_by.is_none() && !slot.orphan {
                self.live.insert(self.head(), Shown::Message);
                self.live_tokens = self.live_tokens.saturating_add(slot.tokens.as_u64());
            }
            if let Some(entry) = answers {
                self.settle(&entry);
            }
            self.slots.push(slot);
        }
        self.revision = revision;
        self.receipts.insert(digest(token), u32::try_from(self.appends.len()).unwrap_or(u32::MAX));
        let time = Timestamp::after(time, self.last_time());
        self.appends.push(AppendSlot { line, appended: Appended::new(first, self.head(), revision), time });
    }

    /// Removes the call that a hidden entry answers from the unanswered calls. It is the first call with this id.
    fn settle(&mut self, entry: &Entry) {
        let group = (entry.anchor, 0)..=(entry.anchor, u32::MAX);
        let mut calls = self.unanswered.range(group);
        let answered = calls.find(|(_, call)| call.is_answered_by(entry)).map(|(place, _)| *place);
        if let Some(place) = answered {
            self.unanswered.remove(&place);
        }
    }

    /// Adds a written record to the index. The record was checked before.
    ///
    /// # Errors
    /// `Corrupt` if the record names messages that do not exist.
    pub(super) fn commit(&mut self, record: &CompactionRecord, kept: Kept) -> Result<(), StoreError> {
        for range in &record.hides {
            let keys: Vec<Seq> = self.live.range(range.first..=range.last).map(|(key, _)| *key).collect();
            for key in keys {
                self.hide(key, kept.revision)?;
            }
        }
        for edit in &record.edits {
            let before = self.shortened.get(&edit.seq).map_or(&[][..], |shortened| &shortened.stand_ins);
            let stand_ins = edit::merged(before, &edit.stand_ins);
            let (was, is) = (self.tokens(edit.seq)?, edit.count.tokens);
            self.live_tokens = self.live_tokens.saturating_sub(was.as_u64()).saturating_add(is.as_u64());
            let shortened = Restored { by: kept.revision, stand_ins, count: edit.count.clone() };
            self.shortened.insert(edit.seq, shortened);
        }
        for summary in &record.summaries {
            // A summary is a group of its own, in the turn of the first message that it covers.
            let turn = self.slot(summary.key)?.turn;
            let entry = Entry::new(summary.message.clone(), summary.key, turn, summary.count.clone());
            self.live_tokens = self.live_tokens.saturating_add(entry.count.tokens.as_u64());
            self.live.insert(summary.key, Shown::Summary(kept.revision, Box::new(entry)));
            let (made, key) = (kept.revision, summary.key);
            self.summaries.push(SummarySlot { made, key, hidden_by: None, pruned: false });
        }
        for call in &record.unanswered {
            self.unanswered.insert((call.anchor, call.ordinal), call.clone());
        }
        self.records.push(kept);
        self.revision = kept.revision;
        Ok(())
    }

    fn hide(&mut self, key: Seq, by: Revision) -> Result<(), StoreError> {
        let tokens = match self.live.remove(&key) {
            Some(Shown::Summary(_, entry)) => {
                let visible = |slot: &&mut SummarySlot| slot.key == key && slot.hidden_by.is_none();
                self.summaries.iter_mut().rev().find(visible).ok_or_else(lost)?.hidden_by = Some(by);
                entry.count.tokens
            }
            Some(Shown::Message) | None => {
                let tokens = self.tokens(key)?;
                let slot = usize::try_from(key.0).ok().and_then(|index| self.slots.get_mut(index));
                slot.ok_or_else(lost)?.hidden_by = Some(by);
                if let Some(shortened) = self.shortened.get_mut(&key) {
                    // A hidden message needs no stand-ins.
                    shortened.stand_ins = Vec::new();
                }
                tokens
            }
        };
        self.live_tokens = self.live_tokens.saturating_sub(tokens.as_u64());
        Ok(())
    }

    /// The size of a message in its visible form.
    fn tokens(&self, seq: Seq) -> Result<Tokens, StoreError> {
        match self.shortened.get(&seq) {
            Some(shortened) => Ok(shortened.count.tokens),
            None => Ok(self.slot(seq)?.tokens),
        }
    }
}

fn digest(token: &str) -> [u8; 16] {
    let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
    digest.first_chunk::<16>().copied().unwrap_or_default()
}

/// An internal error that no sequence of calls can cause.
pub(super) fn lost() -> StoreError {
    rules::corrupt("a message of the log is missing")
}
