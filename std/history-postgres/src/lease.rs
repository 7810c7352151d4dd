//! A connection that is taken from the pool for one operation.

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
    /// All reads see the same moment.
    Read,
    Write,
}

/// A connection for one operation.
///
/// If it is dropped during an operation, the connection is closed and does not return to the pool. The server then ends
/// the transaction.
pub(super) struct Lease<'a> {
    client: Option<Object>,
    names: &'a Names,
    timeout_ms: u32,
    /// Whether a transaction is open.
    open: AtomicBool,
}

/// A parameter of a statement. Logs of parameters do not contain its value.
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

    /// Begins a transaction. The server ends a transaction that takes too long or is idle too long.
    pub(super) async fn begin(&self, access: Access) -> Result<(), Failure> {
        self.open.store(true, Ordering::Relaxed);
        let mode = match access {
            Access::Read => "ISOLATION LEVEL REPEATABLE READ READ ONLY",
            // Not `READ WRITE`: a standby refuses that with an error code that does not mention writes.
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

    /// Commits the transaction. Call it only if all its statements were sent and have succeeded.
    pub(super) async fn commit(&self) -> Result<(), Failure> {
        self.client()?.batch_execute("COMMIT").await?;
        self.open.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Runs `sql` unchanged: the statements that create the tables.
    pub(super) async fn exact(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.client()?.batch_execute(sql).await?)
    }

    /// Prepares the statements, each once for a connection. An operation that is ready sends its statement at its first
    /// poll, so joined operations send their statements in their order.
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

    /// Visits the rows one by one, so that memory holds only the rows that the connection has received.
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

    /// The first row of a statement that returns at most one.
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

    /// Returns the connection to the pool after an operation, without an open transaction, if it can be reused.
    pub(super) async fn finish(mut self, is_sound: bool) {
        let is_clean = is_sound && (!*self.open.get_mut() || self.roll_back().await.is_ok());
        if is_clean {
            // A connection that is dropped outside of its lease returns to the pool.
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
        // The parameter itself checks the type when it is written.
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
