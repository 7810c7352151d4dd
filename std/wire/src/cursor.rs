//! Transcripts of Cursor's agent: JSONL in `~/.cursor/projects/*/agent-transcripts`.
//!
//! ```
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = concat!(
//!     r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nWhich files?\n</user_query>"}]}}"#, "\n",
//!     r#"{"role":"assistant","message":{"content":[{"type":"tool_use","name":"Shell","input":{"command":"ls"}}]}}"#, "\n",
//!     r#"{"type":"turn_ended","status":"success"}"#, "\n",
//! );
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!((conversation.format, conversation.entries.len()), (Format::Cursor, 2));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A transcript holds calls without their results, and mostly without ids. Such calls are read as calls that wait for
//!   no result.
//! - Lines without a `role`, such as the ends of turns, are no messages.
//! - Sub-agents have files of their own.
//!
//! The writer changes texts and arguments, and leaves out parts and messages. A new message is a text. Cursor publishes
//! no description: the form is that of files of version 3, according to the readers of other projects (2026).

mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::Cursor.as_str();

#[cfg(test)]
mod tests;
