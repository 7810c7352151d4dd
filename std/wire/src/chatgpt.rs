//! Exports of ChatGPT: `conversations.json`, a list of conversations, or one of them.
//!
//! ```
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"[{"title": "Greeting", "conversation_id": "c", "current_node": "b", "mapping": {
//!   "root": {"id": "root", "message": null, "parent": null, "children": ["a"]},
//!   "a": {"id": "a", "parent": "root", "children": ["b"], "message":
//!     {"id": "a", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Hi"]}, "recipient": "all"}},
//!   "b": {"id": "b", "parent": "a", "children": [], "message":
//!     {"id": "b", "author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["Yes?"]}, "recipient": "all"}}}}]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!((conversation.format, &*conversation.label), (Format::ChatGpt, "Greeting"));
//! assert_eq!(conversation.entries.len(), 2);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A conversation is a tree: an edited question or a second answer begins a branch. The conversation continues at its
//!   `current_node`. Each other end is a branch.
//! - A message of the model to a `recipient` other than `all` is a tool call, and the message of the tool behind it is
//!   the result. A call without a result on one of the paths behind it is a hosted call: it waits for no result. A
//!   message of a tool without a call is context. In the name of a tool, `_` replaces letters that no provider allows:
//!   `web.run` becomes `web_run`.
//! - The texts of `user_editable_context` and `model_editable_context` are context. A message without content is no
//!   message, and neither is the duration of the model's reasoning (`reasoning_recap`). Pictures and sounds are in
//!   files of their own: they are unknown parts.
//!
//! The format is read only. OpenAI publishes no description: the form is that of exports of 2024 to 2026, according to
//! the readers of other projects.

mod message;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::ChatGpt.as_str();

#[cfg(test)]
mod tests;
