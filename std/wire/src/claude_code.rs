//! Session files of Claude Code: JSONL in `~/.claude/projects/PROJECT/SESSION.jsonl`.
//!
//! ```
//! use epitome_wire::{ReadOptions, Relation, read};
//!
//! let text = concat!(
//!     r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Hi"}}"#, "\n",
//!     r#"{"type":"user","uuid":"u2","parentUuid":"u1","sessionId":"s","message":{"role":"user","content":"No, wait"}}"#, "\n",
//!     r#"{"type":"user","uuid":"u3","parentUuid":"u1","sessionId":"s","message":{"role":"user","content":"Go on"}}"#, "\n",
//! );
//! let transcript = read(text, &ReadOptions::default())?;
//! let [active, abandoned] = transcript.conversations() else { panic!() };
//! assert_eq!((active.entries.len(), abandoned.relation), (2, Relation::Branch(0)));
//!
//! let other = read(text, &ReadOptions::default().with_leaf("u2"))?;
//! assert_eq!(other.conversations()[0].entries[1].message().id(), Some("u2"));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! How its lines are read:
//!
//! - A line names the line before it. The last message of the file and the lines before it are the active conversation.
//!   All other lines are side chains (threads of sub-agents) and branches, each a conversation of its own. The `id` of
//!   a conversation is the id of its last line, and selects the conversation:
//!   [`ReadOptions::leaf`](super::ReadOptions::leaf). Branches repeat the messages that they share with others.
//! - A response is written with one block per line. Its lines are messages with one response id, and a planner keeps
//!   them together. Answers to parallel calls may name the line of their call as their parent: they belong to the
//!   conversation, after the last line of the response.
//! - [`anthropic`](super::anthropic) reads the content of a message.
//! - A text that the tool wrote in the user's place is no request. Reminders, commands of the tool and an interruption
//!   are [context](epitome_core::attribution::SourceKind::Context). An output of a command or of another agent is a
//!   tool's. A command with arguments is a request of a person, and so is the prompt that a command stands for.
//! - A `compact_boundary` begins a conversation, which has a [`ToolCompaction`](super::ToolCompaction); so does a summary
//!   (`isCompactSummary`) without one. The lines before it are a branch.
//! - A `summary` line names the conversation that ends with its `leafUuid`.
//! - A line that repeats the `uuid` of an earlier line is a copy, as in some resumed sessions, and is skipped. Errors
//!   of the API that the tool wrote as messages are skipped too: the tool does not send them either.
//!
//! The writer changes messages. It also leaves out messages, and the lines that follow a gap then name the message
//! before it. The writer does not change `toolUseResult`, which the tool shows to people with a result. A new text of
//! the user or the model is a line of its own, and the line behind it names it. A new text of the model has the model
//! `<synthetic>` and no usage. A new text among the answers to several parallel calls is refused.

mod ends;
mod line;
mod outline;
mod session;
mod spec;
mod tree;

pub(crate) use spec::SPEC;

#[cfg(test)]
mod tests;
