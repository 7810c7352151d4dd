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
//! - A record of type `gemini` is a message of the model, followed by a tool message for each call that has a `result`.
//! - A `content` is a text, or parts as in [Gemini's contents](super::gemini). If the content has calls or thoughts,
//!   the record's `thoughts` repeat these. Otherwise `thoughts` are reasoning without a signature, and `toolCalls` are
//!   the calls.
//! - A user's record that answers calls is tool messages. The `result` of these calls repeats the answers, and is no
//!   message.
//! - Records of other types (`info`, `error`) are no messages. `tokens` is the report of usage, `summary` the label.
//!
//! # The log
//!
//! The first line of JSONL describes the file (`sessionId`, `projectHash`), and each line after it is a change:
//!
//! - A record is a message. It replaces an earlier message with the same `id`.
//! - `{"$rewindTo": ID}` takes out that record and all records behind it. If there is no such record, it takes out all.
//!   The removed records are a conversation of their own, unless another conversation has them too.
//! - `{"$set": {"messages": [..]}}` replaces all records by these. If records are gone afterwards, the change is a
//!   [`ToolCompaction`](super::ToolCompaction), and the records before it are a conversation of their own.
//! - `{"$set": ..}` with anything else is no message.
//!
//! # Written back
//!
//! In a document, the writer changes texts, results and arguments, and leaves out records. It refuses to remove a
//! result without its call, and to change thoughts. All thoughts of a message may be left out together. New messages of
//! users and of the model are texts, with neither `id` nor `timestamp`.
//!
//! A log only grows: the new state of the continuing conversation is a `$set` at the end, in which new messages have
//! the ids `epitome-1` and so on. Nothing is taken out of the file. A change in another conversation of the file is
//! refused.
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
