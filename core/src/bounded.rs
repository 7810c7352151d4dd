//! A whole history in a fixed number of bytes, without a heap.

mod bytes;
mod clamp;
mod compact;
mod encode;
mod message;
mod snapshot;
mod stream;
mod summary;
#[cfg(test)]
mod tests;

pub use compact::{CompactError, Compacted};
pub use encode::{CLAMP_MARKER, DERIVED_RANGES_MAX};
pub use message::ArenaMessage;
pub use snapshot::SnapshotError;
pub use stream::Stream;
pub use summary::SummaryError;

use crate::attribution::SeqRange;
use crate::index::{Index, IndexBuf, Placed, Span};
use crate::message::MessageView;
use crate::open_calls::OpenCallSlots;
use crate::plan::{Outcome, Pass, PlanError, plan};
use crate::table::{ArrayTable, Full};
use crate::{Budget, Cell, Seq, Strategy, TokenCounter, Tokens, Turn, count_message};

use bytes::Writer;
use encode::write_message;

/// How many calls may wait for their results at once. Models ask for one to five together; the calls of earlier turns
/// that never got a result make room first.
pub const OPEN_CALLS_MAX: usize = 8;

/// A history of at most `MESSAGES` messages in at most `BYTES` bytes of content, in place: no heap, no pointer.
///
/// Texts lie one after the other in one arena of bytes; what is read back borrows from it. Grouping, budgets and
/// strategies are those of every other history: a [`plan`](Self::plan) decides, [`compact`](Self::compact) makes it so.
/// There is no log behind it: what a plan drops is deleted, its bytes are free at once, and nothing can bring it back.
///
/// What is not stored: answers to no call, and answers to calls that a compaction has removed. No request would ever
/// contain them. Media are stored as what they are and how large, without their bytes.
///
/// An empty history is all zero bytes: in a `static` it takes no flash.
///
/// ```
/// use epitome_core::message::SimpleMessage;
/// use epitome_core::{BoundedHistory, Budget, ClassEstimator, Draft, Outcome, Pass, Strategy};
///
/// #[derive(Debug)]
/// struct Oldest;
///
/// impl Strategy for Oldest {
///     fn name(&self) -> &'static str {
///         "oldest"
///     }
///
///     fn plan(&self, draft: &mut Draft<'_>) {
///         draft.drop_oldest();
///     }
/// }
///
/// let mut history = BoundedHistory::<32, 1024>::new();
/// history.push(&SimpleMessage::system("Answer briefly."), &ClassEstimator::new())?;
/// for _ in 0..8 {
///     history.push(&SimpleMessage::user("How warm is it in the greenhouse?"), &ClassEstimator::new())?;
///     history.push(&SimpleMessage::assistant("21 degrees."), &ClassEstimator::new())?;
/// }
/// let budget = Budget::builder().window(200).trigger(120).goal(80).build()?;
/// assert!(budget.is_due(history.tokens()));
/// let outcome = history.plan(&budget, Pass::Proactive, &Oldest)?;
/// assert!(matches!(outcome, Outcome::Planned(plan) if plan.tokens_after() <= 80));
/// let done = history.compact()?;
/// assert!(done.bytes > 0 && history.tokens() <= 80);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BoundedHistory<const MESSAGES: usize, const BYTES: usize> {
    index: BoundedIndex<MESSAGES>,
    headers: [Header; MESSAGES],
    cells: [Cell; MESSAGES],
    arena: [u8; BYTES],
    /// How many headers are in use.
    len: usize,
    /// How many bytes of the arena are in use.
    used: usize,
    /// Whether the cells hold the verdicts of a plan of what is here now.
    planned: bool,
}

type BoundedIndex<const MESSAGES: usize> =
    IndexBuf<ArrayTable<Span, MESSAGES>, OpenCallSlots<OPEN_CALLS_MAX>>;

/// What is known of a message beside its record. Its group's first message is the one whose number is `anchor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    /// Where its record begins; it ends where the next begins.
    start: u32,
    tokens: Tokens,
    seq: u32,
    anchor: u32,
    turn: Turn,
}

const _: () = assert!(size_of::<Header>() <= 20, "a history has at most 20 bytes of header per message");

impl Header {
    const EMPTY: Self = Self { start: 0, tokens: Tokens(0), seq: 0, anchor: 0, turn: Turn(0) };

