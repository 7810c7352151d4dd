//! Arguments and results of a store.

use core::fmt;
use std::string::String;
use std::sync::Arc;

use epitome_core::attribution::SeqRange;
use epitome_core::message::Role;
use epitome_core::{Basis, Head, OpenKind, Revision, Seq, Tokens, Turn};
use epitome_message::{Message, Part, Str};

use crate::{PartStandIn, StoreError, StoreErrorKind, Timestamp, UnansweredCall};

/// The id of a session: any text, compared byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Box<str>);

impl SessionId {
    /// Makes the id with this text.
    #[must_use]
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self(name.into())
    }

    /// The text of the id.
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

/// Idempotency key of an append. The caller chooses it, unique within a session for each append.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AppendToken(Arc<str>);

impl AppendToken {
    /// Makes the token with this text.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(Arc::from(text.into()))
    }

    /// The text of the token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Messages to append to a log.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Append<'a> {
    /// The idempotency key of the append.
    pub token: &'a AppendToken,
    /// The head at which the entries were grouped.
    pub head: Head,
    /// The rule for a session whose head has changed meanwhile.
    pub position: AppendPosition,
    /// The messages, in order.
    pub entries: &'a [Entry],
    /// The time of the append; `None` if it is not known. A repetition does not change the stored time.
    pub time: Option<Timestamp>,
}

impl<'a> Append<'a> {
    /// Makes an append of `entries` at `head`, at an unknown time.
    #[must_use]
    pub const fn new(token: &'a AppendToken, head: Head, entries: &'a [Entry]) -> Self {
        Self { token, head, position: AppendPosition::Head, entries, time: None }
    }

    /// Appends at the present end of the session: see [`AppendPosition::End`].
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
    /// At the head of the append. A session at another head causes a `Conflict`.
    #[default]
    Head,
    /// At the end of the session. If that is not the head of the append, the store groups the entries again, after the
    /// messages of other writers, and keeps their sizes. No writer has to retry because another one was faster. A store
    /// without support for this returns `Conflict`.
    End,
}

/// One message to append, with its group and its size.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The message.
    pub message: Message,
    /// The sequence number of the first message of its group. For that message itself, its own number.
    pub anchor: Seq,
    /// The turn of its group.
    pub turn: Turn,
    /// Its size.
    pub count: TokenCount,
    /// The tokens of each of its parts, in order; for a call, those of the arguments. Empty if no part can be
    /// shortened, or the sizes are not known. A reader that needs unknown sizes counts the parts again.
    pub part_tokens: Vec<Tokens>,
    /// Whether it answers a call of an earlier turn. Its append then changes the revision, because it changes an
    /// earlier group. If that group is hidden, the message is hidden from the start, as in every hidden group.
    pub late: bool,
    /// Whether it answers no call at all. Such a message stays in the log and is never projected.
    pub orphan: bool,
}

impl Entry {
    /// Makes an entry with `message` in the group at `anchor`.
    #[must_use]
    pub const fn new(message: Message, anchor: Seq, turn: Turn, count: TokenCount) -> Self {
        Self { message, anchor, turn, count, part_tokens: Vec::new(), late: false, orphan: false }
    }

    /// The id of the call that it answers, if it is an answer. A message of the model is never an answer: a result in
    /// it is that of a hosted tool, together with its call.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        self.answers().filter(|(kind, _)| *kind == OpenKind::Call).map(|(_, id)| id)
    }

    /// The kind and the id of the call or request for approval that it answers.
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

/// The size of a message, with its basis and its counter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenCount {
    /// The number of tokens, with framing.
    pub tokens: Tokens,
    /// The basis of the count.
    pub basis: Basis,
    /// The name of the token counter. A history with another counter counts the message again.
    pub counter: Str,
}

impl TokenCount {
    /// Makes a count of `tokens` by `counter`.
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
    /// The session's head after the append.
    pub head: Head,
    /// The session's revision after the append.
    pub revision: Revision,
}

impl Appended {
    /// Makes the answer to an append from `first` up to `head`, after which the session is at `revision`.
    #[must_use]
    pub const fn new(first: Seq, head: Head, revision: Revision) -> Self {
        Self { first, head, revision }
    }
}

/// An append in the list of a session's appends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedAppend {
    /// Its idempotency key.
    pub token: AppendToken,
    /// The answer to the append.
    pub appended: Appended,
    /// The time of the append, never before that of the append before. `None` if no time is known for it and all
    /// earlier ones.
    pub time: Option<Timestamp>,
}

impl LoggedAppend {
    /// Makes the append under `token`.
    #[must_use]
    pub const fn new(token: AppendToken, appended: Appended, time: Option<Timestamp>) -> Self {
        Self { token, appended, time }
    }
}

/// The answer to a prune.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The revision of the prune; the session's revision if it deleted nothing.
    pub revision: Revision,
    /// The prune deletes messages that were hidden at this revision or before.
    pub through: Revision,
    /// The number of messages whose text it deleted.
    pub messages: u64,
    /// The number of summaries whose text it deleted.
    pub summaries: u64,
}

