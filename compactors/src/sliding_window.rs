//! Keep the newest groups.

use epitome_core::{Draft, Group, GroupKind, Protection, Strategy, Turn, Verdict};

/// Keeps a window of the newest groups, and drops all older ones.
///
/// *Keeps*: the window, and protected groups ([`Protection`]). *Drops*: all whole groups before the window. The
/// window begins with a turn, so it may be smaller than its size. If the newest turn is larger than the window, it
/// begins with a step of that turn. If the goal is still missed, the oldest groups of the window are dropped too.
/// *Cost*: at most seven passes over the groups. *Stable prefix*: only the instructions and the first user message.
/// A sliding window voids the provider's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlidingWindow {
    window: Window,
    protection: Protection,
}

/// The size of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Window {
    /// A number of turns.
    Turns(u32),
    /// A number of groups, system messages not counted.
    Groups(u32),
    /// The newest groups with this number of tokens together, after earlier stages, system messages not counted.
    Tokens(u64),
    /// The newest groups that meet the budget's goal together with the protected groups.
    Goal,
}

impl SlidingWindow {
    /// A strategy with a window of this size.
    #[must_use]
    pub fn new(window: Window) -> Self {
        Self { window, protection: Protection::default() }
    }

    /// Sets whether the first user message is preserved.
    #[must_use]
    pub const fn preserve_first_user(mut self, stays: bool) -> Self {
        self.protection = self.protection.with_first_user(stays);
        self
    }

    /// The first group of the window.
    fn opens_at(&self, draft: &Draft<'_>) -> u32 {
        match self.window {
            Window::Turns(turns) => {
                let first = Turn(draft.index().turn().0.saturating_add(1).saturating_sub(turns));
                draft
                    .index()
                    .groups()
                    .find(|group| group.turn() >= first)
                    .map_or(u32::MAX, |group| group.leader())
            }
            Window::Groups(groups) => first_that_fits(draft, u64::from(groups), |_| 1),
            Window::Tokens(tokens) => first_that_fits(draft, tokens, |group| draft.tokens_left(group)),
            Window::Goal => {
                let costs =
                    |group: &Group<'_>| if draft.is_candidate(group) { draft.tokens_left(group) } else { 0 };
                let goal = draft.budget().goal().unwrap_or(draft.budget().limit());
                let free = draft.index().groups().map(|group| costs(&group)).fold(0, u64::saturating_add);
                let room = goal.saturating_sub(draft.tokens().saturating_sub(free));
                first_that_fits(draft, room, costs)
            }
        }
    }
}

impl Strategy for SlidingWindow {
    fn name(&self) -> &'static str {
        "window"
    }

    fn protection(&self) -> Protection {
        self.protection
    }

    /// Monotone: with larger groups the window begins later, and more of its oldest groups are dropped.
    fn is_monotone(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let opens_at = self.opens_at(draft);
        for group in draft.index().groups() {
            let stays = matches!(group.kind(), GroupKind::System | GroupKind::Summary);
            if group.leader() < opens_at && !stays && draft.is_candidate(&group) {
                // A candidate is never refused.
                let _ = draft.drop_group(group.leader());
            }
        }
        draft.drop_oldest();
        draft.drop_to_fit();
    }
}

/// The first group of the oldest turn that fits into `room` with all newer groups. If not even the newest turn
/// fits, the oldest group that does: an agent may work for hours on one request.
fn first_that_fits(draft: &Draft<'_>, room: u64, cost: impl Fn(&Group<'_>) -> u64) -> u32 {
    let visible =
        |group: &Group<'_>| group.kind() != GroupKind::System && draft.verdict(group) == Verdict::Keep;
    let (mut left, mut oldest, mut whole_turns) = (room, None::<Group<'_>>, None);
    for group in draft.index().groups().rev().filter(visible) {
        if let Some(newer) = oldest.filter(|newer| newer.turn() != group.turn()) {
            whole_turns = Some(newer.leader());
        }
        let Some(rest) = left.checked_sub(cost(&group)) else {
            return whole_turns.or(oldest.map(|oldest| oldest.leader())).unwrap_or(u32::MAX);
        };
        (left, oldest) = (rest, Some(group));
    }
    0
}
