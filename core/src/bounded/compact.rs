//! Making a plan so: bytes are moved down once and are free at once.

use core::fmt;

use crate::draft::Verdict;
use crate::index::{RestoreError, Stored};
use crate::open_calls::{OpenCall, OpenCallSlots, OpenCalls};
use crate::{Revision, Seq};

use super::bytes::move_down;
use super::{BoundedHistory, Header, OPEN_CALLS_MAX};

/// What a compaction has freed.
///
/// ```
/// assert_eq!(epitome_core::Compacted::default().bytes, 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Compacted {
    /// How many messages are gone.
    pub messages: usize,
    /// How many tokens the request is smaller.
    pub tokens: u64,
    /// How many bytes of the arena are free again.
    pub bytes: usize,
}

/// Nothing was compacted.
///
/// ```
/// use epitome_core::{BoundedHistory, CompactError};
///
/// assert_eq!(BoundedHistory::<1, 1>::new().compact(), Err(CompactError::NoPlan));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactError {
    /// There is no plan of what is here now: none was made, or something was added since. Plan again.
    NoPlan,
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPlan => "there is no plan of what the history holds now: plan again",
        })
    }
}

impl core::error::Error for CompactError {}

/// The calls without an answer that are remembered. Those whose group is gone are marked so.
pub(super) type Calls = OpenCallSlots<OPEN_CALLS_MAX>;

impl<const MESSAGES: usize, const BYTES: usize> BoundedHistory<MESSAGES, BYTES> {
    /// Makes the last [`plan`](Self::plan) so: deletes what it drops. The messages that stay keep their numbers, groups
    /// and order. The answers to calls that go will not be stored when they come.
    ///
    /// Takes one pass over the headers, moves each byte at most once, and needs no memory but some 800 bytes of stack.
    ///
    /// # Errors
    /// [`CompactError::NoPlan`]: nothing is changed then.
    ///
    /// ```
    /// use epitome_core::{BoundedHistory, CompactError};
    ///
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// assert_eq!(history.compact(), Err(CompactError::NoPlan));
    /// ```
    pub fn compact(&mut self) -> Result<Compacted, CompactError> {
        if !self.planned {
            return Err(CompactError::NoPlan);
        }
        let (len, used, tokens) = (self.len, self.used, self.tokens());
        let mut calls = Calls::new();
        self.calls_without(&mut calls, |call| !self.keeps_span(call.span as usize));
        self.close_gaps();
        self.rebuild(&calls);
        Ok(Compacted {
            messages: len.saturating_sub(self.len),
            tokens: tokens.saturating_sub(self.tokens()),
            bytes: used.saturating_sub(self.used),
        })
    }

    /// Whether the plan keeps the group of the span at `at`.
    pub(super) fn keeps_span(&self, at: usize) -> bool {
        let leader = self.index.view().spans.get(at).map(|span| span.leader as usize);
        let cell = leader.and_then(|leader| self.cells.get(leader));
        cell.is_none_or(|cell| cell.verdict() == Verdict::Keep)
    }

    /// Adds the calls without an answer, marked as hidden if they are or will be because `goes` says so. (Returned by
    /// value, they would stand on the stack twice.)
    pub(super) fn calls_without(&self, calls: &mut Calls, goes: impl Fn(&OpenCall) -> bool) {
        self.index.open_calls().for_each(&mut |id, mut call| {
            if goes(&call) {
                call.span = OpenCall::HIDDEN;
            }
            // As many slots as there are calls.
            let _ = calls.open(id, call);
        });
    }

    /// Closes the gaps that the plan's dropped groups leave, in headers and arena.
    fn close_gaps(&mut self) {
        let (mut len, mut used) = (0_usize, 0_usize);
        for span in 0..self.index.view().span_count() {
            if !self.keeps_span(span) {
                continue;
            }
            for at in self.index.view().positions(span) {
                let Some(mut header) = self.headers().get(at as usize).copied() else { continue };
                let bytes = self.record(at as usize).map_or(0, <[u8]>::len);
                let from = header.start as usize;
                move_down(&mut self.arena, from..from.saturating_add(bytes), used);
                // Not above where it was, and so of 32 bits.
                header.start = u32::try_from(used).unwrap_or(header.start);
                if let Some(place) = self.headers.get_mut(len) {
                    *place = header;
                }
                len = len.saturating_add(1);
                used = used.saturating_add(bytes);
            }
        }
        (self.len, self.used) = (len, used);
    }

    /// Puts the messages that are left back into the index, in the groups that they were given, at the next revision.
    ///
    /// It cannot fail: there are no more messages, and at no point more calls waiting, than when they came. Were it
    /// wrong in that, the messages it could not place would be cut off rather than shown in another group.
    pub(super) fn rebuild(&mut self, calls: &Calls) {
        let (head, revision) = (self.index.head(), self.index.view().revision().next());
        let result = self.restore_index(calls, head, revision);
        debug_assert_eq!(result, Ok(()), "a history that was grouped once can be grouped again");
        self.planned = false;
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
            // Calls that are hidden come in their old order, so that the oldest is still the first to be forgotten.
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
        let message = super::ArenaMessage::read(record, header.seq(), header.tokens);
        self.index.restore(&message.ok_or(RestoreError::Contradiction)?, &stored)
    }

    /// Remembers the hidden calls of the groups with these anchors.
    fn restore_hidden(&mut self, calls: &Calls, anchors: core::ops::Range<Seq>) -> Result<(), RestoreError> {
        let mut result = Ok(());
        calls.for_each(&mut |id, call| {
            if call.span == OpenCall::HIDDEN && anchors.contains(&call.anchor) {
                // Ids came as texts.
                let id = core::str::from_utf8(id).unwrap_or_default();
                let done = self.index.restore_hidden_call(id, call.turn, call.anchor, call.ordinal);
                result = result.and(done);
            }
        });
        result.map_err(RestoreError::from)
    }
}
