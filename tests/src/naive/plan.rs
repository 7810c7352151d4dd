//! Plans as the strategies are described: drop one group, add everything up again, check whether it is enough.

mod clear;
mod cut;
mod digest;
mod ledger;
mod newest;
mod oldest;
mod salience;
mod summarize;
mod window;

use epitome_compactors::Strength;
use epitome_core::{Budget, GroupKind, Pass};

use super::verdicts::parts_of;
use super::{Group, Naive, Protected, Shortened, Summary, begins_turn};
use crate::message::Message;
use crate::strategy::TestStrategy;
use ledger::lower;

/// A request for a plan.
#[derive(Debug, Clone)]
pub struct Request {
    /// The limits.
    pub budget: Budget,
    /// The kind of the pass.
    pub pass: Pass,
    /// The strategy.
    pub strategy: TestStrategy,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The protected groups are larger than the limit.
    Infeasible {
        /// The size of the protected groups, in tokens.
        floor: u64,
        /// The sizes of the three largest protected groups, with their first messages.
        largest: Vec<(u64, usize)>,
    },
    /// There is nothing to change.
    Unchanged(&'static str),
    /// The plan to carry out.
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
    /// The number of unchanged messages at its beginning.
    pub stable: usize,
    /// The tokens of these messages; `None` where a group has the largest amount, which also stands for larger sizes.
    pub stable_tokens: Option<u64>,
    /// The size of the groups that cannot be dropped, alone and with the newest steps.
    pub floors: (u64, u64),
    /// Message, place in it, and size at most of each part that is shortened.
    pub shortened: Vec<(usize, usize, u32)>,
    /// The messages that each summary replaces, group by group, and its allowance.
    pub summaries: Vec<(Vec<usize>, u32)>,
}

impl Planned {
    /// The messages of the request with its summaries, each at the first message that it replaces; `before` is the
    /// request without the plan.
    #[must_use]
    pub fn shown(&self, before: &[usize]) -> Vec<usize> {
        let place = |at: usize| before.iter().position(|other| *other == at);
        let mut shown = self.projection.clone();
        for first in self.summaries.iter().filter_map(|(covered, _)| covered.first()) {
            let behind = |at: &usize| place(*at) > place(*first);
            let at = shown.iter().position(behind).unwrap_or(shown.len());
            shown.insert(at, *first);
        }
        shown
    }
}

/// Makes a plan.
#[must_use]
pub fn plan(naive: &Naive<'_>, request: &Request) -> Outcome {
    let groups = naive.groups();
    let protected = Protected::new(naive, &groups, &request.strategy);
    let dropped = groups.iter().map(|group| group.kind == GroupKind::Orphan).collect();
    let parts = (0..naive.messages.len()).flat_map(|at| parts_of(naive, at)).collect();
    let mut draft = Draft {
        naive,
        protected,
        dropped,
        waits: vec![false; groups.len()],
        is_waiting: false,
        groups,
        parts,
        summaries: Vec::new(),
        budget: request.budget,
        cut: 0,
    };
    let before = draft.tokens();
    draft.cut_results();
    let floors = draft.floors();
    if floors.0 > request.budget.limit() {
        return Outcome::Infeasible { floor: floors.0, largest: draft.largest() };
    }
    let is_met = request.budget.goal().is_some() && draft.is_goal_met();
    if is_met && draft.tokens() == before {
        return Outcome::Unchanged("at_goal");
    }
    if !is_met {
        draft.run(&request.strategy);
        draft.release();
        draft.join_summaries();
    }
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
    /// Requests and summaries that go with the last step that relies on them.
    waits: Vec<bool>,
    /// Whether a strategy has dropped such a group by `Draft::drop`.
    is_waiting: bool,
    parts: Vec<Shortened>,
    summaries: Vec<Summary>,
    budget: Budget,
    /// Tokens that were cut from protected results, so that the protected groups fit.
    cut: u64,
}

impl Draft<'_> {
    fn run(&mut self, strategy: &TestStrategy) {
        match strategy {
            TestStrategy::Truncate { recent, strength, .. } => {
                let spared = (self.naive.turn + 1).saturating_sub(*recent);
                if self.budget.goal().is_none() {
                    self.drop_share(spared, *strength);
                }
                self.run_oldest(*recent);
            }
            TestStrategy::Newest => {
                match self.budget.goal() {
                    None => self.drop_share((self.naive.turn + 1).saturating_sub(2), Strength::Moderate),
                    Some(goal) => self.newest(goal),
                }
                self.run_oldest(2);
                self.squeeze();
            }
            TestStrategy::Salience { recent, updates } => {
                match self.budget.goal() {
                    None => {
                        self.drop_share((self.naive.turn + 1).saturating_sub(*recent), Strength::Moderate)
                    }
                    Some(goal) => self.salience(goal, *recent, *updates),
                }
                self.run_oldest(*recent);
            }
            TestStrategy::Ledger { share } => self.ledger(u64::from(*share)),
            TestStrategy::Window { window, .. } => {
                let inside = self.window(*window);
                for at in 0..self.groups.len() {
                    let stays = matches!(self.groups[at].kind, GroupKind::System | GroupKind::Summary);
                    let outside = !inside.contains(&at) && !stays;
                    if outside && self.may_drop(at) {
                        self.drop(at);
                    }
                }
                self.drop_oldest();
                self.fit();
            }
            TestStrategy::Clear { keep, at_least, exclude, inputs, placeholder } => {
                let exclude = exclude.as_deref();
                self.clear_results((*keep, *inputs, *placeholder), u64::from(*at_least), exclude);
            }
            TestStrategy::Media { keep } => self.clear_media(*keep),
            TestStrategy::Reasoning { target, keep } => self.clear_reasoning(*target, *keep),
            TestStrategy::Clamp { max } => self.clamp_oversized(*max),
            TestStrategy::Ephemeral => self.drop_ephemeral(),
            TestStrategy::FixedSummary(summarize) => self.summarize(summarize.recent, summarize.tokens),
            TestStrategy::Summarization { recent, max, users } => {
                self.summarization(*recent, u64::from(*max), u64::from(*users));
            }
            TestStrategy::Exchanges { keep } => self.drop_exchanges(*keep as usize),
            TestStrategy::Digest { keep, chars } => self.digest(*keep as usize, u64::from(*chars)),
            TestStrategy::Supersede { placeholder } => self.supersede(*placeholder),
            TestStrategy::ContextWindow { window, output } => {
                let share =
                    |percent: u32| u64::from(window.saturating_sub(*output)) * u64::from(percent) / 100;
                for again in [false, true] {
                    if again && (self.budget.goal().is_none() || self.is_goal_met()) {
                        return;
                    }
                    self.clear_results((3, false, 9), share(5), None);
                    let goes_on = self.budget.goal().is_none() || !self.is_goal_met();
                    if goes_on && self.tokens() > share(80) {
                        self.run(&TestStrategy::truncate());
                    }
                }
            }
            TestStrategy::Pipeline(stages) => {
                let whole = self.budget;
                let reserve: u64 = stages.iter().map(|stage| self.reserve(stage)).sum();
                self.budget = lower(whole, reserve);
                self.run_without_reserve(stages);
                self.budget = whole;
                if reserve > 0 && !self.is_goal_met() {
                    self.run_without_reserve(stages);
                }
                for stage in stages.iter().filter(|_| reserve > 0) {
                    if self.reserve(stage) > 0 {
                        self.run(stage);
                    }
                }
            }
        }
    }

