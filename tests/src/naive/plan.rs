//! Plans by the words of the strategies: drop one group, add everything up again, ask whether it is enough.

use epitome_compactors::{Strength, Window};
use epitome_core::attribution::SourceKind;
use epitome_core::{Budget, GroupKind, Pass, Strategy};

use super::{Group, Naive, begins_turn};
use crate::spec::Spec;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// What may be spent.
    pub budget: Budget,
    /// Why the pass is made.
    pub pass: Pass,
    /// The rule.
    pub spec: Spec,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// What is protected has more than the limit.
    Infeasible {
        /// What is protected, in tokens.
        floor: u64,
        /// The sizes of the three largest protected groups, with their first messages.
        largest: Vec<(u64, usize)>,
    },
    /// There is nothing to change.
    Unchanged(&'static str),
    /// This is to be done.
    Planned(Planned),
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// One letter a group.
    pub verdicts: String,
    /// The size of the request.
    pub tokens_after: u64,
    /// Its messages.
    pub projection: Vec<usize>,
    /// How many of its messages, from the first on, stand as they stood.
    pub stable: usize,
    /// What these have together; not known where a group has more than one amount can hold.
    pub stable_tokens: Option<u64>,
    /// What cannot be dropped, and the same with the newest steps.
    pub floors: (u64, u64),
}

/// What is protected, group by group.
#[derive(Debug, Clone)]
pub struct Protected {
    /// Without exception.
    pub hard: Vec<bool>,
    /// As long as the request fits.
    pub held: Vec<bool>,
}

impl Protected {
    /// What `spec` protects.
    #[must_use]
    pub fn new(naive: &Naive<'_>, groups: &[Group], spec: &Spec) -> Self {
        let protection = spec.protection();
        let steps: Vec<usize> = (0..groups.len()).filter(|at| is_step(&groups[*at])).collect();
        let begins = |at: &usize| begins_turn(&naive.messages[groups[*at].members[0]]);
        let first_user = (0..groups.len()).find(begins).filter(|_| protection.first_user);
        let last_user = (0..groups.len()).rfind(begins);
        let hard = (0..groups.len()).map(|at| {
            let group = &groups[at];
            let leads =
                groups[..at].iter().all(|group| matches!(group.kind, GroupKind::System | GroupKind::Orphan));
            let caller = naive.messages[group.members[0]].source == SourceKind::Caller;
            let instruction = group.kind == GroupKind::System && caller && (protection.system || leads);
            let task = first_user == Some(at) || last_user == Some(at) || steps.last() == Some(&at);
            let kept = instruction || task || naive.is_pinned(group) || naive.is_open(group);
            kept && group.kind != GroupKind::Orphan
        });
        let newest: Vec<usize> = steps.iter().rev().take(protection.keep_steps as usize).copied().collect();
        let held = (0..groups.len()).map(|at| newest.contains(&at));
        Self { hard: hard.collect(), held: held.collect() }
    }
}

/// Decides what stays.
#[must_use]
pub fn plan(naive: &Naive<'_>, request: &Request) -> Outcome {
    let groups = naive.groups();
    let protected = Protected::new(naive, &groups, &request.spec);
    let dropped = groups.iter().map(|group| group.kind == GroupKind::Orphan).collect();
    let mut draft = Draft { naive, groups, protected, dropped, budget: request.budget };
    let floors = draft.floors();
    if floors.0 > request.budget.limit() {
        return Outcome::Infeasible { floor: floors.0, largest: draft.largest() };
    }
    if request.budget.goal().is_some() && draft.is_goal_met() {
        return Outcome::Unchanged("at_goal");
    }
    let before = draft.tokens();
    draft.run(&request.spec);
    let freed = before - draft.tokens();
    if freed == 0 {
        return Outcome::Unchanged("nothing_to_drop");
    }
    let over = before > request.budget.limit();
    if request.pass == Pass::Proactive && freed < request.budget.min_reclaim() && !over {
        return Outcome::Unchanged("too_little");
    }
    Outcome::Planned(draft.finish(floors))
}

#[derive(Debug)]
struct Draft<'a> {
    naive: &'a Naive<'a>,
    groups: Vec<Group>,
    protected: Protected,
    dropped: Vec<bool>,
    budget: Budget,
}

