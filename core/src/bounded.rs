//! A complete history in a fixed number of bytes, without a heap.

mod bytes;
mod clamp;
mod compact;
mod encode;
mod message;
mod read;
mod results;
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
pub use summary::{BoundedSummaryError, LEDGER_OPENING, is_ledger};

use crate::draft::Scratch;
use crate::index::{IndexBuf, Placed, Span};
use crate::message::MessageView;
use crate::open_calls::OpenCallSlots;
use crate::plan::{Outcome, PlanError, plan_cutting};
use crate::table::{ArrayTable, Full};
use crate::{Budget, Cell, Pass, Seq, Strategy, TokenCounter, Tokens, Turn};

use bytes::Writer;
use encode::{Form, write_message};
use results::{ResultTable, count_sized};
#[cfg(feature = "suspend")]
use stream::Suspended;

/// Maximum number of calls that wait for their results at once.
///
/// Models request one to five calls together. Unanswered calls of earlier turns make room first.
pub const OPEN_CALLS_MAX: usize = 8;

/// A history of at most `MESSAGES` messages with at most `BYTES` bytes of content, stored in place: no heap, no
/// pointer.
///
/// The texts lie one after the other in one arena of bytes, and messages that are read back borrow from the arena.
/// Grouping, budgets and strategies are those of every other history: a [`plan`](Self::plan) decides, and
/// [`compact`](Self::compact) carries out the plan. There is no log: a message that a plan drops is deleted, its bytes
/// are free at once, and nothing can bring it back.
///
/// `PARTS` is the number of tool results that plans may elide. [`compact_with`](Self::compact_with) puts a note in the
/// place of such a result; its call stays. Each result takes a place until it is elided or its group is dropped. With
/// the default `PARTS` of 0, plans keep or drop whole groups, and no memory is taken. Other parts are never shortened,
/// and results are never clamped: a device has no memory for such verdicts, and [`Draft`](crate::Draft) refuses them.
///
/// Two kinds of results are not stored, because no request would ever contain them: results that answer no call, and
/// results whose call a compaction has removed. A media part is stored with its kind, MIME type and extent, without its
/// bytes.
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
pub struct BoundedHistory<const MESSAGES: usize, const BYTES: usize, const PARTS: usize = 0> {
    index: BoundedIndex<MESSAGES, PARTS>,
    headers: [Header; MESSAGES],
    cells: [Cell; MESSAGES],
    part_cells: [Cell; PARTS],
    arena: [u8; BYTES],
    /// Number of headers in use.
    len: usize,
    /// Number of bytes of the arena in use.
    used: usize,
    /// Whether the cells hold the verdicts of a plan for the present content.
    planned: bool,
    #[cfg(feature = "suspend")]
    /// The text of a suspended stream, which lies in the free room.
    suspended: Suspended,
}

type BoundedIndex<const MESSAGES: usize, const PARTS: usize> =
    IndexBuf<ArrayTable<Span, MESSAGES>, OpenCallSlots<OPEN_CALLS_MAX>, ResultTable<PARTS>>;

