//! Keep the newest groups that fit.

use epitome_core::{
    Clamp, Draft, Group, GroupKind, IndexedPart, PartKind, Protection, Strategy, Tokens, Verdict,
};

use crate::Truncation;
use crate::tool_result_clearing::{INPUT_TOKENS, PLACEHOLDER_TOKENS};

/// Fills the goal with the newest groups, their tool results cleared; the rest of the room restores results.
///
/// *Keeps*: the newest groups that fit, with the request of each turn that keeps a step; other requests, the newest
/// first, in a fifth of the room; summaries, if they fit the goal or a kept step relies on them; protected groups
/// ([`Protection`]). *Clears*: results; then, if this is not enough, arguments of calls. *Shortens*: long
/// arguments, of protected calls that do not fit the goal, and of other calls that would not fit otherwise.
/// *Drops*: whole groups for which there is no room. If a group is too large, the next older one is tried. *Cost*:
/// fourteen passes over the groups. *Stable prefix*: up to the first dropped, shortened or cleared group, which is
/// usually in the second turn.
///
/// A quarter of the room is for results: the newest results stay, whole or as an excerpt. Nothing is cleared in
/// groups without parts in the index. Without a goal, and if the goal is still missed, it applies its
/// [`Truncation`].
///
/// ```
/// use epitome_compactors::{Ledger, NewestFirst, Pipeline};
///
/// let (newest, ledger) = (NewestFirst::new(), Ledger::new());
/// assert!(Pipeline::new(&[&newest, &ledger]).is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewestFirst {
    truncation: Truncation,
    user_messages: u32,
}

/// Share of the room for requests without a kept step, in percent. Codex gives such requests 20,000 tokens next to
/// a summary.
pub(crate) const USER_MESSAGES: u32 = 20;

impl Default for NewestFirst {
    fn default() -> Self {
        Self::new()
    }
}

impl NewestFirst {
    /// A strategy with the defaults of [`Truncation`], and a fifth of the room for requests.
    #[must_use]
    pub fn new() -> Self {
        Self { truncation: Truncation::new(), user_messages: USER_MESSAGES }
    }

    /// Sets the share of the room for requests of turns without a kept step, in percent. Requests and rules of
    /// users are short, and cannot be found out again.
    #[must_use]
    pub const fn keep_user_messages(mut self, percent: u32) -> Self {
        self.user_messages = if percent > 100 { 100 } else { percent };
        self
    }

    /// Sets the protected groups, and the share that is dropped without a goal.
    #[must_use]
    pub const fn truncation(mut self, truncation: Truncation) -> Self {
        self.truncation = truncation;
        self
    }
}

impl Strategy for NewestFirst {
    fn name(&self) -> &'static str {
        "newest_first"
    }

    fn protection(&self) -> Protection {
        self.truncation.protection()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        if let Some(goal) = draft.budget().goal() {
            let stays = always(draft);
            let summaries = if stays > goal { drop_summaries(draft) } else { 0 };
            let stays = shorten_arguments(draft, stays.saturating_sub(summaries), goal);
            let room = goal.saturating_sub(stays);
            let for_results = room / RESULTS_SHARE;
            let for_requests =
                (room.saturating_mul(u64::from(self.user_messages)) / 100).min(requests(draft));
            let room = room.saturating_sub(for_results).saturating_sub(for_requests);
            let room = fill(draft, room, for_requests);
            clear(draft, room.saturating_add(for_results));
        }
        self.truncation.plan(draft);
        squeeze(draft);
    }
}

/// Divisor of the room for results. With a smaller share the newest results are lost too, with a larger share the
/// calls of a long time.
const RESULTS_SHARE: u64 = 4;

/// Tokens of the groups that stay in any case, with their results cleared: protected groups, requests of protected
/// steps, and summaries.
pub(crate) fn always(draft: &Draft<'_>) -> u64 {
    let (mut tokens, mut request) = (0_u64, 0);
    for group in draft.index().groups() {
        if draft.verdict(&group) != Verdict::Keep {
            continue;
        }
        if group.is_request() {
            request = 0;
        }
        if is_free(draft, &group) {
            if group.is_request() {
                request = draft.tokens_left(&group);
            }
            continue;
        }
        tokens = tokens.saturating_add(cleared(draft, &group));
        if group.is_step() {
            tokens = tokens.saturating_add(core::mem::take(&mut request));
        }
    }
    tokens
}

