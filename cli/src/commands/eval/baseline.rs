//! Floors and ceilings for the figures of strategies: choices of whole groups that no rule limits.
//!
//! Baselines protect neither system messages nor the task. A strategy therefore spends tokens on messages that a
//! baseline does not keep.

use core::hash::{Hash as _, Hasher as _};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;

use epitome::core::GroupKind;
use epitome::search::SearchIndex;

use super::prompt::Prompt;
use super::shown::Shown;

/// A choice of groups up to a number of tokens that needs no knowledge of texts or needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floor {
    /// The newest groups, up to the first that is too large.
    Newest,
    /// The newest groups; a group that is too large is skipped.
    NewestThatFit,
    /// Groups in an order that depends only on their number.
    Random,
}

impl Floor {
    pub(super) const ALL: [Self; 3] = [Self::Newest, Self::NewestThatFit, Self::Random];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Newest => "(newest)",
            Self::NewestThatFit => "(newest that fit)",
            Self::Random => "(random)",
        }
    }

    /// The messages that the floor keeps within `goal` tokens.
    pub(super) fn shown(self, prompt: &Prompt<'_>, goal: u64) -> Shown {
        let groups = groups(prompt);
        let mut chosen = Chosen { groups: &groups, left: goal, positions: Vec::new() };
        let newest_first = (0..groups.len()).rev();
        match self {
            Self::Newest => {
                let mut newest = newest_first;
                newest.all(|at| chosen.take(at));
            }
            Self::NewestThatFit => newest_first.for_each(|at| {
                chosen.take(at);
            }),
            Self::Random => {
                let mut order: Vec<_> = newest_first.collect();
                order.sort_by_key(|at| shuffled(*at));
                order.into_iter().for_each(|at| {
                    chosen.take(at);
                });
            }
        }
        Shown::of_whole(prompt, chosen.positions.into_iter())
    }
}

/// The choice of a search for the request: the groups whose best message is nearest to it, by BM25. The request itself
/// comes first. A group that is too large is skipped.
pub(super) fn nearest(prompt: &Prompt<'_>, goal: u64, texts: &SearchIndex, request: &str) -> Shown {
    let groups = groups(prompt);
    let scores = texts.scores(request);
    // A position without an entry in the index is the request.
    let score = |position: &u32| scores.get(*position as usize).copied().unwrap_or(u64::MAX);
    let mut order: Vec<(u64, usize)> = groups
        .iter()
        .enumerate()
        .map(|(at, group)| (group.positions.iter().map(score).max().unwrap_or_default(), at))
        .filter(|(best, _)| *best > 0)
        .collect();
    order.sort_unstable_by(|one, other| other.cmp(one));
    let mut chosen = Chosen { groups: &groups, left: goal, positions: Vec::new() };
    for (_, at) in order {
        chosen.take(at);
    }
    Shown::of_whole(prompt, chosen.positions.into_iter())
}

/// A ceiling: it chooses greedily the groups with the most needs per token, which requires knowledge of the future.
/// `needs` has, for each need, the messages that contain it.
pub(super) fn oracle(prompt: &Prompt<'_>, goal: u64, needs: &[&[u32]]) -> Shown {
    let groups = groups(prompt);
    let mut chosen = Chosen { groups: &groups, left: goal, positions: Vec::new() };
    chosen.take_best(needs);
    Shown::of_whole(prompt, chosen.positions.into_iter())
}

/// A group that a baseline may choose.
struct Candidate {
    positions: Vec<u32>,
    tokens: u64,
}

fn groups(prompt: &Prompt<'_>) -> Vec<Candidate> {
    let all = prompt.index.view();
    let shown = all.groups().filter(|group| group.kind() != GroupKind::Orphan);
    let candidates = shown.map(|group| Candidate {
        positions: group.positions().flatten().collect(),
        tokens: group.tokens().as_u64(),
    });
    candidates.collect()
}

fn shuffled(at: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    at.hash(&mut hasher);
    hasher.finish()
}

struct Chosen<'g> {
    groups: &'g [Candidate],
    left: u64,
    positions: Vec<u32>,
}

impl Chosen<'_> {
    /// Takes a group if there is room for it.
    fn take(&mut self, at: usize) -> bool {
        let Some(group) = self.groups.get(at) else { return false };
        let Some(left) = self.left.checked_sub(group.tokens) else { return false };
        self.left = left;
        self.positions.extend(&group.positions);
        true
    }

    /// Takes repeatedly the group with the most needs per token that no earlier group has met.
    fn take_best(&mut self, needs: &[&[u32]]) {
        let places = self.groups.iter().enumerate();
        let group_of: HashMap<u32, usize> = places
            .flat_map(|(at, group)| group.positions.iter().map(move |position| (*position, at)))
            .collect();
        // For each group, the needs that it meets.
        let mut meets: HashMap<usize, Vec<usize>> = HashMap::new();
        for (need, position) in needs
            .iter()
            .enumerate()
            .flat_map(|(at, stands_in)| stands_in.iter().map(move |position| (at, position)))
        {
            let Some(group) = group_of.get(position) else { continue };
            let met = meets.entry(*group).or_default();
            if met.last() != Some(&need) {
                met.push(need);
            }
        }
        let mut open = vec![true; needs.len()];
        loop {
            let worth = |at: usize, met: &[usize]| {
                let new = met.iter().filter(|need| open.get(**need) == Some(&true)).count();
                let tokens = self.groups.get(at).map_or(u64::MAX, |group| group.tokens);
                (new as f64 / tokens.max(1) as f64, core::cmp::Reverse(at))
            };
            let fits = |at: usize| self.groups.get(at).is_some_and(|group| group.tokens <= self.left);
            let candidates = meets.iter().filter(|(at, _)| fits(**at)).map(|(at, met)| worth(*at, met));
            let best = candidates.max_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            let Some((worth, core::cmp::Reverse(at))) = best else { return };
            if worth == 0.0 {
                return;
            }
            self.take(at);
            for need in meets.remove(&at).unwrap_or_default() {
                open.iter_mut().skip(need).take(1).for_each(|open| *open = false);
            }
        }
    }
}
