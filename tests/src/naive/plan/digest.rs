//! Dropped exchanges, digests of exchanges, and stale results, as the strategies are described.

use epitome_core::{GroupKind, PartKind};

use super::{Draft, Summary};

impl Draft<'_> {
    /// Drops all but the newest `keep` exchanges, oldest first, until the goal is met.
    pub(super) fn drop_exchanges(&mut self, keep: usize) {
        let shown = |at: &usize| self.groups[*at].kind == GroupKind::Exchange && !self.is_gone(*at);
        let mut old: Vec<usize> = (0..self.groups.len()).filter(shown).collect();
        old.truncate(old.len().saturating_sub(keep));
        for at in old {
            let enough = self.budget.goal().is_some() && self.is_goal_met();
            if !enough && self.may_drop(at) {
                self.drop(at);
            }
        }
    }

    /// Replaces all but the newest `keep` exchanges by digests, oldest first. Exchanges in a row, with the summaries
    /// between them, become one message.
    pub(super) fn digest(&mut self, keep: usize, chars: u64) {
        if !self.summaries.is_empty() {
            return;
        }
        let visible: Vec<usize> = (0..self.groups.len()).filter(|at| !self.dropped[*at]).collect();
        let mut old: Vec<usize> =
            visible.iter().copied().filter(|at| self.groups[*at].kind == GroupKind::Exchange).collect();
        old.truncate(old.len().saturating_sub(keep));
        let (toward_goal, mut run) = (self.budget.goal().is_some(), Vec::new());
        for at in visible {
            let old_enough = self.groups[at].kind == GroupKind::Summary || old.contains(&at);
            if old_enough && self.may_drop(at) {
                run.push(at);
                let goal = self.budget.goal().unwrap_or(0);
                let frees = self.digest_of(&run, chars).map(|left| self.work_of(&run).0 - left);
                if toward_goal && frees.is_some_and(|frees| self.tokens().saturating_sub(frees) <= goal) {
                    old.clear();
                }
                continue;
            }
            self.close(&mut run, chars);
            if toward_goal && self.is_goal_met() {
                return;
            }
        }
        self.close(&mut run, chars);
    }

    fn close(&mut self, run: &mut Vec<usize>, chars: u64) {
        let groups = core::mem::take(run);
        if let Some(tokens) = self.digest_of(&groups, chars) {
            self.forget_edits(&groups);
            self.summaries.push(Summary { groups, tokens: tokens as u32 });
        }
    }

    /// Tokens of all groups, and of those that are no summaries.
    pub(super) fn work_of(&self, run: &[usize]) -> (u64, u64) {
        let work = run.iter().filter(|at| self.groups[**at].kind != GroupKind::Summary);
        (run.iter().map(|at| self.size_of(*at)).sum(), work.map(|at| self.size_of(*at)).sum())
    }

    /// Tokens of a digest: half of the exchanges and all of the earlier summaries, at most a quarter of `chars`. `None`
    /// if that is less than 48 tokens or not less than the run has.
    fn digest_of(&self, run: &[usize], chars: u64) -> Option<u64> {
        let (all, work) = self.work_of(run);
        let most = (all - work + work / 2).min(chars / 4);
        (work > 0 && most >= 48 && most < all).then_some(most)
    }

    /// Clears all but the newest result of each tool.
    pub(super) fn supersede(&mut self, note: u32) {
        let seen = |at: &usize| {
            let part = &self.parts[*at];
            part.kind == PartKind::ToolResult && !self.is_gone(self.group_of(part))
        };
        let results: Vec<usize> = (0..self.parts.len()).filter(seen).collect();
        for (nth, at) in results.iter().enumerate() {
            let stale = results[nth + 1..].iter().any(|newer| self.tool(*newer) == self.tool(*at));
            if stale && self.may_shorten(*at, note) {
                self.parts[*at].left = Some(note);
            }
        }
    }
}
