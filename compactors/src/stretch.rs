//! What one summary is to replace.

use epitome_core::{Draft, Group, GroupKind};

/// Groups that follow each other, and what they have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// Of summaries, in tokens.
    pub(crate) summaries: u64,
    /// Of everything else.
    pub(crate) work: u64,
}

impl Stretch {
    pub(crate) fn of(draft: &Draft<'_>, group: &Group<'_>) -> Self {
        Self { first: group.leader(), last: group.leader(), summaries: 0, work: 0 }.with(draft, group)
    }

    pub(crate) fn with(mut self, draft: &Draft<'_>, group: &Group<'_>) -> Self {
        self.last = group.leader();
        let tokens = draft.tokens_left(group);
        let sum = if group.kind() == GroupKind::Summary { &mut self.summaries } else { &mut self.work };
        *sum = sum.saturating_add(tokens);
        self
    }

    pub(crate) const fn tokens(&self) -> u64 {
        self.summaries.saturating_add(self.work)
    }
}
