//! Keeping a session's state in its file: as a field of an append's last line, or as a line.

use epitome_core::Revision;

use super::directory::{Access, Directory, Opened};
use super::line::{self, Line, STATE_VERSION, StateLine};
use super::lines::Lines;
use super::write::{Acknowledges, again, finish, write};
use super::{read, rewrite};
use crate::history::rules::{self, StateStep, state_step};
use crate::history::{OwnedState, SessionId, StateOutcome, StoreError};

/// Keeps a state of a session that is there.
pub(super) fn save(
    directory: &mut Directory,
    session: &SessionId,
    state: &OwnedState,
) -> Result<StateOutcome, StoreError> {
    let opened = opened(directory, "save_state", session)?;
    let opened = opened.filter(|opened| opened.known.index.head().0 > 0);
    let mut opened = opened.ok_or_else(|| rules::not_found("save_state"))?;
    let done = keep(directory, &mut opened, session, state);
    finish(directory, session, opened, done)
}

/// The file of a session, if it has one, in a version that keeps states: an older one is written anew.
pub(super) fn opened(
    directory: &mut Directory,
    operation: &'static str,
    session: &SessionId,
) -> Result<Option<Opened>, StoreError> {
    loop {
        match directory.opened(operation, session, Access::Write)? {
            Some(old) if old.known.has_begun() && old.known.version < STATE_VERSION => {
                rewrite::rewrite(directory, &old, session, Revision(0), None)?;
            }
            opened => return Ok(opened),
        }
    }
}

/// What is to be done with a state, and whether the text that is kept then is its own.
pub(super) fn decide(opened: &Opened, state: &OwnedState) -> Result<(StateStep, bool), StoreError> {
    let step = state_step(state.made_from, opened.known.index.state_revision());
    let same = match step {
        StateStep::Write(_) => true,
        StateStep::Compare(_) => {
            let mut lines = Lines::new(&opened.file, opened.size);
            let kept = read::kept_state(&opened.known, &mut lines, opened.here("save_state"))?;
            kept.is_some_and(|kept| kept.text == state.text)
        }
        StateStep::Stale => false,
    };
    Ok((step, same))
}

/// Keeps a state on a line of its own.
pub(super) fn keep(
    directory: &Directory,
    opened: &mut Opened,
    session: &SessionId,
    state: &OwnedState,
) -> Result<StateOutcome, StoreError> {
    let (step, same) = decide(opened, state)?;
    if let StateStep::Write(revision) = step {
        let line = Line::State(StateLine::of(revision, opened.known.index.head(), &state.text));
        let spans = write(directory, opened, session, &[line::encode(&line)?], Acknowledges::Append)?;
        if let Some(line) = spans.first() {
            opened.known.index.keep_state(revision, *line);
        }
    } else {
        again(directory, opened, Acknowledges::Append)?;
    }
    Ok(step.outcome(same))
}
