//! Committing a compaction.

use epitome_core::attribution::SeqRange;
use epitome_core::{Revision, Seq, Tokens};
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::Failure;
use super::read::check_counts;
use super::row::{self, find_session, number, rows, save_session};
use super::session::Session;
use super::sql;
use crate::history::bodies::RecordBodies;
use crate::history::encryption::Place;
use crate::history::rows::{SessionRow, count, covers, covers_text, int, shortened, standing};
use crate::history::rules::{self, Standing, VisibleMessage, VisibleSummary, corrupt};
use crate::history::{CompactionRecord, MessageEdit, RecordId, StoreError, TokenCount};

/// A commit with everything about it that can be made before its turn comes.
#[derive(Debug)]
pub(super) struct CommitJob {
    session: Session,
    record: CompactionRecord,
    bodies: RecordBodies,
}

impl CommitJob {
    pub(super) fn new(session: &Session, record: &CompactionRecord) -> Result<Self, StoreError> {
        let mut bodies = RecordBodies::of(record)?;
        // At another revision they are not written.
        let revision = record.parent.next().0;
        for (summary, text) in record.summaries.iter().zip(&mut bodies.summaries) {
            *text = session.close(Place::summary(revision, summary.key.0), core::mem::take(text))?;
        }
        bodies.text = session.close(Place::record(revision), bodies.text)?;
        Ok(Self { session: session.clone(), record: record.clone(), bodies })
    }

    pub(super) fn run(&self, connection: &Connection) -> Result<Revision, Failure> {
        let found = find_session(connection, &self.session)?;
        let mut row = found.ok_or_else(|| rules::not_found("commit"))?;
        let known = record_at(connection, (&self.session, row.id), self.record.parent.next())?;
        if let Some(made) = rules::check_commit(&self.record, self.bodies.id, known, row.revision, row.head)?
        {
            return Ok(made);
        }
        let messages = rows(connection, sql::VISIBLE_MESSAGES, [row.id], visible_message)?;
        let summaries = rows(connection, sql::VISIBLE_SUMMARIES, [row.id], visible_summary)?;
        let tokens = messages.iter().map(|it| it.tokens).chain(summaries.iter().map(|it| it.tokens));
        check_counts(&row, (messages.len().saturating_add(summaries.len()), tokens))?;
        let edit = rules::edit(&self.record, &messages, &summaries)?;
        let session = (&self.session, row.id);
        let stand_ins = self.record.edits.iter().map(|edit| shorten(connection, session, edit));
        let stand_ins = stand_ins.collect::<Result<Vec<_>, _>>()?;
        rules::check_groups(&self.record, &messages)?;

        row.revision = row.revision.next();
        row.live_messages = edit.live_messages;
        row.live_tokens = edit.live_tokens;
        hide(connection, &row, &self.record.hides, &edit)?;
        insert_edits(connection, (session, row.revision), &self.record.edits, &stand_ins)?;
        self.show(connection, &row)?;
        save_session(connection, &row)?;
        Ok(row.revision)
    }

    fn show(&self, connection: &Connection, row: &SessionRow) -> Result<(), Failure> {
        let revision = int(row.revision.0);
        let mut insert = connection.prepare_cached(sql::NEW_SUMMARY)?;
        for (summary, body) in self.record.summaries.iter().zip(&self.bodies.summaries) {
            let key = int(summary.key.0);
            // A summary is in the turn of the first message that it covers.
            let turn: u32 =
                connection.prepare_cached(sql::TURN)?.query_row((row.id, key), |row| row.get(0))?;
            insert.execute((
                row.id,
                revision,
                key,
                turn,
                summary.count.tokens.0,
                summary.count.basis.as_str(),
                summary.count.counter.as_str(),
                covers_text(&summary.message.attribution().derived_from)?,
                body,
                Standing::of(&summary.message).number(),
            ))?;
        }
        for call in &self.record.unanswered {
            let place = Place::call(call.anchor.0, call.ordinal.into());
            connection.prepare_cached(sql::NEW_UNANSWERED)?.execute((
                row.id,
                int(call.anchor.0),
                call.ordinal,
                call.turn.0,
                self.session.close(place, call.id.to_string())?.into_bytes(),
            ))?;
        }
        let id = self.session.close_id(row.revision, self.bodies.id)?;
        connection.prepare_cached(sql::NEW_RECORD)?.execute((row.id, revision, id, &self.bodies.text))?;
        Ok(())
    }
}

