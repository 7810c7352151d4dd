//! Context editing: content that the API clears on its side before the model sees it.

use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_core::ToolName;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::Body;
use super::error::{MappingError, shape};
use super::threshold::ThresholdCompaction;
use crate::{ReasoningClearing, ToolResultClearing};

/// The name in `anthropic-beta` that clearing needs.
pub const CONTEXT_EDITING_BETA: &str = "context-management-2025-06-27";

/// The context edits of one request, in the order that the API requires: thinking first.
///
/// The server applies them to each request anew. The client continues to send its whole history.
///
/// ```
/// use epitome_compactors::managed::anthropic::{ClearThinking, ClearToolUses, ContextEdits, EditTrigger};
///
/// let edits = ContextEdits::new()
///     .with_tool_uses(ClearToolUses::new().with_trigger(EditTrigger::InputTokens(30_000)).with_keep(5))
///     .with_thinking(ClearThinking::keep_all());
/// assert_eq!(edits.betas(), ["context-management-2025-06-27"]);
/// assert_eq!(
///     edits.to_value().to_string(),
///     r#"{"edits":[{"keep":"all","type":"clear_thinking_20251015"},{"keep":{"type":"tool_uses","value":5},"trigger":{"type":"input_tokens","value":30000},"type":"clear_tool_uses_20250919"}]}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextEdits {
    thinking: Option<ClearThinking>,
    tool_uses: Option<ClearToolUses>,
    compaction: Option<ThresholdCompaction>,
}

impl ContextEdits {
    /// A list without edits.
    #[must_use]
    pub const fn new() -> Self {
        Self { thinking: None, tool_uses: None, compaction: None }
    }

    /// Adds the clearing of thinking.
    #[must_use]
    pub const fn with_thinking(mut self, edit: ClearThinking) -> Self {
        self.thinking = Some(edit);
        self
    }

    /// Adds the clearing of tool uses.
    #[must_use]
    pub fn with_tool_uses(mut self, edit: ClearToolUses) -> Self {
        self.tool_uses = Some(edit);
        self
    }

    /// Adds a compaction at a threshold.
    #[must_use]
    pub fn with_compaction(mut self, edit: ThresholdCompaction) -> Self {
        self.compaction = Some(edit);
        self
    }

    /// The names in `anthropic-beta` that these edits need.
    #[must_use]
    pub fn betas(&self) -> Vec<&'static str> {
        let clears = self.thinking.is_some() || self.tool_uses.is_some();
        let clears = clears.then_some(CONTEXT_EDITING_BETA);
        clears.into_iter().chain(self.compaction.as_ref().map(|_| super::THRESHOLD_BETA)).collect()
    }

    /// The value of `context_management`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let thinking = self.thinking.map(ClearThinking::to_value);
        let tool_uses = self.tool_uses.as_ref().map(ClearToolUses::to_value);
        let compaction = self.compaction.as_ref().map(ThresholdCompaction::to_value);
        json!({ "edits": thinking.into_iter().chain(tool_uses).chain(compaction).collect::<Vec<_>>() })
    }

    /// The request with these edits instead of its own. Its members are in the order of their names; nothing else
    /// changes.
    ///
    /// # Errors
    /// If `request` is no request, or asks for a summary, which excludes edits.
    pub fn apply(&self, request: &str) -> Result<String, MappingError> {
        let body = Body::of(request)?;
        match body.get("compaction") {
            Some(_) => Err(MappingError::NotTogether { field: "context_management" }),
            None => Ok(body.with(&[("context_management", Some(&self.to_value().to_string()))])),
        }
    }
}

/// The condition for the clearing of tool uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditTrigger {
    /// The request has more than this number of tokens.
    InputTokens(u64),
    /// The request has more than this number of tool uses.
    ToolUses(u32),
}

/// The tools whose arguments are cleared together with the results.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ClearInputs {
    /// No tools.
    #[default]
    None,
    /// All tools.
    All,
    /// These tools.
    Of(Vec<String>),
}

/// The edit `clear_tool_uses_20250919`. The API sets the parameters without a value: a trigger of 100,000 input
/// tokens, three tool uses kept.
///
/// <https://platform.claude.com/docs/en/build-with-claude/context-editing>
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClearToolUses {
    trigger: Option<EditTrigger>,
    keep: Option<u32>,
    clear_at_least: Option<u64>,
    exclude_tools: Vec<String>,
    inputs: ClearInputs,
}

