//! The history store over any medium.

use core::fmt;
use core::ops::Range;

use async_trait::async_trait;
use epitome_core::{Revision, Seq};

use super::{Op, Reply};
use crate::{
    Append, AppendToken, Appended, Committed, CompactionRecord, FoundMessage, HistoryStore, KeptState,
    Loaded, LogPage, LogSearch, LoggedAppend, NewState, Pruned, SessionId, SessionInfo, StateOutcome,
    StateRevision, StoreError, ext,
};

/// The part of the live projection to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    All,
    /// At least the last turn.
    LastTurn,
}

impl Loaded {
    /// The part of the projection that `extent` names.
    pub fn of(self, extent: Extent) -> Self {
        match extent {
            Extent::All => self,
            Extent::LastTurn => self.into_last_turn(),
        }
    }
}

/// A medium that keeps sessions: it reads facts, and runs the transactions of the kernel's operations.
///
/// Each type that implements this trait is a [`HistoryStore`]. The methods of [`HistoryStore`] document the results of
/// the methods with the same names here. Without a session, `load`, `log`, `records`, `prunes`, `appends` and `state`
/// return [`not_found`](super::not_found).
pub trait Tables: Send + Sync + fmt::Debug + Sized {
    /// Executes `op` in one step, with `run` on a [`Transaction`](super::Transaction).
    fn execute(
        &self,
        session: &SessionId,
        op: Op<'_>,
    ) -> impl Future<Output = Result<Reply, StoreError>> + Send;

    /// The live projection, or the part of it that `extent` names. A store may return more than the last turn.
    fn load(
        &self,
        session: &SessionId,
        extent: Extent,
    ) -> impl Future<Output = Result<Loaded, StoreError>> + Send;

    /// The answer to the append under `token`.
    fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> impl Future<Output = Result<Option<Appended>, StoreError>> + Send;

    /// A page of the log: at most `limit` messages of `range`. [`next_page`](super::next_page) returns the beginning of
    /// the next page.
    fn log(
        &self,
        session: &SessionId,
        range: Range<Seq>,
        limit: u32,
    ) -> impl Future<Output = Result<LogPage, StoreError>> + Send;

    /// At most `limit` records after the revision `after`, in order, with their summaries.
    fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Committed>, StoreError>> + Send;

    /// At most `limit` prunes after the revision `after`, in order.
    fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Pruned>, StoreError>> + Send;

    /// At most `limit` appends in order, beginning with the one that contains the message `from`.
    fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<LoggedAppend>, StoreError>> + Send;

    /// The saved state.
    fn state(
        &self,
        session: &SessionId,
    ) -> impl Future<Output = Result<Option<KeptState>, StoreError>> + Send;

    /// At most `limit` sessions after `after`, in the byte order of their ids.
    fn list(
        &self,
        after: Option<&SessionId>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<SessionInfo>, StoreError>> + Send;

    /// Deletes a session with all its data. Returns whether the session existed.
    fn delete(&self, session: &SessionId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Searches messages. The default reads every message in the scope; a medium with an index of words overrides it.
    fn search(
        &self,
        search: &LogSearch,
    ) -> impl Future<Output = Result<Vec<FoundMessage>, StoreError>> + Send {
        ext::scan(self, search)
    }

    /// Rebuilds the index of words, or removes it if searches write it. The default does nothing; a medium with an index
    /// of words overrides it.
    fn reindex(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        core::future::ready(Ok(()))
    }

    /// Returns the space of deleted texts to the system. The default does nothing; a medium that keeps this space
    /// overrides it.
    fn vacuum(&self) -> impl Future<Output = Result<bool, StoreError>> + Send {
        core::future::ready(Ok(true))
    }
}

#[async_trait]
impl<T: Tables> HistoryStore for T {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        let reply = self.execute(session, Op::Append(*append, None)).await?;
        reply.appended().map(|(appended, _)| appended)
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        Tables::load(self, session, Extent::All).await
    }

    async fn tail(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        Ok(Tables::load(self, session, Extent::LastTurn).await?.of(Extent::LastTurn))
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        Tables::appended(self, session, token).await
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.execute(session, Op::commit(record)?).await?.made()
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        Tables::log(self, session, range, limit).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        Tables::records(self, session, after, limit).await
    }

    async fn uncompact(&self, session: &SessionId, made: Revision) -> Result<Revision, StoreError> {
        self.execute(session, Op::Uncompact(made)).await?.made()
    }

    async fn prune(&self, session: &SessionId, through: Revision) -> Result<Pruned, StoreError> {
        self.execute(session, Op::Prune(through)).await?.pruned()
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        Tables::prunes(self, session, after, limit).await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        Tables::appends(self, session, from, limit).await
    }

    async fn append_with_state(
        &self,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        let (appended, outcome) =
            self.execute(session, Op::Append(*append, Some(*state))).await?.appended()?;
        Ok((appended, outcome.unwrap_or(StateOutcome::Unsupported)))
    }

    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        self.execute(session, Op::SaveState(*state)).await?.saved()
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        Tables::state(self, session).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        Tables::list(self, after, limit).await
    }

    async fn search(&self, search: &LogSearch) -> Result<Vec<FoundMessage>, StoreError> {
        Tables::search(self, search).await
    }

    async fn reindex(&self) -> Result<(), StoreError> {
        Tables::reindex(self).await
    }

    async fn vacuum(&self) -> Result<bool, StoreError> {
        Tables::vacuum(self).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        Tables::delete(self, session).await
    }
}
