//! Operations for every store, written once over the [`HistoryStore`] contract.

mod events;
mod expand;
mod export;
mod fork;
mod hide;
mod search;
mod verify;

use std::io::{BufRead, Write};

use async_trait::async_trait;
use epitome_core::{Revision, Seq};

pub use self::export::{Exported, check_export};
use self::hide::{Hide, hide};
pub use self::hide::{Keep, Retained};
pub(crate) use self::hide::{before, taken_back};
pub use self::search::scan;
pub(crate) use self::search::{NEAR, SearchedSessions, unless_gone};
use super::{Committed, HistoryStore, LogPage, SessionId, SessionInfo, StoreError, rules};

/// Number of messages, records or appends per read.
pub(crate) const PAGE: u32 = 256;

/// A page of the sessions after `after`.
///
/// # Errors
/// The errors of the store. `Corrupt` if the page does not begin after `after`, because such a list would never end.
async fn sessions<S: HistoryStore + ?Sized>(
    store: &S,
    after: Option<&SessionId>,
    limit: u32,
) -> Result<Vec<SessionInfo>, StoreError> {
    let page = store.list(after, limit).await?;
    match page.first() {
        Some(first) if after.is_some_and(|after| first.id <= *after) => {
            Err(rules::corrupt("list: a page begins with a session of the page before"))
        }
        _ => Ok(page),
    }
}

/// Operations on every [`HistoryStore`].
///
/// ```
/// use epitome_core::{Basis, Seq, Tokens, Turn};
/// use epitome_history::{
///     Append, AppendToken, Entry, HistoryStore, HistoryStoreExt, MemoryStore, SessionId, TokenCount,
/// };
/// use epitome_message::Message;
///
/// # futures::executor::block_on(async {
/// let (store, other) = (MemoryStore::new(), MemoryStore::new());
/// let session = SessionId::new("demo");
/// let count = TokenCount::new(Tokens(3), Basis::Estimated, "default".into());
/// let entry = Entry::new(Message::user("Hello"), Seq(0), Turn(1), count);
/// store.append(&session, &Append::new(&AppendToken::new("first"), Seq(0), &[entry])).await?;
///
/// let mut file = Vec::new();
/// store.export(&session, &mut file).await?;
/// other.import(&session, &mut &file[..]).await?;
/// assert_eq!(other.load(&session).await?, store.load(&session).await?);
/// # Ok::<(), epitome_history::StoreError>(())
/// # }).unwrap();
/// ```
///
/// Each operation calls the store methods that its documentation names. If the store lacks one of them, the operation
/// fails with `Unsupported`. All operations read page by page: they hold one page and the largest append in memory,
/// unless their documentation states otherwise.
///
/// # Cancel safety
/// Operations that only read can be dropped. `clear`, `rewind` and `retain` consist of steps, and the contract makes
/// each step atomic. A `copy` or `import` that is dropped, or that fails in a store, has done its first steps; the same
/// call again does the remaining steps. A refused `copy` or `import` deletes the session that it began. A failed `fork`
/// deletes the new session. A dropped `fork` leaves the beginning of the new session; delete it before you repeat the
/// call.
#[async_trait]
pub trait HistoryStoreExt: HistoryStore {
    /// Reads the messages that the record of revision `made` hid or shortened, in their appended form: at most `limit`
    /// messages, beginning with the number `from`. The result includes late answers that were hidden with their group.
    /// An undone record hides and shortens nothing.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Invalid` if no record made `made`.
    async fn expand(
        &self,
        session: &SessionId,
        made: Revision,
        from: Seq,
        limit: u32,
    ) -> Result<LogPage, StoreError> {
        expand::expand(self, session, made, from, limit).await
    }

    /// The latest record that is not undone: [`HistoryStore::uncompact`] can undo this record. Reads all records, page
    /// by page.
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn latest_compaction(&self, session: &SessionId) -> Result<Option<Committed>, StoreError> {
        let (mut after, mut latest) = (None, None);
        loop {
            let page = self.records(session, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(latest) };
            after = Some(last.revision);
            latest = page.into_iter().rfind(|committed| committed.undone_by.is_none()).or(latest);
        }
    }

    /// Hides all visible messages, in one commit. The head and the log do not change; prune the session to delete the
    /// texts. Returns the new revision, or the current revision if no message is visible.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::commit`]; `Conflict` if other writers change the session again and again.
    async fn clear(&self, session: &SessionId) -> Result<Revision, StoreError> {
        hide(self, session, Hide::All).await.map(|(made, _)| made)
    }

