//! Rollout files of Codex: JSONL in `~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = concat!(
//!     r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s","cwd":"/","cli_version":"0.40.0"}}"#, "\n",
//!     r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":"Hi"}}"#, "\n",
//!     r#"{"timestamp":"t","type":"event_msg","payload":{"type":"user_message","message":"Hi"}}"#, "\n",
//! );
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!((conversation.format, conversation.entries.len()), (Format::Codex, 1));
//! assert_eq!(conversation.entries[0].message().role(), Role::User);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! How its lines are read:
//!
//! - The `base_instructions` of `session_meta`, which newer files have, are a system message before everything else.
//!   They remain after a compaction.
//! - `response_item` is a message, and [`openai_responses`](super::openai_responses) reads it. Older files (before the
//!   summer of 2025) have the items themselves as lines, between lines with a `record_type`.
//! - A text that Codex wrote in the user's place is no request. The rules of `AGENTS.md`, the environment and an
//!   interrupted turn are [context](epitome_core::attribution::SourceKind::Context). An output of a command or of
//!   another agent is a tool's. The first copy of the rules is pinned.
//! - `compacted` begins a conversation anew: with its `replacement_history`, or, in files without one, with the users'
//!   messages and the summary. The messages before it are a branch of their own, and the compaction has the number of
//!   removed messages.
//! - `event_msg` with a `token_count` reports the usage of the adjacent response. Other events repeat the items for
//!   people, and `turn_context`, `session_meta` and so on are no messages.
//! - `ghost_snapshot` items are notes of the tool, and never sent.
//! - A file with `thread_rolled_back` is refused: the reader cannot tell which turns it takes back, so the messages of
//!   the file are not those that the model saw.
//!
//! The writer supports all changes. A new message becomes a line of its own, with the beginning of time as its
//! `timestamp`.

mod outline;
mod session;
mod spec;
mod thread;
mod write;

pub(crate) use session::reported;
pub(crate) use spec::SPEC;

#[cfg(test)]
mod tests;
