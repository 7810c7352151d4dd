//! A history store of anything that gets and saves a session's bytes.

use core::hash::{BuildHasher, BuildHasherDefault};
use core::ops::Range;
use std::hash::DefaultHasher;

use async_trait::async_trait;
use epitome_core::{Revision, Seq};
use futures::FutureExt;
use futures::lock::{Mutex, MutexGuard};

use super::{
    Append, AppendToken, Appended, Committed, CompactionRecord, HistoryStore, KeptState, Loaded, LogPage,
    LoggedAppend, MemoryStore, NewState, Pruned, SessionId, SessionInfo, StateOutcome, StateRevision,
    StoreError, StoreErrorKind, rules,
};

/// What keeps the bytes of each session: a key-value store, an object store, a folder.
///
/// *For implementers*: nothing needs to be known of the bytes. `save` is one step: whoever reads finds the bytes of before or
/// those of after. Errors are `Unavailable` where a repetition may help, and hold none of the bytes.
#[async_trait]
pub trait ByteStore: Send + Sync + core::fmt::Debug {
    /// What is saved under the name of `session`; `None` if nothing is.
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
    /// These bytes in this version.
    #[must_use]
    pub fn new(bytes: Vec<u8>, version: impl Into<String>) -> Self {
        Self { bytes, version: version.into() }
    }
}

/// A history store of anything that gets and saves a session's bytes: compactions, late answers, undoing and
/// pruning included.
///
/// A session is one piece of bytes, which is read for every operation and written anew for each that changes something:
/// what it costs grows with the whole log. For sessions of thousands of messages take a store that reads only what is
/// visible.
///
/// *Concurrency*: where the bytes are saved only in place of those that were read, any number of processes may use them. An
/// operation that finds others written meanwhile begins again. Where they are saved blindly, this one value must be the
/// only writer; its own operations on one session wait for each other.
///
/// *Cancel safety*: as [`HistoryStore`] says: what is dropped was saved whole or not at all.
///
/// *Durability*: that of the [`ByteStore`].
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use epitome_std::history::{
///     AppendToken, ByteStore, History, Saved, SessionId, SimpleHistory, StoreError, StoreErrorKind,
/// };
/// use epitome_std::message::Message;
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

/// How often an operation begins again because somebody else has saved. Each time another one has got ahead: with fewer
/// than this many writers at once it comes through.
const ATTEMPTS_MAX: u32 = 1_000;

impl<B: ByteStore> SimpleHistory<B> {
    /// The history store whose bytes are kept in `bytes`.
    #[must_use]
    pub fn new(bytes: B) -> Self {
        Self { bytes, changing: core::array::from_fn(|_| Mutex::new(())) }
    }

    /// What keeps the bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &B {
        &self.bytes
    }

    async fn lock(&self, session: &SessionId) -> Option<MutexGuard<'_, ()>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(session);
        let stripe = usize::try_from(hash % STRIPES as u64).unwrap_or_default();
        match self.changing.get(stripe) {
            Some(stripe) => Some(stripe.lock().await),
            None => None,
        }
    }

    /// The session alone in a store, and the bytes that it was read from. An empty store if there is no such session.
    async fn open(&self, session: &SessionId) -> Result<(MemoryStore, Option<Saved>), StoreError> {
        let saved = self.bytes.get(session).await?;
        let store = match &saved {
            Some(saved) => MemoryStore::with_image(session, &saved.bytes)?,
            None => MemoryStore::new(),
        };
        Ok((store, saved))
    }

    /// Does `change` on the session and saves what has become of it, until nobody else has saved meanwhile.
    async fn change<T>(
        &self,
        session: &SessionId,
        change: impl Fn(&MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _changing = self.lock(session).await;
        for _ in 0..ATTEMPTS_MAX {
            let (store, was) = self.open(session).await?;
            let answer = change(&store)?;
            let bytes = store.image(session)?;
            if bytes.as_deref() == was.as_ref().map(|was| was.bytes.as_slice()) {
                return Ok(answer);
            }
            match self.bytes.save(session, was.as_ref(), bytes.as_deref()).await {
                Err(error) if error.kind() == StoreErrorKind::Conflict => {}
                saved => return saved.map(|()| answer),
            }
        }
        Err(overtaken())
    }

    async fn read<T>(
        &self,
        session: &SessionId,
        read: impl FnOnce(&MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (store, _) = self.open(session).await?;
        read(&store)
    }
}

fn overtaken() -> StoreError {
    let context = "save: others have saved the session each time it was tried; repeat it later";
    StoreError::new(StoreErrorKind::Unavailable, context)
}

/// What a store in memory answers: it does so at once.
fn now<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    answer.now_or_never().unwrap_or_else(|| {
        Err(StoreError::new(StoreErrorKind::Unavailable, "the store in memory has not answered at once"))
    })
}

#[async_trait]
impl<B: ByteStore> HistoryStore for SimpleHistory<B> {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        self.change(session, |store| now(store.append(session, append))).await
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.read(session, |store| now(store.load(session))).await
    }

    async fn tail(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.read(session, |store| now(store.tail(session))).await
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        self.read(session, |store| now(store.appended(session, token))).await
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.change(session, |store| now(store.commit(session, record))).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        self.read(session, |store| now(store.log(session, range, limit))).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        self.read(session, |store| now(store.records(session, after, limit))).await
    }

    async fn uncompact(&self, session: &SessionId, made: Revision) -> Result<Revision, StoreError> {
        self.change(session, |store| now(store.uncompact(session, made))).await
    }

    async fn prune(&self, session: &SessionId, through: Revision) -> Result<Pruned, StoreError> {
        self.change(session, |store| now(store.prune(session, through))).await
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        self.read(session, |store| now(store.prunes(session, after, limit))).await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        self.read(session, |store| now(store.appends(session, from, limit))).await
    }

    async fn append_with_state(
        &self,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        self.change(session, |store| now(store.append_with_state(session, append, state))).await
    }

    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        self.change(session, |store| now(store.save_state(session, state))).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        self.read(session, |store| now(store.state(session))).await
    }

    /// Reads each of the sessions whole.
    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let mut listed = Vec::new();
        for session in self.bytes.names(after, limit).await? {
            listed.extend(self.read(&session, |store| now(store.list(None, 1))).await?);
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
