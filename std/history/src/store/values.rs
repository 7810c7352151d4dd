//! Values that go into a store and come out of it.

use core::fmt;
use std::string::String;
use std::sync::Arc;

use epitome_core::attribution::SeqRange;
use epitome_core::message::Role;
use epitome_core::{Basis, Head, OpenKind, Revision, Seq, Tokens, Turn};
use epitome_message::{Message, Part, Str};

use crate::{PartStandIn, StoreError, StoreErrorKind, Timestamp, UnansweredCall};

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

impl From<&Self> for SessionId {
    fn from(id: &Self) -> Self {
        id.clone()
    }
}

impl From<&str> for SessionId {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for SessionId {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes an append repeatable: chosen by the caller, unique within a session for each thing to be appended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AppendToken(Arc<str>);

impl AppendToken {
    /// The token `text`.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(Arc::from(text.into()))
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
    /// The head that the entries were grouped at.
    pub head: Head,
    /// The rule for a session that has another head by now.
    pub position: AppendPosition,
    /// The messages, in order.
    pub entries: &'a [Entry],
    /// When that is; `None` if it is not known. A repetition does not change what was kept.
    pub time: Option<Timestamp>,
}

impl<'a> Append<'a> {
    /// `entries` at `head`, at an unknown time.
    #[must_use]
    pub const fn new(token: &'a AppendToken, head: Head, entries: &'a [Entry]) -> Self {
        Self { token, head, position: AppendPosition::Head, entries, time: None }
    }

    /// Appends at the end of the session, wherever that is by now: see [`AppendPosition::End`].
    #[must_use]
    pub const fn at_end(mut self) -> Self {
        self.position = AppendPosition::End;
        self
    }

    /// Sets the time of the append.
    #[must_use]
    pub const fn at(mut self, time: Option<Timestamp>) -> Self {
        self.time = time;
        self
    }
}

/// The position of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AppendPosition {
    /// At its head. At another one it is a `Conflict`.
    #[default]
    Head,
    /// At the end of the session. If that is not its head, the store groups the entries anew, behind what others have appended
    /// meanwhile, and keeps their sizes: no writer has to try again because another one was faster. A store that cannot do so
    /// answers `Conflict`.
    End,
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
    /// The tokens of each of its parts, in their order: of a call the arguments. Empty where nothing of it can
    /// be shortened, or it is not known: then whoever needs it counts again.
    pub part_tokens: Vec<Tokens>,
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
        Self { message, anchor, turn, count, part_tokens: Vec::new(), late: false, orphan: false }
    }

