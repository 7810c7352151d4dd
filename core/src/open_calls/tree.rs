//! Any number of unanswered calls, on the heap.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::borrow::Borrow;

use super::{OpenCall, OpenCalls, OpenKind, choose, first_in_group};
use crate::table::Full;
use crate::{Seq, Turn};

/// Any number of unanswered calls with ids of any length. The cost is logarithmic in their number, even if a hostile
/// peer chooses the ids. Ids of up to 46 bytes need no allocation of their own.
#[derive(Debug, Clone, Default)]
pub struct OpenCallTree {
    /// All calls while they are at most [`FEW_MAX`]: a step's calls are answered before the next step.
    few: Vec<(Id, OpenCall)>,
    /// All calls after there were more than [`FEW_MAX`], until none is left.
    many: BTreeMap<Id, Calls>,
    /// All requests for approval in the same way: the ids of both kinds do not mix.
    many_approvals: BTreeMap<Id, Calls>,
}

/// Maximum number of calls that are found faster one by one than in a tree.
const FEW_MAX: usize = 8;

/// The unanswered calls with one id. Nearly always there is one.
#[derive(Debug, Clone)]
enum Calls {
    One(OpenCall),
    /// Sorted by turn, group and place; never empty.
    Many(BTreeSet<OpenCall>),
}

impl OpenCallTree {
    /// A memory without calls.
    #[must_use]
    pub const fn new() -> Self {
        Self { few: Vec::new(), many: BTreeMap::new(), many_approvals: BTreeMap::new() }
    }

    fn few_with_id(&self, kind: OpenKind, id: &[u8]) -> impl Iterator<Item = OpenCall> {
        let same = move |(other, call): &&(Id, OpenCall)| call.kind() == kind && other.as_bytes() == id;
        self.few.iter().filter(same).map(|(_, call)| *call)
    }

    /// Whether all calls are in `few`.
    fn is_few(&self) -> bool {
        self.many.is_empty() && self.many_approvals.is_empty()
    }

    fn many_of(&self, kind: OpenKind) -> &BTreeMap<Id, Calls> {
        match kind {
            OpenKind::Call => &self.many,
            OpenKind::Approval => &self.many_approvals,
        }
    }

    fn many_of_mut(&mut self, kind: OpenKind) -> &mut BTreeMap<Id, Calls> {
        match kind {
            OpenKind::Call => &mut self.many,
            OpenKind::Approval => &mut self.many_approvals,
        }
    }

    fn add_to_many(&mut self, id: Id, call: OpenCall) {
        let many = self.many_of_mut(call.kind());
        match many.get_mut(id.as_bytes()) {
            Some(calls) => calls.add(call),
            None => {
                many.insert(id, Calls::One(call));
            }
        }
    }
}

impl OpenCalls for OpenCallTree {
    fn fits(&self, _calls: usize, _id_bytes: usize, _turn: Turn) -> bool {
        true
    }

    fn open(&mut self, id: &[u8], call: OpenCall) -> Result<(), Full> {
        if self.is_few() && self.few.len() < FEW_MAX {
            self.few.push((Id::new(id), call));
            return Ok(());
        }
        for (id, call) in core::mem::take(&mut self.few) {
            self.add_to_many(id, call);
        }
        self.add_to_many(Id::new(id), call);
        Ok(())
    }

    fn find(&self, kind: OpenKind, id: &[u8], turn: Turn) -> Option<OpenCall> {
        if self.is_few() {
            // Nearly always there is one call, which is chosen regardless of its turn.
            let mut same = self.few_with_id(kind, id);
            let first = same.next()?;
            return if same.next().is_none() {
                Some(first)
            } else {
                choose(self.few_with_id(kind, id), turn)
            };
        }
        self.many_of(kind).get(id)?.find(turn)
    }

    fn find_in_group(&self, kind: OpenKind, id: &[u8], turn: Turn, anchor: Seq) -> Option<OpenCall> {
        if self.is_few() {
            return first_in_group(self.few_with_id(kind, id), turn, anchor);
        }
        self.many_of(kind).get(id)?.find_in_group(turn, anchor)
    }

    fn close(&mut self, id: &[u8], call: OpenCall) {
        if self.is_few() {
            let at = self.few.iter().position(|(other, open)| *open == call && other.as_bytes() == id);
            at.map(|at| self.few.swap_remove(at));
            return;
        }
        let many = self.many_of_mut(call.kind());
        if many.get_mut(id).is_some_and(|calls| calls.forget(call)) {
            many.remove(id);
        }
    }

    fn close_known(&mut self, call: OpenCall) -> bool {
        // All calls after the last number have this number too.
        if !self.is_few() || call.ordinal & OpenCall::ORDINAL_MAX == OpenCall::ORDINAL_MAX {
            return false;
        }
        let at = self.few.iter().position(|(_, open)| *open == call);
        at.map(|at| self.few.swap_remove(at));
        at.is_some()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u8], OpenCall)) {
        let mut in_order: Vec<_> = self.few.iter().map(|(id, call)| (id, *call)).collect();
        for (id, calls) in self.many.iter().chain(&self.many_approvals) {
            match calls {
                Calls::One(only) => in_order.push((id, *only)),
                Calls::Many(calls) => in_order.extend(calls.iter().map(|call| (id, *call))),
            }
        }
        in_order.sort_by_key(|(_, call)| (call.anchor, call.ordinal & !OpenCall::APPROVAL));
        in_order.into_iter().for_each(|(id, call)| visit(id.as_bytes(), call));
    }

    fn clear(&mut self) {
        self.few.clear();
        self.many.clear();
        self.many_approvals.clear();
    }
}

