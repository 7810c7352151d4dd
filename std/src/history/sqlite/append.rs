//! Appending.

use epitome_core::{Head, OpenKind, Revision, Seq};
use rusqlite::{Connection, OptionalExtension};

use super::failure::Failure;
use super::read::call_id;
use super::row::{create_session, find_session, number, rows, save_session, time};
use super::session::Session;
use super::sql;
use crate::history::bodies::Bodies;
use crate::history::encryption::Place;
use crate::history::rows::{SessionRow, int, part_tokens_text, stored_time};
use crate::history::rules::{self, Anchor, Standing, corrupt};
use crate::history::{Append, AppendToken, Appended, Entry, LoggedAppend, StoreError, Timestamp};

/// An append with everything about it that can be made before its turn comes.
#[derive(Debug)]
pub(super) struct AppendJob {
    session: Session,
    token: AppendToken,
    head: Head,
    entries: Vec<Entry>,
    bodies: Bodies,
    time: Option<Timestamp>,
}

impl AppendJob {
    pub(super) fn new(session: &Session, append: &Append<'_>) -> Result<Self, StoreError> {
        let Append { token, head, entries, time } = *append;
        let (session, token) = (session.clone(), token.clone());
        let mut bodies = Bodies::of(entries)?;
        bodies.digest = session.seal.digest(bodies.digest);
        // At another head they are not written.
        for (offset, text) in (0..).zip(&mut bodies.texts) {
            let place = Place::message(head.0.saturating_add(offset));
            *text = session.close(place, core::mem::take(text))?;
        }
        Ok(Self { session, token, head, entries: entries.to_vec(), bodies, time })
    }

    pub(super) fn run(&self, connection: &Connection) -> Result<Appended, Failure> {
        let found = find_session(connection, &self.session)?;
        if let Some(row) = found
            && let Some(appended) = self.receipt(connection, row.id)?
        {
            return Ok(appended);
        }
        let first = found.map_or(Seq(0), |row| row.head);
        if self.head != first {
            return Err(rules::head_conflict(self.head, first).into());
        }
        let placement = rules::place(first, &self.entries, |anchor| match found {
            Some(row) => find_anchor(connection, row.id, anchor),
            None => Err(corrupt("append: a message of the log is missing")),
        })?;
        let mut row = match found {
            Some(row) => row,
            None => create_session(connection, &self.session)?,
        };
        self.insert(connection, row.id, first, &placement.hidden_by)?;

        row.append(self.entries.len(), &placement, self.time);
        save_session(connection, &row)?;
        let appended = Appended::new(first, row.head, row.revision);
        self.keep_receipt(connection, &row, appended)?;
        Ok(appended)
    }

    /// The answer given to this token before.
    fn receipt(&self, connection: &Connection, session: i64) -> Result<Option<Appended>, Failure> {
        match receipt(connection, session, &self.token)? {
            Some((digest, appended)) if digest == self.bodies.digest => Ok(Some(appended)),
            Some((_, appended)) => {
                let mut pruned = connection.prepare_cached(sql::PRUNED_IN)?;
                match pruned.exists((session, int(appended.first.0), int(appended.head.0)))? {
                    true => Ok(Some(appended)),
                    false => Err(rules::token_reused().into()),
                }
            }
            None => Ok(None),
        }
    }

    fn keep_receipt(
        &self,
        connection: &Connection,
        row: &SessionRow,
        appended: Appended,
    ) -> Result<(), Failure> {
        connection.prepare_cached(sql::NEW_TOKEN)?.execute((
            row.id,
            self.token.as_str().as_bytes(),
            self.bodies.digest,
            int(appended.first.0),
            int(appended.head.0),
            int(appended.revision.0),
            stored_time(row.appended),
        ))?;
        Ok(())
    }

    fn insert(
        &self,
        connection: &Connection,
        session: i64,
        first: Seq,
        hidden_by: &[Option<Revision>],
    ) -> Result<(), Failure> {
        let mut message = connection.prepare_cached(sql::NEW_MESSAGE)?;
        let mut text = connection.prepare_cached(sql::NEW_BODY)?;
        for (((seq, entry), body), hidden_by) in
            (int(first.0)..).zip(&self.entries).zip(&self.bodies.texts).zip(hidden_by)
        {
            message.execute((
                session,
                seq,
                int(entry.anchor.0),
                entry.turn.0,
                entry.count.tokens.0,
                entry.count.basis.as_str(),
                entry.count.counter.as_str(),
                entry.late,
                entry.orphan,
                hidden_by.map(|revision| int(revision.0)),
                Standing::of(&entry.message).number(),
            ))?;
            text.execute((session, seq, body, part_tokens_text(&entry.part_tokens)))?;
            if hidden_by.is_some() {
                settle(connection, (&self.session, session), entry)?;
            }
        }
        Ok(())
    }
}

/// What was appended under a token.
pub(super) fn find(
    connection: &Connection,
    session: &Session,
    token: &AppendToken,
) -> Result<Option<Appended>, Failure> {
    let Some(row) = find_session(connection, session)? else { return Ok(None) };
    Ok(receipt(connection, row.id, token)?.map(|(_, appended)| appended))
}

pub(super) fn list(
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
    if is_last && appends.last().map_or(from, |last| last.appended.head) < session.head {
        return Err(corrupt("appends: the last append is missing; restore the file from a backup").into());
    }
    Ok(appends)
}

/// The digest of what was appended under a token, and the answer.
fn receipt(
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

/// Takes the call that a hidden entry answers off the list of the unanswered ones: the first with its id.
fn settle(connection: &Connection, (session, row): (&Session, i64), entry: &Entry) -> Result<(), Failure> {
    let Some((kind, id)) = entry.answers() else { return Ok(()) };
    let group = (row, int(entry.anchor.0), kind == OpenKind::Approval);
    let calls = rows(connection, sql::UNANSWERED_OF, group, |row| {
        let ordinal = row.get(0)?;
        Ok((ordinal, call_id(row.get(1)?, session, (entry.anchor, ordinal))?))
    })?;
    if let Some((ordinal, _)) = calls.iter().find(|(_, call)| call == id) {
        connection.prepare_cached(sql::ANSWERED)?.execute((row, int(entry.anchor.0), ordinal))?;
    }
    Ok(())
}

fn find_anchor(connection: &Connection, session: i64, seq: Seq) -> Result<Anchor, StoreError> {
    let find = || -> rusqlite::Result<Option<Anchor>> {
        let mut statement = connection.prepare_cached(sql::ANCHOR)?;
        let anchor = statement.query_row((session, int(seq.0)), |row| {
            let hidden_by = row.get::<_, Option<i64>>(1)?.map(|_| number(row, 1)).transpose()?;
            Ok(Anchor { anchor: Seq(number(row, 0)?), hidden_by: hidden_by.map(Revision) })
        });
        anchor.optional()
    };
    let found = find().map_err(|error| Failure::from(error).of("append"))?;
    found.ok_or_else(|| corrupt("append: a message of the log is missing"))
}
