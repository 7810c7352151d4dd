//! Session files of pi: JSONL in `~/.pi/agent/sessions`.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = concat!(
//!     r#"{"type":"session","id":"s","timestamp":"t","cwd":"/"}"#, "\n",
//!     r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"Hi"}}"#, "\n",
//!     r#"{"type":"message","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"Yes?"}],"stopReason":"stop"}}"#,
//! );
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!((conversation.format, conversation.entries.len()), (Format::Pi, 2));
//! assert_eq!(conversation.entries[1].message().role(), Role::Assistant);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - Entries of type `message` are messages of users, the model and tools. Other entries (`model_change` and so on) are
//!   no messages. An answer without content, which a stopped request leaves, is no message either.
//! - If entries have an `id` and a `parentId`, the last message and its ancestors are the active conversation. Other
//!   ends are branches of their own, selected by the `id` of their last entry. Early files have neither, and are one
//!   conversation in the order of the lines.
//! - A `compaction` replaces the messages before its `firstKeptEntryId` by its `summary`.
//! - The input of `usage` does not include the tokens from a cache, for every provider.
//!
//! The writer changes texts, results and arguments, writes texts in the place of pictures, and leaves out messages. The
//! entry after a gap then names the entry before it. A new text of the user or the model is an entry of its own, and
//! the entry behind it names it. A new text before the messages that a compaction kept is refused.

mod message;
mod outline;
mod session;
mod spec;
mod tree;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::Pi.as_str();

#[cfg(test)]
mod tests;
