//! Which state is kept and which is stale: the same in every store.

use crate::history::{StateOutcome, StateRevision, StoreError, StoreErrorKind};

/// What is to be done with a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::history) enum StateStep {
    /// It is to be written under this revision.
    Write(StateRevision),
    /// One that was made from the same state was kept under this revision: if it has the same text, it is this one.
    Compare(StateRevision),
    /// It was made from another state than the one that is kept.
    Stale,
}

/// Decides about a state that was made from `made_from`, where `known` is kept.
pub(in crate::history) fn state_step(made_from: StateRevision, known: StateRevision) -> StateStep {
    match made_from.next() {
        next if known == made_from => StateStep::Write(next),
        next if known == next => StateStep::Compare(next),
        _ => StateStep::Stale,
    }
}

impl StateStep {
    /// Under which revision it is to be written, if it is.
    pub(in crate::history) const fn written(self) -> Option<StateRevision> {
        match self {
            Self::Write(revision) => Some(revision),
            Self::Compare(_) | Self::Stale => None,
        }
    }

    /// The answer, once it is written; `same` says whether the text that is kept is this one.
    pub(in crate::history) const fn outcome(self, same: bool) -> StateOutcome {
        match self {
            Self::Write(revision) => StateOutcome::Kept(revision),
            Self::Compare(revision) if same => StateOutcome::Kept(revision),
            Self::Compare(_) | Self::Stale => StateOutcome::Stale,
        }
    }
}

/// What `save_state` answers.
pub(in crate::history) fn saved_state(outcome: StateOutcome) -> Result<StateRevision, StoreError> {
    match outcome {
        StateOutcome::Kept(revision) => Ok(revision),
        StateOutcome::Stale => {
            let context = "save_state: another state was kept since this one was made";
            Err(StoreError::new(StoreErrorKind::Conflict, context))
        }
        StateOutcome::Unsupported => Err(super::unsupported("save_state")),
    }
}
