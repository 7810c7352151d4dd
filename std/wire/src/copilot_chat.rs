//! Chat sessions of VS Code with GitHub Copilot: the JSON documents in `chatSessions`, and the output of `Chat: Export
//! Chat`.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"{"version": 3, "sessionId": "s", "requests": [{"requestId": "r", "message": {"text": "Which files?", "parts": []},
//!   "response": [{"value": "One."}], "result": {"metadata": {
//!     "toolCallRounds": [{"response": "", "toolCalls": [{"id": "c", "name": "ls", "arguments": "{}"}]}, {"response": "One.", "toolCalls": []}],
//!     "toolCallResults": {"c": {"content": [{"value": "a.txt"}]}}}}}]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!(conversation.format, Format::CopilotChat);
//! assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A request is a message of the user and its answer. The model's texts of each round, its calls and their results
//!   come from `result.metadata`, if it has them. Otherwise the texts of the `response` are the answer, and the calls
//!   are unknown.
//! - A result that is a tree to be rendered is read as the texts in it.
//! - Requests that were undone (`isHidden`, `shouldBeRemovedOnSend`) are no messages. They stay in the file.
//!
//! The writer changes texts, arguments and results, and leaves out calls and requests. The `response` repeats some of
//! the texts for people, and the writer does not change it. A new message is refused. The newer logs of changes (`kind`
//! and `v` on each line) are not read. The form is that of the sources of VS Code and Copilot Chat
//! (`ISerializableChatData` in `chatModel.ts` of <https://github.com/microsoft/vscode>, and `IToolCallRound` of
//! <https://github.com/microsoft/vscode-copilot-chat>, early 2026).

mod message;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText).
pub const FORMAT: &str = super::Format::CopilotChat.as_str();

#[cfg(test)]
mod tests;
