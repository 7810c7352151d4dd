//! Keeping a session's state in a table of its own.

use epitome_core::Seq;
use rusqlite::{Connection, OptionalExtension};

use super::failure::Failure;
use super::row::{find_session, number};
use super::session::Session;
use super::sql;
use crate::history::encryption::Place;
use crate::history::rows::int;
use crate::history::rules::{self, StateStep, state_step};
use crate::history::{KeptState, OwnedState, StateOutcome, StateRevision};

/// Keeps a state of a session that is there.
pub(super) fn keep(
    connection: &Connection,
    session: &Session,
    state: &OwnedState,
) -> Result<StateOutcome, Failure> {
    let row = find_session(connection, session)?.ok_or_else(|| rules::not_found("save_state"))?;
    let known = connection
        .prepare_cached(sql::STATE_REVISION)?
        .query_row([row.id], |row| number(row, 0))
        .optional()?
        .map(StateRevision);
    let step = state_step(state.made_from, known.unwrap_or_default());
    let same = match step {
        StateStep::Compare(_) => {
            read(connection, session, row.id)?.is_some_and(|kept| kept.text == state.text)
        }
        StateStep::Write(revision) => {
            let text = session.close(Place::state(revision.0), state.text.as_ref().to_owned())?;
            let values = (row.id, int(revision.0), int(row.head.0), text);
            connection.prepare_cached(sql::KEEP_STATE)?.execute(values)?;
            true
        }
        StateStep::Stale => false,
    };
    Ok(step.outcome(same))
}

/// The state that is kept.
pub(super) fn find(connection: &Connection, session: &Session) -> Result<Option<KeptState>, Failure> {
    let row = find_session(connection, session)?.ok_or_else(|| rules::not_found("state"))?;
    read(connection, session, row.id)
}

fn read(connection: &Connection, session: &Session, id: i64) -> Result<Option<KeptState>, Failure> {
    let mut statement = connection.prepare_cached(sql::STATE)?;
    let row = |row: &rusqlite::Row<'_>| Ok((number(row, 0)?, number(row, 1)?, row.get::<_, String>(2)?));
    let Some((revision, head, text)) = statement.query_row([id], row).optional()? else { return Ok(None) };
    let text = session.open(Place::state(revision), text)?;
    Ok(Some(KeptState::new(StateRevision(revision), Seq(head), text.into())))
}
