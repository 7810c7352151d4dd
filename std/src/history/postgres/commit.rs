//! Committing a compaction.

use std::collections::BTreeMap;

use epitome_core::{Revision, Seq, Tokens};
use futures::future::{try_join, try_join_all, try_join3};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease, Parameters};
use super::row::{self, changed_one, digest, edit, number, number32, save_runs, save_session, text};
use super::runs::Runs;
use super::sql;
use crate::history::bodies::RecordBodies;
use crate::history::rows::{self, SessionRow, count, covers, covers_text, int};
use crate::history::rules::{self, Standing, VisibleMessage, VisibleSummary, corrupt};
use crate::history::{CompactionRecord, MessageEdit, RecordId, SessionId, StoreError, TokenCount};

/// A commit with everything about it that can be made before its turn comes.
#[derive(Debug)]
pub(super) struct CommitJob {
    session: SessionId,
    record: CompactionRecord,
    bodies: RecordBodies,
}

impl CommitJob {
    pub(super) fn new(session: &SessionId, record: &CompactionRecord) -> Result<Self, StoreError> {
        Ok(Self { session: session.clone(), record: record.clone(), bodies: RecordBodies::of(record)? })
    }
}

impl Job for CommitJob {
    const NAME: &'static str = "commit";
    type Answer = Revision;

    async fn run(&self, lease: &Lease<'_>) -> Result<Revision, Failure> {
        let (found, known) = self.find(lease).await?;
        let (mut row, runs) = found.ok_or_else(|| rules::not_found("commit"))?;
        if let Some(made) = rules::check_commit(
            &self.record,
            self.bodies.id,
            known,
            row.counters.revision,
            row.counters.head,
        )? {
            return Ok(made);
        }
        let (messages, summaries) = visible(lease, row.id, &runs).await?;
        let edit = rules::edit(&self.record, &messages, &summaries)?;
        let stand_ins = shorten(lease, row.id, &self.record.edits).await?;
        rules::check_groups(&self.record, &messages)?;

        row.counters.revision = row.counters.revision.next();
        row.counters.live_messages = edit.live_messages;
        row.counters.live_tokens = edit.live_tokens;
        hide(lease, &row, &edit).await?;
        let edits = self.record.edits.iter().zip(stand_ins).map(|(edit, stand_ins)| {
            write_edit(lease, row.id, (edit.seq, row.counters.revision, &edit.count, stand_ins))
        });
        let shown = try_join(self.show(lease, &row), try_join_all(edits));
        let left = messages.iter().map(|message| message.seq);
        let left = left.filter(|seq| edit.messages.binary_search(seq).is_err());
        let runs = Runs::around(left, row.counters.head);
        let saved = try_join(save_session(lease, &row), save_runs(lease, &row, &runs));
        try_join3(shown, self.keep(lease, &row), saved).await?;
        lease.commit().await?;
        Ok(row.counters.revision)
    }
}

impl CommitJob {
    /// The session, and the record that made the revision after the one that this was made from.
    async fn find(
        &self,
        lease: &Lease<'_>,
    ) -> Result<(Option<(SessionRow, Runs)>, Option<(Revision, RecordId)>), Failure> {
        let [lock, record] = lease.prepare([sql::LOCK_SESSION, sql::RECORD]).await?;
        let name = digest(self.session.as_str());
        let (name, made) = (name.as_slice(), self.record.parent.next());
        let revision = int(made.0);
        let (one, both): ([&(dyn ToSql + Sync); 1], [&(dyn ToSql + Sync); 2]) = ([&name], [&name, &revision]);
        let begun = try_join(lease.begin(Access::Write), lease.row(&lock, &one));
        let ((_, found), known) = try_join(begun, lease.row(&record, &both)).await?;
        let known = known.as_ref().map(|row| Ok::<_, Failure>((made, record_id(row, 0)?))).transpose()?;
        let found = found.as_ref().map(|found| Ok::<_, Failure>((row::session(found)?, row::runs(found)?)));
        Ok((found.transpose()?, known))
    }

    /// Shows the summaries.
    async fn show(&self, lease: &Lease<'_>, row: &SessionRow) -> Result<(), Failure> {
        let revision = int(row.counters.revision.0);
        for (summary, body) in self.record.summaries.iter().zip(&self.bodies.summaries) {
            let [insert] = lease.prepare([sql::NEW_SUMMARY]).await?;
            let (key, tokens) = (int(summary.key.0), int(summary.count.tokens.as_u64()));
            let (basis, counter) = (summary.count.basis.as_str(), summary.count.counter.as_bytes());
            let covers = covers_text(&summary.message.attribution().derived_from)?;
            let standing = i64::from(Standing::of(&summary.message).number());
            let columns: [&(dyn ToSql + Sync); 9] =
                [&row.id, &revision, &key, &tokens, &basis, &counter, &covers, body, &standing];
            changed_one(lease.execute(&insert, &columns).await?)?;
        }
        Ok(())
    }

