//! Reads of the receipts of appends and of the state.

use epitome_core::{Revision, Seq};
use epitome_history::rows::int;
use epitome_history::{AppendToken, Appended, KeptState, LoggedAppend, SessionId, StateRevision, rules};
use futures::future::try_join;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease};
use super::read::find;
use super::row::{digest, number, text, time};
use super::sql;

/// Finds the result of the append with a token.
#[derive(Debug)]
pub(super) struct AppendedJob {
    pub(super) session: SessionId,
    pub(super) token: AppendToken,
}

impl Job for AppendedJob {
    type Answer = Option<Appended>;

    fn name(&self) -> &'static str {
        "appended"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Option<Appended>, Failure> {
        let [seen] = lease.prepare([sql::TOKEN]).await?;
        let (session, key) = (digest(self.session.as_str()), digest(self.token.as_str()));
        let (session, key) = (session.as_slice(), key.as_slice());
        let both: [&(dyn ToSql + Sync); 2] = [&session, &key];
        let read = try_join(lease.begin(Access::Read), lease.row(&seen, &both));
        let ((_, seen), ()) = try_join(read, lease.commit()).await?;
        Ok(seen.as_ref().map(receipt).transpose()?.map(|(_, appended)| appended))
    }
}

/// The digest of the messages that were appended under a token, and the answer to the append.
pub(super) fn receipt(row: &Row) -> Result<(Vec<u8>, Appended), Failure> {
    let appended = Appended::new(Seq(number(row, 1)?), Seq(number(row, 2)?), Revision(number(row, 3)?));
    Ok((row.try_get(0)?, appended))
}

/// Reads appends of a session.
#[derive(Debug)]
pub(super) struct AppendsJob {
    pub(super) session: SessionId,
    pub(super) from: Seq,
    pub(super) limit: u32,
}

impl Job for AppendsJob {
    type Answer = Vec<LoggedAppend>;

    fn name(&self) -> &'static str {
        "appends"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Vec<LoggedAppend>, Failure> {
        let session = find(lease, &self.session, self.name()).await?;
        let [appends] = lease.prepare([sql::APPENDS]).await?;
        let (from, limit) = (int(self.from.0), i64::from(self.limit));
        let rows = lease.rows(&appends, &[&session.id, &from, &limit]).await?;
        lease.commit().await?;
        let read = |row: &Row| {
            let token = AppendToken::new(text(row, 0)?);
            let appended =
                Appended::new(Seq(number(row, 1)?), Seq(number(row, 2)?), Revision(number(row, 3)?));
            Ok(LoggedAppend::new(token, appended, time(row, 4)?))
        };
        rows.iter().map(read).collect()
    }
}

/// Reads the saved state.
#[derive(Debug)]
pub(super) struct StateJob(pub(super) SessionId);

impl Job for StateJob {
    type Answer = Option<KeptState>;

    fn name(&self) -> &'static str {
        "state"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Option<KeptState>, Failure> {
        let [state] = lease.prepare([sql::STATE]).await?;
        let name = digest(self.0.as_str());
        let ((), found) = try_join(lease.begin(Access::Read), lease.row(&state, &[&name.as_slice()])).await?;
        lease.commit().await?;
        let found = found.ok_or_else(|| rules::not_found(self.name()))?;
        if found.try_get::<_, Option<i64>>(0)?.is_none() {
            return Ok(None);
        }
        let (revision, head) = (StateRevision(number(&found, 0)?), Seq(number(&found, 1)?));
        Ok(Some(KeptState::new(revision, head, text(&found, 2)?.into())))
    }
}
