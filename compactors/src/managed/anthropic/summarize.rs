//! Compaction on request of the caller.

use std::borrow::ToOwned as _;
use std::format;
use std::string::{String, ToString as _};

use serde::Deserialize;
use serde_json::{Value, json};

use super::block::{CompactionBlock, is_signed};
use super::body::{Body, Response, array, blocks};
use super::cut::{check, no_summary, with_block_first};
use super::error::MappingError;

/// The name in `anthropic-beta` for the request for a summary, and for every later request with its block.
pub const ON_DEMAND_BETA: &str = "compact-2026-09-04";

/// Maximum number of characters of instructions, according to the API's documentation.
const INSTRUCTIONS_CHARS_MAX: usize = 16_384;

/// Default limit of the tokens of summary and thinking together, from the examples in the API's documentation.
const MAX_TOKENS: u64 = 4_096;

/// A request for a summary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summarize {
    instructions: Option<String>,
    max_tokens: Option<u64>,
}

impl Summarize {
    /// A request with the API's own prompt and the conversation's `max_tokens`.
    #[must_use]
    pub const fn new() -> Self {
        Self { instructions: None, max_tokens: None }
    }

    /// Replaces the API's prompt. The new prompt should name the content to keep, and forbid calls of tools.
    ///
    /// # Errors
    /// `BlankInstructions`; `LongInstructions` above 16,384 characters.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Result<Self, MappingError> {
        let instructions = instructions.into();
        if instructions.trim().is_empty() {
            return Err(MappingError::BlankInstructions);
        }
        let (chars, max) = (instructions.chars().count(), INSTRUCTIONS_CHARS_MAX);
        if chars > max {
            return Err(MappingError::LongInstructions { chars, max });
        }
        self.instructions = Some(instructions);
        Ok(self)
    }

    /// Sets the limit of the tokens of summary and thinking together. It should be several thousand tokens.
    #[must_use]
    pub const fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// The request for a summary of the first `cut` messages of `request`. It has the same model, system, tools and
    /// thinking, and not the kept messages.
    ///
    /// # Errors
    /// `NotTogether` for members that the API refuses together with `compaction`: `context_management`,
    /// `stop_sequences`, `tool_choice` of type `any` or `tool`, an output format, `task_budget.remaining`.
    /// `OpenCall`, `Joined`, `NothingToSummarize` or `NoSuchMessage` for an illegal cut
    /// ([`choose_cut`](super::choose_cut) finds a legal one). `Misplaced` or `Ambiguous` for blocks of earlier
    /// compactions that the API would refuse.
    pub fn request(&self, request: &str, cut: usize) -> Result<String, MappingError> {
        let body = Body::of(request)?;
        refuse_beside(&body)?;
        let messages = with_block_first(&body)?;
        check(&messages, cut)?;
        let older = array(messages.iter().take(cut).map(|message| message.text));
        let (compaction, tokens) = (self.to_value(), self.max_tokens.map(|tokens| tokens.to_string()));
        let tokens = tokens.as_deref().or_else(|| body.get("max_tokens"));
        Ok(body.with(&[
            ("max_tokens", tokens),
            ("messages", Some(&older)),
            ("compaction", Some(&compaction)),
        ]))
    }

    /// The request for a summary of all messages of `request`, which has no `max_tokens`. It extends the text of
    /// `request`. With `ended`, the last message must be from the model; otherwise the request is refused.
    pub(super) fn whole(&self, mut request: String, ended: bool) -> Result<String, MappingError> {
        let body = Body::of(&request)?;
        refuse_beside(&body)?;
        let messages = with_block_first(&body)?;
        check(&messages, messages.len())?;
        if ended && messages.last().is_some_and(|last| last.role != "assistant") {
            return Err(MappingError::Joined { message: messages.len() });
        }
        let tokens = self.max_tokens.unwrap_or(MAX_TOKENS);
        let last = format!(r#","max_tokens":{tokens},"compaction":{}}}"#, self.to_value());
        if request.pop() != Some('}') {
            return Err(MappingError::Shape { expected: "a request (an object)", line: 1, column: 1 });
        }
        request.push_str(&last);
        Ok(request)
    }

    /// The value of `compaction`.
    fn to_value(&self) -> String {
        let mut compaction = super::edits::typed("summarize");
        if let Some(instructions) = &self.instructions {
            compaction.insert("instructions".into(), Value::from(instructions.as_str()));
        }
        Value::Object(compaction).to_string()
    }
}

