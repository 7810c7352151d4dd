//! Messages of Anthropic's API: requests, responses, arrays and JSONL of messages.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{ReadOptions, read};
//!
//! let text = r#"[
//!   {"role": "user", "content": "Weather in Oslo and Rome?"},
//!   {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}},
//!                                     {"type": "tool_use", "id": "b", "name": "weather", "input": {"city": "Rome"}}]},
//!   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "rain"},
//!                                {"type": "tool_result", "tool_use_id": "b", "content": "sun"},
//!                                {"type": "text", "text": "In one word, please."}]}
//! ]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let entries = &transcript.conversations()[0].entries;
//! let roles: Vec<_> = entries.iter().map(|entry| entry.message().role()).collect();
//! assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
//! assert!(entries[4].rejoin());
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! How its blocks are read:
//!
//! - `system`, a field next to the messages, is a system message before them.
//! - A user's message with results is split: each result is a tool message, and the blocks between the results are
//!   messages of the user.
//! - `thinking` and `redacted_thinking` are reasoning. The signature or the sealed data is its opaque part.
//! - `tool_use` is a call, and its `input` the arguments, unchanged. `server_tool_use` and `mcp_tool_use` are calls
//!   that the provider runs, and their results (`web_search_tool_result` and so on) are in the same message.
//! - `compaction` is the result of the provider's compaction.
//! - `image` and `document` are media. Any other block stays unchanged.
//! - Empty texts are no parts.

mod block;
mod encode;
mod hosted;
mod record;
mod spec;
mod write;

pub(crate) use record::messages_and_usage;
pub(crate) use spec::SPEC;
pub(crate) use write::write_record;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::Anthropic.as_str();

/// The provider's name in its compactions.
pub(crate) const PROVIDER: &str = "anthropic";

#[cfg(test)]
mod tests;
