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
    /// Append messages. If there is a state, save it in the same step.
    Append(Append<'a>, Option<NewState<'a>>),
    /// Commit a record, with its id.
    Commit(&'a CompactionRecord, RecordId),
    /// Undo the record of this revision.
    Uncompact(Revision),
    /// Delete the texts that were hidden at this revision or before.
    Prune(Revision),
    /// Save a state.
    SaveState(NewState<'a>),
}

impl<'a> Op<'a> {
    /// Makes the commit of `record`.
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
    /// The answer to an append, with the outcome of its state.
    Appended(Appended, Option<StateOutcome>),
    /// The revision of a commit or an uncompact.
    Made(Revision),
    /// The answer to a prune.
    Pruned(Pruned),
    /// The revision of a saved state.
    Saved(StateRevision),
}

impl Reply {
    /// The answer with another revision, if it answers an append: the revision of the session after the append.
    pub const fn at(self, revision: Revision) -> Self {
        match self {
            Self::Appended(appended, outcome) => Self::Appended(Appended { revision, ..appended }, outcome),
            reply => reply,
        }
    }

    /// The answer to an append, with the outcome of its state.
    ///
    /// # Errors
    /// `Corrupt` if it is the answer to another operation. The next methods have the same error.
    pub fn appended(self) -> Result<(Appended, Option<StateOutcome>), StoreError> {
        match self {
            Self::Appended(appended, outcome) => Ok((appended, outcome)),
            _ => Err(mismatched()),
        }
    }

    /// The revision of a commit or an uncompact.
    ///
    /// # Errors
    /// The errors of [`Reply::appended`].
    pub fn made(self) -> Result<Revision, StoreError> {
        match self {
            Self::Made(revision) => Ok(revision),
            _ => Err(mismatched()),
        }
    }

    /// The answer to a prune.
    ///
    /// # Errors
    /// The errors of [`Reply::appended`].
    pub fn pruned(self) -> Result<Pruned, StoreError> {
        match self {
            Self::Pruned(pruned) => Ok(pruned),
            _ => Err(mismatched()),
        }
    }

    /// The revision of a saved state.
    ///
    /// # Errors
    /// The errors of [`Reply::appended`].
    pub fn saved(self) -> Result<StateRevision, StoreError> {
        match self {
            Self::Saved(revision) => Ok(revision),
            _ => Err(mismatched()),
        }
    }
}

/// An internal error that no store can cause: each operation is decided in its own file, and gets its own reply.
fn mismatched() -> StoreError {
    rules::corrupt("the answer is that of another operation")
}
