//! The decision about a state.

use epitome_core::Head;

use super::super::{Changes, Facts, Needs, NewKeptState, Reply};
use super::{Decision, there};
use crate::{NewState, StateOutcome, StateRevision, StoreError, StoreErrorKind};

/// The outcome for a new state, and the revision of the write.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateStep {
    pub(super) outcome: StateOutcome,
    /// The revision under which the state is written; `None` if it is not written.
    write: Option<StateRevision>,
}

impl StateStep {
    /// The state to write, with the head of the session.
    pub(super) fn written(self, new: NewState<'_>, head: Head) -> Option<NewKeptState<'_>> {
        self.write.map(|revision| NewKeptState { revision, head, text: new.text })
    }
}

pub(super) fn needs() -> Needs<'static> {
    Needs { state: true, ..Needs::default() }
}

pub(super) fn decide<'a>(new: NewState<'a>, facts: &'a Facts) -> Result<Decision<'a>, StoreError> {
    there(facts, "save_state")?;
    keep(new, facts, |outcome| match outcome {
        StateOutcome::Kept(revision) => Ok(Reply::Saved(revision)),
        _ => {
            let context = "save_state: another state was kept since this one was made";
            Err(StoreError::new(StoreErrorKind::Conflict, context))
        }
    })
}

/// Decides about `new` alone, and builds the reply from its outcome.
pub(super) fn keep<'a>(
    new: NewState<'a>,
    facts: &'a Facts,
    reply: impl FnOnce(StateOutcome) -> Result<Reply, StoreError>,
) -> Result<Decision<'a>, StoreError> {
    let mut more = Needs::default();
    let Some(step) = step(new, facts, &mut more) else { return Ok(Decision::Ask(more)) };
    let reply = reply(step.outcome)?;
    let mut changes = Changes::of(facts.session);
    changes.state = step.written(new, changes.after.head);
    Ok(if changes.state.is_some() { Decision::Change(changes, reply) } else { Decision::Answer(reply) })
}

/// Decides about `new`. `None` if the text of the stored state is needed; `more` then requests it.
pub(super) fn step(new: NewState<'_>, facts: &Facts, more: &mut Needs<'_>) -> Option<StateStep> {
    let next = new.made_from.next();
    if facts.state == new.made_from {
        return Some(StateStep { outcome: StateOutcome::Kept(next), write: Some(next) });
    }
    if facts.state != next {
        return Some(StateStep { outcome: StateOutcome::Stale, write: None });
    }
    // Both states were made from the same state. If the texts are equal, this is a repetition.
    let Some(text) = &facts.state_text else {
        more.state_text = true;
        return None;
    };
    let outcome = if **text == *new.text { StateOutcome::Kept(next) } else { StateOutcome::Stale };
    Some(StateStep { outcome, write: None })
}
