//! Operations of any store: written once, over the contract.

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

/// Number of messages, records or appends that are read at once.
pub(crate) const PAGE: u32 = 256;

/// A page of the sessions behind `after`.
///
/// # Errors
/// Those of the store; `Corrupt` if the page does not lie behind `after`: it would come again without end.
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

/// Operations over every [`HistoryStore`].
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
/// Each needs of a store what its own documentation names; one that lacks it gives `Unsupported`. All read page by page: what they
/// hold in memory is a page and the largest append, unless they say otherwise.
///
/// # Cancel safety
/// What only reads can be dropped. `clear`, `rewind` and `retain` are made of steps each of which is whole, as the contract has it. A
/// `copy` or `import` that is dropped, or stopped by a failure of a store, has done the first of its steps; the same call again
/// does the others. One that is refused takes back what it has begun. A `fork`
/// that fails takes the new session back; one that is dropped leaves its beginning, which is to be deleted before the same
/// call is made again.
#[async_trait]
pub trait HistoryStoreExt: HistoryStore {
    /// Reads what the record that made `made` has hidden or shortened, as it was appended: at most `limit` messages from
    /// the number `from` on. Late answers that were hidden with their group are among them. A record that was undone hides
    /// and shortens nothing.
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

    /// The latest record that is not undone: the one that [`HistoryStore::uncompact`] may undo. Reads all records, page by page.
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

    /// Hides everything that is visible, in one commit. The head stays where it is, and the log too; prune it if it
    /// is to go. Returns the revision: the one that was there if nothing is visible.
    ///
    /// # Errors
    /// As [`HistoryStore::commit`]; `Conflict` if others change the session again and again.
    async fn clear(&self, session: &SessionId) -> Result<Revision, StoreError> {
        hide(self, session, Hide::All).await.map(|(made, _)| made)
    }

    /// Takes back the message `at` and all that came after it, in one commit: all groups that begin there or later are hidden, with
    /// instructions and pins. An answer that came later stays with its call. Nothing is deleted: [`HistoryStore::uncompact`] shows all of
    /// it again, before the messages since then. The place of the next message and the log do not change, and a kept state is not touched.
    /// Returns the revision: the one that was there if none of it is visible.
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
    /// `Invalid` if there is no message `at`, if it stands inside a group, or if a summary stands for messages before it and others behind
    /// it: the text names a possible place. Otherwise as [`HistoryStoreExt::clear`].
    async fn rewind(&self, session: &SessionId, at: Seq) -> Result<Revision, StoreError> {
        hide(self, session, Hide::From(at)).await.map(|(made, _)| made)
    }

    /// Hides the oldest groups, so that no more is visible than `keep` says, and prunes what is hidden. Only whole
    /// groups go, and not those that hold open calls, the last user message, pinned messages or the caller's system messages.
    ///
    /// # Errors
    /// As [`HistoryStore::commit`] and [`HistoryStore::prune`]; `Conflict` if others change the session again and again.
    /// By age also as [`HistoryStore::appends`].
    async fn retain(&self, session: &SessionId, keep: Keep) -> Result<Retained, StoreError> {
        let (made, hidden) = hide(self, session, Hide::AllBut(keep)).await?;
        Ok(Retained { hidden, pruned: self.prune(session, made).await? })
    }

    /// Makes the session `new` of the first messages of `session`, up to before `at`, with the compactions that hold and
    /// were made from no more than these. The two have nothing in common from then on.
    ///
    /// It takes many steps. A failed one takes back what it has made; a call that is dropped on the way, or killed, leaves a beginning of
    /// `new`, which [`HistoryStore::delete`] removes.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Invalid` if `at` is 0 or beyond the head; `Conflict` if there is a session
    /// `new`; `Pruned` if a message that would be visible was pruned. `Unsupported` as [`HistoryStore::appends`].
    async fn fork(&self, session: &SessionId, at: Seq, new: &SessionId) -> Result<(), StoreError> {
        fork::fork(self, session, at, new).await
    }

    /// Does everything that was ever done in the session again, in memory, and compares: the log, what is visible and how
    /// it is grouped and counted, the open calls, the sizes in the list. Holds the whole session in memory.
    ///
    /// # Errors
    /// `Corrupt` says what differs. `Unsupported` if the store cannot list its prunes and appends. `NotFound` if there is no such session;
    /// `Conflict` if it was changed meanwhile.
    async fn verify(&self, session: &SessionId) -> Result<Exported, StoreError> {
        verify::verify(self, session).await
    }

    /// Writes the session to `out`, with everything that belongs to it: messages, compactions, what was undone and pruned,
    /// tokens and times. `docs/export.md` has the form. Writes on the executor's thread.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Conflict` if it was pruned meanwhile; `Unsupported` if the store cannot list its prunes and
    /// appends; `Unavailable` if `out` fails.
    async fn export(
        &self,
        session: &SessionId,
        out: &mut (dyn Write + Send),
    ) -> Result<Exported, StoreError> {
        export::export(self, session, out).await
    }

    /// Makes the session `session` of the output of [`HistoryStoreExt::export`]. If it has a beginning of that already, because an import
    /// was interrupted, the rest is added. Damage may be noticed only at the end of the file: look at a file with [`check_export`] first.
    ///
    /// # Errors
    /// `Invalid` names the line that is no line of an export, or that is missing, or whose claims are not believed: then nothing is left of
    /// a session that this call has begun. `Conflict` if there is another session of that name.
    async fn import(
        &self,
        session: &SessionId,
        input: &mut (dyn BufRead + Send),
    ) -> Result<Exported, StoreError> {
        export::import(self, session, input).await
    }

    /// Makes the session `to` of the store `target` of `session`, as an export and an import would.
    ///
    /// # Errors
    /// As [`HistoryStoreExt::export`] and [`HistoryStoreExt::import`].
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
