//! The storage contract.

mod search;
mod state;
mod values;

use core::fmt;
use core::ops::Range;

use async_trait::async_trait;
#[cfg(doc)]
use epitome_core::attribution::Authority;
use epitome_core::{Revision, Seq};

pub use self::search::{FoundMessage, LogSearch, SearchScope};
pub(crate) use self::search::{calls, results};
pub use self::state::OwnedState;
pub use self::state::{KeptState, NewState, StateOutcome, StateRevision};
pub use self::values::{
    Append, AppendPosition, AppendToken, Appended, Entry, Live, Loaded, LogPage, Logged, LoggedAppend,
    Pruned, SessionId, SessionInfo, TokenCount,
};
#[cfg(doc)]
use super::PartStandIn;
use super::{Committed, CompactionRecord, StoreError, StoreErrorKind, ext, rules};
#[cfg(doc)]
use epitome_message::Message;

/// Keeps sessions: for each an append-only log of messages, and the compactions that hide parts of it.
///
/// Two counters describe a session. The *head* is the next sequence number; only appends change it. The *revision*
/// counts the changes of messages that are visible or can become visible again: commits, uncompacts, prunes, and
/// appends of late answers (see [`Entry::late`]). A session may also have a *state*: a text that replaces the one
/// before, with its own counter ([`StateRevision`]).
///
/// *For callers*: group and count a message before you append it; a stored message is never grouped or counted again.
/// After `Conflict`, load and decide again. After `Unavailable`, retry with the same token or record: if the first
/// attempt succeeded, the answer is the same. A session remembers its tokens and records as long as it exists. A
/// repeated deletion cannot be recognized: it reports, like a deletion of an unknown session, that there is none.
///
/// *For implementers*: each method is atomic. A failed method has changed nothing. Errors never contain message text. A
/// store that can only append and load may omit the methods that have a default; most defaults return `Unsupported`. A
/// store that keeps states also overrides [`HistoryStore::append_with_state`], because its default is two steps.
///
/// *Concurrency*: any number of handles, threads and processes may use one store. Of two appends at one head, or two
/// commits on one revision, exactly one succeeds and the other gets `Conflict`. An append never fails because of a
/// commit. A commit gets `Conflict` because of an append in two cases: the append adds to a group that the commit
/// hides, or it has a late answer (see [`Entry::late`]), even one to a group that the commit keeps. The plan of the
/// commit has not seen these messages.
///
/// *Cancel safety*: a dropped future leaves the whole old or the whole new state, perhaps after a delay. Repeat the
/// call with the same token or record to get the new state, once. A repeated `delete` also leaves no session, but does
/// not report which of the two deleted it.
///
/// *Durability*: the documentation of each implementation names the failures that an acknowledged change survives.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_core::ClassEstimator;
/// use epitome_history::{AppendToken, History, HistoryStore, MemoryStore, SessionId};
/// use epitome_message::Message;
///
/// futures::executor::block_on(async {
/// let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
/// // A history groups and counts the messages, and calls the methods of the store.
/// let mut history = History::open(Arc::clone(&store), "alice", Arc::new(ClassEstimator::new())).await?;
/// history.append(&AppendToken::new("turn-1"), vec![Message::user("Hello")]).await?;
/// assert_eq!(store.load(&SessionId::new("alice")).await?.head.0, 1);
/// Ok::<(), Box<dyn std::error::Error>>(())
/// }).unwrap();
/// ```
#[async_trait]
pub trait HistoryStore: Send + Sync + fmt::Debug {
    /// Appends messages at the session's head. Creates the session if it is new; its head is then 0.
    ///
    /// The token is checked first. If this session knows the token, nothing is appended, and the answer is that of the
    /// first append, independent of the present head. The messages must equal those of the first append. Their groups
    /// may differ, because a retry may have grouped them again. After one of the messages was pruned, they are not
    /// compared any more.
    ///
    /// With [`AppendPosition::End`] the entries are appended after all messages that were appended meanwhile, in the
    /// groups that they have there, in one step. [`Appended::first`] is their position.
    ///
    /// The session keeps the later of `append.time` and the time of the append before: a clock that was set back does
    /// not make an append older than the one before.
    ///
    /// # Errors
    /// `Conflict` if `append.head` is not the session's head, and the append is not at the end. `Invalid` if the token
    /// was used for other messages, if an anchor is after its message or is not the first message of a group, if a
    /// message of a tool or user answers more than one call (a reader splits it), or if there are no entries.
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError>;

    /// Loads the live projection: the visible messages and summaries, ordered by key. Its cost grows with the visible
    /// messages, not with the length of the log.
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError>;

