//! A store in a Postgres database.
//!
//! This crate reads the facts of an operation and writes its changes. It decides nothing: `epitome-history` does.

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

/// Keeps sessions in a Postgres database (12 or newer, encoding UTF8), in tables of its own, which `docs/postgres.md`
/// describes.
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
/// *Runtime*: the work is done on tokio. [`PostgresStore::connect`] and [`PostgresStore::from_pool`] take the runtime that
/// they are called in, which must be there for as long as the store is; [`PostgresStore::open`] starts a thread with one.
/// Either way the store's futures may be awaited on any executor.
///
/// *Concurrency*: any number of stores, also in several processes, may use the same tables. A change of a session locks its row, and waits
/// for other changes; sessions do not wait for each other. The server must see the prepared statements of one connection as one session's:
/// a pooler in between must not share it out by transaction, or know of prepared statements.
///
/// *Time and repetition*: see [`RemoteOptions`](epitome_history::RemoteOptions). Up to half of the time of an attempt may go by in wait
/// for a connection; if all are in use until then, that is `Unavailable`. The server itself ends a statement that takes
/// longer than an attempt may. A `delete` that is tried again after its connection was lost answers for the last attempt.
///
/// *Cancel safety*: with a dropped future its operation ends, at the latest when the server has ended the statement in hand. A connection
/// in the middle of one is closed; nothing of a transaction is left on those in the pool.
///
/// *Durability*: that of the server. An acknowledged write survives its crash with `fsync` and `synchronous_commit` on, which are Postgres'
/// defaults.
///
/// *Secrets*: neither the url, nor a password, nor anything of a message is in errors, in `Debug` or in what is logged.
pub struct PostgresStore {
    // Before the runtime: the connections are closed on it.
    shared: Arc<Shared>,
    home: Home,
    place: String,
}

impl PostgresStore {
    /// Opens the database at `url` on a thread of its own, with default options. Blocks while it does so.
    ///
    /// [`PostgresServer::from_url`] says what the url may be.
    ///
    /// # Errors
    /// `Invalid` if the url cannot be read, the server refuses the user, its certificate is not trusted, there is no such
    /// database, or a newer version has written the tables; `Unavailable` if the server cannot be reached.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(url, PostgresOptions::default())
    }

    /// Opens the store with options. Otherwise as [`PostgresStore::open`].
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub fn open_with(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        Self::open_at(&PostgresServer::from_url(url)?, options)
    }

    /// Opens the store on this server. Otherwise as [`PostgresStore::open`].
    ///
    /// # Errors
    /// As [`PostgresStore::connect_to`].
    pub fn open_at(server: &PostgresServer, options: PostgresOptions) -> Result<Self, StoreError> {
        let store = Self::on(server, &options, Home::start("epitome-postgres")?)?;
        store.home.wait(store.begin(options.migrate))?;
        Ok(store)
    }

    /// Opens the database at `url` on the tokio runtime that this is called in.
    ///
    /// # Errors
    /// As [`PostgresStore::open`]; `Invalid` if there is no runtime.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        Self::connect_to(&PostgresServer::from_url(url)?, options).await
    }

    /// Opens the store on this server, on the tokio runtime that this is called in. A password that is looked up is asked for at each new
    /// connection.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`], and those of the password.
    pub async fn connect_to(server: &PostgresServer, options: PostgresOptions) -> Result<Self, StoreError> {
        let store = Self::on(server, &options, Home::current()?)?;
        store.home.run(store.begin(options.migrate)).await?;
        Ok(store)
    }

    /// A store over a pool of the caller's, on the tokio runtime that this is called in. The pool sets the number of connections and the
    /// wait for them.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
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

    /// Makes the tables, or brings them up to date. Several may do so at once.
    ///
    /// # Errors
    /// `Invalid` if a newer version has written them, the user may not make tables, or the database's encoding is not UTF8.
    ///
    /// # Cancel safety
    /// As any operation: all of it has happened, or nothing.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.call(MigrateJob).await
    }
}

impl PostgresStore {
    /// Sees whether the server is there and lets the user in, and makes the tables if that is to be done now.
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

/// Number of sessions that are listed at once while the index is made anew.
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