fn record_at(
    connection: &Connection,
    (session, id): (&Session, i64),
    revision: Revision,
) -> Result<Option<(Revision, RecordId)>, Failure> {
    let mut record = connection.prepare_cached(sql::RECORD)?;
    let stored = record.query_row((id, int(revision.0)), |row| row.get(0)).optional()?;
    Ok(stored.map(|stored| session.open_id(revision, stored)).transpose()?.map(|id| (revision, id)))
}

fn hide(
    connection: &Connection,
    row: &SessionRow,
    ranges: &[SeqRange],
    edit: &rules::Edit,
) -> Result<(), Failure> {
    let revision = int(row.revision.0);
    let mut hidden = 0_usize;
    let mut messages = connection.prepare_cached(sql::HIDE_MESSAGES)?;
    for range in ranges {
        let changed = messages.execute((row.id, int(range.first.0), int(range.last.0), revision))?;
        hidden = hidden.saturating_add(changed);
    }
    let mut summary = connection.prepare_cached(sql::HIDE_SUMMARY)?;
    for key in &edit.summaries {
        hidden = hidden.saturating_add(summary.execute((row.id, int(key.0), revision))?);
    }
    // The index of the visible and the rows say different things if this does not hold.
    if hidden == edit.messages.len().saturating_add(edit.summaries.len()) {
        Ok(())
    } else {
        Err(corrupt("commit: the index of the visible messages is damaged").into())
    }
}

/// What stands in place of a message's parts after `edit`, over what stands there already, as it is stored.
fn shorten(
    connection: &Connection,
    (session, id): (&Session, i64),
    edit: &MessageEdit,
) -> Result<String, Failure> {
    let mut statement = connection.prepare_cached(sql::EDITED)?;
    let mut rows = statement.query((id, int(edit.seq.0)))?;
    let lost = || corrupt(format!("commit: the text of message {} is missing", edit.seq));
    let found = rows.next()?.ok_or_else(lost)?;
    let body = session.message(edit.seq, found.get::<_, Option<String>>(3)?.ok_or_else(lost)?)?;
    shortened(edit, &body, row::edit(found, 4, (session, edit.seq))?, || {
        let basis: String = found.get(1)?;
        Ok(count(Tokens(found.get(0)?), &basis, found.get(2)?)?)
    })
}

fn insert_edits(
    connection: &Connection,
    (session, revision): ((&Session, i64), Revision),
    edits: &[MessageEdit],
    stand_ins: &[String],
) -> Result<(), Failure> {
    for (edit, stand_ins) in edits.iter().zip(stand_ins) {
        insert_edit(connection, session, edit.seq, revision, &edit.count, stand_ins)?;
    }
    Ok(())
}

/// Keeps what stands in place of a message's parts since `revision`.
pub(super) fn insert_edit(
    connection: &Connection,
    (session, id): (&Session, i64),
    seq: Seq,
    revision: Revision,
    count: &TokenCount,
    stand_ins: &str,
) -> Result<(), Failure> {
    connection.prepare_cached(sql::NEW_EDIT)?.execute((
        id,
        int(seq.0),
        int(revision.0),
        count.tokens.0,
        count.basis.as_str(),
        count.counter.as_str(),
        session.close(Place::stand_ins(seq.0), stand_ins.to_owned())?,
    ))?;
    Ok(())
}

pub(super) fn visible_message(row: &Row<'_>) -> Result<VisibleMessage, Failure> {
    let (seq, anchor) = (Seq(number(row, 0)?), Seq(number(row, 1)?));
    Ok(VisibleMessage { seq, anchor, tokens: Tokens(row.get(2)?), standing: standing(row.get(3)?)? })
}

pub(super) fn visible_summary(row: &Row<'_>) -> Result<VisibleSummary, Failure> {
    let text: String = row.get(2)?;
    let (tokens, standing) = (Tokens(row.get(1)?), standing(row.get(3)?)?);
    Ok(VisibleSummary { key: Seq(number(row, 0)?), covers: covers(&text)?, tokens, standing })
}
