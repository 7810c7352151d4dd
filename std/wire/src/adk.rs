//! Sessions of Google's Agent Development Kit (ADK). A text is an object with `events`, in the form of ADK's services
//! and `adk web`, or the list of its events.
//!
//! Keys are in camel or snake case. The `content` of an event is a content of Gemini, and [`gemini`](super::gemini)
//! reads it.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"{"id": "s", "app_name": "files", "events": [
//!   {"author": "user", "content": {"role": "user", "parts": [{"text": "Which files?"}]}},
//!   {"author": "lister", "content": {"role": "model", "parts": [{"function_call": {"id": "adk-1", "name": "ls", "args": {}}}]}},
//!   {"author": "lister", "content": {"role": "user", "parts": [{"function_response": {"id": "adk-1", "name": "ls", "response": {"result": "a.txt"}}}]}}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!((conversation.format, roles), (Format::Adk, vec![Role::User, Role::Assistant, Role::Tool]));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - An event without a content, without a role in its content, or with an empty text as its first part, is no message:
//!   it changes the state. Calls in which ADK asks for credentials and confirmations, and their answers, are no
//!   messages either. The parts of a streamed answer (`partial`) are no messages.
//! - An event with `actions.compaction` replaces the events whose timestamps are in its range by the content that
//!   summarizes them: a [`ToolCompaction`](super::ToolCompaction). It cannot be left out, because ADK would send those
//!   events again. A compaction whose range a later compaction covers is no message.
//! - An event with `actions.rewind_before_invocation_id` takes out all messages from that invocation on. They stay in
//!   the file.
//! - The events of all agents and branches are read in their order. ADK repeats the messages of one agent to another.
//!
//! The writer changes contents as [`gemini`](super::gemini) does, and leaves out events. A new message is a text of the
//! user or the model, in an event with the time and the invocation of the event before it. The form is that of ADK's
//! sources (`src/google/adk/events` and `flows/llm_flows/contents.py` of <https://github.com/google/adk-python>,
//! versions 1.4 of June 2025 and 1.19 of November 2025).

mod event;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name.
pub const FORMAT: &str = super::Format::Adk.as_str();

#[cfg(test)]
mod tests;
