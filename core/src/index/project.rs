//! The order in which a request shows the messages of an index.
//!
//! The code has plain loops instead of nested iterators: a compiler inlines these in one place and not in another, and
//! they take kilobytes in a build for size.

use super::span::NONE;
use super::{GroupKind, Index, Span};
use crate::Turn;

/// The late answers to the calls of one span that are not projected yet, oldest first.
#[derive(Debug, Clone, Copy)]
struct Late {
    /// [`NONE`] if none is left.
    next: u32,
    last: u32,
}

impl Late {
    const NONE: Self = Self { next: NONE, last: NONE };

    fn of(index: Index<'_>, host: &Span) -> Self {
        let first = index.span(host.next).map_or(NONE, |last| last.next);
        Self { next: first, last: host.next }
    }

    fn pop(&mut self, index: Index<'_>) -> Option<usize> {
        let at = self.next;
        let span = index.span(at)?;
        self.next = if at == self.last { NONE } else { span.next };
        Some(at as usize)
    }
}

/// The spans of some groups in projection order: late answers directly after their call's span.
#[derive(Debug)]
pub(super) struct ProjectedSpans<'a, K> {
    index: Index<'a>,
    /// Whether a group is shown, by its leader and kind.
    keep: K,
    /// The next span in the order of the log.
    at: usize,
    late: Late,
}

impl<'a, K: Fn(u32, GroupKind) -> bool> ProjectedSpans<'a, K> {
    pub(super) const fn new(index: Index<'a>, keep: K) -> Self {
        Self { index, keep, at: 0, late: Late::NONE }
    }
}

impl<K: Fn(u32, GroupKind) -> bool> Iterator for ProjectedSpans<'_, K> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if let Some(late) = self.late.pop(self.index) {
            return Some(late);
        }
        loop {
            let at = self.at;
            let span = self.index.spans.get(at)?;
            self.at = at.saturating_add(1);
            let leader = self.index.span(span.leader)?;
            if !span.is_late() && (self.keep)(span.leader, leader.kind()) {
                self.late = Late::of(self.index, span);
                return Some(at);
            }
        }
    }
}

/// The spans of one group, in projection order, the leader first.
#[derive(Debug)]
pub(crate) struct GroupSpans<'a> {
    index: Index<'a>,
    leader: usize,
    turn: Turn,
    /// The next span that may belong to the group, and the end of the search.
    at: usize,
    end: usize,
    late: Late,
}

impl<'a> GroupSpans<'a> {
    /// `is_split` is true if the group may have later spans that are not adjacent to its leader.
    pub(super) const fn new(index: Index<'a>, leader: usize, turn: Turn, is_split: bool) -> Self {
        let end = if is_split { index.spans.len() } else { leader.saturating_add(1) };
        Self { index, leader, turn, at: leader, end, late: Late::NONE }
    }
}

impl Iterator for GroupSpans<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if let Some(late) = self.late.pop(self.index) {
            return Some(late);
        }
        while self.at < self.end {
            let at = self.at;
            let span = self.index.spans.get(at)?;
            self.at = at.saturating_add(1);
            let (own, leads) = (span.leader as usize == self.leader, span.leader as usize == at);
            // Only the turn's latest step can grow, so the next one ends the search.
            let ends = span.turn != self.turn || leads && span.is_step();
            if at != self.leader && !span.is_late() && ends {
                self.at = self.end;
            } else if own && !span.is_late() {
                self.late = Late::of(self.index, span);
                return Some(at);
            }
        }
        None
    }
}
