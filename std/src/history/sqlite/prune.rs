//! Deleting what is hidden.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::Failure;
use super::row::{find_session, number, rows, save_session};
use super::session::Session;
use super::sql;
use crate::history::Pruned;
use crate::history::bodies::record;
use crate::history::encryption::Place;
use crate::history::rows::{int, pruned as pruned_body};
use crate::history::rules::{self, corrupt};
use crate::wire::stored;

pub(super) fn prune(
    connection: &Connection,
    session: &Session,
    through: Revision,
) -> Result<Pruned, Failure> {
    let found = find_session(connection, session)?;
    let mut row = found.ok_or_else(|| rules::not_found("prune"))?;
    rules::check_prune(through, row.revision)?;
    let mut pruned = Pruned::new(row.revision.next(), through);
    pruned.messages = prune_messages(connection, (session, row.id), pruned)?;
    pruned.summaries = prune_summaries(connection, (session, row.id), pruned)?;
    if pruned.messages == 0 && pruned.summaries == 0 {
        let before = connection
            .prepare_cached(sql::PRUNED_THROUGH)?
            .query_row((row.id, int(through.0)), read)
            .optional()?;
        return Ok(rules::pruned_before(before.into_iter(), through, row.revision));
    }
    prune_records(connection, (session, row.id))?;
    row.revision = pruned.revision;
    save_session(connection, &row)?;
    connection.prepare_cached(sql::NEW_PRUNE)?.execute((
        row.id,
        int(pruned.revision.0),
        int(through.0),
        int(pruned.messages),
        int(pruned.summaries),
    ))?;
    Ok(pruned)
}

fn prune_messages(
    connection: &Connection,
    (session, id): (&Session, i64),
    pruned: Pruned,
) -> Result<u64, Failure> {
    let due = (id, int(pruned.through.0));
    let found = rows(connection, sql::PRUNABLE_MESSAGES, due, |row| Ok(Seq(number(row, 0)?)))?;
    let mut body = connection.prepare_cached(sql::BODY)?;
    for seq in &found {
        let at = int(seq.0);
        let text: Option<String> = body.query_row((id, at), |row| row.get(0)).optional()?;
        let text = text.ok_or_else(|| corrupt(format!("the text of message {seq} is missing")))?;
        let left = pruned_body(&session.message(*seq, text)?)?;
        let left = session.close(Place::message(seq.0), left)?;
        let none = session.close(Place::stand_ins(seq.0), "[]".to_owned())?;
        connection.prepare_cached(sql::PRUNE_BODY)?.execute((id, at, left))?;
        connection.prepare_cached(sql::PRUNE_MESSAGE)?.execute((id, at, int(pruned.revision.0)))?;
        connection.prepare_cached(sql::PRUNE_EDIT)?.execute((id, at, none))?;
    }
    Ok(found.len() as u64)
}

fn prune_summaries(
    connection: &Connection,
    (session, id): (&Session, i64),
    pruned: Pruned,
) -> Result<u64, Failure> {
    let found = rows(connection, sql::PRUNABLE_SUMMARIES, (id, int(pruned.through.0)), |row| {
        let (revision, key) = (number(row, 0)?, number(row, 1)?);
        let place = Place::summary(revision, key);
        let left = pruned_body(&session.open(place, row.get(2)?)?)?;
        Ok((int(revision), int(key), session.close(place, left)?))
    })?;
    for (revision, key, left) in &found {
        let by = int(pruned.revision.0);
        connection.prepare_cached(sql::PRUNE_SUMMARY)?.execute((id, revision, key, by, left))?;
    }
    Ok(found.len() as u64)
}

/// Deletes the texts that stood in the pruned messages.
fn prune_records(connection: &Connection, (session, id): (&Session, i64)) -> Result<(), Failure> {
    let mut records = connection.prepare_cached(sql::RECORDS)?;
    let mut after = 0_i64;
    // One after another: what is read is written.
    while let Some((revision, body)) = records
        .query_row((id, after, 1), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?
    {
        after = revision;
        let made = Revision(u64::try_from(revision).unwrap_or_default());
        let record = record(made, &session.record(made, body)?)?;
        let mut is_pruned = connection.prepare_cached(sql::IS_PRUNED)?;
        let mut pruned = BTreeSet::new();
        for edit in &record.edits {
            if is_pruned.exists((id, int(edit.seq.0)))? {
                pruned.insert(edit.seq);
            }
        }
        if let Some(bare) = rules::bare_record(&record, |seq: Seq| pruned.contains(&seq), |_| false) {
            let body = stored::encode_record(&bare).map_err(rules::not_storable)?;
            let body = session.close(Place::record(made.0), body)?;
            connection.prepare_cached(sql::BARE_RECORD)?.execute((id, revision, body))?;
        }
    }
    Ok(())
}

pub(super) fn list(
    connection: &Connection,
    session: &Session,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Pruned>, Failure> {
    let session = find_session(connection, session)?.ok_or_else(|| rules::not_found("prunes"))?;
    let after = int(after.unwrap_or_default().0);
    let mut statement = connection.prepare_cached(sql::PRUNES)?;
    Ok(statement.query_map((session.id, after, limit), read)?.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Pruned> {
    let mut pruned = Pruned::new(Revision(number(row, 0)?), Revision(number(row, 1)?));
    (pruned.messages, pruned.summaries) = (number(row, 2)?, number(row, 3)?);
    Ok(pruned)
}
