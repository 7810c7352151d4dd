//! Keep the groups of the highest worth.

use core::cmp::Reverse;
use core::fmt;
use std::collections::HashMap;
use std::vec;
use std::vec::Vec;

use epitome_core::{Draft, GroupKind, Protection, Strategy, Turn, Verdict};
use foldhash::fast::RandomState;

use crate::Truncation;

/// Fills the goal with the groups of the highest worth.
///
/// *Keeps*: the newest turns, in at most a quarter of the room; then the groups of the highest worth, the newest
/// first among equals; summaries; protected groups ([`Protection`]). Each step stays with its request, and each
/// group with the newer groups that update it. *Drops*: the other groups, whole. A group that is too large is
/// skipped. *Cost*: one sort of the groups. *Stable prefix*: up to the first dropped group, which is usually in the
/// second turn. Without a goal, and if the goal is still missed, it applies its [`Truncation`].
///
/// The caller computes the worth of each group, because a strategy sees no text. In the
/// [`StrategySpec`](crate::StrategySpec) `salience` it comes from [`SpecTexts::worths`](crate::SpecTexts::worths),
/// which is for conversations of people.
///
/// ```
/// use epitome_compactors::Salience;
/// use epitome_core::{Draft, Strategy};
///
/// let short_ones = Salience::new(|draft: &Draft<'_>| {
///     draft.index().groups().map(|group| u64::MAX - group.tokens().as_u64()).collect()
/// });
/// assert_eq!(short_ones.name(), "salience");
/// ```
#[derive(Clone, Copy)]
pub struct Salience<W, U = fn(&Draft<'_>) -> Vec<(u32, u32)>> {
    worths: W,
    updates: U,
    truncation: Truncation,
}

impl<W> Salience<W>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
{
    /// A strategy with a function that returns the worth of each group of a draft's index, in their order. A group
    /// without a worth has 0. No group updates another.
    pub fn new(worths: W) -> Self {
        Self { worths, updates: |_| Vec::new(), truncation: Truncation::new() }
    }
}

impl<W, U> Salience<W, U>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
    U: Fn(&Draft<'_>) -> Vec<(u32, u32)>,
{
    /// Sets a function that returns the updates between groups: pairs of leaders, the older one first. The older
    /// group stays only if the newer one does, so that no outdated value is shown without its replacement. A newer
    /// group that is not visible is no condition.
    #[must_use]
    pub fn updates<V>(self, updates: V) -> Salience<W, V>
    where
        V: Fn(&Draft<'_>) -> Vec<(u32, u32)>,
    {
        let Self { worths, truncation, .. } = self;
        Salience { worths, updates, truncation }
    }

    /// Sets the protected groups, the number of newest turns, and the rule without a goal.
    #[must_use]
    pub fn truncation(mut self, truncation: Truncation) -> Self {
        self.truncation = truncation;
        self
    }
}

impl<W, U> fmt::Debug for Salience<W, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salience").field("truncation", &self.truncation).finish_non_exhaustive()
    }
}

impl<W, U> Strategy for Salience<W, U>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
    U: Fn(&Draft<'_>) -> Vec<(u32, u32)>,
{
    fn name(&self) -> &'static str {
        "salience"
    }

    fn protection(&self) -> Protection {
        self.truncation.protection()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        if let Some(goal) = draft.budget().goal() {
            self.fill(draft, goal);
        }
        self.truncation.plan(draft);
    }
}

/// Divisor of the room for the newest turns: a long answer must not displace the whole conversation before it.
const NEWEST_SHARE: u64 = 4;

/// A group that may be dropped.
struct Candidate {
    leader: u32,
    turn: Turn,
    worth: u64,
}

