//! The record of one compaction.

use core::fmt;

use epitome_core::attribution::SeqRange;
use epitome_core::{Head, OpenCall, Revision, Seq, Turn};
use epitome_message::{Message, Str};

use super::{Entry, MessageEdit, TokenCount};

/// A compaction record: the messages that it hides or shortens, and their stand-ins. Nothing is deleted.
///
/// A record edits only what is visible at its parent revision, and it hides whole groups.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompactionRecord {
    /// The revision that it was made from, and the one that a commit expects.
    pub parent: Revision,
    /// The head that it was made from: messages appended later are not its business.
    pub head: Head,
    /// The messages it hides: ascending, none overlapping, none adjacent.
    pub hides: Vec<SeqRange>,
    /// The messages that stand in place of hidden ones.
    pub summaries: Vec<Summary>,
    /// The messages that stay, with shortened parts: in the order of their numbers, none of them hidden.
    pub edits: Vec<MessageEdit>,
    /// The unanswered calls among the hidden messages, so that an answer that comes late still finds its group.
    pub unanswered: Vec<UnansweredCall>,
    /// The names of the strategies that made the plan, for readers of the log.
    pub strategy: Str,
    /// The size of the projection before, in tokens.
    pub tokens_before: u64,
    /// The size of the projection after, in tokens.
    pub tokens_after: u64,
}

impl CompactionRecord {
    /// A record made from `parent` and `head` that does nothing yet.
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
    /// The revision that it made.
    pub revision: Revision,
    /// The record.
    pub record: CompactionRecord,
    /// The revision that undid it; `None` while it holds.
    pub undone_by: Option<Revision>,
}

impl Committed {
    /// The record that made `revision`.
    #[must_use]
    pub const fn new(revision: Revision, record: CompactionRecord) -> Self {
        Self { revision, record, undone_by: None }
    }

    /// Marks the record as undone.
    #[must_use]
    pub const fn undone(mut self, by: Option<Revision>) -> Self {
        self.undone_by = by;
        self
    }
}

/// A message that stands in place of hidden ones.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Its place: the lowest sequence number that it covers.
    pub key: Seq,
    /// The message. Its attribution names the messages it covers.
    pub message: Message,
    /// Its size.
    pub count: TokenCount,
}

impl Summary {
    /// `message` in place of the messages from `key` on.
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
    /// Its place among the calls of its group, as [`OpenCall`] has it: a request for approval is marked in it.
    pub ordinal: u32,
}

impl UnansweredCall {
    /// The call `id`, the `ordinal`th of the group at `anchor`.
    #[must_use]
    pub const fn new(id: Str, anchor: Seq, turn: Turn, ordinal: u32) -> Self {
        Self { id, anchor, turn, ordinal }
    }

    /// Whether `answer` answers it.
    #[doc(hidden)]
    #[must_use]
    pub fn is_answered_by(&self, answer: &Entry) -> bool {
        let (turn, anchor, ordinal) = (self.turn, self.anchor, self.ordinal);
        let kind = OpenCall { turn, anchor, ordinal, span: OpenCall::HIDDEN, tool: 0 }.kind();
        anchor == answer.anchor && answer.answers() == Some((kind, self.id.as_str()))
    }
}

/// Names a record by its content: equal edits of one revision have equal ids, so a commit can be repeated safely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordId([u8; 16]);

impl RecordId {
    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The id that this is the text of: 32 hexadecimal digits.
    #[doc(hidden)]
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = uuid::Uuid::try_parse(text).ok().filter(|_| text.len() == 32)?;
        Some(Self(id.into_bytes()))
    }

    /// Its bytes.
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
