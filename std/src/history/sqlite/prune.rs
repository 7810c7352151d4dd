//! Deleting what is hidden.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::Failure;
use super::row::{find_session, number, save_session};
use super::sql;
use crate::history::bodies::record;
use crate::history::rows::{self, int};
use crate::history::rules::{self, corrupt};
use crate::history::{Pruned, SessionId};
use crate::wire::stored;

pub(super) fn prune(
    connection: &Connection,
    session: &SessionId,
    through: Revision,
) -> Result<Pruned, Failure> {
    let found = find_session(connection, session)?;
    let mut row = found.ok_or_else(|| rules::not_found("prune"))?;
    rules::check_prune(through, row.revision)?;
    let mut pruned = Pruned::new(row.revision.next(), through);
    pruned.messages = prune_messages(connection, row.id, pruned)?;
    pruned.summaries = prune_summaries(connection, row.id, pruned)?;
    if pruned.messages == 0 && pruned.summaries == 0 {
        let before = connection
            .prepare_cached(sql::PRUNED_THROUGH)?
            .query_row((row.id, int(through.0)), read)
            .optional()?;
        return Ok(rules::pruned_before(before.into_iter(), through, row.revision));
    }
    prune_records(connection, row.id)?;
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

fn prune_messages(connection: &Connection, session: i64, pruned: Pruned) -> Result<u64, Failure> {
    let found: Vec<i64> = connection
        .prepare_cached(sql::PRUNABLE_MESSAGES)?
        .query_map((session, int(pruned.through.0)), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut body = connection.prepare_cached(sql::BODY)?;
    for seq in &found {
        let text: Option<String> = body.query_row((session, seq), |row| row.get(0)).optional()?;
        let text = text.ok_or_else(|| corrupt(format!("the text of message {seq} is missing")))?;
        connection.prepare_cached(sql::PRUNE_BODY)?.execute((session, seq, rows::pruned(&text)?))?;
        connection.prepare_cached(sql::PRUNE_MESSAGE)?.execute((session, seq, int(pruned.revision.0)))?;
        connection.prepare_cached(sql::PRUNE_EDIT)?.execute((session, seq))?;
    }
    Ok(found.len() as u64)
}

fn prune_summaries(connection: &Connection, session: i64, pruned: Pruned) -> Result<u64, Failure> {
    let found: Vec<(i64, i64, String)> = connection
        .prepare_cached(sql::PRUNABLE_SUMMARIES)?
        .query_map((session, int(pruned.through.0)), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    for (revision, key, text) in &found {
        let (by, text) = (int(pruned.revision.0), rows::pruned(text)?);
        connection.prepare_cached(sql::PRUNE_SUMMARY)?.execute((session, revision, key, by, text))?;
    }
    Ok(found.len() as u64)
}

/// Deletes the texts that stood in the pruned messages.
fn prune_records(connection: &Connection, session: i64) -> Result<(), Failure> {
    let mut records = connection.prepare_cached(sql::RECORDS)?;
    let mut after = 0_i64;
    // One after another: what is read is written.
    while let Some((revision, body)) = records
        .query_row((session, after, 1), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?
    {
        after = revision;
        let record = record(Revision(u64::try_from(revision).unwrap_or_default()), &body)?;
        let mut is_pruned = connection.prepare_cached(sql::IS_PRUNED)?;
        let mut pruned = BTreeSet::new();
        for edit in &record.edits {
            if is_pruned.exists((session, int(edit.seq.0)))? {
                pruned.insert(edit.seq);
            }
        }
        if let Some(bare) = rules::bare_record(&record, |seq: Seq| pruned.contains(&seq), |_| false) {
            let body = stored::encode_record(&bare).map_err(rules::not_storable)?;
            connection.prepare_cached(sql::BARE_RECORD)?.execute((session, revision, body))?;
        }
    }
    Ok(())
}

pub(super) fn list(
    connection: &Connection,
    session: &SessionId,
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
