//! The stored form of messages and compaction records: one line of JSON each. Stores write no other form.
//!
//! ```
//! use epitome_message::Message;
//! use epitome_history::stored;
//!
//! let message = Message::user("What is in notes.txt?");
//! let text = stored::encode(&message)?;
//! assert!(text.starts_with(r#"{"v":1,"role":"user","parts":[{"text":"What is in notes.txt?"}]"#));
//! assert_eq!(stored::decode(&text)?, message);
//! # Ok::<(), stored::StoredError>(())
//! ```
//!
//! Every text begins with its version, counted from 1. Version 2 is that of records that shorten parts of messages. A
//! reader ignores unknown fields, so a release may add optional fields. A change that a reader must understand (a kind
//! of part, another meaning) raises the version. A writer writes the lowest version that a message needs, so that an
//! older release can read everything that it understands.
//!
//! *Text is stored once.* A message that is exactly as a wire reader made it is stored as its wire text alone. This
//! requires a reader for the format that is registered here and that reads the text as the same message; the writer
//! checks this first. Content that the text does not have (attribution, the ids of the message and of its response) is
//! stored with it. The result of a registered reader for a text is therefore part of the stored form. Any other message
//! is stored with all its parts.
//!
//! The stored form is not an exchange format: see the other modules of [`wire`](super) for the formats of model
//! providers.

mod record;
#[cfg(test)]
mod tests;

use core::error::Error;
use core::fmt;
use std::io;

use epitome_core::Seq;
use epitome_core::attribution::{Authority, Retention, SeqRange, SourceKind};
use epitome_core::message::Role;
use serde::{Deserialize, Serialize};

pub use self::record::{decode_record, encode_record, record_id};
pub use self::record::{decode_stand_ins, encode_stand_ins};

use epitome_message::stored::StoredPart;
use epitome_message::{Attribution, Message, NESTING_MAX, Part, Str, WireText};
use epitome_wire::{agent_framework, openai_chat};

/// Encodes `message`.
///
/// # Errors
/// [`StoredError::TooDeep`] if tool results are nested in it more deeply than any reader makes them.
pub fn encode(message: &Message) -> Result<String, StoredError> {
    to_json(&StoredMessage::of(message, reader)?)
}

/// Decodes the message in `text`.
///
/// # Errors
/// [`StoredError`] describes the fault of the text. It never contains a piece of it.
pub fn decode(text: &str) -> Result<Message, StoredError> {
    from_json::<StoredMessage>(text)?.into_message(reader)
}

/// Checks that `message` has a stored form, without writing it.
pub fn check(message: &Message) -> Result<(), StoredError> {
    if nested_within(message.parts(), NESTING_MAX) { Ok(()) } else { Err(StoredError::TooDeep) }
}

/// The reason why a text is not a stored form, or a message has none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredError {
    /// A newer release wrote the text: read it with that release.
    Version {
        /// The version of the text.
        found: u64,
    },
    /// The text is damaged, or is not a stored form.
    Malformed {
        /// Approximate number of its bytes that could be read.
        column: usize,
    },
    /// The message is stored as its wire text, and this build has no reader for the format, or the reader fails.
    Unread {
        /// The name of the format.
        format: Str,
    },
    /// Tool results are nested in the message more than [`NESTING_MAX`] levels deep.
    TooDeep,
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { found } => {
                write!(f, "written by a newer release: version {found}, this one reads up to {VERSION}")
            }
            Self::Malformed { column } => {
                write!(f, "not the stored form of a message: stopped at byte {column}")
            }
            Self::Unread { format } => write!(f, "its wire text cannot be read as {:?}", format.as_str()),
            Self::TooDeep => write!(f, "tool results are nested more than {NESTING_MAX} deep"),
        }
    }
}

impl Error for StoredError {}

/// The highest version that this release writes and reads: that of records that shorten parts of messages.
pub const VERSION: u64 = 2;

/// The version of all other texts.
const FIRST_VERSION: u64 = 1;

/// Reads a message from its wire text; `None` if the text is not a message.
type Reader = fn(&str) -> Option<Message>;