/// Checks that the request has no member that the API refuses together with `compaction`.
fn refuse_beside(body: &Body<'_>) -> Result<(), MappingError> {
    for field in ["context_management", "stop_sequences", "output_format"] {
        if body.get(field).is_some() {
            return Err(MappingError::NotTogether { field });
        }
    }
    // A member that is no object, or lacks the inner member, forces nothing. The API judges it.
    let parsed =
        |key: &str| body.get(key).and_then(|raw| serde_json::from_str::<Value>(raw).ok()).unwrap_or_default();
    let (choice, output) = (parsed("tool_choice"), parsed("output_config"));
    if matches!(choice.get("type").and_then(Value::as_str), Some("any" | "tool")) {
        return Err(MappingError::NotTogether { field: "tool_choice" });
    }
    for (pointer, field) in [
        ("/format", "output_config.format"),
        ("/task_budget/remaining", "output_config.task_budget.remaining"),
    ] {
        if output.pointer(pointer).is_some_and(|value| !value.is_null()) {
            return Err(MappingError::NotTogether { field });
        }
    }
    Ok(())
}

/// The response to a request for a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryAnswer {
    /// The block with the summary, from which the conversation continues.
    Written(CompactionBlock),
    /// There is no summary, and the history stays unchanged. The API still charges for the call.
    Missing(NoSummary),
}

/// The reason for a missing summary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoSummary {
    /// The summary was cut off: repeat with a larger `max_tokens`.
    MaxTokens,
    /// The prompt did not fit: repeat with shorter instructions or fewer messages.
    ContextExceeded,
    /// The model called a tool: repeat with instructions that forbid it.
    ToolUse,
    /// The request was declined.
    Refusal,
    /// The model wrote nothing.
    Silent,
    /// The call ended for another reason, or without a reason.
    Other(String),
}

impl SummaryAnswer {
    /// Reads a response.
    ///
    /// # Errors
    /// `Shape` if `response` is no response, or contains anything but one block; `Unsigned` and `EmptySummary` for
    /// a block that could not be sent back.
    pub fn read(response: &str) -> Result<Self, MappingError> {
        Ok(match signed_block(response)? {
            Ok(block) => Self::Written(CompactionBlock::signed(block)),
            Err(why) => Self::Missing(why),
        })
    }
}

/// The JSON of the block in `response`, or the reason for its absence.
///
/// # Errors
/// As [`SummaryAnswer::read`].
pub(super) fn signed_block(response: &str) -> Result<Result<&str, NoSummary>, MappingError> {
    let response = Response::of(response)?;
    let content = blocks(response.content)?;
    match (&*content, response.stop_reason.as_deref()) {
        ([block], Some("compaction")) if block.head.kind == "compaction" => {
            // A block without content has `null`. An empty text is an error.
            match is_signed(block)? {
                true => Ok(Ok(block.text)),
                false => Err(MappingError::Unsigned),
            }
        }
        ([], reason) if reason != Some("compaction") => Ok(Err(NoSummary::of(reason))),
        _ => Err(MappingError::Shape { expected: "one compaction block, or nothing", line: 1, column: 1 }),
    }
}

impl NoSummary {
    /// The `stop_reason`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::ContextExceeded => "model_context_window_exceeded",
            Self::ToolUse => "tool_use",
            Self::Refusal => "refusal",
            Self::Silent => "end_turn",
            Self::Other(reason) => reason,
        }
    }

    fn of(reason: Option<&str>) -> Self {
        let reason = reason.unwrap_or_default();
        let known = [Self::MaxTokens, Self::ContextExceeded, Self::ToolUse, Self::Refusal, Self::Silent];
        let known = known.into_iter().find(|known| known.as_str() == reason);
        known.unwrap_or_else(|| Self::Other(reason.to_owned()))
    }
}

/// The request with its first `replaced` messages replaced by `block`, which summarizes them. The other messages
/// stay byte for byte.
///
/// # Errors
/// `NoSuchMessage` if the request has fewer messages; `Ambiguous` if a kept message has a compaction block;
/// `NotTogether` if `request` asks for a summary itself, or has a compaction at a threshold, which the API refuses
/// together with a signed block.
pub fn replay(request: &str, replaced: usize, block: &CompactionBlock) -> Result<String, MappingError> {
    let body = Body::of(request)?;
    if body.get("compaction").is_some() {
        return Err(MappingError::NotTogether { field: "compaction" });
    }
    if has_threshold(&body) {
        return Err(MappingError::NotTogether { field: "context_management.edits.compact_20260112" });
    }
    let messages = body.messages()?;
    let Some(kept) = messages.get(replaced..) else {
        return Err(MappingError::NoSuchMessage { message: replaced, messages: messages.len() });
    };
    no_summary(kept, replaced)?;
    let first = block.message();
    let all = core::iter::once(&*first).chain(kept.iter().map(|message| message.text));
    Ok(body.with(&[("messages", Some(&array(all)))]))
}

fn has_threshold(body: &Body<'_>) -> bool {
    #[derive(Deserialize)]
    struct Edits {
        edits: std::vec::Vec<Value>,
    }
    let edits = body.get("context_management").and_then(|raw| serde_json::from_str::<Edits>(raw).ok());
    let name = json!(super::threshold::NAME);
    edits.is_some_and(|list| list.edits.iter().any(|edit| edit.get("type") == Some(&name)))
}
