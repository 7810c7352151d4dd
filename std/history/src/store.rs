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
/// Two counters describe a session. The *head* is the next sequence number and is moved only by appends. The *revision* counts changes of
/// the messages that are visible or can become so again: commits and their undoing, prunes, and appends of late answers (see
/// [`Entry::late`]). Beside its log a session may have a *state*: a text that replaces the one before, with a counter of its own
/// ([`StateRevision`]).
///
/// *For callers*: group and count a message before it is appended; a stored message is never grouped or counted again. After `Conflict`,
/// load and decide anew. After `Unavailable`, repeat with the same token or record: if the first attempt went through after all, the answer
/// is the same as it was then. Tokens and records are remembered for as long as the session is. A deletion cannot be told from its
/// repetition: that a session is not there is the answer to both.
///
/// *For implementers*: each method is one atomic step. A failed one has changed nothing. Errors never hold message text. The methods that
/// have a default answer may be left out by a store that cannot do more than append and load; the default is `Unsupported`. A store that
/// keeps states overrides [`HistoryStore::append_with_state`] too: its default is two steps.
///
/// *Concurrency*: any number of handles, threads and processes may use one store. Of two appends at one head, or two
/// commits on one revision, exactly one succeeds and the other gets `Conflict`. An append never fails because of a
/// commit. A commit gets `Conflict` because of an append if that adds to a group that the commit hides, or if it holds a
/// late answer (see [`Entry::late`]), also one to what the commit keeps: the plan behind it has not seen that.
///
/// *Cancel safety*: dropping a returned future leaves the whole old or the whole new state, perhaps only later; repeating
/// the call with the same token or record makes it the new one, once. A repeated `delete` leaves no session either, but
/// does not tell which of the two deleted it.
///
/// *Durability*: an acknowledged change survives as each implementation's documentation says.
#[async_trait]
pub trait HistoryStore: Send + Sync + fmt::Debug {
    /// Appends messages at the session's head, creating the session if it is new (its head is then 0).
    ///
    /// The token is looked at first: if this session has seen it, nothing is appended and the answer is the one given
    /// then, wherever the head is now. Only the messages must be those of then: their groups are the caller's reading of
    /// where they stand, which a retry may have taken anew. Once one of them has been pruned they are not compared any more.
    ///
    /// At [`AppendPosition::End`] the entries go behind whatever was appended meanwhile, in the groups that they have there, as
    /// one step. [`Appended::first`] tells where they are.
    ///
    /// Of `append.time` the session keeps no less than it had before: a clock that was set back does not make a later
    /// append the older one.
    ///
    /// # Errors
    /// `Conflict` if `append.head` is not the session's, and the append is not one at its end; `Invalid` if the token was used for other messages, if an anchor
    /// lies after its message or is not the first message of a group, if a tool's or user's message answers more than
    /// one call (a reader splits it), or if there are no entries.
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError>;

    /// Loads the live projection: the visible messages and summaries, in order of their keys. Its cost is that of what
    /// is visible, however long the log is.
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError>;

    /// Loads the last turn of the live projection only: enough to group appended messages, unless these answer a call of an earlier turn. A
    /// program that stores and never shows needs no more. Its cost should be that of the turn, however much is visible; this default loads
    /// everything.
    ///
    /// The last turn is that of the last visible message that is no late answer; its content is that of [`Loaded::into_last_turn`].
    ///
    /// # Errors
    /// As [`HistoryStore::load`].
    async fn tail(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        Ok(self.load(session).await?.into_last_turn())
    }

    /// The append under `token`: the answer that was given then; `None` if there was none, or if there is no such
    /// session.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, as any operation.
    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError>;

    /// Hides the messages that `record` hides, shows its summaries and shortens the parts that it edits, if the session is still at
    /// `record.parent`.
    ///
    /// A range hides every visible message in it; a visible summary is hidden by the ranges that hold all it covers. Messages that are
    /// hidden already, and orphans, may lie between. A new summary stands at the lowest number that its attribution says it is derived
    /// from, as a group of its own in the turn of the message there.
    ///
    /// *Authority* never rises. A new summary is a message of the model from a compaction, not pinned; it covers what its
    /// record hides and was visible, number by number, and has no more authority than [`Authority::of_summary`] of that. A
    /// message that is an instruction of the caller, or pinned, is neither hidden nor shortened: only a record that takes back
    /// hides such messages too. Of the groups that it was made from it leaves none behind the first message that it hides, and it
    /// neither shortens nor replaces anything.
    ///
    /// A message with edited parts is shown, by `load` alone, as [`PartStandIn::apply`] makes it of the logged one; of two
    /// stand-ins for one part the one of the highest revision wins.
    ///
    /// Returns the new revision. If the session has this very record already, the answer is again the revision that it
    /// made, whatever came after it: a lost acknowledgement is no conflict.
    ///
    /// # Errors
    /// `Conflict` if the revision has moved, or if a group that the record hides has got another message since the record was made.
    /// `Invalid` if a range hides nothing visible, if a range takes in a part of a group or a part of a visible summary's coverage, if the
    /// record names a head beyond the session's, if a new summary covers messages that are not hidden or claims more than it may, if an
    /// instruction of the caller or a pin is touched, if an unanswered call is not of a group that it hides, or if an edit is of a message
    /// that will not be visible, of a part that is not there or cannot be shortened, or makes the message no smaller. `NotFound` if there
    /// is no such session.
    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError>;