    /// Keeps the record, and the calls that it hides unanswered.
    async fn keep(&self, lease: &Lease<'_>, row: &SessionRow) -> Result<(), Failure> {
        // Of several for one call the last is meant; one statement may change a row only once.
        let calls: BTreeMap<_, _> =
            self.record.unanswered.iter().map(|call| ((call.anchor, call.ordinal), call)).collect();
        if !calls.is_empty() {
            let [insert] = lease.prepare([sql::NEW_UNANSWERED]).await?;
            let anchors: Vec<i64> = calls.values().map(|call| int(call.anchor.0)).collect();
            let ordinals: Vec<i64> = calls.values().map(|call| i64::from(call.ordinal)).collect();
            let turns: Vec<i64> = calls.values().map(|call| i64::from(call.turn.0)).collect();
            let ids: Vec<&[u8]> = calls.values().map(|call| call.id.as_bytes()).collect();
            lease.execute(&insert, &[&row.id, &anchors, &ordinals, &turns, &ids]).await?;
        }
        let [insert] = lease.prepare([sql::NEW_RECORD]).await?;
        let id = self.bodies.id.as_bytes().as_slice();
        lease.execute(&insert, &[&row.id, &int(row.counters.revision.0), &id, &self.bodies.text]).await?;
        Ok(())
    }
}

pub(super) fn record_id(row: &Row, column: usize) -> Result<RecordId, Failure> {
    let bytes: &[u8] = row.try_get(column)?;
    let id = bytes.try_into().map_err(|_| corrupt("commit: the id of a record is damaged"))?;
    Ok(RecordId::from_bytes(id))
}

/// What is visible, in the order of keys: messages in these runs.
pub(super) async fn visible(
    lease: &Lease<'_>,
    session: i64,
    runs: &Runs,
) -> Result<(Vec<VisibleMessage>, Vec<VisibleSummary>), Failure> {
    let [messages, summaries] = lease.prepare([sql::VISIBLE_MESSAGES, sql::VISIBLE_SUMMARIES]).await?;
    let (low, high) = runs.columns();
    let (ranges, one): ([&(dyn ToSql + Sync); 3], [&(dyn ToSql + Sync); 1]) =
        ([&session, low, high], [&session]);
    let (messages, summaries) =
        try_join(lease.rows(&messages, &ranges), lease.rows(&summaries, &one)).await?;
    let message = |row: &Row| {
        let (seq, anchor) = (Seq(number(row, 0)?), Seq(number(row, 1)?));
        let (tokens, standing) = (Tokens(number32(row, 2)?), rows::standing(row.try_get(3)?)?);
        Ok(VisibleMessage { seq, anchor, tokens, standing })
    };
    let summary = |row: &Row| {
        let covers = covers(row.try_get(2)?)?;
        let (tokens, standing) = (Tokens(number32(row, 1)?), rows::standing(row.try_get(3)?)?);
        let made = Revision(number(row, 4)?);
        Ok(VisibleSummary { key: Seq(number(row, 0)?), made, covers, tokens, standing })
    };
    let mut messages = messages.iter().map(message).collect::<Result<Vec<_>, Failure>>()?;
    messages.sort_unstable_by_key(|message| message.seq);
    Ok((messages, summaries.iter().map(summary).collect::<Result<_, Failure>>()?))
}

async fn hide(lease: &Lease<'_>, row: &SessionRow, edit: &rules::Edit) -> Result<(), Failure> {
    let revision = int(row.counters.revision.0);
    let [messages, summary] = lease.prepare([sql::HIDE_MESSAGES, sql::HIDE_SUMMARY]).await?;
    let (messages, summary, runs) = (&messages, &summary, Runs::exactly(edit.messages.iter().copied()));
    let hides = runs.pairs().map(|(first, last)| async move {
        lease.execute(messages, &[&row.id, &first, &last, &revision]).await
    });
    let keys = edit
        .summaries
        .iter()
        .map(|key| async move { lease.execute(summary, &[&row.id, &int(key.0), &revision]).await });
    let (messages, summaries) = try_join(try_join_all(hides), try_join_all(keys)).await?;
    let hidden: u64 = messages.iter().chain(&summaries).sum();
    // The index of the visible and the rows say different things if this does not hold.
    if hidden == edit.messages.len().saturating_add(edit.summaries.len()) as u64 {
        Ok(())
    } else {
        Err(corrupt("commit: the index of the visible messages is damaged").into())
    }
}

/// What stands in place of messages' parts after `edits`, over what stands there already, as it is stored.
async fn shorten(lease: &Lease<'_>, session: i64, edits: &[MessageEdit]) -> Result<Vec<String>, Failure> {
    let [edited] = lease.prepare([sql::EDITED]).await?;
    let edited = &edited;
    let all = edits.iter().map(|edit| async move {
        let row = lease.row(edited, &[&session, &int(edit.seq.0)]).await?;
        shortened(edit, row.as_ref())
    });
    try_join_all(all).await
}

fn shortened(edit: &MessageEdit, row: Option<&Row>) -> Result<String, Failure> {
    let lost = || corrupt(format!("commit: the text of message {} is missing", edit.seq));
    let row = row.ok_or_else(lost)?;
    rows::shortened(edit, row.try_get(3)?, self::edit(row, 4)?, || {
        Ok(count(Tokens(number32(row, 0)?), row.try_get(1)?, text(row, 2)?)?)
    })
}

/// Puts `edit` in place: the message, when it was shortened, its size after that, and what stands in it.
pub(super) async fn write_edit(
    lease: &Lease<'_>,
    session: i64,
    (seq, by, count, stand_ins): (Seq, Revision, &TokenCount, String),
) -> Result<(), Failure> {
    let [write] = lease.prepare([sql::EDIT]).await?;
    let (seq, by, tokens) = (int(seq.0), int(by.0), int(count.tokens.as_u64()));
    let (basis, counter) = (count.basis.as_str(), count.counter.as_bytes());
    let columns: Parameters<'_> = &[&session, &seq, &by, &tokens, &basis, &counter, &stand_ins];
    changed_one(lease.execute(&write, columns).await?)
}