impl Calls {
    fn add(&mut self, call: OpenCall) {
        match self {
            Self::One(only) => *self = Self::Many(BTreeSet::from([*only, call])),
            Self::Many(calls) => {
                calls.insert(call);
            }
        }
    }

    /// Forgets a call. Returns whether it was the last one: then `self` must not be used any more.
    fn forget(&mut self, call: OpenCall) -> bool {
        match self {
            Self::One(only) => *only == call,
            Self::Many(calls) => calls.remove(&call) && calls.is_empty(),
        }
    }

    fn find(&self, turn: Turn) -> Option<OpenCall> {
        let calls = match self {
            Self::One(only) => return Some(*only),
            Self::Many(calls) => calls,
        };
        match calls.range(first_of(turn, Seq(0))..first_of(turn.next(), Seq(0))).next_back() {
            Some(latest) => calls.range(first_of(turn, latest.anchor)..).next().copied(),
            None => calls.first().filter(|_| calls.len() == 1).copied(),
        }
    }

    fn find_in_group(&self, turn: Turn, anchor: Seq) -> Option<OpenCall> {
        let first = match self {
            Self::One(only) => only,
            Self::Many(calls) => calls.range(first_of(turn, anchor)..).next()?,
        };
        (first.turn == turn && first.anchor == anchor).then_some(*first)
    }
}

/// The lowest call that the group at `anchor` can have.
const fn first_of(turn: Turn, anchor: Seq) -> OpenCall {
    OpenCall { turn, anchor, ordinal: 0, span: 0, tool: 0 }
}

/// The longest id that is held in place, in bytes: with its length it fills the room that a boxed id would waste.
const INLINE_MAX: usize = 46;

/// An id, compared byte by byte.
#[derive(Debug, Clone)]
enum Id {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Boxed(Box<[u8]>),
}

impl Id {
    fn new(id: &[u8]) -> Self {
        let mut bytes = [0; INLINE_MAX];
        match (bytes.get_mut(..id.len()), u8::try_from(id.len())) {
            (Some(room), Ok(len)) => {
                room.copy_from_slice(id);
                Self::Inline { len, bytes }
            }
            _ => Self::Boxed(id.into()),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Boxed(bytes) => bytes,
        }
    }
}

/// A look-up needs no copy of the id: it compares as its bytes do.
impl Borrow<[u8]> for Id {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Id {}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Id {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::OpenCallSlots;
    use super::*;

    /// Few slots are searched one by one, so they are the naive twin of the tree. Calls come and go often enough that the
    /// tree passes [`FEW_MAX`] both ways.
    #[test]
    #[cfg_attr(
        miri,
        ignore = "4,000 steps over all calls take minutes, and shorter runs do not fill the tree"
    )]
    fn a_tree_answers_as_slots_do() {
        let ids: [&[u8]; 4] = [b"", b"a", b"ab", &[b'x'; 60]];
        let (mut tree, mut slots) = (OpenCallTree::new(), OpenCallSlots::<64>::new());
        let (mut state, mut len, mut most, mut emptied) = (1_u32, 0, 0, 0);
        let mut random = move |end: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % end
        };
        for step in 0..4_000_u32 {
            let (id, turn, anchor) = (ids[random(4) as usize], Turn(step / 40), Seq(u64::from(step / 9)));
            // Waves: more calls open than are closed, and then fewer.
            if random(10) < if step % 400 < 200 { 6 } else { 3 } && len < 64 {
                let mark = if random(4) == 0 { OpenCall::APPROVAL } else { 0 };
                let call = OpenCall { turn, anchor, ordinal: step | mark, span: 0, tool: 0 };
                assert_eq!((tree.open(id, call), slots.open(id, call)), (Ok(()), Ok(())));
            } else {
                let mut open = Vec::new();
                slots.for_each(&mut |id, call| open.push((id.to_vec(), call)));
                if !open.is_empty() {
                    let (id, call) = &open[random(open.len() as u32) as usize];
                    tree.close(id, *call);
                    slots.close(id, *call);
                }
            }
            for kind in [OpenKind::Call, OpenKind::Approval] {
                assert_eq!(tree.find(kind, id, turn), slots.find(kind, id, turn));
                let group = |calls: &dyn OpenCalls| calls.find_in_group(kind, id, turn, anchor);
                assert_eq!(group(&tree), group(&slots));
            }
            let (mut left, mut right) = (Vec::new(), Vec::new());
            tree.for_each(&mut |id, call| left.push((id.to_vec(), call)));
            slots.for_each(&mut |id, call| right.push((id.to_vec(), call)));
            assert_eq!(left, right);
            len = left.len();
            most = most.max(len);
            emptied += u32::from(len == 0 && step > 400);
        }
        assert!(most > 3 * FEW_MAX && emptied > 5, "{most} {emptied}");
    }
}
