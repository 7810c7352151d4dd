//! Load, log, list and delete.

use core::cmp::Reverse;
use core::ops::Range;
use std::collections::BTreeMap;

use epitome_core::{Revision, Seq, Tokens, Turn};
use epitome_history::kernel::Extent;
use epitome_history::rows::{
    MessageRow, SessionRow, StoredPage, StoredProjection, StoredRecord, StoredSummary, int, last_turn_begins,
};
use epitome_history::rules::{self, corrupt};
use epitome_history::tail::last_turn;
use epitome_history::{RecordId, SessionId, SessionInfo, UnansweredCall};
use epitome_message::Str;
use futures::future::{try_join, try_join4};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease};
use super::row::{self, digest, message, number, number32, revision, session_info, text};
use super::runs::Runs;
use super::sql;

/// Finds the session, in a transaction whose reads all see the same moment.
pub(super) async fn find(
    lease: &Lease<'_>,
    session: &SessionId,
    operation: &str,
) -> Result<SessionRow, Failure> {
    row::session(&found(lease, session, operation).await?)
}

async fn found(lease: &Lease<'_>, session: &SessionId, operation: &str) -> Result<Row, Failure> {
    let [find] = lease.prepare([sql::SESSION]).await?;
    let name = digest(session.as_str());
    let ((), found) = try_join(lease.begin(Access::Read), lease.row(&find, &[&name.as_slice()])).await?;
    Ok(found.ok_or_else(|| rules::not_found(operation))?)
}

/// Loads the visible messages and summaries: all, or those of the last turn.
#[derive(Debug)]
pub(super) struct LoadJob {
    pub(super) session: SessionId,
    pub(super) extent: Extent,
}

impl Job for LoadJob {
    type Answer = StoredProjection;

    fn name(&self) -> &'static str {
        "load"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<StoredProjection, Failure> {
        let found = found(lease, &self.session, self.name()).await?;
        projection(lease, (&row::session(&found)?, &row::runs(&found)?), self.extent, lease.commit()).await
    }
}

/// The beginning of the last turn among the visible messages.
async fn message_turn_begins(
    lease: &Lease<'_>,
    session: &SessionRow,
    runs: &Runs,
) -> Result<Option<(Seq, Turn)>, Failure> {
    let [turns] = lease.prepare([sql::TURNS]).await?;
    let (mut before, mut limit, mut read) = (int(session.counters.head.0), TURN_ROWS_FIRST, Vec::new());
    loop {
        let newest = runs.newest(before, limit);
        let (low, high) = newest.columns();
        let Some(begin) = low.first() else { return Ok(last_turn(read.into_iter())) };
        let mut rows = turns_of(&lease.rows(&turns, &[&session.id, low, high]).await?)?;
        rows.sort_unstable_by_key(|row| Reverse(row.0));
        read.extend(rows);
        if is_whole(&read) {
            return Ok(last_turn(read.into_iter()));
        }
        (before, limit) = (*begin, limit.saturating_mul(4));
    }
}

/// The beginning of the last turn among the visible summaries.
async fn summary_turn_begins(lease: &Lease<'_>, session: i64) -> Result<Option<(Seq, Turn)>, Failure> {
    let [turns] = lease.prepare([sql::SUMMARY_TURNS]).await?;
    let (mut before, mut limit, mut read) = (i64::MAX, TURN_ROWS_FIRST, Vec::new());
    loop {
        let rows = turns_of(&lease.rows(&turns, &[&session, &before, &limit]).await?)?;
        let is_last = i64::try_from(rows.len()).is_ok_and(|rows| rows < limit);
        read.extend(rows);
        if is_last || is_whole(&read) {
            return Ok(last_turn(read.into_iter()));
        }
        before = read.last().map_or(0, |(key, ..)| int(key.0));
        limit = limit.saturating_mul(4);
    }
}

