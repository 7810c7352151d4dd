//! Undoing compactions.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use rusqlite::{Connection, OptionalExtension};

use super::commit::{insert_edit, visible_message, visible_summary};
use super::failure::Failure;
use super::row::{find_session, number, optional, rows, save_session};
use super::session::Session;
use super::sql;
use crate::history::CompactionRecord;
use crate::history::bodies::record;
use crate::history::rows::{SessionRow, int};
use crate::history::rules::{self, Undoing, corrupt};
use crate::wire::stored;

pub(super) fn uncompact(
    connection: &Connection,
    session: &Session,
    made: Revision,
) -> Result<Revision, Failure> {
    let found = find_session(connection, session)?;
    let mut row = found.ok_or_else(|| rules::not_found("uncompact"))?;
    let known = connection
        .prepare_cached(sql::MADE)?
        .query_row((row.id, int(made.0)), |row| {
            Ok((optional(row, 0)?.map(Revision), row.get::<_, String>(1)?))
        })
        .optional()?;
    let latest = connection
        .prepare_cached(sql::LATEST_HELD)?
        .query_row([row.id], |row| Ok(Revision(number(row, 0)?)))
        .optional()?;
    let found = known.as_ref().map(|(undone_by, _)| *undone_by);
    if let Some(undone_by) = rules::check_uncompact(made, Undoing { found, latest })? {
        return Ok(undone_by);
    }
    let (_, body) = known.ok_or_else(|| corrupt(format!("the record of {made} is missing")))?;
    let record = record(made, &session.record(made, body)?)?;
    let since = connection.prepare_cached(sql::PRUNED_SINCE)?.exists((row.id, int(made.0)))?;
    rules::nothing_pruned(&record, made, since)?;

    row.revision = row.revision.next();
    show_again(connection, &row, made)?;
    restore_edits(connection, (session, row.id), made, &record)?;
    connection.prepare_cached(sql::UNDO)?.execute((row.id, int(made.0), int(row.revision.0)))?;
    let messages = rows(connection, sql::VISIBLE_MESSAGES, [row.id], visible_message)?;
    let summaries = rows(connection, sql::VISIBLE_SUMMARIES, [row.id], visible_summary)?;
    (row.live_messages, row.live_tokens) = rules::live(&messages, &summaries);
    save_session(connection, &row)?;
    Ok(row.revision)
}

/// Shows everything that `made` has hidden, and its own summaries no more.
fn show_again(connection: &Connection, row: &SessionRow, made: Revision) -> Result<(), Failure> {
    let (session, made) = (row.id, int(made.0));
    connection.prepare_cached(sql::FORGET_UNANSWERED)?.execute((session, made))?;
    connection.prepare_cached(sql::WITHDRAW)?.execute((session, made, int(row.revision.0)))?;
    connection.prepare_cached(sql::SHOW_MESSAGES)?.execute((session, made))?;
    connection.prepare_cached(sql::SHOW_SUMMARIES)?.execute((session, made))?;
    Ok(())
}

/// Puts what stood in place of parts before `record` back, from the records that hold.
fn restore_edits(
    connection: &Connection,
    (session, id): (&Session, i64),
    made: Revision,
    record: &CompactionRecord,
) -> Result<(), Failure> {
    let edited: BTreeSet<Seq> = record.edits.iter().map(|edit| edit.seq).collect();
    if edited.is_empty() {
        return Ok(());
    }
    let mut held = Vec::new();
    let mut statement = connection.prepare_cached(sql::HELD_BEFORE)?;
    let mut found = statement.query((id, int(made.0)))?;
    while let Some(row) = found.next()? {
        let (revision, body) = (Revision(number(row, 0)?), row.get::<_, String>(1)?);
        let body = session.record(revision, body)?;
        let edits = self::record(revision, &body)?.edits.into_iter();
        held.extend(edits.filter(|edit| edited.contains(&edit.seq)).map(|edit| (revision, edit)));
    }
    let mut restored = rules::restored_edits(&edited, held.iter().map(|(revision, edit)| (*revision, edit)));
    for seq in edited {
        match restored.remove(&seq) {
            Some(it) => {
                let stand_ins = stored::encode_stand_ins(&it.stand_ins).map_err(rules::not_storable)?;
                insert_edit(connection, (session, id), seq, it.by, &it.count, &stand_ins)?;
            }
            None => {
                connection.prepare_cached(sql::DROP_EDIT)?.execute((id, int(seq.0)))?;
            }
        }
    }
    Ok(())
}
