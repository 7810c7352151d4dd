//! Any number of unanswered calls, on the heap.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{OpenCall, OpenCalls};
use crate::table::Full;
use crate::{Seq, Turn};

/// Any number of unanswered calls with ids of any length: logarithmic in their number, whatever ids a hostile peer
/// chooses. Ids of up to 46 bytes need no allocation of their own.
#[derive(Debug, Clone, Default)]
pub struct OpenCallTree {
    /// Sorted by id, then turn, group and place: a claim is two look-ups.
    calls: BTreeSet<(Id, OpenCall)>,
}

impl OpenCallTree {
    /// No calls.
    #[must_use]
    pub const fn new() -> Self {
        Self { calls: BTreeSet::new() }
    }
}

impl OpenCalls for OpenCallTree {
    fn fits(&self, _calls: usize, _id_bytes: usize, _turn: Turn) -> bool {
        true
    }

    fn open(&mut self, id: &[u8], call: OpenCall) -> Result<(), Full> {
        self.calls.insert((Id::new(id), call));
        Ok(())
    }

    fn find(&self, id: &[u8], turn: Turn) -> Option<OpenCall> {
        if self.calls.is_empty() {
            return None;
        }
        let id = Id::new(id);
        let mut in_turn = self.calls.range(first_of(&id, turn, Seq(0))..first_of(&id, turn.next(), Seq(0)));
        if let Some((_, latest)) = in_turn.next_back() {
            return self.calls.range(first_of(&id, turn, latest.anchor)..).next().map(|(_, call)| *call);
        }
        let mut earlier =
            self.calls.range(first_of(&id, Turn(0), Seq(0))..).take_while(|(other, _)| *other == id);
        match (earlier.next(), earlier.next()) {
            (Some((_, only)), None) => Some(*only),
            _ => None,
        }
    }

    fn find_in_group(&self, id: &[u8], turn: Turn, anchor: Seq) -> Option<OpenCall> {
        let (other, call) = self.calls.range(first_of(&Id::new(id), turn, anchor)..).next()?;
        (other.as_bytes() == id && call.turn == turn && call.anchor == anchor).then_some(*call)
    }

    fn close(&mut self, id: &[u8], call: OpenCall) {
        self.calls.remove(&(Id::new(id), call));
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u8], OpenCall)) {
        let mut in_order: Vec<_> = self.calls.iter().collect();
        in_order.sort_by_key(|(_, call)| (call.anchor, call.ordinal));
        in_order.into_iter().for_each(|(id, call)| visit(id.as_bytes(), *call));
    }

    fn clear(&mut self) {
        self.calls.clear();
    }
}

/// The lowest entry that a call with this id in the group at `anchor` can have.
fn first_of(id: &Id, turn: Turn, anchor: Seq) -> (Id, OpenCall) {
    (id.clone(), OpenCall { turn, anchor, ordinal: 0, span: 0 })
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
