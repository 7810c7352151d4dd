//! Session files of Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-TIME-ID.json`, and the `.jsonl` that it writes since 0.39.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{ReadOptions, read};
//!
//! let text = r#"{"sessionId": "s", "projectHash": "p", "messages": [
//!   {"id": "1", "type": "user", "content": "List the files"},
//!   {"id": "2", "type": "gemini", "content": "", "toolCalls": [{"id": "c", "name": "ls", "args": {}, "status": "success",
//!     "result": [{"functionResponse": {"id": "c", "name": "ls", "response": {"output": "a.txt"}}}]}]}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A record of type `gemini` is a message of the model, and then a tool message for each call that has a `result`.
//! - A `content` is a text, or parts as in [Gemini's contents](super::gemini). Where it has calls or thoughts in it, the record's
//!   `thoughts` repeat these; otherwise they are reasoning without a signature, and `toolCalls` the calls.
//! - A user's record that answers calls is tool messages. The `result` of the same calls says that again, and is none.
//! - Records of other types (`info`, `error`) are no messages. `tokens` is the report, `summary` the label.
//!
//! # The log
//!
//! The first line of JSONL describes the file (`sessionId`, `projectHash`), and each line after it does something:
//!
//! - A record is a message, in the place of an earlier one of the same `id`.
//! - `{"$rewindTo": ID}` takes out that record and all behind it (all, if there is none of that name). The removed records are a
//!   conversation of their own, if another does not have them too.
//! - `{"$set": {"messages": [..]}}` puts these records in the place of all. If some are gone by it, that is a
//!   [`ToolCompaction`](super::ToolCompaction), and the records before it are a conversation of their own.
//! - `{"$set": ..}` with anything else is no message.
//!
//! # Written back
//!
//! In a document, changed texts, results and arguments, and records left out; a record whose call stays and whose result goes is
//! refused, and so are changed thoughts; all thoughts of a message may be left out. New messages of users and of the model are texts, with neither `id` nor
//! `timestamp`.
//!
//! A log is only added to: the new state of the conversation that goes on is a `$set` behind it, in which new messages are called
//! `epitome-1` and so on. Nothing is taken out of the file. A change in another conversation of it is refused.
//!
//! The form is that of Gemini CLI's own sources (`packages/core/src/services/chatRecordingService.ts` of
//! <https://github.com/google-gemini/gemini-cli>).

mod log;
mod message;
mod spec;
mod write;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::GeminiCli.as_str();

#[cfg(test)]
mod tests;
