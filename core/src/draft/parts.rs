//! Verdicts on parts of groups that are kept.

use super::{Cell, Clamp, Draft, PartVerdict, Refusal};
use crate::Tokens;
use crate::index::{IndexedPart, PartKind, Span};

impl Draft<'_> {
    /// Lets a note of at most `allowance` tokens stand in the place of a part. Reasoning goes without a note: its
    /// allowance is nothing.
    ///
    /// Reasoning that is all that its message holds stays, whoever the request is for: without it the message would have
    /// no content, which is refused by providers where it stands alone, and where neighbours are joined it would be gone
    /// though its group is kept. To be rid of it, drop the group.
    ///
    /// # Errors
    /// [`Refusal`] if that would not be legal; nothing is changed then.
    pub fn elide(&mut self, part: &IndexedPart<'_>, allowance: Tokens) -> Result<(), Refusal> {
        let (cell, allowance) = self.check_elide(part, allowance)?;
        self.edit(part, cell, allowance);
        Ok(())
    }

    /// Whether [`Draft::elide`] would be legal.
    #[must_use]
    pub fn may_elide(&self, part: &IndexedPart<'_>, allowance: Tokens) -> bool {
        self.check_elide(part, allowance).is_ok()
    }

    /// Lets only the head and the tail of a part stay: of a tool result or a huge text.
    ///
    /// # Errors
    /// [`Refusal`] if that would not be legal; nothing is changed then.
    pub fn clamp(&mut self, part: &IndexedPart<'_>, clamp: Clamp) -> Result<(), Refusal> {
        self.check_part(part)?;
        if !matches!(part.kind(), PartKind::ToolResult | PartKind::Text) {
            return Err(Refusal::NoEnds);
        }
        if clamp.tokens_max() >= part.tokens() {
            return Err(Refusal::NotSmaller);
        }
        let number = self.clamps.number(clamp).ok_or(Refusal::NoRoom)?;
        self.edit(part, Cell::clamped(number), clamp.tokens_max());
        Ok(())
    }

    /// The verdict on a part, as it stands. It is worth something only while its group is kept.
    #[must_use]
    pub fn part_verdict(&self, part: &IndexedPart<'_>) -> PartVerdict {
        let cell = self.parts.get(part.at() as usize);
        cell.map_or(PartVerdict::Keep, |cell| self.clamps.verdict(*cell))
    }

    /// The cell of an elided part, and what it may have.
    fn check_elide(&self, part: &IndexedPart<'_>, allowance: Tokens) -> Result<(Cell, Tokens), Refusal> {
        let group = self.check_part(part)?;
        if part.kind() == PartKind::Reasoning {
            if group.turn == self.index.turn() {
                return Err(Refusal::CurrentTurn);
            }
            if part.is_all_of_its_message() {
                return Err(Refusal::OnlyContent);
            }
            // Sealed reasoning counts as nothing, and goes with what is readable.
            return Ok((Cell::elided(Tokens::ZERO).ok_or(Refusal::NoRoom)?, Tokens::ZERO));
        }
        if allowance >= part.tokens() {
            return Err(Refusal::NotSmaller);
        }
        Ok((Cell::elided(allowance).ok_or(Refusal::NoRoom)?, allowance))
    }

    /// What a part of a group that stays must meet, whatever is to become of it.
    ///
    /// Gives the leader of its group, which is smaller than the group.
    fn check_part(&self, part: &IndexedPart<'_>) -> Result<&Span, Refusal> {
        let group = self.index.span(part.leader()).ok_or(Refusal::NoPart)?;
        let cell = self.cell(part.leader()).ok_or(Refusal::NoGroup)?;
        self.check_kept(cell)?;
        if cell.has(Cell::HARD) {
            return Err(Refusal::Protected);
        }
        match self.parts.get(part.at() as usize) {
            None => Err(Refusal::NoPart),
            Some(cell) if *cell != Cell::EMPTY => Err(Refusal::Edited),
            Some(_) if group.tokens == Tokens::MAX.0 => Err(Refusal::Uncounted),
            Some(_) => Ok(group),
        }
    }

    fn edit(&mut self, part: &IndexedPart<'_>, cell: Cell, left: Tokens) {
        if let Some(place) = self.parts.get_mut(part.at() as usize) {
            *place = cell;
        }
        if let Some(group) = self.cells.get_mut(part.leader() as usize) {
            group.set(Cell::EDITED);
        }
        self.tokens = self.tokens.saturating_sub(part.tokens().as_u64()).saturating_add(left.as_u64());
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
        let left = left_of(self.clamps.verdict(*place), part.tokens());
        *place = Cell::EMPTY;
        self.tokens = self.tokens.saturating_sub(left.as_u64()).saturating_add(part.tokens().as_u64());
    }
}

/// What a part has at most, by its verdict.
pub(crate) const fn left_of(verdict: PartVerdict, tokens: Tokens) -> Tokens {
    match verdict {
        PartVerdict::Keep => tokens,
        PartVerdict::Elide(allowance) => allowance,
        PartVerdict::Clamp(clamp) => clamp.tokens_max(),
    }
}
