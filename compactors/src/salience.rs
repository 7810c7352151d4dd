//! Keep the groups of the highest worth.

use core::cmp::Reverse;
use core::fmt;
use std::collections::{HashMap, HashSet};
use std::vec::Vec;

use epitome_core::{Draft, GroupKind, Protection, Strategy, Turn, Verdict};

use crate::Truncation;

/// Fills the goal with the groups of the highest worth.
///
/// *Keeps*: the newest turns, in at most a quarter of the room; then the groups of the highest worth, of equal ones the newest, each
/// step with its request; summaries; and what [`Protection`] names. *Drops*: the other groups, whole. One that is too large is passed
/// over. *Cost*: one sort of the groups. *Stable prefix*: up to the first group that it drops, which is usually in the second
/// turn. Without a goal, and where all else was not enough, it does what its [`Truncation`] does.
///
/// The worth of each group is the caller's knowledge, because a strategy sees no text. As a
/// [`StrategySpec`](crate::StrategySpec), `salience`, it is the worth for conversations of people that
/// [`Texts::worths`](crate::Texts::worths) gives.
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
pub struct Salience<W> {
    worths: W,
    truncation: Truncation,
}

impl<W> Salience<W>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
{
    /// With the worth of each group of a draft's index, in their order; a group without any has 0.
    pub fn new(worths: W) -> Self {
        Self { worths, truncation: Truncation::new() }
    }

    /// The groups it protects, the number of newest turns, and the rule without a goal.
    #[must_use]
    pub fn truncation(mut self, truncation: Truncation) -> Self {
        self.truncation = truncation;
        self
    }
}

impl<W> fmt::Debug for Salience<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salience").field("truncation", &self.truncation).finish_non_exhaustive()
    }
}

impl<W> Strategy for Salience<W>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
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

/// The newest turns have at most this share of the room: a long answer is not worth all that was said before.
const NEWEST_SHARE: u64 = 4;

/// A group that may go.
struct Candidate {
    leader: u32,
    turn: Turn,
    tokens: u64,
    worth: u64,
    /// Whether it is a request: it is paid for only once.
    is_request: bool,
    /// The request that stays as long as it does.
    request: Option<u32>,
}

/// Candidates, and what stays in any case.
#[derive(Default)]
struct Survey {
    candidates: Vec<Candidate>,
    always: u64,
    /// Requests that nothing has brought yet, with their tokens.
    unpaid: HashMap<u32, u64>,
}

impl<W> Salience<W>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
{
    /// Drops what has no room.
    fn fill(&self, draft: &mut Draft<'_>, goal: u64) {
        let Survey { mut candidates, always, mut unpaid } = self.survey(draft);
        let mut chosen = HashSet::new();
        let mut take = |candidate: &Candidate, room: &mut u64| {
            let request = if candidate.is_request { Some(candidate.leader) } else { candidate.request };
            let own = if candidate.is_request { 0 } else { candidate.tokens };
            let needs = request.and_then(|request| unpaid.get(&request)).copied().unwrap_or(0);
            let Some(left) = room.checked_sub(own.saturating_add(needs)) else { return false };
            *room = left;
            chosen.insert(candidate.leader);
            request.map(|request| unpaid.remove(&request));
            true
        };
        let mut room = goal.saturating_sub(always);
        let newest = Turn(draft.index().turn().0.saturating_add(1).saturating_sub(self.truncation.recent()));
        let mut for_newest = room / NEWEST_SHARE;
        let before = for_newest;
        let mut rest = Vec::new();
        candidates.reverse();
        for candidate in candidates {
            if candidate.turn < newest || !take(&candidate, &mut for_newest) {
                rest.push(candidate);
            }
        }
        room = room.saturating_sub(before.saturating_sub(for_newest));
        rest.sort_by_key(|candidate| Reverse((candidate.worth, candidate.leader)));
        rest.retain(|candidate| !take(candidate, &mut room));
        for candidate in rest.iter().filter(|candidate| !chosen.contains(&candidate.leader)) {
            let _ = draft.drop_group(candidate.leader);
        }
    }

    fn survey(&self, draft: &Draft<'_>) -> Survey {
        let worths = (self.worths)(draft);
        let (mut survey, mut request) = (Survey::default(), None);
        for (at, group) in draft.index().groups().enumerate() {
            if draft.verdict(&group) != Verdict::Keep {
                continue;
            }
            let tokens = draft.tokens_left(&group);
            let is_free = draft.is_candidate(&group) && group.kind() != GroupKind::Summary;
            if group.is_request() {
                request = Some(group.leader());
                if is_free {
                    survey.unpaid.insert(group.leader(), tokens);
                }
            }
            let own = request.filter(|_| group.is_step());
            if is_free {
                survey.candidates.push(Candidate {
                    leader: group.leader(),
                    turn: group.turn(),
                    tokens,
                    worth: worths.get(at).copied().unwrap_or(0),
                    is_request: group.is_request(),
                    request: own,
                });
            } else {
                let brought = own.and_then(|request| survey.unpaid.remove(&request)).unwrap_or(0);
                survey.always = survey.always.saturating_add(tokens).saturating_add(brought);
            }
        }
        survey
    }
}
