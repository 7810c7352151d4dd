//! The worth of each group of a conversation, and the updates between groups.

use std::collections::HashSet;
use std::vec;
use std::vec::Vec;

use epitome_core::{Draft, Group, GroupKind, PartKind, PartVerdict, Verdict};

use super::SpecTexts;
use super::texts::Place;

/// Weight of the nearness relative to the rarity of terms, for each token.
const NEARNESS: u64 = 200;

/// Tokens that are added to the divisor of the nearness, so that a short message does not win by its length alone.
/// This value and the weight above measured best on labelled conversations of two kinds (docs/what-is-kept.md).
const LENGTH_ADDED: u64 = 200;

/// The share of the nearness of a neighbour, in percent, by its distance less one.
const NEIGHBOURS: [u64; 2] = [70, 49];

impl SpecTexts {
    /// The worth of each group of a draft's index, for [`Salience`](crate::Salience): the sum of two amounts.
    ///
    /// *Content*: the rarity of its distinct terms, divided by its tokens. The content of user messages counts
    /// twice; of messages with the same text, only the newest counts. *Nearness to the open request*, with
    /// `near_request`, and if the conversation ends with a request or with results that the model has not seen: its
    /// BM25 score and, with less weight, the scores of its four neighbours, because an answer is next to its
    /// question.
    #[must_use]
    pub fn worths(&self, draft: &Draft<'_>, near_request: bool) -> Vec<u64> {
        let near = open_request(draft).filter(|_| near_request).map(|request| self.near_to(draft, &request));
        let near = |at: usize| near.as_ref().and_then(|near| near.get(at)).copied().unwrap_or(0);
        let weights = self.weights();
        let groups = draft.index().groups().enumerate();
        groups.map(|(at, group)| worth(draft, &group, &weights, near(at))).collect()
    }

    /// The updates between groups of a draft, for [`Salience::updates`](crate::Salience::updates): a sentence of
    /// the newer group has the same subject as one of the older group, and a different statement
    /// ([`UpdateIndex`](epitome_std::search::UpdateIndex)).
    ///
    /// Messages of users and tool results update others, as far as they are visible. Messages of the model do not,
    /// because they repeat other messages.
    #[must_use]
    pub fn updates(&self, draft: &Draft<'_>) -> Vec<(u32, u32)> {
        let shown = Shown::of(draft);
        let updated = self.updated(|place| shown.updates(place));
        let updated = updated.into_iter().filter(|(older, _)| shown.is_whole(*older));
        let leaders = updated.filter_map(|(older, newer)| {
            let [older, newer] = [older, newer].map(|place| shown.leader(place).map(|it| it.leader));
            Some((older?, newer?)).filter(|(older, newer)| older != newer)
        });
        let mut leaders: Vec<(u32, u32)> = leaders.collect();
        leaders.sort_unstable();
        leaders.dedup();
        leaders
    }

    /// The nearness of each group to a request, with the scores of its neighbours.
    fn near_to(&self, draft: &Draft<'_>, request: &Group<'_>) -> Vec<u64> {
        let mut scores = Vec::new();
        for position in positions(request) {
            let own = self.near(position);
            scores.resize(own.len(), 0_u64);
            scores.iter_mut().zip(own).for_each(|(sum, score)| *sum = sum.saturating_add(score));
        }
        let score = |position: u32| scores.get(position as usize).copied().unwrap_or(0);
        let own: Vec<u64> = draft
            .index()
            .groups()
            .map(|group| positions(&group).map(score).fold(0, u64::saturating_add))
            .collect();
        (0..own.len()).map(|at| with_neighbours(&own, at)).collect()
    }
}

/// The places of visible texts, each with the leader of its group.
struct Shown {
    /// The group of each message, by position.
    leaders: Vec<Option<Leader>>,
    /// Shortened results, by position and ordinal.
    shortened: HashSet<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct Leader {
    leader: u32,
    /// Whether its texts, apart from results, are from the model.
    is_of_model: bool,
}

impl Shown {
    fn of(draft: &Draft<'_>) -> Self {
        let (mut leaders, mut shortened) = (vec![None; draft.index().messages() as usize], HashSet::new());
        for group in draft.index().groups().filter(|group| draft.verdict(group) == Verdict::Keep) {
            let is_of_model = group.is_step() || group.kind() == GroupKind::Summary;
            for position in positions(&group) {
                if let Some(own) = leaders.get_mut(position as usize) {
                    *own = Some(Leader { leader: group.leader(), is_of_model });
                }
            }
            if draft.is_shortened(&group) {
                let parts = group.parts().filter(|part| draft.part_verdict(part) != PartVerdict::Keep);
                shortened.extend(parts.map(|part| (part.position(), part.ordinal())));
            }
        }
        Self { leaders, shortened }
    }

    fn leader(&self, place: Place) -> Option<Leader> {
        self.leaders.get(place.position as usize).copied().flatten()
    }

    fn updates(&self, place: Place) -> bool {
        self.is_whole(place)
            && self.leader(place).is_some_and(|leader| place.is_result || !leader.is_of_model)
    }

    fn is_whole(&self, place: Place) -> bool {
        !self.shortened.contains(&(place.position, place.ordinal))
    }
}

fn worth(draft: &Draft<'_>, group: &Group<'_>, weights: &[u64], near: u64) -> u64 {
    let tokens = draft.tokens_left(group);
    let weight = |position: u32| weights.get(position as usize).copied().unwrap_or(0);
    let says = positions(group).map(weight).fold(0, u64::saturating_add);
    let says = if group.is_request() { says.saturating_mul(2) } else { says };
    let near = near.saturating_mul(NEARNESS).checked_div(tokens.saturating_add(LENGTH_ADDED));
    says.checked_div(tokens).unwrap_or(says).saturating_add(near.unwrap_or(0))
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

#[cfg(test)]
mod tests;
