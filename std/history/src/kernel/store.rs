//! A history store of any medium.

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

/// The part of the live projection that is read.
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

/// A medium that keeps sessions: the facts that it reads, and the transaction of an operation of the kernel.
///
/// Each type that implements it is a [`HistoryStore`]; what a method returns is said there, at the method of the same name. Where there is no
/// session, `load`, `log`, `records`, `prunes`, `appends` and `state` return [`not_found`](super::not_found).
pub trait Tables: Send + Sync + fmt::Debug + Sized {
    /// Runs `op` with `run` on a [`Transaction`](super::Transaction), as one step.
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

    /// The answer that was given under `token`.
    fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> impl Future<Output = Result<Option<Appended>, StoreError>> + Send;

    /// A page of the log: at most `limit` messages of `range`. [`next_page`](super::next_page) says where the next page begins.
    fn log(
        &self,
        session: &SessionId,
        range: Range<Seq>,
        limit: u32,
    ) -> impl Future<Output = Result<LogPage, StoreError>> + Send;

    /// At most `limit` records behind the revision `after`, in order. They have their summaries.
    fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Committed>, StoreError>> + Send;

    /// At most `limit` prunes behind the revision `after`, in order.
    fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Pruned>, StoreError>> + Send;

    /// At most `limit` appends, from the one that holds the message `from`, in order.
    fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<LoggedAppend>, StoreError>> + Send;

    /// The state that is kept.
    fn state(
        &self,
        session: &SessionId,
    ) -> impl Future<Output = Result<Option<KeptState>, StoreError>> + Send;

    /// At most `limit` sessions behind `after`, in the order of the bytes of their names.
    fn list(
        &self,
        after: Option<&SessionId>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<SessionInfo>, StoreError>> + Send;

    /// Deletes a session and all that it has. Returns whether there was one.
    fn delete(&self, session: &SessionId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Reads every message that is searched, unless the medium has an index of words.
    fn search(
        &self,
        search: &LogSearch,
    ) -> impl Future<Output = Result<Vec<FoundMessage>, StoreError>> + Send {
        ext::scan(self, search)
    }

    /// Does nothing, unless the medium has an index of words.
    fn reindex(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        core::future::ready(Ok(()))
    }

    /// Does nothing, unless the medium keeps the space of deleted texts.
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
