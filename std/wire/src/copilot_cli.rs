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
//! - `user.message`, `assistant.message`, `tool.execution_complete` and `system.message` are messages; what the model was sent of a
//!   user's message is its `transformedContent`. Other events, and those that were not to be stored (`ephemeral`), are none.
//! - A user's message with a `source` other than the user, or of the loop of the autopilot, is what the program says: context.
//! - Events with an `agentId`, or with a `parentToolCallId`, are those of a sub-agent: a side chain.
//! - A `session.compaction_complete` that has succeeded stands for what was said before its `session.compaction_start`. Its summary is a
//!   user's message, and what it stands for is a branch; which earlier messages Copilot keeps beside it is not told in the file.
//!   `session.context_cleared` takes out all that was said. Both, and a `session.truncation`, are
//!   [`ToolCompaction`](super::ToolCompaction)s; the summary cannot be left out.
//!
//! Written back are changed texts, arguments and results, and calls and events left out; the event behind one that is left out names, as
//! its `parentId`, the one before it. A new message is refused. The form is that of the event types of Copilot's SDK
//! (`nodejs/src/generated/session-events.ts` of <https://github.com/github/copilot-sdk>, August 2026).

mod event;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText).
pub const FORMAT: &str = super::Format::CopilotCli.as_str();

#[cfg(test)]
mod tests;
