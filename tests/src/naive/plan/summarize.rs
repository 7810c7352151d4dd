//! The strategy that replaces, by its words.

use epitome_core::GroupKind;

use super::super::join::joined;
use super::{Draft, Summary};

impl Draft<'_> {
    /// The oldest visible groups in a row that may go, of turns before the newest `recent`, with the summaries behind them.
    pub(super) fn summarize(&mut self, recent: u32, note: u32) {
        if !self.summaries.is_empty() {
            return;
        }
        let spared = (self.naive.turn + 1).saturating_sub(recent);
        let visible: Vec<usize> = (0..self.groups.len()).filter(|at| !self.dropped[*at]).collect();
        let is_summary = |at: &usize| self.groups[*at].kind == GroupKind::Summary;
        let is_old = |at: &usize| self.groups[*at].turn < spared;
        let may = |at: &usize| self.may_drop(*at) && self.groups[*at].kind != GroupKind::System;
        let Some(start) = visible.iter().position(|at| may(at) && is_old(at)) else { return };
        let run: Vec<usize> = visible[start..]
            .iter()
            .copied()
            .take_while(|at| may(at) && (is_old(at) || is_summary(at)))
            .collect();
        let beside = [start.checked_sub(1), Some(start + run.len())];
        let mut beside = beside.iter().flatten().filter_map(|at| visible.get(*at));
        let nests = beside.any(|at| self.is_replaced(*at) || is_summary(at) && !self.protected.hard[*at]);
        let size: u64 = run.iter().map(|at| self.size_of(*at)).sum();
        if nests || run.iter().all(is_summary) || size <= u64::from(note) {
            return;
        }
        self.forget_edits(&run);
        self.summaries.push(Summary { groups: run, tokens: note });
    }

    /// What is replaced is not shortened.
    pub(super) fn forget_edits(&mut self, groups: &[usize]) {
        for part in 0..self.parts.len() {
            if groups.contains(&self.group_of(&self.parts[part])) {
                self.parts[part].left = None;
            }
        }
    }

    /// No summaries are left side by side.
    pub(super) fn join_summaries(&mut self) {
        let visible: Vec<usize> = (0..self.groups.len()).filter(|at| !self.dropped[*at]).collect();
        let is_loose = |at: usize| self.groups[at].kind == GroupKind::Summary && !self.protected.hard[at];
        let summaries = self.summaries.clone();
        self.summaries = joined(summaries, &visible, &|at| is_loose(at).then(|| self.size_of(at)));
    }

    /// What a kept group has now.
    pub(super) fn size_of(&self, at: usize) -> u64 {
        let own = self.shortened().filter(|part| self.group_of(part) == at);
        let freed = own.map(|part| u64::from(part.tokens - part.left.unwrap_or(0)));
        self.naive.tokens(&self.groups[at]) - freed.sum::<u64>()
    }
}