/// Drops the summaries that no kept step relies on, and the steps behind them. Returns the tokens of these
/// summaries, which are hidden when the draft settles.
fn drop_summaries(draft: &mut Draft<'_>) -> u64 {
    let (mut tokens, mut goes) = (0_u64, false);
    // The end of the stretch up to the next request, and its last step that stays.
    let (mut end, mut stays) = (0, None);
    for group in draft.index().groups() {
        if group.is_request() {
            goes = false;
        } else if group.kind() == GroupKind::Summary && draft.is_candidate(&group) {
            if group.leader() >= end {
                (end, stays) = stretch(draft, group.leader());
            }
            goes = stays.is_none_or(|last| last < group.leader()) && draft.drop_group(group.leader()).is_ok();
            if goes {
                tokens = tokens.saturating_add(draft.tokens_left(&group));
            }
        } else if goes && is_free(draft, &group) {
            let _ = draft.drop_group(group.leader());
        }
    }
    tokens
}

/// The position of the next request behind a group, and the last step before it that stays in any case.
fn stretch(draft: &Draft<'_>, from: u32) -> (u32, Option<u32>) {
    let (index, mut stays) = (draft.index(), None);
    for at in from.saturating_add(1)..index.messages() {
        let Some(group) = index.group(at) else { continue };
        if group.is_request() {
            return (at, stays);
        }
        if group.is_step() && draft.verdict(&group) == Verdict::Keep && !is_free(draft, &group) {
            stays = Some(at);
        }
    }
    (index.messages(), stays)
}

/// Tokens of all requests that may be dropped.
fn requests(draft: &Draft<'_>) -> u64 {
    let mut tokens = 0_u64;
    for group in draft.index().groups() {
        if group.is_request() && is_free(draft, &group) {
            tokens = tokens.saturating_add(draft.tokens_left(&group));
        }
    }
    tokens
}

/// Drops the groups that have no room, and returns the rest of both rooms.
fn fill(draft: &mut Draft<'_>, mut room: u64, mut for_requests: u64) -> u64 {
    let mut turn = None;
    let mut request = 0;
    for group in draft.index().groups().rev() {
        if turn != Some(group.turn()) {
            turn = Some(group.turn());
            request = request_of(draft, &group);
            if let Some(rest) = for_requests.checked_sub(request) {
                for_requests = rest;
                request = 0;
            }
        }
        if !is_free(draft, &group) {
            continue;
        }
        // A request stays as long as a step of its turn does.
        if group.is_request() {
            if request == 0 {
                continue;
            }
        } else {
            let needs = cleared(draft, &group).saturating_add(request);
            let rest = room.checked_sub(needs).or_else(|| {
                let rest = room.checked_sub(needs.saturating_sub(argument_tokens_freed(draft, &group)))?;
                for part in group.parts().filter(is_arguments) {
                    // Short arguments stay.
                    let _ = draft.clamp(&part, LONG_ENDS);
                }
                Some(rest)
            });
            if let Some(rest) = rest {
                room = rest;
                request = 0;
                continue;
            }
        }
        let _ = draft.drop_group(group.leader());
    }
    room.saturating_add(for_requests)
}

/// Tokens that are freed if the long arguments of a group's calls are shortened to their ends.
fn argument_tokens_freed(draft: &Draft<'_>, group: &Group<'_>) -> u64 {
    let mut tokens = 0_u64;
    for part in group.parts().filter(is_arguments) {
        if draft.may_clamp(&part, LONG_ENDS) {
            let left = draft.part_tokens_left(&part).as_u64();
            tokens = tokens.saturating_add(left.saturating_sub(LONG_ENDS.tokens_max().as_u64()));
        }
    }
    tokens
}

