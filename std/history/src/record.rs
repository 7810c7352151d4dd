//! The record of one compaction.

use core::fmt;

use epitome_core::attribution::SeqRange;
use epitome_core::{Head, OpenCall, Revision, Seq, Turn};
use epitome_message::{Message, Str};

use super::{Entry, MessageEdit, TokenCount};

/// A compaction record: the messages that it hides or shortens, and their stand-ins. Nothing is deleted.
///
/// A record changes only messages that are visible at its parent revision, and it hides whole groups.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompactionRecord {
    /// The revision from which the record was made. A commit expects the session at this revision.
    pub parent: Revision,
    /// The head from which the record was made. The record does not affect messages that were appended later.
    pub head: Head,
    /// The messages it hides: ascending, none overlapping, none adjacent.
    pub hides: Vec<SeqRange>,
    /// The messages in the place of hidden ones.
    pub summaries: Vec<Summary>,
    /// The messages that stay, with shortened parts: in the order of their numbers, none of them hidden.
    pub edits: Vec<MessageEdit>,
    /// The unanswered calls among the hidden messages. They let a late answer find its group.
    pub unanswered: Vec<UnansweredCall>,
    /// The names of the strategies that made the plan, as information for readers of the log.
    pub strategy: Str,
    /// The size of the projection before, in tokens.
    pub tokens_before: u64,
    /// The size of the projection after, in tokens.
    pub tokens_after: u64,
}

impl CompactionRecord {
    /// Makes a record from `parent` and `head` without any changes.
    #[must_use]
    pub fn new(parent: Revision, head: Head) -> Self {
        Self {
            parent,
            head,
            hides: Vec::new(),
            summaries: Vec::new(),
            edits: Vec::new(),
            unanswered: Vec::new(),
            strategy: Str::default(),
            tokens_before: 0,
            tokens_after: 0,
        }
    }
}

/// A record that was committed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Committed {
    /// The revision of the record.
    pub revision: Revision,
    /// The record.
    pub record: CompactionRecord,
    /// The revision of its uncompact; `None` if it is not undone.
    pub undone_by: Option<Revision>,
}

impl Committed {
    /// Makes a committed record with this revision.
    #[must_use]
    pub const fn new(revision: Revision, record: CompactionRecord) -> Self {
        Self { revision, record, undone_by: None }
    }

    /// Sets the revision of its uncompact.
    #[must_use]
    pub const fn undone(mut self, by: Option<Revision>) -> Self {
        self.undone_by = by;
        self
    }
}

/// A message in the place of hidden ones.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Its key: the lowest sequence number that it covers.
    pub key: Seq,
    /// The message. Its attribution names the messages it covers.
    pub message: Message,
    /// Its size.
    pub count: TokenCount,
}

impl Summary {
    /// Makes a summary with `message` in the place of the messages from `key` on.
    #[must_use]
    pub const fn new(key: Seq, message: Message, count: TokenCount) -> Self {
        Self { key, message, count }
    }
}

/// A hidden call, or request for approval, that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnansweredCall {
    /// The call's id.
    pub id: Str,
    /// The first message of its group.
    pub anchor: Seq,
    /// The turn of its group.
    pub turn: Turn,
    /// Its place among the calls of its group, as in [`OpenCall`]. A bit of it marks a request for approval.
    pub ordinal: u32,
}

impl UnansweredCall {
    /// The call `id`, the `ordinal`th of the group at `anchor`.
    #[must_use]
    pub const fn new(id: Str, anchor: Seq, turn: Turn, ordinal: u32) -> Self {
        Self { id, anchor, turn, ordinal }
    }

    /// Whether `answer` answers this call.
    #[doc(hidden)]
    #[must_use]
    pub fn is_answered_by(&self, answer: &Entry) -> bool {
        let (turn, anchor, ordinal) = (self.turn, self.anchor, self.ordinal);
        let kind = OpenCall { turn, anchor, ordinal, span: OpenCall::HIDDEN, tool: 0 }.kind();
        anchor == answer.anchor && answer.answers() == Some((kind, self.id.as_str()))
    }
}

/// The id of a record, made from its content: equal edits of one revision have equal ids. It makes a commit idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordId([u8; 16]);

impl RecordId {
    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Parses an id of 32 hexadecimal digits.
    #[doc(hidden)]
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = uuid::Uuid::try_parse(text).ok().filter(|_| text.len() == 32)?;
        Some(Self(id.into_bytes()))
    }

    /// The bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
