//! Requests and responses of the Converse API of Amazon Bedrock.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"{"modelId": "m", "system": [{"text": "Be brief."}], "messages": [
//!   {"role": "user", "content": [{"text": "Which files?"}]},
//!   {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "ls", "input": {}}}]},
//!   {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"json": ["a.txt"]}], "status": "success"}}]}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!(conversation.format, Format::BedrockConverse);
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - The messages are an array, an array under `messages` of a request with `system`, one message in a line, or the one
//!   message of a response (`output`), whose `usage` is read too.
//! - Each `toolResult` is a tool message. A tool that the service ran (`server_tool_use`) is a hosted call.
//! - Cache points are no parts, and stay in their places.
//!
//! The writer changes texts, arguments and results, and leaves out parts and messages. A new message is a text, or a
//! result with a text.
//!
//! The API refuses neighbours of one role. If a change makes two records of one role neighbours, the writer joins them:
//! the first record has the blocks of both, and no other members of the second, so that a later reader finds one message, which a later compaction keeps or
//! leaves out as a whole: a request of the user that was joined with the first one is protected with it. A caller needs
//! only the rules of Anthropic's API, where neighbours of one role are one turn. A ledger that was joined with the message
//! behind it is read as a message of its own.
//!
//! The form is that of the API reference (`Message`, `ContentBlock`, `ToolResultContentBlock`) of August 2026.

mod block;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::BedrockConverse.as_str();

#[cfg(test)]
mod tests;
