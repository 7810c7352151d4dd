//! A store in memory.

use core::fmt;
use core::ops::{Bound, Range};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use epitome_core::{Head, Revision, Seq};

mod image;
mod places;
mod read;
mod session;
mod snapshot;
mod words;

pub use snapshot::{Snapshot, Step};

use self::places::{Place, Places};
use self::words::Words;
use super::kernel::{Counters, Extent, Op, Reply, Tables, run_now};
use super::rules::{self, Restored};
use super::{
    Append, AppendToken, Appended, Committed, Entry, FoundMessage, KeptState, Loaded, LogPage, LogSearch,
    LoggedAppend, Pruned, RecordId, SessionId, SessionInfo, StoreError, TokenCount, UnansweredCall,
};
use crate::stored;
use crate::words::search_sessions;

/// Keeps sessions in memory, on any executor. Every method completes at the first poll of its future.
///
/// ```
/// use epitome_core::{Basis, Seq, Tokens, Turn};
/// use epitome_history::{Append, AppendToken, Entry, HistoryStore, MemoryStore, SessionId, TokenCount};
/// use epitome_message::Message;
///
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let session = SessionId::new("demo");
/// let count = TokenCount::new(Tokens(3), Basis::Estimated, "default".into());
/// let entry = Entry::new(Message::user("Hello"), Seq(0), Turn(1), count);
/// store.append(&session, &Append::new(&AppendToken::new("first"), Seq(0), &[entry])).await?;
/// assert_eq!(store.load(&session).await?.live.len(), 1);
/// # Ok::<(), epitome_history::StoreError>(())
/// # }).unwrap();
/// ```
///
/// *Durability*: none. The sessions are lost when the store is dropped.
#[derive(Default)]
pub struct MemoryStore {
    sessions: Mutex<BTreeMap<SessionId, Session>>,
}

impl MemoryStore {
    /// Makes a store without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl MemoryStore {
    /// A panic cannot leave a session half changed, because everything is decided before the first write.
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a session, which must exist.
    fn with<T>(
        &self,
        operation: &str,
        session: &SessionId,
        read: impl FnOnce(&Session) -> T,
    ) -> Result<T, StoreError> {
        self.sessions().get(session).map(read).ok_or_else(|| rules::not_found(operation))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("sessions", &self.sessions().len()).finish_non_exhaustive()
    }
}

impl Tables for MemoryStore {
    async fn execute(&self, session: &SessionId, op: Op<'_>) -> Result<Reply, StoreError> {
        check(&op)?;
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get_mut(session) {
            return run_now(&op, session);
        }
        let mut new = Session::default();
        let reply = run_now(&op, &mut new)?;
        sessions.insert(session.clone(), new);
        Ok(reply)
    }

    async fn load(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        self.with("load", session, |session| session.load(extent))?
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        let sessions = self.sessions();
        let receipt = sessions.get(session).and_then(|session| session.receipt(token));
        Ok(receipt.map(|logged| logged.appended))
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        self.with("log", session, |session| session.log(range, limit))
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        self.with("records", session, |session| session.records(after, limit))
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        self.with("prunes", session, |session| session.prunes(after, limit))
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        self.with("appends", session, |session| session.appends(from, limit))
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        self.with("state", session, |session| session.state.clone())
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let sessions = self.sessions();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = sessions.range::<SessionId, _>((from, Bound::Unbounded));
        Ok(page.take(limit as usize).map(|(id, session)| session.info(id)).collect())
    }

    async fn search(&self, search: &LogSearch) -> Result<Vec<FoundMessage>, StoreError> {
        search_sessions(self, search).await
    }

    async fn reindex(&self) -> Result<(), StoreError> {
        self.sessions().values_mut().for_each(|session| session.words.forget_all());
        Ok(())
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        Ok(self.sessions().remove(session).is_some())
    }
}

/// Checks that all entries have a stored form, as other stores do.
pub(super) fn check(op: &Op<'_>) -> Result<(), StoreError> {
    let Op::Append(Append { entries, .. }, _) = op else { return Ok(()) };
    entries.iter().try_for_each(|entry| stored::check(&entry.message).map_err(rules::not_storable))
}

/// One session.
#[derive(Default)]
pub(super) struct Session {
    counters: Counters,
    log: Vec<Slot>,
    live: Places,
    appends: Vec<LoggedAppend>,
    /// For each token, the number of its append.
    receipts: HashMap<AppendToken, u32>,
    /// The records, ordered by revision.
    records: Vec<Kept>,
    prunes: Vec<Pruned>,
    unanswered: BTreeMap<(Seq, u32), UnansweredCall>,
    state: Option<KeptState>,
    words: Words,
}

/// A message of the log. Its sequence number is its index.
struct Slot {
    entry: Entry,
    hidden_by: Option<Revision>,
    /// Boxed, because few messages have it and each slot has the field.
    shortened: Option<Box<Restored>>,
    /// The number of the prune that deleted its text, counted from 1.
    pruned: u32,
}

struct Kept {
    committed: Committed,
    id: RecordId,
    /// The record's summaries, visible or hidden.
    summaries: Vec<KeptSummary>,
}

struct KeptSummary {
    entry: Entry,
    hidden_by: Option<Revision>,
    pruned: bool,
}

impl Session {
    fn record_at(&self, revision: Revision) -> Option<&Kept> {
        self.records.get(self.record_number(revision)?)
    }

    fn record_number(&self, revision: Revision) -> Option<usize> {
        self.records.binary_search_by_key(&revision, |kept| kept.committed.revision).ok()
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

    /// The messages of the log from `first` to before `end`, limited to the end of the log.
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
}

impl Slot {
    /// The size of the message in its visible form.
    fn shown(&self) -> &TokenCount {
        self.shortened.as_ref().map_or(&self.entry.count, |shortened| &shortened.count)
    }
}

impl Session {
    pub(super) fn into_state(self) -> Option<KeptState> {
        self.state
    }
}

/// An internal error that no sequence of calls can cause.
fn lost() -> StoreError {
    rules::corrupt("a message of the log is missing")
}
