//! Why a verdict is not legal.

use core::fmt;

/// Why a verdict cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no group with this number, or a span that begins behind its end.
    NoGroup,
    /// There is no part with this number.
    NoPart,
    /// The group is protected: a standing instruction, a pin, open work, the task, the last request or the newest step.
    Protected,
    /// The group is one of the newest steps, which go only before the request would not fit.
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
    /// The group has as much as an amount can hold, or more: nobody knows what would be left of it.
    Uncounted,
    /// The span holds instructions: they are never summarized.
    Instructions,
    /// The span holds nothing but summaries: a summary of summaries says less for the same price.
    OnlySummaries,
    /// Next to the span is a summary, which has to be part of it.
    SummaryBeside,
    /// There is no room for another replacement or another size of clamps, or an allowance is over what a cell holds.
    NoRoom,
}

impl Refusal {
    /// The word for it.
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
