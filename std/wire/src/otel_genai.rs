//! Messages in the form of OpenTelemetry's conventions for generative AI.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"{"gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}], "gen_ai.input.messages": [
//!   {"role": "user", "parts": [{"type": "text", "content": "Which files?"}]},
//!   {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "ls", "arguments": {}}]},
//!   {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "a.txt"}]}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!(conversation.format, Format::OtelGenai);
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - The messages are an array, one message per line, an array under `messages` of an object, or attributes of a span
//!   or an event: `gen_ai.system_instructions`, `gen_ai.input.messages`, then `gen_ai.output.messages`. An attribute
//!   that is a text with JSON in it is refused: the caller has to parse it first.
//! - Each `tool_call_response` is a tool message. A call that a server ran (`server_tool_call`) is a hosted call.
//!
//! The writer changes texts, arguments and results, and leaves out parts and messages. A new message is a text.
//!
//! The form is that of the schemas `gen-ai-input-messages.json` and `gen-ai-output-messages.json` of the semantic
//! conventions (1.37 and later), with the names of earlier writers (`result`, `thinking`).

mod part;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::OtelGenai.as_str();

#[cfg(test)]
mod tests;
