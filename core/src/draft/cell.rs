//! Verdicts, one byte each.

use crate::Tokens;
use crate::bounded::CLAMP_MARKER;

/// The decision about a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Verdict {
    /// The group stays, perhaps with shortened parts.
    Keep,
    /// The group is hidden.
    Drop,
    /// The group is hidden, and a summary of it and its neighbours stands in its place.
    Replace,
}

impl Verdict {
    /// The letter of the verdict in the string of a plan. There, `E` is a group that is kept with shortened parts.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Keep => 'K',
            Self::Drop => 'D',
            Self::Replace => 'R',
        }
    }
}

/// The decision about a part of a group that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum PartVerdict {
    /// The part stays as it is.
    Keep,
    /// A note of at most this many tokens replaces the part. Reasoning is removed without a note.
    Elide(Tokens),
    /// The two ends of the part stay, with the lengths in the clamp.
    Clamp(Clamp),
}

/// The lengths of the two ends of a text that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[expect(clippy::exhaustive_structs, reason = "two ends are all that is left of it")]
pub struct Clamp {
    /// Tokens at its beginning.
    pub head: Tokens,
    /// Tokens at its end.
    pub tail: Tokens,
}

impl Clamp {
    /// The clamp that leaves at most `max` tokens of a part: both ends have the same room.
    ///
    /// ```
    /// use epitome_core::{Clamp, Tokens};
    ///
    /// let clamp = Clamp::within(Tokens(1_001));
    /// assert_eq!(clamp.tokens_max(), Tokens(1_001));
    /// assert!(clamp.head == clamp.tail || clamp.head == clamp.tail.saturating_add(Tokens(1)));
    /// ```
    #[must_use]
    pub const fn within(max: Tokens) -> Self {
        let room = max.0.saturating_sub(MARKER_TOKENS_MAX.0);
        let tail = room / 2;
        Self { head: Tokens(room.saturating_sub(tail)), tail: Tokens(tail) }
    }

    /// The largest size of a clamped part: both ends and [`CLAMP_MARKER`](crate::CLAMP_MARKER) between them.
    #[must_use]
    pub const fn tokens_max(self) -> Tokens {
        self.head.saturating_add(self.tail).saturating_add(MARKER_TOKENS_MAX)
    }
}

/// No tokenizer makes more tokens than there are bytes.
const MARKER_TOKENS_MAX: Tokens = Tokens(CLAMP_MARKER.len() as u32);

/// The maximum size of a note in the place of an elided part: 250 tokens.
///
/// With this limit an allowance fits into a byte with the other verdicts. A note only marks that a part was removed; a
/// text with more content is a summary.
pub const ELIDED_TOKENS_MAX: Tokens = Tokens(250);

/// Maximum number of different sizes of clamps in a plan. Strategies have one each.
pub const CLAMPS_MAX: usize = 4;

/// The sizes of the clamps of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Clamps {
    sizes: [Clamp; CLAMPS_MAX],
    len: u8,
    /// Whether every clamp is refused.
    closed: bool,
}

impl Clamps {
    /// No clamp may be added.
    pub(crate) const NONE: Self =
        Self { sizes: [Clamp { head: Tokens(0), tail: Tokens(0) }; CLAMPS_MAX], len: 0, closed: true };

    /// The number of a clamp size, which is added if it is new. `None` if there are too many.
    pub(super) fn number(&mut self, clamp: Clamp) -> Option<u8> {
        if self.closed {
            return None;
        }
        let known = self.sizes.iter().take(usize::from(self.len)).position(|known| *known == clamp);
        if let Some(known) = known {
            return u8::try_from(known).ok();
        }
        *self.sizes.get_mut(usize::from(self.len))? = clamp;
        self.len = self.len.saturating_add(1);
        self.len.checked_sub(1)
    }

    /// Whether [`Clamps::number`] would return a number.
    pub(super) fn has_room_for(&self, clamp: Clamp) -> bool {
        let mut sizes = self.sizes.iter().take(usize::from(self.len));
        !self.closed && (usize::from(self.len) < CLAMPS_MAX || sizes.any(|known| *known == clamp))
    }

    /// Remaining size of a part of `tokens` tokens with this cell.
    pub(super) fn left(&self, cell: Cell, tokens: Tokens) -> Tokens {
        super::left_of(self.verdict(cell), tokens)
    }

    /// The verdict that a part's cell holds.
    pub(crate) fn verdict(&self, cell: Cell) -> PartVerdict {
        match cell.0 {
            0 => PartVerdict::Keep,
            elided @ 1..CLAMPED => PartVerdict::Elide(Tokens(u32::from(elided.saturating_sub(1)))),
            clamped => {
                let size = self.sizes.get(usize::from(clamped.saturating_sub(CLAMPED)));
                size.map_or(PartVerdict::Keep, |size| PartVerdict::Clamp(*size))
            }
        }
    }
}

/// The memory for one verdict, on a group or on a part: one byte. The caller provides [`Index::cell_count`] of them for
/// a plan.
///
/// [`Index::cell_count`]: crate::Index::cell_count
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cell(u8);

/// Value of a part's cell: 0 for no verdict, an allowance plus one, or from this value on the number of a clamp.
const CLAMPED: u8 = 252;
const _: () =
    assert!(CLAMPED as u32 == ELIDED_TOKENS_MAX.0 + 2 && CLAMPS_MAX == (u8::MAX - CLAMPED) as usize + 1);

impl Cell {
    /// A cell before any verdict is written.
    pub(crate) const EMPTY: Self = Self(0);

    pub(super) const DROP: u8 = 1;
    pub(crate) const HELD: u8 = 1 << 1;
    pub(super) const HARD: u8 = 1 << 2;
    pub(super) const REPLACE: u8 = 1 << 3;
    /// A part of the group is elided or clamped.
    pub(crate) const EDITED: u8 = 1 << 4;
    /// A request or a summary that is to be hidden once no step behind it stays: see [`Draft::drop_group`](super::Draft::drop_group).
    pub(super) const LAST: u8 = 1 << 5;
    /// A summary: it is hidden after all other groups.
    pub(super) const SPARED: u8 = 1 << 6;
    /// A group that was hidden and is to be replaced.
    pub(super) const SHOWN: u8 = 1 << 7;

    /// The verdict that a group's cell holds.
    pub(crate) const fn verdict(self) -> Verdict {
        match (self.has(Self::DROP), self.has(Self::REPLACE)) {
            (true, _) => Verdict::Drop,
            (false, true) => Verdict::Replace,
            (false, false) => Verdict::Keep,
        }
    }

    /// The letter of the cell in the string of a plan.
    pub(crate) const fn letter(self) -> char {
        match self.verdict() {
            Verdict::Keep if self.has(Self::EDITED) => 'E',
            verdict => verdict.letter(),
        }
    }

    pub(crate) const fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    pub(super) const fn set(&mut self, bits: u8) {
        self.0 |= bits;
    }

    pub(super) const fn unset(&mut self, bits: u8) {
        self.0 &= !bits;
    }

    /// Cell of a part that is elided.
    pub(super) fn elided(allowance: Tokens) -> Option<Self> {
        let byte = u8::try_from(allowance.0.checked_add(1)?).ok()?;
        (byte < CLAMPED).then_some(Self(byte))
    }

    /// Cell of a part that is clamped.
    pub(super) const fn clamped(number: u8) -> Self {
        Self(CLAMPED.saturating_add(number))
    }
}
