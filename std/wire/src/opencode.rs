//! Sessions of OpenCode: the JSON document that `opencode export` writes, and the list of messages that its server
//! returns (`GET /session/ID/message`).
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"{"info": {"id": "ses_1", "title": "List files"}, "messages": [
//!   {"info": {"id": "msg_1", "role": "user"}, "parts": [{"type": "text", "text": "Which files?"}]},
//!   {"info": {"id": "msg_2", "role": "assistant", "parentID": "msg_1"}, "parts": [{"type": "tool", "callID": "c", "tool": "list",
//!     "state": {"status": "completed", "input": {}, "output": "a.txt", "time": {"start": 1, "end": 2}}}]}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!((conversation.format, roles), (Format::OpenCode, vec![Role::User, Role::Assistant, Role::Tool]));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A `tool` part is a call and its result: the result is a tool message behind the message of its step. A call
//!   without a result was interrupted, and the model sees a note about it. A result that OpenCode has pruned
//!   (`compacted`) is the note that the model sees in its place.
//! - Messages before the last `compaction` part with a summary, or before the `tail_start_id` that it names, are not
//!   sent to the model, and are no messages: a [`ToolCompaction`](super::ToolCompaction) counts them. The compaction
//!   and its summary cannot be left out of such a file, because OpenCode would send those messages again.
//! - Reverted messages (`revert`) and failed answers are not sent either. They stay in the file.
//! - Texts that OpenCode writes in the user's place (`synthetic`) are read as context.
//! - Files of type `text/plain` and folders are in the message as texts too, and are no parts. Snapshots, patches and
//!   the beginnings and ends of steps are no parts.
//!
//! The writer changes texts, arguments and results, and leaves out parts and messages. A call is left out together with
//! its result. A new message is a text of the user or the model, with the time and the model of the message before it.
//! The files of OpenCode's storage hold one part each, and are not read. The form is that of its sources
//! (`packages/opencode/src/session/message-v2.ts` of <https://github.com/anomalyco/opencode>, April 2026).

mod message;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::OpenCode.as_str();

#[cfg(test)]
mod tests;