    /// Loads only the last turn of the live projection: enough to group appended messages, unless they answer a call of
    /// an earlier turn. A program that only stores messages needs no more. The cost should grow with that turn only;
    /// this default loads everything.
    ///
    /// The last turn is that of the last visible message that is not a late answer. Its content is that of
    /// [`Loaded::into_last_turn`].
    ///
    /// # Errors
    /// The errors of [`HistoryStore::load`].
    async fn tail(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        Ok(self.load(session).await?.into_last_turn())
    }

    /// The answer to the append under `token`; `None` if there was none, or if there is no such session.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, as in every operation.
    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError>;

    /// Commits `record`: hides its messages, shows its summaries and shortens its edited parts. The session must still
    /// be at `record.parent`.
    ///
    /// A range hides every visible message in it. It hides a visible summary if the ranges contain everything that the
    /// summary covers. A range may contain messages that are hidden already, and orphans. A new summary has the lowest
    /// number that its attribution names as a source. It is a group of its own, in the turn of the message with that
    /// number.
    ///
    /// *Authority* never rises. A new summary is a message of the model, made by a compaction and not pinned. Each
    /// number that it covers must belong to a visible message, or to the coverage of a visible summary, and the same
    /// record must hide this message or summary.
    /// Its authority is at most [`Authority::of_summary`] of them. An instruction of the caller, or a pinned message,
    /// is neither hidden nor shortened. Only the record of a rewind or a clear hides such messages too: it hides every
    /// group from its first hidden message up to its head, and it neither shortens nor replaces any message.
    ///
    /// `load` alone shows a message with edited parts in the form that [`PartStandIn::apply`] makes of the appended
    /// one. Of two stand-ins for one part, the one of the highest revision applies.
    ///
    /// Returns the new revision. If the session already has this record, the answer is the revision of the record,
    /// independent of later changes: a lost acknowledgement causes no conflict.
    ///
    /// # Errors
    /// `Conflict` if the revision has changed, or if a group that the record hides has a new message since the record
    /// was made. `Invalid` in these cases: a range hides nothing visible; a range contains only a part of a group or of
    /// a visible summary's coverage; the record's head is beyond the session's; a new summary covers messages that are
    /// not hidden, or has too much authority; the record hides or shortens an instruction of the caller or a pin; an
    /// unanswered call is not in a hidden group; an edit names a message that will not be visible or a part that does
    /// not exist or cannot be shortened, or does not make the message smaller. `NotFound` if there is no such session.
    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError>;

    /// Reads at most `limit` messages of the log from `range`, with hidden ones. A range beyond the head is not an
    /// error, and has no messages there. A pruned message keeps its position, without its text: see
    /// [`Logged::pruned_by`].
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError>;

    /// Reads at most `limit` committed records with revisions after `after`, oldest first. An undone record is
    /// included, and marked as undone. A record keeps the positions and the sizes of pruned messages: a pruned summary
    /// is [pruned](Message::is_pruned), and the texts of a pruned message's stand-ins are empty.
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError>;

    /// Undoes the record of revision `made`, which must be the latest that is not undone. Returns the new revision.
    ///
    /// All messages that the record hid are visible again: messages, late answers that were hidden with their group,
    /// and the summaries that it replaced. Its own summaries and stand-ins leave the projection; a message that it
    /// shortened gets its earlier stand-ins back. The calls of the groups that become visible leave the hidden calls.
    ///
    /// A repetition returns the revision of the first uncompact, independent of later changes.
    ///
    /// # Errors
    /// `Invalid` if `made` is not the revision of a record; `Conflict` if a later record is not undone: undo that one
    /// first. `Pruned` if a text that the record hid was pruned. `NotFound` if there is no such session. `Unsupported`
    /// if the store has no uncompact.
    ///
    /// # Cancel safety
    /// As all operations: the whole old or the whole new state. A repetition of the call leads to the new state.
    async fn uncompact(&self, session: &SessionId, made: Revision) -> Result<Revision, StoreError> {
        let _ = (session, made);
        Err(rules::unsupported("uncompact"))
    }

    /// Deletes for good the texts of the messages and summaries that are hidden and were hidden at the revision
    /// `through` or before. Visible messages are not changed, and the original texts of shortened messages stay.
    ///
    /// A pruned message keeps its position: its number, group, turn and sizes, its role and attribution, and the id of
    /// the call or request that it answers, as in [`Message::into_pruned`]. A late answer still finds its group. The
    /// stand-ins of a pruned message lose their texts, in the records too.
    ///
    /// The revision changes if a text was deleted. If there is nothing left to delete, nothing changes. The answer is
    /// then that of the latest prune through the same revision, or a prune of nothing.
    ///
    /// # Errors
    /// `Invalid` if the session has not reached the revision `through`. `NotFound` if there is no such session.
    /// `Unsupported` if the store can delete only whole sessions.
    ///
    /// # Cancel safety
    /// As all operations: the whole old or the whole new state. A repetition of the call leads to the new state.
    async fn prune(&self, session: &SessionId, through: Revision) -> Result<Pruned, StoreError> {
        let _ = (session, through);
        Err(rules::unsupported("prune"))
    }

