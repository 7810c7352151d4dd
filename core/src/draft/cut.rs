//! Cutting results of tools where not even what is protected fits the window. What strategies shorten is in `parts`.

use super::{Cell, Clamp, Draft, ELIDED_TOKENS_MAX};
use crate::Tokens;
use crate::index::{Flags, IndexedPart, PartKind, Span};

impl Draft<'_> {
    /// Cuts the largest results of protected steps to one size, where what is protected has more than a request may have: one
    /// result must not end a conversation. Together they get half of what the rest of what is protected leaves of the goal, or
    /// where that is too little, of the limit. Pins stay whole. Nothing is cut where that would not be enough. Says whether
    /// something was.
    pub(crate) fn cut_results(&mut self) -> bool {
        let limit = self.budget.limit();
        if self.floors.hard <= limit {
            return false;
        }
        let rest = self.floors.hard.saturating_sub(self.results_within(Tokens::MAX));
        let least = self.results_within(ELIDED_TOKENS_MAX);
        let rooms = [self.budget.goal().unwrap_or(limit), limit].map(|target| target.checked_sub(rest));
        let Some(room) = rooms.into_iter().flatten().find(|room| least <= *room) else { return false };
        // The largest size at which all of them have at most half of the room.
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

    /// Tokens of the results of protected steps together, if none has more than `size`.
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
