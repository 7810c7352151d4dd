//! The ledger, as it is described.

use epitome_core::{Budget, GroupKind};

use super::{Draft, Summary};
use crate::strategy::TestStrategy;

/// Minimum tokens of a ledger. Its maximum is half of the removed tokens.
const LEAST: u64 = 80;

/// The budget with its goal lowered by this amount.
pub(super) fn lower(budget: Budget, by: u64) -> Budget {
    let Some(goal) = budget.goal() else { return budget };
    let lower = Budget::builder()
        .window(budget.window())
        .reserve(budget.reserve())
        .trigger(budget.trigger())
        .min_reclaim(budget.min_reclaim())
        .goal(goal.saturating_sub(by));
    lower.build().expect("a lower goal is as good")
}

impl Draft<'_> {
    /// Tokens of the goal that a stage needs for itself.
    pub(super) fn reserve(&self, stage: &TestStrategy) -> u64 {
        match stage {
            TestStrategy::Ledger { share } => {
                let Some(goal) = self.budget.goal() else { return 0 };
                let has = self.ledger_has(u64::from(*share));
                let summaries: u64 = self.old_summaries().map(|at| self.size_of(at)).sum();
                let beside = has.saturating_sub(summaries).max(1);
                match has {
                    ..LEAST => 0,
                    has if self.always() + beside > goal => has,
                    _ => beside,
                }
            }
            TestStrategy::Pipeline(stages) => stages.iter().map(|stage| self.reserve(stage)).sum(),
            _ => 0,
        }
    }

    /// The summaries that may go.
    pub(super) fn old_summaries(&self) -> impl Iterator<Item = usize> {
        (0..self.groups.len()).filter(|at| self.groups[*at].kind == GroupKind::Summary && self.may_drop(*at))
    }

    /// Tokens of a ledger: a share of the goal, and in the first compaction at most a tenth of the tokens over the
    /// goal.
    fn ledger_has(&self, share: u64) -> u64 {
        let groups = self.groups.iter().filter(|group| group.kind != GroupKind::Orphan);
        let all: u64 = groups.map(|group| self.naive.tokens(group)).sum();
        let goal = self.budget.goal().unwrap_or(self.tokens());
        let share = goal * share.min(100) / 100;
        let was_compacted = self.groups.iter().any(|group| group.kind == GroupKind::Summary);
        if was_compacted { share } else { share.min(all.saturating_sub(goal) / 10) }
    }

    /// Puts a ledger in the place of one run of removed groups. The choice, in this order: the run with a summary, the
    /// oldest run behind a message that stays, the oldest shortened group if it is behind such a message, the oldest
    /// run, the oldest shortened group.
    ///
    /// If the goal is missed and the soft floor is above it, removed summaries count as visible ones do, and stay if there is no ledger. The ledger has
    /// its share then, as far as the request fits the limit.
    pub(super) fn ledger(&mut self, share: u64) {
        if self.ledger_has(share) < LEAST {
            return;
        }
        let is_above = |goal| self.tokens() > goal && self.floors().1 > goal;
        let is_missed = self.budget.goal().is_some_and(is_above);
        let before = self.summaries.len();
        self.put_ledger(share, is_missed);
        if is_missed && self.summaries.len() == before {
            for at in 0..self.groups.len() {
                let fits = self.tokens() + self.size_of(at) <= self.budget.limit();
                if self.dropped[at] && self.groups[at].kind == GroupKind::Summary && fits {
                    self.dropped[at] = false;
                    (self.waits[at], self.protected.held[at]) = (false, true);
                }
            }
        }
    }

    fn put_ledger(&mut self, share: u64, is_missed: bool) {
        let most = self.ledger_has(share);
        let seen = self.groups.iter().filter(|group| group.kind != GroupKind::Orphan);
        let taken = seen.map(|group| self.naive.tokens(group)).sum::<u64>() - self.tokens();
        let edited = |at: &usize| self.shortened().any(|part| self.group_of(part) == *at);
        let is_news = |at: &usize| {
            let counts = !matches!(self.groups[*at].kind, GroupKind::Orphan | GroupKind::Summary);
            counts && (self.dropped[*at] || edited(at))
        };
        let news = (0..self.groups.len()).any(|at| is_news(&at));
        if !news || !self.summaries.is_empty() {
            return;
        }
        let runs = self.runs();
        let is_shown = |at: &usize| !self.dropped[*at];
        let counts = |at: &usize| is_shown(at) || is_missed && self.groups[*at].kind == GroupKind::Summary;
        let has_summary = |run: &&Vec<usize>| run.iter().any(counts);
        let shortened = (0..self.groups.len())
            .find(|at| self.may_drop(*at) && edited(at) && self.groups[*at].kind != GroupKind::Summary);
        let instructs = |at: &usize| matches!(self.groups[*at].kind, GroupKind::Orphan | GroupKind::System);
        let is_behind = |run: &&Vec<usize>| (0..run[0]).any(|at| is_shown(&at) && !instructs(&at));
        let shortened = shortened.map(|at| vec![at]);
        let behind = runs.iter().find(is_behind).or(shortened.as_ref().filter(is_behind));
        let run = runs.iter().find(has_summary).or(behind).or(runs.first()).or(shortened.as_ref()).cloned();
        let Some(run) = run else { return };
        let size = |at: &usize| self.size_of(*at);
        let shown: u64 = run.iter().filter(|at| is_shown(at)).map(size).sum();
        let is_summary = |at: &&usize| self.groups[**at].kind == GroupKind::Summary && counts(at);
        let summaries: u64 = run.iter().filter(is_summary).map(size).sum();
        let target = match self.budget.goal() {
            Some(_) if is_missed => self.budget.limit().min(self.tokens() + self.ledger_has(share)),
            goal => goal.unwrap_or(self.budget.limit()),
        };
        let free = target.saturating_sub(self.tokens()) + shown;
        // Twice as much, where there is room in the goal.
        let most = if self.budget.goal().is_some() { most * 2 } else { most };
        let allowance = most.min(free).min(taken / 2).max(summaries);
        let after = self.tokens() - shown + allowance;
        let fits = after <= self.tokens() || after <= self.budget.limit();
        if allowance < LEAST || allowance >= taken + shown || !fits {
            return;
        }
        run.iter().for_each(|at| self.dropped[*at] = false);
        self.forget_edits(&run);
        let tokens = u32::try_from(allowance).unwrap_or(u32::MAX);
        self.summaries.push(Summary { groups: run, tokens });
    }

    /// Runs of removed groups and of summaries that may go. Removed instructions and orphans are skipped.
    fn runs(&self) -> Vec<Vec<usize>> {
        let unseen = |at: &usize| matches!(self.groups[*at].kind, GroupKind::Orphan | GroupKind::System);
        let seen: Vec<usize> =
            (0..self.groups.len()).filter(|at| !(self.dropped[*at] && unseen(at))).collect();
        let stays = |at: &usize| {
            let summary = self.groups[*at].kind == GroupKind::Summary && self.may_drop(*at);
            !self.dropped[*at] && !summary
        };
        let runs = seen.split(stays).filter(|run| !run.is_empty());
        runs.map(<[usize]>::to_vec).collect()
    }
}
