//! A store on a Redis server.
//!
//! This crate reads the facts of an operation and writes its changes. `epitome-history` makes the decisions.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod append;
mod change;
mod client;
mod connection;
mod failure;
mod job;
mod keys;
mod list;
mod member;
mod open;
mod options;
mod read;
mod record;
mod row;
mod script;
mod server;
mod survey;
mod words;

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use ::redis::aio::ConnectionManager;
use epitome_core::{Revision, Seq};
use epitome_history::kernel::{Extent, Op, Reply, Tables};
use epitome_history::remote::{Home, retry};
use epitome_history::words::search_sessions;
use epitome_history::{
    AppendToken, Appended, Committed, FoundMessage, KeptState, Loaded, LogPage, LogSearch, LoggedAppend,
    Pruned, RemoteOptions, SessionId, SessionInfo, StoreError,
};

pub use epitome_history::Password;

pub use self::client::RedisClient;
use self::connection::{Connection, Connections};
use self::job::Job;
use self::keys::{Prefix, SessionKeys};
pub use self::options::RedisOptions;
pub use self::server::RedisServer;

/// Keeps sessions on a Redis server (7 or later, or a compatible one), or on a Redis Cluster.
///
/// ```no_run
/// use epitome_core::{Basis, Seq, Tokens, Turn};
/// use epitome_history::{Append, AppendToken, Entry, HistoryStore, SessionId, TokenCount};
/// use epitome_message::Message;
/// use epitome_redis::{RedisOptions, RedisStore};
///
/// # async fn example() -> Result<(), epitome_history::StoreError> {
/// let store = RedisStore::connect("redis://127.0.0.1/", RedisOptions::default()).await?;
/// let session = SessionId::new("demo");
/// let count = TokenCount::new(Tokens(3), Basis::Estimated, "default".into());
/// let entry = Entry::new(Message::user("Hello"), Seq(0), Turn(1), count);
/// store.append(&session, &Append::new(&AppendToken::new("first"), Seq(0), &[entry])).await?;
/// assert_eq!(store.load(&session).await?.live.len(), 1);
/// # Ok(())
/// # }
/// ```
///
/// One script on the server writes each change. An append is one request if it is at the head and joins no hidden
/// group; a commit is two. `docs/redis.md` documents the cost of the other operations, and the keys.
///
/// *Concurrency*: any number of stores, also in several processes, may use one prefix. While a script runs, the server
/// does nothing else: the time of a commit grows with its changes, the time of a load with the visible messages. A list
/// does not see one moment: a session that is created or deleted meanwhile may be in it or not.
///
/// *Cancel safety*: operations run on a tokio runtime, and may be awaited on any executor. If a future is dropped, its
/// operation is dropped too. A command that was not sent is not done; a command that was sent is done completely, and
/// its answer is lost.
///
/// *Durability*: depends on the configuration of the server. An acknowledged write always survives the end of this
/// process. It survives the end of the server with `appendonly yes` and `appendfsync always`. With `everysec`, Redis'
/// default for its log, up to the last second may be lost. Without a log, all writes since the last snapshot may be
/// lost. The log has a change completely or not at all. After a failover to a replica, writes that the replica had not
/// received are lost. The server must not evict keys (`maxmemory-policy noeviction`, its default): a session with
/// missing keys is `Corrupt`.
pub struct RedisStore {
    shared: Arc<Shared>,
    home: Home,
}

impl RedisStore {
    /// Connects to the server of `url`, `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]` (`rediss://` for TLS). Call it
    /// in a tokio runtime; the store then runs on this runtime.
    ///
    /// TLS needs a crypto provider for the whole process. If the process has none, this sets *ring*.
    ///
    /// # Errors
    /// `Invalid` if the url cannot be parsed, the server refuses the name or the password, the prefix contains braces,
    /// there is no tokio runtime, or a newer version has written the keys; `Corrupt` if another program uses the
    /// prefix; `Unavailable` if the server cannot be reached.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        Self::connect_to(&RedisServer::from_url(url)?, options).await
    }

    /// Connects to this server. Call it in a tokio runtime; the store then runs on this runtime. A password that comes
    /// from a function is requested for each new connection.
    ///
    /// # Errors
    /// The errors of [`RedisStore::connect`] and of the password.
    pub async fn connect_to(server: &RedisServer, options: RedisOptions) -> Result<Self, StoreError> {
        Self::greeted(open::by_server(server, &options)?, Home::current()?).await
    }

    /// Opens the store with its own tokio runtime, on its own thread. Blocks the calling thread until it is connected.
    ///
    /// # Errors
    /// The errors of [`RedisStore::connect`].
    pub fn open(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        Self::open_at(&RedisServer::from_url(url)?, options)
    }

    /// Opens the store on this server, as [`RedisStore::open`] does.
    ///
    /// # Errors
    /// The errors of [`RedisStore::connect_to`].
    pub fn open_at(server: &RedisServer, options: RedisOptions) -> Result<Self, StoreError> {
        let shared = Arc::new(open::by_server(server, &options)?);
        let home = Home::start("epitome-redis")?;
        let greeted = Arc::clone(&shared);
        home.wait(async move { open::greet(&greeted).await })?;
        Ok(Self { shared, home })
    }

    /// Uses an existing connection, which other users may share. Call it in the tokio runtime of the connection. The
    /// time limits of the connection apply in addition to those of the options. It is the only connection of the store.
    ///
    /// # Errors
    /// The errors of [`RedisStore::connect`].
    pub async fn from_connection_manager(
        connection: ConnectionManager,
        options: RedisOptions,
    ) -> Result<Self, StoreError> {
        Self::given(Connection::Single(connection), &options).await
    }

    /// Connects to a Redis Cluster. `urls` are the addresses of some of its servers. Call it in a tokio runtime.
    ///
    /// # Errors
    /// The errors of [`RedisStore::connect`].
    #[cfg(feature = "cluster")]
    pub async fn connect_cluster(urls: &[&str], options: RedisOptions) -> Result<Self, StoreError> {
        Self::given(Connection::Cluster(open::cluster(urls, &options).await?), &options).await
    }

    /// Uses an existing connection to a Redis Cluster.
    ///
    /// # Errors
    /// The errors of [`RedisStore::connect`].
    #[cfg(feature = "cluster")]
    pub async fn from_cluster_connection(
        connection: ::redis::cluster_async::ClusterConnection,
        options: RedisOptions,
    ) -> Result<Self, StoreError> {
        Self::given(Connection::Cluster(connection), &options).await
    }

    async fn given(connection: Connection, options: &RedisOptions) -> Result<Self, StoreError> {
        let shared = open::shared(Connections::given(connection), "a given connection".into(), options)?;
        Self::greeted(shared, Home::current()?).await
    }

    async fn greeted(shared: Shared, home: Home) -> Result<Self, StoreError> {
        let store = Self { shared: Arc::new(shared), home };
        let shared = Arc::clone(&store.shared);
        store.home.run(async move { open::greet(&shared).await }).await?;
        Ok(store)
    }
}

