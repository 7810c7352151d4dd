//! Dialogues of datasets since ShareGPT: objects with `conversations`, alone, in a list, or one per line.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{ReadOptions, read};
//!
//! let text = r#"[{"id": "d1", "system": "Be brief.", "conversations": [
//!   {"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes?"}]}]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::System, Role::User, Role::Assistant]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - `from` is `human` or `user`; `gpt`, `assistant`, `chatgpt`, `bing`, `bard` or `model`; `system`; `function_call`; `observation` or
//!   `tool`. Any other is refused.
//! - A `function_call` holds a call as JSON, `name` and `arguments`, or a list of calls. The observations behind it are
//!   its results. Neither has an id: all calls share one id, and the results answer them in order. Any other
//!   `function_call` is a text of the model, and an observation without a call is context.
//!
//! The writer changes texts, results and arguments, leaves out messages, and adds texts. The form of calls is that of
//! LLaMA-Factory (`data/README.md` of <https://github.com/hiyouga/LLaMA-Factory>).

mod spec;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText).
pub const FORMAT: &str = super::Format::ShareGpt.as_str();

#[cfg(test)]
mod tests;
