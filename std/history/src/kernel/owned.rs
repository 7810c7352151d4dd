//! Owned operations, for another thread.

use epitome_core::{Head, Revision};

use super::Op;
use crate::{Append, AppendPosition, AppendToken, CompactionRecord, Entry, OwnedState, RecordId, Timestamp};

/// An owned copy of an operation, for another thread.
#[derive(Debug)]
pub struct OwnedOp(Owned);

#[derive(Debug)]
enum Owned {
    Append {
        token: AppendToken,
        head: Head,
        position: AppendPosition,
        entries: Vec<Entry>,
        time: Option<Timestamp>,
        state: Option<OwnedState>,
    },
    Commit(CompactionRecord, RecordId),
    Uncompact(Revision),
    Prune(Revision),
    SaveState(OwnedState),
}

impl OwnedOp {
    /// Copies `op`.
    pub fn of(op: Op<'_>) -> Self {
        Self(match op {
            Op::Append(Append { token, head, position, entries, time }, state) => Owned::Append {
                token: token.clone(),
                head,
                position,
                entries: entries.to_vec(),
                time,
                state: state.as_ref().map(OwnedState::of),
            },
            Op::Commit(record, id) => Owned::Commit(record.clone(), id),
            Op::Uncompact(made) => Owned::Uncompact(made),
            Op::Prune(through) => Owned::Prune(through),
            Op::SaveState(state) => Owned::SaveState(OwnedState::of(&state)),
        })
    }

    /// Borrows the operation.
    pub fn as_op(&self) -> Op<'_> {
        match &self.0 {
            Owned::Append { token, head, position, entries, time, state } => {
                let mut append = Append::new(token, *head, entries).at(*time);
                append.position = *position;
                Op::Append(append, state.as_ref().map(OwnedState::as_new))
            }
            Owned::Commit(record, id) => Op::Commit(record, *id),
            Owned::Uncompact(made) => Op::Uncompact(*made),
            Owned::Prune(through) => Op::Prune(*through),
            Owned::SaveState(state) => Op::SaveState(state.as_new()),
        }
    }
}
