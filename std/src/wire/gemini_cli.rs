//! Session files of Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-TIME-ID.json`.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_std::wire::{ReadOptions, read};
//!
//! let text = r#"{"sessionId": "s", "projectHash": "p", "messages": [
//!   {"id": "1", "type": "user", "content": "List the files"},
//!   {"id": "2", "type": "gemini", "content": "", "toolCalls": [{"id": "c", "name": "ls", "args": {}, "status": "success",
//!     "result": [{"functionResponse": {"id": "c", "name": "ls", "response": {"output": "a.txt"}}}]}]}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
//! # Ok::<(), epitome_std::wire::WireError>(())
//! ```
//!
//! - A record of type `gemini` is what the model said, and then a tool message for each call that has a `result`.
//! - `thoughts` are reasoning without a signature. Records of other types (`info`, `error`) are no messages.
//! - `tokens` is the report.
//!
//! Written back are changed texts and results, and records left out; a record whose call stays and whose result goes is
//! refused. `resultDisplay`, what the tool shows to people, is not changed. New messages of users and of the model are
//! texts, with neither `id` nor `timestamp`.

mod message;
mod room;
mod write;

pub(crate) use room::ROOM;

/// The format's name in [`WireText`](crate::message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::GeminiCli.as_str();

#[cfg(test)]
mod tests;
