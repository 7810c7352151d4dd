//! Truncation from the newest group on, as it is described.

use epitome_core::{CLAMP_MARKER, GroupKind, PartKind};

use super::{Draft, begins_turn};

/// Tokens of a note in the place of a result.
const NOTE: u32 = 9;
/// Tokens of a cleared argument.
const EMPTY: u32 = 2;
/// Tokens of an excerpt: both ends and the marker.
const LONG: u32 = 600 + CLAMP_MARKER.len() as u32;
const SHORT: u32 = 90 + CLAMP_MARKER.len() as u32;

impl Draft<'_> {
    /// Keeps the newest requests in a fifth of the room. Fills the rest from the newest group on, with results cleared.
    /// Restores results in a quarter of the room, and in the room that is left.
    pub(super) fn newest(&mut self, goal: u64) {
        let stays = self.always();
        let summaries = if stays > goal { self.drop_summaries() } else { 0 };
        let room = goal.saturating_sub(self.shorten_arguments(stays - summaries, goal));
        let quarter = room / 4;
        let requests: Vec<usize> = (0..self.groups.len())
            .rev()
            .filter(|at| self.is_free(*at) && begins_turn(self.first(*at)))
            .collect();
        let all: u64 = requests.iter().map(|at| self.size_of(*at)).sum();
        let mut fifth = all.min(room / 5);
        let mut room = room - quarter - fifth;
        let mut paid = Vec::new();
        for at in requests.iter().copied().filter(|at| !self.has_step_that_stays(*at)) {
            if self.size_of(at) <= fifth {
                fifth -= self.size_of(at);
                paid.push(at);
            }
        }
        for at in (0..self.groups.len()).rev() {
            if !self.is_free(at) || paid.contains(&at) {
                continue;
            }
            if begins_turn(self.first(at)) {
                self.drop(at);
                continue;
            }
            let request = self.request_of(at).filter(|request| !paid.contains(request));
            let needs = self.cleared(at) + request.map_or(0, |request| self.size_of(request));
            let long = self.long_arguments(at, LONG);
            let freed: u64 = long.iter().map(|part| u64::from(self.parts[*part].now() - LONG)).sum();
            if needs <= room {
                room -= needs;
                paid.extend(request);
            } else if needs - freed <= room {
                room -= needs - freed;
                paid.extend(request);
                long.into_iter().for_each(|part| self.parts[part].left = Some(LONG));
            } else {
                self.drop(at);
            }
        }
        self.bring_back(room + quarter + fifth);
    }

    /// Shortens arguments in the groups that stay to excerpts, first long and then short ones, until these groups fit.
    /// Returns the size of these groups.
    fn shorten_arguments(&mut self, mut stays: u64, goal: u64) -> u64 {
        for left in [LONG, SHORT] {
            for at in 0..self.groups.len() {
                if self.is_gone(at) || self.is_free(at) || self.floors().0 > goal {
                    continue;
                }
                for part in self.long_arguments(at, left) {
                    if stays > goal {
                        stays -= u64::from(self.parts[part].now() - left);
                        self.parts[part].left = Some(left);
                    }
                }
            }
        }
        stays
    }

    /// Tokens of the groups that stay in any case, with their results cleared, and of the requests of their steps.
    pub(super) fn always(&self) -> u64 {
        let stays = |at: &usize| !self.is_gone(*at) && !self.is_free(*at);
        let stays: Vec<usize> = (0..self.groups.len()).filter(stays).collect();
        let mut requests: Vec<usize> = (0..self.groups.len())
            .filter(|at| self.is_free(*at) && begins_turn(self.first(*at)) && self.has_step_that_stays(*at))
            .collect();
        requests.dedup();
        let sizes = stays.iter().map(|at| self.cleared(*at));
        sizes.sum::<u64>() + requests.iter().map(|at| self.size_of(*at)).sum::<u64>()
    }

    /// Drops each summary without a kept step that relies on it, together with the groups behind it up to the next
    /// request of the user. Returns the size of these summaries.
    fn drop_summaries(&mut self) -> u64 {
        let mut size = 0;
        for summary in self.old_summaries().collect::<Vec<_>>() {
            let behind = (summary + 1..self.groups.len()).take_while(|at| !begins_turn(self.first(*at)));
            let behind: Vec<usize> = behind.collect();
            if behind.iter().any(|at| self.is_step(*at) && !self.is_gone(*at) && !self.is_free(*at)) {
                continue;
            }
            size += self.size_of(summary);
            self.drop(summary);
            behind
                .into_iter()
                .filter(|at| self.is_free(*at))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|at| self.drop(at));
        }
        size
    }

    fn is_step(&self, at: usize) -> bool {
        matches!(self.groups[at].kind, GroupKind::Assistant | GroupKind::Exchange | GroupKind::Hosted)
    }

    /// The request of a group's turn, if it may go and no step of that turn stays in any case.
    fn request_of(&self, at: usize) -> Option<usize> {
        let turn = self.groups[at].turn;
        let own = |other: &usize| self.groups[*other].turn == turn && begins_turn(self.first(*other));
        let request = (0..self.groups.len()).find(own)?;
        (self.is_free(request) && !self.has_step_that_stays(request)).then_some(request)
    }

    fn has_step_that_stays(&self, request: usize) -> bool {
        let turn = self.groups[request].turn;
        (0..self.groups.len()).any(|at| {
            self.is_step(at) && self.groups[at].turn == turn && !self.is_gone(at) && !self.is_free(at)
        })
    }

    /// Keeps results whole, or as excerpts, as long as there is room, the newest groups first. The other results become
    /// notes.
    fn bring_back(&mut self, mut room: u64) {
        for group in (0..self.groups.len()).rev().filter(|at| !self.is_gone(*at)).collect::<Vec<_>>() {
            for at in self.results_of(group) {
                let now = self.parts[at].now();
                let ends = [LONG, SHORT].into_iter().filter(|ends| *ends < now);
                let mut sizes = core::iter::once(now).chain(ends);
                let left = sizes.find(|size| u64::from(size - NOTE) <= room).unwrap_or(NOTE);
                room -= u64::from(left - NOTE);
                if left < now {
                    self.parts[at].left = Some(left);
                }
            }
        }
    }

    /// Clears arguments, the oldest first, until the goal is met. Does nothing if the goal is below the hard floor.
    pub(super) fn squeeze(&mut self) {
        let Some(goal) = self.budget.goal().filter(|goal| self.floors().0 <= *goal) else { return };
        for at in 0..self.parts.len() {
            let is_input = self.parts[at].kind == PartKind::ToolInput;
            if is_input && self.tokens() > goal && self.may_shorten(at, EMPTY) {
                self.parts[at].left = Some(EMPTY);
            }
        }
    }

    /// A group that may go and is no summary.
    pub(super) fn is_free(&self, at: usize) -> bool {
        self.may_drop(at) && self.groups[at].kind != GroupKind::Summary
    }

    /// Tokens of a group with its results cleared.
    fn cleared(&self, at: usize) -> u64 {
        let freed = self.results_of(at).into_iter().map(|part| u64::from(self.parts[part].now() - NOTE));
        self.size_of(at) - freed.sum::<u64>()
    }

    /// The results in a group for which a note may stand, in the order in which they are sent.
    fn results_of(&self, group: usize) -> Vec<usize> {
        let may = |at: &usize| self.parts[*at].kind == PartKind::ToolResult && self.may_shorten(*at, NOTE);
        self.parts_of(group).into_iter().filter(may).collect()
    }

    /// The arguments in a group that may be shortened to an excerpt of `left` tokens.
    fn long_arguments(&self, group: usize, left: u32) -> Vec<usize> {
        let may = |at: &usize| {
            let part = &self.parts[*at];
            part.kind == PartKind::ToolInput && left < part.now() && self.may_touch(*at)
        };
        self.parts_of(group).into_iter().filter(may).collect()
    }

    /// The parts of a group, in the order in which they are sent.
    fn parts_of(&self, group: usize) -> Vec<usize> {
        let anchor = self.groups[group].members[0];
        let sent = self.naive.projection(&|other| other == anchor);
        let of = |message: usize| (0..self.parts.len()).filter(move |at| self.parts[*at].message == message);
        sent.into_iter().flat_map(of).collect()
    }
}
