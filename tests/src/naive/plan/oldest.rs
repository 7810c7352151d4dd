//! Drops by age: one group after another while there are too many tokens.

use epitome_compactors::Strength;
use epitome_core::GroupKind;

use super::{Draft, Group, begins_turn};

impl Draft<'_> {
    /// Drops the oldest groups; those of the newest `recent` turns go last.
    pub(super) fn run_oldest(&mut self, recent: u32) {
        let spared = (self.naive.turn + 1).saturating_sub(recent);
        self.drop_oldest_but_summaries(|group| group.turn < spared);
        self.drop_oldest();
        self.fit();
    }

    /// Drops the oldest groups; summaries go last.
    pub(super) fn drop_oldest(&mut self) {
        self.drop_oldest_but_summaries(|_| true);
        self.walk(self.budget.goal().unwrap_or(u64::MAX), Self::may_drop, false);
    }

    pub(super) fn drop_oldest_but_summaries(&mut self, may: impl Fn(&Group) -> bool) {
        self.release();
        let goal = self.budget.goal().unwrap_or(u64::MAX);
        self.walk(goal, |draft, at| draft.may_drop_first(at) && may(&draft.groups[at]), false);
    }

    pub(super) fn may_drop_first(&self, at: usize) -> bool {
        self.may_drop(at) && self.groups[at].kind != GroupKind::Summary
    }

    /// Drops groups until the request fits. The newest steps, and the summaries that they rely on, go only when nothing
    /// else is left.
    pub(super) fn fit(&mut self) {
        self.release();
        let limit = self.budget.limit();
        self.walk(limit, Self::may_drop_first, false);
        self.walk(limit, Self::may_drop, false);
        self.walk(limit, |draft, at| !draft.is_gone(at) && !draft.protected.hard[at], true);
        // The floor fits; the summaries of an earlier stage need not fit.
        assert!(self.tokens() <= limit || !self.summaries.is_empty(), "the floor fits");
    }

    /// Drops one group after another while there are too many tokens. At the end of a turn its request goes too, if
    /// none of its steps stays.
    pub(super) fn walk(&mut self, target: u64, may: impl Fn(&Self, usize) -> bool, summaries_too: bool) {
        for at in 0..self.groups.len() {
            if begins_turn(self.first(at)) {
                self.drop_waiting(at);
                if self.tokens() <= target {
                    return;
                }
            }
            if self.tokens() > target && may(self, at) {
                let summary = self.groups[at].kind == GroupKind::Summary;
                match self.naive.opens(&self.groups[at]) && !(summary && summaries_too) {
                    true => self.waits[at] = true,
                    false => self.dropped[at] = true,
                }
            }
        }
        self.drop_waiting(self.groups.len());
    }

    /// Drops the groups that wait for steps, if these steps are gone and a strategy has called `Draft::drop`.
    pub(super) fn release(&mut self) {
        if self.is_waiting {
            self.drop_waiting(self.groups.len());
        }
    }

    /// Drops the groups before this one that wait for steps of which none stays.
    pub(super) fn drop_waiting(&mut self, before: usize) {
        for at in 0..before {
            let alone = self.naive.relying(&self.groups, at).all(|step| self.is_gone(step));
            if self.waits[at] && !self.is_gone(at) && alone {
                self.dropped[at] = true;
            }
        }
    }

    /// Drops a group; a request or a summary goes with the last step that relies on it.
    pub(super) fn drop(&mut self, at: usize) {
        match self.naive.opens(&self.groups[at]) {
            true => (self.waits[at], self.is_waiting) = (true, true),
            false => self.dropped[at] = true,
        }
    }

    /// Drops the oldest of the messages that may go, in whole groups; the strength decides how many of the newest stay.
    pub(super) fn drop_share(&mut self, spared: u32, strength: Strength) {
        let mut candidates: Vec<usize> = (0..self.groups.len())
            .filter(|at| self.may_drop_first(*at) && self.groups[*at].turn < spared)
            .collect();
        let messages = |at: &usize| self.groups[*at].members.len();
        let quarters = match strength {
            Strength::Light => 3,
            Strength::Aggressive => 1,
            _ => 2,
        };
        let room = candidates.iter().map(messages).sum::<usize>() * quarters / 4;
        let mut gone = Vec::new();
        while candidates.iter().map(messages).sum::<usize>() > room {
            gone.push(candidates.remove(0));
        }
        gone.into_iter().for_each(|at| self.drop(at));
    }
}
