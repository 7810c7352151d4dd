//! Restoring of stored messages into their groups, when a history is loaded.

use super::awaited::next_opened;
use super::facts::{Answer, Facts};
use super::part::Sizes;
use super::push::{IndexBuf, New};
use super::seat::Seat;
use super::{GroupKind, PartSpan, Span};
use crate::message::{MessageView, PartView};
use crate::open_calls::{OpenCall, OpenCallSlots, OpenCalls};
use crate::table::{Full, Table};
use crate::{Revision, Seq, Tokens, Turn};

/// A message of a stored history, with the group that it got when it was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a stored message has just these, and a reader must give all of them"
)]
pub struct Stored {
    /// The sequence number of the message, or the key of a summary.
    pub seq: Seq,
    /// The position in this index of the first message of the group; `None` if this message is the first.
    pub leader: Option<u32>,
    /// The sequence number of the first message of its group.
    pub anchor: Seq,
    /// The turn of its group.
    pub turn: Turn,
    /// Its size.
    pub tokens: Tokens,
    /// Whether the message answers no call.
    pub orphan: bool,
}

impl<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>> IndexBuf<S, C, P> {
    /// Puts a stored message back in the group that it got when it was appended, without a new decision.
    ///
    /// Messages come in ascending order; [`IndexBuf::resume`] ends the series.
    ///
    /// # Errors
    /// [`RestoreError`]: `Full` if a table has no room, `Contradiction` if the stored facts contradict each other. The
    /// index must not be used then.
    pub fn restore<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        stored: &Stored,
    ) -> Result<(), RestoreError> {
        self.restore_in(message, stored, None)
    }

    /// Restores a message, with a row for each part that a plan may shorten; see [`IndexBuf::push_with_parts`].
    ///
    /// # Errors
    /// As [`IndexBuf::restore`].
    pub fn restore_with_parts<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        stored: &Stored,
        mut sizes: impl FnMut(u32, PartView<'_>) -> Tokens,
    ) -> Result<(), RestoreError> {
        self.restore_in(message, stored, Some(&mut |at, part| sizes(at, *part)))
    }

    fn restore_in<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        stored: &Stored,
        sizes: Option<Sizes<'_>>,
    ) -> Result<(), RestoreError> {
        let rows = sizes.is_some().then_some(self.parts.as_slice().len());
        let find = |calls: &C, kind, id: &[u8]| calls.find_in_group(kind, id, stored.turn, stored.anchor);
        let mut facts = Facts::before_parts(message);
        self.read(message, &mut facts, sizes, find)?;
        self.check_room(&facts, stored.turn)?;
        let new = New { facts: &facts, tokens: stored.tokens, seq: stored.seq, turn: stored.turn };
        let seat = match (stored.leader, facts.answer) {
            (Some(_), Answer::To(call)) => self.answer(call, &new)?,
            (Some(first), Answer::No) => {
                let leader = self.leader_at(first).ok_or(RestoreError::Contradiction)?;
                self.join(Seat { leader, anchor: stored.anchor, turn: stored.turn }, &new)?
            }
            (None, Answer::Orphan) if stored.orphan => self.lead(GroupKind::Orphan, &new)?,
            (None, Answer::No) => self.lead(facts.kind(), &new)?,
            _ => return Err(RestoreError::Contradiction),
        };
        Ok(self.finish(message, &new, seat, rows)?)
    }

    /// Restores a hidden call, or a hidden request for approval, that has no answer yet, so that a late answer finds
    /// its group. `ordinal` is that of its [`OpenCall`].
    ///
    /// # Errors
    /// [`Full`] when there is no room for another call.
    pub fn restore_hidden_call(
        &mut self,
        id: &str,
        turn: Turn,
        anchor: Seq,
        ordinal: u32,
    ) -> Result<(), Full> {
        self.opened = self.opened.max(next_opened(ordinal & !OpenCall::APPROVAL));
        self.calls.open(id.as_bytes(), OpenCall { turn, anchor, ordinal, span: OpenCall::HIDDEN, tool: 0 })
    }

    /// Ends a series of [`IndexBuf::restore`]: the next message gets the number `head`, and the index the `revision`.
    pub const fn resume(&mut self, head: Seq, revision: Revision) {
        self.next = head;
        self.totals.revision = revision;
    }

    /// The span that begins at the position `first`, if it leads a group.
    fn leader_at(&self, first: u32) -> Option<u32> {
        let spans = self.spans.as_slice();
        let at = u32::try_from(spans.binary_search_by_key(&first, |span| span.first).ok()?).ok()?;
        spans.get(at as usize).filter(|span| span.leader == at).map(|_| at)
    }
}

impl<S: Table<Span>, const N: usize, P: Table<PartSpan>> IndexBuf<S, OpenCallSlots<N>, P> {
    /// Forgets the calls that the history had forgotten before for lack of a slot, and for which a shorter history has
    /// room.
    pub(crate) fn forget_calls_but(&mut self, known: &OpenCallSlots<N>) {
        self.calls.forget_all_but(known);
    }
}

/// The reason why a stored history cannot be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreError {
    /// A table has no room.
    Full,
    /// A stored message has a group that does not exist, or answers a call that its group does not have.
    Contradiction,
}

impl From<Full> for RestoreError {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}

impl core::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "there is no room for the stored messages",
            Self::Contradiction => {
                "a stored message contradicts its group: restore the history from a backup"
            }
        })
    }
}

impl core::error::Error for RestoreError {}
