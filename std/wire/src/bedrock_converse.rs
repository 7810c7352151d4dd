//! Requests and answers of the Converse API of Amazon Bedrock.
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
//! - The messages stand in an array, in a request under `messages` with `system` beside it, one in a line, or alone in an answer
//!   (`output`), whose `usage` is read too.
//! - Each `toolResult` is a tool's message. A tool that the service ran (`server_tool_use`) is a hosted call.
//! - Cache points are no parts, and stay where they are.
//!
//! Written back are changed texts, arguments and results, and parts and messages left out. A new message is a text. The rules of
//! Anthropic's API hold for a request: the API asks for the same order of roles, and for each result behind its call.
//!
//! The form is that of the API reference (`Message`, `ContentBlock`, `ToolResultContentBlock`) of August 2026.

mod block;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::BedrockConverse.as_str();

#[cfg(test)]
mod tests;
