//! A fixed number of unanswered calls, without a heap.

use super::{OpenCall, OpenCalls, OpenKind, choose, first_in_group};
use crate::table::Full;
use crate::{Seq, Turn};

/// The longest call id that a slot holds, in bytes. Providers' ids have 24 to 40 bytes; a longer id than the maximum
/// gives [`Full`].
pub const CALL_ID_MAX: usize = 64;

/// At most `N` unanswered calls with ids of at most [`CALL_ID_MAX`] bytes.
///
/// When all slots are taken, the oldest call of an earlier turn makes room: a later answer to it will be an orphan.
/// Calls of the current turn are never forgotten; if they fill all slots, the next call gives [`Full`].
#[derive(Debug, Clone)]
pub struct OpenCallSlots<const N: usize> {
    slots: [Slot; N],
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    id: [u8; CALL_ID_MAX],
    id_len: u8,
    call: OpenCall,
}

impl Slot {
    const EMPTY: Self = Self {
        id: [0; CALL_ID_MAX],
        id_len: 0,
        call: OpenCall { turn: Turn(0), anchor: Seq(0), ordinal: 0, span: 0, tool: 0 },
    };

    fn id(&self) -> &[u8] {
        self.id.get(..usize::from(self.id_len)).unwrap_or_default()
    }
}

impl<const N: usize> OpenCallSlots<N> {
    /// A memory without calls.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N > 0, "no room for a single call") };
        Self { slots: [Slot::EMPTY; N], len: 0 }
    }

    fn taken(&self) -> &[Slot] {
        self.slots.get(..self.len).unwrap_or_default()
    }

    fn with_id<'a>(&'a self, kind: OpenKind, id: &'a [u8]) -> impl Iterator<Item = OpenCall> + 'a {
        let same = move |slot: &&Slot| slot.call.kind() == kind && slot.id() == id;
        self.taken().iter().filter(same).map(|slot| slot.call)
    }

    /// For each group and id, forgets the oldest calls that exceed the number of such calls in `known`.
    pub(crate) fn forget_all_but(&mut self, known: &Self) {
        let mut at = 0_usize;
        while let Some(slot) = self.taken().get(at).copied() {
            let group = |call: OpenCall| (call.anchor, call.kind());
            let same = |other: &&Slot| other.id() == slot.id() && group(other.call) == group(slot.call);
            let from_here = self.taken().iter().skip(at).filter(same).count();
            if from_here > known.taken().iter().filter(same).count() {
                self.remove(at);
            } else {
                at = at.saturating_add(1);
            }
        }
    }

    /// Removes the slot at `at`; the others keep their order.
    fn remove(&mut self, at: usize) {
        // Not `rotate_left`: it would leave a panic in the image of a device.
        for at in at..self.len {
            if let Some([here, next, ..]) = self.slots.get_mut(at..self.len) {
                *here = *next;
            }
        }
        self.len = self.len.saturating_sub(usize::from(at < self.len));
    }
}

impl<const N: usize> Default for OpenCallSlots<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> OpenCalls for OpenCallSlots<N> {
    fn fits(&self, calls: usize, id_bytes: usize, turn: Turn) -> bool {
        let kept = self.taken().iter().filter(|slot| slot.call.turn == turn).count();
        id_bytes <= CALL_ID_MAX && calls <= N.saturating_sub(kept)
    }

    fn open(&mut self, id: &[u8], call: OpenCall) -> Result<(), Full> {
        if id.len() > CALL_ID_MAX {
            return Err(Full);
        }
        if self.len == N {
            let abandoned = self.taken().iter().position(|slot| slot.call.turn < call.turn).ok_or(Full)?;
            self.remove(abandoned);
        }
        let slot = self.slots.get_mut(self.len).ok_or(Full)?;
        *slot = Slot { call, id_len: u8::try_from(id.len()).map_err(|_| Full)?, ..Slot::EMPTY };
        slot.id.iter_mut().zip(id).for_each(|(to, from)| *to = *from);
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    fn find(&self, kind: OpenKind, id: &[u8], turn: Turn) -> Option<OpenCall> {
        choose(self.with_id(kind, id), turn)
    }

    fn find_in_group(&self, kind: OpenKind, id: &[u8], turn: Turn, anchor: Seq) -> Option<OpenCall> {
        first_in_group(self.with_id(kind, id), turn, anchor)
    }

    fn close(&mut self, id: &[u8], call: OpenCall) {
        if let Some(at) = self.taken().iter().position(|slot| slot.id() == id && slot.call == call) {
            self.remove(at);
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u8], OpenCall)) {
        self.taken().iter().for_each(|slot| visit(slot.id(), slot.call));
    }

    fn clear(&mut self) {
        self.len = 0;
    }
}
