//! Sessions of GitHub Copilot CLI: the lines of `~/.copilot/session-state/ID/events.jsonl`.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = concat!(
//!     r#"{"type":"session.start","id":"1","parentId":null,"data":{"sessionId":"s","version":1}}"#, "\n",
//!     r#"{"type":"user.message","id":"2","parentId":"1","data":{"content":"Which files?"}}"#, "\n",
//!     r#"{"type":"assistant.message","id":"3","parentId":"2","data":{"messageId":"m","content":"","toolRequests":[{"toolCallId":"c","name":"ls","arguments":{}}]}}"#, "\n",
//!     r#"{"type":"tool.execution_complete","id":"4","parentId":"3","data":{"toolCallId":"c","success":true,"result":{"content":"a.txt"}}}"#,
//! );
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!((conversation.format, roles), (Format::CopilotCli, vec![Role::User, Role::Assistant, Role::Tool]));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - `user.message`, `assistant.message`, `tool.execution_complete` and `system.message` are messages. The text of a
//!   user's message is its `transformedContent`, which the model was sent. Other events, and events that were not to be
//!   stored (`ephemeral`), are no messages.
//! - A user's message with a `source` other than the user or the loop of the autopilot comes from the program: it is
//!   context.
//! - Events with an `agentId` or a `parentToolCallId` come from a sub-agent: they are a side chain.
//! - A `session.compaction_complete` that has succeeded replaces the messages before its `session.compaction_start`.
//!   Its summary is a user's message, and the replaced messages are a branch. The file does not record which earlier
//!   messages Copilot keeps in addition to the summary. `session.context_cleared` takes out all earlier messages. Both,
//!   and a `session.truncation`, are [`ToolCompaction`](super::ToolCompaction)s. The summary cannot be left out.
//!
//! The writer changes texts, arguments and results, and leaves out calls and events. The event behind an omitted event
//! names the event before the omitted one as its `parentId`. A new message is refused. The form is that of the event
//! types of Copilot's SDK (`nodejs/src/generated/session-events.ts` of <https://github.com/github/copilot-sdk>, August
//! 2026).

mod event;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText).
pub const FORMAT: &str = super::Format::CopilotCli.as_str();

#[cfg(test)]
mod tests;