/// The formats whose messages may be stored as their wire text alone.
///
/// A reader must never be removed, nor read a known text as another message.
const READERS: &[(&str, Reader)] = &[
    (openai_chat::FORMAT, |text| openai_chat::read(text).ok()),
    (agent_framework::FORMAT, agent_framework::read_alone),
];

fn reader(format: &str) -> Option<Reader> {
    READERS.iter().find(|(name, _)| *name == format).map(|(_, reader)| *reader)
}

#[derive(Serialize, Deserialize)]
struct StoredMessage {
    v: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<StoredPart>>,
    attr: StoredAttribution,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_id: Option<Str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wire: Option<StoredWire>,
    #[serde(default, skip_serializing_if = "is_default")]
    incomplete: bool,
    /// A message whose text was deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pruned: bool,
}

impl StoredMessage {
    fn of(message: &Message, readers: fn(&str) -> Option<Reader>) -> Result<Self, StoredError> {
        check(message)?;
        let (attr, incomplete) = (StoredAttribution::of(message.attribution()), message.is_incomplete());
        let wire = message.wire().map(StoredWire::of);
        if let Some(read) = derived(message, readers) {
            let beside = |id: Option<&str>, read: Option<&str>| id.filter(|_| id != read).map(Str::from);
            let id = beside(message.id(), read.id());
            let response_id = beside(message.response_id(), read.response_id());
            let (v, role, parts, name) = (FIRST_VERSION, None, None, None);
            let pruned = false;
            return Ok(Self { v, role, parts, attr, id, response_id, name, wire, incomplete, pruned });
        }
        Ok(Self {
            v: FIRST_VERSION,
            role: Some(message.role()),
            parts: Some(message.parts().iter().map(StoredPart::of).collect()),
            attr,
            id: message.id().map(Str::from),
            response_id: message.response_id().map(Str::from),
            name: message.name().map(Str::from),
            wire,
            incomplete,
            pruned: message.is_pruned(),
        })
    }

    fn into_message(self, readers: fn(&str) -> Option<Reader>) -> Result<Message, StoredError> {
        let attribution = self.attr.into_attribution();
        let (Some(role), Some(parts)) = (self.role, self.parts) else {
            let wire = self.wire.ok_or(StoredError::Malformed { column: 0 })?;
            let read = readers(&wire.format).and_then(|read| read(&wire.text));
            let message = read.ok_or(StoredError::Unread { format: wire.format })?;
            let message = message.with_attribution(attribution).with_incomplete(self.incomplete);
            return Ok(with_ids(message, self.id, self.response_id));
        };
        let parts = parts.into_iter().map(StoredPart::into_part).collect();
        let message =
            Message::new(role, parts).with_attribution(attribution).with_incomplete(self.incomplete);
        let message = message.with_pruned(self.pruned);
        let mut message = with_ids(message, self.id, self.response_id);
        if let Some(name) = self.name {
            message = message.with_name(name);
        }
        Ok(match self.wire {
            Some(wire) => message.with_wire(wire.into_wire()),
            None => message,
        })
    }
}

/// The message that a registered reader makes from the wire text, if it equals this message apart from the content that
/// is stored with the text.
fn derived(message: &Message, readers: fn(&str) -> Option<Reader>) -> Option<Message> {
    let wire = message.wire().filter(|wire| !wire.touched)?;
    let read = readers(&wire.format).and_then(|read| read(&wire.text))?;
    let (id, response_id) = (message.id().map(Str::from), message.response_id().map(Str::from));
    let whole = with_ids(read.clone(), id, response_id).with_attribution(message.attribution().clone());
    let whole = whole.with_incomplete(message.is_incomplete());
    (whole == *message).then_some(read)
}

fn with_ids(mut message: Message, id: Option<Str>, response_id: Option<Str>) -> Message {
    if let Some(id) = id {
        message = message.with_id(id);
    }
    if let Some(id) = response_id {
        message = message.with_response_id(id);
    }
    message
}