/// Candidates, and the groups that stay in any case.
#[derive(Default)]
struct Survey {
    candidates: Vec<Candidate>,
    always: u64,
    /// Candidates that are not kept so far, with their tokens.
    unpaid: HashMap<u32, u64, RandomState>,
    /// By leader, the groups that must stay with it: the request of a step, and the groups that update it.
    needs: HashMap<u32, Vec<u32>, RandomState>,
    /// The groups that update groups which stay in any case.
    for_always: Vec<u32>,
}

impl<W, U> Salience<W, U>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
    U: Fn(&Draft<'_>) -> Vec<(u32, u32)>,
{
    /// Drops the groups that have no room.
    fn fill(&self, draft: &mut Draft<'_>, goal: u64) {
        let mut survey = self.survey(draft);
        let mut room = goal.saturating_sub(survey.always);
        // A group that cannot be dropped is shown with its updates, the newest first.
        let mut newer = core::mem::take(&mut survey.for_always);
        newer.sort_unstable();
        for leader in newer.into_iter().rev() {
            survey.take(leader, &mut room);
        }
        let newest = Turn(draft.index().turn().0.saturating_add(1).saturating_sub(self.truncation.recent()));
        let mut for_newest = room / NEWEST_SHARE;
        let before = for_newest;
        let mut rest = Vec::new();
        for candidate in core::mem::take(&mut survey.candidates).into_iter().rev() {
            if candidate.turn < newest || !survey.take(candidate.leader, &mut for_newest) {
                rest.push(candidate);
            }
        }
        room = room.saturating_sub(before.saturating_sub(for_newest));
        rest.sort_by_key(|candidate| Reverse((candidate.worth, candidate.leader)));
        rest.retain(|candidate| !survey.take(candidate.leader, &mut room));
        for candidate in rest.iter().filter(|candidate| survey.unpaid.contains_key(&candidate.leader)) {
            let _ = draft.drop_group(candidate.leader);
        }
    }

    fn survey(&self, draft: &Draft<'_>) -> Survey {
        let worths = (self.worths)(draft);
        let (mut survey, mut request) = (Survey::default(), None);
        for (older, newer) in (self.updates)(draft) {
            survey.needs.entry(older).or_default().push(newer);
        }
        for (at, group) in draft.index().groups().enumerate() {
            if draft.verdict(&group) != Verdict::Keep {
                continue;
            }
            let (leader, tokens) = (group.leader(), draft.tokens_left(&group));
            let is_free = draft.is_candidate(&group) && group.kind() != GroupKind::Summary;
            if group.is_request() {
                request = Some(leader);
            }
            let own = request.filter(|_| group.is_step());
            if is_free {
                survey.unpaid.insert(leader, tokens);
                survey.needs.entry(leader).or_default().extend(own);
                let worth = worths.get(at).copied().unwrap_or(0);
                survey.candidates.push(Candidate { leader, turn: group.turn(), worth });
            } else {
                let brought = own.and_then(|request| survey.unpaid.remove(&request)).unwrap_or(0);
                survey.always = survey.always.saturating_add(tokens).saturating_add(brought);
                let newer = survey.needs.get(&leader).into_iter().flatten();
                survey.for_always.extend(newer);
            }
        }
        survey
    }
}

impl Survey {
    /// Keeps a group with all groups that it needs, if there is room for those that are not kept so far. Returns
    /// whether it was kept.
    fn take(&mut self, leader: u32, room: &mut u64) -> bool {
        let (mut found, mut tokens, mut next) = (vec![leader], 0_u64, 0);
        while let Some(group) = found.get(next).copied() {
            next = next.saturating_add(1);
            tokens = tokens.saturating_add(self.unpaid.get(&group).copied().unwrap_or(0));
            if tokens > *room {
                return false;
            }
            for need in self.needs.get(&group).into_iter().flatten() {
                if self.unpaid.contains_key(need) && !found.contains(need) {
                    found.push(*need);
                }
            }
        }
        *room = room.saturating_sub(tokens);
        for group in found {
            self.unpaid.remove(&group);
        }
        true
    }
}
