//! Output of plans with their losses and stand-ins: figures and positions, never a text.

use defmt::{Display2Format, Format, Formatter, write};

use crate::{
    Clamp, FillError, Gap, Loss, LossKind, LossReport, Outcome, PartEdit, PartKind, PartVerdict, Plan,
    PlannedEdit, ReadyPlan, Refusal, StandIn, SummaryEdit,
};
#[cfg(feature = "alloc")]
use crate::{Pending, Repair};

impl Format for PartKind {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str}", self.as_str());
    }
}

impl Format for LossKind {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str}", self.as_str());
    }
}

impl Format for Refusal {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str}", self.as_str());
    }
}

impl Format for Gap {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{}", Display2Format(self));
    }
}

impl Format for FillError {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{}", Display2Format(self));
    }
}

impl Format for LossReport {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{}", Display2Format(self));
    }
}

impl Format for Loss {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=u32} {} of {} ({=u64} tokens)", self.count, self.kind, self.source, self.tokens);
    }
}

impl Format for Clamp {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "head {} and tail {}", self.head, self.tail);
    }
}

impl Format for PartVerdict {
    fn format(&self, f: Formatter<'_>) {
        match self {
            Self::Keep => write!(f, "keep"),
            Self::Elide(allowance) => write!(f, "elide to {}", allowance),
            Self::Clamp(clamp) => write!(f, "clamp to {}", clamp),
        }
    }
}

impl Format for Outcome<'_> {
    fn format(&self, f: Formatter<'_>) {
        match self {
            Self::Unchanged(why) => write!(f, "unchanged: {}", why),
            Self::Planned(plan) => write!(f, "planned: {}", plan),
        }
    }
}

impl Format for Plan<'_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=u64} of {=u64} tokens stay", self.tokens_after(), self.tokens_before());
    }
}

impl Format for ReadyPlan<'_, '_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=u64} of {=u64} tokens stay", self.tokens_after(), self.plan().tokens_before());
    }
}

impl Format for StandIn<'_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{} tokens", self.tokens);
    }
}

impl Format for PlannedEdit<'_, '_> {
    fn format(&self, f: Formatter<'_>) {
        match self {
            Self::Hide(positions) => write!(f, "hide {=u32}..{=u32}", positions.start, positions.end),
            Self::Summary(summary) => write!(f, "{}", summary),
            Self::Part(part) => write!(f, "{}", part),
        }
    }
}

impl Format for SummaryEdit<'_, '_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "summary of {} at {=u32}", self.stand_in, self.position);
    }
}

impl Format for PartEdit<'_> {
    fn format(&self, f: Formatter<'_>) {
        let Self { position, ordinal, kind, stand_in } = self;
        write!(f, "{} {=u32} of message {=u32}: {}", kind, ordinal, position, stand_in);
    }
}

#[cfg(feature = "alloc")]
impl Format for Pending {
    fn format(&self, f: Formatter<'_>) {
        match self {
            Self::Running => write!(f, "running"),
            Self::Over => write!(f, "over"),
        }
    }
}

#[cfg(feature = "alloc")]
impl Format for Repair {
    fn format(&self, f: Formatter<'_>) {
        match self {
            Self::Keep(position) => write!(f, "keep {=u32}", position),
            Self::Abort { position, call } => write!(f, "abort call {=u32} of {=u32}", call, position),
            Self::Unrecorded { position, call } => {
                write!(f, "unrecorded call {=u32} of {=u32}", call, position)
            }
            Self::Merge { position } => write!(f, "merge {=u32}", position),
            Self::DropReasoning { position } => write!(f, "keep {=u32} without reasoning", position),
            Self::BridgeUser => write!(f, "user between"),
            Self::BridgeAssistant => write!(f, "assistant between"),
        }
    }
}
