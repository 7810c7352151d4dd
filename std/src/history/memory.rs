//! A store in memory.

use core::fmt;
use core::ops::Range;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use epitome_core::{Head, Revision, Seq, Turn};

mod image;
mod read;
mod snapshot;
mod state;
mod undo;

pub(crate) use snapshot::Snapshot;

use super::rules::{self, Anchor, Restored, Standing, VisibleMessage, VisibleSummary};
use super::{
    Append, AppendToken, Appended, Committed, CompactionRecord, Entry, HistoryStore, KeptState, Loaded,
    LogPage, LoggedAppend, NewState, Pruned, RecordId, SessionId, SessionInfo, StateOutcome, StateRevision,
    StoreError, Timestamp, TokenCount, UnansweredCall,
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

    /// Appends, and does `then` with the session in the same step.
    fn append_then<T>(
        &self,
        session: &SessionId,
        append: &Append<'_>,
        then: impl FnOnce(&mut Session) -> T,
    ) -> Result<(Appended, T), StoreError> {
        for entry in append.entries {
            stored::check(&entry.message).map_err(rules::not_storable)?;
        }
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get_mut(session) {
            return Ok((session.append(append)?, then(session)));
        }
        let mut new = Session::default();
        let appended = new.append(append)?;
        let done = then(&mut new);
        sessions.insert(session.clone(), new);
        Ok((appended, done))
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
        self.append_then(session, append, |_| ()).map(|(appended, ())| appended)
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.sessions().get(session).ok_or_else(|| rules::not_found("load"))?.load()
    }

    async fn tail(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.sessions().get(session).ok_or_else(|| rules::not_found("load"))?.tail()
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        Ok(self
            .sessions()
            .get(session)
            .and_then(|session| session.receipt(token))
            .map(|logged| logged.appended))
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

    async fn uncompact(&self, session: &SessionId, made: Revision) -> Result<Revision, StoreError> {
        self.sessions().get_mut(session).ok_or_else(|| rules::not_found("uncompact"))?.uncompact(made)
    }

    async fn prune(&self, session: &SessionId, through: Revision) -> Result<Pruned, StoreError> {
        self.sessions().get_mut(session).ok_or_else(|| rules::not_found("prune"))?.prune(through)
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        Ok(self.sessions().get(session).ok_or_else(|| rules::not_found("prunes"))?.prunes(after, limit))
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        Ok(self.sessions().get(session).ok_or_else(|| rules::not_found("appends"))?.appends(from, limit))
    }

    async fn append_with_state(
        &self,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        self.append_then(session, append, |session| session.keep_state(state))
    }

    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        let mut sessions = self.sessions();
        let session = sessions.get_mut(session).ok_or_else(|| rules::not_found("save_state"))?;
        rules::saved_state(session.keep_state(state))
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        Ok(self.sessions().get(session).ok_or_else(|| rules::not_found("state"))?.state.clone())
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
    appends: Vec<LoggedAppend>,
    /// Which of the appends has a token.
    receipts: HashMap<AppendToken, u32>,
    /// By revision.
    records: Vec<Kept>,
    prunes: Vec<Pruned>,
    unanswered: BTreeMap<(Seq, u32), UnansweredCall>,
    state: Option<KeptState>,
}

/// A logged message; its sequence number is its index.
struct Slot {
    entry: Entry,
    hidden_by: Option<Revision>,
    /// Boxed: few messages have it, and there is a place for it in all.
    shortened: Option<Box<Restored>>,
    /// Which of the prunes has deleted what it said, counted from 1.
    pruned: u32,
}

struct Kept {
    committed: Committed,
    id: RecordId,
    /// The record's summaries. Visible or not, they stay with their record.
    summaries: Vec<KeptSummary>,
}

struct KeptSummary {
    entry: Entry,
    hidden_by: Option<Revision>,
    pruned: bool,
}

/// Where a visible message is kept.
#[derive(Clone, Copy)]
enum Place {
    Log,
    /// Numbers of four bytes: there is one of these for each visible message.
    Summary {
        record: u32,
        summary: u32,
    },
}

impl Session {
    fn append(&mut self, append: &Append<'_>) -> Result<Appended, StoreError> {
        let Append { token, head, entries, time } = *append;
        if let Some(LoggedAppend { appended, .. }) = self.receipt(token) {
            let known = self.slots(appended.first, appended.head);
            let same = known.iter().any(|slot| slot.entry.message.is_pruned())
                || known
                    .iter()
                    .map(|slot| &slot.entry.message)
                    .eq(entries.iter().map(|entry| &entry.message));
            return if same { Ok(*appended) } else { Err(rules::token_reused()) };
        }
        let first = self.head();
        if head != first {
            return Err(rules::head_conflict(head, first));
        }
        let placement = rules::place(first, entries, |anchor| {
            let slot = self.slot(anchor)?;
            Ok(Anchor { anchor: slot.entry.anchor, hidden_by: slot.hidden_by })
        })?;
        // By a quarter, not to twice of it: a server keeps many sessions that are never appended to again.
        if self.log.capacity().saturating_sub(self.log.len()) < entries.len() {
            self.log.reserve_exact(entries.len().max(self.log.len() / 4));
        }
        for ((seq, entry), hidden_by) in (first.0..).map(Seq).zip(entries).zip(placement.hidden_by) {
            if hidden_by.is_some() {
                self.settle(entry);
            } else if !entry.orphan {
                self.live.insert(seq, Place::Log);
            }
            self.log.push(Slot { entry: entry.clone(), hidden_by, shortened: None, pruned: 0 });
        }
        self.live_tokens = self.live_tokens.saturating_add(placement.live_tokens);
        if placement.moves_revision {
            self.revision = self.revision.next();
        }
        let appended = Appended::new(first, self.head(), self.revision);
        let time = Timestamp::after(time, self.appends.last().and_then(|last| last.time));
        if self.appends.len() == self.appends.capacity() {
            self.appends.reserve_exact((self.appends.len() / 4).max(1));
        }
        self.receipts.insert(token.clone(), u32::try_from(self.appends.len()).unwrap_or(u32::MAX));
        self.appends.push(LoggedAppend::new(token.clone(), appended, time));
        Ok(appended)
    }

    /// Takes the call that a hidden entry answers off the list of the unanswered ones: the first with its id.
    fn settle(&mut self, entry: &Entry) {
        let group = (entry.anchor, 0)..=(entry.anchor, u32::MAX);
        let mut calls = self.unanswered.range(group);
        let answered = calls.find(|(_, call)| call.is_answered_by(entry)).map(|(place, _)| *place);
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
        let shortened = self.shortened(record, revision)?;
        rules::check_groups(record, &messages)?;

        for seq in &edit.messages {
            self.live.remove(seq);
            if let Some(slot) = self.slot_mut(*seq) {
                slot.hidden_by = Some(revision);
            }
        }
        for key in &edit.summaries {
            if let Some(summary) = self.live.remove(key).and_then(|place| self.summary_mut(place)) {
                summary.hidden_by = Some(revision);
            }
        }
        for (seq, shortened) in shortened {
            if let Some(slot) = self.slot_mut(seq) {
                slot.shortened = Some(Box::new(shortened));
            }
        }
        let number = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        for (summary, entry) in (0..).zip(&shown) {
            self.live.insert(entry.anchor, Place::Summary { record: number, summary });
        }
        let summary = |entry| KeptSummary { entry, hidden_by: None, pruned: false };
        let summaries = shown.into_iter().map(summary).collect();
        for call in &record.unanswered {
            self.unanswered.insert((call.anchor, call.ordinal), call.clone());
        }
        let committed = Committed::new(revision, record.clone());
        self.records.push(Kept { committed, id, summaries });
        self.live_tokens = edit.live_tokens;
        self.revision = revision;
        Ok(revision)
    }

    fn record_at(&self, revision: Revision) -> Option<&Kept> {
        let at = self.records.binary_search_by_key(&revision, |kept| kept.committed.revision).ok()?;
        self.records.get(at)
    }

    fn summary_mut(&mut self, place: Place) -> Option<&mut KeptSummary> {
        let Place::Summary { record, summary } = place else { return None };
        self.records.get_mut(record as usize)?.summaries.get_mut(summary as usize)
    }

    fn head(&self) -> Head {
        Seq(self.log.len() as u64)
    }

    fn slot(&self, seq: Seq) -> Result<&Slot, StoreError> {
        usize::try_from(seq.0).ok().and_then(|index| self.log.get(index)).ok_or_else(lost)
    }

    fn slot_mut(&mut self, seq: Seq) -> Option<&mut Slot> {
        usize::try_from(seq.0).ok().and_then(|index| self.log.get_mut(index))
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
                let record = self.records.get(record as usize);
                let summary = record.and_then(|record| record.summaries.get(summary as usize));
                summary.map(|summary| &summary.entry).ok_or_else(lost)
            }
        }
    }

    fn visible(&self) -> Result<(Vec<VisibleMessage>, Vec<VisibleSummary>), StoreError> {
        let (mut messages, mut summaries) = (Vec::new(), Vec::new());
        for (key, place) in &self.live {
            let entry = self.entry(*key, *place)?;
            let tokens = match place {
                Place::Log => self.slot(*key)?.shown().tokens,
                Place::Summary { .. } => entry.count.tokens,
            };
            let standing = Standing::of(&entry.message);
            match place {
                Place::Log => {
                    messages.push(VisibleMessage { seq: *key, anchor: entry.anchor, tokens, standing });
                }
                Place::Summary { .. } => {
                    let covers = entry.message.attribution().derived_from.clone();
                    summaries.push(VisibleSummary { key: *key, covers, tokens, standing });
                }
            }
        }
        Ok((messages, summaries))
    }

    /// What a record that makes `revision` lets stand in place of messages' parts.
    fn shortened(
        &self,
        record: &CompactionRecord,
        revision: Revision,
    ) -> Result<Vec<(Seq, Restored)>, StoreError> {
        let shorten = |edit: &super::MessageEdit| {
            let slot = self.slot(edit.seq)?;
            let before = slot.shortened.as_ref().map_or(&[][..], |shortened| &shortened.stand_ins);
            let stand_ins = rules::shorten(edit, &slot.entry.message, before, slot.shown())?;
            Ok((edit.seq, Restored { by: revision, stand_ins, count: edit.count.clone() }))
        };
        record.edits.iter().map(shorten).collect()
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

impl Slot {
    /// The size of the message as it is shown.
    fn shown(&self) -> &TokenCount {
        self.shortened.as_ref().map_or(&self.entry.count, |shortened| &shortened.count)
    }
}

/// No sequence of calls leads here.
fn lost() -> StoreError {
    rules::corrupt("a message of the log is missing")
}
