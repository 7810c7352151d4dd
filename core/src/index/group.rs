//! Groups: the messages that are kept or removed together.

use core::iter::Enumerate;
use core::ops::Range;
use core::slice;

use super::project::GroupSpans;
use super::span::Flags;
use super::{Index, Span};
use crate::attribution::SourceKind;
use crate::{Tokens, Turn};

/// The kind of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum GroupKind {
    /// A system or developer message.
    System,
    /// A user message.
    User,
    /// An answer of the model without calls.
    Assistant,
    /// Calls of the model with all their results.
    Exchange,
    /// A summary in the place of other messages.
    Summary,
    /// An answer to no call: it is in the log, and never projected.
    Orphan,
    /// Calls of the model to hosted tools with their results, in the same message or, after a pause of the provider, in
    /// the next one. The group has all content of these messages. In a [`BoundedHistory`](crate::BoundedHistory) its
    /// kind is [`Assistant`](Self::Assistant).
    ///
    /// A result of such a call can be shortened if it consists of texts and media alone, and its call is one of the
    /// eight before it in its message.
    Hosted,
}

impl GroupKind {
    pub(crate) const fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::System,
            1 => Self::User,
            2 => Self::Assistant,
            3 => Self::Exchange,
            4 => Self::Summary,
            5 => Self::Orphan,
            _ => Self::Hosted,
        }
    }

    /// The name of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Exchange => "exchange",
            Self::Hosted => "hosted",
            Self::Summary => "summary",
            Self::Orphan => "orphan",
        }
    }
}

/// One group of an index.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    index: Index<'a>,
    at: u32,
    span: &'a Span,
}

impl<'a> Group<'a> {
    /// The group of which the span at `at` is the leader, if it is one.
    const fn led(index: Index<'a>, at: usize, span: &'a Span) -> Option<Self> {
        if span.leader as usize == at { Some(Self { index, at: span.leader, span }) } else { None }
    }

    /// The kind of the group.
    #[must_use]
    pub const fn kind(&self) -> GroupKind {
        self.span.kind()
    }

    /// The tokens of all messages of the group.
    #[must_use]
    pub const fn tokens(&self) -> Tokens {
        Tokens(self.span.tokens)
    }

    /// The turn of the group.
    #[must_use]
    pub const fn turn(&self) -> Turn {
        self.span.turn
    }

    /// Whether a message of the group is pinned.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        self.span.has(Flags::PINNED)
    }

    /// The leader of the group.
    pub(crate) const fn span(&self) -> &'a Span {
        self.span
    }

    /// Whether the group is a standing instruction of the caller: a system or developer message.
    #[must_use]
    pub const fn is_instruction(&self) -> bool {
        self.span.has(Flags::INSTRUCTION)
    }

    /// Whether the group began with an ephemeral message.
    #[must_use]
    pub const fn is_ephemeral(&self) -> bool {
        self.span.has(Flags::EPHEMERAL)
    }

    /// Whether a message of the group holds reasoning.
    #[must_use]
    pub const fn has_reasoning(&self) -> bool {
        self.span.has(Flags::REASONING)
    }

    /// Whether a turn begins with the group: a user message.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.span.has(Flags::REQUEST)
    }

    /// Whether the group is a step of the model, with the answers to its calls.
    #[must_use]
    pub const fn is_step(&self) -> bool {
        self.span.is_step()
    }

    /// Whether the group has a call, or a request for approval, without an answer in the current turn. Such a group is
    /// never compacted.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.span.unanswered() > 0 && self.span.turn.0 == self.index.totals.turn.0
    }

    /// Whether the group has a call, or a request for approval, without an answer in an earlier turn.
    #[must_use]
    pub const fn is_abandoned(&self) -> bool {
        self.span.unanswered() > 0 && self.span.turn.0 != self.index.totals.turn.0
    }

    /// Whether the group is a summary that a compaction put in the place of other messages.
    #[must_use]
    pub const fn is_summary(&self) -> bool {
        self.span.is(GroupKind::Summary)
    }

    /// The positions of the messages of the group, as ranges in projection order.
    pub fn positions(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        let index = self.index;
        self.spans().map(move |at| index.positions(at))
    }

    /// The spans of the group, in projection order, the leader first.
    pub(crate) const fn spans(&self) -> GroupSpans<'a> {
        GroupSpans::new(self.index, self.at as usize, self.span.turn, self.span.has(Flags::SPLIT))
    }

    /// The index of the group.
    pub(crate) const fn index(&self) -> Index<'a> {
        self.index
    }

    /// The kind of the component that added the first message of the group.
    #[must_use]
    pub const fn source(&self) -> SourceKind {
        self.span.source()
    }

    /// The number of the group within the index, under which its verdict is written.
    #[must_use]
    pub const fn leader(&self) -> u32 {
        self.at
    }
}

/// The groups of an index, in the order of their first messages.
#[derive(Debug, Clone)]
pub struct Groups<'a> {
    index: Index<'a>,
    spans: Enumerate<slice::Iter<'a, Span>>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(index: Index<'a>) -> Self {
        Self { index, spans: index.spans.iter().enumerate() }
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = Group<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        // A plain loop: in a build for size, the loop of an iterator is not inlined.
        loop {
            let (at, span) = self.spans.next()?;
            if let Some(group) = Group::led(self.index, at, span) {
                return Some(group);
            }
        }
    }
}

impl DoubleEndedIterator for Groups<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            let (at, span) = self.spans.next_back()?;
            if let Some(group) = Group::led(self.index, at, span) {
                return Some(group);
            }
        }
    }
}

impl<'a> Index<'a> {
    pub(crate) fn group_at(self, at: usize) -> Option<Group<'a>> {
        u32::try_from(at).ok().and_then(|at| self.group(at))
    }

    /// The group of which the span at `at` is the leader, if it is one.
    #[must_use]
    pub fn group(self, at: u32) -> Option<Group<'a>> {
        let span = self.span(at).filter(|span| span.leader == at)?;
        Some(Group { index: self, at, span })
    }
}
