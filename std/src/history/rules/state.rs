//! What becomes of a state.

use crate::history::{StateOutcome, StateRevision, StoreError, StoreErrorKind};

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
