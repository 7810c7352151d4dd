//! Conversion between rows and values.

use epitome_core::{Revision, Seq, Tokens, Turn};
use epitome_history::encryption::Place;
use epitome_history::kernel::Counters;
use epitome_history::rows::{EditRow, MessageRow, SessionRow, int, stored_time};
use epitome_history::rules::corrupt;
use epitome_history::{SessionId, SessionInfo, StoreError, Timestamp};
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::failure::Failure;
use super::session::Session;
use super::sql;

/// The number in a column. A negative number is out of range.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let stored: i64 = row.get(column)?;
    u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stored))
}

/// The number in a column that may be NULL.
pub(super) fn optional(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(column)?.map(|_| number(row, column)).transpose()
}

/// The time in a column.
pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(optional(row, column)?.map(Timestamp))
}

/// The rows of a statement, each converted by `read`.
pub(super) fn rows<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The row of a session.
pub(super) fn find_session(
    connection: &Connection,
    session: &Session,
) -> rusqlite::Result<Option<SessionRow>> {
    let mut statement = connection.prepare_cached(sql::SESSION)?;
    let found = statement.query_row([session.name.as_str().as_bytes()], |row| {
        Ok(SessionRow {
            id: row.get(0)?,
            counters: Counters {
                head: Seq(number(row, 1)?),
                revision: Revision(number(row, 2)?),
                live_messages: number(row, 3)?,
                live_tokens: number(row, 4)?,
                created: time(row, 5)?,
                appended: time(row, 6)?,
            },
        })
    });
    found.optional()
}

pub(super) fn create_session(connection: &Connection, session: &Session) -> rusqlite::Result<SessionRow> {
    let id = connection.prepare_cached(sql::NEW_SESSION)?.insert([session.name.as_str().as_bytes()])?;
    Ok(SessionRow { id, counters: Counters::default() })
}

pub(super) fn save_session(connection: &Connection, row: &SessionRow) -> rusqlite::Result<()> {
    let Counters { head, revision, live_messages, live_tokens, created, appended } = row.counters;
    connection.prepare_cached(sql::MOVE_SESSION)?.execute((
        row.id,
        int(head.0),
        int(revision.0),
        int(live_messages),
        int(live_tokens),
        stored_time(created),
        stored_time(appended),
    ))?;
    Ok(())
}

/// The error for a session's name that is not UTF-8.
pub(super) fn corrupt_name(operation: &str) -> StoreError {
    corrupt(format!("{operation}: a session's name is no text"))
}

/// Decodes a row of the list of sessions.
pub(super) fn session_info(row: &Row<'_>) -> Result<SessionInfo, Failure> {
    let name = String::from_utf8(row.get(0)?).map_err(|_| corrupt_name("list"))?;
    let mut info = SessionInfo::new(SessionId::new(name));
    info.head = Seq(number(row, 1)?);
    info.revision = Revision(number(row, 2)?);
    info.live_messages = number(row, 3)?;
    info.live_tokens = number(row, 4)?;
    info.created = time(row, 5)?;
    info.appended = time(row, 6)?;
    Ok(info)
}

/// Decodes a row of one of the statements that read messages.
pub(super) fn message(row: &Row<'_>, session: &Session) -> Result<MessageRow, Failure> {
    let (key, anchor) = (Seq(number(row, 0)?), Seq(number(row, 1)?));
    let edit = edit(row, 13, (session, key))?;
    self::row(row, (session, Place::message(key.0)), (key, anchor), edit)
}

/// Decodes a row of the statement that reads the visible summaries.
pub(super) fn summary(row: &Row<'_>, session: &Session) -> Result<MessageRow, Failure> {
    let (key, revision) = (Seq(number(row, 0)?), number(row, 1)?);
    self::row(row, (session, Place::summary(revision, key.0)), (key, key), None)
}

fn row(
    row: &Row<'_>,
    (session, place): (&Session, Place),
    (key, anchor): (Seq, Seq),
    edit: Option<EditRow>,
) -> Result<MessageRow, Failure> {
    let revision = |column| Ok::<_, rusqlite::Error>(optional(row, column)?.map(Revision));
    let body: Option<String> = row.get(9)?;
    Ok(MessageRow {
        key,
        hidden_by: revision(8)?,
        anchor,
        turn: Turn(row.get(2)?),
        tokens: Tokens(row.get(3)?),
        basis: row.get(4)?,
        counter: row.get(5)?,
        late: row.get(6)?,
        orphan: row.get(7)?,
        body: body.map(|body| session.open(place, body)).transpose()?,
        covers: row.get(10)?,
        part_tokens: row.get(11)?,
        edited_by: revision(12)?,
        edit,
        pruned_by: None,
    })
}

/// Decodes a row of the statement that reads the log.
pub(super) fn logged(row: &Row<'_>, session: &Session) -> Result<MessageRow, Failure> {
    Ok(MessageRow { pruned_by: optional(row, 17)?.map(Revision), ..message(row, session)? })
}

/// Decodes the columns from `first` on: tokens, basis, counter, stand-ins. All are NULL for a message that is not
/// shortened.
pub(super) fn edit(
    row: &Row<'_>,
    first: usize,
    (session, seq): (&Session, Seq),
) -> Result<Option<EditRow>, Failure> {
    let column = |at: usize| first.saturating_add(at);
    let Some(stand_ins) = row.get(column(3))? else { return Ok(None) };
    let stand_ins = session.stand_ins(seq, stand_ins)?;
    let (tokens, basis, counter) = (Tokens(row.get(first)?), row.get(column(1))?, row.get(column(2))?);
    Ok(Some(EditRow { tokens, basis, counter, stand_ins }))
}
