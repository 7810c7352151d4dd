//! Loading, reading the log, listing and deleting.

use core::ops::Range;

use epitome_core::{Revision, Seq, Tokens, Turn};
use rusqlite::{Connection, ToSql};

use super::failure::Failure;
use super::row::{find_session, logged, message, number, optional, session_info};
use super::sql;
use crate::history::rows::{
    MessageRow, SessionRow, StoredPage, StoredProjection, StoredRecord, StoredSummary, int, last_turn_begins,
};
use crate::history::rules::{self, corrupt};
use crate::history::tail::last_turn;
use crate::history::{SessionId, SessionInfo, UnansweredCall};
use crate::message::Str;

pub(super) fn load(connection: &Connection, session: &SessionId) -> Result<StoredProjection, Failure> {
    let session = find_session(connection, session)?.ok_or_else(|| rules::not_found("load"))?;
    projection(connection, &session, Seq(0))
}

/// The projection from where the last turn begins.
pub(super) fn tail(connection: &Connection, session: &SessionId) -> Result<StoredProjection, Failure> {
    let session = find_session(connection, session)?.ok_or_else(|| rules::not_found("load"))?;
    let begin = |sql| -> rusqlite::Result<Option<(Seq, Turn)>> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([session.id])?;
        let (mut failed, mut next) = (None, || {
            let row = rows.next()?;
            row.map(|row| Ok((Seq(number(row, 0)?), Turn(row.get(1)?), row.get(2)?))).transpose()
        });
        let newest_first = core::iter::from_fn(|| {
            next().unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        let begin = last_turn(newest_first);
        failed.map_or(Ok(begin), Err)
    };
    let from = last_turn_begins(begin(sql::TURNS)?, begin(sql::SUMMARY_TURNS)?, session.head);
    projection(connection, &session, from)
}

fn projection(connection: &Connection, session: &SessionRow, from: Seq) -> Result<StoredProjection, Failure> {
    let bounds: [&dyn ToSql; 2] = [&session.id, &int(from.0)];
    let mut rows = messages(connection, sql::LIVE_MESSAGES, &bounds)?;
    rows.extend(messages(connection, sql::LIVE_SUMMARIES, &bounds)?);
    // Two ascending runs: the sort merges them.
    rows.sort_by_key(|row| row.key);
    let unanswered = unanswered(connection, session.id)?;
    Ok(StoredProjection { head: session.head, revision: session.revision, rows, unanswered })
}

pub(super) fn log(
    connection: &Connection,
    session: &SessionId,
    range: &Range<Seq>,
    limit: u32,
) -> Result<StoredPage, Failure> {
    let session = find_session(connection, session)?.ok_or_else(|| rules::not_found("log"))?;
    // The log has no gaps, so the end of a page is known beforehand.
    let end = range.end.min(Seq(range.start.0.saturating_add(u64::from(limit))));
    let bounds: [&dyn ToSql; 3] = [&session.id, &int(range.start.0), &int(end.0)];
    let mut statement = connection.prepare_cached(sql::LOG)?;
    let rows: Vec<_> = statement.query_map(bounds, logged)?.collect::<Result<_, _>>()?;
    let end = Seq(range.start.0.saturating_add(rows.len() as u64));
    Ok(StoredPage { rows, next: rules::next_page(end, range.end, session.head) })
}

pub(super) fn records(
    connection: &Connection,
    session: &SessionId,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<StoredRecord>, Failure> {
    let session = find_session(connection, session)?.ok_or_else(|| rules::not_found("records"))?;
    // No record makes the revision 0.
    let after = after.unwrap_or_default();
    let mut statement = connection.prepare_cached(sql::RECORDS)?;
    let mut rows = statement.query((session.id, int(after.0), limit))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let revision = Revision(number(row, 0)?);
        let summaries = summaries(connection, session.id, revision)?;
        let undone_by = optional(row, 2)?.map(Revision);
        records.push(StoredRecord { revision, body: row.get(1)?, undone_by, summaries });
    }
    Ok(records)
}

fn summaries(
    connection: &Connection,
    session: i64,
    revision: Revision,
) -> rusqlite::Result<Vec<StoredSummary>> {
    let mut statement = connection.prepare_cached(sql::SUMMARIES)?;
    let summaries = statement.query_map((session, int(revision.0)), |row| {
        let (key, tokens) = (Seq(number(row, 0)?), Tokens(row.get(1)?));
        Ok(StoredSummary { key, tokens, basis: row.get(2)?, counter: row.get(3)?, body: row.get(4)? })
    })?;
    summaries.collect()
}

pub(super) fn list(
    connection: &Connection,
    after: Option<&SessionId>,
    limit: u32,
) -> Result<Vec<SessionInfo>, Failure> {
    let (sql, name) = match after {
        Some(after) => (sql::LIST_AFTER, after.as_str()),
        None => (sql::LIST, ""),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((name.as_bytes(), limit))?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(session_info(row)?);
    }
    Ok(sessions)
}

pub(super) fn delete(connection: &Connection, session: &SessionId) -> Result<bool, Failure> {
    let deleted = connection.prepare_cached(sql::DELETE_SESSION)?.execute([session.as_str().as_bytes()])?;
    Ok(deleted > 0)
}

fn messages(connection: &Connection, sql: &str, bounds: &[&dyn ToSql]) -> rusqlite::Result<Vec<MessageRow>> {
    connection.prepare_cached(sql)?.query_map(bounds, message)?.collect()
}

fn unanswered(connection: &Connection, session: i64) -> Result<Vec<UnansweredCall>, Failure> {
    let mut statement = connection.prepare_cached(sql::UNANSWERED)?;
    let mut rows = statement.query([session])?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        let id = String::from_utf8(row.get(0)?).map_err(|_| corrupt("load: a call's id is no text"))?;
        let (anchor, turn) = (Seq(number(row, 1)?), Turn(row.get(2)?));
        calls.push(UnansweredCall::new(Str::from(id), anchor, turn, row.get(3)?));
    }
    Ok(calls)
}
