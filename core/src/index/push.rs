//! Grouping of messages: a message gets its group once, when it is appended, and keeps it.

use super::facts::{Answer, Facts, ResponseId, close};
use super::part::{NoParts, PartSpan, Sizes};
use super::seat::{Last, Seat};
use super::span::{Flags, NONE, Span};
use super::{GroupKind, Index, Totals};
use crate::attribution::SourceKind;
use crate::message::{MessageView, PartView};
use crate::open_calls::{OpenCall, OpenCalls};
use crate::table::{Full, Table};
use crate::{Seq, Tokens, Turn};

/// An index that grows with every pushed message.
///
/// It has a table of spans, the memory for unanswered calls and, where plans may shorten parts of messages, a table of
/// parts ([`IndexBuf::with_parts`]).
///
/// ```
/// use epitome_core::{ArrayTable, IndexBuf, OpenCallSlots, Span, Tokens};
/// use epitome_core::message::{SimpleMessage, ToolCallView};
///
/// let mut index = IndexBuf::<ArrayTable<Span, 16>, OpenCallSlots<4>>::new();
/// index.push(&SimpleMessage::user("Compare a.txt and b.txt."), Tokens(10))?;
/// let calls = [ToolCallView::new("c1", "read", "a.txt"), ToolCallView::new("c2", "read", "b.txt")];
/// index.push(&SimpleMessage::calls(&calls), Tokens(12))?;
/// index.push(&SimpleMessage::result("c2", "two"), Tokens(4))?;
/// index.push(&SimpleMessage::result("c1", "one"), Tokens(4))?;
/// // The calls and both results are one group of 20 tokens.
/// assert_eq!(index.view().groups().map(|group| group.tokens().0).collect::<Vec<_>>(), [10, 20]);
/// # Ok::<(), epitome_core::Full>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct IndexBuf<S, C, P = NoParts> {
    pub(super) spans: S,
    pub(super) calls: C,
    pub(super) parts: P,
    pub(super) totals: Totals,
    pub(super) next: Seq,
    /// The number after that of the last message in the index. It differs from `next` if later messages are hidden.
    tail: Seq,
    /// Number of calls that have been opened: orders the calls of a group.
    pub(super) opened: u32,
    pub(super) last: Option<Last>,
    /// The response id of the turn's latest step, if it has one.
    pub(super) response: Option<(Seat, ResponseId)>,
}

/// The place of a pushed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The sequence number of the first message of its group.
    pub anchor: Seq,
    /// The turn of its group.
    pub turn: Turn,
    /// Whether the message answers a call of an earlier turn.
    pub late: bool,
    /// Whether the message answers no call.
    pub orphan: bool,
    /// Whether the message answers a call that a compaction hides. The message is then hidden too, and not in the
    /// index.
    pub hidden: bool,
}

impl<S, C, P> IndexBuf<S, C, P> {
    /// An empty index in these tables, which must be empty: for a `static`.
    pub(crate) const fn in_empty_tables(spans: S, calls: C, parts: P) -> Self {
        Self {
            spans,
            calls,
            parts,
            totals: Totals::ZERO,
            next: Seq(0),
            tail: Seq(0),
            opened: 0,
            last: None,
            response: None,
        }
    }
}

impl<S: Table<Span> + Default, C: OpenCalls + Default> IndexBuf<S, C> {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::with_tables(S::default(), C::default())
    }
}

impl<S: Table<Span>, C: OpenCalls> IndexBuf<S, C> {
    /// An empty index in these tables.
    #[must_use]
    pub fn with_tables(spans: S, calls: C) -> Self {
        Self::with_parts(spans, calls, NoParts)
    }
}

