//! One row of the index.

use super::{GroupKind, PartSpan};
use crate::Turn;
use crate::attribution::SourceKind;
use crate::table::Table;

/// A run of consecutive messages of one group.
///
/// Its fields are private: an index makes a span and reads it. The type is public so that a caller can provide the
/// memory of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The position of its first message. The span ends where the next span begins.
    pub(crate) first: u32,
    /// For a leader, the tokens of the whole group. For another span, its own tokens, already in its leader's.
    pub(crate) tokens: u32,
    /// The first span of its group; for a leader, the span itself. It never changes, and only the leader has a verdict.
    pub(crate) leader: u32,
    /// The turn of its group.
    pub(crate) turn: Turn,
    /// Link in the ring of late answers: in the span of the calls, the last late answer; in a late answer, the next
    /// one.
    pub(crate) next: u32,
    /// Kind (4 bits), flags (12 bits), and for a leader the number of calls and requests for approval without an answer
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

/// Flags in the metadata of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    /// A late answer: projected after the span of its call, not at its own position.
    pub(crate) const LATE: Self = Self(1 << 4);
    pub(crate) const PINNED: Self = Self(1 << 5);
    pub(crate) const EPHEMERAL: Self = Self(1 << 6);
    pub(crate) const REASONING: Self = Self(1 << 7);
    /// The user message that begins a turn.
    pub(crate) const REQUEST: Self = Self(1 << 8);
    /// A standing instruction of the caller.
    pub(crate) const INSTRUCTION: Self = Self(1 << 9);

    /// Mark of a leader whose group has messages of the model that are not adjacent to it. (The next three bits are the
    /// source.)
    pub(crate) const SPLIT: Self = Self(1 << 10);

    /// Mark of a leader that is a step with a hosted tool: a [`GroupKind::Assistant`] with this flag is a
    /// [`GroupKind::Hosted`]. No other kind has the flag.
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

    /// Whether the flags may protect a group: a pin or an instruction.
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

    /// Whether the kind of the span is `kind`, without a full decoding.
    pub(crate) const fn is(&self, kind: GroupKind) -> bool {
        self.meta & KIND == kind as u32
    }

    /// Whether the group is a step of the model.
    pub(crate) const fn is_step(&self) -> bool {
        self.meta & KIND & !1 == GroupKind::Assistant as u32
    }

    /// Whether later steps rely on the group: the user message of a turn, or a summary, which may cover one.
    pub(crate) const fn opens(&self) -> bool {
        self.has(Flags::REQUEST) || self.is(GroupKind::Summary)
    }

    /// Whether a reason other than its position may protect the group: a pin, an instruction, calls without an answer.
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

    /// Removes the flag of hosted tools from a group that is not of the kind `Assistant`.
    pub(crate) fn settle_hosted<P: Table<PartSpan>>(&mut self) {
        // Few groups have the flag: only these are checked further.
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
