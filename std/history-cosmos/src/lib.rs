//! A store in Azure Cosmos DB for NoSQL.
//!
//! This crate reads the facts of an operation and writes its changes. The decisions are made in `epitome-history`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod change;
mod delete;
mod failure;
mod foreign;
mod ids;
mod items;
mod members;
mod prune;
mod read;
mod requests;
mod transaction;
mod write;

#[cfg(test)]
mod tests;

use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::{AccountReference, ContainerClient, CosmosClient, Query, RoutingStrategy};
use epitome_core::{Revision, Seq};
use epitome_history::kernel::{Extent, Op, Reply, Tables};
use epitome_history::remote::{Home, retry};
use epitome_history::rules::invalid;
use epitome_history::{
    AppendToken, Appended, Committed, KeptState, Loaded, LogPage, LoggedAppend, Pruned, RemoteOptions,
    SessionId, SessionInfo, StoreError,
};

#[cfg(feature = "provider")]
use epitome_std::provider::{HistoryProvider, source_id};

/// The SDK of Azure, with the types of an account, a credential and a container.
pub use azure_data_cosmos;

use self::failure::of_cosmos;
use self::ids::name_hex;
use self::items::Session;
use self::requests::{Partition, query_container};
use self::transaction::Job;

/// A store for sessions in a container of Azure Cosmos DB for NoSQL.
///
/// ```no_run
/// use epitome_cosmos::azure_data_cosmos::options::Region;
/// use epitome_cosmos::azure_data_cosmos::{AccountEndpoint, AccountReference, RoutingStrategy};
/// use epitome_cosmos::CosmosStore;
/// use epitome_history::{HistoryStore, RemoteOptions, SessionId};
///
/// # async fn example(key: String) -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint: AccountEndpoint = "https://agents.documents.azure.com/".parse()?;
/// let account = AccountReference::with_authentication_key(endpoint, key);
/// let region = RoutingStrategy::ProximityTo(Region::WEST_EUROPE);
/// let store = CosmosStore::connect(account, region, "agents", "sessions", RemoteOptions::default()).await?;
/// let loaded = store.load(&SessionId::new("demo")).await?;
/// # Ok(())
/// # }
/// ```
///
/// The container has the partition key `/session_id`: all items of a session are in one logical partition, for which
/// the service stores up to 20 GB. `docs/cosmos.md` has the command that creates a container, the items, and the costs
/// of operations.
///
/// *Atomic steps*: each operation ends with one transactional batch. The batch replaces the item of the session, and
/// only if its etag has not changed since the read. An append of more than 25 messages or about 1 MB first writes the
/// messages as invisible items; the batch makes them visible. A prune is decided in one batch. Its texts are deleted
/// after the batch and before the answer; if that is interrupted, the next change deletes them first.
///
/// *Concurrency*: any number of stores, also in several processes, may use one container. Items of other programs in
/// the partition of a session are left unchanged.
///
/// *Consistency*: the account needs one region for writes, and session consistency (the service's default) or a
/// stronger one. With two write regions, the service would keep one of two conflicting changes and lose the other. A
/// store sees its own writes. A read may not yet see a recent write of another store; the service refuses a change that
/// is based on an older state, and the store decides the change again.
///
/// *Cancel safety*: operations run on a tokio runtime, and may be awaited on any executor. Dropping the future of an
/// operation stops the operation: a batch that was sent is written completely, and a batch that was not sent is not
/// written. A repetition of the operation finds out which of the two happened.
///
/// *Durability*: an acknowledged write is on a quorum of replicas in a region, and in other regions according to the
/// settings of the account.
pub struct CosmosStore {
    container: ContainerClient,
    remote: RemoteOptions,
    home: Home,
    /// Maximum size of a text in one item, in bytes. A longer text is stored in pieces.
    text_bytes_max: usize,
}

impl CosmosStore {
    /// Connects to the account and opens the container. Call it within a tokio runtime; the store then runs on that
    /// runtime.
    ///
    /// The timeout in `options` applies to each request. The SDK repeats throttled requests after the delay that the
    /// service asks for; `options` sets how often an operation is repeated after that. The SDK chooses its own number
    /// of connections.
    ///
    /// # Errors
    /// `Invalid` if the account refuses the credential, the database or the container does not exist, the container has
    /// another partition key, or there is no tokio runtime; `Unavailable` if the service cannot be reached.
    pub async fn connect(
        account: AccountReference,
        routing: RoutingStrategy,
        database: &str,
        container: &str,
        options: RemoteOptions,
    ) -> Result<Self, StoreError> {
        let failed = |error| of_cosmos("open", &error);
        let client = CosmosClient::builder().build(account, routing).await.map_err(failed)?;
        let database = client.database_client(database.to_owned());
        let container = database.container_client(container.to_owned(), None).await.map_err(failed)?;
        Self::in_container(container, options).await
    }

    /// Uses a container that the application has opened. Call it within a tokio runtime; the store then runs on that
    /// runtime.
    ///
    /// # Errors
    /// As [`CosmosStore::connect`].
    pub async fn in_container(
        container: ContainerClient,
        options: RemoteOptions,
    ) -> Result<Self, StoreError> {
        let home = Home::current()?;
        let asked = container.read(None).await.map_err(|error| of_cosmos("open", &error))?;
        let properties = asked.into_model().map_err(|error| of_cosmos("open", &error))?;
        let paths: Vec<&str> = properties.partition_key.paths().iter().map(AsRef::as_ref).collect();
        if paths != [PARTITION_KEY] {
            return Err(invalid(format!(
                "open: the partition key of the container is {}; the store needs one with {PARTITION_KEY}",
                paths.join(", ")
            )));
        }
        Ok(Self { container, remote: options, home, text_bytes_max: write::TEXT_BYTES_MAX })
    }

