//! Messages of `LangChain`: `messages_to_dict` (`{"type", "data"}`), `dumpd` (`{"lc": 1, "kwargs"}`), and the state of
//! `LangGraph` (`values.messages`, each flat).
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{ReadOptions, read};
//!
//! let text = r#"[{"type": "human", "data": {"content": "Hi", "type": "human"}},
//!   {"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "c"}]}},
//!   {"type": "tool", "data": {"content": "1", "type": "tool", "tool_call_id": "c"}}]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - `tool_calls` are the calls. A block of type `tool_use`, `tool_call`, `tool_call_chunk` or `function_call` that
//!   repeats one of them is no part.
//! - `reasoning_content` of `additional_kwargs` is reasoning, and so are blocks of type `thinking` and `reasoning`.
//! - `usage_metadata` is the report of usage. Its input includes the tokens from a cache.
//!
//! The writer changes texts, results and arguments (also in the blocks and members that repeat the call), writes texts
//! in the place of pictures, leaves out messages, and adds messages. A new message has `type` and `data`, because a
//! message does not record which of the three forms the file has.

mod message;
mod spec;
mod write;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::LangChain.as_str();

#[cfg(test)]
mod tests;
