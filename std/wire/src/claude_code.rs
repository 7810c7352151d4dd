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
//! - Lines name the line before them. The last message of the file and the lines before it are the active conversation; all other lines are
//!   side chains (threads of sub-agents) and branches, each a conversation of its own. A conversation is found again by its `id`, which is
//!   that of its last line: [`ReadOptions::leaf`](super::ReadOptions::leaf). Branches repeat the messages that they share with others.
//! - A response is written one block per line. Its lines are messages with one response id, and a planner keeps them
//!   together. Answers to parallel calls may hang on the line of their call: they belong to the conversation, after the
//!   last line of the response.
//! - The content of a message is read as by [`anthropic`](super::anthropic).
//! - A text of the tool in the user's place is no request: reminders, commands of its own and an interruption are
//!   [context](epitome_core::attribution::SourceKind::Context), an output of a command or of another agent is a tool's. A command with
//!   arguments is a request of a person, and so is the prompt that a command stands for.
//! - A `compact_boundary` begins a conversation, which has a [`ToolCompaction`](super::ToolCompaction); so does a summary
//!   (`isCompactSummary`) without one. The lines before it are a branch.
//! - A `summary` line names the conversation that ends with its `leafUuid`.
//! - A line that repeats the `uuid` of an earlier one is a copy, which some resumed sessions have, and is passed over. So
//!   are errors of the API that the tool wrote as messages: it does not send them either.
//!
//! Changed messages are written back, and conversations with messages left out, whose followers then name the message before the gap.
//! `toolUseResult`, which the tool shows to people beside a result, is not changed. A new text of the user or the model is a line of its
//! own, which the line behind it names; one of the model has the model `<synthetic>` and no usage. It is refused among the answers to
//! several calls at once.

mod ends;
mod line;
mod outline;
mod session;
mod spec;
mod tree;

pub(crate) use spec::SPEC;

#[cfg(test)]
mod tests;
