//! Putting a message in its group: once, when it is appended, for good.

use super::facts::{Answer, Facts, ResponseId, close, for_each_call};
use super::span::{Flags, NONE, Span};
use super::{GroupKind, Index, Totals};
use crate::attribution::SourceKind;
use crate::message::{MessageView, Role};
use crate::open_calls::{OpenCall, OpenCalls};
use crate::table::{Full, Table};
use crate::{Seq, Tokens, Turn};

/// An index that grows: its table of spans, and the memory for unanswered calls.
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
pub struct IndexBuf<S, C> {
    pub(super) spans: S,
    pub(super) calls: C,
    pub(super) totals: Totals,
    pub(super) next: Seq,
    /// The number after that of the last message in the index. It is not `next` where what followed is hidden.
    tail: Seq,
    /// How many calls have been opened: orders the calls of a group.
    pub(super) opened: u32,
    last: Option<Last>,
    /// The response id of the turn's latest step, if it has one.
    response: Option<(Seat, ResponseId)>,
}

/// Where a message has been put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The sequence number of the first message of its group.
    pub anchor: Seq,
    /// The turn of its group.
    pub turn: Turn,
    /// Whether it answers a call of an earlier turn.
    pub late: bool,
    /// Whether it answers no call.
    pub orphan: bool,
    /// Whether it answers a call that a compaction hides. It is then hidden too, and not in the index.
    pub hidden: bool,
}

/// A group, as long as messages may join it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) leader: u32,
    pub(super) anchor: Seq,
    pub(super) turn: Turn,
}

/// The last message of the model, as far as the next one's group depends on it.
///
/// It holds no `bool` and no `Option`, so that its own absence is all zero bytes: an empty index in a `static` lies in
/// `.bss` and costs no flash.
#[derive(Debug, Clone, Copy)]
struct Last {
    seq: Seq,
    seat: Seat,
    calls: u32,
    /// How many response ids it has: none or one.
    responses: u32,
    response: ResponseId,
}

impl Last {
    fn response(&self) -> Option<ResponseId> {
        (self.responses > 0).then_some(self.response)
    }
}

impl<S, C> IndexBuf<S, C> {
    /// An empty index in these tables, which are empty: for a `static`.
    pub(crate) const fn in_empty_tables(spans: S, calls: C) -> Self {
        Self {
            spans,
            calls,
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
        let totals = Totals::default();
        let (next, tail) = (Seq(0), Seq(0));
        let mut index = Self { spans, calls, totals, next, tail, opened: 0, last: None, response: None };
        index.clear();
        index
    }

    /// Puts the next message in its group. Amortized constant time, whatever the length of the history.
    ///
    /// # Errors
    /// [`Full`] when a table has no room. Nothing is changed then.
    pub fn push<M: MessageView + ?Sized>(&mut self, message: &M, tokens: Tokens) -> Result<Placed, Full> {
        let facts = Facts::of(message, |id| self.calls.find(id, self.totals.turn));
        let new = New { facts, tokens, seq: self.next, turn: self.next_turn(&facts) };
        self.check_room(&facts, new.turn)?;
        let seat = match facts.answer {
            Answer::To(call) => self.answer(call, &new)?,
            Answer::Orphan => self.lead(GroupKind::Orphan, &new)?,
            Answer::No => match self.seat_of(message, &facts) {
                Some(seat) => self.join(seat, &new)?,
                None => self.lead(facts.kind(), &new)?,
            },
        };
        self.finish(message, &new, seat)?;
        Ok(self.placed(&new, seat))
    }

    /// Whether `message` would answer no call. Where orphans are kept out of the index, [`IndexBuf::skip`] takes its place.
    pub fn is_orphan<M: MessageView + ?Sized>(&self, message: &M) -> bool {
        Facts::of(message, |id| self.calls.find(id, self.totals.turn)).answer == Answer::Orphan
    }

    /// Gives the next sequence number to a message that does not enter the index.
    pub const fn skip(&mut self) {
        self.next = self.next.next();
    }

    /// Forgets everything; the room of the tables remains.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.calls.clear();
        self.totals = Totals::default();
        (self.next, self.tail, self.opened) = (Seq(0), Seq(0), 0);
        (self.last, self.response) = (None, None);
    }

    /// The index as plans see it.
    #[must_use]
    pub fn view(&self) -> Index<'_> {
        Index { spans: self.spans.as_slice(), totals: self.totals }
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

    fn next_turn(&self, facts: &Facts) -> Turn {
        if facts.begins_turn() { self.totals.turn.next() } else { self.totals.turn }
    }

    pub(super) fn check_room(&self, facts: &Facts, turn: Turn) -> Result<(), Full> {
        let calls = facts.calls as usize;
        let fits = calls == 0 || self.calls.fits(calls, facts.call_id_bytes, turn);
        if fits && self.totals.messages < NONE { Ok(()) } else { Err(Full) }
    }

