//! A history store over any medium that reads and saves a session's bytes.

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
/// *For implementers*: the bytes are opaque. `save` is atomic: a reader gets the old bytes or the new ones. The id of a
/// session is any text: it may be empty, or longer than a file name can be. Errors are `Unavailable` if a retry may
/// help, and contain none of the bytes.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use epitome_history::{ByteStore, Saved, SessionId, StoreError};
///
/// /// A map in memory, written by one [`SimpleHistory`](epitome_history::SimpleHistory) alone.
/// #[derive(Debug, Default)]
/// struct Map(Mutex<BTreeMap<SessionId, Saved>>);
///
/// #[async_trait]
/// impl ByteStore for Map {
///     async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError> {
///         Ok(self.0.lock().unwrap().get(session).cloned())
///     }
///
///     async fn save(&self, session: &SessionId, _was: Option<&Saved>, bytes: Option<&[u8]>) -> Result<(), StoreError> {
///         let mut map = self.0.lock().unwrap();
///         match bytes {
///             Some(bytes) => drop(map.insert(session.clone(), Saved::new(bytes.to_vec(), String::new()))),
///             None => drop(map.remove(session)),
///         }
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait ByteStore: Send + Sync + core::fmt::Debug {
    /// Reads the saved bytes of `session`; `None` if there are none.
    ///
    /// # Errors
    /// `Unavailable` if the bytes cannot be read now.
    async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError>;

    /// Saves `bytes` for `session`, or with `None` deletes its bytes, if the saved value is still `was`. `was` is a
    /// value that [`ByteStore::get`] returned; `None` if there were no bytes.
    ///
    /// A store that cannot compare saves unconditionally. Then only one [`SimpleHistory`] may write: if two write a
    /// session at the same time, the changes of one are lost.
    ///
    /// # Errors
    /// `Conflict` if the saved value differs from `was`; the operation is then retried on the present value.
    /// `Unavailable` if the bytes cannot be written now.
    async fn save(
        &self,
        session: &SessionId,
        was: Option<&Saved>,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError>;

    /// Lists at most `limit` sessions with saved bytes, in the byte order of their ids, beginning after `after`.
    ///
    /// # Errors
    /// `Unavailable`; `Unsupported` from a store that cannot list its sessions, which is the default.
    async fn names(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        let _ = (after, limit);
        Err(rules::unsupported("list"))
    }
}

/// The saved bytes of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// A version that distinguishes the bytes from those saved at another time: a number, an `ETag`. Empty if the
    /// medium has no versions, and compares the bytes or does not compare at all.
    pub version: String,
}

impl Saved {
    /// Makes saved bytes with this version.
    #[must_use]
    pub fn new(bytes: Vec<u8>, version: impl Into<String>) -> Self {
        Self { bytes, version: version.into() }
    }
}

/// A history store over any medium that reads and saves a session's bytes. It supports compactions, late answers,
/// uncompacts and prunes.
///
/// *Cost*: a session is one byte string. Every operation reads it, and every change writes it again, so the cost grows
/// with the whole log. For sessions of thousands of messages, use a store that reads only visible messages.
///
/// *Concurrency*: if the medium saves conditionally, any number of processes may use it. An operation that finds a
/// change of another writer starts again. If the medium saves unconditionally, this value must be the only writer; its
/// own operations on one session wait for each other.
///
/// *Cancel safety*: as [`HistoryStore`](super::HistoryStore) requires: a dropped operation was saved completely or not
/// at all.
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
    /// Locks for changes. The hash of a session's id selects its lock.
    changing: [Mutex<()>; STRIPES],
}

/// Number of locks: the maximum number of sessions that change at the same time.
const STRIPES: usize = 64;

/// Maximum number of attempts of an operation. An attempt fails only if another writer has saved first, so an operation
/// succeeds with fewer simultaneous writers than this.
const ATTEMPTS_MAX: u32 = 1_000;

impl<B: ByteStore> SimpleHistory<B> {
    /// Makes a store over the medium `bytes`.
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

    /// The session and the bytes that it was read from; an empty session without bytes if there is none.
    async fn open(&self, id: &SessionId) -> Result<(Session, Option<Saved>), StoreError> {
        let saved = self.bytes.get(id).await?;
        let session = match &saved {
            Some(saved) => Session::of_image(id, &saved.bytes)?,
            None => Session::default(),
        };
        Ok((session, saved))
    }

    /// The session, which must exist.
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
    /// Runs `op` on the session and saves the result. Retries while another writer saves first.
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
            // Lets other handles save first, even if the medium never waits. If one does, this operation starts again.
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

    /// Reads each listed session completely.
    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let mut listed = Vec::new();
        for id in self.bytes.names(after, limit).await? {
            let info = self.open(&id).await.map(|(session, saved)| saved.map(|_| session.info(&id)));
            listed.extend(SessionInfo::or_damaged(id, info)?);
        }
        Ok(listed)
    }

    /// Does not decode the bytes, so that a corrupt session can be deleted.
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