impl<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>> IndexBuf<S, C, P> {
    /// An empty index in these tables. The last table is for the parts that plans may shorten.
    ///
    /// ```
    /// use epitome_core::message::{SimpleMessage, ToolCallView};
    /// use epitome_core::{ArrayTable, ClassEstimator, IndexBuf, OpenCallSlots, PartKind, PartSpan, Span, ToolName};
    /// use epitome_core::{count_message, count_part};
    ///
    /// let (spans, parts) = (ArrayTable::<Span, 8>::default(), ArrayTable::<PartSpan, 8>::default());
    /// let mut index = IndexBuf::with_parts(spans, OpenCallSlots::<4>::new(), parts);
    /// let counter = ClassEstimator::new();
    /// let calls = [ToolCallView::new("c1", "read", "{\"path\":\"a.txt\"}")];
    /// for message in [SimpleMessage::user("Read it."), SimpleMessage::calls(&calls), SimpleMessage::result("c1", "one")] {
    ///     let tokens = count_message(&message, &counter);
    ///     index.push_with_parts(&message, tokens, |_, part| count_part(part, &counter))?;
    /// }
    /// let kinds: Vec<_> = index.view().parts().map(|part| (part.position(), part.kind())).collect();
    /// assert_eq!(kinds, [(1, PartKind::ToolInput), (2, PartKind::ToolResult)]);
    /// assert!(index.view().parts().all(|part| part.tool() == Some(ToolName::new("read"))));
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    #[must_use]
    pub fn with_parts(spans: S, calls: C, parts: P) -> Self {
        let totals = Totals::default();
        let (next, tail) = (Seq(0), Seq(0));
        let mut index =
            Self { spans, calls, parts, totals, next, tail, opened: 0, last: None, response: None };
        index.clear();
        index
    }

    /// Puts the next message in its group. Takes amortized constant time, independent of the length of the history.
    ///
    /// # Errors
    /// [`Full`] if a table or the memory for calls has no room. The index is unchanged then.
    pub fn push<M: MessageView + ?Sized>(&mut self, message: &M, tokens: Tokens) -> Result<Placed, Full> {
        self.push_in(message, tokens, None)
    }

    /// Appends a message, with a row for each part that a plan may shorten.
    ///
    /// `sizes` returns the size of a part, and gets the position of the part among all parts of the message. The size
    /// is the share of the part in the size of the message: that of [`count_part`](crate::count_part) by the same
    /// counter. For a call, `sizes` gets the arguments as a text.
    ///
    /// # Errors
    /// [`Full`] if a table, including that of parts, or the memory for calls has no room. The index is unchanged then.
    pub fn push_with_parts<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        tokens: Tokens,
        mut sizes: impl FnMut(u32, PartView<'_>) -> Tokens,
    ) -> Result<Placed, Full> {
        self.push_in(message, tokens, Some(&mut |at, part| sizes(at, *part)))
    }

