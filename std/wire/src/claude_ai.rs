//! Exports of claude.ai: `conversations.json`, a list of conversations, or one of them.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{ReadOptions, read};
//!
//! let text = r#"[{"uuid": "c", "name": "Greeting", "chat_messages": [
//!   {"uuid": "a", "sender": "human", "text": "Hi", "content": [{"type": "text", "text": "Hi"}], "attachments": []},
//!   {"uuid": "b", "sender": "assistant", "text": "Yes?", "content": [{"type": "text", "text": "Yes?"}]}]}]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::User, Role::Assistant]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - Where messages name the one before them (`parent_message_uuid`), the conversation goes on at `current_leaf_message_uuid`, or else at
//!   the last message, and each other end is a branch.
//! - `content` is the content of a message; a message without any text there has its `text`. The extracted content of `attachments` is text
//!   of the message. `files` are unknown parts: the export has their names.
//! - A tool call that is answered in its message is a call with its result. Other calls wait for no result: claude.ai ran their tools.
//! - `token_budget` blocks are none.
//!
//! It is read only. Anthropic publishes no description: the form is that of exports of 2024 to 2026, as the readers of other projects
//! describe them.

mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::ClaudeAi.as_str();

#[cfg(test)]
mod tests;
