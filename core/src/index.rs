//! The conversation as the planner sees it: groups with their sizes, and running sums.

mod awaited;
mod facts;
mod group;
mod hosted;
mod part;
mod project;
mod push;
mod recount;
mod restore;
mod seat;
mod span;
mod tool_name;

#[cfg(feature = "alloc")]
pub(crate) use awaited::for_each_awaited;
pub(crate) use facts::ResponseId;
pub(crate) use facts::may_answer;
#[cfg(feature = "alloc")]
pub(crate) use facts::{Answer, Facts};
pub use group::{Group, GroupKind, Groups};
pub use part::{IndexedPart, IndexedParts, NoParts, PartKind, PartSpan, TEXT_PART_TOKENS_MIN};
pub use push::{IndexBuf, Placed};
pub use restore::{RestoreError, Stored};
pub use span::Span;
pub(crate) use span::{Flags, NONE};
pub use tool_name::ToolName;

use core::ops::Range;

use crate::{Revision, Turn};

/// A borrowed index, from which plans are made. It has no type parameter for the storage of its tables.
#[derive(Debug, Clone, Copy)]
pub struct Index<'a> {
    pub(crate) spans: &'a [Span],
    pub(crate) parts: &'a [PartSpan],
    /// A reference, because every returned group and part contains the index.
    pub(crate) totals: &'a Totals,
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
    /// All open calls are in this span or behind it: the first span of the current turn, or of an earlier turn if a
    /// reload has not seen the beginning of the current one.
    pub(crate) turn_from: u32,
    pub(crate) first_user: Option<u32>,
    pub(crate) last_user: Option<u32>,
    /// End of the spans with a rule for their kind: instructions and pins stay, orphans are hidden, summaries go last.
    pub(crate) marked_to: u32,
}

impl Totals {
    /// Totals of no messages.
    pub(crate) const ZERO: Self = Self {
        revision: Revision(0),
        messages: 0,
        groups: 0,
        steps: 0,
        tokens: 0,
        orphan_tokens: 0,
        turn: Turn(0),
        turn_from: 0,
        first_user: None,
        last_user: None,
        marked_to: 0,
    };
}

impl<'a> Index<'a> {
    /// Number of messages in the index.
    #[must_use]
    pub const fn messages(&self) -> u32 {
        self.totals.messages
    }

    /// Number of groups in the index.
    #[must_use]
    pub const fn group_count(&self) -> u32 {
        self.totals.groups
    }

    /// Number of steps of the model.
    #[must_use]
    pub const fn steps(&self) -> u32 {
        self.totals.steps
    }

    /// The current turn, which is also the number of turns.
    #[must_use]
    pub const fn turn(&self) -> Turn {
        self.totals.turn
    }

    /// The size of the projection, in tokens: all messages except orphans.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.totals.tokens
    }

    /// The size of the orphans, in tokens: answers to no call, which are never projected.
    #[must_use]
    pub const fn orphan_tokens(&self) -> u64 {
        self.totals.orphan_tokens
    }

    /// The revision of the history from which the index was made.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.totals.revision
    }

    /// Number of spans.
    #[must_use]
    pub const fn span_count(&self) -> usize {
        self.spans.len()
    }

    /// Number of [`Cell`](crate::Cell)s that a plan needs: one for each span and each part that may be shortened.
    #[must_use]
    pub const fn cell_count(&self) -> usize {
        self.spans.len().saturating_add(self.parts.len())
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

    /// The messages of the groups for which `keep` is true (by leader and kind), as ranges of positions.
    pub(crate) fn project(
        self,
        keep: impl Fn(u32, GroupKind) -> bool + 'a,
    ) -> impl Iterator<Item = Range<u32>> + 'a {
        self.project_spans(keep).map(move |at| self.positions(at))
    }

    /// The spans of the groups for which `keep` is true, in projection order: late answers directly after their call's
    /// span.
    pub(crate) fn project_spans(
        self,
        keep: impl Fn(u32, GroupKind) -> bool + 'a,
    ) -> impl Iterator<Item = usize> + 'a {
        project::ProjectedSpans::new(self, keep)
    }

    /// The tokens of the messages of one span; of a leader, without those of its group's other spans.
    pub(crate) fn own_tokens(self, at: usize) -> u64 {
        let Some(span) = self.spans.get(at) else { return 0 };
        let Some(group) = self.group_at(at) else { return u64::from(span.tokens) };
        let others =
            group.spans().skip(1).filter_map(|at| self.spans.get(at)).map(|span| u64::from(span.tokens));
        u64::from(span.tokens).saturating_sub(others.sum())
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
