//! Chat sessions of VS Code, as GitHub Copilot has them: the JSON documents in `chatSessions`, and the output of `Chat: Export Chat`.
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
//! - A request is a message of the user, and the answer to it. The model's texts of each round, its calls and their results are those of
//!   `result.metadata`, where they are there; otherwise the texts of the `response` are the answer, and calls are not known.
//! - A result that is a tree to be rendered is read as the texts in it.
//! - Requests that were undone (`isHidden`, `shouldBeRemovedOnSend`) are no messages. They stay in the file.
//!
//! Changed texts, arguments and results are written back, and calls and requests left out. The `response` repeats some of it for people,
//! and is not changed with it. A new message is refused. The newer logs of changes (`kind` and `v` on each line) are not read. The form is
//! that of the sources of VS Code and Copilot Chat (`ISerializableChatData` in `chatModel.ts` of <https://github.com/microsoft/vscode>, and
//! `IToolCallRound` of <https://github.com/microsoft/vscode-copilot-chat>, early 2026).

mod message;
mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText).
pub const FORMAT: &str = super::Format::CopilotChat.as_str();

#[cfg(test)]
mod tests;