    const fn seq(&self) -> Seq {
        Seq(self.seq as u64)
    }

    const fn anchor(&self) -> Seq {
        Seq(self.anchor as u64)
    }

    /// Whether it is the first message of its group.
    const fn leads(&self) -> bool {
        self.anchor == self.seq
    }
}

impl<const MESSAGES: usize, const BYTES: usize> BoundedHistory<MESSAGES, BYTES> {
    /// An empty history. No room for a message, or for a byte, does not compile:
    ///
    /// ```compile_fail,E0080
    /// let history = epitome_core::BoundedHistory::<0, 1024>::new();
    /// ```
    /// ```compile_fail,E0080
    /// let history = epitome_core::BoundedHistory::<16, 0>::new();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(MESSAGES > 0, "no room for a single message");
            assert!(BYTES > 0, "no room for a single byte");
            assert!(MESSAGES < u32::MAX as usize && BYTES < u32::MAX as usize, "positions have 32 bits");
        }
        let spans = ArrayTable::in_room([Span::EMPTY; MESSAGES]);
        Self {
            index: IndexBuf::in_empty_tables(spans, OpenCallSlots::new()),
            headers: [Header::EMPTY; MESSAGES],
            cells: [Cell::EMPTY; MESSAGES],
            arena: [0; BYTES],
            len: 0,
            used: 0,
            planned: false,
        }
    }

    /// How much memory a history of this type takes, all of it.
    ///
    /// ```
    /// use epitome_core::BoundedHistory;
    ///
    /// const _: () = assert!(BoundedHistory::<64, 8192>::ram_bytes() < 12 * 1024);
    /// ```
    #[must_use]
    pub const fn ram_bytes() -> usize {
        size_of::<Self>()
    }

    /// Adds a message.
    ///
    /// An answer to no call is not stored and changes nothing ([`Placed::orphan`]); nor is one stored to a call that a
    /// compaction has removed ([`Placed::hidden`]). A result inside a result is left out.
    ///
    /// # Errors
    /// [`Full`] if there is no room for its bytes, for another message, or for its calls: more than [`OPEN_CALLS_MAX`]
    /// that wait in this turn, or an id longer than [`CALL_ID_MAX`](crate::CALL_ID_MAX). Nothing is changed then.
    ///
    /// ```
    /// use epitome_core::message::SimpleMessage;
    /// use epitome_core::{BoundedHistory, ClassEstimator, Full};
    ///
    /// let mut history = BoundedHistory::<8, 16>::new();
    /// assert!(history.push(&SimpleMessage::user("Hello"), &ClassEstimator::new()).is_ok());
    /// assert_eq!(history.push(&SimpleMessage::assistant("Hello. And now?"), &ClassEstimator::new()), Err(Full));
    /// assert_eq!(history.len(), 1);
    /// ```
    pub fn push<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        counter: &(impl TokenCounter + ?Sized),
    ) -> Result<Placed, Full> {
        if self.index.is_orphan(message) {
            return Ok(self.orphan());
        }
        let mut to = Writer::new(self.free_room()?);
        write_message(message, usize::MAX, &mut to);
        let bytes = to.finish()?;
        let (seq, tokens) = (self.next_seq()?, count_message(message, counter));
        let placed = self.index.push(message, tokens)?;
        self.keep(placed, seq, tokens, bytes);
        Ok(placed)
    }

    /// Decides what to keep. The verdicts stay here until something is added; [`compact`](Self::compact) acts on them.
    ///
    /// # Errors
    /// [`PlanError::Infeasible`] if what is protected does not fit the budget's window.
    ///
    /// ```
    /// use epitome_core::{BoundedHistory, Budget, Outcome, Pass, Unchanged};
    /// # use epitome_core::{Draft, Strategy};
    /// # #[derive(Debug)]
    /// # struct Oldest;
    /// # impl Strategy for Oldest {
    /// #     fn name(&self) -> &'static str { "oldest" }
    /// #     fn plan(&self, draft: &mut Draft<'_>) { draft.drop_oldest(); }
    /// # }
    ///
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// let outcome = history.plan(&Budget::default(), Pass::Manual, &Oldest)?;
    /// assert!(matches!(outcome, Outcome::Unchanged(Unchanged::AtGoal)));
    /// # Ok::<(), epitome_core::PlanError>(())
    /// ```
    pub fn plan(
        &mut self,
        budget: &Budget,
        pass: Pass,
        strategy: &(impl Strategy + ?Sized),
    ) -> Result<Outcome<'_>, PlanError> {
        self.planned = false;
        let outcome = plan(self.index.view(), budget, pass, strategy, &mut self.cells)?;
        self.planned = matches!(outcome, Outcome::Planned(_));
        Ok(outcome)
    }

    /// Forgets everything. The next message gets number 0.
    ///
    /// ```
    /// # use epitome_core::message::SimpleMessage;
    /// # use epitome_core::{BoundedHistory, ClassEstimator};
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// history.push(&SimpleMessage::user("Hello"), &ClassEstimator::new())?;
    /// history.clear();
    /// assert!(history.is_empty() && history.free_bytes() == 64);
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    pub fn clear(&mut self) {
        self.index.clear();
        (self.len, self.used, self.planned) = (0, 0, false);
    }

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

    /// The messages with numbers in `range`, in the order in which they came: what a summary of them must cover.
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

    /// The size of what the model will see, in tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.index.view().tokens()
    }

    /// The sequence number that the next message will get.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.index.head()
    }

    /// How many messages there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes of the arena are free.
    #[must_use]
    pub const fn free_bytes(&self) -> usize {
        BYTES.saturating_sub(self.used)
    }

    /// What becomes of an answer to no call: nothing.
    fn orphan(&self) -> Placed {
        let (anchor, turn) = (self.index.head(), self.index.view().turn());
        Placed { anchor, turn, late: false, orphan: true, hidden: false }
    }

    /// The free bytes of the arena, if there is a header left for what they could hold.
    fn free_room(&mut self) -> Result<&mut [u8], Full> {
        if self.len < MESSAGES { self.arena.get_mut(self.used..).ok_or(Full) } else { Err(Full) }
    }

    /// The next sequence number, which has to fit a header.
    fn next_seq(&self) -> Result<u32, Full> {
        u32::try_from(self.index.head().0).map_err(|_| Full)
    }

    /// Keeps the record of `bytes` bytes that lies in the free room, for a message that the index has placed.
    fn keep(&mut self, placed: Placed, seq: u32, tokens: Tokens, bytes: usize) {
        self.planned = false;
        if placed.hidden {
            return;
        }
        if let Some(header) = self.headers.get_mut(self.len) {
            // Positions and numbers of 32 bits are promised by `new` and `next_seq`.
            let start = u32::try_from(self.used).unwrap_or(u32::MAX);
            let anchor = u32::try_from(placed.anchor.0).unwrap_or(u32::MAX);
            *header = Header { start, tokens, seq, anchor, turn: placed.turn };
            self.len = self.len.saturating_add(1);
            self.used = self.used.saturating_add(bytes);
        }
    }

    fn message(&self, at: usize) -> Option<ArenaMessage<'_>> {
        let header = self.headers().get(at)?;
        ArenaMessage::read(self.record(at)?, header.seq(), header.tokens)
    }

    fn record(&self, at: usize) -> Option<&[u8]> {
        let start = self.headers().get(at)?.start as usize;
        let end = self.headers().get(at.saturating_add(1)).map_or(self.used, |next| next.start as usize);
        self.arena.get(start..end)
    }

    fn headers(&self) -> &[Header] {
        self.headers.get(..self.len).unwrap_or_default()
    }

    /// The positions of the messages with numbers in `range`.
    fn positions_in(&self, range: SeqRange) -> core::ops::Range<usize> {
        let before = |end: u64| self.headers().partition_point(|header| u64::from(header.seq) < end);
        before(range.first.0)..before(range.last.0.saturating_add(1)).max(before(range.first.0))
    }
}

impl<const MESSAGES: usize, const BYTES: usize> Default for BoundedHistory<MESSAGES, BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

/// No text: a history does not leak what was said into a log.
impl<const MESSAGES: usize, const BYTES: usize> core::fmt::Debug for BoundedHistory<MESSAGES, BYTES> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BoundedHistory")
            .field("messages", &self.len)
            .field("bytes", &self.used)
            .field("tokens", &self.tokens())
            .finish_non_exhaustive()
    }
}
