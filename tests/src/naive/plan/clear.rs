//! The strategies that shorten, as they are described.

use epitome_core::attribution::Retention;
use epitome_core::{CLAMP_MARKER, GroupKind, PartKind, Profile};

use super::Draft;
use crate::message::Part;

impl Draft<'_> {
    /// Clears the results of all but the newest `keep` tool uses, never those of the excluded tool. Clears nothing if
    /// that frees less than `at_least`.
    pub(super) fn clear_results(
        &mut self,
        (keep, inputs, note): (u32, bool, u32),
        at_least: u64,
        exclude: Option<&str>,
    ) {
        let is_result = |at: &usize| self.parts[*at].kind == PartKind::ToolResult;
        let results: Vec<usize> = (0..self.parts.len()).filter(is_result).collect();
        let seen = |at: &usize| !self.is_gone(self.group_of(&self.parts[*at]));
        let uses: Vec<usize> = results.iter().copied().filter(seen).collect();
        let newest = &uses[uses.len().saturating_sub(keep as usize)..];
        let is_old = |at: usize| newest.first().is_none_or(|newest| at < *newest);
        let mut clear: Vec<(usize, u32)> =
            results.iter().filter(|at| is_old(**at)).map(|at| (*at, note)).collect();
        for at in (0..self.parts.len()).filter(|_| inputs && uses.len() > keep as usize) {
            let group = self.group_of(&self.parts[at]);
            let mut own =
                results.iter().filter(|result| self.group_of(&self.parts[**result]) == group).peekable();
            let all_old = own.peek().is_some() && own.all(|result| is_old(*result));
            if self.parts[at].kind == PartKind::ToolInput && all_old {
                clear.push((at, 2));
            }
        }
        clear.retain(|(at, note)| exclude != Some(self.tool(*at)) && self.may_shorten(*at, *note));
        let frees = |(at, note): &(usize, u32)| u64::from(self.parts[*at].now() - note);
        if clear.iter().map(frees).sum::<u64>() >= at_least {
            clear.into_iter().for_each(|(at, note)| self.parts[at].left = Some(note));
        }
    }

    /// Clears the media of all turns before the newest `keep`.
    pub(super) fn clear_media(&mut self, keep: u32) {
        for at in 0..self.parts.len() {
            let is_old = self.groups[self.group_of(&self.parts[at])].turn + keep <= self.naive.turn;
            if is_old && self.parts[at].kind == PartKind::Media && self.may_shorten(at, 9) {
                self.parts[at].left = Some(9);
            }
        }
    }

    /// Clears the reasoning of older turns, unless the target requires it in later requests.
    pub(super) fn clear_reasoning(&mut self, target: Profile, keep: u32) {
        let old = |at: &usize| {
            let group = &self.groups[self.group_of(&self.parts[*at])];
            let wanted = match target {
                Profile::OpenaiResponses => true,
                Profile::Deepseek => group.kind == GroupKind::Exchange,
                _ => false,
            };
            let age = self.naive.turn - group.turn;
            let seen = !self.is_gone(self.group_of(&self.parts[*at]));
            let part = &self.parts[*at];
            let stays = part.kind == PartKind::Reasoning && part.left.is_none();
            stays && age >= keep.max(1) && !wanted && seen
        };
        let old: Vec<usize> = (0..self.parts.len()).filter(old).collect();
        if target == Profile::Anthropic && !old.iter().all(|at| self.may_shorten(*at, 0)) {
            return;
        }
        for at in old {
            if self.may_shorten(at, 0) {
                self.parts[at].left = Some(0);
            }
        }
    }

    /// Clamps results and texts that are larger than `max` and than the largest note. They get the size `max`, or the
    /// size of the marker if that is larger.
    pub(super) fn clamp_oversized(&mut self, max: u32) {
        let left = max.max(CLAMP_MARKER.len() as u32);
        for at in 0..self.parts.len() {
            let part = &self.parts[at];
            let has_ends = matches!(part.kind, PartKind::ToolResult | PartKind::Text);
            // A note may have 250 tokens.
            if has_ends && part.now() > left.max(250) && self.may_touch(at) {
                self.parts[at].left = Some(left);
            }
        }
    }

    /// Drops groups whose first message is ephemeral, until the goal is met.
    pub(super) fn drop_ephemeral(&mut self) {
        for at in 0..self.groups.len() {
            let enough = self.budget.goal().is_some() && self.is_goal_met();
            if !enough && self.first(at).retention == Retention::Ephemeral && self.may_drop(at) {
                self.drop(at);
            }
        }
    }

    /// The tool of a call or of a result: by its id.
    pub(super) fn tool(&self, at: usize) -> &'static str {
        let part = &self.parts[at];
        let message = &self.naive.messages[part.message];
        let (Part::Call(id) | Part::Result(id) | Part::Sealed(id)) = &message.parts[part.ordinal] else {
            return "";
        };
        if id.starts_with('s') { "search" } else { "read" }
    }

    /// Whether a note of this size may stand in the place of a part. Reasoning is removed without a note.
    pub(super) fn may_shorten(&self, at: usize, note: u32) -> bool {
        let part = &self.parts[at];
        let group = self.group_of(part);
        let smaller = if part.kind == PartKind::Reasoning {
            let old = self.groups[group].turn < self.naive.turn;
            old && !self.naive.only_reasons(part.message) && part.left.is_none()
        } else {
            note < part.now() && note <= 250
        };
        smaller && self.may_touch(at)
    }

    pub(super) fn may_touch(&self, at: usize) -> bool {
        let part = &self.parts[at];
        let group = self.group_of(part);
        let full = self.naive.tokens(&self.groups[group]) == u64::from(u32::MAX);
        !self.is_gone(group) && !self.protected.hard[group] && !full
    }
}