/// Whether tool results are nested at most `levels` deep.
fn nested_within(parts: &[Part], levels: usize) -> bool {
    parts.iter().all(|part| match (part, levels.checked_sub(1)) {
        (Part::ToolResult(result), Some(levels)) => nested_within(&result.parts, levels),
        (Part::ToolResult(_), None) => false,
        _ => true,
    })
}

#[derive(Serialize, Deserialize)]
struct StoredAttribution {
    #[serde(default, skip_serializing_if = "is_empty")]
    source_id: Str,
    source: SourceKind,
    authority: Authority,
    #[serde(default, skip_serializing_if = "is_default")]
    retention: Retention,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    derived_from: Vec<StoredRange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<Str>,
}

impl StoredAttribution {
    fn of(attribution: &Attribution) -> Self {
        Self {
            source_id: attribution.source_id.clone(),
            source: attribution.source,
            authority: attribution.authority,
            retention: attribution.retention,
            derived_from: attribution.derived_from.iter().copied().map(StoredRange::of).collect(),
            label: attribution.label.clone(),
        }
    }

    fn into_attribution(self) -> Attribution {
        let ranges = self.derived_from.into_iter().map(StoredRange::into_range).collect();
        let mut attribution = Attribution::new(self.source_id, self.source, self.authority)
            .with_retention(self.retention)
            .with_derived_from(ranges);
        attribution.label = self.label;
        attribution
    }
}

/// `[first, last]`.
#[derive(Serialize, Deserialize)]
struct StoredRange(u64, u64);

impl StoredRange {
    const fn of(range: SeqRange) -> Self {
        Self(range.first.0, range.last.0)
    }

    const fn into_range(self) -> SeqRange {
        SeqRange { first: Seq(self.0), last: Seq(self.1) }
    }
}

#[derive(Serialize, Deserialize)]
struct StoredWire {
    format: Str,
    text: Str,
    #[serde(default, skip_serializing_if = "is_default")]
    touched: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    rejoin: bool,
}

impl StoredWire {
    fn of(wire: &WireText) -> Self {
        Self {
            format: wire.format.clone(),
            text: wire.text.clone(),
            touched: wire.touched,
            rejoin: wire.rejoin,
        }
    }

    fn into_wire(self) -> WireText {
        let mut wire = WireText::new(self.format, self.text).with_rejoin(self.rejoin);
        wire.touched = self.touched;
        wire
    }
}

/// A stored form with a version.
trait Versioned {
    /// Its version, and the versions of its parts.
    fn versions(&self) -> impl Iterator<Item = u64>;
}

impl Versioned for StoredMessage {
    fn versions(&self) -> impl Iterator<Item = u64> {
        core::iter::once(self.v)
    }
}

fn to_json(value: &impl Serialize) -> Result<String, StoredError> {
    serde_json::to_string(value).map_err(|error| malformed(&error))
}

fn write_json(value: &impl Serialize, out: impl io::Write) -> Result<(), StoredError> {
    serde_json::to_writer(out, value).map_err(|error| malformed(&error))
}

fn from_json<'a, T: Versioned + Deserialize<'a>>(text: &'a str) -> Result<T, StoredError> {
    let read = serde_json::from_str::<T>(text);
    // The version is parsed separately only if the whole text cannot be parsed, so that a long text is parsed once.
    let (lowest, highest) = match &read {
        Ok(value) => value.versions().fold((VERSION, 1), |(low, high), v| (low.min(v), high.max(v))),
        Err(_) => {
            serde_json::from_str::<VersionOnly>(text).map_or((VERSION, VERSION), |only| (only.v, only.v))
        }
    };
    match read {
        _ if highest > VERSION => Err(StoredError::Version { found: highest }),
        // No release writes the version 0.
        _ if lowest == 0 => Err(StoredError::Malformed { column: 0 }),
        Ok(value) => Ok(value),
        Err(error) => Err(malformed(&error)),
    }
}

#[derive(Deserialize)]
struct VersionOnly {
    v: u64,
}

/// The error has the column only, because the message of a JSON error can quote the text.
fn malformed(error: &serde_json::Error) -> StoredError {
    StoredError::Malformed { column: error.column() }
}

fn is_empty(text: &Str) -> bool {
    text.is_empty()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