impl Pruned {
    /// Makes a prune through `through` with the revision `revision` that has deleted nothing.
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
    /// The visible messages and summaries, ordered by key. Orphans are not included.
    pub live: Vec<Live>,
    /// The hidden calls without an answer, by group and by place in the group: the calls that the records name, without
    /// those that a later append has answered.
    pub unanswered: Vec<UnansweredCall>,
}

impl Loaded {
    /// A projection without messages.
    #[must_use]
    pub const fn new(head: Head, revision: Revision) -> Self {
        Self { head, revision, live: Vec::new(), unanswered: Vec::new() }
    }

    /// Checks that each visible message has its text. A prune deletes only texts of hidden messages. If a copy of a pruned
    /// session is interrupted, the commit that hides the messages without a text is missing in the copy.
    pub(crate) fn check_texts(&self, context: &str) -> Result<(), StoreError> {
        match self.live.iter().find(|live| live.entry.message.is_pruned()) {
            None => Ok(()),
            Some(Live { key, .. }) => Err(StoreError::new(
                StoreErrorKind::Corrupt,
                format!(
                    "{context}: message {key} is visible, and its text was pruned; an import, a copy or a fork was \
                     interrupted: repeat it, or delete the session"
                ),
            )),
        }
    }
}

/// A visible message or summary.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Live {
    /// Its key: its own sequence number, or the lowest number that a summary covers.
    pub key: Seq,
    /// The message with its group and its size. A summary is a group of its own.
    pub entry: Entry,
    /// The numbers that a summary covers according to its record, ascending. Empty for a message of the log,
    /// independent of its attribution.
    pub covers: Vec<SeqRange>,
    /// The stand-ins of a message of the log. They are already applied in `entry`, and included in its size.
    pub stand_ins: Vec<PartStandIn>,
}

impl Live {
    /// Makes a visible message of the log, `entry` at `key`.
    #[must_use]
    pub const fn new(key: Seq, entry: Entry) -> Self {
        Self { key, entry, covers: Vec::new(), stand_ins: Vec::new() }
    }

    /// Makes the visible summary `entry`, in the place of the messages that it covers.
    #[must_use]
    pub const fn summary(key: Seq, entry: Entry, covers: Vec<SeqRange>) -> Self {
        Self { key, entry, covers, stand_ins: Vec::new() }
    }

    /// Makes a shortened message of the log, `entry` at `key`. `count` is its size with the stand-ins.
    #[must_use]
    pub fn shortened(key: Seq, mut entry: Entry, stand_ins: Vec<PartStandIn>, count: TokenCount) -> Self {
        entry.message = PartStandIn::apply(&stand_ins, &entry.message);
        entry.count = count;
        entry.part_tokens.clear();
        Self { key, entry, covers: Vec::new(), stand_ins }
    }

    /// Whether it is a message in its appended form: neither a summary nor shortened.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.covers.is_empty() && self.stand_ins.is_empty()
    }
}

/// A page of the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LogPage {
    /// The messages, in ascending order.
    pub messages: Vec<Logged>,
    /// The start of the next page; `None` at the end of the range.
    pub next: Option<Seq>,
}

impl LogPage {
    /// Makes a page, with the beginning of the next page.
    #[must_use]
    pub const fn new(messages: Vec<Logged>, next: Option<Seq>) -> Self {
        Self { messages, next }
    }
}

/// A message of the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Logged {
    /// Its sequence number.
    pub seq: Seq,
    /// The message with its group and its size.
    pub entry: Entry,
    /// The revision that hid it; `None` while it is visible.
    pub hidden_by: Option<Revision>,
    /// The latest revision that shortened parts of it and is not undone. `entry` is the appended message nevertheless.
    pub edited_by: Option<Revision>,
    /// The revision of the prune that deleted its text; `entry` then has the rest of the message.
    pub pruned_by: Option<Revision>,
}

impl Logged {
    /// Makes a message of the log, `entry` at `seq`.
    #[must_use]
    pub const fn new(seq: Seq, entry: Entry, hidden_by: Option<Revision>) -> Self {
        Self { seq, entry, hidden_by, edited_by: None, pruned_by: None }
    }
}

/// An entry of a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The id of the session.
    pub id: SessionId,
    /// Its head: the number of its appended messages.
    pub head: Head,
    /// Its revision.
    pub revision: Revision,
    /// Number of visible messages and summaries.
    pub live_messages: u64,
    /// Number of their tokens.
    pub live_tokens: u64,
    /// The time of its first append with a known time.
    pub created: Option<Timestamp>,
    /// The time of its last append with a known time.
    pub appended: Option<Timestamp>,
    /// The reason why the session cannot be read, as in the errors of its operations. All other fields except the id
    /// are then those of an empty session. A store that lists sessions without reading their messages does not find
    /// every damage.
    pub damage: Option<String>,
}

impl SessionInfo {
    /// Makes the entry of an empty session.
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

    /// The entry `read`, or the entry of a damaged session.
    ///
    /// # Errors
    /// The error of `read`, unless it is `Corrupt`.
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
