//! Contents of Gemini's API: requests, responses, arrays of contents. Keys are in camel case or, from some clients, in
//! snake case.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{ReadOptions, read};
//!
//! let text = r#"{"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [
//!   {"role": "user", "parts": [{"text": "Weather in Oslo?"}]},
//!   {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": "x"}]},
//!   {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"output": "rain"}}}]}
//! ]}"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! How its parts are read:
//!
//! - `systemInstruction`, a field next to the contents, is a system message before them.
//! - A user's content with function responses is split: each response is a tool message, and other parts between them
//!   are the user's.
//! - A call without an id gets one, `gemini:STEP:ORDINAL`, and the responses of its step pair with it by name, in order.
//!   Such an id is never written.
//! - A response that is only `{"output"}`, `{"result"}` or `{"error"}` with a text is that text. Any other response is
//!   its JSON.
//! - A `thought` is reasoning. A `thoughtSignature` of a thought is its sealed part. On another part it is sealed
//!   reasoning without a text before that part.
//! - `inlineData` and `fileData` are media. Code that the provider ran, and calls of the provider's own tools, are
//!   hosted calls.
//! - Empty texts are no parts. Any other part stays unchanged.

mod content;
mod encode;
mod part;
mod spec;
mod write;

pub(crate) use content::{Ids, messages, runs};
pub(crate) use part::{Unit, unit};
pub(crate) use spec::SPEC;
pub(crate) use write::write_record as write_content;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::Gemini.as_str();

/// Prefix of an id that the reader assigned, because the text has none.
const ASSIGNED: &str = "gemini:";

/// Whether the reader assigned this id of a call, because the text has none. Such an id depends on the calls before it,
/// and is never written.
///
/// ```
/// use epitome_wire::gemini::is_assigned_id;
///
/// assert!(is_assigned_id("gemini:1:0") && !is_assigned_id("call_1"));
/// ```
#[must_use]
pub fn is_assigned_id(id: &str) -> bool {
    id.starts_with(ASSIGNED)
}

#[cfg(test)]
mod tests;
