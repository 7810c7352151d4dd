//! A history store of anything that gets and saves a session's bytes.

use core::hash::{BuildHasher, BuildHasherDefault};
use core::ops::Range;
use std::hash::DefaultHasher;

use async_trait::async_trait;
use epitome_core::{Revision, Seq};
use futures::lock::{Mutex, MutexGuard};

use super::kernel::{Extent, Op, Reply, Tables, run_now};
use super::memory::{self, Session};
use super::pause::give_way;
use super::{
    AppendToken, Appended, Committed, KeptState, Loaded, LogPage, LoggedAppend, Pruned, SessionId,
    SessionInfo, StoreError, StoreErrorKind, rules,
};

/// A medium that keeps the bytes of each session: a key-value store, an object store, a folder.
///
/// *For implementers*: nothing needs to be known of the bytes. `save` is one step: whoever reads finds the bytes of before or
/// those of after. The name of a session is any text: it may be empty, and longer than the name of a file may be. Errors are `Unavailable` where a repetition may help, and hold none of the bytes.
#[async_trait]
pub trait ByteStore: Send + Sync + core::fmt::Debug {
    /// The bytes that are saved under the name of `session`; `None` if there are none.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be read now.
    async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError>;

    /// Saves `bytes` under the name of `session`, or with `None` deletes what is saved there, if that is still `was`:
    /// what [`ByteStore::get`] has given, `None` if there was nothing.
    ///
    /// A store that cannot compare saves all the same. Then one [`SimpleHistory`] must be the only one that writes: of
    /// two that write a session at once, one loses what the other has written.
    ///
    /// # Errors
    /// `Conflict` if something else is saved there: the operation is then tried again on that. `Unavailable` if it cannot
    /// be written now.
    async fn save(
        &self,
        session: &SessionId,
        was: Option<&Saved>,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError>;

    /// At most `limit` of the names under which something is saved, in the order of their bytes, those after `after`.
    ///
    /// # Errors
    /// `Unavailable`; `Unsupported` from a store that cannot tell: this default.
    async fn names(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        let _ = (after, limit);
        Err(rules::unsupported("list"))
    }
}

/// Bytes that were saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Tells them from what is saved under the same name at another time: a number, an `ETag`. Empty where the store does
    /// not know versions, and compares the bytes or nothing.
    pub version: String,
}

impl Saved {
    /// Saved bytes, in this version.
    #[must_use]
    pub fn new(bytes: Vec<u8>, version: impl Into<String>) -> Self {
        Self { bytes, version: version.into() }
    }
}

/// A history store of anything that gets and saves a session's bytes: compactions, late answers, undoing and
/// pruning included.
///
/// A session is one piece of bytes, which is read for every operation and written anew for each that changes something: its cost grows with
/// the whole log. For sessions of thousands of messages take a store that reads only visible messages.
///
/// *Concurrency*: where the bytes are saved only in place of those that were read, any number of processes may use them. An operation that
/// finds others written meanwhile begins again. Where they are saved blindly, this one value must be the only writer; its own operations on
/// one session wait for each other.
///
/// *Cancel safety*: as [`HistoryStore`](super::HistoryStore) says: a dropped operation was saved whole or not at all.
///
/// *Durability*: that of the [`ByteStore`].
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use epitome_history::{
///     AppendToken, ByteStore, History, Saved, SessionId, SimpleHistory, StoreError, StoreErrorKind,
/// };
/// use epitome_message::Message;
///
/// #[derive(Debug, Default)]
/// struct Shelf(Mutex<BTreeMap<SessionId, Saved>>);
///
/// #[async_trait]
/// impl ByteStore for Shelf {
///     async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError> {
///         Ok(self.0.lock().unwrap().get(session).cloned())
///     }
///
///     async fn save(
///         &self,
///         session: &SessionId,
///         was: Option<&Saved>,
///         bytes: Option<&[u8]>,
///     ) -> Result<(), StoreError> {
///         let mut shelf = self.0.lock().unwrap();
///         if shelf.get(session) != was {
///             return Err(StoreError::new(StoreErrorKind::Conflict, "save: something else was saved meanwhile"));
///         }
///         match bytes {
///             Some(bytes) => drop(shelf.insert(session.clone(), Saved::new(bytes.to_vec(), ""))),
///             None => drop(shelf.remove(session)),
///         }
///         Ok(())
///     }
/// }
///
/// # futures::executor::block_on(async {
/// let store = std::sync::Arc::new(SimpleHistory::new(Shelf::default()));
/// let counter = std::sync::Arc::new(epitome_core::ClassEstimator::new());
/// let mut history = History::open(store.clone(), SessionId::new("demo"), counter.clone()).await?;
/// history.append(&AppendToken::new("first"), vec![Message::user("Hello")]).await?;
/// let again = History::open(store, SessionId::new("demo"), counter).await?;
/// assert_eq!(again.index().tokens(), history.index().tokens());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct SimpleHistory<B> {
    bytes: B,
    /// One of these is held while an operation on a session changes it; which, says the hash of its name.
    changing: [Mutex<()>; STRIPES],
}

