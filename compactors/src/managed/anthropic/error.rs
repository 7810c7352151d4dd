//! Errors of requests that cannot be written, and error codes of the API.

use core::error::Error;
use core::fmt;

use epitome_std::wire::WireError;
use serde::Deserialize;

/// A request or a response that cannot be mapped. The error contains the place, and never message text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MappingError {
    /// The text is not the expected JSON.
    Shape {
        /// The expected form.
        expected: &'static str,
        /// The line within that part of the text, counted from 1.
        line: usize,
        /// The byte within the line, counted from 1.
        column: usize,
    },
    /// The API does not accept this field together with `compaction`.
    NotTogether {
        /// The field.
        field: &'static str,
    },
    /// A number is smaller than the API accepts.
    TooSmall {
        /// The parameter.
        parameter: &'static str,
        /// The given number.
        given: u64,
        /// The least number that is accepted.
        min: u64,
    },
    /// The instructions are blank.
    BlankInstructions,
    /// The instructions are longer than the API accepts.
    LongInstructions {
        /// Number of characters of the instructions.
        chars: usize,
        /// Maximum number of characters.
        max: usize,
    },
    /// The strategy spares a tool that is not among the given names.
    UnknownTool,
    /// The messages before the cut are only an earlier summary, or there are none.
    NothingToSummarize,
    /// The cut is behind the end of the conversation.
    NoSuchMessage {
        /// The requested position.
        message: usize,
        /// Number of messages in the conversation.
        messages: usize,
    },
    /// A call before the cut has no result before it.
    OpenCall {
        /// The message with the call.
        message: usize,
    },
    /// The first kept message has the role of the last summarized one, or is a system message. The API would merge
    /// the two, and reject signed thinking behind them.
    Joined {
        /// The first message that would be kept.
        message: usize,
    },
    /// A compaction block is not the first block.
    Misplaced {
        /// The position of its message.
        message: usize,
    },
    /// There is more than one compaction block.
    Ambiguous {
        /// The position of the message with the second one.
        message: usize,
    },
    /// The content of a compaction block is an empty text.
    EmptySummary,
    /// A compaction block has no signature in a place where the API always signs it.
    Unsigned,
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shape { expected, line, column } => {
                write!(f, "line {line}, column {column}: expected {expected}")
            }
            Self::NotTogether { field } => {
                write!(f, "`{field}` cannot be sent beside `compaction`: leave it out of this request")
            }
            Self::TooSmall { parameter, given, min } => {
                write!(f, "{parameter} is {given}: it must be at least {min}")
            }
            Self::BlankInstructions => {
                f.write_str("the instructions are blank: say something, or leave them out")
            }
            Self::LongInstructions { chars, max } => {
                write!(f, "the instructions have {chars} characters: at most {max} are taken")
            }
            Self::UnknownTool => {
                f.write_str("a tool to be spared has none of the given names: give the names of all tools")
            }
            Self::NothingToSummarize => f.write_str(
                "there is nothing to summarize before the cut: keep fewer turns, or compact later",
            ),
            Self::NoSuchMessage { message, messages } => {
                write!(f, "there is no message {message}: the conversation has {messages}")
            }
            Self::OpenCall { message } => {
                write!(
                    f,
                    "message {message} calls a tool without a result before the cut: cut after its result"
                )
            }
            Self::Joined { message } => {
                write!(f, "message {message} cannot be the first that is kept: cut where the role changes")
            }
            Self::Misplaced { message } => {
                write!(
                    f,
                    "the compaction block in message {message} is not first: remove what stands before it"
                )
            }
            Self::Ambiguous { message } => {
                write!(f, "message {message} has a further compaction block: send only the newest")
            }
            Self::EmptySummary => {
                f.write_str("a compaction block has empty content: keep the history, and compact later")
            }
            Self::Unsigned => {
                f.write_str("a compaction block has no signature: keep the history, and compact later")
            }
        }
    }
}

impl Error for MappingError {}

/// Converts `error`. Only its position is used, because its message may quote the text.
pub(super) fn shape(expected: &'static str, error: &serde_json::Error) -> MappingError {
    MappingError::Shape { expected, line: error.line(), column: error.column() }
}

