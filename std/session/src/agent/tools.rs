//! Tool runners and their outputs.

use core::fmt;
use core::future::Future;
use core::pin::Pin;

use epitome_core::message::Role;

use crate::message::{Message, Part, Str, ToolCall, ToolResult};

/// Runs one call.
pub(super) type ToolRunner = dyn Fn(ToolCall) -> ToolFuture + Send + Sync;

/// The future that the caller's closure returns for a call.
pub type ToolFuture = Pin<Box<dyn Future<Output = ToolOutput> + Send>>;

/// The output of a tool: sent to the model as the result of its call.
///
/// ```
/// use epitome_std::agent::ToolOutput;
///
/// assert!(!ToolOutput::new("forty-two").is_error);
/// assert!(ToolOutput::failed("there is no such file").is_error);
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content.
    pub parts: Vec<Part>,
    /// Whether it failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// The tool has done its work, and says this.
    #[must_use]
    pub fn new(text: impl Into<Str>) -> Self {
        Self { parts: vec![Part::Text(text.into())], is_error: false }
    }

    /// The tool has failed, and says why. The model may try something else.
    #[must_use]
    pub fn failed(text: impl Into<Str>) -> Self {
        Self { is_error: true, ..Self::new(text) }
    }

    pub(super) fn into_message(self, call_id: Str) -> Message {
        let mut result = ToolResult::new(call_id, self.parts);
        result.is_error = self.is_error;
        Message::new(Role::Tool, vec![Part::ToolResult(result)])
    }
}

impl fmt::Debug for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOutput")
            .field("parts", &self.parts.len())
            .field("is_error", &self.is_error)
            .finish()
    }
}
