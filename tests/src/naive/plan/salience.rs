//! The choice of groups by their worth, as it is described.

use epitome_core::GroupKind;

use super::{Draft, begins_turn};
use crate::strategy::{is_updated, worth};

impl Draft<'_> {
    /// Keeps groups in three steps: groups that update a group that stays in any case; the newest turns, in a quarter
    /// of the room; then the best of the rest, one after another.
    pub(super) fn salience(&mut self, goal: u64, recent: u32, updates: u32) {
        let free: Vec<usize> = (0..self.groups.len()).filter(|at| self.is_free(*at)).collect();
        let always: Vec<usize> =
            (0..self.groups.len()).filter(|at| !self.is_gone(*at) && !free.contains(at)).collect();
        let mut kept = always.clone();
        self.bring_requests(&mut kept);
        let most = goal.max(self.size_of_all(&kept));
        for at in
            free.iter().rev().filter(|at| always.iter().any(|older| self.updates(**at, *older, updates)))
        {
            self.try_to_keep(&mut kept, (*at, updates), most, &free);
        }
        let before = self.size_of_all(&kept);
        let newest = (self.naive.turn + 1).saturating_sub(recent);
        for at in free.iter().rev().filter(|at| self.groups[**at].turn >= newest) {
            self.try_to_keep(&mut kept, (*at, updates), before + (most - before) / 4, &free);
        }
        let mut rest: Vec<usize> = free.iter().copied().filter(|at| !kept.contains(at)).collect();
        while !rest.is_empty() {
            let best = rest.iter().copied().max_by_key(|at| (self.worth_of(*at), *at)).expect("one is left");
            rest.retain(|at| *at != best);
            self.try_to_keep(&mut kept, (best, updates), most, &free);
        }
        for at in free {
            if !kept.contains(&at) {
                self.drop(at);
            }
        }
    }

    fn worth_of(&self, at: usize) -> u64 {
        worth(self.groups[at].turn, begins_turn(self.first(at)))
    }

    fn updates(&self, newer: usize, older: usize, turns: u32) -> bool {
        is_updated(self.groups[older].turn, self.groups[newer].turn, turns)
    }

    /// Keeps a group with the requests of its steps and the groups that update any of them, if all kept groups then
    /// have at most `most` tokens.
    fn try_to_keep(&self, kept: &mut Vec<usize>, (at, updates): (usize, u32), most: u64, free: &[usize]) {
        let mut own = vec![at];
        loop {
            let before = own.len();
            self.bring_requests(&mut own);
            for newer in free {
                if !own.contains(newer) && own.iter().any(|older| self.updates(*newer, *older, updates)) {
                    own.push(*newer);
                }
            }
            own.retain(|group| *group == at || !kept.contains(group));
            if own.len() == before {
                break;
            }
        }
        let mut with = kept.clone();
        with.extend(own.into_iter().filter(|group| !kept.contains(group)));
        if self.size_of_all(&with) <= most {
            *kept = with;
        }
    }

    /// Adds the last request before each step.
    fn bring_requests(&self, kept: &mut Vec<usize>) {
        for at in kept.clone() {
            let is_step = matches!(
                self.groups[at].kind,
                GroupKind::Assistant | GroupKind::Exchange | GroupKind::Hosted
            );
            let request = (0..at).rev().find(|before| begins_turn(self.first(*before)));
            if let Some(request) = request.filter(|request| is_step && !kept.contains(request)) {
                kept.push(request);
            }
        }
    }

    fn size_of_all(&self, kept: &[usize]) -> u64 {
        kept.iter().map(|at| self.size_of(*at)).sum()
    }
}
