//! Rows as values, and values as rows.

use epitome_core::{Revision, Seq, Tokens, Turn};
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::Failure;
use super::sql;
use crate::history::rows::{EditRow, MessageRow, SessionRow, int, stored_time};
use crate::history::rules::corrupt;
use crate::history::{SessionId, SessionInfo, Timestamp};

/// The number in a column; one that is negative is out of range.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let stored: i64 = row.get(column)?;
    u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stored))
}

/// The number in a column that may have none.
pub(super) fn optional(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(column)?.map(|_| number(row, column)).transpose()
}

/// The time in a column.
pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(optional(row, column)?.map(Timestamp))
}

/// The row of the session `name`.
pub(super) fn find_session(
    connection: &Connection,
    name: &SessionId,
) -> rusqlite::Result<Option<SessionRow>> {
    let mut statement = connection.prepare_cached(sql::SESSION)?;
    let found = statement.query_row([name.as_str().as_bytes()], |row| {
        Ok(SessionRow {
            id: row.get(0)?,
            head: Seq(number(row, 1)?),
            revision: Revision(number(row, 2)?),
            live_messages: number(row, 3)?,
            live_tokens: number(row, 4)?,
            created: time(row, 5)?,
            appended: time(row, 6)?,
        })
    });
    found.optional()
}

pub(super) fn create_session(connection: &Connection, name: &SessionId) -> rusqlite::Result<SessionRow> {
    let id = connection.prepare_cached(sql::NEW_SESSION)?.insert([name.as_str().as_bytes()])?;
    let (head, revision) = (Seq(0), Revision(0));
    Ok(SessionRow { id, head, revision, live_messages: 0, live_tokens: 0, created: None, appended: None })
}

pub(super) fn save_session(connection: &Connection, row: &SessionRow) -> rusqlite::Result<()> {
    connection.prepare_cached(sql::MOVE_SESSION)?.execute((
        row.id,
        int(row.head.0),
        int(row.revision.0),
        int(row.live_messages),
        int(row.live_tokens),
        stored_time(row.created),
        stored_time(row.appended),
    ))?;
    Ok(())
}

/// A row of a list of sessions.
pub(super) fn session_info(row: &Row<'_>) -> Result<SessionInfo, Failure> {
    let name = String::from_utf8(row.get(0)?).map_err(|_| corrupt("list: a session's name is no text"))?;
    let mut info = SessionInfo::new(SessionId::new(name));
    info.head = Seq(number(row, 1)?);
    info.revision = Revision(number(row, 2)?);
    info.live_messages = number(row, 3)?;
    info.live_tokens = number(row, 4)?;
    info.created = time(row, 5)?;
    info.appended = time(row, 6)?;
    Ok(info)
}

/// A row of one of the statements that read messages or summaries.
pub(super) fn message(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    let revision = |column| Ok::<_, rusqlite::Error>(optional(row, column)?.map(Revision));
    Ok(MessageRow {
        key: Seq(number(row, 0)?),
        hidden_by: revision(8)?,
        anchor: Seq(number(row, 1)?),
        turn: Turn(row.get(2)?),
        tokens: Tokens(row.get(3)?),
        basis: row.get(4)?,
        counter: row.get(5)?,
        late: row.get(6)?,
        orphan: row.get(7)?,
        body: row.get(9)?,
        covers: row.get(10)?,
        part_tokens: row.get(11)?,
        edited_by: revision(12)?,
        edit: edit(row, 13)?,
        pruned_by: None,
    })
}

/// A row of the statement that reads the log.
pub(super) fn logged(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    Ok(MessageRow { pruned_by: optional(row, 17)?.map(Revision), ..message(row)? })
}

/// The columns from `first` on: tokens, basis, counter, stand-ins. All are NULL where nothing was shortened.
pub(super) fn edit(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<EditRow>> {
    let column = |at: usize| first.saturating_add(at);
    let Some(stand_ins) = row.get(column(3))? else { return Ok(None) };
    let (tokens, basis, counter) = (Tokens(row.get(first)?), row.get(column(1))?, row.get(column(2))?);
    Ok(Some(EditRow { tokens, basis, counter, stand_ins }))
}
