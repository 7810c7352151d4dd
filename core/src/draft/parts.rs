//! Verdicts on parts of groups that are kept.

use super::{Cell, Clamp, Draft, PartVerdict, Refusal};
use crate::Tokens;
use crate::index::{IndexedPart, PartKind, Span};

impl Draft<'_> {
    /// Replaces a part with a note of at most `allowance` tokens. Reasoning is removed without a note: its allowance
    /// counts as 0.
    ///
    /// A shortened part may be shortened further, by this method or by [`clamp`](Self::clamp): the last verdict counts,
    /// and each verdict leaves less than the one before.
    ///
    /// Reasoning that is the only content of its message stays, for every provider. Without it the message would have
    /// no content. Providers refuse such a message where it stands alone. Where neighbours are joined, the message
    /// would be gone although its group is kept. To remove such reasoning, drop the group.
    ///
    /// The plan counts `allowance` tokens for the part, even if the note is shorter: allow little more than the size of
    /// the note.
    ///
    /// # Errors
    /// [`Refusal`] if there is no such part, if its group is dropped, replaced, protected or too large to be counted,
    /// if the note is not smaller than the part, or if the allowance exceeds
    /// [`ELIDED_TOKENS_MAX`](crate::ELIDED_TOKENS_MAX). Reasoning is refused if it is of the current turn, the only
    /// content of its message, or elided already. The draft is unchanged then.
    pub fn elide(&mut self, part: &IndexedPart<'_>, allowance: Tokens) -> Result<(), Refusal> {
        let (cell, freed) = self.check_elide(part, allowance)?;
        self.edit(part, cell, freed);
        Ok(())
    }

    /// Whether [`Draft::elide`] would be legal.
    #[must_use]
    pub fn may_elide(&self, part: &IndexedPart<'_>, allowance: Tokens) -> bool {
        self.check_elide(part, allowance).is_ok()
    }

    /// Shortens a part to the size of a clamp: a tool result, the arguments of a call or a huge text.
    ///
    /// The ends of the part stay, or the excerpt that the program chooses when it fills the plan.
    ///
    /// # Errors
    /// [`Refusal`] if there is no such part, if its group is dropped, replaced, protected or too large to be counted,
    /// if the part has no ends, if the clamp is not smaller than the part, or if the plan has no room for another clamp
    /// size (at most [`CLAMPS_MAX`](crate::CLAMPS_MAX)). The draft is unchanged then.
    pub fn clamp(&mut self, part: &IndexedPart<'_>, clamp: Clamp) -> Result<(), Refusal> {
        let freed = self.check_clamp(part, clamp)?;
        let number = self.clamps.number(clamp).ok_or(Refusal::NoRoom)?;
        self.edit(part, Cell::clamped(number), freed);
        Ok(())
    }

    /// Whether [`Draft::clamp`] would be legal.
    #[must_use]
    pub fn may_clamp(&self, part: &IndexedPart<'_>, clamp: Clamp) -> bool {
        self.check_clamp(part, clamp).is_ok() && self.clamps.has_room_for(clamp)
    }

    /// The present verdict on a part. It is valid only while the group of the part is kept.
    #[must_use]
    pub fn part_verdict(&self, part: &IndexedPart<'_>) -> PartVerdict {
        let cell = self.parts.get(part.at() as usize);
        cell.map_or(PartVerdict::Keep, |cell| self.clamps.verdict(*cell))
    }

    /// The present size of a part, in tokens: less than [`IndexedPart::tokens`] if the part is shortened.
    ///
    /// A shortened part counts with the maximum size of its stand-in. Like [`part_verdict`](Self::part_verdict), the
    /// size is valid only while the group of the part is kept.
    #[must_use]
    pub fn part_tokens_left(&self, part: &IndexedPart<'_>) -> Tokens {
        left_of(self.part_verdict(part), part.tokens())
    }

    /// The number of tokens that a clamp frees.
    fn check_clamp(&self, part: &IndexedPart<'_>, clamp: Clamp) -> Result<Tokens, Refusal> {
        let (_, now) = self.check_part(part)?;
        if !matches!(part.kind(), PartKind::ToolResult | PartKind::ToolInput | PartKind::Text) {
            return Err(Refusal::NoEnds);
        }
        now.freed_by(clamp.tokens_max())
    }

    /// The cell of an elided part, and the number of tokens that the elision frees.
    fn check_elide(&self, part: &IndexedPart<'_>, allowance: Tokens) -> Result<(Cell, Tokens), Refusal> {
        let (group, now) = self.check_part(part)?;
        if part.kind() == PartKind::Reasoning {
            if group.turn == self.index.turn() {
                return Err(Refusal::CurrentTurn);
            }
            if part.is_all_of_its_message() {
                return Err(Refusal::OnlyContent);
            }
            if now.edited {
                return Err(Refusal::Edited);
            }
            // Encrypted reasoning counts no tokens, and is removed with the readable text.
            return Ok((Cell::elided(Tokens::ZERO).ok_or(Refusal::NoRoom)?, now.tokens));
        }
        let freed = now.freed_by(allowance)?;
        Ok((Cell::elided(allowance).ok_or(Refusal::NoRoom)?, freed))
    }

    /// Checks the conditions of every verdict on a part of a group that stays.
    ///
    /// Returns the leader of the group, which is smaller than the group, and the present state of the part.
    fn check_part(&self, part: &IndexedPart<'_>) -> Result<(&Span, Now), Refusal> {
        let group = self.index.span(part.leader()).ok_or(Refusal::NoPart)?;
        let cell = self.cell(part.leader()).ok_or(Refusal::NoGroup)?;
        self.check_kept(cell)?;
        if cell.has(Cell::HARD) {
            return Err(Refusal::Protected);
        }
        match self.parts.get(part.at() as usize) {
            None => Err(Refusal::NoPart),
            Some(_) if group.tokens == Tokens::MAX.0 => Err(Refusal::Uncounted),
            Some(cell) => {
                let tokens = self.clamps.left(*cell, part.tokens());
                Ok((group, Now { tokens, edited: *cell != Cell::EMPTY }))
            }
        }
    }

    pub(super) fn edit(&mut self, part: &IndexedPart<'_>, cell: Cell, freed: Tokens) {
        if let Some(place) = self.parts.get_mut(part.at() as usize) {
            *place = cell;
        }
        if let Some(group) = self.cells.get_mut(part.leader() as usize) {
            group.set(Cell::EDITED);
        }
        self.tokens = self.tokens.saturating_sub(freed.as_u64());
    }

    /// Takes back the verdicts on the parts of a group that does not stay. Each group needs it once. (Most groups have
    /// no such verdicts, and a loop over all groups should not contain this code.)
    #[cold]
    pub(super) fn forget_edits(&mut self, leader: u32) {
        let Some(cell) = self.cells.get_mut(leader as usize).filter(|cell| cell.has(Cell::EDITED)) else {
            return;
        };
        cell.unset(Cell::EDITED);
        // Plain loops: the iterators in iterators behind `Group::parts` take two kilobytes of a small stack.
        let index = self.index;
        let Some(group) = index.group(leader) else { return };
        for positions in group.positions() {
            for at in index.parts_in(positions) {
                self.forget_edit(at);
            }
        }
    }

    fn forget_edit(&mut self, at: usize) {
        let (Some(place), Some(part)) = (self.parts.get_mut(at), self.index.parts.get(at)) else { return };
        let left = self.clamps.left(*place, part.tokens());
        *place = Cell::EMPTY;
        self.tokens = self.tokens.saturating_add(u64::from(part.tokens().0.saturating_sub(left.0)));
    }
}

/// Present size of a part, after the verdicts so far.
struct Now {
    tokens: Tokens,
    edited: bool,
}

impl Now {
    /// Tokens that become free if `left` tokens of the part stay.
    fn freed_by(&self, left: Tokens) -> Result<Tokens, Refusal> {
        if left >= self.tokens {
            return Err(if self.edited { Refusal::Edited } else { Refusal::NotSmaller });
        }
        Ok(Tokens(self.tokens.0.saturating_sub(left.0)))
    }
}

/// Maximum size of a part, by its verdict.
pub(crate) const fn left_of(verdict: PartVerdict, tokens: Tokens) -> Tokens {
    match verdict {
        PartVerdict::Keep => tokens,
        PartVerdict::Elide(allowance) => allowance,
        PartVerdict::Clamp(clamp) => clamp.tokens_max(),
    }
}
