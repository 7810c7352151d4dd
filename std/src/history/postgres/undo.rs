//! Undoing compactions.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use futures::future::{try_join, try_join_all, try_join3};

use super::commit::{visible, write_edit};
use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease};
use super::row::{self, changed_one, digest, number, revision, save_runs, save_session};
use super::runs::Runs;
use super::sql;
use crate::history::bodies::record;
use crate::history::rows::{SessionRow, int};
use crate::history::rules::{self, Undoing};
use crate::history::{CompactionRecord, SessionId};
use crate::wire::stored;

/// The undoing of the record that made a revision.
#[derive(Debug)]
pub(super) struct UncompactJob {
    pub(super) session: SessionId,
    pub(super) made: Revision,
}

impl Job for UncompactJob {
    const NAME: &'static str = "uncompact";
    type Answer = Revision;

    async fn run(&self, lease: &Lease<'_>) -> Result<Revision, Failure> {
        let (mut row, runs) = locked(lease, &self.session, Self::NAME).await?;
        let [known, latest, since] = lease.prepare([sql::MADE, sql::LATEST_HELD, sql::PRUNED_SINCE]).await?;
        let made = int(self.made.0);
        let (known, latest, since) = try_join3(
            lease.row(&known, &[&row.id, &made]),
            lease.row(&latest, &[&row.id]),
            lease.row(&since, &[&row.id, &made]),
        )
        .await?;
        let found = known.as_ref().map(|known| revision(known, 0)).transpose()?;
        let latest = latest.map(|latest| number(&latest, 0)).transpose()?.map(Revision);
        if let Some(undone_by) = rules::check_uncompact(self.made, Undoing { found, latest })? {
            return Ok(undone_by);
        }
        let body: &str = known.as_ref().map(|known| known.try_get(1)).transpose()?.unwrap_or_default();
        let record = record(self.made, body)?;
        rules::nothing_pruned(&record, self.made, since.is_some())?;

        row.counters.revision = row.counters.revision.next();
        let runs = runs.with(&self.show_again(lease, &row).await?);
        self.restore_edits(lease, row.id, &record).await?;
        let (messages, summaries) = visible(lease, row.id, &runs).await?;
        (row.counters.live_messages, row.counters.live_tokens) = rules::live(&messages, &summaries);
        let runs = Runs::around(messages.iter().map(|message| message.seq), row.counters.head);
        try_join(save_session(lease, &row), save_runs(lease, &row, &runs)).await?;
        lease.commit().await?;
        Ok(row.counters.revision)
    }
}

/// The session, locked against all others that change it, and where what is visible stands.
pub(super) async fn locked(
    lease: &Lease<'_>,
    session: &SessionId,
    operation: &str,
) -> Result<(SessionRow, Runs), Failure> {
    let [lock] = lease.prepare([sql::LOCK_SESSION]).await?;
    let name = digest(session.as_str());
    let ((), found) = try_join(lease.begin(Access::Write), lease.row(&lock, &[&name.as_slice()])).await?;
    let found = found.ok_or_else(|| rules::not_found(operation))?;
    Ok((row::session(&found)?, row::runs(&found)?))
}

impl UncompactJob {
    /// Shows everything that the record has hidden, and its own summaries no more. The messages are answered in ascending order.
    async fn show_again(&self, lease: &Lease<'_>, row: &SessionRow) -> Result<Vec<Seq>, Failure> {
        let (made, undoing) = (int(self.made.0), int(row.counters.revision.0));
        let statements =
            [sql::FORGET_UNANSWERED, sql::WITHDRAW, sql::SHOW_MESSAGES, sql::SHOW_SUMMARIES, sql::UNDO];
        let [forget, withdraw, messages, summaries, undo] = lease.prepare(statements).await?;
        // One after another: a summary that comes back may have the key of one that goes.
        lease.execute(&forget, &[&row.id, &made]).await?;
        lease.execute(&withdraw, &[&row.id, &made, &undoing]).await?;
        let shown = lease.rows(&messages, &[&row.id, &made]).await?;
        lease.execute(&summaries, &[&row.id, &made]).await?;
        lease.execute(&undo, &[&row.id, &made, &undoing]).await?;
        let mut shown =
            shown.iter().map(|row| Ok(Seq(number(row, 0)?))).collect::<Result<Vec<_>, Failure>>()?;
        shown.sort_unstable();
        Ok(shown)
    }

    /// Puts what stood in place of parts before the record back, from the records that hold.
    async fn restore_edits(
        &self,
        lease: &Lease<'_>,
        session: i64,
        record: &CompactionRecord,
    ) -> Result<(), Failure> {
        let edited: BTreeSet<Seq> = record.edits.iter().map(|edit| edit.seq).collect();
        if edited.is_empty() {
            return Ok(());
        }
        let [held, whole] = lease.prepare([sql::HELD_BEFORE, sql::DROP_EDIT]).await?;
        let mut before = Vec::new();
        for row in lease.rows(&held, &[&session, &int(self.made.0)]).await? {
            let revision = Revision(number(&row, 0)?);
            let edits = self::record(revision, row.try_get(1)?)?.edits.into_iter();
            before.extend(edits.filter(|edit| edited.contains(&edit.seq)).map(|edit| (revision, edit)));
        }
        let restored = rules::restored_edits(&edited, before.iter().map(|(by, edit)| (*by, edit)));
        let whole = &whole;
        let drops = edited
            .iter()
            .map(|seq| async move { changed_one(lease.execute(whole, &[&session, &int(seq.0)]).await?) });
        try_join_all(drops).await?;
        let mut writes = Vec::with_capacity(restored.len());
        for (seq, it) in &restored {
            let stand_ins = stored::encode_stand_ins(&it.stand_ins).map_err(rules::not_storable)?;
            writes.push(write_edit(lease, session, (*seq, it.by, &it.count, stand_ins)));
        }
        try_join_all(writes).await?;
        Ok(())
    }
}