    /// Takes back the message `at` and all later messages, in one commit: hides all groups that begin at `at` or later,
    /// with instructions and pins. A late answer stays with its call. Nothing is deleted: [`HistoryStore::uncompact`]
    /// shows the messages again, before the messages that were appended since. The head, the log and a saved state do
    /// not change. Returns the new revision, or the current revision if none of these messages is visible.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use epitome_core::{ClassEstimator, Seq};
    /// # use epitome_history::{AppendToken, History, HistoryStore, MemoryStore, SessionId};
    /// # use epitome_message::Message;
    /// use epitome_history::HistoryStoreExt;
    ///
    /// # futures::executor::block_on(async {
    /// # let (store, session) = (Arc::new(MemoryStore::new()), SessionId::new("demo"));
    /// # let mut history = History::open(store.clone(), session.clone(), Arc::new(ClassEstimator::new())).await?;
    /// # for said in [Message::user("Red?"), Message::assistant("Yes."), Message::user("Blue?")] {
    /// #     history.append(&AppendToken::new(format!("{}", history.head())), vec![said]).await?;
    /// # }
    /// // The user asks the second question in another way.
    /// let made = store.rewind(&session, Seq(2)).await?;
    /// assert_eq!(store.load(&session).await?.live.len(), 2);
    /// store.uncompact(&session, made).await?;
    /// assert_eq!(store.load(&session).await?.live.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `Invalid` if there is no message `at`, if it is inside a group, or if a summary covers messages before and after
    /// it. The error names a possible message. Otherwise the errors of [`HistoryStoreExt::clear`].
    async fn rewind(&self, session: &SessionId, at: Seq) -> Result<Revision, StoreError> {
        hide(self, session, Hide::From(at)).await.map(|(made, _)| made)
    }

    /// Hides the oldest groups down to the limit `keep`, and prunes the hidden messages. Only whole groups are hidden.
    /// Groups with open calls, the last user message, pinned messages and the caller's system messages stay.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::commit`] and [`HistoryStore::prune`]; `Conflict` if other writers change the
    /// session again and again. A limit by age has also the errors of [`HistoryStore::appends`].
    async fn retain(&self, session: &SessionId, keep: Keep) -> Result<Retained, StoreError> {
        let (made, hidden) = hide(self, session, Hide::AllBut(keep)).await?;
        Ok(Retained { hidden, pruned: self.prune(session, made).await? })
    }

    /// Makes the session `new` from the messages of `session` before `at`. It takes over the compactions that are not
    /// undone and that were made when the session had no messages from `at` on. A call whose result comes only after other
    /// messages, at `at` or later, is open in the fork, as it was then. Afterwards the two sessions are independent.
    ///
    /// The fork takes many steps. A failed fork deletes the new session. A dropped or killed call leaves the beginning
    /// of `new`, which [`HistoryStore::delete`] removes.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Invalid` if `at` is 0, beyond the head, or a message that continues a
    /// group, such as a result; `Conflict` if there is already a session `new`; `Pruned` if a pruned message would
    /// become visible. `Unsupported` as [`HistoryStore::appends`].
    async fn fork(&self, session: &SessionId, at: Seq, new: &SessionId) -> Result<(), StoreError> {
        fork::fork(self, session, at, new).await
    }

    /// Repeats all operations of the session in memory and compares the results: the log, the visible messages with
    /// their groups and sizes, the open calls, and the sizes in the list of sessions. Holds the whole session in
    /// memory.
    ///
    /// # Errors
    /// `Corrupt` names the first difference. `Unsupported` if the store cannot list its prunes and appends. `NotFound`
    /// if there is no such session; `Conflict` if the session was changed meanwhile.
    async fn verify(&self, session: &SessionId) -> Result<Exported, StoreError> {
        verify::verify(self, session).await
    }

    /// Writes the session to `out`, with all its data: messages, compactions, undone compactions, prunes, tokens and
    /// times. `docs/export.md` documents the format. Writes on the thread of the executor.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Conflict` if the session was pruned meanwhile; `Unsupported` if the
    /// store cannot list its prunes and appends; `Unavailable` if a write to `out` fails.
    async fn export(
        &self,
        session: &SessionId,
        out: &mut (dyn Write + Send),
    ) -> Result<Exported, StoreError> {
        export::export(self, session, out).await
    }

    /// Makes the session `session` from the output of [`HistoryStoreExt::export`]. If an interrupted import has left
    /// the beginning of the session, the rest is added. Some damage is found only at the end of the file: check a file
    /// with [`check_export`] first.
    ///
    /// # Errors
    /// `Invalid` names the line that is missing, is not a line of an export, or contradicts the lines before it. A
    /// session that this call began is then deleted. `Conflict` if there is another session of that name.
    async fn import(
        &self,
        session: &SessionId,
        input: &mut (dyn BufRead + Send),
    ) -> Result<Exported, StoreError> {
        export::import(self, session, input).await
    }

    /// Copies `session` to the session `to` of the store `target`, like an export and an import.
    ///
    /// # Errors
    /// The errors of [`HistoryStoreExt::export`] and [`HistoryStoreExt::import`].
    async fn copy(
        &self,
        session: &SessionId,
        target: &dyn HistoryStore,
        to: &SessionId,
    ) -> Result<Exported, StoreError> {
        events::copy("copy", self, session, target, to).await
    }
}

impl<T: HistoryStore + ?Sized> HistoryStoreExt for T {}