/// Converts `error`, whose offset refers to `text`.
pub(super) fn misshapen(expected: &'static str, text: &str, error: &WireError) -> MappingError {
    let before = text.get(..error.offset().unwrap_or_default()).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at.saturating_add(1));
    let line = before.matches('\n').count().saturating_add(1);
    let column = before.len().saturating_sub(line_start).saturating_add(1);
    MappingError::Shape { expected, line, column }
}

/// The reason of the API for a failed compaction, in `error.details.error_code`.
///
/// ```
/// use epitome_compactors::managed::anthropic::CompactionCode;
///
/// let body = r#"{"type": "error", "error": {"type": "overloaded_error", "message": "later",
///   "details": {"error_code": "compaction_unavailable"}}}"#;
/// let code = CompactionCode::read(body).ok_or("another error")?;
/// assert!(code.is_retry_safe());
/// assert!(!CompactionCode::BlockMisplaced.is_retry_safe());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompactionCode {
    /// There is more than one compaction block with content.
    BlockAmbiguous,
    /// The block is not first, or is in `system`.
    BlockMisplaced,
    /// The block's `content` differs from the returned one.
    ContentMismatch,
    /// The block's `signature` differs from the returned one.
    SignatureInvalid,
    /// The block's `tool_changes` differ from the returned ones.
    ToolChangesMismatch,
    /// The conversation ends in an unfinished turn of the assistant.
    IncompleteTurn,
    /// There is no content of a user or an assistant.
    NothingToSummarize,
    /// The conversation refers to more tools than a block can record.
    TooManyToolReferences,
    /// The server has a temporary problem with writing or reading a block.
    Unavailable,
}

impl CompactionCode {
    /// All codes.
    pub const ALL: &'static [Self] = &[
        Self::BlockAmbiguous,
        Self::BlockMisplaced,
        Self::ContentMismatch,
        Self::SignatureInvalid,
        Self::ToolChangesMismatch,
        Self::IncompleteTurn,
        Self::NothingToSummarize,
        Self::TooManyToolReferences,
        Self::Unavailable,
    ];

    /// The code in the body of an error, if it has a known one.
    #[must_use]
    pub fn read(body: &str) -> Option<Self> {
        let answer: Answer<'_> = serde_json::from_str(body).ok()?;
        Self::ALL.iter().copied().find(|code| code.as_str() == answer.error.details.error_code)
    }

    /// The name of the code on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BlockAmbiguous => "compaction_block_ambiguous",
            Self::BlockMisplaced => "compaction_block_misplaced",
            Self::ContentMismatch => "compaction_content_mismatch",
            Self::SignatureInvalid => "compaction_signature_invalid",
            Self::ToolChangesMismatch => "compaction_tool_changes_mismatch",
            Self::IncompleteTurn => "compaction_incomplete_turn",
            Self::NothingToSummarize => "compaction_nothing_to_summarize",
            Self::TooManyToolReferences => "compaction_too_many_tool_references",
            Self::Unavailable => "compaction_unavailable",
        }
    }

    /// Whether the same request may be sent again. With any other code, it would be refused again.
    #[must_use]
    pub const fn is_retry_safe(self) -> bool {
        matches!(self, Self::Unavailable)
    }

    /// The remedy for the error.
    const fn remedy(self) -> &'static str {
        match self {
            Self::BlockAmbiguous => "send only the newest block",
            Self::BlockMisplaced => "remove the messages before the block",
            Self::ContentMismatch | Self::SignatureInvalid | Self::ToolChangesMismatch => {
                "send the block byte for byte as it was returned, to the provider that made it"
            }
            Self::IncompleteTurn => "send the results of the open calls first",
            Self::NothingToSummarize => "compact later",
            Self::TooManyToolReferences => "keep more turns, or compact without the provider",
            Self::Unavailable => "send the same request again",
        }
    }
}

impl fmt::Display for CompactionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.as_str(), self.remedy())
    }
}

impl Error for CompactionCode {}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    error: Refusal<'a>,
}

#[derive(Deserialize)]
struct Refusal<'a> {
    #[serde(borrow)]
    details: Details<'a>,
}

#[derive(Deserialize)]
struct Details<'a> {
    error_code: &'a str,
}