    /// Makes a history provider of the store: it loads the history of a run, and stores input and response. Its source
    /// id is `cosmos_memory`. For a second such store in one agent, use `HistoryProvider::new` with another id.
    #[cfg(feature = "provider")]
    #[must_use]
    pub fn into_history_provider(self) -> HistoryProvider {
        HistoryProvider::new(source_id::COSMOS_MEMORY, Arc::new(self))
    }

    /// Reads the messages that `CosmosHistoryProvider` of Microsoft Agent Framework for Python has written in this
    /// container for a session under a source id (its default is `azure_cosmos_history`). Returns the JSON text of each
    /// message, oldest first.
    ///
    /// `epitome_wire::agent_framework` reads these texts, and a session of the store can take the messages. Both
    /// sessions may have the same id, and neither reads or deletes the items of the other.
    ///
    /// # Errors
    /// `Unavailable` if the service fails, as for any operation; `Corrupt` if an item under that source id has no
    /// message.
    pub async fn agent_framework_messages(
        &self,
        session_id: &str,
        source_id: &str,
    ) -> Result<Vec<Box<str>>, StoreError> {
        let source_id = source_id.to_owned();
        // Agent Framework uses the session id itself as the partition key.
        let key = session_id.to_owned();
        let (container, remote) = (self.container.clone(), self.remote);
        let patient = remote.with_timeout(OPERATION_TIME_MAX);
        let read = async move {
            retry(&patient, "agent_framework_messages", || {
                foreign::messages(&container, remote, &key, &source_id)
            })
            .await
        };
        self.home.run(read).await
    }

    fn partition(&self, operation: &'static str, session: &SessionId) -> Partition {
        Partition::new(&self.container, self.remote, operation, session, self.text_bytes_max)
    }

    /// Runs `operation` on a session, and repeats it while the service is unavailable.
    async fn run<T, F>(
        &self,
        name: &'static str,
        session: &SessionId,
        operation: impl Fn(Arc<Partition>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let partition = Arc::new(self.partition(name, session));
        // The timeout limits each request; an operation of many requests has `OPERATION_TIME_MAX`.
        let patient = self.remote.with_timeout(OPERATION_TIME_MAX);
        self.home.run(async move { retry(&patient, name, || operation(Arc::clone(&partition))).await }).await
    }
}

impl fmt::Debug for CosmosStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CosmosStore").finish_non_exhaustive()
    }
}

impl Tables for CosmosStore {
    async fn execute(&self, session: &SessionId, op: Op<'_>) -> Result<Reply, StoreError> {
        let partition = self.partition(op.name(), session);
        let job = Arc::new(Job::new(partition, op)?);
        let run = move |_| {
            let job = Arc::clone(&job);
            async move { job.run().await }
        };
        self.run(op.name(), session, run).await
    }

    async fn load(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        let load = move |partition: Arc<Partition>| async move { read::load(&partition, extent).await };
        self.run("load", session, load).await
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        let token = token.clone();
        let find = move |partition: Arc<Partition>| {
            let token = token.clone();
            async move { read::appended(&partition, &token).await }
        };
        self.run("appended", session, find).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        let log = move |partition: Arc<Partition>| {
            let range = range.clone();
            async move { read::log(&partition, range, limit).await }
        };
        self.run("log", session, log).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        let records =
            move |partition: Arc<Partition>| async move { read::records(&partition, after, limit).await };
        self.run("records", session, records).await
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        let prunes =
            move |partition: Arc<Partition>| async move { read::prunes(&partition, after, limit).await };
        self.run("prunes", session, prunes).await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        let appends =
            move |partition: Arc<Partition>| async move { read::appends(&partition, from, limit).await };
        self.run("appends", session, appends).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        let state = move |partition: Arc<Partition>| async move { read::state(&partition).await };
        self.run("state", session, state).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let (container, remote) = (self.container.clone(), self.remote);
        let after = after.map(name_hex);
        let patient = remote.with_timeout(OPERATION_TIME_MAX);
        let list = async move {
            retry(&patient, "list", || list(&container, remote, after.as_deref(), limit)).await
        };
        self.home.run(list).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        let delete = move |partition: Arc<Partition>| async move { delete::delete(&partition).await };
        self.run("delete", session, delete).await
    }
}

async fn list(
    container: &ContainerClient,
    remote: RemoteOptions,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<SessionInfo>, StoreError> {
    let behind = after.map_or(String::new(), |after| format!(" AND c.name_hex > '{after}'"));
    let query = format!("SELECT {LISTED} FROM c WHERE c.epitome = 'session'{behind} ORDER BY c.name_hex");
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let scope = FeedScope::full_container();
    let found: Vec<Session> =
        query_container(container, remote, "list", Query::from(query), scope, limit).await?;
    let info = |session: Session| {
        let counters = session.counters()?;
        let mut info = SessionInfo::new(SessionId::new(session.name));
        (info.head, info.revision) = (counters.head, counters.revision);
        (info.live_messages, info.live_tokens) = (counters.live_messages, counters.live_tokens);
        (info.created, info.appended) = (counters.created, counters.appended);
        Ok(info)
    };
    found.into_iter().map(info).collect()
}

/// The partition key of the container. Agent Framework uses the same one.
const PARTITION_KEY: &str = "/session_id";

/// Fields of a session that a list reads.
const LISTED: &str =
    "c.layout, c.name, c.head, c.revision, c.live_messages, c.live_tokens, c.created, c.appended";

/// Maximum time of an operation: an import of a gigabyte takes some minutes.
const OPERATION_TIME_MAX: Duration = Duration::from_secs(3600);
