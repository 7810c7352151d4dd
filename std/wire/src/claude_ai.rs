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
//! - Where messages name the message before them (`parent_message_uuid`), the conversation continues at
//!   `current_leaf_message_uuid`, or else at the last message. Each other end is a branch.
//! - The content of a message is in `content`. If it has no text there, the `text` of the message is read. The
//!   extracted content of `attachments` is a text of the message. `files` are unknown parts: the export has only their
//!   names.
//! - A tool call with a result in its message is read with the result. Other calls wait for no result: claude.ai ran
//!   their tools.
//! - `token_budget` blocks are no parts.
//!
//! The format is read only. Anthropic publishes no description: the form is that of exports of 2024 to 2026, according
//! to the readers of other projects.

mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::ClaudeAi.as_str();

#[cfg(test)]
mod tests;
