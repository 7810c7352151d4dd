//! Execution of a plan: bytes are moved down once and are free at once.

use core::fmt;

use crate::draft::{Cell, Clamps, PartVerdict, Verdict};
use crate::index::{RestoreError, Stored};
use crate::open_calls::{OpenCall, OpenCallSlots, OpenCalls};
use crate::plan::StandIn;
use crate::{Revision, Seq, TokenCounter, Tokens};

use super::bytes::move_down;
use super::results::{ResultAt, first_result, move_with_note, note_bytes};
#[cfg(feature = "suspend")]
use super::stream::Suspended;
use super::{ArenaMessage, BoundedHistory, Header, OPEN_CALLS_MAX};

/// The amounts that a compaction has freed.
///
/// ```
/// assert_eq!(epitome_core::Compacted::default().bytes, 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Compacted {
    /// Number of deleted messages.
    pub messages: usize,
    /// Number of tokens by which the request is smaller.
    pub tokens: u64,
    /// Number of bytes of the arena that are free again.
    pub bytes: usize,
    /// Number of tool results that a note has replaced.
    pub results: usize,
}

/// The reason why a compaction failed. The history is unchanged.
///
/// ```
/// use epitome_core::{BoundedHistory, CompactError};
///
/// assert_eq!(BoundedHistory::<1, 1>::new().compact(), Err(CompactError::NoPlan));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactError {
    /// There is no plan for the present content: none was made, or the history has changed since. Plan again.
    NoPlan,
    /// The plan elides tool results, which needs a note: use [`BoundedHistory::compact_with`].
    NoNote,
    /// The note is empty or blank: providers refuse empty results.
    Blank,
    /// The note is larger than the allowance in the plan, or takes more bytes than a result that it would replace.
    /// Shorten it.
    NoteTooLarge,
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPlan => "there is no plan of what the history holds now: plan again",
            Self::NoNote => "the plan elides results: compact with a note that stands in their place",
            Self::Blank => "the note is blank",
            Self::NoteTooLarge => "the note is larger than what it replaces: shorten it",
        })
    }
}

impl core::error::Error for CompactError {}

