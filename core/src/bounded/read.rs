//! Read access to a history: its messages, their sizes, and its projection.

use core::ops::Range;

use crate::Seq;
use crate::attribution::SeqRange;
use crate::index::Index;

use super::{ArenaMessage, BoundedHistory, Header};

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// The messages as the model will see them: late answers directly after their call.
    ///
    /// ```
    /// # use epitome_core::message::{MessageView, Role, SimpleMessage};
    /// # use epitome_core::{BoundedHistory, ClassEstimator};
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// history.push(&SimpleMessage::user("Hello"), &ClassEstimator::new())?;
    /// assert!(history.messages().map(|message| message.role()).eq([Role::User]));
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    pub fn messages(&self) -> impl Iterator<Item = ArenaMessage<'_>> {
        self.index.view().projection().flatten().filter_map(|at| self.message(at as usize))
    }

    /// The message at `place` among [`messages`](Self::messages), without reading those before it. Takes one pass over the
    /// spans.
    ///
    /// ```
    /// # use epitome_core::message::{MessageView, Role, SimpleMessage};
    /// # use epitome_core::{BoundedHistory, ClassEstimator};
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// history.push(&SimpleMessage::user("Hello"), &ClassEstimator::new())?;
    /// assert_eq!(history.message_at(0).map(|message| message.role()), Some(Role::User));
    /// assert!(history.message_at(1).is_none());
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    #[must_use]
    pub fn message_at(&self, place: usize) -> Option<ArenaMessage<'_>> {
        self.message(self.index.view().projection().flatten().nth(place)? as usize)
    }

    /// The messages with numbers in `range`, in the order of their arrival: the messages that a summary of the range
    /// must cover.
    ///
    /// ```
    /// # use epitome_core::attribution::SeqRange;
    /// # use epitome_core::message::SimpleMessage;
    /// # use epitome_core::{BoundedHistory, ClassEstimator, Seq};
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// history.push(&SimpleMessage::user("Hello"), &ClassEstimator::new())?;
    /// assert_eq!(history.messages_in(SeqRange { first: Seq(0), last: Seq(7) }).count(), 1);
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    pub fn messages_in(&self, range: SeqRange) -> impl Iterator<Item = ArenaMessage<'_>> {
        self.positions_in(range).filter_map(|at| self.message(at))
    }

    /// The conversation as the planner sees it.
    #[must_use]
    pub fn index(&self) -> Index<'_> {
        self.index.view()
    }

    /// The size of the projection, in tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.index.view().tokens()
    }

    /// The sequence number that the next message will get.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.index.head()
    }

    /// Number of messages.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of free bytes of the arena.
    #[must_use]
    pub const fn free_bytes(&self) -> usize {
        BYTES.saturating_sub(self.used)
    }

    pub(super) fn message(&self, at: usize) -> Option<ArenaMessage<'_>> {
        let header = self.headers().get(at)?;
        ArenaMessage::read(self.record(at)?, header.seq(), header.tokens)
    }

    pub(super) fn record(&self, at: usize) -> Option<&[u8]> {
        let start = self.headers().get(at)?.start as usize;
        let end = self.headers().get(at.saturating_add(1)).map_or(self.used, |next| next.start as usize);
        self.arena.get(start..end)
    }

    pub(super) fn headers(&self) -> &[Header] {
        self.headers.get(..self.len).unwrap_or_default()
    }

    /// The positions of the messages with numbers in `range`.
    pub(super) fn positions_in(&self, range: SeqRange) -> Range<usize> {
        let before = |end: u64| self.headers().partition_point(|header| u64::from(header.seq) < end);
        before(range.first.0)..before(range.last.0.saturating_add(1)).max(before(range.first.0))
    }
}
