//! The content of a text: its conversations, and the place of each message in the text.

mod compactions;
mod container;
mod contents;
mod held;
mod inserted;
mod log;
mod relink;
mod shared;
mod timeline;
mod turns;
mod unchanged;
mod write;

use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use epitome_core::Usage;
use epitome_message::{Message, Part, Str};

use super::Format;
use super::injected::own_ledger;
use super::json::Spans;

pub(crate) use compactions::CompactionTree;
pub use compactions::ToolCompactions;
pub(crate) use container::{KnownArray, List, Place, Record};
pub(crate) use log::Log;
pub(crate) use relink::{Chain, NewRecord, NewRecords, fingerprint, uuid};
pub use shared::{LazyList, TranscriptEntries};
pub(crate) use shared::{Stage, Stages};
pub(crate) use timeline::{Life, NEVER, Report, Timeline};
pub use write::write_back;

/// The conversations of a text, as [`read`](super::read) found them, and the text itself.
///
/// To change the text, change the entries of a conversation and pass the transcript to [`write_back`].
#[derive(Clone)]
pub struct Transcript {
    pub(crate) source: Arc<str>,
    pub(crate) lists: Vec<List>,
    pub(crate) records: Vec<Record>,
    pub(crate) conversations: Vec<Conversation>,
    /// Arrays whose elements were found before there was a transcript.
    pub(crate) arrays: Vec<KnownArray>,
    /// The long values in the text, if they are known.
    pub(crate) spans: Spans,
}

/// One conversation of a text: the messages of one request to a model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Conversation {
    /// The format of the conversation.
    pub format: Format,
    /// The id of the conversation in the text; empty if it has none.
    pub id: Str,
    /// The name of the conversation in a list: a title, a task, an agent's name. It is empty if the place is its best
    /// name.
    pub label: Str,
    /// The place of the conversation in the text, as a JSON pointer; empty for the whole text.
    pub path: String,
    /// The relation to the other conversations.
    pub relation: Relation,
    /// Whether the program that wrote the text would continue this conversation.
    pub active: bool,
    /// The messages, in the order in which a model sees them.
    pub entries: LazyList<TranscriptEntry>,
    /// The compactions that the tool itself has made.
    pub compactions: ToolCompactions,
    /// The usage that providers reported for responses in the conversation.
    pub usage: LazyList<UsageEntry>,
    /// Number of messages that were read.
    pub(crate) pieces: usize,
    pub(crate) as_read: AsRead,
    /// Whether the conversation is in a log, which only grows.
    pub(crate) is_log: bool,
    /// The places for new messages.
    pub(crate) insertion: Insertion,
}

/// The places of a conversation in which a new message can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Insertion {
    Anywhere,
    /// Not between the messages of one record: the two halves of the record would have the same id.
    BetweenRecords,
    Nowhere,
}

/// The records of a conversation's messages when it was read, and the number of each message in its record.
#[derive(Debug, Clone)]
pub(crate) enum AsRead {
    Own(Arc<[(SourceRecordId, u32)]>),
    Shared(Stage),
}

/// The records of which a conversation has only some messages, and the numbers of these messages.
pub(crate) type Partial = HashMap<SourceRecordId, Vec<u32>>;

/// The relation of a conversation to another one of the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// No relation.
    Own,
    /// A thread of a sub-agent that the conversation with this index called.
    SideChain(usize),
    /// Another end of the conversation with this index: an abandoned branch, or another choice of a response.
    Branch(usize),
}

/// One message of a conversation, and the record of the text that it comes from.
#[derive(Debug, Clone)]
pub struct TranscriptEntry {
    message: Message,
    record: Option<SourceRecordId>,
    pub(crate) piece: u32,
}

/// A record of the text: the element of an array, a line, or a field that holds one or more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceRecordId(pub(crate) u32);

/// A compaction that was made by the tool that wrote the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCompaction {
    /// The index of the entry before which the compaction happened.
    pub at: usize,
    /// The reason for the compaction, in the tool's words; empty if unknown.
    pub trigger: Str,
    /// Number of messages of the text that the compaction took out of the conversation, if it is known.
    pub dropped: Option<u64>,
    /// The size before the compaction in tokens, according to the tool.
    pub tokens_before: Option<u64>,
    /// The size after the compaction in tokens, according to the tool.
    pub tokens_after: Option<u64>,
}

/// The usage that a provider reported of one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageEntry {
    /// The index of the last entry of the response.
    pub at: usize,
    /// The report.
    pub usage: Usage,
}

impl Transcript {
    /// The source text of the transcript.
    #[must_use]
    pub const fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// The conversations, in the order of the text.
    #[must_use]
    pub fn conversations(&self) -> &[Conversation] {
        &self.conversations
    }

    /// The conversations, for changes.
    pub fn conversations_mut(&mut self) -> &mut [Conversation] {
        &mut self.conversations
    }

    /// The active conversation; the first one, if there are several.
    #[must_use]
    pub fn active(&self) -> Option<&Conversation> {
        self.conversations.iter().find(|conversation| conversation.active)
    }

    /// The text of a record.
    #[must_use]
    pub fn record(&self, id: SourceRecordId) -> &str {
        let range = self.records.get(id.0 as usize).map(|record| record.text.clone());
        range.and_then(|range| self.source.get(range)).unwrap_or_default()
    }
}