    /// The id of the call that it answers, if it is an answer. The model's message is none: a result in it is a hosted
    /// tool's, beside its call.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        self.answers().filter(|(kind, _)| *kind == OpenKind::Call).map(|(_, id)| id)
    }

    /// The call or the request for approval that it answers, by its id.
    #[must_use]
    pub fn answers(&self) -> Option<(OpenKind, &str)> {
        if !matches!(self.message.role(), Role::Tool | Role::User) {
            return None;
        }
        self.message.parts().iter().find_map(|part| match part {
            Part::ToolResult(result) => Some((OpenKind::Call, result.call_id.as_str())),
            Part::ApprovalResponse(answer) => Some((OpenKind::Approval, answer.approval.id.as_str())),
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
    /// The basis of the count.
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

/// The answer to an append.
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

/// An append, as the session remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedAppend {
    /// Its token.
    pub token: AppendToken,
    /// The answer that was given then.
    pub appended: Appended,
    /// When it was: never before the append before it. `None` if neither it nor an earlier one knew.
    pub time: Option<Timestamp>,
}

impl LoggedAppend {
    /// The append under `token`.
    #[must_use]
    pub const fn new(token: AppendToken, appended: Appended, time: Option<Timestamp>) -> Self {
        Self { token, appended, time }
    }
}

/// The answer to a prune.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The revision that it made; the session's own if it deleted nothing.
    pub revision: Revision,
    /// The prune deletes messages that were hidden at this revision or before.
    pub through: Revision,
    /// The number of messages whose text it deleted.
    pub messages: u64,
    /// The number of summaries whose text it deleted.
    pub summaries: u64,
}

impl Pruned {
    /// A prune through `through` that made `revision`, and deleted nothing yet.
    #[must_use]
    pub const fn new(revision: Revision, through: Revision) -> Self {
        Self { revision, through, messages: 0, summaries: 0 }
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
    /// The visible messages and summaries, in ascending order of keys. Orphans are not in it.
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
    /// The numbers that a summary covers, as its record says: ascending. Empty for a message of the log, whatever its attribution
    /// claims.
    pub covers: Vec<SeqRange>,
    /// The stand-ins of parts of the log's message: `entry` has them in it, with its size after that.
    pub stand_ins: Vec<PartStandIn>,
}

impl Live {
    /// The log's message `entry` at `key`.
    #[must_use]
    pub const fn new(key: Seq, entry: Entry) -> Self {
        Self { key, entry, covers: Vec::new(), stand_ins: Vec::new() }
    }

    /// The summary `entry`, in place of the messages that it covers.
    #[must_use]
    pub const fn summary(key: Seq, entry: Entry, covers: Vec<SeqRange>) -> Self {
        Self { key, entry, covers, stand_ins: Vec::new() }
    }

    /// The log's message `entry` at `key`, shortened: it has `count` then.
    #[must_use]
    pub fn shortened(key: Seq, mut entry: Entry, stand_ins: Vec<PartStandIn>, count: TokenCount) -> Self {
        entry.message = PartStandIn::apply(&stand_ins, &entry.message);
        entry.count = count;
        entry.part_tokens.clear();
        Self { key, entry, covers: Vec::new(), stand_ins }
    }

    /// Whether it is a message as it was appended: no summary, and not shortened.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.covers.is_empty() && self.stand_ins.is_empty()
    }
}

/// A part of the full log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LogPage {
    /// The messages, in ascending order.
    pub messages: Vec<Logged>,
    /// The start of the next page; `None` at the end of the range.
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
    /// The latest revision that shortened parts of it and is not undone; `entry` is the message as it was appended all the
    /// same.
    pub edited_by: Option<Revision>,
    /// The revision that deleted what it said; `entry` then has what is left of it.
    pub pruned_by: Option<Revision>,
}

impl Logged {
    /// `entry` at `seq`.
    #[must_use]
    pub const fn new(seq: Seq, entry: Entry, hidden_by: Option<Revision>) -> Self {
        Self { seq, entry, hidden_by, edited_by: None, pruned_by: None }
    }
}

/// An entry of a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The session.
    pub id: SessionId,
    /// Its head: how many messages were appended to it.
    pub head: Head,
    /// Its revision.
    pub revision: Revision,
    /// Number of visible messages and summaries.
    pub live_messages: u64,
    /// Number of tokens of those.
    pub live_tokens: u64,
    /// When its first append of a known time was.
    pub created: Option<Timestamp>,
    /// When its last append of a known time was.
    pub appended: Option<Timestamp>,
    /// Why the session cannot be read, as the errors of its operations say; all other fields but the id are then those of an empty session.
    /// A store that lists sessions without reading their messages does not find every damage.
    pub damage: Option<String>,
}

impl SessionInfo {
    /// A new session, empty.
    #[must_use]
    pub const fn new(id: SessionId) -> Self {
        let (head, revision) = (Seq(0), Revision(0));
        Self {
            id,
            head,
            revision,
            live_messages: 0,
            live_tokens: 0,
            created: None,
            appended: None,
            damage: None,
        }
    }

    /// An entry that was read, or that of a session which is damaged.
    ///
    /// # Errors
    /// `read`, unless it is `Corrupt`.
    pub(crate) fn or_damaged(
        id: SessionId,
        read: Result<Option<Self>, StoreError>,
    ) -> Result<Option<Self>, StoreError> {
        match read {
            Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                Ok(Some(Self { damage: Some(error.to_string()), ..Self::new(id) }))
            }
            read => read,
        }
    }
}
