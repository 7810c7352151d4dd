//! Output of plain values and errors with `defmt` on a device. It contains no text of a message.

mod plans;

use defmt::{Display2Format, Format, Formatter, write};

use crate::attribution::{Authority, Retention, SeqRange, SourceKind};
use crate::message::Role;
use crate::{
    Basis, BoundedSummaryError, Budget, BudgetError, CompactError, Compacted, Correction, Fired, Floors,
    Full, GroupKind, OpenCall, OpenKind, Pass, Placed, PlanError, Profile, RestoreError, Revision, Seq, Size,
    SnapshotError, Spend, StablePrefix, Stamp, Tokens, TriggerKind, Turn, Unchanged, Usage, Verdict,
    Violation, ViolationKind, Wait, WaitReason,
};

/// Formats values by their names.
macro_rules! words {
    ($($name:ty),*) => {
        $(impl Format for $name {
            fn format(&self, f: Formatter<'_>) {
                write!(f, "{=str}", self.as_str());
            }
        })*
    };
}

words!(Role, Basis, GroupKind, Pass, Profile, TriggerKind, Unchanged, ViolationKind, WaitReason);

/// Formats values by their display texts, which hold figures and positions, never the text of a message.
macro_rules! sentences {
    ($($name:ty),*) => {
        $(impl Format for $name {
            fn format(&self, f: Formatter<'_>) {
                write!(f, "{}", Display2Format(self));
            }
        })*
    };
}

sentences!(
    BoundedSummaryError,
    BudgetError,
    CompactError,
    Correction,
    Fired,
    Full,
    PlanError,
    RestoreError,
    SnapshotError,
    Violation,
    Wait
);

macro_rules! numbers {
    ($($name:ty, $form:literal);*) => {
        $(impl Format for $name {
            fn format(&self, f: Formatter<'_>) {
                write!(f, $form, self.0);
            }
        })*
    };
}

numbers!(Seq, "{=u64}"; Revision, "{=u64}"; Turn, "{=u32}"; Tokens, "{=u32}");

/// Formats values by their fields, in this order.
macro_rules! fields {
    ($($name:ident, $form:literal, $($field:ident),*);*) => {
        $(impl Format for $name {
            fn format(&self, f: Formatter<'_>) {
                write!(f, $form, $(self.$field),*);
            }
        })*
    };
}

fields!(
    Compacted, "-{=usize} messages, {=usize} results elided, -{=u64} tokens, -{=usize} B", messages, results, tokens, bytes;
    Floors, "floors {=u64} and {=u64} tokens", hard, goal;
    Size, "{=u64} tokens {}", tokens, basis;
    Stamp, "revision {}, head {}", revision, head;
    SeqRange, "{}..={}", first, last;
    OpenCall, "call {=u32} of group {} in turn {}", ordinal, anchor, turn;
    StablePrefix, "{=u32} messages, {=u64} tokens", messages, tokens;
    Spend, "{=u64} reports, in {=u64}, out {=u64}", reports, input, output;
    Placed, "group {} of turn {}, late {=bool}, orphan {=bool}, hidden {=bool}", anchor, turn, late, orphan, hidden
);

impl Format for Verdict {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=char}", self.letter());
    }
}

impl Format for Budget {
    fn format(&self, f: Formatter<'_>) {
        write!(
            f,
            "window {=u64}, reserve {=u64}, trigger {=u64}, goal {}, least {=u64} tokens",
            self.window(),
            self.reserve(),
            self.trigger(),
            self.goal(),
            self.min_reclaim()
        );
    }
}

/// All figures of a report except the part of the input that is the request itself.
impl Format for Usage {
    fn format(&self, f: Formatter<'_>) {
        write!(
            f,
            "in {} ({} cached, {} to the cache), out {} ({} reasoning), total {}",
            self.input_total,
            self.cache_read,
            self.cache_creation,
            self.output_total,
            self.reasoning,
            self.total
        );
    }
}

/// Formats values by a word for each variant.
macro_rules! variants {
    ($($name:ident { $($variant:ident $word:literal),* })*) => {
        $(impl Format for $name {
            fn format(&self, f: Formatter<'_>) {
                match self {
                    $(Self::$variant => write!(f, $word),)*
                }
            }
        })*
    };
}

variants! {
    SourceKind {
        Caller "caller", History "history", Context "context", Tool "tool", Compaction "compaction"
    }
    Authority {
        Retrieved "retrieved", Assistant "assistant", User "user", Developer "developer", System "system"
    }
    Retention { Pinned "pinned", Normal "normal", Ephemeral "ephemeral" }
    OpenKind { Call "call", Approval "approval" }
}