impl Conversation {
    /// Creates an active conversation of its own, without messages.
    pub(crate) fn new(format: Format, path: impl Into<String>) -> Self {
        Self {
            format,
            id: Str::default(),
            label: Str::default(),
            path: path.into(),
            relation: Relation::Own,
            active: true,
            entries: LazyList::new(),
            compactions: ToolCompactions::default(),
            usage: LazyList::new(),
            pieces: 0,
            as_read: AsRead::Own(Arc::default()),
            is_log: false,
            insertion: Insertion::Anywhere,
        }
    }

    /// Sets the `len` messages of a stage of the file as the messages of the conversation.
    pub(crate) fn with_stage(mut self, stage: &Stage, len: usize) -> Self {
        self.entries = LazyList::of(stage.clone(), len);
        self.usage = LazyList::of(stage.clone(), 0);
        (self.pieces, self.as_read) = (len, AsRead::Shared(stage.clone()));
        self
    }

    /// Stores the places of the entries at the time of reading, to recognise later changes.
    pub(crate) fn seal(&mut self) {
        if matches!(self.as_read, AsRead::Own(_)) {
            self.as_read = AsRead::Own(self.entries.iter().filter_map(TranscriptEntry::place).collect());
        }
    }

    /// Whether the messages have the same content as at the time of reading, if the file holds the messages.
    pub(crate) fn says_the_same(&self) -> bool {
        let AsRead::Shared(stage) = &self.as_read else {
            return self.is_in_order() && self.entries.is_empty();
        };
        let was = LazyList::<TranscriptEntry>::of(stage.clone(), self.pieces);
        let is_same =
            |(was, now): (&Message, &Message)| was.role() == now.role() && was.parts() == now.parts();
        was.len() == self.entries.len()
            && was.iter().map(TranscriptEntry::message).zip(self.messages()).all(is_same)
    }

    /// Whether the entries are the entries that were read, in the same order, with any content.
    pub(crate) fn is_in_order(&self) -> bool {
        self.entries.len() == self.pieces
            && (self.entries.is_shared()
                || self.entries.iter().map(TranscriptEntry::place).eq(self.as_read().map(Some)))
    }

    /// The records of the messages at the time of reading, and the number of each message in its record.
    pub(crate) fn as_read(&self) -> Box<dyn Iterator<Item = (SourceRecordId, u32)> + '_> {
        match &self.as_read {
            AsRead::Own(places) => Box::new(places.iter().copied()),
            AsRead::Shared(stage) => Box::new(stage.as_read()),
        }
    }

    /// The messages at the time of reading, for each record of which the conversation had only some messages.
    pub(crate) fn partial(&self, records: &[Record]) -> Partial {
        let mut had = Partial::new();
        for (id, piece) in self.as_read() {
            if records.get(id.0 as usize).is_some_and(|record| record.pieces > 1) {
                had.entry(id).or_default().push(piece);
            }
        }
        had.retain(|id, pieces| {
            records.get(id.0 as usize).is_some_and(|record| (record.pieces as usize) > pieces.len())
        });
        had
    }

    /// The messages, in order.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = &Message> {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// Adds the messages of the record `id`, in the order of the record.
    pub(crate) fn extend(&mut self, id: SourceRecordId, messages: impl IntoIterator<Item = Message>) {
        let pieces = messages.into_iter().zip(0..);
        self.entries.extend(pieces.map(|(message, piece)| TranscriptEntry::of(message, id, piece)));
        self.pieces = self.entries.len();
    }
}

impl TranscriptEntry {
    /// Creates an entry for a new message, which is not in the text.
    #[must_use]
    pub const fn new(message: Message) -> Self {
        Self { message, record: None, piece: 0 }
    }

    /// Creates an entry for the message with the number `piece` of the record `id`.
    pub(crate) fn of(message: Message, id: SourceRecordId, piece: u32) -> Self {
        Self { message: own_ledger(message), record: Some(id), piece }
    }

    /// The message.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }

    pub(crate) fn parts_mut(&mut self) -> &mut [Part] {
        self.message.parts_mut()
    }

    /// The message, without its place.
    #[must_use]
    pub fn into_message(self) -> Message {
        self.message
    }

    /// Replaces the message. Make the new message with [`Message::with_parts`] from the present one.
    #[must_use]
    pub fn with_message(mut self, message: Message) -> Self {
        self.message = message;
        self
    }

    /// The record of the message; `None` for a new message, which is not in the text.
    #[must_use]
    pub const fn record(&self) -> Option<SourceRecordId> {
        self.record
    }

    fn place(&self) -> Option<(SourceRecordId, u32)> {
        Some((self.record?, self.piece))
    }

    /// Whether the message and the entry before it came from one record, so that a writer joins them again.
    #[must_use]
    pub const fn rejoin(&self) -> bool {
        self.record.is_some() && self.piece > 0
    }
}

impl UsageEntry {
    /// Creates the report on the response that ends with the entry `at`.
    #[must_use]
    pub const fn new(at: usize, usage: Usage) -> Self {
        Self { at, usage }
    }
}

impl ToolCompaction {
    /// Creates a compaction before the entry `at`, without further information.
    #[must_use]
    pub fn new(at: usize) -> Self {
        Self { at, trigger: Str::default(), dropped: None, tokens_before: None, tokens_after: None }
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("bytes", &self.source.len())
            .field("records", &self.records.len())
            .field("conversations", &self.conversations)
            .finish_non_exhaustive()
    }
}
