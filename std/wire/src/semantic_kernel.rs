//! A `ChatHistory` of Semantic Kernel, in the form of its serializer.
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
//! - The name of a call is the plugin's name, a hyphen and the function's name: the models see this name.
//! - A tool message has its result twice, as text and as `FunctionResultContent`: the latter counts. A result that is
//!   only text has the id of its call in `Metadata`. Several results in one message are several messages.
//! - Usage is in `Metadata`.
//!
//! The writer changes texts, results and arguments, writes texts in the place of pictures, leaves out messages, and
//! adds messages.

mod message;
mod spec;
mod write;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText), and of its unknown parts.
pub const FORMAT: &str = super::Format::SemanticKernel.as_str();

#[cfg(test)]
mod tests;
