//! Deleting what is hidden.

use std::collections::BTreeSet;

use epitome_core::Revision;
use futures::future::try_join_all;
use tokio_postgres::Row;

use super::failure::Failure;
use super::job::Job;
use super::lease::Lease;
use super::read::find;
use super::row::{changed_one, number, save_session};
use super::sql;
use super::undo::locked;
use crate::history::bodies::record;
use crate::history::rows::{int, pruned};
use crate::history::{Pruned, SessionId, rules};
use crate::wire::stored;

/// The deletion of what is hidden at a revision or before.
#[derive(Debug)]
pub(super) struct PruneJob {
    pub(super) session: SessionId,
    pub(super) through: Revision,
}

impl Job for PruneJob {
    const NAME: &'static str = "prune";
    type Answer = Pruned;

    async fn run(&self, lease: &Lease<'_>) -> Result<Pruned, Failure> {
        let (mut row, _) = locked(lease, &self.session, Self::NAME).await?;
        let through = int(self.through.0);
        rules::check_prune(self.through, row.counters.revision)?;
        let mut done = Pruned::new(row.counters.revision.next(), self.through);
        done.messages = prune_messages(lease, row.id, done).await?;
        done.summaries = prune_summaries(lease, row.id, done).await?;
        if done.messages == 0 && done.summaries == 0 {
            let [before] = lease.prepare([sql::PRUNED_THROUGH]).await?;
            let before = lease.row(&before, &[&row.id, &through]).await?;
            let before = before.as_ref().map(read).transpose()?;
            return Ok(rules::pruned_before(before.into_iter(), self.through, row.counters.revision));
        }
        prune_records(lease, row.id).await?;
        row.counters.revision = done.revision;
        save_session(lease, &row).await?;
        let [insert] = lease.prepare([sql::NEW_PRUNE]).await?;
        let (revision, messages, summaries) = (int(done.revision.0), int(done.messages), int(done.summaries));
        lease.execute(&insert, &[&row.id, &revision, &through, &messages, &summaries]).await?;
        lease.commit().await?;
        Ok(done)
    }
}

async fn prune_messages(lease: &Lease<'_>, session: i64, done: Pruned) -> Result<u64, Failure> {
    let [some, prune] = lease.prepare([sql::PRUNABLE_MESSAGES, sql::PRUNE_MESSAGE]).await?;
    let (through, by, prune) = (int(done.through.0), int(done.revision.0), &prune);
    let mut count = 0_u64;
    // What was pruned is not found again.
    loop {
        let rows = lease.rows(&some, &[&session, &through, &PIECE_MESSAGES_MAX]).await?;
        let all = rows.iter().map(|row| async move {
            let (seq, left): (i64, _) = (row.try_get(0)?, pruned(row.try_get(1)?)?);
            changed_one(lease.execute(prune, &[&session, &seq, &by, &left]).await?)
        });
        try_join_all(all).await?;
        count = count.saturating_add(rows.len() as u64);
        if i64::try_from(rows.len()).is_ok_and(|rows| rows < PIECE_MESSAGES_MAX) {
            return Ok(count);
        }
    }
}

/// So that no more than the texts of so many messages are in memory at once.
const PIECE_MESSAGES_MAX: i64 = 500;

async fn prune_summaries(lease: &Lease<'_>, session: i64, done: Pruned) -> Result<u64, Failure> {
    let [some, prune] = lease.prepare([sql::PRUNABLE_SUMMARIES, sql::PRUNE_SUMMARY]).await?;
    let (through, by, prune) = (int(done.through.0), int(done.revision.0), &prune);
    let rows = lease.rows(&some, &[&session, &through]).await?;
    let all = rows.iter().map(|row| async move {
        let (revision, key, left): (i64, i64, _) =
            (row.try_get(0)?, row.try_get(1)?, pruned(row.try_get(2)?)?);
        changed_one(lease.execute(prune, &[&session, &revision, &key, &by, &left]).await?)
    });
    try_join_all(all).await?;
    Ok(rows.len() as u64)
}

/// Deletes the texts that stood in the pruned messages.
async fn prune_records(lease: &Lease<'_>, session: i64) -> Result<(), Failure> {
    let [records, among, write] = lease.prepare([sql::RECORDS, sql::PRUNED_AMONG, sql::BARE_RECORD]).await?;
    let (mut after, write) = (0_i64, &write);
    loop {
        let rows = lease.rows(&records, &[&session, &after, &PIECE_RECORDS_MAX]).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.try_get(0)?;
        let read = |row: &Row| record(Revision(number(row, 0)?), row.try_get(1)?).map_err(Failure::from);
        let held = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let edited: Vec<i64> = held.iter().flat_map(|it| &it.edits).map(|edit| int(edit.seq.0)).collect();
        if edited.is_empty() {
            continue;
        }
        let found = lease.rows(&among, &[&session, &edited]).await?;
        let pruned: BTreeSet<i64> = found.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let mut writes = Vec::new();
        for (row, record) in rows.iter().zip(&held) {
            if let Some(bare) = rules::bare_record(record, |seq| pruned.contains(&int(seq.0)), |_| false) {
                let revision: i64 = row.try_get(0)?;
                let body = stored::encode_record(&bare).map_err(rules::not_storable)?;
                writes.push(async move {
                    changed_one(lease.execute(write, &[&session, &revision, &body]).await?)
                });
            }
        }
        try_join_all(writes).await?;
    }
}

const PIECE_RECORDS_MAX: i64 = 100;

/// The prunes of a session.
#[derive(Debug)]
pub(super) struct PrunesJob {
    pub(super) session: SessionId,
    pub(super) after: Option<Revision>,
    pub(super) limit: u32,
}

impl Job for PrunesJob {
    const NAME: &'static str = "prunes";
    type Answer = Vec<Pruned>;

    async fn run(&self, lease: &Lease<'_>) -> Result<Vec<Pruned>, Failure> {
        let session = find(lease, &self.session, Self::NAME).await?;
        let [prunes] = lease.prepare([sql::PRUNES]).await?;
        let (after, limit) = (int(self.after.unwrap_or_default().0), i64::from(self.limit));
        let rows = lease.rows(&prunes, &[&session.id, &after, &limit]).await?;
        lease.commit().await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<Pruned, Failure> {
    let mut pruned = Pruned::new(Revision(number(row, 0)?), Revision(number(row, 1)?));
    (pruned.messages, pruned.summaries) = (number(row, 2)?, number(row, 3)?);
    Ok(pruned)
}
