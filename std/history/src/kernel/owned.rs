//! An operation on its way to another thread.

use epitome_core::{Head, Revision};

use super::Op;
use crate::{Append, AppendPosition, AppendToken, CompactionRecord, Entry, OwnedState, RecordId, Timestamp};

/// An operation on its way to another thread.
#[derive(Debug)]
pub enum OwnedOp {
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
    pub fn of(op: Op<'_>) -> Self {
        match op {
            Op::Append(Append { token, head, position, entries, time }, state) => Self::Append {
                token: token.clone(),
                head,
                position,
                entries: entries.to_vec(),
                time,
                state: state.as_ref().map(OwnedState::of),
            },
            Op::Commit(record, id) => Self::Commit(record.clone(), id),
            Op::Uncompact(made) => Self::Uncompact(made),
            Op::Prune(through) => Self::Prune(through),
            Op::SaveState(state) => Self::SaveState(OwnedState::of(&state)),
        }
    }

    pub fn as_op(&self) -> Op<'_> {
        match self {
            Self::Append { token, head, position, entries, time, state } => {
                let mut append = Append::new(token, *head, entries).at(*time);
                append.position = *position;
                Op::Append(append, state.as_ref().map(OwnedState::as_new))
            }
            Self::Commit(record, id) => Op::Commit(record, *id),
            Self::Uncompact(made) => Op::Uncompact(*made),
            Self::Prune(through) => Op::Prune(*through),
            Self::SaveState(state) => Op::SaveState(state.as_new()),
        }
    }
}
