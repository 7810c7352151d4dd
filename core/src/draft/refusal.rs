//! The reasons why a verdict is not legal.

use core::fmt;

/// The reason why a verdict cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// No group has this number, or a span begins behind its end.
    NoGroup,
    /// There is no part with this number.
    NoPart,
    /// The group is protected: a standing instruction, a pin, an open call, the first or last user message, the newest
    /// step, or the user message of a protected step.
    Protected,
    /// The group is one of the newest steps, which are hidden only if the request does not fit otherwise.
    NewestStep,
    /// The group is dropped already.
    Dropped,
    /// The group is replaced already.
    Replaced,
    /// The part is shortened as far already, or further.
    Edited,
    /// The stand-in is not smaller.
    NotSmaller,
    /// A part of this kind has no head and tail: only tool results, arguments and texts do.
    NoEnds,
    /// The part is reasoning of the current turn, which a provider may want back with the next result.
    CurrentTurn,
    /// The part is reasoning, and its message holds nothing else: nothing would be left of the message.
    OnlyContent,
    /// The size of the group reaches the maximum of an amount, so that its remaining size would be unknown.
    Uncounted,
    /// The span holds instructions, which are never summarized.
    Instructions,
    /// The span holds only summaries: a summary of summaries holds less for the same price.
    OnlySummaries,
    /// A summary next to the span is not part of it.
    SummaryBeside,
    /// There is no room for another replacement or another clamp size, or an allowance exceeds the maximum of a cell.
    NoRoom,
}

impl Refusal {
    /// The name of the refusal in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoGroup => "no_group",
            Self::NoPart => "no_part",
            Self::Protected => "protected",
            Self::NewestStep => "newest_step",
            Self::Dropped => "dropped",
            Self::Replaced => "replaced",
            Self::Edited => "edited",
            Self::NotSmaller => "not_smaller",
            Self::NoEnds => "no_ends",
            Self::CurrentTurn => "current_turn",
            Self::OnlyContent => "only_content",
            Self::Uncounted => "uncounted",
            Self::Instructions => "instructions",
            Self::OnlySummaries => "only_summaries",
            Self::SummaryBeside => "summary_beside",
            Self::NoRoom => "no_room",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for Refusal {}