    fn run_without_reserve(&mut self, stages: &[TestStrategy]) {
        self.run_stages(stages);
        // If the goal is missed, a stage may find more to do after a later stage has dropped groups.
        for _ in 1..stages.len() {
            if self.budget.goal().is_some() && !self.is_goal_met() {
                self.run_stages(stages);
            }
        }
    }

    fn run_stages(&mut self, stages: &[TestStrategy]) {
        for (at, stage) in stages.iter().enumerate() {
            let goes_on = at == 0 || self.budget.goal().is_none() || !self.is_goal_met();
            if goes_on && self.reserve(stage) == 0 {
                self.run(stage);
            }
        }
    }

    fn may_drop(&self, at: usize) -> bool {
        !self.is_gone(at) && !self.protected.hard[at] && !self.protected.held[at]
    }

    /// The first message of a group.
    fn first(&self, at: usize) -> &Message {
        &self.naive.messages[self.groups[at].members[0]]
    }

    fn is_replaced(&self, at: usize) -> bool {
        self.summaries.iter().any(|summary| summary.groups.contains(&at))
    }

    fn is_gone(&self, at: usize) -> bool {
        self.dropped[at] || self.is_replaced(at)
    }

    fn tokens(&self) -> u64 {
        let kept = (0..self.groups.len()).filter(|at| !self.is_gone(*at));
        let all: u64 = kept.map(|at| self.naive.tokens(&self.groups[at])).sum();
        let summaries: u64 = self.summaries.iter().map(|summary| u64::from(summary.tokens)).sum();
        all + summaries
            - self.shortened().map(|part| u64::from(part.tokens - part.left.unwrap_or(0))).sum::<u64>()
    }

