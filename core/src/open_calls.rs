//! The memory for calls and requests for approval that have no answer yet.
//!
//! Ids are compared byte by byte, never only by a hash. Two calls pair with each other's results only if a provider
//! gave them the same id; then the rule of [`OpenCalls::claim`] decides.

mod slots;
#[cfg(feature = "alloc")]
mod tree;

pub use slots::{CALL_ID_MAX, OpenCallSlots};
#[cfg(feature = "alloc")]
pub use tree::OpenCallTree;

use core::cmp::Reverse;

use crate::table::Full;
use crate::{Seq, Turn};

/// Kind of the item that an answer belongs to.
///
/// The ids of both kinds are independent: a result never answers a request for approval, even if its id is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[expect(
    clippy::exhaustive_enums,
    reason = "implementers of OpenCalls keep the two apart, and there is no third"
)]
pub enum OpenKind {
    /// A tool call: a result answers it.
    #[default]
    Call,
    /// A request for approval: the answer of a person answers it.
    Approval,
}

/// A call, or a request for approval, that has no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "implementers of OpenCalls store and compare exactly this")]
pub struct OpenCall {
    /// The turn of its group.
    pub turn: Turn,
    /// The sequence number of the first message of its group.
    pub anchor: Seq,
    /// The number of the call among all calls and requests for approval of the index, which orders the calls of a
    /// group. In a request for approval, the bit [`OpenCall::APPROVAL`] is set.
    pub ordinal: u32,
    /// The span of its message in the index; [`OpenCall::HIDDEN`] if a compaction hides it.
    pub span: u32,
    /// The name of its tool, for the result's [`PartSpan`](crate::PartSpan): 16 bits of it, 0 if no table of parts
    /// needs it.
    pub tool: u16,
}

impl OpenCall {
    /// Value of `span` for a hidden call, whose answer will be hidden too.
    pub const HIDDEN: u32 = u32::MAX;

    /// The bit of an ordinal that marks a request for approval. Stores keep it as a part of the number, so that a
    /// restored call equals the original.
    pub const APPROVAL: u32 = 1 << 31;

    /// The highest number of a call: all later calls have it too.
    pub(crate) const ORDINAL_MAX: u32 = Self::APPROVAL - 1;

    /// The number of the call among all calls and requests for approval of the index.
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
///
/// ```
/// use epitome_core::{OpenCall, OpenCallSlots, OpenCalls, OpenKind, Seq, Turn};
///
/// let call = OpenCall { turn: Turn(1), anchor: Seq(4), ordinal: 0, span: 4, tool: 0 };
/// let mut calls = OpenCallSlots::<8>::new();
/// calls.open(b"call_1", call)?;
/// assert_eq!(calls.find(OpenKind::Call, b"call_1", Turn(1)), Some(call));
/// calls.close(b"call_1", call);
/// assert_eq!(calls.find(OpenKind::Call, b"call_1", Turn(1)), None);
/// # Ok::<(), epitome_core::Full>(())
/// ```
pub trait OpenCalls {
    /// Whether `calls` more calls of `turn` can be opened, the longest id among them having `id_bytes` bytes.
    fn fits(&self, calls: usize, id_bytes: usize, turn: Turn) -> bool;

    /// Remembers that `call`, with this `id`, has no answer yet. Calls are opened in the order of their groups.
    ///
    /// # Errors
    /// [`Full`] when there is no room. An implementation of fixed size first forgets the oldest call of an earlier turn
    /// than `call.turn`.
    fn open(&mut self, id: &[u8], call: OpenCall) -> Result<(), Full>;

    /// The call, or the request for approval, that an answer with this `id` belongs to, if any.
    ///
    /// It is the first unanswered call with this id, in call order, of the latest group of `turn` that has one.
    /// Otherwise it is the only unanswered call with this id of earlier turns; of several in earlier turns none is
    /// chosen. Calls and requests for approval never answer for each other.
    fn find(&self, kind: OpenKind, id: &[u8], turn: Turn) -> Option<OpenCall>;

    /// The first unanswered call with this `id`, in call order, of the group at `anchor` in `turn`.
    fn find_in_group(&self, kind: OpenKind, id: &[u8], turn: Turn, anchor: Seq) -> Option<OpenCall>;

    /// Forgets a call that [`OpenCalls::find`] returned for this `id`, because it has its answer.
    fn close(&mut self, id: &[u8], call: OpenCall);

    /// Forgets a call without its id, if the memory can identify the call, and returns whether it did. This is quicker
    /// than another search for the id.
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
    // A single call is chosen regardless of its turn; nearly always there is only one.
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
