//! Load, log, list and delete.

use core::ops::Range;

use epitome_core::{Revision, Seq, Tokens, Turn};
use epitome_history::encryption::Place;
use epitome_history::kernel::Counters;
use epitome_history::rows::{
    SessionRow, StoredPage, StoredProjection, StoredRecord, StoredSummary, int, last_turn_begins,
};
use epitome_history::rules::{self, corrupt};
use epitome_history::tail::last_turn;
use epitome_history::{
    AppendToken, Appended, KeptState, LoggedAppend, Pruned, SessionId, SessionInfo, StateRevision,
    StoreError, UnansweredCall,
};
use epitome_message::Str;
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::Failure;
use super::row::{find_session, logged, message, number, optional, rows, session_info, summary, time};
use super::session::Session;
use super::{sql, words};

pub(super) fn load(connection: &Connection, session: &Session) -> Result<StoredProjection, Failure> {
    let found = find_session(connection, session)?.ok_or_else(|| rules::not_found("load"))?;
    projection(connection, (session, &found), Seq(0))
}

/// The projection from the beginning of the last turn.
pub(super) fn tail(connection: &Connection, session: &Session) -> Result<StoredProjection, Failure> {
    let found = find_session(connection, session)?.ok_or_else(|| rules::not_found("load"))?;
    let begin = |sql| -> rusqlite::Result<Option<(Seq, Turn)>> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([found.id])?;
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
    let from = last_turn_begins(begin(sql::TURNS)?, begin(sql::SUMMARY_TURNS)?, found.counters.head);
    projection(connection, (session, &found), from)
}

fn projection(
    connection: &Connection,
    (session, found): (&Session, &SessionRow),
    from: Seq,
) -> Result<StoredProjection, Failure> {
    let bounds = (found.id, int(from.0));
    let mut live = rows(connection, sql::LIVE_MESSAGES, bounds, |row| message(row, session))?;
    live.extend(rows(connection, sql::LIVE_SUMMARIES, bounds, |row| summary(row, session))?);
    // The list consists of two ascending runs, so the sort is a merge.
    live.sort_by_key(|row| row.key);
    if from == Seq(0) {
        let tokens = live.iter().map(|row| row.edit.as_ref().map_or(row.tokens, |edit| edit.tokens));
        check_counts(&found.counters, (live.len(), tokens))?;
    }
    let unanswered = unanswered(connection, session, found.id)?;
    Ok(StoredProjection {
        head: found.counters.head,
        revision: found.counters.revision,
        rows: live,
        unanswered,
    })
}

/// Compares the numbers of rows and tokens that were read with the session's row. A row that is lost in a damaged tree
/// leaves no other trace.
pub(super) fn check_counts(
    found: &Counters,
    (rows, tokens): (usize, impl Iterator<Item = Tokens>),
) -> Result<(), Failure> {
    let tokens = tokens.map(|tokens| tokens.as_u64()).fold(0, u64::saturating_add);
    match (rows as u64, tokens) == (found.live_messages, found.live_tokens) {
        true => Ok(()),
        false => Err(corrupt(
            "the visible messages are others than the session counts; restore the file from a backup",
        )
        .into()),
    }
}

pub(super) fn log(
    connection: &Connection,
    session: &Session,
    range: &Range<Seq>,
    limit: u32,
) -> Result<StoredPage, Failure> {
    let found = find_session(connection, session)?.ok_or_else(|| rules::not_found("log"))?;
    // The log has no gaps, so the end of a page is known before the read.
    let end = range.end.min(Seq(range.start.0.saturating_add(u64::from(limit))));
    let bounds = (found.id, int(range.start.0), int(end.0));
    let rows = rows(connection, sql::LOG, bounds, |row| logged(row, session))?;
    let wanted = (range.start.0..end.min(found.counters.head).0).map(Seq);
    if !rows.iter().map(|row| row.key).eq(wanted) {
        return Err(corrupt("log: a message is missing; restore the file from a backup").into());
    }
    let end = Seq(range.start.0.saturating_add(rows.len() as u64));
    Ok(StoredPage { rows, next: rules::next_page(end, range.end, found.counters.head) })
}

