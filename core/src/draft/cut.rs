//! Cutting of tool results if the protected messages do not fit the window. The verdicts of strategies on parts are in
//! `parts`.

use super::{Cell, Clamp, Draft, ELIDED_TOKENS_MAX};
use crate::Tokens;
use crate::index::{Flags, IndexedPart, PartKind, Span};

impl Draft<'_> {
    /// Cuts the largest results of protected steps to one size, if the protected messages exceed the limit of a
    /// request: one result must not end a conversation.
    ///
    /// The results together get half of the room that the other protected messages leave of the goal, or of the limit
    /// if that is too little. Pins stay whole. If the limit leaves too little as well, nothing is cut. Returns whether
    /// a result was cut.
    pub(crate) fn cut_results(&mut self) -> bool {
        let limit = self.budget.limit();
        if self.floors.hard <= limit {
            return false;
        }
        let rest = self.floors.hard.saturating_sub(self.results_within(Tokens::MAX));
        let least = self.results_within(ELIDED_TOKENS_MAX);
        let rooms = [self.budget.goal().unwrap_or(limit), limit].map(|target| target.checked_sub(rest));
        let Some(room) = rooms.into_iter().flatten().find(|room| least <= *room) else { return false };
        // The largest size at which all results together have at most half of the room.
        let mut size = ELIDED_TOKENS_MAX;
        for bit in (0..u32::BITS).rev() {
            let larger = Tokens(size.0.saturating_add(1_u32 << bit));
            if self.results_within(larger) <= room / 2 {
                size = larger;
            }
        }
        let Some(number) = self.clamps.number(Clamp::within(size)) else { return false };
        let before = self.tokens;
        for part in self.index.parts() {
            if part.tokens() > size && self.may_cut(&part) {
                self.edit(&part, Cell::clamped(number), Tokens(part.tokens().0.saturating_sub(size.0)));
            }
        }
        let freed = before.saturating_sub(self.tokens);
        self.floors.hard = self.floors.hard.saturating_sub(freed);
        self.floors.goal = self.floors.goal.saturating_sub(freed);
        true
    }

    /// Tokens of the results of protected steps together, each counted with at most `size`.
    fn results_within(&self, size: Tokens) -> u64 {
        let mut tokens = 0_u64;
        for part in self.index.parts() {
            if self.may_cut(&part) {
                tokens = tokens.saturating_add(part.tokens().min(size).as_u64());
            }
        }
        tokens
    }

    fn may_cut(&self, part: &IndexedPart<'_>) -> bool {
        let is_free = |span: &Span| !span.has(Flags::PINNED) && span.tokens != Tokens::MAX.0;
        part.kind() == PartKind::ToolResult
            && self.cell(part.leader()).is_some_and(|cell| cell.has(Cell::HARD))
            && self.index.span(part.leader()).is_some_and(is_free)
    }
}
