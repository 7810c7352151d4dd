//! A connection that was taken out of the pool for one operation.

use core::fmt;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use deadpool_postgres::{ClientWrapper, Object};
use epitome_history::remote;
use futures::TryStreamExt;
use futures::future::try_join_all;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Row, Statement};

use super::failure::Failure;
use super::options::Names;
use super::sql;

/// The access of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// All that is read is of one moment.
    Read,
    Write,
}

/// A connection for one operation.
///
/// Where it is dropped in the middle of one, the connection is closed and does not go back to the pool: the server ends
/// what was begun on it.
pub(super) struct Lease<'a> {
    client: Option<Object>,
    names: &'a Names,
    timeout_ms: u32,
    /// Whether a transaction is open.
    open: AtomicBool,
}

/// A parameter of a statement. Wherever parameters are logged, what this one holds is not.
struct Hidden<'a>(&'a (dyn ToSql + Sync));

pub(super) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl<'a> Lease<'a> {
    pub(super) const fn new(client: Object, names: &'a Names, timeout_ms: u32) -> Self {
        Self { client: Some(client), names, timeout_ms, open: AtomicBool::new(false) }
    }

    pub(super) const fn names(&self) -> &Names {
        self.names
    }

    fn client(&self) -> Result<&ClientWrapper, Failure> {
        let client = self.client.as_deref();
        client.ok_or_else(|| remote::unavailable("the connection was given back").into())
    }

    /// Begins a transaction. The server ends one that takes too long, or that is left idle.
    pub(super) async fn begin(&self, access: Access) -> Result<(), Failure> {
        self.open.store(true, Ordering::Relaxed);
        let mode = match access {
            Access::Read => "ISOLATION LEVEL REPEATABLE READ READ ONLY",
            // Not `READ WRITE`: a standby refuses that with a code that says nothing of writes.
            Access::Write => "ISOLATION LEVEL READ COMMITTED",
        };
        let timeout = self.timeout_ms;
        let begin = format!(
            "BEGIN {mode}; SET LOCAL statement_timeout = {timeout};
            SET LOCAL idle_in_transaction_session_timeout = {timeout}; {}",
            sql::SETTINGS
        );
        Ok(self.client()?.batch_execute(&begin).await?)
    }

    /// Ends the transaction. All its statements must have succeeded: this must not follow a statement that has failed, or was never sent.
    pub(super) async fn commit(&self) -> Result<(), Failure> {
        self.client()?.batch_execute("COMMIT").await?;
        self.open.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Runs `sql` as it stands: what makes the tables.
    pub(super) async fn exact(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.client()?.batch_execute(sql).await?)
    }

    /// The statements, each prepared once on a connection. A future that has one at hand sends it as soon as it is polled, and so in the
    /// order of a join.
    pub(super) async fn prepare<const N: usize>(
        &self,
        sql: [&'static str; N],
    ) -> Result<[Statement; N], Failure> {
        let client = self.client()?;
        let texts = sql.map(|sql| self.names.complete(sql));
        let prepared = try_join_all(texts.iter().map(|text| client.prepare_cached(text))).await?;
        prepared.try_into().map_err(|_| remote::unavailable("a statement was lost").into())
    }

    pub(super) async fn rows(
        &self,
        statement: &Statement,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let hidden = parameters.iter().map(|parameter| Hidden(*parameter));
        let rows = self.client()?.query_raw(statement, hidden).await?;
        Ok(rows.try_collect().await?)
    }

    /// Visits the rows one by one, so that no more of them are in memory than the connection has received.
    pub(super) async fn each_row(
        &self,
        statement: &Statement,
        parameters: Parameters<'_>,
        mut visit: impl FnMut(&Row) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let hidden = parameters.iter().map(|parameter| Hidden(*parameter));
        let mut rows = pin!(self.client()?.query_raw(statement, hidden).await?);
        while let Some(row) = rows.try_next().await? {
            visit(&row)?;
        }
        Ok(())
    }

    /// The first row, where there is at most one.
    pub(super) async fn row(
        &self,
        statement: &Statement,
        parameters: Parameters<'_>,
    ) -> Result<Option<Row>, Failure> {
        Ok(self.rows(statement, parameters).await?.into_iter().next())
    }

    /// Runs `statement`, and returns the number of rows that it changed.
    pub(super) async fn execute(
        &self,
        statement: &Statement,
        parameters: Parameters<'_>,
    ) -> Result<u64, Failure> {
        let hidden = parameters.iter().map(|parameter| Hidden(*parameter));
        Ok(self.client()?.execute_raw(statement, hidden).await?)
    }

    /// Gives the connection back after an operation, without a transaction on it, if it is as good as before.
    pub(super) async fn finish(mut self, is_sound: bool) {
        let is_clean = is_sound && (!*self.open.get_mut() || self.roll_back().await.is_ok());
        if is_clean {
            // Dropped outside of its lease it goes back to the pool.
            self.client.take();
        }
    }

    async fn roll_back(&self) -> Result<(), Failure> {
        Ok(self.client()?.batch_execute("ROLLBACK").await?)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}

impl fmt::Debug for Lease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("open", &self.open).finish_non_exhaustive()
    }
}

impl fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl ToSql for Hidden<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn core::error::Error + Sync + Send>> {
        self.0.to_sql_checked(ty, out)
    }

    fn accepts(_: &Type) -> bool {
        // The parameter itself is asked when it is written.
        true
    }

    fn to_sql_checked(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn core::error::Error + Sync + Send>> {
        self.0.to_sql_checked(ty, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_never_shown() {
        assert_eq!(format!("{:?} {:?}", Hidden(&"secret"), Hidden(&vec!["secret"])), ".. ..");
    }
}