    fn push_in<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        tokens: Tokens,
        sizes: Option<Sizes<'_>>,
    ) -> Result<Placed, Full> {
        let (known, named, turn) = (self.parts.as_slice().len(), sizes.is_some(), self.totals.turn);
        let mut facts = Facts::before_parts(message);
        let added = self.read(message, &mut facts, sizes, |calls, kind, id| calls.find(kind, id, turn));
        let new = New { facts: &facts, tokens, seq: self.next, turn: facts.next_turn(turn) };
        if let Err(full) = added.and_then(|()| self.check_room(&facts, new.turn)) {
            self.parts.truncate(known);
            return Err(full);
        }
        let seat = match facts.answer {
            Answer::To(call) => self.answer(call, &new),
            Answer::Orphan => self.lead(GroupKind::Orphan, &new),
            Answer::No => match self.seat_of(message, &facts) {
                Some(seat) => self.join(seat, &new),
                None => self.lead(facts.kind(), &new),
            },
        };
        if seat.map_or(true, |seat| seat.leader == NONE) {
            self.parts.truncate(known);
        }
        let seat = seat?;
        self.finish(message, &new, seat, named.then_some(known))?;
        Ok(self.placed(&new, seat))
    }

    /// Whether `message` would answer no call.
    ///
    /// A program that keeps orphans out of the index calls [`IndexBuf::skip`] instead of a push.
    pub fn is_orphan<M: MessageView + ?Sized>(&self, message: &M) -> bool {
        Facts::of::<M, P>(message, |kind, id| self.calls.find(kind, id, self.totals.turn)).answer
            == Answer::Orphan
    }

    /// Gives the next sequence number to a message that does not enter the index.
    pub const fn skip(&mut self) {
        self.next = self.next.next();
    }

    /// Removes all messages and calls; the memory of the tables remains.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.calls.clear();
        self.parts.clear();
        self.totals = Totals::default();
        (self.next, self.tail, self.opened) = (Seq(0), Seq(0), 0);
        (self.last, self.response) = (None, None);
    }

    /// The index in the form that plans use.
    #[must_use]
    pub fn view(&self) -> Index<'_> {
        Index { spans: self.spans.as_slice(), parts: self.parts.as_slice(), totals: &self.totals }
    }

    /// The calls without an answer.
    #[must_use]
    pub const fn open_calls(&self) -> &C {
        &self.calls
    }

    /// The sequence number that the next message will get.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.next
    }

    pub(super) fn check_room(&self, facts: &Facts, turn: Turn) -> Result<(), Full> {
        let calls = facts.awaits() as usize;
        let fits = calls == 0 || self.calls.fits(calls, facts.id_bytes, turn);
        if fits && self.totals.messages < NONE { Ok(()) } else { Err(Full) }
    }

    // The functions from here on are inlined into both callers, pushing and restoring, unless the size of the program
    // matters more.
    /// Begins a new group with the message.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn lead(&mut self, kind: GroupKind, new: &New<'_>) -> Result<Seat, Full> {
        let at = self.len();
        let instruction =
            Flags::INSTRUCTION.when(new.facts.is_instruction() && new.facts.source == SourceKind::Caller);
        let request = Flags::REQUEST.when(new.facts.begins_turn());
        let flags = new.facts.flags.with(instruction).with(request).with(Flags::source(new.facts.source));
        let mut span = Span::new(self.totals.messages, at, new.turn, kind, flags);
        span.tokens = new.tokens.0;
        span.settle_hosted::<P>();
        self.spans.push(span)?;
        self.totals.groups = self.totals.groups.saturating_add(1);
        if flags.is_mark() {
            self.totals.marked_to = at.saturating_add(1);
        }
        if kind == GroupKind::Orphan {
            self.totals.marked_to = at.saturating_add(1);
            self.totals.orphan_tokens = self.totals.orphan_tokens.saturating_add(new.tokens.as_u64());
        } else {
            self.totals.tokens = self.totals.tokens.saturating_add(new.tokens.as_u64());
        }
        match kind {
            GroupKind::Assistant | GroupKind::Exchange => {
                self.totals.steps = self.totals.steps.saturating_add(1);
            }
            GroupKind::Summary => self.totals.marked_to = at.saturating_add(1),
            _ => {}
        }
        if new.facts.begins_turn() {
            self.totals.first_user = self.totals.first_user.or(Some(at));
            self.totals.last_user = Some(at);
            self.response = None;
            if new.turn > self.totals.turn {
                self.totals.turn_from = at;
            }
        }
        Ok(Seat { leader: at, anchor: new.seq, turn: new.turn })
    }

    /// Adds a message of the model to a group.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn join(&mut self, seat: Seat, new: &New<'_>) -> Result<Seat, Full> {
        let continues = |span: &Span| span.leader == seat.leader && !span.is_late() && new.seq == self.tail;
        let adjacent = self.spans.as_slice().last().is_some_and(continues);
        if !adjacent {
            let mut span =
                Span::new(self.totals.messages, seat.leader, seat.turn, GroupKind::Exchange, Flags::NONE);
            span.tokens = new.tokens.0;
            self.spans.push(span)?;
        } else {
            self.grow_run(seat.leader, new);
        }
        let kind = if new.facts.calls() { Some(GroupKind::Exchange) } else { None };
        self.grow_group(seat.leader, new, Flags::SPLIT.when(!adjacent), kind);
        Ok(seat)
    }

    /// Rule 4: adds an answer to the group of its call. The answer is in place directly behind the call, or it is late.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn answer(&mut self, call: OpenCall, new: &New<'_>) -> Result<Seat, Full> {
        let seat = |leader| Seat { leader, anchor: call.anchor, turn: call.turn };
        let Some(host) = self.spans.as_slice().get(call.span as usize).copied() else {
            return Ok(seat(NONE));
        };
        let last = self.len().saturating_sub(1);
        let in_place = call.span == last && new.seq == self.tail;
        if !in_place && host.next != last {
            let at = self.len();
            let mut span =
                Span::new(self.totals.messages, host.leader, host.turn, GroupKind::Exchange, Flags::LATE);
            (span.tokens, span.next) = (new.tokens.0, at);
            let ring = self.spans.as_slice().get(host.next as usize).map(|last| last.next);
            span.next = ring.unwrap_or(at);
            self.spans.push(span)?;
            self.link(host.next, at);
            self.link(call.span, at);
        } else {
            self.grow_run(host.leader, new);
        }
        self.grow_group(host.leader, new, Flags::NONE, None);
        self.edit(host.leader, Span::sub_unanswered);
        Ok(seat(host.leader))
    }

    /// Adds the size of a message to the last run, which it continues. A leader has the size of its group instead.
    fn grow_run(&mut self, leader: u32, new: &New<'_>) {
        let last = self.len().saturating_sub(1);
        if last != leader {
            self.edit(last, |run| run.tokens = run.tokens.saturating_add(new.tokens.0));
        }
    }

    /// Adds a message's size and flags to its group's leader, and its size to the total.
    fn grow_group(&mut self, leader: u32, new: &New<'_>, flags: Flags, kind: Option<GroupKind>) {
        let mut grown = 0;
        self.edit(leader, |span| {
            let tokens = span.tokens.saturating_add(new.tokens.0);
            grown = tokens.saturating_sub(span.tokens);
            span.tokens = tokens;
            span.add_flags(flags.with(new.facts.flags.without(Flags::EPHEMERAL)));
            if let Some(kind) = kind {
                span.set_kind(kind);
            }
            span.settle_hosted::<P>();
        });
        self.totals.tokens = self.totals.tokens.saturating_add(u64::from(grown));
        if new.facts.flags.is_mark() {
            self.totals.marked_to = self.totals.marked_to.max(leader.saturating_add(1));
        }
    }

    /// Last step for every message that is in its group: opens its calls, or closes the call that it answers.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn finish<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        new: &New<'_>,
        seat: Seat,
        rows: Option<usize>,
    ) -> Result<(), Full> {
        match new.facts.answer {
            Answer::To(call) => close(&mut self.calls, message, call),
            _ if new.facts.awaits() > 0 => self.open(message, seat, rows)?,
            _ => {}
        }
        if seat.leader != NONE {
            self.totals.messages = self.totals.messages.saturating_add(1);
            self.tail = new.seq.next();
        }
        self.totals.turn = self.totals.turn.max(new.turn);
        self.next = new.seq.next();
        self.remember(message, new, seat);
        Ok(())
    }

    fn placed(&self, new: &New<'_>, seat: Seat) -> Placed {
        let answers = matches!(new.facts.answer, Answer::To(_));
        Placed {
            anchor: seat.anchor,
            turn: seat.turn,
            late: answers && seat.turn != self.totals.turn,
            orphan: new.facts.answer == Answer::Orphan,
            hidden: seat.leader == NONE,
        }
    }

    fn link(&mut self, at: u32, next: u32) {
        self.edit(at, |span| span.next = next);
    }

    fn edit(&mut self, at: u32, change: impl FnOnce(&mut Span)) {
        if let Some(span) = self.spans.as_mut_slice().get_mut(at as usize) {
            change(span);
        }
    }

    /// The number of spans. It is at most that of messages, which fits.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.spans.as_slice().len()).unwrap_or(NONE)
    }
}

/// A message that is being added to the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct New<'f> {
    pub(super) facts: &'f Facts,
    pub(super) tokens: Tokens,
    pub(super) seq: Seq,
    pub(super) turn: Turn,
}