pub(super) fn records(
    connection: &Connection,
    session: &Session,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<StoredRecord>, Failure> {
    let found = find_session(connection, session)?.ok_or_else(|| rules::not_found("records"))?;
    // No record has the revision 0.
    let after = after.unwrap_or_default();
    rows(connection, sql::RECORDS, (found.id, int(after.0), limit), |row| {
        let revision = Revision(number(row, 0)?);
        let summaries = summaries(connection, (session, found.id), revision)?;
        let undone_by = optional(row, 2)?.map(Revision);
        let body = session.record(revision, row.get(1)?)?;
        let id = session.open_id(revision, row.get(3)?)?;
        Ok(StoredRecord { revision, id, body, undone_by, summaries })
    })
}

fn summaries(
    connection: &Connection,
    (session, id): (&Session, i64),
    revision: Revision,
) -> Result<Vec<StoredSummary>, Failure> {
    rows(connection, sql::SUMMARIES, (id, int(revision.0)), |row| {
        let (key, tokens) = (Seq(number(row, 0)?), Tokens(row.get(1)?));
        let body = session.open(Place::summary(revision.0, key.0), row.get(4)?)?;
        Ok(StoredSummary { key, tokens, basis: row.get(2)?, counter: row.get(3)?, body })
    })
}

/// The result of the append with a token.
pub(super) fn appended(
    connection: &Connection,
    session: &Session,
    token: &AppendToken,
) -> Result<Option<Appended>, Failure> {
    let Some(row) = find_session(connection, session)? else { return Ok(None) };
    Ok(receipt(connection, row.id, token)?.map(|(_, appended)| appended))
}

pub(super) fn appends(
    connection: &Connection,
    session: &Session,
    from: Seq,
    limit: u32,
) -> Result<Vec<LoggedAppend>, Failure> {
    let session = find_session(connection, session)?.ok_or_else(|| rules::not_found("appends"))?;
    let mut statement = connection.prepare_cached(sql::APPENDS)?;
    let mut rows = statement.query((session.id, int(from.0), limit))?;
    let mut appends = Vec::new();
    while let Some(row) = rows.next()? {
        let token =
            String::from_utf8(row.get(0)?).map_err(|_| corrupt("appends: an append's token is no text"))?;
        let appended = Appended::new(Seq(number(row, 1)?), Seq(number(row, 2)?), Revision(number(row, 3)?));
        let follows = appends.last().is_none_or(|last: &LoggedAppend| last.appended.head == appended.first);
        if !follows {
            return Err(corrupt("appends: an append is missing; restore the file from a backup").into());
        }
        appends.push(LoggedAppend::new(AppendToken::new(token), appended, time(row, 4)?));
    }
    let is_last = u32::try_from(appends.len()).is_ok_and(|found| found < limit);
    if is_last && appends.last().map_or(from, |last| last.appended.head) < session.counters.head {
        return Err(corrupt("appends: the last append is missing; restore the file from a backup").into());
    }
    Ok(appends)
}

/// The digest of the messages that were appended under a token, and the answer to the append.
pub(super) fn receipt(
    connection: &Connection,
    session: i64,
    token: &AppendToken,
) -> rusqlite::Result<Option<(Vec<u8>, Appended)>> {
    let mut statement = connection.prepare_cached(sql::TOKEN)?;
    let seen = statement.query_row((session, token.as_str().as_bytes()), |row| {
        let appended = Appended::new(Seq(number(row, 1)?), Seq(number(row, 2)?), Revision(number(row, 3)?));
        Ok((row.get(0)?, appended))
    });
    seen.optional()
}

pub(super) fn prunes(
    connection: &Connection,
    session: &Session,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Pruned>, Failure> {
    let session = find_session(connection, session)?.ok_or_else(|| rules::not_found("prunes"))?;
    let after = int(after.unwrap_or_default().0);
    let mut statement = connection.prepare_cached(sql::PRUNES)?;
    Ok(statement.query_map((session.id, after, limit), read_pruned)?.collect::<Result<_, _>>()?)
}

pub(super) fn read_pruned(row: &Row<'_>) -> rusqlite::Result<Pruned> {
    let mut pruned = Pruned::new(Revision(number(row, 0)?), Revision(number(row, 1)?));
    (pruned.messages, pruned.summaries) = (number(row, 2)?, number(row, 3)?);
    Ok(pruned)
}

/// The saved state.
pub(super) fn state(connection: &Connection, session: &Session) -> Result<Option<KeptState>, Failure> {
    let row = find_session(connection, session)?.ok_or_else(|| rules::not_found("state"))?;
    kept_state(connection, session, row.id)
}

pub(super) fn kept_state(
    connection: &Connection,
    session: &Session,
    id: i64,
) -> Result<Option<KeptState>, Failure> {
    let mut statement = connection.prepare_cached(sql::STATE)?;
    let row = |row: &Row<'_>| Ok((number(row, 0)?, number(row, 1)?, row.get::<_, String>(2)?));
    let Some((revision, head, text)) = statement.query_row([id], row).optional()? else { return Ok(None) };
    let text = session.open(Place::state(revision), text)?;
    Ok(Some(KeptState::new(StateRevision(revision), Seq(head), text.into())))
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
    rows(connection, sql, (name.as_bytes(), limit), session_info)
}

pub(super) fn delete(connection: &Connection, session: &SessionId) -> Result<bool, Failure> {
    let texts =
        rows(connection, sql::TEXTS_OF_SESSION, [session.as_str().as_bytes()], |row| Ok(row.get(0)?))?;
    words::forget(connection, texts)?;
    let deleted = connection.prepare_cached(sql::DELETE_SESSION)?.execute([session.as_str().as_bytes()])?;
    Ok(deleted > 0)
}

pub(super) fn unanswered(
    connection: &Connection,
    session: &Session,
    id: i64,
) -> Result<Vec<UnansweredCall>, Failure> {
    let calls = rows(connection, sql::UNANSWERED, [id], |row| {
        let (anchor, turn, ordinal) = (Seq(number(row, 1)?), Turn(row.get(2)?), row.get(3)?);
        let id = call_id(row.get(0)?, session, (anchor, ordinal))?;
        Ok(UnansweredCall::new(Str::from(id), anchor, turn, ordinal))
    })?;
    let counted = connection.prepare_cached(sql::UNANSWERED_COUNT)?.query_row([id], |row| number(row, 0))?;
    match calls.len() as u64 == counted {
        true => Ok(calls),
        false => Err(corrupt("load: an unanswered call is missing; restore the file from a backup").into()),
    }
}

/// Decodes the stored id of an unanswered call.
pub(super) fn call_id(
    stored: Vec<u8>,
    session: &Session,
    (anchor, ordinal): (Seq, u32),
) -> Result<String, StoreError> {
    let id = String::from_utf8(stored).map_err(|_| corrupt("load: a call's id is no text"))?;
    session.open(Place::call(anchor.0, ordinal.into()), id)
}
