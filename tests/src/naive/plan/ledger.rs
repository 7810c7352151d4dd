//! The ledger, by its words.

use epitome_core::{Budget, GroupKind};

use super::{Draft, Summary};
use crate::spec::Spec;

/// Half of what it replaces, and no less than this.
const LEAST: u64 = 80;

/// The same budget with a goal that is lower.
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
    /// What a stage needs of the goal for itself.
    pub(super) fn reserve(&self, stage: &Spec) -> u64 {
        match stage {
            Spec::Ledger { share } if self.budget.goal().is_some() => self.ledger_has(u64::from(*share)),
            Spec::Pipeline(stages) => stages.iter().map(|stage| self.reserve(stage)).sum(),
            _ => 0,
        }
    }

    /// A share of the goal, and at most a tenth of what is to go.
    fn ledger_has(&self, share: u64) -> u64 {
        let groups = self.groups.iter().filter(|group| group.kind != GroupKind::Orphan);
        let all: u64 = groups.map(|group| self.naive.tokens(group)).sum();
        let goal = self.budget.goal().unwrap_or(self.tokens());
        (goal * share.min(100) / 100).min(all.saturating_sub(goal) / 10)
    }

    /// One message for the oldest run of groups that are gone, with the summaries that can be reached.
    pub(super) fn ledger(&mut self, share: u64) {
        let most = self.ledger_has(share);
        if most < LEAST || !self.summaries.is_empty() {
            return;
        }
        let free = self.budget.goal().unwrap_or(self.budget.limit()).saturating_sub(self.tokens());
        let best = |draft: &Self, also_kept: bool| {
            let mut best = None::<((bool, u64), Run)>;
            for segment in draft.segments() {
                let run = draft.run_in(&segment, most * 2, also_kept);
                let worth = run.as_ref().and_then(|run| run.allowance(most, free)).zip(run);
                if let Some((allowance, run)) = worth {
                    let worth = (run.summaries > 0, allowance);
                    if best.as_ref().is_none_or(|(known, _)| worth > *known) {
                        best = Some((worth, run));
                    }
                }
            }
            best
        };
        let shortened = self.shortened().next().is_some();
        let Some(((_, allowance), run)) =
            best(self, false).or_else(|| shortened.then(|| best(self, true)).flatten())
        else {
            return;
        };
        let first = run.groups.iter().min().copied().unwrap_or(0);
        let last = run.groups.iter().max().copied().unwrap_or(0);
        let in_span = |at: &usize| {
            !matches!(self.groups[*at].kind, GroupKind::Orphan)
                && !(self.groups[*at].kind == GroupKind::System)
        };
        let groups: Vec<usize> = (first..=last).filter(in_span).collect();
        groups.iter().for_each(|at| self.dropped[*at] = false);
        self.forget_edits(&groups);
        let tokens = u32::try_from(allowance).unwrap_or(u32::MAX);
        self.summaries.push(Summary { groups, tokens });
    }

    /// The groups between those that stay whatever happens; what is never seen is in none.
    fn segments(&self) -> Vec<Vec<usize>> {
        let seen = |at: &usize| {
            let kind = self.groups[*at].kind;
            !(self.dropped[*at] && matches!(kind, GroupKind::Orphan | GroupKind::System))
        };
        let seen: Vec<usize> = (0..self.groups.len()).filter(seen).collect();
        let stays = |at: &usize| {
            !self.dropped[*at] && (!self.may_drop(*at) || self.groups[*at].kind == GroupKind::System)
        };
        seen.split(stays).map(<[usize]>::to_vec).collect()
    }

    /// From the first that is gone, or a summary, on: what is gone beside, every summary, and what is between them until there is
    /// enough.
    fn run_in(&self, segment: &[usize], enough: u64, also_kept: bool) -> Option<Run> {
        let is_summary = |at: usize| self.groups[at].kind == GroupKind::Summary;
        let mut run = None::<Run>;
        let mut between = Vec::new();
        for at in segment.iter().copied() {
            let work = run.as_ref().map_or(0, |run| run.work);
            let wanted = match (self.dropped[at], is_summary(at)) {
                (true, _) => between.is_empty() || work < enough,
                (false, true) => true,
                (false, false) => also_kept && (run.is_none() || work < enough),
            };
            if wanted {
                let mut grown = run.take().unwrap_or_default();
                between.drain(..).for_each(|at| grown.add(self, at));
                grown.add(self, at);
                grown.news |= !is_summary(at) && (self.dropped[at] || also_kept);
                run = Some(grown);
            } else if run.is_some() && !self.dropped[at] {
                between.push(at);
            }
        }
        run
    }
}

/// What a ledger replaces.
#[derive(Default)]
struct Run {
    groups: Vec<usize>,
    summaries: u64,
    work: u64,
    shown: u64,
    news: bool,
}

impl Run {
    fn add(&mut self, draft: &Draft<'_>, at: usize) {
        let gone = draft.dropped[at];
        let shown = if gone { 0 } else { draft.size_of(at) };
        // Between two that are gone, what is shown counts as it is; else as it was.
        let size = draft.naive.tokens(&draft.groups[at]);
        match draft.groups[at].kind {
            GroupKind::Summary => self.summaries += shown,
            _ => self.work += size,
        }
        self.shown += shown;
        self.groups.push(at);
    }

    fn allowance(&self, most: u64, free: u64) -> Option<u64> {
        let most = most.min(free.saturating_add(self.shown));
        let allowance = most.min(self.work / 2).max(self.summaries);
        let worth = self.news && allowance >= LEAST && allowance < self.work + self.summaries;
        worth.then_some(allowance)
    }
}
