//! A store in memory.

use core::fmt;
use core::ops::Range;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use epitome_core::{Head, Revision, Seq, Turn};

use super::rules::{self, Anchor, VisibleMessage, VisibleSummary};
use super::{
    Append, AppendToken, Appended, Committed, CompactionRecord, Entry, HistoryStore, Live, Loaded, LogPage,
    Logged, RecordId, SessionId, SessionInfo, StoreError, StoreErrorKind, UnansweredCall,
};
use crate::wire::stored;

/// Keeps sessions in memory, on any executor: every method is done when its future is first polled.
///
/// ```
/// use epitome_core::{Basis, Seq, Tokens, Turn};
/// use epitome_std::history::{Append, AppendToken, Entry, HistoryStore, MemoryStore, SessionId, TokenCount};
/// use epitome_std::message::Message;
///
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let session = SessionId::new("demo");
/// let count = TokenCount::new(Tokens(3), Basis::Estimated, "default".into());
/// let entry = Entry::new(Message::user("Hello"), Seq(0), Turn(1), count);
/// store.append(&session, &Append::new(&AppendToken::new("first"), Seq(0), &[entry])).await?;
/// assert_eq!(store.load(&session).await?.live.len(), 1);
/// # Ok::<(), epitome_std::history::StoreError>(())
/// # }).unwrap();
/// ```
///
/// *Durability*: none. What is in it ends with it.
#[derive(Default)]
pub struct MemoryStore {
    sessions: Mutex<BTreeMap<SessionId, Session>>,
}

impl MemoryStore {
    /// A store without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A panic elsewhere cannot leave a session half changed: everything is decided before anything is written.
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("sessions", &self.sessions().len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl HistoryStore for MemoryStore {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        for entry in append.entries {
            stored::check(&entry.message).map_err(rules::not_storable)?;
        }
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get_mut(session) {
            return session.append(append);
        }
        let mut new = Session::default();
        let appended = new.append(append)?;
        sessions.insert(session.clone(), new);
        Ok(appended)
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.sessions().get(session).ok_or_else(|| rules::not_found("load"))?.load()
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        let id = stored::record_id(record).map_err(rules::not_storable)?;
        self.sessions().get_mut(session).ok_or_else(|| rules::not_found("commit"))?.commit(record, id)
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        Ok(self.sessions().get(session).ok_or_else(|| rules::not_found("log"))?.log(range, limit))
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        Ok(self.sessions().get(session).ok_or_else(|| rules::not_found("records"))?.records(after, limit))
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let sessions = self.sessions();
        let from = after.map_or(core::ops::Bound::Unbounded, core::ops::Bound::Excluded);
        let page = sessions.range::<SessionId, _>((from, core::ops::Bound::Unbounded));
        Ok(page.take(limit as usize).map(|(id, session)| session.info(id)).collect())
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        Ok(self.sessions().remove(session).is_some())
    }
}

#[derive(Default)]
struct Session {
    revision: Revision,
    log: Vec<Slot>,
    live: BTreeMap<Seq, Place>,
    live_tokens: u64,
    receipts: HashMap<AppendToken, Appended>,
    /// By revision.
    records: Vec<Kept>,
    unanswered: BTreeMap<(Seq, u32), UnansweredCall>,
}

/// A logged message; its sequence number is its index.
struct Slot {
    entry: Entry,
    hidden_by: Option<Revision>,
}

struct Kept {
    committed: Committed,
    id: RecordId,
    /// The record's summaries as entries. Visible or not, they stay with their record.
    summaries: Vec<Entry>,
}

/// Where a visible message is kept.
#[derive(Clone, Copy)]
enum Place {
    Log,
    Summary { record: usize, summary: usize },
}

impl Session {
    fn append(&mut self, append: &Append<'_>) -> Result<Appended, StoreError> {
        let Append { token, head, entries } = *append;
        if let Some(receipt) = self.receipts.get(token) {
            let known = self.slots(receipt.first, receipt.head).iter().map(|slot| &slot.entry.message);
            let same = known.eq(entries.iter().map(|entry| &entry.message));
            return if same { Ok(*receipt) } else { Err(rules::token_reused()) };
        }
        let first = self.head();
        if head != first {
            return Err(rules::head_conflict(head, first));
        }
        let placement = rules::place(first, entries, |anchor| {
            let slot = self.slot(anchor)?;
            Ok(Anchor { anchor: slot.entry.anchor, hidden_by: slot.hidden_by })
        })?;
        for ((seq, entry), hidden_by) in (first.0..).map(Seq).zip(entries).zip(placement.hidden_by) {
            if hidden_by.is_some() {
                self.settle(entry);
            } else if !entry.orphan {
                self.live.insert(seq, Place::Log);
            }
            self.log.push(Slot { entry: entry.clone(), hidden_by });
        }
        self.live_tokens = self.live_tokens.saturating_add(placement.live_tokens);
        if placement.moves_revision {
            self.revision = self.revision.next();
        }
        let appended = Appended::new(first, self.head(), self.revision);
        self.receipts.insert(token.clone(), appended);
        Ok(appended)
    }

    /// Takes the call that a hidden entry answers off the list of the unanswered ones: the first with its id.
    fn settle(&mut self, entry: &Entry) {
        let group = (entry.anchor, 0)..=(entry.anchor, u32::MAX);
        let mut calls = self.unanswered.range(group);
        let answered = calls.find(|(_, call)| entry.call_id() == Some(&*call.id)).map(|(place, _)| *place);
        if let Some(place) = answered {
            self.unanswered.remove(&place);
        }
    }

