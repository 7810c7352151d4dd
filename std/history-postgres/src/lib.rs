//! A store in a Postgres database.
//!
//! This crate reads the facts of an operation and writes its changes. `epitome-history` makes the decisions.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod facts;
mod failure;
mod job;
mod lease;
mod login;
mod migrate;
#[cfg(test)]
#[path = "tests.rs"]
mod on_postgres;
mod options;
mod pool;
mod prune;
mod read;
mod receipts;
mod row;
mod runs;
mod schema;
mod search;
mod server;
mod sql;
mod transaction;
mod words;

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use deadpool_postgres::Pool;
use epitome_core::{Revision, Seq};

use epitome_history::kernel::{Extent, Op, Reply, Tables, scan};
use epitome_history::remote::Home;
use epitome_history::rows::{StoredPage, StoredProjection, StoredRecord};
use epitome_history::{
    AppendToken, Appended, Committed, FoundMessage, KeptState, Loaded, LogPage, LogSearch, LoggedAppend,
    Pruned, SessionId, SessionInfo, StoreError,
};

pub use epitome_history::Password;

use self::job::{Job, Shared};
use self::migrate::MigrateJob;
use self::options::Names;
pub use self::options::{Migrate, PostgresOptions};
use self::prune::PrunesJob;
use self::read::{DeleteJob, ListJob, LoadJob, LogJob, RecordsJob};
use self::receipts::{AppendedJob, AppendsJob, StateJob};
use self::search::SearchJob;
pub use self::server::PostgresServer;
use self::transaction::OpJob;
use self::words::ReindexJob;

/// Keeps sessions in its own tables of a Postgres database (12 or newer, encoding UTF8). `docs/postgres.md` describes
/// the tables.
///
/// ```no_run
/// use epitome_history::{HistoryStore, SessionId};
/// use epitome_postgres::{PostgresOptions, PostgresStore};
///
/// # async fn example() -> Result<(), epitome_history::StoreError> {
/// let options = PostgresOptions::default().with_schema("agents");
/// let store = PostgresStore::connect("postgres://user:password@db.example.com/app", options).await?;
/// let projection = store.load(&SessionId::new("demo")).await?;
/// # Ok(())
/// # }
/// ```
///
/// *Runtime*: the store works on tokio. [`PostgresStore::connect`] and [`PostgresStore::from_pool`] use the runtime of
/// their caller, which must live as long as the store. [`PostgresStore::open`] starts a thread with its own runtime. In
/// both cases, the store's futures may be awaited on any executor.
///
/// *Concurrency*: any number of stores, also in several processes, may use the same tables. A change of a session locks
/// its row, and waits for other changes of it; sessions do not wait for each other. The prepared statements of a
/// connection must stay valid: a pooler between store and server must not assign connections by transaction, or must
/// support prepared statements.
///
/// *Time limits and retries*: see [`RemoteOptions`](epitome_history::RemoteOptions). Up to half of the time of an
/// attempt may pass in the wait for a connection; if all are in use for that long, the attempt is `Unavailable`. The
/// server itself ends a statement that takes longer than the limit of an attempt. A `delete` that is retried after a
/// lost connection returns the result of the last attempt.
///
/// *Cancel safety*: if a future is dropped, its operation ends, at the latest when the server has ended the current
/// statement. A connection in the middle of an operation is closed, so no connection in the pool has an open
/// transaction.
///
/// *Durability*: that of the server. An acknowledged write survives a crash of the server with `fsync` and
/// `synchronous_commit` on, which are Postgres' defaults.
///
/// *Secrets*: errors, `Debug` output and logs contain neither the url, nor a password, nor any content of messages.
pub struct PostgresStore {
    // Declared before the runtime, because the connections are closed on the runtime.
    shared: Arc<Shared>,
    home: Home,
    place: String,
}

