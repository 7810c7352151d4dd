//! The operations that change a session, and their answers.

use epitome_core::Revision;

use crate::rules::{self, not_storable};
use crate::stored;
use crate::{
    Append, Appended, CompactionRecord, NewState, Pruned, RecordId, StateOutcome, StateRevision, StoreError,
};

/// An operation on a session.
#[derive(Debug, Clone, Copy)]
pub enum Op<'a> {
    /// Append messages, and keep a state in the same step if there is one.
    Append(Append<'a>, Option<NewState<'a>>),
    /// Commit a record, with its id.
    Commit(&'a CompactionRecord, RecordId),
    /// Undo the record that made this revision.
    Uncompact(Revision),
    /// Delete what was hidden at this revision or before.
    Prune(Revision),
    /// Keep a state.
    SaveState(NewState<'a>),
}

impl<'a> Op<'a> {
    /// The commit of `record`.
    ///
    /// # Errors
    /// `Invalid` if the record has no stored form.
    pub fn commit(record: &'a CompactionRecord) -> Result<Self, StoreError> {
        Ok(Self::Commit(record, stored::record_id(record).map_err(not_storable)?))
    }

    /// The name of the operation in errors.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Append(..) => "append",
            Self::Commit(..) => "commit",
            Self::Uncompact(_) => "uncompact",
            Self::Prune(_) => "prune",
            Self::SaveState(_) => "save_state",
        }
    }
}

/// The answer to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The reply to an append, with the outcome of its state.
    Appended(Appended, Option<StateOutcome>),
    /// The reply to a commit or an undo: the revision that it made.
    Made(Revision),
    /// The reply to a prune.
    Pruned(Pruned),
    /// The reply to a state: its revision.
    Saved(StateRevision),
}

impl Reply {
    /// The reply of an append that has left the session at `revision`.
    pub const fn at(self, revision: Revision) -> Self {
        match self {
            Self::Appended(appended, outcome) => Self::Appended(Appended { revision, ..appended }, outcome),
            reply => reply,
        }
    }

    /// The reply to an append, with the outcome of the state that came with it.
    ///
    /// # Errors
    /// `Corrupt` if it is the reply to another operation; so in the next methods.
    pub fn appended(self) -> Result<(Appended, Option<StateOutcome>), StoreError> {
        match self {
            Self::Appended(appended, outcome) => Ok((appended, outcome)),
            _ => Err(mismatched()),
        }
    }

    /// The revision that a commit or an undo made.
    ///
    /// # Errors
    /// As [`Reply::appended`].
    pub fn made(self) -> Result<Revision, StoreError> {
        match self {
            Self::Made(revision) => Ok(revision),
            _ => Err(mismatched()),
        }
    }

    /// The reply to a prune.
    ///
    /// # Errors
    /// As [`Reply::appended`].
    pub fn pruned(self) -> Result<Pruned, StoreError> {
        match self {
            Self::Pruned(pruned) => Ok(pruned),
            _ => Err(mismatched()),
        }
    }

    /// The revision of a state that was saved.
    ///
    /// # Errors
    /// As [`Reply::appended`].
    pub fn saved(self) -> Result<StateRevision, StoreError> {
        match self {
            Self::Saved(revision) => Ok(revision),
            _ => Err(mismatched()),
        }
    }
}

/// No store leads here: each operation is decided in a file of its own, which makes its own reply.
fn mismatched() -> StoreError {
    rules::corrupt("the answer is that of another operation")
}
