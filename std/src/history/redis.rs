//! A store on a Redis server.

mod append;
mod change;
mod commit;
mod connection;
mod failure;
mod keys;
mod list;
mod member;
mod open;
mod options;
mod prune;
mod read;
mod record;
mod row;
mod script;
mod state;
mod undo;

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use ::redis::aio::ConnectionManager;
use async_trait::async_trait;
use epitome_core::{Revision, Seq};

use self::append::AppendJob;
use self::commit::CommitJob;
use self::connection::{Connection, Connections};
use self::keys::Prefix;
pub use self::options::RedisOptions;
use self::read::Extent;
use super::remote::{Home, retry};
use super::{
    Append, AppendToken, Appended, Committed, CompactionRecord, HistoryStore, KeptState, Loaded, LogPage,
    LoggedAppend, NewState, OwnedState, Pruned, RemoteOptions, SessionId, SessionInfo, StateOutcome,
    StateRevision, StoreError, rules,
};

/// Keeps sessions on a Redis server (7 or later, or what speaks as it does), or on a Redis Cluster.
///
/// ```no_run
/// use epitome_core::{Basis, Seq, Tokens, Turn};
/// use epitome_std::history::{
///     Append, AppendToken, Entry, HistoryStore, RedisOptions, RedisStore, SessionId, TokenCount,
/// };
/// use epitome_std::message::Message;
///
/// # async fn example() -> Result<(), epitome_std::history::StoreError> {
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
/// Each operation that changes something is one script on the server. Appending is one request, unless it joins a group
/// that is hidden: then two; committing is two; all others are one, but for `list`. `docs/redis.md` says which keys there
/// are.
///
/// *Concurrency*: any number of stores, also in several processes, may use one prefix. While a script runs the server
/// does nothing else: a commit takes as long as what it changes is large, a load as what is visible. A list is not of one
/// moment: a session that comes or goes meanwhile may be in it or not.
///
/// *Cancel safety*: operations run on a tokio runtime, and may be awaited on any executor. One whose future is dropped is
/// dropped there: what was not sent by then is not done, what was sent is done whole, and its answer is lost.
///
/// *Durability*: as the server is set up. What was acknowledged survives the end of this process in any case. It survives
/// the end of the server with `appendonly yes` and `appendfsync always`; with `everysec`, Redis' default for its log, up to
/// the last second of it may be lost, and without a log all since the last snapshot. A change is in the log whole or not at
/// all. Where replicas take over, what they had not received is lost. The server must not evict keys
/// (`maxmemory-policy noeviction`, its default): a session of which keys are missing is `Corrupt`.
pub struct RedisStore {
    shared: Arc<Shared>,
    home: Home,
}

/// What operations use.
struct Shared {
    connections: Connections,
    prefix: Prefix,
    /// How long sessions last, as scripts have it.
    ttl: String,
    remote: RemoteOptions,
    /// Where the server is, as it may be shown.
    place: String,
}

impl RedisStore {
    /// Connects to the server that `url` names (`redis://` or, over TLS, `rediss://`), from within a tokio runtime, on which
    /// the store then runs: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`.
    ///
    /// For TLS the process needs one choice of cryptography: if it has made none, it is *ring* from now on.
    ///
    /// # Errors
    /// `Invalid` if the url is none, the server refuses the name or the password, the prefix has braces in it, there is no
    /// tokio runtime, or a newer version has written there; `Corrupt` if another program uses the prefix; `Unavailable` if
    /// the server cannot be reached.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        Self::greeted(open::by_url(url, &options)?, Home::current()?).await
    }

    /// The same without a tokio runtime: the store has its own, on a thread. Blocks while it connects.
    ///
    /// # Errors
    /// As [`RedisStore::connect`].
    pub fn open(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let shared = Arc::new(open::by_url(url, &options)?);
        let home = Home::start("epitome-redis")?;
        let greeted = Arc::clone(&shared);
        home.wait(async move { open::greet(&greeted).await })?;
        Ok(Self { shared, home })
    }

    /// Uses a connection that the caller has made and shares with others, from within the tokio runtime on which that was
    /// made. Its own times apply beside those of the options, of which it is the only connection.
    ///
    /// # Errors
    /// As [`RedisStore::connect`].
    pub async fn from_connection_manager(
        connection: ConnectionManager,
        options: RedisOptions,
    ) -> Result<Self, StoreError> {
        Self::given(Connection::Single(connection), &options).await
    }

    /// Connects to the Redis Cluster of which `urls` name some servers, from within a tokio runtime.
    ///
    /// # Errors
    /// As [`RedisStore::connect`].
    #[cfg(feature = "redis-cluster")]
    pub async fn connect_cluster(urls: &[&str], options: RedisOptions) -> Result<Self, StoreError> {
        Self::given(Connection::Cluster(open::cluster(urls, &options).await?), &options).await
    }

    /// Uses a connection to a Redis Cluster that the caller has made.
    ///
    /// # Errors
    /// As [`RedisStore::connect`].
    #[cfg(feature = "redis-cluster")]
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

    /// Attempts `operation` on the store's runtime until one does not fail for want of the server.
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
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("place", &self.shared.place).finish_non_exhaustive()
    }
}

