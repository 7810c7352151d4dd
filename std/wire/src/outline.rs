//! Assigns the lines of a session file to conversations, for files that are too long for the memory.
//!
//! ```
//! use std::io::Cursor;
//! use epitome_wire::{Format, Outline, SessionLines, WireError};
//!
//! let file = concat!(
//!     r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s","cwd":"/"}}"#, "\n",
//!     r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":"Hi"}}"#, "\n",
//! );
//! let mut lines = SessionLines::new(Cursor::new(file), Format::Codex)?;
//! let outline = Outline::read(&mut lines, None)?;
//! let said: Vec<_> = outline.messages(&mut lines).collect::<Result<_, _>>()?;
//! assert_eq!((said.len(), outline.conversations()[0].id.as_str()), (1, "s"));
//! # Ok::<(), WireError>(())
//! ```

use core::fmt::Debug;
use std::io::{BufRead, Seek};
use std::sync::Arc;

use epitome_message::{Message, Str};

use super::transcript::{Relation, ToolCompactions, UsageEntry};
use super::{Format, SessionLines, WireError, WireErrorKind};

/// The conversations of a session file, and the places of the active conversation's messages in it.
///
/// An outline has the conversations that [`read`](super::read) finds, without the content of messages. It takes some
/// hundred bytes for each line while it is made, and then some twenty. The messages are read again from the file, one
/// line at a time. So a session of a gigabyte is shown within 64 MiB and its longest line, if its lines have two
/// kilobytes or more on average.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    pub(crate) conversations: Vec<OutlinedConversation>,
    pub(crate) places: Vec<Place>,
    /// Providers' reports on responses in the active conversation: the last message of each response, and the offset of
    /// the line with the report.
    pub(crate) reports: Vec<(usize, u64)>,
}

/// A conversation without its messages.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutlinedConversation {
    /// The id of the conversation in the file; empty if it has none.
    pub id: Str,
    /// The name of the conversation in a list; empty if the id is its best name.
    pub label: Str,
    /// Its relation to the other conversations.
    pub relation: Relation,
    /// Number of messages.
    pub messages: usize,
    /// The compactions that the tool itself has made, for the active conversation.
    pub compactions: ToolCompactions,
    /// Offset of the line with the conversation's name, in bytes.
    pub(crate) named_by: Option<u64>,
}

/// Messages of a conversation from one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Offset of the line, in bytes.
    pub(crate) offset: u64,
    /// The range of the line's messages: the first, and the one behind the last.
    pub(crate) first: u32,
    pub(crate) end: u32,
}

/// The lines of a file with a place in its tree, by their numbers in the tree.
#[derive(Debug, Default)]
pub(crate) struct TreeLines {
    /// Offset of each line, in bytes.
    offsets: Vec<u64>,
    /// Whether each line reports the usage of a response.
    reports: Vec<bool>,
}

/// The outliner of a format, which processes the lines of a file one after another.
pub(crate) trait Outliner: Debug {
    /// Adds the line `text`, which begins at `offset`. Errors have their place in the line.
    fn push(&mut self, text: &Arc<str>, offset: u64) -> Result<(), WireError>;

    /// Returns the outline of the active conversation, or of the conversation that ends with `leaf`.
    fn finish(self: Box<Self>, leaf: Option<&str>) -> Result<Outline, WireError>;
}

impl Outline {
    /// The formats whose files have an outline.
    pub const FORMATS: [Format; 3] = [Format::Codex, Format::ClaudeCode, Format::Pi];

