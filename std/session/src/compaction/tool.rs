//! Compaction as a tool of the model.

use serde_json::{Value, json};

use crate::message::{Str, ToolCall};
use crate::session::{CONTEXT_SOURCE, Tool};

/// The tool that [`AutoCompaction::with_tool`](super::AutoCompaction::with_tool) gives the model.
///
/// ```
/// use epitome_std::compaction::CompactTool;
/// use epitome_std::message::ToolCall;
///
/// assert_eq!(CompactTool::definition().name.as_str(), CompactTool::NAME);
/// let call = ToolCall::new("c1", CompactTool::NAME, r#"{"focus": "the failing test"}"#);
/// assert_eq!(CompactTool::focus(&call).as_deref(), Some("the failing test"));
/// ```
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "it has no fields")]
pub struct CompactTool;

/// The source id of the tools that a run answers by itself.
pub(crate) const OWN_TOOLS: &str = "run";

/// Maximum number of characters of a focus: one subject, not a page of text from elsewhere.
const FOCUS_CHARS_MAX: usize = 200;

impl CompactTool {
    /// Its name.
    pub const NAME: &str = "compact_history";

    /// The definition that is sent to the model. It is the same in each request: the provider's prompt cache keeps it.
    #[must_use]
    pub fn definition() -> Tool {
        let description = "Shortens the earlier part of this conversation, so that there is room for more. Call it between two \
             pieces of work, when the room that tool results report is short. The latest messages stay as they are.";
        let focus = "The subject that must stay known in detail.";
        let parameters = json!({
            "type": "object",
            "properties": { "focus": { "type": "string", "description": focus } },
            "additionalProperties": false,
        });
        let mut tool = Tool::new(Self::NAME, description, parameters);
        tool.metadata.insert(CONTEXT_SOURCE.into(), Value::from(OWN_TOOLS));
        tool
    }

    /// The subject that the model names in a call, in one line of at most 200 characters; `None` if it names none, and for arguments
    /// that cannot be read.
    #[must_use]
    pub fn focus(call: &ToolCall) -> Option<Str> {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let words: Vec<&str> = arguments.get("focus")?.as_str()?.split_whitespace().collect();
        let focus: String = words.join(" ").chars().take(FOCUS_CHARS_MAX).collect();
        (!focus.is_empty()).then(|| focus.into())
    }
}