#[async_trait]
impl HistoryStore for RedisStore {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        self.append_job(AppendJob::new(&self.shared, session, append)?).await.map(|(appended, _)| appended)
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.projection(session, Extent::All).await
    }

    async fn tail(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        Ok(self.projection(session, Extent::LastTurn).await?.into_last_turn())
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        let (keys, token) = (self.shared.prefix.keys(session), token.clone());
        self.run("appended", move |shared| {
            let (keys, token) = (keys.clone(), token.clone());
            async move { append::find(&shared, &keys, &token).await }
        })
        .await
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        let job = Arc::new(CommitJob::new(&self.shared, session, record)?);
        self.run("commit", move |shared| {
            let job = Arc::clone(&job);
            async move { job.run(&shared).await }
        })
        .await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        let keys = self.shared.prefix.keys(session);
        let page = self.run("log", move |shared| {
            let (keys, range) = (keys.clone(), range.clone());
            async move { read::log(&shared, &keys, range, limit).await }
        });
        page.await?.into_page()
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        let keys = self.shared.prefix.keys(session);
        let records = self.run("records", move |shared| {
            let keys = keys.clone();
            async move { read::records(&shared, &keys, after, limit).await }
        });
        read::committed(&records.await?)
    }

    async fn uncompact(&self, session: &SessionId, made: Revision) -> Result<Revision, StoreError> {
        let keys = self.shared.prefix.keys(session);
        self.run("uncompact", move |shared| {
            let keys = keys.clone();
            async move { undo::uncompact(&shared, &keys, made).await }
        })
        .await
    }

    async fn prune(&self, session: &SessionId, through: Revision) -> Result<Pruned, StoreError> {
        let keys = self.shared.prefix.keys(session);
        self.run("prune", move |shared| {
            let keys = keys.clone();
            async move { prune::prune(&shared, &keys, through).await }
        })
        .await
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        let keys = self.shared.prefix.keys(session);
        self.run("prunes", move |shared| {
            let keys = keys.clone();
            async move { read::prunes(&shared, &keys, after, limit).await }
        })
        .await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        let keys = self.shared.prefix.keys(session);
        self.run("appends", move |shared| {
            let keys = keys.clone();
            async move { read::appends(&shared, &keys, from, limit).await }
        })
        .await
    }

    async fn append_with_state(
        &self,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        let job = AppendJob::new(&self.shared, session, append)?.with_state(state);
        let (appended, outcome) = self.append_job(job).await?;
        Ok((appended, outcome.unwrap_or(StateOutcome::Unsupported)))
    }

    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        let (keys, state) = (self.shared.prefix.keys(session), OwnedState::of(state));
        let save = self.run("save_state", move |shared| {
            let (keys, state) = (keys.clone(), state.clone());
            async move { state::save(&shared, &keys, &state).await }
        });
        rules::saved_state(save.await?)
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        let keys = self.shared.prefix.keys(session);
        self.run("state", move |shared| {
            let keys = keys.clone();
            async move { state::find(&shared, &keys).await }
        })
        .await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let after = after.cloned();
        self.run("list", move |shared| {
            let after = after.clone();
            async move { list::list(&shared, after.as_ref(), limit).await }
        })
        .await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        let session = session.clone();
        self.run("delete", move |shared| {
            let session = session.clone();
            async move { read::delete(&shared, &session).await }
        })
        .await
    }
}

impl RedisStore {
    async fn append_job(&self, job: AppendJob) -> Result<(Appended, Option<StateOutcome>), StoreError> {
        let job = Arc::new(job);
        self.run("append", move |shared| {
            let job = Arc::clone(&job);
            async move { job.run(&shared).await }
        })
        .await
    }

    async fn projection(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        let keys = self.shared.prefix.keys(session);
        let found = self.run("load", move |shared| {
            let keys = keys.clone();
            async move { read::load(&shared, &keys, extent).await }
        });
        found.await?.into_loaded()
    }
}
