//! Conversations of Cline and of Roo Code: `api_conversation_history.json` of a task, and `*.messages.json` of a session of Cline's SDK.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"{"version": 1, "updated_at": "t", "sessionId": "s", "system_prompt": "Be brief.", "messages": [
//!   {"id": "1", "role": "user", "ts": 1, "content": [{"type": "text", "text": "Which files?"}]},
//!   {"id": "2", "role": "assistant", "ts": 2, "content": [{"type": "tool_use", "id": "c", "name": "ls", "input": {}}]},
//!   {"id": "3", "role": "user", "ts": 3, "content": [{"type": "tool_result", "tool_use_id": "c", "name": "ls", "content": "a.txt"}]}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!(conversation.format, Format::Cline);
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - The messages are Anthropic's, with a time (`ts`) and other fields. Each `tool_result` is a tool message. A `file`
//!   is the text in it.
//! - Before tool calls were part of the protocol, the model wrote them as tags in its text. Their results were in the
//!   user's message, behind `[read_file for 'a.txt'] Result:`. Such a message is marked as a tool's, so it is no
//!   request of the user. A message of `<environment_details>` alone is context.
//! - Roo Code hides messages instead of removing them. After a summary (`isSummary`) the conversation begins with the
//!   summary. Messages that a truncation marker hides are left out. Both are a
//!   [`ToolCompaction`](super::ToolCompaction).
//! - `metrics` of an answer are its usage.
//!
//! The writer changes texts, arguments and results, and leaves out parts and messages. A new message is a text.
//!
//! The forms are those of <https://github.com/cline/cline> (`sdk/packages/shared/src/llms/messages.ts`, August 2026) and
//! <https://github.com/RooCodeInc/Roo-Code> (`src/core/task-persistence/apiMessages.ts`, `src/core/condense/index.ts`, April 2026).

mod history;
mod spec;

pub(crate) use history::sign_of;
pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::Cline.as_str();

#[cfg(test)]
mod tests;
