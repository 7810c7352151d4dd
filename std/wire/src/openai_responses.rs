//! Items of OpenAI's Responses API: requests, responses, arrays of items.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{ReadOptions, read};
//!
//! let text = r#"{"model": "m", "instructions": "Be brief.", "input": [
//!   {"role": "user", "content": "Weather in Oslo?"},
//!   {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
//!   {"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{\"city\":\"Oslo\"}"},
//!   {"type": "function_call_output", "call_id": "a", "output": "rain"}
//! ]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Assistant, Role::Tool]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! How its items are read, each as one message:
//!
//! - `message`, or any item with `role` and `content`: its parts. `instructions`, a field next to the items, is a
//!   system message before them.
//! - `function_call`, `custom_tool_call`, `local_shell_call`, `shell_call`, `apply_patch_call`, `computer_call`, and a
//!   `tool_search_call` of the client: calls that an output answers. If the input has no name or text of arguments (the
//!   action of a shell or a computer), it is the arguments, unchanged. An item whose type ends in `_output` is the
//!   answer. The `tools` that a search has found are a field next to it, and are never shortened.
//! - Every other item whose type ends in `_call` is a call that the provider ran, with its result.
//! - `reasoning`: its text or summary, and `encrypted_content` as the sealed part. `compaction`: the result of a compaction.
//! - `mcp_approval_request` and its response: approvals.
//! - `compaction_trigger` is no message, and stays last. Any other item stays unchanged.

mod content;
mod custom_output;
mod encode;
mod hosted;
mod item;
mod spec;
mod write;

#[doc(hidden)]
pub use custom_output::CustomCalls;
pub(crate) use encode::push_items;
pub(crate) use item::{FIELDS, message, message_of, sendable, special_call};
pub(crate) use spec::SPEC;
pub(crate) use write::{write_items, write_record};

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::OpenaiResponses.as_str();

/// The provider's name in its compactions.
pub(crate) const PROVIDER: &str = "openai";

#[cfg(test)]
mod tests;
