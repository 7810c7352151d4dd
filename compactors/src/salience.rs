//! Keep the messages that say the most.

use core::cmp::Reverse;
use core::fmt;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::vec::Vec;

use epitome_core::{Draft, Group, GroupKind, PartKind, Protection, Strategy, Turn, Verdict};

use crate::{Texts, Truncation};

/// Keeps the messages that say the most for their tokens, and those that are near to the open request.
///
/// *Keeps*: the newest turns, then the groups of the highest worth, each step with its request; summaries; and what [`Protection`]
/// names. *Drops*: the other groups, whole. One that is too large is passed over. *Cost*: one pass over the texts, and one sort
/// of the groups. *Stable prefix*: up to the first group that it drops, which is usually in the second turn. Without a goal, and
/// where all else was not enough, it does what its [`Truncation`] does.
///
/// The worth of a group is the sum of two amounts. *How much it says*: the rarity of its distinct terms for each of its tokens; in
/// what the user said it counts a quarter more, and of messages that say the same only the newest counts. *How near it is to the
/// open request*, where the conversation ends with one or with results that the model waits for: its BM25 and, less, that
/// of its four neighbours, since an answer stands beside its question.
///
/// It is made for conversations of people. The texts reach it as [`Texts`], so that it is made of a
/// [`StrategySpec`](crate::StrategySpec):
///
/// ```
/// use epitome_compactors::{Engine, StrategySpec};
///
/// let spec: StrategySpec = "salience".parse()?;
/// assert!(spec.needs_texts());
/// let engine = Engine::of(spec);
/// # let _ = engine;
/// # Ok::<(), epitome_compactors::SpecError>(())
/// ```
#[derive(Clone)]
pub struct Salience {
    texts: Arc<Texts>,
    truncation: Truncation,
    near_request: bool,
}

impl fmt::Debug for Salience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salience").field("near_request", &self.near_request).finish_non_exhaustive()
    }
}

impl Salience {
    /// For an index whose texts these are.
    #[must_use]
    pub fn new(texts: Arc<Texts>) -> Self {
        Self { texts, truncation: Truncation::new(), near_request: true }
    }

    /// What it protects, how many turns it keeps as the newest ones, and what it does without a goal.
    #[must_use]
    pub const fn truncation(mut self, truncation: Truncation) -> Self {
        self.truncation = truncation;
        self
    }

    /// Whether nearness to the open request counts; it does by default.
    #[must_use]
    pub const fn near_request(mut self, counts: bool) -> Self {
        self.near_request = counts;
        self
    }
}

impl Strategy for Salience {
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

/// Nearness is worth so many times the rarity of terms, for each token.
const NEARNESS: u64 = 100;

/// Added to the tokens by which nearness is divided, so that a short message does not win by its length alone. This, and the
/// factor above, measured best on labelled conversations of two kinds (docs/what-is-kept.md).
const LENGTH_ADDED: u64 = 200;

/// The share of the nearness of a neighbour, in percent, by its distance less one.
const NEIGHBOURS: [u64; 2] = [70, 49];

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

impl Salience {
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
        let near = self.near(draft);
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
                    worth: self.worth(&group, tokens, near.get(at).copied().unwrap_or(0)),
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

    /// For each token.
    fn worth(&self, group: &Group<'_>, tokens: u64, near: u64) -> u64 {
        let says: u64 = positions(group).map(|position| self.texts.weight(position)).sum();
        let says = if group.is_request() { says.saturating_add(says / 4) } else { says };
        let near = near.saturating_mul(NEARNESS) / tokens.saturating_add(LENGTH_ADDED);
        (says / tokens.max(1)).saturating_add(near)
    }

    /// How near each group is to the open request, with its neighbours; empty if there is none.
    fn near(&self, draft: &Draft<'_>) -> Vec<u64> {
        let Some(request) = open_request(draft).filter(|_| self.near_request) else { return Vec::new() };
        let mut scores = Vec::new();
        for position in positions(&request) {
            for (at, score) in self.texts.near(position).into_iter().enumerate() {
                match scores.get_mut(at) {
                    Some(sum) => *sum = u64::saturating_add(*sum, score),
                    None => scores.push(score),
                }
            }
        }
        let score = |position: u32| scores.get(position as usize).copied().unwrap_or(0);
        let own: Vec<u64> = draft.index().groups().map(|group| positions(&group).map(score).sum()).collect();
        (0..own.len()).map(|at| with_neighbours(&own, at)).collect()
    }
}

/// The last request, if the conversation ends with it or with results that the model has not seen.
fn open_request<'a>(draft: &Draft<'a>) -> Option<Group<'a>> {
    let last = draft.index().groups().next_back()?;
    let is_open = last.is_request() || last.parts().any(|part| part.kind() == PartKind::ToolResult);
    draft.index().groups().rev().find(Group::is_request).filter(|_| is_open)
}

fn with_neighbours(scores: &[u64], at: usize) -> u64 {
    let score = |at: Option<usize>| at.and_then(|at| scores.get(at)).copied().unwrap_or(0);
    let own = score(Some(at));
    (1_usize..).zip(NEIGHBOURS).fold(own, |sum, (distance, percent)| {
        let both = score(at.checked_sub(distance)).saturating_add(score(at.checked_add(distance)));
        sum.saturating_add(both.saturating_mul(percent) / 100)
    })
}

fn positions<'a>(group: &Group<'a>) -> impl Iterator<Item = u32> + use<'a> {
    group.positions().flatten()
}
