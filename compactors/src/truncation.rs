//! Drop the oldest groups.

use epitome_core::{Draft, Group, Protection, Strategy, Turn};

/// Drops the oldest groups that are not protected, until the goal is met.
///
/// *Keeps*: the newest turns as long as the goal can be met without them, and protected groups ([`Protection`]).
/// *Drops*: whole groups, oldest first, each request with the last step of its turn. If this is not enough, it also
/// drops the oldest of the newest turns, and summaries last. *Cost*: at most seven passes over the groups. *Stable
/// prefix*: up to the first dropped group, which is usually the second turn.
///
/// Without a goal, the [`Strength`] decides how many messages stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    preserve_recent: u32,
    strength: Strength,
    protection: Protection,
}

/// The share of the removable messages that stays if there is no goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Strength {
    /// Three quarters of the messages.
    Light,
    /// Half of the messages.
    #[default]
    Moderate,
    /// A quarter of the messages.
    Aggressive,
}

impl Strength {
    /// The share that stays, in quarters.
    const fn quarters(self) -> u64 {
        match self {
            Self::Light => 3,
            Self::Moderate => 2,
            Self::Aggressive => 1,
        }
    }
}

/// Number of the newest turns that stay as long as the goal can be met without them.
const PRESERVE_RECENT: u32 = 2;

impl Default for Truncation {
    fn default() -> Self {
        Self::new()
    }
}

impl Truncation {
    /// A strategy that preserves two recent turns, the system messages and the first user message.
    #[must_use]
    pub fn new() -> Self {
        Self {
            preserve_recent: PRESERVE_RECENT,
            strength: Strength::Moderate,
            protection: Protection::default(),
        }
    }

    /// Preserves this number of the newest turns, if the goal can be met without them.
    #[must_use]
    pub const fn preserve_recent(mut self, turns: u32) -> Self {
        self.preserve_recent = turns;
        self
    }

    /// Sets whether all system messages of the caller are preserved, or only the leading ones.
    #[must_use]
    pub const fn preserve_system(mut self, all: bool) -> Self {
        self.protection = self.protection.with_system(all);
        self
    }

    /// Sets whether the first user message is preserved.
    #[must_use]
    pub const fn preserve_first_user(mut self, stays: bool) -> Self {
        self.protection = self.protection.with_first_user(stays);
        self
    }

    /// Sets the share that stays if there is no goal.
    #[must_use]
    pub const fn strength(mut self, strength: Strength) -> Self {
        self.strength = strength;
        self
    }

    /// Number of the preserved newest turns.
    #[cfg(feature = "std")]
    pub(crate) const fn recent(&self) -> u32 {
        self.preserve_recent
    }

    /// Drops groups if there is no goal: of the removable messages the newest stay, as many as the strength allows,
    /// rounded down to whole groups.
    fn drop_by_strength(&self, draft: &mut Draft<'_>) {
        let spared = Turn(draft.index().turn().0.saturating_add(1).saturating_sub(self.preserve_recent));
        let candidate = |draft: &Draft<'_>, group: &Group<'_>| {
            group.turn() < spared && !group.is_summary() && draft.is_candidate(group)
        };
        let messages =
            draft.index().groups().filter(|group| candidate(draft, group)).map(|group| messages_of(&group));
        let mut room = messages.sum::<u64>().saturating_mul(self.strength.quarters()) / 4;
        for group in draft.index().groups().rev() {
            if candidate(draft, &group) {
                match room.checked_sub(messages_of(&group)) {
                    Some(rest) => room = rest,
                    None => {
                        // All older candidates are dropped too, so that the kept ones are one run.
                        room = 0;
                        let _ = draft.drop_group(group.leader());
                    }
                }
            }
        }
    }
}

impl Strategy for Truncation {
    fn name(&self) -> &'static str {
        "truncate"
    }

    fn protection(&self) -> Protection {
        self.protection
    }

    /// Monotone: groups are dropped in the order of age until the goal is met, so larger groups only mean that more
    /// are dropped.
    fn is_monotone(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        if draft.budget().goal().is_none() {
            self.drop_by_strength(draft);
        }
        draft.drop_oldest_sparing(self.preserve_recent);
        draft.drop_oldest();
        draft.drop_to_fit();
    }
}

fn messages_of(group: &Group<'_>) -> u64 {
    let mut messages = 0_u64;
    for range in group.positions() {
        messages = messages.saturating_add(u64::from(range.end.saturating_sub(range.start)));
    }
    messages
}
