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
//! - Entries of type `message` are messages, of users, the model and tools. Others (`model_change` and so on) are none; nor
//!   is an answer without content, which is what is left when a request is stopped.
//! - Where entries have an `id` and a `parentId`, the last message and what is before it are the active conversation;
//!   other ends are branches of their own, found again by the `id` of their last entry. Early files have neither, and are
//!   one conversation in the order of the lines.
//! - A `compaction` puts its `summary` in the place of what is before its `firstKeptEntryId`.
//! - `usage` counts what came from a cache beside the input, for every provider.
//!
//! Written back are changed texts, results and arguments, texts in the place of pictures, and messages left out, whose followers then name the entry before the gap.
//! A new text of the user or the model is an entry of its own, which the entry behind it names; it is refused before what a compaction has
//! kept.

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
