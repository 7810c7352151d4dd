//! A stretch of groups that one summary replaces.

use epitome_core::{Draft, Group, GroupKind, Turn};

/// Adjacent groups, and their sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// Tokens of summaries.
    pub(crate) summaries: u64,
    /// Tokens of everything else.
    pub(crate) work: u64,
    /// Tokens of users' messages in `work`.
    pub(crate) users: u64,
    /// Tokens of the same messages, as separate items.
    pub(crate) user_items: u64,
    /// The turn of its last group.
    pub(crate) turn: Turn,
}

impl Stretch {
    pub(crate) fn of(draft: &Draft<'_>, group: &Group<'_>) -> Self {
        let (first, last, turn) = (group.leader(), group.leader(), group.turn());
        Self { first, last, summaries: 0, work: 0, users: 0, user_items: 0, turn }.with(draft, group)
    }

    pub(crate) fn with(mut self, draft: &Draft<'_>, group: &Group<'_>) -> Self {
        (self.last, self.turn) = (group.leader(), group.turn());
        let tokens = draft.tokens_left(group);
        if group.kind() == GroupKind::User {
            self.users = self.users.saturating_add(tokens);
            self.user_items = self.user_items.saturating_add(tokens).saturating_add(USER_ITEM_TOKENS);
        }
        let sum = if group.kind() == GroupKind::Summary { &mut self.summaries } else { &mut self.work };
        *sum = sum.saturating_add(tokens);
        self
    }

    pub(crate) const fn tokens(&self) -> u64 {
        self.summaries.saturating_add(self.work)
    }
}

/// Tokens around a text of the user that is sent on as a separate item.
const USER_ITEM_TOKENS: u64 = 32;