/// Operations on so many sessions can be under way at once.
const STRIPES: usize = 64;

/// Maximum number of attempts of an operation. Each time another writer has saved first: with fewer than this many writers at once it comes
/// through.
const ATTEMPTS_MAX: u32 = 1_000;

impl<B: ByteStore> SimpleHistory<B> {
    /// The history store whose bytes are kept in `bytes`.
    #[must_use]
    pub fn new(bytes: B) -> Self {
        Self { bytes, changing: core::array::from_fn(|_| Mutex::new(())) }
    }

    /// The medium that keeps the bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &B {
        &self.bytes
    }
}

impl<B: ByteStore> SimpleHistory<B> {
    async fn lock(&self, session: &SessionId) -> Option<MutexGuard<'_, ()>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(session);
        let stripe = usize::try_from(hash % STRIPES as u64).unwrap_or_default();
        match self.changing.get(stripe) {
            Some(stripe) => Some(stripe.lock().await),
            None => None,
        }
    }

    /// The session, and the bytes that it was read from; an empty one without bytes if there is no such session.
    async fn open(&self, id: &SessionId) -> Result<(Session, Option<Saved>), StoreError> {
        let saved = self.bytes.get(id).await?;
        let session = match &saved {
            Some(saved) => Session::of_image(id, &saved.bytes)?,
            None => Session::default(),
        };
        Ok((session, saved))
    }

    /// The session, which must be there.
    async fn read(&self, operation: &str, id: &SessionId) -> Result<Session, StoreError> {
        match self.open(id).await? {
            (session, Some(_)) => Ok(session),
            (_, None) => Err(rules::not_found(operation)),
        }
    }
}

fn overtaken() -> StoreError {
    let context = "save: others have saved the session each time it was tried; repeat it later";
    StoreError::new(StoreErrorKind::Unavailable, context)
}

impl<B: ByteStore> Tables for SimpleHistory<B> {
    /// Does `op` on the session and saves the result, until no other writer has saved meanwhile.
    async fn execute(&self, id: &SessionId, op: Op<'_>) -> Result<Reply, StoreError> {
        memory::check(&op)?;
        let _changing = self.lock(id).await;
        for _ in 0..ATTEMPTS_MAX {
            let (mut session, was) = self.open(id).await?;
            let reply = run_now(&op, &mut session)?;
            let bytes = session.image(id)?;
            if was.as_ref().is_some_and(|was| was.bytes == bytes) {
                return Ok(reply);
            }
            // Other handles may save before: then this one has to begin again, also where the bytes are never waited for.
            give_way().await;
            match self.bytes.save(id, was.as_ref(), Some(&bytes)).await {
                Err(error) if error.kind() == StoreErrorKind::Conflict => {}
                saved => return saved.map(|()| reply),
            }
        }
        Err(overtaken())
    }

    async fn load(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        self.read("load", session).await?.load(extent)
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        let (session, _) = self.open(session).await?;
        Ok(session.receipt(token).map(|logged| logged.appended))
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        Ok(self.read("log", session).await?.log(range, limit))
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        Ok(self.read("records", session).await?.records(after, limit))
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        Ok(self.read("prunes", session).await?.prunes(after, limit))
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        Ok(self.read("appends", session).await?.appends(from, limit))
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        Ok(self.read("state", session).await?.into_state())
    }

    /// Reads each of the sessions whole.
    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let mut listed = Vec::new();
        for id in self.bytes.names(after, limit).await? {
            let info = self.open(&id).await.map(|(session, saved)| saved.map(|_| session.info(&id)));
            listed.extend(SessionInfo::or_damaged(id, info)?);
        }
        Ok(listed)
    }

    /// Reads nothing of the bytes: what is corrupt can be deleted.
    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        let _changing = self.lock(session).await;
        for _ in 0..ATTEMPTS_MAX {
            let Some(was) = self.bytes.get(session).await? else { return Ok(false) };
            match self.bytes.save(session, Some(&was), None).await {
                Err(error) if error.kind() == StoreErrorKind::Conflict => {}
                deleted => return deleted.map(|()| true),
            }
        }
        Err(overtaken())
    }
}
