//! Verdicts on parts of groups that are kept.

use super::{Cell, Clamp, Draft, PartVerdict, Refusal};
use crate::Tokens;
use crate::index::{IndexedPart, PartKind, Span};

impl Draft<'_> {
    /// Lets a note of at most `allowance` tokens stand in the place of a part. Reasoning goes without a note: its
    /// allowance is nothing.
    ///
    /// A part that is shortened already may be shortened further, by this or by [`clamp`](Self::clamp): the last verdict
    /// counts, and each leaves less than the one before.
    ///
    /// Reasoning that is all that its message holds stays, whoever the request is for: without it the message would have
    /// no content, which is refused by providers where it stands alone, and where neighbours are joined it would be gone
    /// though its group is kept. To be rid of it, drop the group.
    ///
    /// The plan counts `allowance` tokens for the part, however short the note is: allow little more than the note has.
    ///
    /// # Errors
    /// [`Refusal`] if that would not be legal; nothing is changed then.
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

    /// Lets only so much of a part stay, of a tool result, the arguments of a call or a huge text: its ends, or the excerpt that
    /// whoever fills the plan chooses.
    ///
    /// # Errors
    /// [`Refusal`] if that would not be legal; nothing is changed then.
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

    /// The verdict on a part, as it stands. It is worth something only while its group is kept.
    #[must_use]
    pub fn part_verdict(&self, part: &IndexedPart<'_>) -> PartVerdict {
        let cell = self.parts.get(part.at() as usize);
        cell.map_or(PartVerdict::Keep, |cell| self.clamps.verdict(*cell))
    }

    /// The present size of a part, in tokens: less than [`IndexedPart::tokens`] if it is shortened, at most all that may stand in its
    /// place. Like [`part_verdict`](Self::part_verdict) it is worth something only while its group is kept.
    #[must_use]
    pub fn part_tokens_left(&self, part: &IndexedPart<'_>) -> Tokens {
        left_of(self.part_verdict(part), part.tokens())
    }

    /// How much less a clamped part has.
    fn check_clamp(&self, part: &IndexedPart<'_>, clamp: Clamp) -> Result<Tokens, Refusal> {
        let (_, now) = self.check_part(part)?;
        if !matches!(part.kind(), PartKind::ToolResult | PartKind::ToolInput | PartKind::Text) {
            return Err(Refusal::NoEnds);
        }
        now.freed_by(clamp.tokens_max())
    }

    /// The cell of an elided part, and how much less it has with it.
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
            // Sealed reasoning counts as nothing, and goes with what is readable.
            return Ok((Cell::elided(Tokens::ZERO).ok_or(Refusal::NoRoom)?, now.tokens));
        }
        let freed = now.freed_by(allowance)?;
        Ok((Cell::elided(allowance).ok_or(Refusal::NoRoom)?, freed))
    }

    /// Checks the conditions of every verdict on a part of a group that stays.
    ///
    /// Gives the leader of its group, which is smaller than the group, and the present state of the part.
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

    /// Takes the verdicts on the parts of a group back: it does not stay. Each group does so once. (Most groups have none,
    /// and a walk over all of them should not carry this with it.)
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

/// Present size of a part, as the verdicts stand.
struct Now {
    tokens: Tokens,
    edited: bool,
}

impl Now {
    /// Tokens that become free if `left` is left of it.
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
