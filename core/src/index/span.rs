//! One row of the index.

use super::{GroupKind, PartSpan};
use crate::Turn;
use crate::attribution::SourceKind;
use crate::table::Table;

/// A run of consecutive messages of one group.
///
/// Its fields are private: a span is made by an index and read through it. It is public so that a caller can bring the
/// memory of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The position of its first message; the next span's is where it ends.
    pub(crate) first: u32,
    /// For a leader, the tokens of the whole group. For another span, its own tokens, already in its leader's.
    pub(crate) tokens: u32,
    /// The first span of its group: itself, for a leader. Final, and the only one that a verdict is written to.
    pub(crate) leader: u32,
    /// The turn of its group.
    pub(crate) turn: Turn,
    /// Late answers form a ring: of the span that called, the last of them; of each of them, the next.
    pub(crate) next: u32,
    /// Kind (4 bits), flags (12 bits), and of a leader how many calls and requests for approval have no answer
    /// (16 bits, sticky when full).
    meta: u32,
}

/// No span.
pub(crate) const NONE: u32 = u32::MAX;

const _: () = assert!(size_of::<Span>() <= 24, "an index has at most 24 bytes per span");

const KIND: u32 = 7;
const _: () = assert!(
    GroupKind::Assistant as u32 == 2 && GroupKind::Exchange as u32 == 3,
    "what is the model's has one bit of difference"
);
const SOURCE_SHIFT: u32 = 11;
const UNANSWERED_SHIFT: u32 = 16;
const UNANSWERED_MAX: u32 = 0xFFFF;

/// Flags of a span beside its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    /// A late answer: projected after the span that called, not in its own place.
    pub(crate) const LATE: Self = Self(1 << 4);
    pub(crate) const PINNED: Self = Self(1 << 5);
    pub(crate) const EPHEMERAL: Self = Self(1 << 6);
    pub(crate) const REASONING: Self = Self(1 << 7);
    /// The request of the user that begins a turn.
    pub(crate) const REQUEST: Self = Self(1 << 8);
    /// A standing instruction of the caller.
    pub(crate) const INSTRUCTION: Self = Self(1 << 9);

    /// Mark of a leader whose group has messages of the model that do not stand next to it. (The next three bits are the source.)
    pub(crate) const SPLIT: Self = Self(1 << 10);

    /// Mark of a leader that is a step with a tool of the provider: with [`GroupKind::Assistant`] its kind is [`GroupKind::Hosted`]. No
    /// other kind has it.
    pub(crate) const HOSTED: Self = Self(1 << 3);

    /// Flags for the source of a leader's first message.
    pub(crate) const fn source(source: SourceKind) -> Self {
        let bits = match source {
            SourceKind::Caller => 0,
            SourceKind::History => 1,
            SourceKind::Context => 2,
            SourceKind::Tool => 3,
            SourceKind::Compaction => 4,
        };
        Self(bits << SOURCE_SHIFT)
    }

    /// Whether they may protect a group by what it is.
    pub(crate) const fn is_mark(self) -> bool {
        self.0 & Self::PINNED.with(Self::INSTRUCTION).0 != 0
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }
}

impl Span {
    /// Value of the unused rows of a table.
    pub(crate) const EMPTY: Self = Self { first: 0, tokens: 0, leader: 0, turn: Turn(0), next: 0, meta: 0 };

    pub(crate) const fn new(first: u32, leader: u32, turn: Turn, kind: GroupKind, flags: Flags) -> Self {
        Self { first, tokens: 0, leader, turn, next: NONE, meta: kind as u32 | flags.0 }
    }

    pub(crate) const fn kind(&self) -> GroupKind {
        GroupKind::from_bits(self.meta & (KIND | Flags::HOSTED.0))
    }

    /// For a leader, the source of its first message.
    pub(crate) const fn source(&self) -> SourceKind {
        match (self.meta >> SOURCE_SHIFT) & 7 {
            0 => SourceKind::Caller,
            1 => SourceKind::History,
            2 => SourceKind::Context,
            3 => SourceKind::Tool,
            _ => SourceKind::Compaction,
        }
    }

    /// Whether its kind is `kind`, without finding out which it is.
    pub(crate) const fn is(&self, kind: GroupKind) -> bool {
        self.meta & KIND == kind as u32
    }

    /// Whether it is the model's.
    pub(crate) const fn is_step(&self) -> bool {
        self.meta & KIND & !1 == GroupKind::Assistant as u32
    }

    /// Whether steps behind it rely on it: the request of a turn, or a summary, which may cover one.
    pub(crate) const fn opens(&self) -> bool {
        self.has(Flags::REQUEST) || self.is(GroupKind::Summary)
    }

    /// Whether anything but its place may protect it: a pin, an instruction, calls without an answer.
    pub(crate) const fn is_marked(&self) -> bool {
        const MARKS: u32 = Flags::PINNED.with(Flags::INSTRUCTION).0 | UNANSWERED_MAX << UNANSWERED_SHIFT;
        self.meta & MARKS != 0
    }

    pub(crate) const fn has(&self, flags: Flags) -> bool {
        self.meta & flags.0 != 0
    }

    pub(crate) const fn is_late(&self) -> bool {
        self.has(Flags::LATE)
    }

    pub(crate) const fn unanswered(&self) -> u32 {
        self.meta >> UNANSWERED_SHIFT
    }

    pub(crate) const fn add_flags(&mut self, flags: Flags) {
        self.meta |= flags.0;
    }

    /// Takes the flag away that only what the model says has.
    pub(crate) fn settle_hosted<P: Table<PartSpan>>(&mut self) {
        // Few groups have it: they alone are looked at further.
        if P::READS_HOSTED && self.meta & Flags::HOSTED.0 != 0 && !self.is(GroupKind::Assistant) {
            self.meta &= !Flags::HOSTED.0;
        }
    }

    pub(crate) const fn set_kind(&mut self, kind: GroupKind) {
        self.meta = (self.meta & !KIND) | kind as u32;
    }

    /// Counts one more call without an answer. A full counter stays full: the group then counts as unanswered for good,
    /// which protects it.
    pub(crate) const fn add_unanswered(&mut self) {
        if self.unanswered() < UNANSWERED_MAX {
            self.meta = self.meta.wrapping_add(1 << UNANSWERED_SHIFT);
        }
    }

    pub(crate) const fn sub_unanswered(&mut self) {
        if self.unanswered() > 0 && self.unanswered() < UNANSWERED_MAX {
            self.meta = self.meta.wrapping_sub(1 << UNANSWERED_SHIFT);
        }
    }
}
