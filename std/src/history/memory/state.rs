//! Keeping a session's state in memory.

use super::Session;
use crate::history::rules::{StateStep, state_step};
use crate::history::{KeptState, NewState, StateOutcome};

impl Session {
    pub(super) fn keep_state(&mut self, state: &NewState<'_>) -> StateOutcome {
        let known = self.state.as_ref().map(|kept| kept.revision).unwrap_or_default();
        let step = state_step(state.made_from, known);
        let same = self.state.as_ref().is_some_and(|kept| *kept.text == *state.text);
        if let StateStep::Write(revision) = step {
            self.state = Some(KeptState::new(revision, self.head(), state.text.into()));
        }
        step.outcome(same)
    }
}
