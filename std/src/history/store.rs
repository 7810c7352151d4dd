//! The storage contract.

use core::fmt;
use core::ops::Range;

use async_trait::async_trait;
use epitome_core::attribution::SeqRange;
use epitome_core::message::Role;
use epitome_core::{Basis, Head, Revision, Seq, Tokens, Turn};

use super::{Committed, CompactionRecord, StoreError, UnansweredCall};
use crate::message::{Message, Part, Str};

/// Keeps sessions: for each an append-only log of messages, and the compactions that hide parts of it.
///
/// Two counters describe a session. The *head* is the next sequence number and is moved only by appends. The *revision*
/// counts changes of what is visible: commits, and appends of late answers (see [`Entry::late`]).
///
/// *For callers*: group and count a message before it is appended; what is stored is never grouped or counted again.
/// After `Conflict`, load and decide anew. After `Unavailable`, repeat with the same token or record: if the first
/// attempt went through after all, the answer is the same as it was then. Tokens and records are remembered for as long
/// as the session is. A deletion cannot be told from its repetition: that a session is not there is the answer to both.
///
/// *For implementers*: each method is one atomic step. A failed one has changed nothing. Errors never hold message text.
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
/// *Durability*: what has been acknowledged survives as each implementation's documentation says.
#[async_trait]
pub trait HistoryStore: Send + Sync + fmt::Debug {
    /// Appends messages at the session's head, creating the session if it is new (its head is then 0).
    ///
    /// The token is looked at first: if this session has seen it, nothing is appended and the answer is the one given
    /// then, wherever the head is now. Only the messages must be those of then: their groups are the caller's reading of
    /// where they stand, which a retry may have taken anew.
    ///
    /// # Errors
    /// `Conflict` if `append.head` is not the session's; `Invalid` if the token was used for other messages, if an anchor
    /// lies after its message or is not the first message of a group, if a tool's or user's message answers more than
    /// one call (a reader splits it), or if there are no entries.
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError>;

    /// Loads the live projection: the visible messages and summaries, in order of their keys. Its cost is that of what
    /// is visible, however long the log is.
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError>;

    /// Hides what `record` hides and shows its summaries, if the session is still at `record.parent`.
    ///
    /// A range hides every visible message in it, and every visible summary whose key lies in it; what is hidden
    /// already, and orphans, may lie between. A new summary stands at the lowest number that its attribution says it is
    /// derived from, as a group of its own in the turn of the message there.
    ///
    /// Returns the new revision. If the session has this very record already, the answer is again the revision that it
    /// made, whatever came after it: a lost acknowledgement is no conflict.
    ///
    /// # Errors
    /// `Conflict` if the revision has moved, or if a group that the record hides has got another message since the
    /// record was made. `Invalid` if a range hides nothing visible, if a range takes in a part of a group or a part of
    /// what a visible summary covers, if the record names a head beyond the session's, or if a new summary covers
    /// what is not hidden. `NotFound` if there is no such session.
    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError>;

    /// Reads at most `limit` messages of the full log from `range`, hidden ones included. What of the range lies beyond
    /// the head is no error, and not there.
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError>;

    /// Reads at most `limit` of the committed records, oldest first, those that made a revision after `after`.
    ///
    /// # Errors
    /// `NotFound` if there is no such session.
    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError>;

    /// Lists at most `limit` sessions in the order of their ids, those after `after`.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, as any operation.
    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError>;

    /// Deletes a session with everything that belongs to it. Returns whether there was one.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, as any operation.
    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError>;
}

/// The name of a session: any text, compared byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Box<str>);

impl SessionId {
    /// The session named `name`.
    #[must_use]
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes an append repeatable: chosen by the caller, unique within a session for each thing to be appended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AppendToken(Box<str>);

impl AppendToken {
    /// The token `text`.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Messages on their way into a log.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Append<'a> {
    /// Makes it repeatable.
    pub token: &'a AppendToken,
    /// The head that the entries were grouped at, and the one that the append expects.
    pub head: Head,
    /// The messages, in order.
    pub entries: &'a [Entry],
}

impl<'a> Append<'a> {
    /// `entries` at `head`.
    #[must_use]
    pub const fn new(token: &'a AppendToken, head: Head, entries: &'a [Entry]) -> Self {
        Self { token, head, entries }
    }
}

/// One message on its way into a log, with its group and its size.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The message.
    pub message: Message,
    /// The sequence number of the first message of its group; its own if it is that message.
    pub anchor: Seq,
    /// The turn of its group.
    pub turn: Turn,
    /// Its size.
    pub count: TokenCount,
    /// Whether it answers a call of an earlier turn. Its append then moves the revision, because it changes what was
    /// already visible. As any message whose group is hidden when it is appended, it is then hidden too.
    pub late: bool,
    /// Whether it answers no call at all. It stays in the log and is never projected.
    pub orphan: bool,
}

