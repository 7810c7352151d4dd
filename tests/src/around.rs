//! A store in memory with actions around its operations. An action that only one test needs is in the file of that
//! test.

use core::fmt::Debug;
use core::future::{Future, poll_fn};
use core::mem::replace;
use core::ops::Range;
use core::task::Poll;

use async_trait::async_trait;
use epitome_core::{Revision, Seq};
use epitome_std::history::{
    Append, AppendToken, Appended, Committed, CompactionRecord, HistoryStore, KeptState, Loaded, LogPage,
    MemoryStore, NewState, SessionId, SessionInfo, StateOutcome, StateRevision, StoreError,
};

/// Actions around the operations that a session depends on. By default there is only the operation of the store.
#[async_trait]
pub trait Around: Debug + Send + Sync {
    /// Around an append.
    async fn append(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        append: &Append<'_>,
    ) -> Result<Appended, StoreError> {
        store.append(session, append).await
    }

    /// Around an append with a state.
    async fn append_with_state(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        store.append_with_state(session, append, state).await
    }

    /// Around the storage of a state.
    async fn save_state(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        store.save_state(session, state).await
    }

    /// Around a load.
    async fn load(&self, store: &MemoryStore, session: &SessionId) -> Result<Loaded, StoreError> {
        store.load(session).await
    }

    /// Around a page of the log.
    async fn log(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        range: Range<Seq>,
        limit: u32,
    ) -> Result<LogPage, StoreError> {
        store.log(session, range, limit).await
    }

    /// Around a commit.
    async fn commit(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        record: &CompactionRecord,
    ) -> Result<Revision, StoreError> {
        store.commit(session, record).await
    }
}

/// A store in memory whose operations run inside the actions of `around`.
#[derive(Debug, Default)]
pub struct StoreWith<A> {
    /// The store that keeps the sessions.
    pub store: MemoryStore,
    /// The actions around its operations.
    pub around: A,
}

#[async_trait]
impl<A: Around> HistoryStore for StoreWith<A> {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        self.around.append(&self.store, session, append).await
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.around.load(&self.store, session).await
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        self.store.appended(session, token).await
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.around.commit(&self.store, session, record).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        self.around.log(&self.store, session, range, limit).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        self.store.records(session, after, limit).await
    }

    async fn append_with_state(
        &self,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        self.around.append_with_state(&self.store, session, append, state).await
    }

    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        self.around.save_state(&self.store, session, state).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        self.store.state(session).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        self.store.list(after, limit).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.store.delete(session).await
    }
}

/// Yields to other tasks before and after `work`.
async fn amid<T>(work: impl Future<Output = T>) -> T {
    pause().await;
    let done = work.await;
    pause().await;
    done
}

/// Yields to other tasks before and after each change of a session, and before each load. A test can drop the caller at
/// these points.
#[derive(Debug, Default)]
pub struct Pauses;

#[async_trait]
impl Around for Pauses {
    async fn append(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        append: &Append<'_>,
    ) -> Result<Appended, StoreError> {
        amid(store.append(session, append)).await
    }

    async fn append_with_state(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        amid(store.append_with_state(session, append, state)).await
    }

    async fn save_state(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        amid(store.save_state(session, state)).await
    }

    async fn load(&self, store: &MemoryStore, session: &SessionId) -> Result<Loaded, StoreError> {
        pause().await;
        store.load(session).await
    }

    async fn commit(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        record: &CompactionRecord,
    ) -> Result<Revision, StoreError> {
        amid(store.commit(session, record)).await
    }
}

/// Is pending once, then ready.
pub async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