/// The shared parts of all operations of a store.
struct Shared {
    connections: Connections,
    prefix: Prefix,
    /// Lifetime of sessions in the form of the scripts.
    ttl: String,
    remote: RemoteOptions,
    /// The printable address of the server.
    place: String,
}

impl RedisStore {
    /// Runs `operation` on the store's runtime, with retries after `Unavailable`.
    async fn run<T, F>(
        &self,
        name: &'static str,
        operation: impl Fn(Arc<Shared>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let shared = Arc::clone(&self.shared);
        self.home
            .run(async move { retry(&shared.remote, name, || operation(Arc::clone(&shared))).await })
            .await
    }

    /// Reads a session.
    async fn read<T, F>(
        &self,
        name: &'static str,
        session: &SessionId,
        read: impl Fn(Arc<Shared>, Arc<SessionKeys>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let keys = Arc::new(self.shared.prefix.keys(session));
        self.run(name, move |shared| read(shared, Arc::clone(&keys))).await
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("place", &self.shared.place).finish_non_exhaustive()
    }
}

impl Tables for RedisStore {
    async fn execute(&self, session: &SessionId, op: Op<'_>) -> Result<Reply, StoreError> {
        let job = Arc::new(Job::new(&self.shared, session, op)?);
        let run = move |shared: Arc<Shared>| {
            let job = Arc::clone(&job);
            async move { job.run(&shared).await }
        };
        self.run(op.name(), run).await
    }

    async fn load(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        let load =
            move |shared: Arc<_>, keys: Arc<_>| async move { read::load(&shared, &keys, extent).await };
        self.read("load", session, load).await?.into_loaded()
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        let token = token.clone();
        let find = move |shared: Arc<_>, keys: Arc<_>| {
            let token = token.clone();
            async move { read::appended(&shared, &keys, &token).await }
        };
        self.read("appended", session, find).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        let log = move |shared: Arc<_>, keys: Arc<_>| {
            let range = range.clone();
            async move { read::log(&shared, &keys, range, limit).await }
        };
        self.read("log", session, log).await?.into_page()
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        let records = move |shared: Arc<_>, keys: Arc<_>| async move {
            read::records(&shared, &keys, after, limit).await
        };
        read::committed(&self.read("records", session, records).await?)
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        let prunes = move |shared: Arc<_>, keys: Arc<_>| async move {
            read::prunes(&shared, &keys, after, limit).await
        };
        self.read("prunes", session, prunes).await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        let appends = move |shared: Arc<_>, keys: Arc<_>| async move {
            read::appends(&shared, &keys, from, limit).await
        };
        self.read("appends", session, appends).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        let state = move |shared: Arc<_>, keys: Arc<_>| async move { read::state(&shared, &keys).await };
        self.read("state", session, state).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let after = after.cloned();
        let list = move |shared: Arc<Shared>| {
            let after = after.clone();
            async move { list::list(&shared, after.as_ref(), limit).await }
        };
        self.run("list", list).await
    }

    async fn search(&self, search: &LogSearch) -> Result<Vec<FoundMessage>, StoreError> {
        search_sessions(self, search).await
    }

    /// Removes the indexes of all sessions. Later searches make them again.
    async fn reindex(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.list(after.as_ref(), list::PAGE_SESSIONS_MAX as u32).await?;
            let Some(last) = page.last() else { return Ok(()) };
            for info in &page {
                let forget =
                    |shared: Arc<_>, keys: Arc<_>| async move { words::forget(&shared, &keys).await };
                self.read("reindex", &info.id, forget).await?;
            }
            after = Some(last.id.clone());
        }
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        let session = session.clone();
        let delete = move |shared: Arc<Shared>| {
            let session = session.clone();
            async move { read::delete(&shared, &session).await }
        };
        self.run("delete", delete).await
    }
}
