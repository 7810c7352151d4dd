//! Figures of a conversation that a trigger reads.

use crate::{Budget, Group, GroupKind, Index, Pass};

/// The state of a conversation at the check whether a pass is due: before a run, before a call, after a run.
#[derive(Debug, Clone, Copy)]
pub struct TriggerView<'a> {
    index: Index<'a>,
    budget: &'a Budget,
    size: u64,
    token_count: u64,
    pass: Pass,
}

impl<'a> TriggerView<'a> {
    /// The state of `index`, whose next request has `size` tokens ([`UsageLedger::size`](crate::UsageLedger::size)).
    /// There is no report, and the pass is proactive.
    #[must_use]
    pub const fn new(index: Index<'a>, budget: &'a Budget, size: u64) -> Self {
        Self { index, budget, size, token_count: 0, pass: Pass::Proactive }
    }

    /// Sets the input tokens of the latest report ([`Tally::token_count`](crate::Tally::token_count)).
    #[must_use]
    pub const fn with_token_count(mut self, tokens: u64) -> Self {
        self.token_count = tokens;
        self
    }

    /// Sets the requested pass.
    #[must_use]
    pub const fn with_pass(mut self, pass: Pass) -> Self {
        self.pass = pass;
        self
    }

    /// The conversation.
    #[must_use]
    pub const fn index(&self) -> Index<'a> {
        self.index
    }

    /// The budget of the requests.
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

    /// The reason for the pass.
    #[must_use]
    pub const fn pass(&self) -> Pass {
        self.pass
    }

    /// Whether the pass may be delayed ([`Pass::can_wait`]).
    #[must_use]
    pub const fn can_wait(&self) -> bool {
        self.pass.can_wait(self.size, self.budget)
    }

    /// Number of turns that are left in the index. Groups are in the order of their turns: each is counted once.
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

    /// Number of steps after the oldest exchange. Only the groups before it are visited: the index has the sum.
    pub(super) fn tool_result_age(&self) -> Option<u32> {
        let steps = self.index.groups().filter(Group::is_step);
        let before = (0_u32..).zip(steps).find(|(_, step)| step.kind() == GroupKind::Exchange)?.0;
        Some(self.index.steps().saturating_sub(before).saturating_sub(1))
    }
}
