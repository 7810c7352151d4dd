//! Message histories of Pydantic AI: the list that `ModelMessagesTypeAdapter` writes (`all_messages_json()`), alone or
//! under `messages`, or one message per line.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"[{"kind": "request", "instructions": "Be brief.", "parts": [{"part_kind": "user-prompt", "content": "Which files?"}]},
//!   {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "ls", "args": "{}", "tool_call_id": "c"}]},
//!   {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "ls", "content": ["a.txt"], "tool_call_id": "c"}]}]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!((conversation.format, roles), (Format::PydanticAi, vec![Role::System, Role::User, Role::Assistant, Role::Tool]));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A request is several messages: system prompts, the user's message, and a tool message for each `tool-return` and each `retry-prompt`
//!   with a tool. A `retry-prompt` without a tool is a text of the framework in the user's place.
//! - The first `instructions` of the requests are a system message. Those of later requests mostly repeat them, and are
//!   no messages. The framework sends the last ones.
//! - An output of a tool that is no text is read as its JSON.
//! - A `builtin-tool-call` and its return belong to the provider, and stay in the message of the model.
//!
//! The writer changes texts, results and arguments, and leaves out parts and messages. A new message is a text.
//! Instructions stay in the file even if their message is left out. The form is that of the framework's sources
//! (`pydantic_ai_slim/pydantic_ai/messages.py` of <https://github.com/pydantic/pydantic-ai>, version 2.33, August
//! 2026).

mod message;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::PydanticAi.as_str();

#[cfg(test)]
mod tests;
