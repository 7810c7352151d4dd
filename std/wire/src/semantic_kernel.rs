//! A `ChatHistory` of Semantic Kernel, as its serializer writes it.
//!
//! ```
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = "\u{FEFF}[{\"Role\":{\"Label\":\"user\"},\"Items\":[{\"$type\":\"TextContent\",\"Text\":\"Hi\"}]}]";
//! let transcript = read(text, &ReadOptions::default())?;
//! assert_eq!(transcript.conversations()[0].format, Format::SemanticKernel);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A function is called by its plugin's name, a hyphen and its own: the name that the models see.
//! - A tool's message has its result twice, as text and as `FunctionResultContent`: the latter counts. One that is only text names its call
//!   in `Metadata`. Several results in one message are several messages.
//! - Usage stands in `Metadata`.
//!
//! Written back are changed texts, results and arguments, texts in the place of pictures, messages left out, and new messages.

mod message;
mod spec;
mod write;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::SemanticKernel.as_str();

#[cfg(test)]
mod tests;
