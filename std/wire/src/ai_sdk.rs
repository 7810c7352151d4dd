//! Messages of the Vercel AI SDK: `UIMessage` (`parts`), which applications store, and `ModelMessage` (`content`),
//! which the SDK sends.
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
//! - A message with `parts` is several messages: each step (`step-start`) is a message of the model, followed by the
//!   results of its tools. The SDK sends the same messages (`convertToModelMessages`).
//! - A tool part holds a call and its result. If the provider ran the tool (`providerExecuted`), the result stays in
//!   the message of the model. The SDK does not send a call that was not read to its end (`input-streaming`), and it is
//!   no call here.
//! - Data parts (`data-..`) and sources are not sent to a model, and are no parts. Files and approvals are parts. A
//!   tool part in the state `approval-requested` is a call and a request. A tool part in the state `approval-responded`
//!   has an answer too, among the results of the step.
//! - The tool invocations of version 4 (`tool-invocation`, `args`, `result`) are read like those of later versions.
//!
//! The messages are an array, an array under `messages` of an object, or one message in a line. The writer changes
//! texts, arguments and results, and leaves out parts and messages. The output of a tool stays JSON if it was an array
//! or an object and its new text is one too. Otherwise it becomes a text. A new message is a text.
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
