//! Session files of goose: JSONL in `~/.local/share/goose/sessions`, and the JSON document that `goose session export`
//! writes of newer sessions, which goose stores in SQLite.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = concat!(
//!     r#"{"working_dir":"/","description":"List files","message_count":3}"#, "\n",
//!     r#"{"role":"user","created":1,"content":[{"type":"text","text":"Which files?"}]}"#, "\n",
//!     r#"{"role":"assistant","created":2,"content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"ls","arguments":{}}}}]}"#, "\n",
//!     r#"{"role":"user","created":3,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"a.txt"}]}}]}"#,
//! );
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!((conversation.format, conversation.entries.len()), (Format::Goose, 3));
//! assert_eq!(conversation.entries[2].message().role(), Role::Tool);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - The first line describes the session. In a document, the members next to `conversation` describe it.
//! - A `toolResponse` is a tool message, even if its record holds other content. A part of its output for the user only
//!   (`annotations.audience`) is not sent to the model, and is no part.
//! - Messages that are not `agentVisible` are not sent to the model, and are no messages. If such messages are before a
//!   message that is not `userVisible` (a summary), a compaction of the tool took them out: a
//!   [`ToolCompaction`](super::ToolCompaction).
//! - Questions to the user and notices (`toolConfirmationRequest`, `actionRequired`, `systemNotification` and the like) are
//!   no parts. A call that could not be read is an unknown part.
//!
//! The writer changes texts and results, and leaves out messages. A new message is a text. The form is that of goose's
//! own sources (`crates/goose/src/conversation` of <https://github.com/block/goose>).

mod message;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::Goose.as_str();

#[cfg(test)]
mod tests;
