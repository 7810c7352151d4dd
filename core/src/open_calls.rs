//! The memory for calls and requests for approval that have no answer yet.
//!
//! Ids are compared byte by byte, never only by a hash: two calls pair with each other's results only if a provider
//! gave them the same id, and then the rule of [`OpenCalls::claim`] decides.

mod slots;
#[cfg(feature = "alloc")]
mod tree;

pub use slots::{CALL_ID_MAX, OpenCallSlots};
#[cfg(feature = "alloc")]
pub use tree::OpenCallTree;

use core::cmp::Reverse;

use crate::table::Full;
use crate::{Seq, Turn};

/// Kind of the item that an answer belongs to. The ids of the two have nothing to do with each other: a result never answers a request for
/// approval, whatever its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[expect(
    clippy::exhaustive_enums,
    reason = "implementers of OpenCalls keep the two apart, and there is no third"
)]
pub enum OpenKind {
    /// A tool call: a result answers it.
    #[default]
    Call,
    /// A request for approval: a person's answer.
    Approval,
}

/// A call, or a request for approval, that has no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "implementers of OpenCalls store and compare exactly this")]
pub struct OpenCall {
    /// The turn of its group.
    pub turn: Turn,
    /// The first message of its group.
    pub anchor: Seq,
    /// Its place among the calls of its group; of a request for approval, [`OpenCall::APPROVAL`] is set in it.
    pub ordinal: u32,
    /// The span of its message in the index; [`OpenCall::HIDDEN`] when a compaction hides it.
    pub span: u32,
    /// The name of its tool, for the result's [`PartSpan`](crate::PartSpan): 16 bits of it, 0 where nobody asks for them.
    pub tool: u16,
}

impl OpenCall {
    /// In place of a span: the call is hidden, and so will its answer be.
    pub const HIDDEN: u32 = u32::MAX;

    /// The bit of an ordinal that marks a request for approval. It is part of the number that stores keep, so that what
    /// they put back is what they were given.
    pub const APPROVAL: u32 = 1 << 31;

    /// The highest number of a call: once it is reached, all later ones have it.
    pub(crate) const ORDINAL_MAX: u32 = Self::APPROVAL - 1;

    /// Its number among all calls and requests of the index.
    #[cfg(feature = "alloc")]
    pub(crate) const fn number(&self) -> u32 {
        self.ordinal & !Self::APPROVAL
    }

    /// Whether it is a call or a request for approval.
    #[must_use]
    pub const fn kind(&self) -> OpenKind {
        if self.ordinal & Self::APPROVAL == 0 { OpenKind::Call } else { OpenKind::Approval }
    }
}

const _: () =
    assert!(OpenCall::ORDINAL_MAX & OpenCall::APPROVAL == 0, "the last call is no request for approval");

/// Remembers unanswered calls, and requests for approval, by kind and id.
pub trait OpenCalls {
    /// Whether `calls` more calls of `turn` can be opened, the longest id among them having `id_bytes` bytes.
    fn fits(&self, calls: usize, id_bytes: usize, turn: Turn) -> bool;

    /// Remembers that `call`, with this `id`, has no answer yet. Calls are opened in the order of their groups.
    ///
    /// # Errors
    /// [`Full`] when there is no room. An implementation of fixed size first forgets the oldest call of an earlier turn
    /// than `call.turn`.
    fn open(&mut self, id: &[u8], call: OpenCall) -> Result<(), Full>;

    /// Which call an answer with this `id` belongs to, if any.
    ///
    /// It is the first unanswered call with this id, in call order, of the latest group of `turn` that has one; else the only
    /// unanswered call with this id of earlier turns. Of several in earlier turns none is chosen. Calls and requests for
    /// approval never answer for each other.
    fn find(&self, kind: OpenKind, id: &[u8], turn: Turn) -> Option<OpenCall>;

    /// The first unanswered call with this `id`, in call order, of the group at `anchor` in `turn`.
    fn find_in_group(&self, kind: OpenKind, id: &[u8], turn: Turn, anchor: Seq) -> Option<OpenCall>;

    /// Forgets a call that [`OpenCalls::find`] gave for this `id`: it has its answer.
    fn close(&mut self, id: &[u8], call: OpenCall);

    /// Forgets a call without its id, where the memory knows the call well enough; says whether it has. This is quicker than to look for
    /// the id again.
    fn close_known(&mut self, call: OpenCall) -> bool {
        let _ = call;
        false
    }

    /// Calls `visit` for each remembered call, in the order of their groups and of the calls within them.
    fn for_each(&self, visit: &mut dyn FnMut(&[u8], OpenCall));

    /// Forgets all calls.
    fn clear(&mut self);

    /// [`OpenCalls::find`] and, if there is one, [`OpenCalls::close`].
    fn claim(&mut self, kind: OpenKind, id: &[u8], turn: Turn) -> Option<OpenCall> {
        let call = self.find(kind, id, turn)?;
        self.close(id, call);
        Some(call)
    }
}

/// The rule of [`OpenCalls::find`], over the unanswered calls with one id in any order.
fn choose(mut calls: impl Iterator<Item = OpenCall>, turn: Turn) -> Option<OpenCall> {
    let first = calls.next()?;
    // The only one is it, whatever its turn; and nearly always there is only one.
    let Some(second) = calls.next() else { return Some(first) };
    let (mut latest, mut earlier, mut several) = (None::<OpenCall>, None::<OpenCall>, false);
    let rank = |call: OpenCall| (call.anchor, Reverse(call.ordinal));
    for call in [first, second].into_iter().chain(calls) {
        if call.turn != turn {
            several |= earlier.replace(call).is_some();
        } else if latest.is_none_or(|latest| rank(latest) < rank(call)) {
            latest = Some(call);
        }
    }
    latest.or(earlier.filter(|_| !several))
}

/// The rule of [`OpenCalls::find_in_group`], over the unanswered calls with one id in any order.
fn first_in_group(calls: impl Iterator<Item = OpenCall>, turn: Turn, anchor: Seq) -> Option<OpenCall> {
    calls.filter(|call| call.turn == turn && call.anchor == anchor).min_by_key(|call| call.ordinal)
}
