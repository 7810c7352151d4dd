//! Joins summaries that would stand side by side: as the design demands, summaries never nest.

use super::{Group, Naive};

/// Groups that one summary replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The groups, by their numbers.
    pub groups: Vec<usize>,
    /// Its allowance, in tokens.
    pub tokens: u32,
}

impl Summary {
    /// The messages of its groups, group by group in the order of the projection, and its allowance.
    #[must_use]
    pub fn covered(&self, naive: &Naive<'_>, groups: &[Group]) -> (Vec<usize>, u32) {
        let of = |at: &usize| naive.projection(&|anchor| anchor == groups[*at].members[0]);
        (self.groups.iter().flat_map(of).collect(), self.tokens)
    }
}

/// Size of an earlier summary that nothing protects; `None` for any other group.
pub(super) type Loose<'l> = &'l dyn Fn(usize) -> Option<u64>;

/// Joins summaries that stand side by side. Earlier summaries that nothing protects are joined too.
pub(super) fn joined(mut summaries: Vec<Summary>, visible: &[usize], loose: Loose<'_>) -> Vec<Summary> {
    while let Some((left, right)) = side_by_side(&summaries, visible, loose) {
        let both = [left, right].map(|at| take(&mut summaries, at, loose));
        summaries.push(Summary {
            groups: both.iter().flat_map(|summary| summary.groups.clone()).collect(),
            tokens: both.iter().map(|summary| summary.tokens).fold(0, u32::saturating_add),
        });
    }
    summaries.sort_by_key(|summary| summary.groups[0]);
    summaries
}

/// Two visible neighbours that are, or will be, different summaries, at least one of them a new one.
fn side_by_side(summaries: &[Summary], visible: &[usize], loose: Loose<'_>) -> Option<(usize, usize)> {
    let number = |at: usize| summaries.iter().position(|summary| summary.groups.contains(&at));
    let joins = |left: usize, right: usize| match (number(left), number(right)) {
        (Some(left), Some(right)) => left != right,
        (Some(_), None) => loose(right).is_some(),
        (None, Some(_)) => loose(left).is_some(),
        (None, None) => false,
    };
    let mut pairs = visible.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.find(|(left, right)| joins(*left, *right))
}

/// Takes the new summary with this group out of the list. An earlier summary becomes a new summary of its own.
fn take(summaries: &mut Vec<Summary>, at: usize, loose: Loose<'_>) -> Summary {
    match summaries.iter().position(|summary| summary.groups.contains(&at)) {
        Some(number) => summaries.remove(number),
        None => Summary {
            groups: vec![at],
            tokens: loose(at).map_or(0, |tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        },
    }
}