impl ClearToolUses {
    /// The edit with the API's defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The edit that corresponds to `clearing`: the same number of kept uses, the same least amount, the same
    /// spared tools.
    ///
    /// `tools` are the names of all tools of the conversation, because a strategy knows only digests of names. Set
    /// the trigger separately: a strategy has none. The note in the place of a result has no counterpart; the API
    /// writes its own.
    ///
    /// ```
    /// use epitome_compactors::ToolResultClearing;
    /// use epitome_compactors::managed::anthropic::{ClearToolUses, EditTrigger};
    /// use epitome_core::ToolName;
    ///
    /// let spared = [ToolName::new("web_search")];
    /// let clearing = ToolResultClearing::new().keep(5).exclude_tools(&spared);
    /// let edit = ClearToolUses::like(&clearing, ["read_file", "web_search"])?
    ///     .with_trigger(EditTrigger::InputTokens(80_000));
    /// let same = ClearToolUses::new().with_keep(5).with_exclude_tools(["web_search"]);
    /// assert_eq!(edit, same.with_trigger(EditTrigger::InputTokens(80_000)));
    /// # Ok::<(), epitome_compactors::managed::anthropic::MappingError>(())
    /// ```
    ///
    /// # Errors
    /// `UnknownTool` if `clearing` spares a tool that is not among `tools`.
    pub fn like<'t>(
        clearing: &ToolResultClearing<'_>,
        tools: impl IntoIterator<Item = &'t str>,
    ) -> Result<Self, MappingError> {
        let tools: Vec<&str> = tools.into_iter().collect();
        let is_known = |spared: &ToolName| tools.iter().any(|name| ToolName::new(name) == *spared);
        if !clearing.exclude_tools.iter().all(is_known) {
            return Err(MappingError::UnknownTool);
        }
        let spared = tools.into_iter().filter(|name| clearing.exclude_tools.contains(&ToolName::new(name)));
        let edit = Self::new().with_keep(clearing.keep).with_exclude_tools(spared);
        let edit = if clearing.clear_inputs { edit.with_inputs(ClearInputs::All) } else { edit };
        Ok(match clearing.clear_at_least {
            0 => edit,
            tokens => edit.with_clear_at_least(tokens),
        })
    }

    /// Sets the condition for the clearing.
    #[must_use]
    pub const fn with_trigger(mut self, trigger: EditTrigger) -> Self {
        self.trigger = Some(trigger);
        self
    }

    /// Sets the number of the newest tool uses that stay.
    #[must_use]
    pub const fn with_keep(mut self, tool_uses: u32) -> Self {
        self.keep = Some(tool_uses);
        self
    }

    /// Sets the least number of tokens that a clearing must free: each clearing voids the prompt cache from the
    /// first cleared use on.
    #[must_use]
    pub const fn with_clear_at_least(mut self, tokens: u64) -> Self {
        self.clear_at_least = Some(tokens);
        self
    }

    /// Sets the tools whose uses are never cleared.
    #[must_use]
    pub fn with_exclude_tools<'t>(mut self, tools: impl IntoIterator<Item = &'t str>) -> Self {
        self.exclude_tools = tools.into_iter().map(String::from).collect();
        self
    }

    /// Sets the tools whose arguments are cleared too.
    #[must_use]
    pub fn with_inputs(mut self, inputs: ClearInputs) -> Self {
        self.inputs = inputs;
        self
    }

    fn to_value(&self) -> Value {
        let mut edit = typed("clear_tool_uses_20250919");
        if let Some(trigger) = self.trigger {
            let trigger = match trigger {
                EditTrigger::InputTokens(tokens) => amount("input_tokens", tokens),
                EditTrigger::ToolUses(uses) => amount("tool_uses", uses.into()),
            };
            edit.insert("trigger".into(), trigger);
        }
        if let Some(keep) = self.keep {
            edit.insert("keep".into(), amount("tool_uses", keep.into()));
        }
        if let Some(tokens) = self.clear_at_least {
            edit.insert("clear_at_least".into(), amount("input_tokens", tokens));
        }
        if !self.exclude_tools.is_empty() {
            edit.insert("exclude_tools".into(), json!(self.exclude_tools));
        }
        match &self.inputs {
            ClearInputs::None => {}
            ClearInputs::All => drop(edit.insert("clear_tool_inputs".into(), Value::Bool(true))),
            ClearInputs::Of(tools) => drop(edit.insert("clear_tool_inputs".into(), json!(tools))),
        }
        Value::Object(edit)
    }
}

