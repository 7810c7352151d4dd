//! Violations that a validator reports.

use core::fmt;

/// One breach of a profile's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Violation {
    /// The position of the message at fault; for a missing result, that of the message with the call.
    pub position: u32,
    /// The kind of the violation.
    pub kind: ViolationKind,
}

impl Violation {
    pub(crate) const fn new(position: u32, kind: ViolationKind) -> Self {
        Self { position, kind }
    }
}

/// The kind of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ViolationKind {
    /// A result of no call, or a result that is not where the results of its call must stand.
    OrphanResult,
    /// A second result of one call.
    DuplicateResult,
    /// A call without a result, although the conversation went on.
    UnansweredCall,
    /// A call without a result when the request ends, where its result could still have come: the tool may be running.
    PendingCall,
    /// The first message, instructions aside, is not the user's.
    FirstNotUser,
    /// No message is the user's. Reported at the last message, or at position 0 of an empty request.
    NoUser,
    /// Instructions after the conversation began.
    LateInstruction,
    /// A second message with instructions, where one is allowed.
    SecondInstruction,
    /// A message in the same role as the one that it follows, where roles must alternate.
    SameRole,
    /// A message of the user directly after a result.
    UserAfterResult,
    /// Reasoning without the content that it led to.
    LoneReasoning,
    /// Calls without their reasoning, although other calls of the turn have it. Reported at the first such message
    /// only.
    MissingReasoning,
    /// Signed reasoning behind an edit of the content that its signature covers.
    BoundThinking,
}

impl ViolationKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::OrphanResult,
        Self::DuplicateResult,
        Self::UnansweredCall,
        Self::PendingCall,
        Self::FirstNotUser,
        Self::NoUser,
        Self::LateInstruction,
        Self::SecondInstruction,
        Self::SameRole,
        Self::UserAfterResult,
        Self::LoneReasoning,
        Self::MissingReasoning,
        Self::BoundThinking,
    ];

    /// The name of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OrphanResult => "orphan_result",
            Self::DuplicateResult => "duplicate_result",
            Self::UnansweredCall => "unanswered_call",
            Self::PendingCall => "pending_call",
            Self::FirstNotUser => "first_not_user",
            Self::NoUser => "no_user",
            Self::LateInstruction => "late_instruction",
            Self::SecondInstruction => "second_instruction",
            Self::SameRole => "same_role",
            Self::UserAfterResult => "user_after_result",
            Self::LoneReasoning => "lone_reasoning",
            Self::MissingReasoning => "missing_reasoning",
            Self::BoundThinking => "bound_thinking",
        }
    }

    const fn explanation(self) -> &'static str {
        match self {
            Self::OrphanResult => "a tool result without its call directly before it",
            Self::DuplicateResult => "a second result of one call",
            Self::UnansweredCall => "a tool call without a result",
            Self::PendingCall => "a tool call that has no result yet",
            Self::FirstNotUser => "the conversation does not begin with the user",
            Self::NoUser => "no message is the user's",
            Self::LateInstruction => "instructions after the conversation began",
            Self::SecondInstruction => "a second message with instructions",
            Self::SameRole => "the same role twice in a row",
            Self::UserAfterResult => "the user speaks directly after a tool result",
            Self::LoneReasoning => "reasoning without what it led to",
            Self::MissingReasoning => "tool calls without the reasoning that other calls of the turn have",
            Self::BoundThinking => "signed reasoning behind an edit of what its signature covers",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: {} ({})", self.position, self.kind.explanation(), self.kind.as_str())
    }
}
