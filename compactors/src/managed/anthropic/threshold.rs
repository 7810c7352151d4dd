//! Compaction by the API when a request is larger than a trigger.

use std::format;
use std::string::{String, ToString as _};

use serde_json::Value;

use super::block::CompactionBlock;
use super::body::{Body, Response, array, blocks, quote};
use super::error::MappingError;

/// The name in `anthropic-beta` for the request, and for every later request with one of its blocks.
pub const THRESHOLD_BETA: &str = "compact-2026-01-12";

/// The default trigger, in input tokens.
pub const TRIGGER_DEFAULT: u64 = 150_000;

/// The smallest trigger that the API accepts, in input tokens.
pub const TRIGGER_MIN: u64 = 50_000;

/// The name of the edit on the wire.
pub(super) const NAME: &str = "compact_20260112";

/// The edit `compact_20260112`, for [`ContextEdits`](super::ContextEdits). Every later request that contains one of
/// its blocks needs the edit too.
///
/// <https://platform.claude.com/docs/en/build-with-claude/compaction-threshold>
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThresholdCompaction {
    trigger: u64,
    pause: bool,
    instructions: Option<String>,
}

impl Default for ThresholdCompaction {
    fn default() -> Self {
        Self { trigger: TRIGGER_DEFAULT, pause: false, instructions: None }
    }
}

impl ThresholdCompaction {
    /// An edit with a trigger of 150,000 input tokens, without a pause, with the API's own prompt.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of input tokens at which the service compacts.
    ///
    /// # Errors
    /// `TooSmall` below [`TRIGGER_MIN`].
    pub fn with_trigger(mut self, input_tokens: u64) -> Result<Self, MappingError> {
        if input_tokens < TRIGGER_MIN {
            let (parameter, given, min) = ("trigger", input_tokens, TRIGGER_MIN);
            return Err(MappingError::TooSmall { parameter, given, min });
        }
        self.trigger = input_tokens;
        Ok(self)
    }

    /// Sets whether the response ends with the block, so that recent messages can be added before the model
    /// continues.
    #[must_use]
    pub const fn with_pause(mut self, pause: bool) -> Self {
        self.pause = pause;
        self
    }

    /// Replaces the API's prompt.
    ///
    /// # Errors
    /// `BlankInstructions` if `instructions` is blank.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Result<Self, MappingError> {
        let instructions = instructions.into();
        if instructions.trim().is_empty() {
            return Err(MappingError::BlankInstructions);
        }
        self.instructions = Some(instructions);
        Ok(self)
    }

    pub(super) fn to_value(&self) -> Value {
        let mut edit = super::edits::typed(NAME);
        edit.insert("trigger".into(), super::edits::amount("input_tokens", self.trigger));
        edit.insert("pause_after_compaction".into(), self.pause.into());
        if let Some(instructions) = &self.instructions {
            edit.insert("instructions".into(), instructions.as_str().into());
        }
        Value::Object(edit)
    }
}

/// The compaction at a threshold in a response.
///
/// ```
/// use epitome_compactors::managed::anthropic::ThresholdOutcome;
///
/// let failed = r#"{"content": [{"type": "compaction", "content": null}, {"type": "text", "text": "Yes."}]}"#;
/// assert_eq!(ThresholdOutcome::read(failed)?, ThresholdOutcome::Failed);
/// let paused = r#"{"content": [{"type": "compaction", "content": "So far.."}], "stop_reason": "compaction"}"#;
/// let ThresholdOutcome::Compacted { block, paused: true } = ThresholdOutcome::read(paused)? else { unreachable!() };
/// assert_eq!(block.text()?, "So far..");
/// # Ok::<(), epitome_compactors::managed::anthropic::MappingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThresholdOutcome {
    /// There was no compaction.
    None,
    /// The API could not write a summary and continued with the whole request. The block has no content, and may be
    /// sent back.
    Failed,
    /// The API continued from this block, the latest of the response.
    Compacted {
        /// The block.
        block: CompactionBlock,
        /// Whether the response ends with the block: send another request, and the model continues.
        paused: bool,
    },
}

impl ThresholdOutcome {
    /// Reads a response. For its usage, use [`reported`](epitome_std::wire::usage::reported); for the usage of the
    /// compaction, [`compactions`](epitome_std::wire::usage::compactions).
    ///
    /// # Errors
    /// `Shape` if `response` is no response; `EmptySummary` for a block whose content is an empty text.
    pub fn read(response: &str) -> Result<Self, MappingError> {
        let response = Response::of(response)?;
        let content = blocks(response.content)?;
        let paused = response.stop_reason.as_deref() == Some("compaction");
        match content.iter().rev().find(|block| block.is_summary()) {
            Some(block) => Ok(Self::Compacted { block: CompactionBlock::of(block)?, paused }),
            None if content.iter().any(|block| block.head.kind == "compaction") => Ok(Self::Failed),
            None => Ok(Self::None),
        }
    }
}

/// The request without the content before the latest compaction block with content, which the API would ignore. The
/// other content stays byte for byte. `None` if there is nothing to remove.
///
/// # Errors
/// If `request` is no request.
pub fn trim_to_block(request: &str) -> Result<Option<String>, MappingError> {
    let body = Body::of(request)?;
    let messages = body.messages()?;
    let latest = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let block = message.blocks.iter().rposition(|block| block.is_summary())?;
        Some((at, message, block)).filter(|place| (place.0, place.2) != (0, 0))
    });
    let Some((at, message, block)) = latest else { return Ok(None) };
    let content = array(message.blocks.iter().skip(block).map(|block| block.text));
    let first = match block {
        0 => message.text.to_string(),
        _ => format!(r#"{{"role":{},"content":{content}}}"#, quote(&message.role)),
    };
    let rest = messages.iter().skip(at).skip(1).map(|message| message.text);
    let all = array(core::iter::once(&*first).chain(rest));
    Ok(Some(body.with(&[("messages", Some(&all))])))
}
