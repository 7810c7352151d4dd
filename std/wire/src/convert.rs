//! Conversion of messages from one format to another, with a list of the content that has no counterpart there.
//!
//! ```
//! use epitome_message::Message;
//! use epitome_wire::{Format, convert};
//!
//! let messages = [Message::system("Be brief."), Message::user("Hi")];
//! let converted = convert(&messages, Format::Anthropic)?;
//! assert_eq!(converted.text, r#"{"system":"Be brief.","messages":[{"role":"user","content":"Hi"}]}"#);
//! assert!(converted.losses.is_empty());
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! Rules of the conversion:
//!
//! - Instructions go to the place that the target requires: a field of the request (Anthropic, Gemini) or the list of
//!   messages.
//! - An id of a call stays if the target accepts it. Otherwise, and if an id is used twice, calls are numbered
//!   `call_1`, `call_2` in their order. The same messages always give the same ids.
//! - The name of a tool stays if the target accepts it. Otherwise each refused character becomes `_`, which is a loss.
//! - A turn of white space alone is left out for Anthropic, which refuses it.
//! - Arguments are a JSON object in every target. Other arguments, such as the text for a custom tool, become
//!   `{"input": ..}`, which is a loss. Custom tools, shells and computers keep their own form only in the format that
//!   they came from.
//! - Sealed reasoning and compactions of a provider go back only to the format that they came from. Only its provider
//!   can read them, and content that was signed for one vendor is never sent to another. Readable reasoning goes to
//!   Chat Completions, because programs replay it there. The other formats take only the reasoning that they sealed
//!   themselves.
//! - A message in which a provider ran a tool goes back to Anthropic, Responses or Gemini, if it came from there, with
//!   all content that the provider wrote.
//! - Fields that a message of this crate does not have are lost, even if the target is the format that they came from.
//!   An item of Responses keeps all its fields there but the `id`, which the service refuses if it has not stored the item.
//! - The result is legal for the target. Messages that [`repair`](epitome_core::repair) leaves out, moves or inserts
//!   are losses too.
//!
//! To write messages back in the format that they came from, use [`write_back`](super::write_back): it loses nothing.

mod fields;
mod ids;
mod legal;
mod loss;
mod own_form;
mod parts;
mod received;
mod target;

use epitome_message::Message;

use super::{Format, WireError};

use parts::{Prepared, Told};
use target::Target;

pub use loss::{ConversionLoss, ConversionLossKind};
pub use received::received;

/// The formats that are targets of a conversion: those of providers and of frameworks.
pub const CONVERSION_TARGETS: [Format; 7] = target::TARGETS;

/// A conversation in another format.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Converted {
    /// The part of a request that holds the conversation, as one JSON object: `messages` (and `system`), `input`, or
    /// `contents` (and `systemInstruction`). For a framework, the list of messages.
    pub text: String,
    /// The content without a counterpart, in the order of the messages.
    pub losses: Vec<ConversionLoss>,
}

/// Converts `messages` to the format `to`, one of [`CONVERSION_TARGETS`].
///
/// ```
/// use epitome_message::{Message, Part, ToolCall};
/// use epitome_core::message::Role;
/// use epitome_wire::{Format, convert};
///
/// // The arguments of a custom tool are no JSON.
/// let call = Part::ToolCall(ToolCall::new("c1", "apply_patch", "*** Begin Patch"));
/// let messages = [Message::new(Role::Assistant, vec![call]), Message::tool("c1", "done")];
/// let converted = convert(&messages, Format::Anthropic)?;
/// assert!(converted.text.contains(r#"{"input":"*** Begin Patch"}"#));
/// for loss in &converted.losses {
///     println!("message {}: {loss:?}", loss.message);
/// }
/// assert_eq!(converted.losses[0].message, 0);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// `Unsupported` for another target.
pub fn convert<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    to: Format,
) -> Result<Converted, WireError> {
    converted(messages, to, legal::repaired)
}

/// Converts the new messages of a conversation whose earlier messages the target's service stores. A result may answer
/// a call that only the service knows, so nothing is repaired.
///
/// ```
/// use epitome_message::Message;
/// use epitome_wire::{Format, convert, convert_continued};
///
/// let new = [Message::tool("call_7", "Rain.")];
/// assert!(convert_continued(&new, Format::OpenaiResponses)?.text.contains(r#""call_id":"call_7""#));
/// // Alone it would be nobody's.
/// assert!(!convert(&new, Format::OpenaiResponses)?.text.contains("call_7"));
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// As [`convert`].
pub fn convert_continued<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    to: Format,
) -> Result<Converted, WireError> {
    converted(messages, to, |prepared, _, _| prepared.into_iter().map(|prepared| prepared.message).collect())
}

/// Converts the messages to the form of the target, lets `settle` choose the messages to send, and writes the text.
fn converted<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    to: Format,
    settle: impl FnOnce(Vec<Prepared<'m>>, &Target, &mut Vec<ConversionLoss>) -> Vec<Told<'m>>,
) -> Result<Converted, WireError> {
    let target = Target::of(to)?;
    let mut losses = Vec::new();
    let prepared = parts::prepare(messages, &target, &mut losses);
    let text = target.write(&settle(prepared, &target, &mut losses))?;
    losses.sort_by_key(|loss| loss.message);
    Ok(Converted { text, losses })
}

impl core::fmt::Debug for Converted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Converted").field("bytes", &self.text.len()).field("losses", &self.losses).finish()
    }
}

#[cfg(test)]
pub(crate) mod tests;
