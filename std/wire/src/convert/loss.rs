//! Losses of a conversion: content that had no counterpart.

use core::fmt;

/// Content of one message that the target format could not take unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversionLoss {
    /// The index of the message, from 0.
    pub message: usize,
    /// The kind of the lost content.
    pub kind: ConversionLossKind,
    /// The name of the field, tool or kind of part, and never the text of a message. It is empty if the kind is enough.
    pub what: String,
}

/// Kinds of losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ConversionLossKind {
    /// Sealed reasoning was left out: it is signed or encrypted for the vendor that made it.
    SealedReasoning,
    /// Readable reasoning was left out: the target takes only reasoning that it sealed itself.
    Reasoning,
    /// A provider's compaction was left out: only that provider can read it.
    Compaction,
    /// The readable text of a provider's compaction became a text.
    CompactionAsText,
    /// A call that the provider ran, or its result, was left out.
    HostedTool,
    /// Media were left out: the target has no form for them in this place.
    Media,
    /// A request for approval, or its answer, was left out.
    Approval,
    /// A part of a kind that only its own format knows was left out.
    UnknownPart,
    /// A part was left out of a message whose role has no such parts: a call that no model made, or content of a tool
    /// in addition to its result.
    Misplaced,
    /// A field of the message, or of one of its parts, was left out.
    Field,
    /// The speaker's name was left out.
    Name,
    /// The error mark of a result was left out; its text stays.
    ErrorMark,
    /// A call and its result got another id: the target does not accept the old one.
    CallId,
    /// A tool has another name in the call: the target does not accept the old one. A request that defines the tool
    /// needs the new name too.
    ToolName,
    /// A message was left out, because its turn is white space alone.
    BlankText,
    /// Arguments that are no JSON object were wrapped in one, under `input`.
    Arguments,
    /// A message was moved: the target requires another place.
    Moved,
    /// A message was left out because it was empty, or because it answered no call.
    Message,
    /// A message was inserted, because the target requires one in this place.
    Invented,
}

impl ConversionLossKind {
    /// The name of the kind, for reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SealedReasoning => "sealed-reasoning",
            Self::Reasoning => "reasoning",
            Self::Compaction => "compaction",
            Self::CompactionAsText => "compaction-as-text",
            Self::HostedTool => "hosted-tool",
            Self::Media => "media",
            Self::Approval => "approval",
            Self::UnknownPart => "unknown-part",
            Self::Misplaced => "misplaced",
            Self::Field => "field",
            Self::Name => "name",
            Self::ErrorMark => "error-mark",
            Self::CallId => "call-id",
            Self::ToolName => "tool-name",
            Self::BlankText => "blank-text",
            Self::Arguments => "arguments",
            Self::Moved => "moved",
            Self::Message => "message",
            Self::Invented => "invented",
        }
    }

    /// The reason for the loss, in words.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::SealedReasoning => {
                "signed or encrypted for the vendor that made it, and never sent to another"
            }
            Self::Reasoning => "the target takes only reasoning that it sealed itself",
            Self::Compaction => "only the provider that made it can read it",
            Self::CompactionAsText => "only its readable text can be sent to another provider",
            Self::HostedTool => "run by the provider, and known to no other",
            Self::Media => "the target has no form for it there",
            Self::Approval => "the target has no form for approvals",
            Self::UnknownPart => "known to its own format only",
            Self::Misplaced => "the target has no form for it in a message of this role",
            Self::Field => "this conversion does not carry the field",
            Self::Name => "the target has no names of speakers",
            Self::ErrorMark => "the target cannot mark a failed tool; what it said stays",
            Self::CallId => "the target does not take this id, or not twice",
            Self::ToolName => "the target does not take this name",
            Self::BlankText => "the target does not take a turn of white space alone",
            Self::Arguments => "the target wants an object; they stand under `input`",
            Self::Moved => "the target wants it elsewhere",
            Self::Message => "nothing of it is left, or it answers no call",
            Self::Invented => "the target needs a message there",
        }
    }
}

impl fmt::Display for ConversionLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: {}", self.message, self.kind.as_str())?;
        if !self.what.is_empty() {
            write!(f, " {}", self.what)?;
        }
        write!(f, ": {}", self.kind.reason())
    }
}