/// The unanswered calls that the history remembers. A call whose group is deleted is marked as hidden.
pub(super) type Calls = OpenCallSlots<OPEN_CALLS_MAX>;

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// Carries out the last [`plan`](Self::plan): deletes the groups that the plan drops.
    ///
    /// The remaining messages keep their numbers, groups and order. A result of a deleted call will not be stored when
    /// it arrives.
    ///
    /// Takes one pass over the headers, moves each byte at most once, and needs no memory except some 800 bytes of
    /// stack.
    ///
    /// # Errors
    /// [`CompactError::NoPlan`] if there is no plan for the present content; [`CompactError::NoNote`] if the plan also
    /// elides. The history is unchanged then.
    ///
    /// ```
    /// use epitome_core::{BoundedHistory, CompactError};
    ///
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// assert_eq!(history.compact(), Err(CompactError::NoPlan));
    /// ```
    pub fn compact(&mut self) -> Result<Compacted, CompactError> {
        self.make_so(None)
    }

    /// Compacts with `note` in the place of each result that the plan elides. The notes are permanent, because the
    /// results are deleted.
    ///
    /// # Errors
    /// [`CompactError`]: `NoPlan` if there is no plan for the present content; if the plan elides, `Blank` for a blank
    /// note and `NoteTooLarge` for a note that is too large. All checks come before the first change.
    ///
    /// ```
    /// use epitome_core::message::{SimpleMessage, ToolCallView};
    /// use epitome_core::{BoundedHistory, Budget, ClassEstimator, Draft, Pass, Strategy, Tokens};
    ///
    /// /// Elides every result that is not protected.
    /// #[derive(Debug)]
    /// struct Clear;
    ///
    /// impl Strategy for Clear {
    ///     fn name(&self) -> &'static str {
    ///         "clear"
    ///     }
    ///
    ///     fn plan(&self, draft: &mut Draft<'_>) {
    ///         for part in draft.index().parts() {
    ///             let _ = draft.elide(&part, Tokens(9));
    ///         }
    ///     }
    /// }
    ///
    /// let (counter, log) = (ClassEstimator::new(), "12:00 fan on, 12:05 fan off ".repeat(10));
    /// // Room for eight results that may be elided.
    /// let mut history = BoundedHistory::<16, 1024, 8>::new();
    /// history.push(&SimpleMessage::user("Read the log."), &counter)?;
    /// let calls = [ToolCallView::new("c1", "read_log", "{}")];
    /// history.push(&SimpleMessage::calls(&calls), &counter)?;
    /// history.push(&SimpleMessage::result("c1", &log), &counter)?;
    /// history.push(&SimpleMessage::assistant("The fan works."), &counter)?;
    /// let budget = Budget::builder().window(1_000).trigger(500).without_goal().build()?;
    /// let _ = history.plan(&budget, Pass::Manual, &Clear)?;
    /// let done = history.compact_with("[cleared]", &counter)?;
    /// assert_eq!((done.messages, done.results), (0, 1));
    /// assert!(done.bytes > 200 && history.messages().any(|message| message.is_elided()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn compact_with(
        &mut self,
        note: &str,
        counter: &(impl TokenCounter + ?Sized),
    ) -> Result<Compacted, CompactError> {
        self.make_so(Some(StandIn::new(note, counter.count(note))))
    }

    fn make_so(&mut self, note: Option<StandIn<'_>>) -> Result<Compacted, CompactError> {
        self.check_note(note)?;
        let (len, used, tokens) = (self.len, self.used, self.tokens());
        let mut calls = Calls::new();
        self.calls_without(&mut calls, |call| !self.keeps_span(call.span as usize));
        let results = self.close_gaps(note.unwrap_or(StandIn::new("", Tokens::ZERO)));
        self.rebuild(&calls);
        Ok(Compacted {
            messages: len.saturating_sub(self.len),
            tokens: tokens.saturating_sub(self.tokens()),
            bytes: used.saturating_sub(self.used),
            results,
        })
    }

    /// Checks that there is a plan, and that the note fits the place of each elided result.
    fn check_note(&self, note: Option<StandIn<'_>>) -> Result<(), CompactError> {
        if !self.planned {
            return Err(CompactError::NoPlan);
        }
        let bytes = note.map_or(0, |note| note_bytes(note.text));
        for (part, cell) in self.index.view().parts.iter().zip(&self.part_cells) {
            let PartVerdict::Elide(allowance) = Clamps::NONE.verdict(*cell) else { continue };
            let note = note.ok_or(CompactError::NoNote)?;
            if note.text.trim_ascii().is_empty() {
                return Err(CompactError::Blank);
            }
            let place = self.record(part.position() as usize).and_then(first_result);
            if note.tokens > allowance || !place.is_some_and(|at| at.has_room(bytes)) {
                return Err(CompactError::NoteTooLarge);
            }
        }
        Ok(())
    }

    /// Whether the plan keeps the group of the span at `at`.
    pub(super) fn keeps_span(&self, at: usize) -> bool {
        let leader = self.index.view().spans.get(at).map(|span| span.leader as usize);
        let cell = leader.and_then(|leader| self.cells.get(leader));
        cell.is_none_or(|cell| cell.verdict() == Verdict::Keep)
    }

    /// Adds the unanswered calls to `calls`. A call is marked as hidden if it is hidden already, or if `goes` is true
    /// for it. (Returned by value, the calls would be on the stack twice.)
    pub(super) fn calls_without(&self, calls: &mut Calls, goes: impl Fn(&OpenCall) -> bool) {
        self.index.open_calls().for_each(&mut |id, mut call| {
            if goes(&call) {
                call.span = OpenCall::HIDDEN;
            }
            // There are as many slots as calls.
            let _ = calls.open(id, call);
        });
    }

    /// Closes the gaps in headers and arena that dropped groups and elided results leave. Returns the number of elided
    /// results.
    fn close_gaps(&mut self, note: StandIn<'_>) -> usize {
        let (mut len, mut used, mut row, mut elided) = (0_usize, 0_usize, 0_usize, 0_usize);
        for span in 0..self.index.view().span_count() {
            if !self.keeps_span(span) {
                continue;
            }
            for at in self.index.view().positions(span) {
                let Some(mut header) = self.headers().get(at as usize).copied() else { continue };
                let mut bytes = self.record(at as usize).map_or(0, <[u8]>::len);
                let from = header.start as usize;
                let record = from..from.saturating_add(bytes);
                if let Some(size) = self.elided_at(at, &mut row) {
                    bytes = move_with_note(&mut self.arena, record, used, note.text);
                    let others = header.tokens.0.saturating_sub(size.0);
                    header.tokens = Tokens(others).saturating_add(note.tokens);
                    elided = elided.saturating_add(1);
                } else {
                    move_down(&mut self.arena, record, used);
                }
                // The new start is not above the old one, and so has 32 bits.
                header.start = u32::try_from(used).unwrap_or(header.start);
                if let Some(place) = self.headers.get_mut(len) {
                    *place = header;
                }
                len = len.saturating_add(1);
                used = used.saturating_add(bytes);
            }
        }
        (self.len, self.used) = (len, used);
        elided
    }

    /// The size of the result of the message at `at`, if the plan elides it. Calls come with ascending positions; `row`
    /// is the row of the last answer.
    fn elided_at(&self, at: u32, row: &mut usize) -> Option<Tokens> {
        let parts = self.index.view().parts;
        while parts.get(*row).is_some_and(|part| part.position() < at) {
            *row = row.saturating_add(1);
        }
        let part = parts.get(*row).filter(|part| part.position() == at)?;
        self.part_cells.get(*row).filter(|cell| **cell != Cell::EMPTY).map(|_| part.tokens())
    }

    /// Puts the remaining messages back into the index, in their old groups, at the next revision.
    ///
    /// It cannot fail: there are no more messages than before, and at no point more waiting calls. If that were wrong,
    /// it would cut off the messages that it could not place, and not show them in another group.
    pub(super) fn rebuild(&mut self, calls: &Calls) {
        let (head, revision) = (self.index.head(), self.index.view().revision().next());
        let result = self.restore_index(calls, head, revision);
        debug_assert_eq!(result, Ok(()), "a history that was grouped once can be grouped again");
        self.planned = false;
        #[cfg(feature = "suspend")]
        {
            self.suspended = Suspended::NONE;
        }
    }

    pub(super) fn restore_index(
        &mut self,
        calls: &Calls,
        head: Seq,
        revision: Revision,
    ) -> Result<(), RestoreError> {
        self.index.clear();
        let mut next_hidden = Seq(0);
        let (mut result, mut at) = (Ok(()), 0_usize);
        while let (Some(header), Ok(())) = (self.headers().get(at).copied(), result) {
            // Hidden calls are restored in their old order, so that the oldest is still the first to be forgotten.
            let before = self.restore_hidden(calls, next_hidden..header.seq());
            next_hidden = header.seq();
            result = before.and_then(|()| self.restore_message(at, &header));
            at = at.saturating_add(usize::from(result.is_ok()));
        }
        if result.is_err() {
            self.used = self.headers().get(at).map_or(self.used, |header| header.start as usize);
            self.len = at;
        }
        let rest = self.restore_hidden(calls, next_hidden..Seq(u64::MAX));
        self.index.forget_calls_but(calls);
        self.index.resume(head, revision);
        result.and(rest)
    }

    fn restore_message(&mut self, at: usize, header: &Header) -> Result<(), RestoreError> {
        let leader = if header.leads() {
            None
        } else {
            let found = self.headers().binary_search_by_key(&header.anchor, |header| header.seq);
            let leader = found.ok().filter(|leader| *leader < at).ok_or(RestoreError::Contradiction)?;
            Some(u32::try_from(leader).map_err(|_| RestoreError::Contradiction)?)
        };
        let stored = Stored {
            seq: header.seq(),
            leader,
            anchor: header.anchor(),
            turn: header.turn,
            tokens: header.tokens,
            orphan: false,
        };
        let start = header.start as usize;
        let end = self.headers().get(at.saturating_add(1)).map_or(self.used, |next| next.start as usize);
        let record = self.arena.get(start..end).ok_or(RestoreError::Contradiction)?;
        let message = ArenaMessage::read(record, header.seq(), header.tokens);
        let message = message.ok_or(RestoreError::Contradiction)?;
        if PARTS == 0 {
            return self.index.restore(&message, &stored);
        }
        match message.first_result(record.len()) {
            // The result was elided, or was stored in a history that elides nothing.
            Some(ResultAt { size: None, .. }) => self.index.restore(&message, &stored),
            found => {
                let size = found.and_then(|at| at.size).unwrap_or(Tokens::ZERO);
                self.index.restore_with_parts(&message, &stored, |_, _| size)
            }
        }
    }

    /// Restores the hidden calls of the groups with these anchors.
    fn restore_hidden(&mut self, calls: &Calls, anchors: core::ops::Range<Seq>) -> Result<(), RestoreError> {
        let mut result = Ok(());
        calls.for_each(&mut |id, call| {
            if call.span == OpenCall::HIDDEN && anchors.contains(&call.anchor) {
                // The ids were added as texts.
                let id = core::str::from_utf8(id).unwrap_or_default();
                let done = self.index.restore_hidden_call(id, call.turn, call.anchor, call.ordinal);
                result = result.and(done);
            }
        });
        result.map_err(RestoreError::from)
    }
}
