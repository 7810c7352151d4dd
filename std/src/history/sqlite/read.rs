//! Loading, reading the log, listing and deleting.

use core::ops::Range;

use epitome_core::{Head, Revision, Seq, Tokens, Turn};
use rusqlite::{Connection, ToSql};

use super::failure::{Failure, corrupt};
use super::row::{MessageRow, SessionRow, count, int, number, session_info};
use super::sql;
use crate::history::{
    Committed, Loaded, LogPage, Logged, SessionId, SessionInfo, StoreError, Summary, UnansweredCall, rules,
};
use crate::message::Str;
use crate::wire::stored;

/// A live projection as it is stored.
#[derive(Debug)]
pub(super) struct StoredProjection {
    head: Head,
    revision: Revision,
    rows: Vec<MessageRow>,
    unanswered: Vec<UnansweredCall>,
}

pub(super) fn load(connection: &Connection, session: &SessionId) -> Result<StoredProjection, Failure> {
    let session = SessionRow::find(connection, session)?.ok_or_else(|| rules::not_found("load"))?;
    let mut rows = messages(connection, sql::LIVE_MESSAGES, &[&session.id])?;
    rows.extend(messages(connection, sql::LIVE_SUMMARIES, &[&session.id])?);
    // Two ascending runs: the sort merges them.
    rows.sort_by_key(|row| row.key);
    let unanswered = unanswered(connection, session.id)?;
    Ok(StoredProjection { head: session.head, revision: session.revision, rows, unanswered })
}

impl StoredProjection {
    pub(super) fn into_loaded(self) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded::new(self.head, self.revision);
        loaded.unanswered = self.unanswered;
        for row in self.rows {
            loaded.live.push(row.into_live()?);
        }
        Ok(loaded)
    }
}

/// A page of the log as it is stored.
#[derive(Debug)]
pub(super) struct StoredPage {
    rows: Vec<MessageRow>,
    next: Option<Seq>,
}

pub(super) fn log(
    connection: &Connection,
    session: &SessionId,
    range: &Range<Seq>,
    limit: u32,
) -> Result<StoredPage, Failure> {
    let session = SessionRow::find(connection, session)?.ok_or_else(|| rules::not_found("log"))?;
    // The log has no gaps, so the end of a page is known beforehand.
    let end = range.end.min(Seq(range.start.0.saturating_add(u64::from(limit))));
    let bounds: [&dyn ToSql; 3] = [&session.id, &int(range.start.0), &int(end.0)];
    let rows = messages(connection, sql::LOG, &bounds)?;
    let end = Seq(range.start.0.saturating_add(rows.len() as u64));
    Ok(StoredPage { rows, next: rules::next_page(end, range.end, session.head) })
}

impl StoredPage {
    pub(super) fn into_page(self) -> Result<LogPage, StoreError> {
        let logged = |row: MessageRow| {
            let (seq, hidden_by) = (row.key, row.hidden_by);
            Ok(Logged::new(seq, row.into_entry()?, hidden_by))
        };
        let messages = self.rows.into_iter().map(logged).collect::<Result<_, StoreError>>()?;
        Ok(LogPage::new(messages, self.next))
    }
}

/// A record as it is stored: its summaries have rows of their own.
#[derive(Debug)]
pub(super) struct StoredRecord {
    revision: Revision,
    body: String,
    summaries: Vec<StoredSummary>,
}

#[derive(Debug)]
struct StoredSummary {
    key: Seq,
    tokens: Tokens,
    basis: String,
    counter: String,
    body: String,
}

pub(super) fn records(
    connection: &Connection,
    session: &SessionId,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<StoredRecord>, Failure> {
    let session = SessionRow::find(connection, session)?.ok_or_else(|| rules::not_found("records"))?;
    // No record makes the revision 0.
    let after = after.unwrap_or_default();
    let mut statement = connection.prepare_cached(sql::RECORDS)?;
    let mut rows = statement.query((session.id, int(after.0), limit))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let revision = Revision(number(row, 0)?);
        let summaries = summaries(connection, session.id, revision)?;
        records.push(StoredRecord { revision, body: row.get(1)?, summaries });
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

impl StoredRecord {
    pub(super) fn into_committed(self) -> Result<Committed, StoreError> {
        let unread =
            |error| corrupt(format!("the record of {} cannot be read", self.revision)).with_source(error);
        let mut record = stored::decode_record(&self.body).map_err(unread)?;
        for summary in self.summaries {
            let message = stored::decode(&summary.body).map_err(unread)?;
            let count = count(summary.tokens, &summary.basis, summary.counter)?;
            record.summaries.push(Summary::new(summary.key, message, count));
        }
        Ok(Committed::new(self.revision, record))
    }
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
    connection.prepare_cached(sql)?.query_map(bounds, MessageRow::read)?.collect()
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