/// For each item its key, its turn, and whether it is a late answer.
type Turns = Vec<(Seq, Turn, bool)>;

fn turns_of(rows: &[Row]) -> Result<Turns, Failure> {
    rows.iter().map(|row| Ok((Seq(number(row, 0)?), Turn(number32(row, 1)?), row.try_get(2)?))).collect()
}

/// Whether the last turn has been read to its beginning, newest first.
fn is_whole(read: &[(Seq, Turn, bool)]) -> bool {
    let mut turns = read.iter().filter(|(.., late)| !late).map(|(_, turn, _)| *turn);
    let newest = turns.next();
    turns.any(|turn| Some(turn) != newest)
}

/// More messages than most turns have.
const TURN_ROWS_FIRST: i64 = 64;

/// The visible messages and summaries of a session. `end` runs after the statements that read them.
pub(super) async fn projection(
    lease: &Lease<'_>,
    (session, runs): (&SessionRow, &Runs),
    extent: Extent,
    end: impl Future<Output = Result<(), Failure>>,
) -> Result<StoredProjection, Failure> {
    let from = match extent {
        Extent::All => Seq(0),
        Extent::LastTurn => {
            let message = message_turn_begins(lease, session, runs);
            let (message, summary) = try_join(message, summary_turn_begins(lease, session.id)).await?;
            last_turn_begins(message, summary, session.counters.head)
        }
    };
    let [messages, summaries, unanswered] =
        lease.prepare([sql::LIVE_MESSAGES, sql::LIVE_SUMMARIES, sql::UNANSWERED]).await?;
    let (runs, from) = (runs.starting(from), int(from.0));
    let (low, high) = runs.columns();
    let (ranges, bounds): ([&(dyn ToSql + Sync); 3], [&(dyn ToSql + Sync); 2]) =
        ([&session.id, low, high], [&session.id, &from]);
    let (messages, summaries, unanswered, ()) = try_join4(
        lease.rows(&messages, &ranges),
        lease.rows(&summaries, &bounds),
        lease.rows(&unanswered, &[&session.id]),
        end,
    )
    .await?;
    let mut rows = message_rows(&messages)?;
    rows.extend(message_rows(&summaries)?);
    // The list consists of two ascending runs, so the sort is a merge.
    rows.sort_by_key(|row| row.key);
    let unanswered = unanswered.iter().map(unanswered_call).collect::<Result<_, Failure>>()?;
    Ok(StoredProjection {
        head: session.counters.head,
        revision: session.counters.revision,
        rows,
        unanswered,
    })
}

fn message_rows(rows: &[Row]) -> Result<Vec<MessageRow>, Failure> {
    rows.iter().map(message).collect()
}

pub(super) fn unanswered_call(row: &Row) -> Result<UnansweredCall, Failure> {
    let (anchor, turn) = (Seq(number(row, 1)?), Turn(number32(row, 2)?));
    Ok(UnansweredCall::new(Str::from(text(row, 0)?), anchor, turn, number32(row, 3)?))
}

/// Reads a page of the log.
#[derive(Debug)]
pub(super) struct LogJob {
    pub(super) session: SessionId,
    pub(super) range: Range<Seq>,
    pub(super) limit: u32,
}

impl Job for LogJob {
    type Answer = StoredPage;

    fn name(&self) -> &'static str {
        "log"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<StoredPage, Failure> {
        let session = find(lease, &self.session, self.name()).await?;
        // The log has no gaps, so the end of a page is known before the read.
        let (start, wanted) = (self.range.start, self.range.end);
        let end = wanted.min(Seq(start.0.saturating_add(u64::from(self.limit))));
        let [log] = lease.prepare([sql::LOG]).await?;
        let (first, last) = (int(start.0), int(end.0));
        let bounds: [&(dyn ToSql + Sync); 3] = [&session.id, &first, &last];
        let (rows, ()) = try_join(lease.rows(&log, &bounds), lease.commit()).await?;
        let rows = message_rows(&rows)?;
        let end = Seq(start.0.saturating_add(rows.len() as u64));
        Ok(StoredPage { rows, next: rules::next_page(end, wanted, session.counters.head) })
    }
}