/// The edit `clear_thinking_20251015`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClearThinking {
    /// Number of the newest turns with thinking that keep it; `None` for all.
    turns: Option<u32>,
}

impl ClearThinking {
    /// Keeps all thinking, whatever the model's default is. The edit then never voids the prompt cache.
    #[must_use]
    pub const fn keep_all() -> Self {
        Self { turns: None }
    }

    /// Keeps the thinking of this number of the newest turns with thinking, at least one.
    ///
    /// # Errors
    /// `TooSmall` if the number is 0.
    pub const fn keep_turns(turns: u32) -> Result<Self, MappingError> {
        match turns {
            0 => Err(MappingError::TooSmall { parameter: "keep", given: 0, min: 1 }),
            turns => Ok(Self { turns: Some(turns) }),
        }
    }

    fn to_value(self) -> Value {
        let keep = self.turns.map_or_else(|| json!("all"), |turns| amount("thinking_turns", turns.into()));
        let mut edit = typed("clear_thinking_20251015");
        edit.insert("keep".into(), keep);
        Value::Object(edit)
    }
}

/// Keeps as many turns as the strategy, and always the current turn. The strategy counts turns of the user. The API
/// counts answers with thinking, of which a turn with tools has several: it may clear more.
impl From<&ReasoningClearing> for ClearThinking {
    fn from(clearing: &ReasoningClearing) -> Self {
        Self { turns: Some(clearing.turns_kept()) }
    }
}

/// An edit that the API made to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum AppliedEdit {
    /// Tool uses were cleared.
    #[serde(rename = "clear_tool_uses_20250919")]
    ToolUses {
        /// Number of tool uses that were cleared.
        #[serde(rename = "cleared_tool_uses")]
        tool_uses: u64,
        /// Number of input tokens that were cleared.
        #[serde(rename = "cleared_input_tokens")]
        input_tokens: u64,
    },
    /// Thinking was cleared.
    #[serde(rename = "clear_thinking_20251015")]
    Thinking {
        /// Number of turns whose thinking was cleared.
        #[serde(rename = "cleared_thinking_turns")]
        turns: u64,
        /// Number of input tokens that were cleared.
        #[serde(rename = "cleared_input_tokens")]
        input_tokens: u64,
    },
    /// An edit of an unknown kind.
    #[serde(other)]
    Other,
}

/// The edits that were applied according to `response`; none if it reports none. In a stream they are in the last
/// `message_delta`, which can be passed unchanged.
///
/// ```
/// use epitome_compactors::managed::anthropic::{AppliedEdit, applied_edits};
///
/// let response = r#"{"type": "message", "content": [], "context_management": {"applied_edits": [
///   {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50000}]}}"#;
/// assert_eq!(applied_edits(response)?, [AppliedEdit::ToolUses { tool_uses: 8, input_tokens: 50_000 }]);
/// # Ok::<(), epitome_compactors::managed::anthropic::MappingError>(())
/// ```
///
/// # Errors
/// `Shape` if `response` is no response.
pub fn applied_edits(response: &str) -> Result<Vec<AppliedEdit>, MappingError> {
    #[derive(Deserialize)]
    struct Response {
        context_management: Option<Report>,
    }
    #[derive(Deserialize)]
    struct Report {
        #[serde(default)]
        applied_edits: Vec<AppliedEdit>,
    }
    let response: Response =
        serde_json::from_str(response).map_err(|error| shape("a response with `applied_edits`", &error))?;
    Ok(response.context_management.map(|report| report.applied_edits).unwrap_or_default())
}

/// An edit that has only its type so far.
pub(super) fn typed(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".into(), Value::from(name))])
}

pub(super) fn amount(of: &str, value: u64) -> Value {
    json!({ "type": of, "value": value })
}