    fn commit(&mut self, record: &CompactionRecord, id: RecordId) -> Result<Revision, StoreError> {
        let known = self.record_at(record.parent.next()).map(|kept| (kept.committed.revision, kept.id));
        if let Some(made) = rules::check_commit(record, id, known, self.revision, self.head())? {
            return Ok(made);
        }
        let (messages, summaries) = self.visible()?;
        let edit = rules::edit(record, &messages, &summaries)?;
        let shown = self.summary_entries(record)?;

        let revision = self.revision.next();
        for seq in &edit.messages {
            self.live.remove(seq);
            if let Some(slot) = usize::try_from(seq.0).ok().and_then(|index| self.log.get_mut(index)) {
                slot.hidden_by = Some(revision);
            }
        }
        for key in &edit.summaries {
            self.live.remove(key);
        }
        for (summary, entry) in shown.iter().enumerate() {
            self.live.insert(entry.anchor, Place::Summary { record: self.records.len(), summary });
        }
        for call in &record.unanswered {
            self.unanswered.insert((call.anchor, call.ordinal), call.clone());
        }
        let committed = Committed::new(revision, record.clone());
        self.records.push(Kept { committed, id, summaries: shown });
        self.live_tokens = edit.live_tokens;
        self.revision = revision;
        Ok(revision)
    }

    fn load(&self) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded::new(self.head(), self.revision);
        for (key, place) in &self.live {
            let entry = self.entry(*key, *place)?.clone();
            loaded.live.push(match place {
                Place::Log => Live::new(*key, entry),
                Place::Summary { .. } => {
                    let covers = entry.message.attribution().derived_from.clone();
                    Live::summary(*key, entry, covers)
                }
            });
        }
        loaded.unanswered = self.unanswered.values().cloned().collect();
        Ok(loaded)
    }

    fn log(&self, range: Range<Seq>, limit: u32) -> LogPage {
        let end = range.end.min(Seq(range.start.0.saturating_add(u64::from(limit))));
        let messages: Vec<Logged> = (range.start.0..)
            .map(Seq)
            .zip(self.slots(range.start, end))
            .map(|(seq, slot)| Logged::new(seq, slot.entry.clone(), slot.hidden_by))
            .collect();
        let end = Seq(range.start.0.saturating_add(messages.len() as u64));
        LogPage::new(messages, rules::next_page(end, range.end, self.head()))
    }

    fn records(&self, after: Option<Revision>, limit: u32) -> Vec<Committed> {
        let from = self.records.partition_point(|kept| Some(kept.committed.revision) <= after);
        self.records.iter().skip(from).take(limit as usize).map(|kept| kept.committed.clone()).collect()
    }

    fn record_at(&self, revision: Revision) -> Option<&Kept> {
        let at = self.records.binary_search_by_key(&revision, |kept| kept.committed.revision).ok()?;
        self.records.get(at)
    }

    fn info(&self, id: &SessionId) -> SessionInfo {
        let mut info = SessionInfo::new(id.clone());
        info.head = self.head();
        info.revision = self.revision;
        info.live_messages = self.live.len() as u64;
        info.live_tokens = self.live_tokens;
        info
    }

    fn head(&self) -> Head {
        Seq(self.log.len() as u64)
    }

    fn slot(&self, seq: Seq) -> Result<&Slot, StoreError> {
        usize::try_from(seq.0).ok().and_then(|index| self.log.get(index)).ok_or_else(lost)
    }

    /// The logged messages from `first` to before `end`, as far as the log goes.
    fn slots(&self, first: Seq, end: Seq) -> &[Slot] {
        let index = |seq: Seq| usize::try_from(seq.0).unwrap_or(usize::MAX).min(self.log.len());
        self.log.get(index(first)..index(end)).unwrap_or_default()
    }

    fn entry(&self, key: Seq, place: Place) -> Result<&Entry, StoreError> {
        match place {
            Place::Log => Ok(&self.slot(key)?.entry),
            Place::Summary { record, summary } => {
                self.records.get(record).and_then(|record| record.summaries.get(summary)).ok_or_else(lost)
            }
        }
    }

    fn visible(&self) -> Result<(Vec<VisibleMessage>, Vec<VisibleSummary>), StoreError> {
        let (mut messages, mut summaries) = (Vec::new(), Vec::new());
        for (key, place) in &self.live {
            let entry = self.entry(*key, *place)?;
            let tokens = entry.count.tokens;
            match place {
                Place::Log => messages.push(VisibleMessage { seq: *key, anchor: entry.anchor, tokens }),
                Place::Summary { .. } => {
                    let covers = entry.message.attribution().derived_from.clone();
                    summaries.push(VisibleSummary { key: *key, covers, tokens });
                }
            }
        }
        Ok((messages, summaries))
    }

    /// A summary is a group of its own, in the turn of the first message that it covers.
    fn summary_entries(&self, record: &CompactionRecord) -> Result<Vec<Entry>, StoreError> {
        let entry = |summary: &super::Summary| {
            let turn: Turn = self.slot(summary.key)?.entry.turn;
            Ok(Entry::new(summary.message.clone(), summary.key, turn, summary.count.clone()))
        };
        record.summaries.iter().map(entry).collect()
    }
}

/// No sequence of calls leads here.
fn lost() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "a message of the log is missing")
}