impl Entry {
    /// `message` as a member of the group at `anchor`.
    #[must_use]
    pub const fn new(message: Message, anchor: Seq, turn: Turn, count: TokenCount) -> Self {
        Self { message, anchor, turn, count, late: false, orphan: false }
    }

    /// The id of the call that it answers, if it is an answer. The model's message is none: a result in it is a hosted
    /// tool's, beside its call.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        if !matches!(self.message.role(), Role::Tool | Role::User) {
            return None;
        }
        self.message.parts().iter().find_map(|part| match part {
            Part::ToolResult(result) => Some(result.call_id.as_str()),
            _ => None,
        })
    }
}

/// The size of a message, how it is known, and by whose count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenCount {
    /// The amount, framing included.
    pub tokens: Tokens,
    /// How it is known.
    pub basis: Basis,
    /// The name of the counter. Under another counter the message is counted again.
    pub counter: Str,
}

impl TokenCount {
    /// `tokens`, as `counter` says.
    #[must_use]
    pub const fn new(tokens: Tokens, basis: Basis, counter: Str) -> Self {
        Self { tokens, basis, counter }
    }
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The sequence number of the first appended message.
    pub first: Seq,
    /// The session's head after it.
    pub head: Head,
    /// The session's revision after it.
    pub revision: Revision,
}

impl Appended {
    /// An append from `first` up to `head`, which left the session at `revision`.
    #[must_use]
    pub const fn new(first: Seq, head: Head, revision: Revision) -> Self {
        Self { first, head, revision }
    }
}

/// A live projection.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// The session's head.
    pub head: Head,
    /// The session's revision.
    pub revision: Revision,
    /// What is visible, in ascending order of keys. Orphans are not in it.
    pub live: Vec<Live>,
    /// The hidden calls that still have no answer, by group and place in it: those that the records name, without those
    /// that were answered by an append since.
    pub unanswered: Vec<UnansweredCall>,
}

impl Loaded {
    /// A projection without messages.
    #[must_use]
    pub const fn new(head: Head, revision: Revision) -> Self {
        Self { head, revision, live: Vec::new(), unanswered: Vec::new() }
    }
}

/// A visible message or summary.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Live {
    /// Its place: its own sequence number, or the lowest that a summary covers.
    pub key: Seq,
    /// The message with its group and its size. A summary is a group of its own.
    pub entry: Entry,
    /// What a summary covers, as its record says: ascending. Empty for a message of the log, whatever its attribution
    /// claims.
    pub covers: Vec<SeqRange>,
}

impl Live {
    /// The log's message `entry` at `key`.
    #[must_use]
    pub const fn new(key: Seq, entry: Entry) -> Self {
        Self { key, entry, covers: Vec::new() }
    }

    /// The summary `entry`, in place of the messages that it covers.
    #[must_use]
    pub const fn summary(key: Seq, entry: Entry, covers: Vec<SeqRange>) -> Self {
        Self { key, entry, covers }
    }
}

/// A part of the full log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LogPage {
    /// The messages, in ascending order.
    pub messages: Vec<Logged>,
    /// Where the next page begins; `None` at the end of the range.
    pub next: Option<Seq>,
}

impl LogPage {
    /// A page and where the next one begins.
    #[must_use]
    pub const fn new(messages: Vec<Logged>, next: Option<Seq>) -> Self {
        Self { messages, next }
    }
}

/// A message of the full log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Logged {
    /// Its sequence number.
    pub seq: Seq,
    /// The message with its group and its size.
    pub entry: Entry,
    /// The revision that hid it; `None` while it is visible.
    pub hidden_by: Option<Revision>,
}

impl Logged {
    /// `entry` at `seq`.
    #[must_use]
    pub const fn new(seq: Seq, entry: Entry, hidden_by: Option<Revision>) -> Self {
        Self { seq, entry, hidden_by }
    }
}

/// What a list says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The session.
    pub id: SessionId,
    /// Its head: how many messages were appended to it.
    pub head: Head,
    /// Its revision.
    pub revision: Revision,
    /// How many messages and summaries are visible.
    pub live_messages: u64,
    /// How many tokens they have.
    pub live_tokens: u64,
}

impl SessionInfo {
    /// A new session, empty.
    #[must_use]
    pub const fn new(id: SessionId) -> Self {
        Self { id, head: Seq(0), revision: Revision(0), live_messages: 0, live_tokens: 0 }
    }
}