/// Shortens the arguments in groups that stay in any case, the oldest first, until these groups fit the goal.
/// Returns their tokens.
fn shorten_arguments(draft: &mut Draft<'_>, mut stays: u64, goal: u64) -> u64 {
    if draft.floors().hard > goal {
        return stays;
    }
    for clamp in ENDS {
        for group in draft.index().groups() {
            if draft.verdict(&group) != Verdict::Keep || is_free(draft, &group) {
                continue;
            }
            for part in group.parts().filter(is_arguments) {
                let before = draft.part_tokens_left(&part);
                if stays > goal && draft.clamp(&part, clamp).is_ok() {
                    let freed = before.as_u64().saturating_sub(clamp.tokens_max().as_u64());
                    stays = stays.saturating_sub(freed);
                }
            }
        }
    }
    stays
}

fn is_arguments(part: &IndexedPart<'_>) -> bool {
    part.kind() == PartKind::ToolInput
}

/// Tokens of a turn's request if it stays only together with one of the turn's steps; otherwise 0. `last` is the
/// last group of the turn.
fn request_of(draft: &Draft<'_>, last: &Group<'_>) -> u64 {
    for at in (0..=last.leader()).rev() {
        let Some(group) = draft.index().group(at) else { continue };
        if group.turn() != last.turn() {
            return 0;
        }
        let free = is_free(draft, &group);
        if group.is_request() {
            return if free { draft.tokens_left(&group) } else { 0 };
        }
        if group.is_step() && !free && draft.verdict(&group) == Verdict::Keep {
            return 0;
        }
    }
    0
}

/// Clears the results that have no room.
fn clear(draft: &mut Draft<'_>, mut room: u64) {
    for group in draft.index().groups().rev() {
        if draft.verdict(&group) != Verdict::Keep {
            continue;
        }
        for part in group.parts() {
            if !may_clear(draft, &part) {
                continue;
            }
            let freed = freed_by(draft, &part);
            match room.checked_sub(freed) {
                Some(rest) => room = rest,
                None => {
                    room = shorten(draft, &part, room);
                }
            }
        }
    }
}

/// Clears the arguments of calls, the oldest first, if the goal is still missed. Clears nothing if the protected
/// messages alone exceed the goal.
fn squeeze(draft: &mut Draft<'_>) {
    if draft.budget().goal().is_none_or(|goal| draft.floors().hard > goal) {
        return;
    }
    for part in draft.index().parts() {
        if draft.is_goal_met() {
            return;
        }
        if is_arguments(&part) {
            // A protected or small part stays.
            let _ = draft.elide(&part, INPUT_TOKENS);
        }
    }
}

/// Shortens a result to the room for it, and returns the rest of the room.
fn shorten(draft: &mut Draft<'_>, part: &IndexedPart<'_>, room: u64) -> u64 {
    for clamp in ENDS {
        let more = clamp.tokens_max().as_u64().saturating_sub(PLACEHOLDER_TOKENS.as_u64());
        if let Some(rest) = room.checked_sub(more)
            && draft.clamp(part, clamp).is_ok()
        {
            return rest;
        }
    }
    let _ = draft.elide(part, PLACEHOLDER_TOKENS);
    room
}

/// The ends of a shortened result or shortened arguments, in two sizes. Few sizes leave room for the clamps of
/// other stages.
const ENDS: [Clamp; 2] = [LONG_ENDS, ends(60)];

const LONG_ENDS: Clamp = ends(400);

const fn ends(tokens: u32) -> Clamp {
    Clamp { head: Tokens(tokens), tail: Tokens(tokens / 2) }
}

/// Whether a group is kept so far, may be hidden, and is no summary.
fn is_free(draft: &Draft<'_>, group: &Group<'_>) -> bool {
    draft.is_candidate(group) && group.kind() != GroupKind::Summary
}

/// Tokens of a group with its results cleared.
fn cleared(draft: &Draft<'_>, group: &Group<'_>) -> u64 {
    let mut tokens = draft.tokens_left(group);
    for part in group.parts() {
        if may_clear(draft, &part) {
            tokens = tokens.saturating_sub(freed_by(draft, &part));
        }
    }
    tokens
}

fn may_clear(draft: &Draft<'_>, part: &IndexedPart<'_>) -> bool {
    part.kind() == PartKind::ToolResult && draft.may_elide(part, PLACEHOLDER_TOKENS)
}

fn freed_by(draft: &Draft<'_>, part: &IndexedPart<'_>) -> u64 {
    draft.part_tokens_left(part).as_u64().saturating_sub(PLACEHOLDER_TOKENS.as_u64())
}