    /// Reads at most `limit` messages of the full log from `range`, hidden ones included. A range beyond the head is no error, and gives no
    /// messages there. A message that was pruned is in its place, without its text: see [`Logged::pruned_by`].
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError>;

    /// Reads at most `limit` of the committed records, oldest first, those that made a revision after `after`. One that was undone is among
    /// them and says so. A record keeps the places and the sizes of pruned messages: a pruned summary is [pruned](Message::is_pruned), and
    /// the texts in a pruned message's stand-ins are empty.
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError>;

    /// Undoes the record that made the revision `made`: the latest one that is not undone. Returns the new revision.
    ///
    /// Everything that the record hid is visible again: messages, answers that came late and were hidden with their group,
    /// and the summaries that it replaced. Its own summaries and stand-ins are gone from the projection; in a message that it
    /// shortened stands what stood there before. The calls of the groups that come back are no hidden ones any more.
    ///
    /// Repeated, the answer is again the revision that the undoing made, whatever came after it.
    ///
    /// # Errors
    /// `Invalid` if no record made `made`; `Conflict` if a later record is not undone: undo that one first. `Pruned` if
    /// something that the record hid was pruned. `NotFound` if there is no such session. `Unsupported` if the store
    /// undoes nothing.
    ///
    /// # Cancel safety
    /// As all operations: the whole old or the whole new state; repeating the call makes it the new one.
    async fn uncompact(&self, session: &SessionId, made: Revision) -> Result<Revision, StoreError> {
        let _ = (session, made);
        Err(rules::unsupported("uncompact"))
    }

    /// Deletes for good what was said in the messages and summaries that are hidden, and were hidden at the revision
    /// `through` or before. Nothing that is visible is touched, nor what a shortened message said before it was shortened.
    ///
    /// What is left of a message is its place: its number, group, turn and sizes, its role and attribution, and the id of
    /// the call or request that it answers, as [`Message::into_pruned`] makes it. A late answer still finds its group. The
    /// stand-ins of a pruned message lose their texts, in the records too.
    ///
    /// The revision moves if something was deleted. If there is nothing left to delete, nothing is changed, and the
    /// answer is that of the latest prune through the same revision, or one that deleted nothing.
    ///
    /// # Errors
    /// `Invalid` if the session has not come to the revision `through`. `NotFound` if there is no such session.
    /// `Unsupported` if the store deletes nothing but whole sessions.
    ///
    /// # Cancel safety
    /// As all operations: the whole old or the whole new state; repeating the call makes it the new one.
    async fn prune(&self, session: &SessionId, through: Revision) -> Result<Pruned, StoreError> {
        let _ = (session, through);
        Err(rules::unsupported("prune"))
    }

    /// Reads at most `limit` of the prunes that have deleted something, oldest first, those that made a revision after
    /// `after`.
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

    /// Reads at most `limit` of the appends, oldest first, from the one that brought the message `from`: under which
    /// token, and when. An append says of itself what it answered then.
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

    /// Appends as [`HistoryStore::append`] does and keeps `state`, in one step: no reader sees the one without the other, also after a
    /// crash. The messages are appended whatever becomes of the state: one that is stale is not kept, and the answer says so.
    ///
    /// Repeated, the append is done once, and the state is looked at anew: the same text, made from the same state, is kept once too, and
    /// the answer is again that of then as long as no other was kept.
    ///
    /// This default appends and then keeps the state, in two steps: after a crash between them the log has messages that the state does not
    /// know, and [`KeptState::head`] tells.
    ///
    /// # Errors
    /// As [`HistoryStore::append`]: then neither is stored. By the default also `Unavailable` or `Corrupt` after the append:
    /// repeat the call.
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

    /// Keeps `state` in place of the one that it was made from. Returns its revision. Neither head nor revision move.
    ///
    /// If that very text is the current one and was made from the same state, the answer is again its revision: a lost
    /// acknowledgement is no conflict.
    ///
    /// # Errors
    /// `Conflict` if another one was kept since; `NotFound` if there is no such session: the first append makes it.
    /// `Unsupported` if the store keeps no states.
    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        let _ = (session, state);
        Err(rules::unsupported("save_state"))
    }

    /// The state that was last kept; `None` if none was. Loading does not read it.
    ///
    /// # Errors
    /// `NotFound` if there is no such session; `Unsupported` as [`HistoryStore::save_state`].
    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        let _ = session;
        Err(rules::unsupported("state"))
    }

    /// Lists at most `limit` sessions in the order of their ids, those after `after`. A damaged session is listed too, with its
    /// [`damage`](SessionInfo::damage): it does not keep the others from being listed.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, as any operation.
    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError>;

    /// Finds the messages that are nearest to the words of `search`, the nearest first, by BM25 and the messages beside them. A message is
    /// found if it has at least one of the words; it need not have all of them. A search text without letters and digits finds nothing, and a
    /// session that is not there has no messages. A search of several sessions passes over those that [`HistoryStore::list`] says are damaged.
    ///
    /// If no more messages match than the limit allows, every store returns the same messages. If more match, a store with an index
    /// can choose and order them differently. Of equally near messages in one session the newest comes first; the order between
    /// sessions is not defined.
    ///
    /// This default reads every message that is searched. A store with an index of words overrides it. In memory, in JSONL files and in
    /// Redis a search writes the index of the messages that it is the first to read.
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

    /// Deletes a session with everything that belongs to it. Returns whether there was one.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, as any operation.
    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError>;
}
