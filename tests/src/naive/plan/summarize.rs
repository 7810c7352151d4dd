//! The strategies that make summaries, as they are described.

use epitome_core::GroupKind;
use epitome_core::attribution::{Retention, SourceKind};

use super::super::join::joined;
use super::{Draft, Summary};

impl Draft<'_> {
    /// Summarizes the oldest run of visible groups that may go, in turns before the newest `recent`, with the summaries
    /// directly behind them.
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

    /// Summarizes the oldest span that frees enough, with the summaries directly behind it, or else the largest span.
    /// Without a goal, only groups of turns before the newest `recent` are in a span.
    pub(super) fn summarization(&mut self, recent: u32, most: u64, users: u64) {
        if !self.summaries.is_empty() {
            return;
        }
        let spared = (self.naive.turn + 1).saturating_sub(recent);
        let is_summary = |at: usize| self.groups[at].kind == GroupKind::Summary;
        let visible = || (0..self.groups.len()).filter(|at| !self.dropped[*at]);
        let seen: Vec<usize> =
            visible().filter(|at| !(self.may_drop(*at) && self.comes_again(*at))).collect();
        let may = |at: &usize| {
            self.may_drop(*at) && (self.budget.goal().is_some() || self.groups[*at].turn < spared)
        };
        let mut spans: Vec<&[usize]> = Vec::new();
        for free in seen.split(|at| !may(at)) {
            spans.extend((1..=free.len()).map(|length| &free[..length]));
        }
        spans.retain(|span| self.summary_of(span, most, users).is_some());
        let size = |span: &[usize]| self.work_of(span).0;
        let enough = |span: &&&[usize]| {
            let left = self.tokens() - size(span) + self.summary_of(span, most, users).unwrap_or(0);
            self.budget.goal().is_some_and(|goal| left <= goal)
        };
        let first = spans.iter().find(enough).map(|span| {
            let behind = seen.iter().skip_while(|at| *at != &span[span.len() - 1]).skip(1);
            let summaries = behind.take_while(|at| may(at) && is_summary(**at));
            span.iter().chain(summaries).copied().collect::<Vec<_>>()
        });
        let largest = || spans.iter().rev().max_by_key(|span| size(span)).map(|span| span.to_vec());
        let Some(span) = first.or_else(largest) else { return };
        let Some(tokens) = self.summary_of(&span, most, users) else { return };
        let ends = span[0]..=span[span.len() - 1];
        let passing: Vec<usize> =
            visible().filter(|at| ends.contains(at) && self.may_drop(*at) && self.comes_again(*at)).collect();
        passing.into_iter().for_each(|at| self.drop(at));
        // A group that waits for steps in the span is part of the span.
        let span: Vec<usize> = ends.clone().filter(|at| !self.dropped[*at]).collect();
        let stays = |at: &usize| !self.dropped[*at];
        let beside = [(0..*ends.start()).rfind(stays), (ends.end() + 1..self.groups.len()).find(stays)];
        let is_loose = |at: usize| self.groups[at].kind == GroupKind::Summary && !self.protected.hard[at];
        if !beside.into_iter().flatten().any(is_loose) {
            self.forget_edits(&span);
            self.summaries.push(Summary { groups: span, tokens: u32::try_from(tokens).unwrap_or(u32::MAX) });
        }
    }

    /// Tokens of a summary: half of the new content, all of the earlier summaries, and user messages in at most `users`
    /// percent of the goal. `None` if there is no new content, or if the summary without these user messages has less
    /// than 48 tokens.
    fn summary_of(&self, span: &[usize], most: u64, users: u64) -> Option<u64> {
        let (all, work) = self.work_of(span);
        let by_users = span.iter().filter(|at| self.groups[**at].kind == GroupKind::User);
        let share = self.budget.goal().unwrap_or(self.budget.limit()) * users / 100;
        let quotes = by_users.map(|at| self.size_of(*at)).sum::<u64>().min(share);
        let new = work - quotes;
        let tokens = all - work + new / 2;
        (new > 0 && tokens.min(most) >= 48)
            .then_some((tokens + quotes).min(most + share).min(u64::from(u32::MAX)))
    }

    /// Whether a group needs no summary: instructions that are not the caller's, ephemeral messages, and context come
    /// again.
    fn comes_again(&self, at: usize) -> bool {
        let first = self.first(at);
        self.groups[at].kind == GroupKind::System
            || first.retention == Retention::Ephemeral
            || first.source == SourceKind::Context
    }

    /// A group that is replaced has no shortened parts.
    pub(super) fn forget_edits(&mut self, groups: &[usize]) {
        for part in 0..self.parts.len() {
            if groups.contains(&self.group_of(&self.parts[part])) {
                self.parts[part].left = None;
            }
        }
    }

    /// Joins summaries that stand side by side.
    pub(super) fn join_summaries(&mut self) {
        let visible: Vec<usize> = (0..self.groups.len()).filter(|at| !self.dropped[*at]).collect();
        let is_loose = |at: usize| self.groups[at].kind == GroupKind::Summary && !self.protected.hard[at];
        let summaries = self.summaries.clone();
        self.summaries = joined(summaries, &visible, &|at| is_loose(at).then(|| self.size_of(at)));
    }

    /// Tokens of a kept group now.
    pub(super) fn size_of(&self, at: usize) -> u64 {
        let own = self.shortened().filter(|part| self.group_of(part) == at);
        let freed = own.map(|part| u64::from(part.tokens - part.left.unwrap_or(0)));
        self.naive.tokens(&self.groups[at]) - freed.sum::<u64>()
    }
}