    /// The parts that have a verdict, of groups that are kept.
    fn shortened(&self) -> impl Iterator<Item = &Shortened> {
        self.parts.iter().filter(|part| part.left.is_some() && !self.is_gone(self.group_of(part)))
    }

    fn group_of(&self, part: &Shortened) -> usize {
        let own = |group: &Group| group.members.contains(&part.message);
        self.groups.iter().position(own).expect("each is in a group")
    }

    fn is_goal_met(&self) -> bool {
        self.budget.goal().is_none_or(|goal| self.tokens() <= goal)
    }

    fn floors(&self) -> (u64, u64) {
        let sum = |held: bool| {
            let protected = (0..self.groups.len()).filter(|at| {
                self.protected.hard[*at]
                    || held && (self.protected.held[*at] || self.protected.relied_on[*at])
            });
            protected.map(|at| self.naive.tokens(&self.groups[at])).sum::<u64>() - self.cut
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
        let edited = |at| self.shortened().any(|part| self.group_of(part) == at);
        let letter = |at: usize| match self.dropped[at] {
            true => 'D',
            false if self.is_replaced(at) => 'R',
            false if edited(at) => 'E',
            false => 'K',
        };
        let kept = |anchor: usize| {
            (0..self.groups.len()).any(|at| self.groups[at].members[0] == anchor && !self.is_gone(at))
        };
        let visible = self.naive.visible();
        let before = self.naive.projection(&|anchor| visible.contains(&anchor));
        let projection = self.naive.projection(&kept);
        let edited = |at: &usize| self.shortened().any(|part| part.message == *at);
        let same =
            before.iter().zip(&projection).take_while(|(before, after)| before == after && !edited(before));
        let stable = same.count();
        let full = |group| self.naive.tokens(group) == u64::from(u32::MAX);
        // An edit within a run of a group: no message of that run counts.
        let cut = projection.get(stable).filter(|at| before.get(stable) == Some(at));
        let whole = (0..stable)
            .rev()
            .take_while(|at| cut.is_some() && self.naive.is_one_run(&projection[*at..=stable]));
        let size = |at: &usize| u64::from(self.naive.messages[*at].tokens);
        let stable_tokens = projection[..stable - whole.count()].iter().map(size).sum();
        Planned {
            verdicts: (0..self.groups.len()).map(letter).collect(),
            tokens_after: self.tokens(),
            stable,
            stable_tokens: (!self.groups.iter().any(full)).then_some(stable_tokens),
            shortened: self
                .shortened()
                .map(|part| (part.message, part.ordinal, part.left.unwrap_or(0)))
                .collect(),
            summaries: self
                .summaries
                .iter()
                .map(|summary| summary.covered(self.naive, &self.groups))
                .collect(),
            projection,
            floors,
        }
    }
}
