//! Sessions of Continue: the JSON documents in `~/.continue/sessions`.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"{"sessionId": "s", "title": "List files", "workspaceDirectory": "/", "history": [
//!   {"message": {"role": "user", "content": "Which files?"}, "contextItems": []},
//!   {"message": {"role": "assistant", "content": "", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
//!    "contextItems": [], "toolCallStates": [{"toolCallId": "c", "status": "done", "output": [{"name": "ls", "content": "a.txt"}]}]}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!((conversation.format, roles), (Format::Continue, vec![Role::User, Role::Assistant, Role::Tool]));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - The output of a tool is in the `toolCallStates` of the message that called it, and is a tool message behind that
//!   message. An item of role `tool` is read if no state has the result of its call.
//! - The `contextItems` of a user's message are texts before it, in the form in which they are sent. A `thinking` item
//!   is a message of the model. Items of role `system` are not sent, and are no messages.
//! - An item with a `conversationSummary` replaces all items before it, and itself. The summary is a system message,
//!   and a [`ToolCompaction`](super::ToolCompaction) counts the replaced messages. It cannot be left out, because
//!   Continue would send these messages again.
//!
//! The writer changes texts, arguments and results, and leaves out calls, texts and messages. A new message is a text.
//! The form is that of its sources (`core/index.d.ts` and `gui/src/redux/util/constructMessages.ts` of
//! <https://github.com/continuedev/continue>, version 1.3.40, June 2026).

mod message;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::Continue.as_str();

#[cfg(test)]
mod tests;
