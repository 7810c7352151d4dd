//! A store in Azure Cosmos DB for NoSQL.
//!
//! This crate reads the facts of an operation and writes its changes. It decides nothing: `epitome-history` does.

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

/// The SDK, of which an account, its credential and a container are.
pub use azure_data_cosmos;

use self::failure::of_cosmos;
use self::ids::name_hex;
use self::items::Session;
use self::requests::{Partition, query_container};
use self::transaction::Job;

/// Keeps sessions in a container of Azure Cosmos DB for NoSQL.
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
/// The container has the partition key `/session_id`: all items of a session are in one logical partition, of which the service stores up to
/// 20 GB. `docs/cosmos.md` has the command that makes a container, the items, and what operations cost.
///
/// *Atomic steps*: an operation is one transactional batch with the item of the session, which is replaced only if its etag is the one that
/// was read. An append of more than 25 messages or about 1 MB writes them first, invisible until that batch. A prune is decided in one
/// batch; its texts are deleted after it and before the answer, and if that is interrupted, before the next change.
///
/// *Concurrency*: any number of stores, also in several processes, may use one container. Others in the partition of a session are left alone.
///
/// *Consistency*: the account needs one region for writes, and session consistency, the service's default, or a stronger one: where two
/// regions write, the service chooses one of two changes, and the other is lost. A store sees its own writes. A write of another store may
/// come later to a reading; a change that rests on something older is refused by the service and decided anew.
///
/// *Cancel safety*: operations run on a tokio runtime, and may be awaited on any executor. One whose future is dropped is dropped there: a
/// batch that was sent is done whole, one that was not sent is not done. A repetition finds out.
///
/// *Durability*: an acknowledged write is on a quorum of replicas in a region, and in others as the account says.
pub struct CosmosStore {
    container: ContainerClient,
    remote: RemoteOptions,
    home: Home,
    /// A longer text is in pieces.
    text_bytes_max: usize,
}

impl CosmosStore {
    /// Connects to the account and opens the container, from within a tokio runtime, on which the store then runs.
    ///
    /// The time of `options` is that of one request. The SDK repeats requests that were throttled, after as long as the service
    /// asks for; `options` says how often an operation is repeated after that. The SDK chooses its own number of connections.
    ///
    /// # Errors
    /// `Invalid` if the account refuses the credential, there is no such database or container, its partition key is another
    /// one, or there is no tokio runtime; `Unavailable` if the service cannot be reached.
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

    /// Uses a container that the application has opened, from within the tokio runtime on which the store then runs.
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

    /// The store as a history of runs: it loads, and stores input and response. Its source id is `cosmos_memory`; an agent with two such
    /// stores takes `HistoryProvider::new` for the second one, with an id of its own.
    #[cfg(feature = "provider")]
    #[must_use]
    pub fn into_history_provider(self) -> HistoryProvider {
        HistoryProvider::new(source_id::COSMOS_MEMORY, Arc::new(self))
    }

    /// The messages that `CosmosHistoryProvider` of Microsoft Agent Framework for Python has written in this container for a session
    /// under a source id (its default is `azure_cosmos_history`), oldest first, each as its JSON text.
    ///
    /// `epitome_wire::agent_framework` reads them, and a session of the store can take them: both may have the same id, and
    /// neither reads or deletes the items of the other.
    ///
    /// # Errors
    /// `Unavailable`, as any operation; `Corrupt` if an item under that source id has no message.
    pub async fn agent_framework_messages(
        &self,
        session_id: &str,
        source_id: &str,
    ) -> Result<Vec<Box<str>>, StoreError> {
        let source_id = source_id.to_owned();
        // The id itself is the partition key there.
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

    /// Attempts `operation` on a session until one does not fail for want of the service.
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
        // Requests have their time, an operation of many requests has as much as they need.
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

/// The partition key of the container, that of Agent Framework's too.
const PARTITION_KEY: &str = "/session_id";

/// Fields of a session that a list reads.
const LISTED: &str =
    "c.layout, c.name, c.head, c.revision, c.live_messages, c.live_tokens, c.created, c.appended";

/// An import of a gigabyte takes some minutes.
const OPERATION_TIME_MAX: Duration = Duration::from_secs(3600);