    /// Reads the outline of a file from `lines`, which has to be at the beginning of the file, up to its end.
    ///
    /// The first conversation is the active one. With a `leaf`, as in [`ReadOptions::leaf`](super::ReadOptions::leaf),
    /// it is the conversation that ends there.
    ///
    /// # Errors
    /// `Unsupported` for a format that is not one of [`FORMATS`](Self::FORMATS); `NotFound` if the leaf does not exist;
    /// as [`SessionLines::next_record`].
    pub fn read<R: BufRead + Seek>(
        lines: &mut SessionLines<R>,
        leaf: Option<&str>,
    ) -> Result<Self, WireError> {
        let Some(outliner) = lines.spec().outliner else {
            let names = Self::FORMATS.map(Format::as_str).join(", ");
            let what = format!("{} has no outline: {names} have", lines.spec().name());
            return Err(WireError::unsupported(what));
        };
        let mut outliner = outliner();
        while lines.next_text(|text, offset| outliner.push(text, offset))?.is_some() {}
        let mut outline = outliner.finish(leaf)?;
        for conversation in &mut outline.conversations {
            if let Some(offset) = conversation.named_by {
                conversation.id = lines.record_at(offset)?.and_then(|record| record.id).unwrap_or_default();
            }
        }
        Ok(outline)
    }

    /// The conversations: the active one, then the others as in [`read`](super::read). It is empty if there is no
    /// message.
    #[must_use]
    pub fn conversations(&self) -> &[OutlinedConversation] {
        &self.conversations
    }

    /// The usage that providers reported for responses in the active conversation. It is read like
    /// [`messages`](Self::messages).
    ///
    /// # Errors
    /// As [`messages`](Self::messages).
    pub fn usage<R: BufRead + Seek>(
        &self,
        lines: &mut SessionLines<R>,
    ) -> impl Iterator<Item = Result<UsageEntry, WireError>> {
        self.reports.iter().map(|(at, offset)| {
            let usage = lines.record_at(*offset)?.and_then(|record| record.usage);
            usage.map(|usage| UsageEntry::new(*at, usage)).ok_or_else(changed)
        })
    }

    /// The messages of the active conversation, in order. Each line is read when the iterator reaches it. `lines` is
    /// the source of the outline.
    ///
    /// # Errors
    /// As [`SessionLines::next_record`], and `Io` if the file has changed.
    pub fn messages<R: BufRead + Seek>(
        &self,
        lines: &mut SessionLines<R>,
    ) -> impl Iterator<Item = Result<Message, WireError>> {
        self.places.iter().flat_map(|place| match lines.record_at(place.offset) {
            Ok(record) => place.of(record.map(|record| record.messages).unwrap_or_default()),
            Err(error) => vec![Err(error)],
        })
    }
}

impl OutlinedConversation {
    /// The active conversation.
    pub(crate) fn active(id: Str, label: Str, messages: usize) -> Self {
        let compactions = ToolCompactions::default();
        Self { id, label, relation: Relation::Own, messages, compactions, named_by: None }
    }

    /// Another end of the file's tree.
    pub(crate) fn other(label: Str, relation: Relation, messages: usize) -> Self {
        Self { relation, ..Self::active(Str::default(), label, messages) }
    }
}

impl TreeLines {
    /// Adds the next line.
    pub(crate) fn push(&mut self, offset: u64, reports: bool) {
        self.offsets.push(offset);
        self.reports.push(reports);
    }

    /// The offset of a line.
    pub(crate) fn offset(&self, line: usize) -> Option<u64> {
        self.offsets.get(line).copied()
    }

    /// The offset of a line that reports the usage of a response.
    pub(crate) fn report(&self, line: usize) -> Option<u64> {
        self.offset(line).filter(|_| self.reports.get(line) == Some(&true))
    }
}

impl Place {
    /// All messages of the line at `offset`.
    pub(crate) const fn whole(offset: u64, messages: u32) -> Self {
        Self { offset, first: 0, end: messages }
    }

    /// The messages of the line in the range of this place.
    fn of(self, messages: Vec<Message>) -> Vec<Result<Message, WireError>> {
        let mut messages = messages.into_iter().zip(0_u32..).filter(|(_, at)| *at >= self.first);
        let next = |_| messages.next().map(|(message, _)| message).ok_or_else(changed);
        (self.first..self.end).map(next).collect()
    }
}

fn changed() -> WireError {
    WireError::new(WireErrorKind::Io, "the file has changed while it was read")
}