/// Reads committed records.
#[derive(Debug)]
pub(super) struct RecordsJob {
    pub(super) session: SessionId,
    pub(super) after: Option<Revision>,
    pub(super) limit: u32,
}

impl Job for RecordsJob {
    type Answer = Vec<StoredRecord>;

    fn name(&self) -> &'static str {
        "records"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Vec<StoredRecord>, Failure> {
        let session = find(lease, &self.session, self.name()).await?;
        // No record has the revision 0.
        let (after, limit) = (int(self.after.unwrap_or_default().0), i64::from(self.limit));
        let [records, summaries] = lease.prepare([sql::RECORDS, sql::SUMMARIES]).await?;
        let rows = lease.rows(&records, &[&session.id, &after, &limit]).await?;
        let mut found = BTreeMap::new();
        for row in &rows {
            let (revision, body) = (Revision(number(row, 0)?), row.try_get(1)?);
            let (undone_by, id) = (self::revision(row, 2)?, record_id(row, 3)?);
            found.insert(revision, StoredRecord { revision, id, body, undone_by, summaries: Vec::new() });
        }
        let range = found.first_key_value().zip(found.last_key_value());
        if let Some(((first, _), (last, _))) = range {
            let (first, last) = (int(first.0), int(last.0));
            for row in lease.rows(&summaries, &[&session.id, &first, &last]).await? {
                let (revision, summary) = (Revision(number(&row, 0)?), summary(&row)?);
                found.entry(revision).and_modify(|record| record.summaries.push(summary));
            }
        }
        lease.commit().await?;
        Ok(found.into_values().collect())
    }
}

fn summary(row: &Row) -> Result<StoredSummary, Failure> {
    let (key, tokens) = (Seq(number(row, 1)?), Tokens(number32(row, 2)?));
    let (basis, counter) = (row.try_get(3)?, text(row, 4)?);
    Ok(StoredSummary { key, tokens, basis, counter, body: row.try_get(5)? })
}

pub(super) fn record_id(row: &Row, column: usize) -> Result<RecordId, Failure> {
    let bytes: &[u8] = row.try_get(column)?;
    let id = bytes.try_into().map_err(|_| corrupt("commit: the id of a record is damaged"))?;
    Ok(RecordId::from_bytes(id))
}

/// Reads a page of the list of sessions.
#[derive(Debug)]
pub(super) struct ListJob {
    pub(super) after: Option<SessionId>,
    pub(super) limit: u32,
}

impl Job for ListJob {
    type Answer = Vec<SessionInfo>;

    fn name(&self) -> &'static str {
        "list"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Vec<SessionInfo>, Failure> {
        let limit = i64::from(self.limit);
        let [list, list_all] = lease.prepare([sql::LIST, sql::LIST_ALL]).await?;
        lease.begin(Access::Read).await?;
        let rows = match &self.after {
            Some(after) => lease.rows(&list, &[&after.as_str().as_bytes(), &limit]).await?,
            None => lease.rows(&list_all, &[&limit]).await?,
        };
        lease.commit().await?;
        rows.iter().map(session_info).collect()
    }
}

/// Deletes a session.
#[derive(Debug)]
pub(super) struct DeleteJob(pub(super) SessionId);

impl Job for DeleteJob {
    type Answer = bool;

    fn name(&self) -> &'static str {
        "delete"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<bool, Failure> {
        let [delete] = lease.prepare([sql::DELETE_SESSION]).await?;
        lease.begin(Access::Write).await?;
        let deleted = lease.execute(&delete, &[&digest(self.0.as_str()).as_slice()]).await?;
        lease.commit().await?;
        Ok(deleted > 0)
    }
}
