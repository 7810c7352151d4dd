//! The group that the next message of the model joins.

use super::facts::{Facts, ResponseId};
use super::part::PartSpan;
use super::push::{IndexBuf, New};
use super::span::{Flags, Span};
use crate::attribution::SourceKind;
use crate::message::{MessageView, Role};
use crate::open_calls::OpenCalls;
use crate::table::Table;
use crate::{Seq, Turn};

/// A group that messages may still join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) leader: u32,
    pub(super) anchor: Seq,
    pub(super) turn: Turn,
}

/// The facts of the last message of the model on which the group of the next one depends.
///
/// It holds no `bool` and no `Option`, so that its own absence is all zero bytes: an empty index in a `static` lies in
/// `.bss` and costs no flash.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    seq: Seq,
    seat: Seat,
    /// Number of its calls, and [`Last::HOSTED`].
    calls: u32,
    /// Number of its response ids: none or one.
    responses: u32,
    response: ResponseId,
}

impl Last {
    /// Flag: a hosted call of the message has no result in it.
    const HOSTED: u32 = 1 << 31;

    fn response(&self) -> Option<ResponseId> {
        (self.responses > 0).then_some(self.response)
    }
}

impl<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>> IndexBuf<S, C, P> {
    /// Rule 3: the group that a message of the model joins, if it joins one.
    pub(super) fn seat_of<M: MessageView + ?Sized>(&self, message: &M, facts: &Facts) -> Option<Seat> {
        if facts.role != Role::Assistant || facts.source == SourceKind::Compaction {
            return None;
        }
        let response = message.response_id().map(ResponseId::new);
        if let Some(last) = self.last.as_ref().filter(|last| last.seq.next() == self.next) {
            // The provider paused between a call and its result, which are two responses then.
            if P::READS_HOSTED && facts.hosted < 0 && last.calls & Last::HOSTED != 0 {
                return Some(last.seat);
            }
            let calls = if P::READS_HOSTED { last.calls & !Last::HOSTED } else { last.calls };
            let joins = match (last.response(), response) {
                (Some(last), Some(response)) => last == response,
                _ => (calls > 0 && facts.calls()) || self.has_reasoning(last.seat.leader),
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

    /// Stores the facts on which the group of the next message may depend.
    pub(super) fn remember<M: MessageView + ?Sized>(&mut self, message: &M, new: &New<'_>, seat: Seat) {
        if new.facts.role != Role::Assistant || new.facts.source == SourceKind::Compaction {
            return;
        }
        let response = message.response_id().map(ResponseId::new);
        let hosted = if P::READS_HOSTED && new.facts.hosted > 0 { Last::HOSTED } else { 0 };
        self.last = Some(Last {
            seq: new.seq,
            seat,
            calls: new.facts.calls | hosted,
            responses: u32::from(response.is_some()),
            response: response.unwrap_or(ResponseId::NONE),
        });
        if let Some(response) = response {
            self.response = Some((seat, response));
        } else if self.response.as_ref().is_some_and(|(latest, _)| *latest != seat) {
            self.response = None;
        }
    }
}