/// Facts about a message outside its record. `anchor` is the number of the first message of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    /// Start of the record in the arena. The record ends at the start of the next record.
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

    /// Whether the message is the first of its group.
    const fn leads(&self) -> bool {
        self.anchor == self.seq
    }
}

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// An empty history. A history without room for a message, or without room for a byte, does not compile:
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
            let max = u32::MAX as usize;
            assert!(MESSAGES < max && BYTES < max && PARTS < max, "positions have 32 bits");
        }
        let spans = ArrayTable::in_room([Span::EMPTY; MESSAGES]);
        Self {
            index: IndexBuf::in_empty_tables(spans, OpenCallSlots::new(), ResultTable::new()),
            headers: [Header::EMPTY; MESSAGES],
            cells: [Cell::EMPTY; MESSAGES],
            part_cells: [Cell::EMPTY; PARTS],
            arena: [0; BYTES],
            len: 0,
            used: 0,
            planned: false,
            #[cfg(feature = "suspend")]
            suspended: Suspended::NONE,
        }
    }

    /// The complete memory of a history of this type, in bytes.
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
    /// A result that answers no call is not stored and changes nothing ([`Placed::orphan`]). A late result whose call a
    /// compaction has removed is not stored either ([`Placed::hidden`]). Other histories hide such a result with its
    /// call; this history discards the result and takes only its sequence number. A result inside a result is left out.
    ///
    /// # Errors
    /// [`Full`] if there is no room for the bytes of the message, for another message, for another tool result (unless
    /// `PARTS` is 0), or for its calls: more than [`OPEN_CALLS_MAX`] calls that wait in this turn, or an id longer than
    /// [`CALL_ID_MAX`](crate::CALL_ID_MAX). The history is unchanged then.
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
        let ((tokens, result), seq) = (Self::count(message, counter), self.next_seq()?);
        let mut to = Writer::new(self.free_room()?);
        write_message(message, Self::form(result), &mut to);
        let bytes = to.finish()?;
        let placed = Self::place(&mut self.index, message, tokens, result)?;
        self.keep(placed, seq, tokens, bytes);
        Ok(placed)
    }

    /// Decides which groups stay.
    ///
    /// The history stores the verdicts until a message is added or messages are [summarized](Self::summarize).
    /// [`compact`](Self::compact) carries out the verdicts, or [`compact_with`](Self::compact_with) if tool results are
    /// to be elided.
    ///
    /// # Errors
    /// [`PlanError::Infeasible`] if the protected messages exceed the limit of the budget.
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
        let scratch = Scratch::eliding(&mut self.cells, &mut self.part_cells);
        let outcome = plan_cutting(self.index.view(), budget, pass, strategy, scratch, |_| false)?;
        self.planned = matches!(outcome, Outcome::Planned(_));
        Ok(outcome)
    }

    /// Deletes all messages. The next message gets number 0.
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
        #[cfg(feature = "suspend")]
        {
            self.suspended = Suspended::NONE;
        }
    }

    /// Place of a result that answers no call. The result is not stored.
    fn orphan(&self) -> Placed {
        let (anchor, turn) = (self.index.head(), self.index.view().turn());
        Placed { anchor, turn, late: false, orphan: true, hidden: false }
    }

    /// The free bytes of the arena, if a header is free for a message in them. The caller will write these bytes, so
    /// the text of a suspended stream in them is lost.
    fn free_room(&mut self) -> Result<&mut [u8], Full> {
        #[cfg(feature = "suspend")]
        {
            self.suspended = Suspended::NONE;
        }
        if self.len < MESSAGES { self.arena.get_mut(self.used..).ok_or(Full) } else { Err(Full) }
    }

    /// The next sequence number, which has to fit a header.
    fn next_seq(&self) -> Result<u32, Full> {
        u32::try_from(self.index.head().0).map_err(|_| Full)
    }

    /// The size of a message, and the size of its first result.
    fn count<M: MessageView + ?Sized>(
        message: &M,
        counter: &(impl TokenCounter + ?Sized),
    ) -> (Tokens, Tokens) {
        count_sized(message, counter)
    }

    /// Form of a record whose first result has this size.
    const fn form(result: Tokens) -> Form {
        Form { text_max: usize::MAX, result: if PARTS == 0 { None } else { Some(result) } }
    }

    /// Puts a message in its group.
    fn place<M: MessageView + ?Sized>(
        index: &mut BoundedIndex<MESSAGES, PARTS>,
        message: &M,
        tokens: Tokens,
        result: Tokens,
    ) -> Result<Placed, Full> {
        if PARTS == 0 {
            index.push(message, tokens)
        } else {
            // The table takes the rows of results only.
            index.push_with_parts(message, tokens, |_, _| result)
        }
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
}

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> Default
    for BoundedHistory<MESSAGES, BYTES, PARTS>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Prints no text: a history does not leak its messages into a log.
impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> core::fmt::Debug
    for BoundedHistory<MESSAGES, BYTES, PARTS>
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BoundedHistory")
            .field("messages", &self.len)
            .field("bytes", &self.used)
            .field("tokens", &self.tokens())
            .finish_non_exhaustive()
    }
}
