//! The conversation as the planner sees it: groups with their sizes, and running sums.

mod facts;
mod group;
mod push;
mod restore;
mod span;

pub(crate) use facts::ResponseId;
pub(crate) use facts::may_answer;
#[cfg(feature = "alloc")]
pub(crate) use facts::{Answer, Facts, close, for_each_call};
pub use group::{Group, GroupKind, Groups};
pub use push::{IndexBuf, Placed};
pub use restore::{RestoreError, Stored};
pub use span::Span;

use core::ops::Range;

use crate::{Revision, Turn};
use span::NONE;

/// An index, borrowed: what plans are made from. It has no type parameter, wherever its tables live.
#[derive(Debug, Clone, Copy)]
pub struct Index<'a> {
    pub(crate) spans: &'a [Span],
    pub(crate) totals: Totals,
}

/// Running sums and marks, kept up to date by every push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    pub(crate) revision: Revision,
    pub(crate) messages: u32,
    pub(crate) groups: u32,
    pub(crate) steps: u32,
    pub(crate) tokens: u64,
    pub(crate) orphan_tokens: u64,
    pub(crate) turn: Turn,
    pub(crate) first_user: Option<u32>,
    pub(crate) last_user: Option<u32>,
}

impl Totals {
    /// Of no messages.
    pub(crate) const ZERO: Self = Self {
        revision: Revision(0),
        messages: 0,
        groups: 0,
        steps: 0,
        tokens: 0,
        orphan_tokens: 0,
        turn: Turn(0),
        first_user: None,
        last_user: None,
    };
}

impl<'a> Index<'a> {
    /// How many messages it covers.
    #[must_use]
    pub const fn messages(&self) -> u32 {
        self.totals.messages
    }

    /// How many groups they form.
    #[must_use]
    pub const fn group_count(&self) -> u32 {
        self.totals.groups
    }

    /// How many steps the model has made.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.totals.steps
    }

    /// The current turn, and therefore how many turns there are.
    #[must_use]
    pub const fn turn(&self) -> Turn {
        self.totals.turn
    }

    /// The size of the projection, in tokens: everything but orphans.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.totals.tokens
    }

    /// The size of the orphans: answers to no call, which are never projected.
    #[must_use]
    pub const fn orphan_tokens(&self) -> u64 {
        self.totals.orphan_tokens
    }

    /// The revision of the history that it was made from.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.totals.revision
    }

    /// How many spans there are, and so how many [`Cell`](crate::Cell)s a plan needs.
    #[must_use]
    pub const fn span_count(&self) -> usize {
        self.spans.len()
    }

    /// The groups, in the order of their first messages.
    #[must_use]
    pub fn groups(&self) -> Groups<'a> {
        Groups::new(*self)
    }

    /// The group that the span at `at` belongs to: an [`OpenCall`](crate::OpenCall) names its span.
    #[must_use]
    pub fn group_of(self, at: u32) -> Option<Group<'a>> {
        self.group(self.span(at)?.leader)
    }

    /// The messages of the projection, in order, as ranges of positions.
    pub fn projection(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        self.project(|_, kind| kind != GroupKind::Orphan)
    }

    /// The messages of the groups that `keep` holds of (by leader and kind), as ranges of positions.
    pub(crate) fn project(
        self,
        keep: impl Fn(u32, GroupKind) -> bool + 'a,
    ) -> impl Iterator<Item = Range<u32>> + 'a {
        self.project_spans(keep).map(move |at| self.positions(at))
    }

    /// The spans of the groups that `keep` holds of, in projection order: late answers directly after their call's span.
    pub(crate) fn project_spans(
        self,
        keep: impl Fn(u32, GroupKind) -> bool + 'a,
    ) -> impl Iterator<Item = usize> + 'a {
        let kept = move |span: &Span| {
            let leader = self.span(span.leader);
            leader.is_some_and(|leader| keep(span.leader, leader.kind()))
        };
        let in_place = self.spans.iter().enumerate().filter(move |(_, span)| !span.is_late() && kept(span));
        in_place.flat_map(move |(at, _)| core::iter::once(at).chain(self.late_answers(at)))
    }

    /// The tokens of the messages of one span; of a leader, without those of its group's other spans.
    pub(crate) fn own_tokens(self, at: usize) -> u64 {
        let Some(span) = self.spans.get(at) else { return 0 };
        let Some(group) = self.group_at(at) else { return u64::from(span.tokens) };
        let others =
            group.spans().skip(1).filter_map(|at| self.spans.get(at)).map(|span| u64::from(span.tokens));
        u64::from(span.tokens).saturating_sub(others.sum())
    }

    /// The spans of late answers to calls of the span at `host`, oldest first.
    pub(crate) fn late_answers(self, host: usize) -> impl Iterator<Item = usize> + 'a {
        let last = self.spans.get(host).map_or(NONE, |span| span.next);
        let first = self.span(last).map_or(NONE, |span| span.next);
        let after = move |at: &u32| {
            let next = if *at == last { NONE } else { self.span(*at)?.next };
            (next != NONE).then_some(next)
        };
        core::iter::successors((first != NONE).then_some(first), after).map(|at| at as usize)
    }

    /// The positions of the messages of the span at `at`.
    pub(crate) fn positions(self, at: usize) -> Range<u32> {
        let first = self.spans.get(at).map_or(self.totals.messages, |span| span.first);
        let end = self.spans.get(at.saturating_add(1)).map_or(self.totals.messages, |span| span.first);
        first..end
    }

    pub(crate) fn span(self, at: u32) -> Option<&'a Span> {
        self.spans.get(at as usize)
    }
}
