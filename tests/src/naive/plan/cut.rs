//! Cuts results of protected steps if the protected groups do not fit.

use epitome_core::{ELIDED_TOKENS_MAX, PartKind};

use super::Draft;
use crate::naive::protected::is_step;

impl Draft<'_> {
    /// Cuts the largest results to one size. Together the results get half of the room that the other protected content
    /// leaves of the goal, or of the limit if the goal is too small. A result stays whole if all larger results could
    /// have the same size.
    pub(super) fn cut_results(&mut self) {
        let (hard, limit) = (self.floors().0, self.budget.limit());
        if hard <= limit {
            return;
        }
        let may_cut = |at: &usize| {
            let group = self.group_of(&self.parts[*at]);
            let own = &self.groups[group];
            self.parts[*at].kind == PartKind::ToolResult
                && self.protected.hard[group]
                && is_step(own)
                && !self.naive.is_pinned(own)
                && self.naive.tokens(own) < u64::from(u32::MAX)
        };
        let mut results: Vec<usize> = (0..self.parts.len()).filter(may_cut).collect();
        results.sort_by_key(|at| self.parts[*at].tokens);
        let sizes: Vec<u64> = results.iter().map(|at| u64::from(self.parts[*at].tokens)).collect();
        let rest = hard - sizes.iter().sum::<u64>();
        let least = ELIDED_TOKENS_MAX.as_u64();
        let all = |size: u64| sizes.iter().map(|tokens| *tokens.min(&size)).sum::<u64>();
        let fits = |target: &u64| rest + all(least) <= *target;
        let Some(target) = self.budget.goal().filter(fits).or(Some(limit).filter(fits)) else { return };
        let (mut left, mut size) = ((target - rest) / 2, 0);
        for (at, tokens) in sizes.iter().enumerate() {
            let others = (sizes.len() - at) as u64;
            if tokens * others > left {
                size = left / others;
                break;
            }
            left -= tokens;
        }
        let size = size.max(least);
        for at in results {
            let part = &mut self.parts[at];
            if let Some(freed) = u64::from(part.tokens).checked_sub(size).filter(|freed| *freed > 0) {
                self.cut += freed;
                part.left = Some(u32::try_from(size).expect("it is less than a part has"));
            }
        }
    }
}