impl PostgresStore {
    /// Opens the database at `url` on its own thread, with default options. Blocks the calling thread.
    ///
    /// [`PostgresServer::from_url`] documents the form of the url.
    ///
    /// # Errors
    /// `Invalid` if the url cannot be parsed, the server refuses the user, its certificate is not trusted, there is no
    /// such database, or a newer version has written the tables; `Unavailable` if the server cannot be reached.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(url, PostgresOptions::default())
    }

    /// Opens the store with options, otherwise as [`PostgresStore::open`].
    ///
    /// # Errors
    /// The errors of [`PostgresStore::open`].
    pub fn open_with(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        Self::open_at(&PostgresServer::from_url(url)?, options)
    }

    /// Opens the store on this server, otherwise as [`PostgresStore::open`].
    ///
    /// # Errors
    /// The errors of [`PostgresStore::connect_to`].
    pub fn open_at(server: &PostgresServer, options: PostgresOptions) -> Result<Self, StoreError> {
        let store = Self::on(server, &options, Home::start("epitome-postgres")?)?;
        store.home.wait(store.begin(options.migrate))?;
        Ok(store)
    }

    /// Opens the database at `url` on the tokio runtime of the caller.
    ///
    /// # Errors
    /// The errors of [`PostgresStore::open`]; `Invalid` if there is no runtime.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        Self::connect_to(&PostgresServer::from_url(url)?, options).await
    }

    /// Opens the store on this server, on the tokio runtime of the caller. A password that comes from a function is
    /// requested for each new connection.
    ///
    /// # Errors
    /// The errors of [`PostgresStore::connect`] and of the password.
    pub async fn connect_to(server: &PostgresServer, options: PostgresOptions) -> Result<Self, StoreError> {
        let store = Self::on(server, &options, Home::current()?)?;
        store.home.run(store.begin(options.migrate)).await?;
        Ok(store)
    }

    /// Opens a store over a pool of the caller, on the tokio runtime of the caller. The pool determines the number of
    /// connections and the time limit for a connection.
    ///
    /// # Errors
    /// The errors of [`PostgresStore::connect`].
    pub async fn from_pool(pool: Pool, options: PostgresOptions) -> Result<Self, StoreError> {
        let shared = Shared::new(pool, Names::new(&options)?, options.remote, true);
        let store = Self { shared: Arc::new(shared), home: Home::current()?, place: "a given pool".into() };
        store.home.run(store.begin(options.migrate)).await?;
        Ok(store)
    }

    fn on(server: &PostgresServer, options: &PostgresOptions, home: Home) -> Result<Self, StoreError> {
        let names = Names::new(options)?;
        let shared = Shared::new(pool::pool(server, options)?, names, options.remote, false);
        Ok(Self { shared: Arc::new(shared), home, place: server.place().into() })
    }

    /// Creates the tables, or updates them to this version. Several programs may do so at the same time.
    ///
    /// # Errors
    /// `Invalid` if a newer version has written the tables, the user may not create tables, or the encoding of the
    /// database is not UTF8.
    ///
    /// # Cancel safety
    /// The migration is one transaction: all of it happens, or nothing.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.call(MigrateJob).await
    }
}

impl PostgresStore {
    /// Checks that the server can be reached and accepts the user. Creates the tables if the options require it now.
    fn begin(&self, migrate: Migrate) -> impl Future<Output = Result<(), StoreError>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        async move {
            match migrate {
                Migrate::OnOpen => shared.call(MigrateJob).await,
                Migrate::Explicitly => shared.call(migrate::LookJob).await,
            }
        }
    }

    async fn call<J: Job>(&self, job: J) -> Result<J::Answer, StoreError> {
        self.home.run(Arc::clone(&self.shared).call(job)).await
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("place", &self.place)
            .field("names", self.shared.names())
            .finish_non_exhaustive()
    }
}

/// Number of sessions per page of the list during a rebuild of the index.
const REINDEXED_AT_ONCE: u32 = 1_000;

impl Tables for PostgresStore {
    async fn execute(&self, session: &SessionId, op: Op<'_>) -> Result<Reply, StoreError> {
        self.call(OpJob::new(session, op)?).await
    }

    async fn load(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        let load = LoadJob { session: session.clone(), extent };
        self.call(load).await.and_then(StoredProjection::into_loaded)
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        self.call(AppendedJob { session: session.clone(), token: token.clone() }).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        let log = LogJob { session: session.clone(), range, limit };
        self.call(log).await.and_then(StoredPage::into_page)
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        let stored = self.call(RecordsJob { session: session.clone(), after, limit }).await?;
        stored.into_iter().map(StoredRecord::into_committed).collect()
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        self.call(PrunesJob { session: session.clone(), after, limit }).await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        self.call(AppendsJob { session: session.clone(), from, limit }).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        self.call(StateJob(session.clone())).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        self.call(ListJob { after: after.cloned(), limit }).await
    }

    async fn search(&self, search: &LogSearch) -> Result<Vec<FoundMessage>, StoreError> {
        match self.call(SearchJob(search.clone())).await? {
            Some(found) => Ok(found),
            None => scan(self, search).await,
        }
    }

    async fn reindex(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.call(ListJob { after: after.take(), limit: REINDEXED_AT_ONCE }).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id.clone());
            for SessionInfo { id: session, .. } in page {
                let mut next = Some(0);
                while let Some(first) = next {
                    next = self.call(ReindexJob { session: session.clone(), first }).await?;
                }
            }
        }
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.call(DeleteJob(session.clone())).await
    }
}