    /// Rule 3: the group that a message of the model joins, if it joins one.
    fn seat_of<M: MessageView + ?Sized>(&self, message: &M, facts: &Facts) -> Option<Seat> {
        if facts.role != Role::Assistant || facts.source == SourceKind::Compaction {
            return None;
        }
        let response = message.response_id().map(ResponseId::new);
        if let Some(last) = self.last.as_ref().filter(|last| last.seq.next() == self.next) {
            let joins = match (last.response(), response) {
                (Some(last), Some(response)) => last == response,
                _ => (last.calls > 0 && facts.calls()) || self.has_reasoning(last.seat.leader),
            };
            if joins {
                return Some(last.seat);
            }
        }
        let (seat, latest) = self.response.as_ref()?;
        (*latest == response?).then_some(*seat)
    }

    fn has_reasoning(&self, leader: u32) -> bool {
        self.spans.as_slice().get(leader as usize).is_some_and(|span| span.has(Flags::REASONING))
    }

    /// Makes a new group of the message.
    pub(super) fn lead(&mut self, kind: GroupKind, new: &New) -> Result<Seat, Full> {
        let at = self.len();
        let instruction =
            Flags::INSTRUCTION.when(new.facts.is_instruction() && new.facts.source == SourceKind::Caller);
        let flags = new.facts.flags.with(instruction);
        let mut span = Span::new(self.totals.messages, at, new.turn, kind, flags);
        span.tokens = new.tokens.0;
        self.spans.push(span)?;
        self.totals.groups = self.totals.groups.saturating_add(1);
        if kind == GroupKind::Orphan {
            self.totals.orphan_tokens = self.totals.orphan_tokens.saturating_add(new.tokens.as_u64());
        } else {
            self.totals.tokens = self.totals.tokens.saturating_add(new.tokens.as_u64());
        }
        if matches!(kind, GroupKind::Assistant | GroupKind::Exchange) {
            self.totals.steps = self.totals.steps.saturating_add(1);
        }
        if new.facts.begins_turn() {
            self.totals.first_user = self.totals.first_user.or(Some(at));
            self.totals.last_user = Some(at);
            self.response = None;
        }
        Ok(Seat { leader: at, anchor: new.seq, turn: new.turn })
    }

    /// Adds a message of the model to a group.
    pub(super) fn join(&mut self, seat: Seat, new: &New) -> Result<Seat, Full> {
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

    /// Rule 4: adds an answer to the group of its call. It stands in place behind the call, or is late.
    pub(super) fn answer(&mut self, call: OpenCall, new: &New) -> Result<Seat, Full> {
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

    /// Adds a message's size to the run that it continues: the last. A leader has its group's size instead.
    fn grow_run(&mut self, leader: u32, new: &New) {
        let last = self.len().saturating_sub(1);
        if last != leader {
            self.edit(last, |run| run.tokens = run.tokens.saturating_add(new.tokens.0));
        }
    }

    /// Adds a message's size and flags to its group's leader, and its size to the total.
    fn grow_group(&mut self, leader: u32, new: &New, flags: Flags, kind: Option<GroupKind>) {
        let mut grown = 0;
        self.edit(leader, |span| {
            let tokens = span.tokens.saturating_add(new.tokens.0);
            grown = tokens.saturating_sub(span.tokens);
            span.tokens = tokens;
            span.add_flags(flags.with(new.facts.flags.without(Flags::EPHEMERAL)));
            if let Some(kind) = kind {
                span.set_kind(kind);
            }
        });
        self.totals.tokens = self.totals.tokens.saturating_add(u64::from(grown));
    }

    /// What every message does once it has its place: its calls are opened, or the call it answers is closed.
    pub(super) fn finish<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        new: &New,
        seat: Seat,
    ) -> Result<(), Full> {
        match new.facts.answer {
            Answer::To(call) => close(&mut self.calls, message, call),
            _ if new.facts.calls() => self.open(message, seat)?,
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

    fn open<M: MessageView + ?Sized>(&mut self, message: &M, seat: Seat) -> Result<(), Full> {
        let (span, mut result) = (self.len().saturating_sub(1), Ok(()));
        for_each_call(message, &mut |call| {
            let open = OpenCall { turn: seat.turn, anchor: seat.anchor, ordinal: self.opened, span };
            result = result.and(self.calls.open(call.id.as_bytes(), open));
            self.opened = self.opened.saturating_add(1);
            self.edit(seat.leader, Span::add_unanswered);
        });
        result
    }

    /// Notes what the next message's group may depend on.
    fn remember<M: MessageView + ?Sized>(&mut self, message: &M, new: &New, seat: Seat) {
        if new.facts.role != Role::Assistant || new.facts.source == SourceKind::Compaction {
            return;
        }
        let response = message.response_id().map(ResponseId::new);
        self.last = Some(Last {
            seq: new.seq,
            seat,
            calls: new.facts.calls,
            responses: u32::from(response.is_some()),
            response: response.unwrap_or(ResponseId::NONE),
        });
        if let Some(response) = response {
            self.response = Some((seat, response));
        } else if self.response.as_ref().is_some_and(|(latest, _)| *latest != seat) {
            self.response = None;
        }
    }

    fn placed(&self, new: &New, seat: Seat) -> Placed {
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
    fn len(&self) -> u32 {
        u32::try_from(self.spans.as_slice().len()).unwrap_or(NONE)
    }
}

/// A message on its way into the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct New {
    pub(super) facts: Facts,
    pub(super) tokens: Tokens,
    pub(super) seq: Seq,
    pub(super) turn: Turn,
}
