//! What a trigger looks at.

use crate::{Budget, Group, GroupKind, Index};

/// A conversation at the moment when somebody asks whether a pass is due: before a run, before a call, after a run.
#[derive(Debug, Clone, Copy)]
pub struct TriggerView<'a> {
    index: Index<'a>,
    budget: &'a Budget,
    size: u64,
    token_count: u64,
    occasion: Occasion,
}

/// Why somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Occasion {
    /// It is time to look: nothing has happened but what the index shows.
    #[default]
    Check,
    /// A person or the program asks for a pass.
    Manual,
    /// The provider has refused the request as too large.
    Overflow,
}

impl<'a> TriggerView<'a> {
    /// The conversation of `index`, whose next request has `size` tokens ([`Ledger::size`](crate::Ledger::size)). No
    /// report, and an ordinary check.
    #[must_use]
    pub const fn new(index: Index<'a>, budget: &'a Budget, size: u64) -> Self {
        Self { index, budget, size, token_count: 0, occasion: Occasion::Check }
    }

    /// The same, with the input tokens of the latest report ([`Tally::token_count`](crate::Tally::token_count)).
    #[must_use]
    pub const fn with_token_count(mut self, tokens: u64) -> Self {
        self.token_count = tokens;
        self
    }

    /// The same on another occasion.
    #[must_use]
    pub const fn with_occasion(mut self, occasion: Occasion) -> Self {
        self.occasion = occasion;
        self
    }

    /// The conversation.
    #[must_use]
    pub const fn index(&self) -> Index<'a> {
        self.index
    }

    /// What requests may cost.
    #[must_use]
    pub const fn budget(&self) -> &'a Budget {
        self.budget
    }

    /// The size of the next request, in the provider's tokens.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The input tokens of the latest report, 0 if there is none.
    #[must_use]
    pub const fn token_count(&self) -> u64 {
        self.token_count
    }

    /// Why somebody asks.
    #[must_use]
    pub const fn occasion(&self) -> Occasion {
        self.occasion
    }

    /// Whether a pass cannot wait: the provider refused the request, or it has more than the budget's limit.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.occasion == Occasion::Overflow || self.size > self.budget.limit()
    }

    /// How many turns are left in the index. Groups are in the order of their turns: each is counted once.
    pub(super) fn turns(&self) -> u32 {
        let said = self.index.groups().filter(|group| group.kind() == GroupKind::User || group.is_step());
        let count = |(count, last): (u32, u32), turn: u32| {
            if turn > last { (count.saturating_add(1), turn) } else { (count, last) }
        };
        said.map(|group| group.turn().0).fold((0, 0), count).0
    }

    pub(super) fn has_tool_calls(&self) -> bool {
        self.index.groups().any(|group| group.kind() == GroupKind::Exchange)
    }

    /// How many steps follow the oldest exchange. Only the groups before it are looked at: the index knows the sum.
    pub(super) fn tool_result_age(&self) -> Option<u32> {
        let steps = self.index.groups().filter(Group::is_step);
        let before = (0_u32..).zip(steps).find(|(_, step)| step.kind() == GroupKind::Exchange)?.0;
        Some(self.index.steps().saturating_sub(before).saturating_sub(1))
    }
}