impl Draft<'_> {
    fn run(&mut self, spec: &Spec) {
        match spec {
            Spec::Truncate { recent, strength, .. } => {
                let spared = (self.naive.turn + 1).saturating_sub(*recent);
                if self.budget.goal().is_none() {
                    self.drop_share(spared, *strength);
                }
                self.drop_oldest(|group| group.turn < spared);
                self.drop_oldest(|_| true);
                self.fit();
                self.open_on_a_turn();
            }
            Spec::Window { window, .. } => {
                let inside = self.window(*window);
                for at in 0..self.groups.len() {
                    let outside = !inside.contains(&at) && self.groups[at].kind != GroupKind::System;
                    if outside && self.may_drop(at) {
                        self.dropped[at] = true;
                    }
                }
                self.drop_oldest(|_| true);
                self.fit();
                self.open_on_a_turn();
            }
            Spec::Pipeline(stages) => {
                for (at, stage) in stages.iter().enumerate() {
                    if at == 0 || self.budget.goal().is_none() || !self.is_goal_met() {
                        self.run(stage);
                    }
                }
            }
        }
    }

    fn drop_oldest(&mut self, may: impl Fn(&Group) -> bool) {
        while !self.is_goal_met() {
            let oldest = (0..self.groups.len()).find(|at| self.may_drop(*at) && may(&self.groups[*at]));
            let Some(oldest) = oldest else { return };
            self.dropped[oldest] = true;
        }
    }

    /// The newest steps go only when nothing else is left.
    fn fit(&mut self) {
        while self.tokens() > self.budget.limit() {
            let at = (0..self.groups.len()).find(|at| self.may_drop(*at)).or_else(|| {
                (0..self.groups.len()).find(|at| !self.dropped[*at] && !self.protected.hard[*at])
            });
            self.dropped[at.expect("the floor fits")] = true;
        }
    }

    /// Of the messages that may go, the newest stay, as many as the strength says, in whole groups.
    fn drop_share(&mut self, spared: u32, strength: Strength) {
        let mut candidates: Vec<usize> = (0..self.groups.len())
            .filter(|at| self.may_drop(*at) && self.groups[*at].turn < spared)
            .collect();
        let messages = |at: &usize| self.groups[*at].members.len();
        let quarters = match strength {
            Strength::Light => 3,
            Strength::Aggressive => 1,
            _ => 2,
        };
        let room = candidates.iter().map(messages).sum::<usize>() * quarters / 4;
        while candidates.iter().map(messages).sum::<usize>() > room {
            self.dropped[candidates.remove(0)] = true;
        }
    }

    /// The groups of the window: those of the oldest turn from which on everything fits; where no turn does, those from
    /// the oldest group from which on everything fits.
    fn window(&self, window: Window) -> Vec<usize> {
        let visible = |at: &usize| !self.dropped[*at] && self.groups[*at].kind != GroupKind::System;
        let from = |first: usize| (first..self.groups.len()).filter(visible).collect::<Vec<usize>>();
        let since = |turn: u32| {
            let groups = (0..self.groups.len()).filter(visible);
            groups.filter(|at| self.groups[*at].turn >= turn).collect::<Vec<usize>>()
        };
        if let Window::Turns(turns) = window {
            return since((self.naive.turn + 1).saturating_sub(turns));
        }
        let whole = (0..=self.naive.turn).map(since).find(|groups| self.fits(window, groups));
        let part = || (0..=self.groups.len()).map(from).find(|groups| self.fits(window, groups));
        whole.or_else(part).unwrap_or_default()
    }

    fn fits(&self, window: Window, groups: &[usize]) -> bool {
        let tokens = |at: &usize| self.naive.tokens(&self.groups[*at]);
        match window {
            Window::Groups(count) => groups.len() <= count as usize,
            Window::Tokens(room) => groups.iter().map(tokens).sum::<u64>() <= room,
            _ => {
                let goal = self.budget.goal().unwrap_or(self.budget.limit());
                let free = groups.iter().filter(|at| self.may_drop(**at));
                free.map(tokens).sum::<u64>() <= goal.saturating_sub(self.floors().1)
            }
        }
    }

    fn open_on_a_turn(&mut self) {
        let stays =
            |draft: &Self, at: &usize| !draft.dropped[*at] && draft.groups[*at].kind != GroupKind::System;
        while let Some(first) = (0..self.groups.len()).find(|at| stays(self, at)) {
            let group = &self.groups[first];
            if !is_step(group) || group.turn == 0 || !self.may_drop(first) {
                return;
            }
            self.dropped[first] = true;
        }
    }

    fn may_drop(&self, at: usize) -> bool {
        !self.dropped[at] && !self.protected.hard[at] && !self.protected.held[at]
    }

    fn tokens(&self) -> u64 {
        let kept = (0..self.groups.len()).filter(|at| !self.dropped[*at]);
        kept.map(|at| self.naive.tokens(&self.groups[at])).sum()
    }

    fn is_goal_met(&self) -> bool {
        self.budget.goal().is_none_or(|goal| self.tokens() <= goal)
    }

    fn floors(&self) -> (u64, u64) {
        let sum = |held: bool| {
            let protected = (0..self.groups.len())
                .filter(|at| self.protected.hard[*at] || held && self.protected.held[*at]);
            protected.map(|at| self.naive.tokens(&self.groups[at])).sum()
        };
        (sum(false), sum(true))
    }

    fn largest(&self) -> Vec<(u64, usize)> {
        let hard = (0..self.groups.len()).filter(|at| self.protected.hard[*at]);
        let mut sizes: Vec<(u64, usize)> =
            hard.map(|at| (self.naive.tokens(&self.groups[at]), self.groups[at].members[0])).collect();
        sizes.sort_by_key(|(tokens, at)| (core::cmp::Reverse(*tokens), *at));
        sizes.truncate(3);
        sizes
    }

    fn finish(self, floors: (u64, u64)) -> Planned {
        let letters = self.dropped.iter().map(|dropped| if *dropped { 'D' } else { 'K' });
        let kept = |anchor: usize| {
            (0..self.groups.len()).any(|at| self.groups[at].members[0] == anchor && !self.dropped[at])
        };
        let visible = self.naive.visible();
        let before = self.naive.projection(&|anchor| visible.contains(&anchor));
        let projection = self.naive.projection(&kept);
        let same = before.iter().zip(&projection).take_while(|(before, after)| before == after);
        let size = |(at, _): (&usize, _)| u64::from(self.naive.messages[*at].tokens);
        let full = |group| self.naive.tokens(group) == u64::from(u32::MAX);
        Planned {
            verdicts: letters.collect(),
            tokens_after: self.tokens(),
            stable: same.clone().count(),
            stable_tokens: (!self.groups.iter().any(full)).then(|| same.map(size).sum()),
            projection,
            floors,
        }
    }
}

fn is_step(group: &Group) -> bool {
    matches!(group.kind, GroupKind::Assistant | GroupKind::Exchange)
}
