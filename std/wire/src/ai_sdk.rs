//! Messages of the Vercel AI SDK: `UIMessage` (`parts`), which applications store, and `ModelMessage` (`content`), which is sent.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = r#"[
//!   {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Which files?"}]},
//!   {"id": "2", "role": "assistant", "parts": [{"type": "step-start"},
//!     {"type": "tool-ls", "toolCallId": "c", "state": "output-available", "input": {}, "output": ["a.txt"]},
//!     {"type": "step-start"}, {"type": "text", "text": "One: a.txt."}]}]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! assert_eq!(conversation.format, Format::AiSdk);
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A message with `parts` is several messages: each step (`step-start`) is one of the model, followed by the results of its tools.
//!   The SDK sends it so (`convertToModelMessages`).
//! - A tool part holds a call and its result. Where the provider ran the tool (`providerExecuted`), the result stays in the message of
//!   the model. A call that was not read to its end (`input-streaming`) is not sent, and is none.
//! - Data parts (`data-..`) and sources are not sent to a model, and are no parts. Files and approvals are parts: a tool part
//!   in the state `approval-requested` is a call and a request, one in `approval-responded` has an answer too, among the results of the step.
//! - The tool invocations of version 4 (`tool-invocation`, `args`, `result`) are read as those of later versions.
//!
//! Messages stand in an array, in an object under `messages`, or one in a line. Changed texts, arguments and results are written back, and
//! parts and messages left out. The output of a tool stays JSON if it was an array or an object and its new text is one too; else it
//! becomes a text. A new message is a text.
//!
//! The form is that of version 6 (<https://github.com/vercel/ai>, `ui-messages.ts` and `content-part.ts` of August 2026).

mod model;
mod spec;
mod ui;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::AiSdk.as_str();

#[cfg(test)]
mod tests;
