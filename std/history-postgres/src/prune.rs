//! Prunes.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use epitome_history::bodies::record;
use epitome_history::kernel::Prune;
use epitome_history::rows::{SessionRow, int, pruned as pruned_text};
use epitome_history::rules::{self, corrupt};
use epitome_history::stored;
use epitome_history::{Pruned, SessionId};
use futures::future::try_join_all;
use tokio_postgres::Row;

use super::failure::Failure;
use super::job::Job;
use super::lease::Lease;
use super::read::find;
use super::row::{changed_one, number};
use super::{sql, words};

/// Deletes the texts of a prune, in a transaction that has locked the session.
pub(super) async fn prune(lease: &Lease<'_>, session: SessionRow, prune: &Prune<'_>) -> Result<(), Failure> {
    let (id, done) = (session.id, prune.pruned);
    for piece in prune.messages.chunks(PIECE_MESSAGES_MAX) {
        prune_messages(lease, id, piece, done.revision).await?;
    }
    words::forget(lease, id, session.counters.head, prune.messages).await?;
    prune_summaries(lease, id, done).await?;
    prune_records(lease, id).await?;
    let [insert] = lease.prepare([sql::NEW_PRUNE]).await?;
    let (revision, through) = (int(done.revision.0), int(done.through.0));
    let (messages, summaries) = (int(done.messages), int(done.summaries));
    changed_one(lease.execute(&insert, &[&id, &revision, &through, &messages, &summaries]).await?)
}

async fn prune_messages(lease: &Lease<'_>, id: i64, seqs: &[Seq], by: Revision) -> Result<(), Failure> {
    let [body, prune] = lease.prepare([sql::BODY, sql::PRUNE_MESSAGE]).await?;
    let (body, prune, by) = (&body, &prune, int(by.0));
    let all = seqs.iter().map(|seq| async move {
        let lost = || corrupt(format!("the text of message {seq} is missing"));
        let found = lease.row(body, &[&id, &int(seq.0)]).await?.ok_or_else(lost)?;
        let left = pruned_text(found.try_get(0)?)?;
        changed_one(lease.execute(prune, &[&id, &int(seq.0), &by, &left]).await?)
    });
    try_join_all(all).await?;
    Ok(())
}

/// Maximum number of messages whose texts are in memory at the same time.
const PIECE_MESSAGES_MAX: usize = 500;

async fn prune_summaries(lease: &Lease<'_>, session: i64, done: Pruned) -> Result<(), Failure> {
    let [some, prune] = lease.prepare([sql::PRUNABLE_SUMMARIES, sql::PRUNE_SUMMARY]).await?;
    let (through, by, prune) = (int(done.through.0), int(done.revision.0), &prune);
    let rows = lease.rows(&some, &[&session, &through]).await?;
    let all = rows.iter().map(|row| async move {
        let (revision, key, left): (i64, i64, _) =
            (row.try_get(0)?, row.try_get(1)?, pruned_text(row.try_get(2)?)?);
        changed_one(lease.execute(prune, &[&session, &revision, &key, &by, &left]).await?)
    });
    try_join_all(all).await?;
    Ok(())
}

/// Deletes the stand-in texts of pruned messages from the records.
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
    type Answer = Vec<Pruned>;

    fn name(&self) -> &'static str {
        "prunes"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Vec<Pruned>, Failure> {
        let session = find(lease, &self.session, self.name()).await?;
        let [prunes] = lease.prepare([sql::PRUNES]).await?;
        let (after, limit) = (int(self.after.unwrap_or_default().0), i64::from(self.limit));
        let rows = lease.rows(&prunes, &[&session.id, &after, &limit]).await?;
        lease.commit().await?;
        rows.iter().map(pruned).collect()
    }
}

/// Decodes a row of the prunes.
pub(super) fn pruned(row: &Row) -> Result<Pruned, Failure> {
    let mut pruned = Pruned::new(Revision(number(row, 0)?), Revision(number(row, 1)?));
    (pruned.messages, pruned.summaries) = (number(row, 2)?, number(row, 3)?);
    Ok(pruned)
}
