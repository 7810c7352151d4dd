//! Committing a compaction.

use epitome_core::attribution::SeqRange;
use epitome_core::{Revision, Seq, Tokens};
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::{Failure, corrupt};
use super::row::{SessionRow, covers, int, number};
use super::sql;
use crate::history::rules::{self, VisibleMessage, VisibleSummary};
use crate::history::{CompactionRecord, RecordId, SessionId, StoreError};
use crate::wire::stored;

/// A commit with everything about it that can be made before its turn comes.
#[derive(Debug)]
pub(super) struct CommitJob {
    session: SessionId,
    record: CompactionRecord,
    id: RecordId,
    /// The record without its summaries, which have rows of their own.
    body: String,
    summaries: Vec<String>,
}

impl CommitJob {
    pub(super) fn new(session: &SessionId, record: &CompactionRecord) -> Result<Self, StoreError> {
        let id = stored::record_id(record).map_err(rules::not_storable)?;
        let summaries = record
            .summaries
            .iter()
            .map(|summary| stored::encode(&summary.message).map_err(rules::not_storable))
            .collect::<Result<Vec<_>, _>>()?;
        let mut bare = record.clone();
        bare.summaries.clear();
        let body = stored::encode_record(&bare).map_err(rules::not_storable)?;
        Ok(Self { session: session.clone(), record: record.clone(), id, body, summaries })
    }

    pub(super) fn run(&self, connection: &Connection) -> Result<Revision, Failure> {
        let found = SessionRow::find(connection, &self.session)?;
        let mut row = found.ok_or_else(|| rules::not_found("commit"))?;
        let known = record_at(connection, row.id, self.record.parent.next())?;
        if let Some(made) = rules::check_commit(&self.record, self.id, known, row.revision, row.head)? {
            return Ok(made);
        }
        let messages = rows(connection, sql::VISIBLE_MESSAGES, row.id, visible_message)?;
        let summaries = rows(connection, sql::VISIBLE_SUMMARIES, row.id, visible_summary)?;
        let edit = rules::edit(&self.record, &messages, &summaries)?;

        row.revision = row.revision.next();
        row.live_messages = edit.live_messages;
        row.live_tokens = edit.live_tokens;
        hide(connection, &row, &self.record.hides, &edit)?;
        self.show(connection, &row)?;
        row.save(connection)?;
        Ok(row.revision)
    }

    fn show(&self, connection: &Connection, row: &SessionRow) -> Result<(), Failure> {
        let revision = int(row.revision.0);
        let mut insert = connection.prepare_cached(sql::NEW_SUMMARY)?;
        for (summary, body) in self.record.summaries.iter().zip(&self.summaries) {
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
            ))?;
        }
        for call in &self.record.unanswered {
            connection.prepare_cached(sql::NEW_UNANSWERED)?.execute((
                row.id,
                int(call.anchor.0),
                call.ordinal,
                call.turn.0,
                call.id.as_bytes(),
            ))?;
        }
        let id = self.id.as_bytes().as_slice();
        connection.prepare_cached(sql::NEW_RECORD)?.execute((row.id, revision, id, &self.body))?;
        Ok(())
    }
}

fn record_at(
    connection: &Connection,
    session: i64,
    revision: Revision,
) -> rusqlite::Result<Option<(Revision, RecordId)>> {
    connection
        .prepare_cached(sql::RECORD)?
        .query_row((session, int(revision.0)), |row| Ok((revision, RecordId::from_bytes(row.get(0)?))))
        .optional()
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

fn rows<T>(
    connection: &Connection,
    sql: &str,
    session: i64,
    read: impl Fn(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn visible_message(row: &Row<'_>) -> Result<VisibleMessage, Failure> {
    let (seq, anchor) = (Seq(number(row, 0)?), Seq(number(row, 1)?));
    Ok(VisibleMessage { seq, anchor, tokens: Tokens(row.get(2)?) })
}

fn visible_summary(row: &Row<'_>) -> Result<VisibleSummary, Failure> {
    let text: String = row.get(2)?;
    Ok(VisibleSummary { key: Seq(number(row, 0)?), covers: covers(&text)?, tokens: Tokens(row.get(1)?) })
}

/// `[[first,last],..]`
fn covers_text(ranges: &[SeqRange]) -> Result<String, Failure> {
    let pairs: Vec<[u64; 2]> = ranges.iter().map(|range| [range.first.0, range.last.0]).collect();
    Ok(serde_json::to_string(&pairs).map_err(|_| rules::invalid("commit: the coverage cannot be written"))?)
}