    /// Reads at most `limit` prunes with revisions after `after`, oldest first. Prunes of nothing are not listed.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Unsupported` as [`HistoryStore::prune`].
    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        let _ = (session, after, limit);
        Err(rules::unsupported("prunes"))
    }

    /// Reads at most `limit` appends with their tokens and times, oldest first, beginning with the append that contains
    /// the message `from`. Each append has its original answer.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Unsupported` if the store cannot list its tokens.
    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        let _ = (session, from, limit);
        Err(rules::unsupported("appends"))
    }

    /// Appends as [`HistoryStore::append`] does and saves `state`, in one step: no reader sees one without the other,
    /// also after a crash. The messages are appended even if the state is stale. A stale state is not saved, and the
    /// outcome reports it.
    ///
    /// A repetition appends nothing, and checks the state again. The same text, made from the same state, is also saved
    /// once only. The answer is the original one as long as no other state was saved.
    ///
    /// This default appends and then saves the state, in two steps. After a crash between them, the log has messages
    /// that the state does not include; [`KeptState::head`] shows it.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::append`]; then neither is stored. With the default also `Unavailable` or `Corrupt`
    /// after the append: repeat the call.
    async fn append_with_state(
        &self,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        let appended = self.append(session, append).await?;
        let outcome = match self.save_state(session, state).await {
            Ok(revision) => StateOutcome::Kept(revision),
            Err(error) => match error.kind() {
                StoreErrorKind::Conflict => StateOutcome::Stale,
                StoreErrorKind::Unsupported => StateOutcome::Unsupported,
                _ => return Err(error),
            },
        };
        Ok((appended, outcome))
    }

    /// Saves `state` in the place of the state that it was made from. Returns its revision. Head and revision of the
    /// session do not change.
    ///
    /// If the current state has the same text and was made from the same state, the answer is its revision: a lost
    /// acknowledgement causes no conflict.
    ///
    /// # Errors
    /// `Conflict` if another state was saved since; `NotFound` if there is no such session, because the first append
    /// creates it. `Unsupported` if the store keeps no states.
    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        let _ = (session, state);
        Err(rules::unsupported("save_state"))
    }

    /// The last saved state; `None` if there is none. `load` does not read it.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Unsupported` as [`HistoryStore::save_state`].
    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        let _ = session;
        Err(rules::unsupported("state"))
    }

    /// Lists at most `limit` sessions after `after`, in the order of their ids. A damaged session is listed with its
    /// [`damage`](SessionInfo::damage), and does not affect the others.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, as in every operation.
    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError>;

    /// Finds the messages that are nearest to the words of `search`, the nearest first, by BM25 with the adjacent
    /// messages. A result has at least one of the words; it need not have all of them. A search text without letters
    /// and digits finds nothing, and a session that does not exist has no messages. A search over several sessions
    /// skips those that [`HistoryStore::list`] reports as damaged.
    ///
    /// If no more messages match than the limit allows, every store returns the same messages. If more match, a store with an index
    /// can choose and order them differently. Of equally near messages in one session the newest comes first; the order between
    /// sessions is not defined.
    ///
    /// This default reads every message in the scope of the search. A store with an index of words overrides it. In
    /// memory, in JSONL files and in Redis, a search writes the index for the messages that no search has read before.
    ///
    /// # Errors
    /// `Unsupported` if the search has a time and the store cannot list its appends, or if the scope is not one session and the store
    /// cannot list its sessions. `Unavailable` or `Corrupt`, as any operation.
    ///
    /// # Cancel safety
    /// It changes no session.
    async fn search(&self, search: &LogSearch) -> Result<Vec<FoundMessage>, StoreError> {
        ext::scan(self, search).await
    }

    /// Rebuilds the index of words. Where the searches write the index, this removes it. Call it if [`HistoryStore::search`] fails with
    /// `Corrupt`. If it fails with `Corrupt` as well, a stored message is damaged: restore a backup. A store without an index does nothing.
    ///
    /// # Errors
    /// `Unavailable`, as any operation, also for a store that is open for reading only; `Corrupt` if a message cannot be read.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the old index or the new one.
    async fn reindex(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Gives the disk space of deleted texts back to the system. Returns whether that is done; `false` if the space becomes free later,
    /// when other programs have read to the end. A store that keeps no such space does nothing, and returns `true`. Meanwhile the store
    /// needs room for a second copy, and other operations wait.
    ///
    /// # Errors
    /// `Unavailable`, as any operation, also for a store that is open for reading only.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the old file or the new one.
    async fn vacuum(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Deletes a session with all its data. Returns whether the session existed.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, as any operation.
    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError>;
}
