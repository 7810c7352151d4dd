//! Conversion between rows and values.

use epitome_history::kernel::Counters;
use epitome_history::rows::{EditRow, MessageRow, SessionRow, int, stored_time};
use epitome_history::rules::corrupt;
use epitome_history::{SessionId, SessionInfo, Timestamp};

use epitome_core::{Revision, Seq, Tokens, Turn};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;

use super::failure::Failure;
use super::lease::{Lease, Parameters};
use super::runs::Runs;
use super::sql;

/// The key of a text in an index, of the same length for every text.
pub(super) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// The number in a column. A negative number is damage, because the store writes none.
pub(super) fn number(row: &Row, column: usize) -> Result<u64, Failure> {
    unsigned(row.try_get(column)?)
}

fn unsigned(stored: i64) -> Result<u64, Failure> {
    u64::try_from(stored).map_err(|_| corrupt("a stored number is negative").into())
}

pub(super) fn number32(row: &Row, column: usize) -> Result<u32, Failure> {
    small(row.try_get(column)?)
}

fn small(stored: i64) -> Result<u32, Failure> {
    u32::try_from(stored).map_err(|_| corrupt("a stored number is out of range").into())
}

/// A text that is stored as bytes.
pub(super) fn text(row: &Row, column: usize) -> Result<String, Failure> {
    let bytes: &[u8] = row.try_get(column)?;
    utf8(bytes)
}

fn utf8(bytes: &[u8]) -> Result<String, Failure> {
    String::from_utf8(bytes.to_vec()).map_err(|_| corrupt("a stored name is no text").into())
}

pub(super) fn revision(row: &Row, column: usize) -> Result<Option<Revision>, Failure> {
    let stored: Option<i64> = row.try_get(column)?;
    Ok(stored.map(unsigned).transpose()?.map(Revision))
}

pub(super) fn time(row: &Row, column: usize) -> Result<Option<Timestamp>, Failure> {
    let stored: Option<i64> = row.try_get(column)?;
    Ok(stored.map(unsigned).transpose()?.map(Timestamp))
}

/// Decodes a row of the sessions.
pub(super) fn session(row: &Row) -> Result<SessionRow, Failure> {
    Ok(SessionRow {
        id: row.try_get(0)?,
        counters: Counters {
            head: Seq(number(row, 1)?),
            revision: Revision(number(row, 2)?),
            live_messages: number(row, 3)?,
            live_tokens: number(row, 4)?,
            created: time(row, 5)?,
            appended: time(row, 6)?,
        },
    })
}

/// The runs of the visible messages, from the same row.
pub(super) fn runs(row: &Row) -> Result<Runs, Failure> {
    Ok(Runs::stored(row.try_get(7)?, row.try_get(8)?))
}

/// Writes the runs of the visible messages, after the session's row.
pub(super) async fn save_runs(lease: &Lease<'_>, row: &SessionRow, runs: &Runs) -> Result<(), Failure> {
    let [update] = lease.prepare([sql::MOVE_LIVE]).await?;
    let ((first, last), revision) = (runs.columns(), int(row.counters.revision.0));
    changed_one(lease.execute(&update, &[&row.id, first, last, &revision]).await?)
}

pub(super) async fn save_session(lease: &Lease<'_>, row: &SessionRow) -> Result<(), Failure> {
    let [update] = lease.prepare([sql::MOVE_SESSION]).await?;
    let (head, revision) = (int(row.counters.head.0), int(row.counters.revision.0));
    let (messages, tokens) = (int(row.counters.live_messages), int(row.counters.live_tokens));
    let times = [row.counters.created, row.counters.appended].map(stored_time);
    let [created, appended] = &times;
    let columns: Parameters<'_> = &[&row.id, &head, &revision, &messages, &tokens, created, appended];
    changed_one(lease.execute(&update, columns).await?)
}

/// Checks that a statement has changed exactly one row, which must exist.
pub(super) fn changed_one(changed: u64) -> Result<(), Failure> {
    if changed == 1 { Ok(()) } else { Err(corrupt("a row of the session is missing").into()) }
}

/// Decodes a row of the list of sessions.
pub(super) fn session_info(row: &Row) -> Result<SessionInfo, Failure> {
    let mut info = SessionInfo::new(SessionId::new(text(row, 0)?));
    info.head = Seq(number(row, 1)?);
    info.revision = Revision(number(row, 2)?);
    info.live_messages = number(row, 3)?;
    info.live_tokens = number(row, 4)?;
    (info.created, info.appended) = (time(row, 5)?, time(row, 6)?);
    Ok(info)
}

/// Decodes a row of one of the statements that read messages or summaries.
pub(super) fn message(row: &Row) -> Result<MessageRow, Failure> {
    Ok(MessageRow {
        key: Seq(number(row, 0)?),
        anchor: Seq(number(row, 1)?),
        turn: Turn(number32(row, 2)?),
        tokens: Tokens(number32(row, 3)?),
        basis: row.try_get(4)?,
        counter: text(row, 5)?,
        late: row.try_get(6)?,
        orphan: row.try_get(7)?,
        hidden_by: revision(row, 8)?,
        body: row.try_get(9)?,
        covers: row.try_get(10)?,
        part_tokens: row.try_get(11)?,
        edited_by: revision(row, 12)?,
        edit: edit(row, 13)?,
        pruned_by: revision(row, 17)?,
    })
}

/// Decodes the columns from `first` on: tokens, basis, counter, stand-ins. All are NULL for a message that is not
/// shortened.
pub(super) fn edit(row: &Row, first: usize) -> Result<Option<EditRow>, Failure> {
    let column = |at: usize| first.saturating_add(at);
    let Some(stand_ins) = row.try_get(column(3))? else { return Ok(None) };
    let tokens = Tokens(number32(row, first)?);
    let (basis, counter) = (row.try_get(column(1))?, text(row, column(2))?);
    Ok(Some(EditRow { tokens, basis, counter, stand_ins }))
}

/// The index in a sent array that a row belongs to. The server counts from 1.
pub(super) fn ordinal(row: &Row, column: usize) -> Result<Option<usize>, Failure> {
    Ok(usize::try_from(number(row, column)?).ok().and_then(|number| number.checked_sub(1)))
}
