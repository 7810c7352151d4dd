//! Requests for one session. Each request has a timeout; the SDK repeats throttled requests.

use core::fmt::Write;
use core::time::Duration;

use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::BatchResponse;
use azure_data_cosmos::{ContainerClient, CosmosError, Query, TransactionalBatch};
use epitome_core::Seq;
use epitome_history::{RemoteOptions, SessionId, StoreError, StoreErrorKind};
use futures::stream::{StreamExt, TryStreamExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::failure::{lost, of_cosmos, of_status};
use crate::ids::partition;
use crate::items::{Found, Staged, Text};

/// The partition of a session during an operation.
#[derive(Clone)]
pub(crate) struct Partition {
    container: ContainerClient,
    remote: RemoteOptions,
    /// The name of the operation in errors.
    operation: &'static str,
    pub(crate) session: SessionId,
    pub(crate) key: String,
    /// Maximum size of a text in one item, in bytes. A longer text is stored in pieces.
    pub(crate) text_bytes_max: usize,
}

/// Result of a batch: written, or refused because an item had changed. A refused batch writes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum Written {
    /// The batch was written. The value is the new etag of its first item.
    Done(String),
    Moved,
}

/// An item that every batch of a long operation replaces with the same content. The operation continues only while
/// other writers leave the item unchanged.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) id: String,
    pub(crate) item: Value,
    pub(crate) etag: String,
}

impl Guard {
    pub(crate) fn change(&self) -> Change {
        Change::Replace(self.id.clone(), self.item.clone(), self.etag.clone())
    }

    /// Writes these batches, each together with the guard. Returns `false` if another writer has changed the guard's
    /// item or an item of a batch.
    pub(crate) async fn write(
        &mut self,
        partition: &Partition,
        changes: impl IntoIterator<Item = Vec<Change>>,
    ) -> Result<bool, StoreError> {
        for mut batch in changes {
            batch.insert(0, self.change());
            match partition.batch(&batch).await? {
                Written::Done(etag) => self.etag = etag,
                Written::Moved => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl Partition {
    pub(crate) fn new(
        container: &ContainerClient,
        remote: RemoteOptions,
        operation: &'static str,
        session: &SessionId,
        text_bytes_max: usize,
    ) -> Self {
        let key = partition(session);
        Self {
            container: container.clone(),
            remote,
            operation,
            session: session.clone(),
            key,
            text_bytes_max,
        }
    }

    /// The item `id`, if it is there.
    pub(crate) async fn item<T: DeserializeOwned>(&self, id: &str) -> Result<Option<Found<T>>, StoreError> {
        let request = self.container.read_item(self.key.clone(), id, None);
        match self.timed(request).await? {
            Ok(response) => response.into_model().map(Some).map_err(|error| self.failed(&error)),
            Err(error) if error.status().is_not_found() && is_of_an_item(&error) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// The items that match `condition`, with all their fields.
    pub(crate) async fn items<T: DeserializeOwned + Send + 'static>(
        &self,
        condition: &str,
    ) -> Result<Vec<Found<T>>, StoreError> {
        self.query(&format!("SELECT * FROM c WHERE {condition}"), usize::MAX).await
    }

    /// The results of a query, at most `limit`.
    pub(crate) async fn query<T: DeserializeOwned + Send + 'static>(
        &self,
        query: &str,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let scope = FeedScope::partition(self.key.clone());
        query_container(&self.container, self.remote, self.operation, Query::from(query), scope, limit).await
    }

    /// The items of messages that match `condition` for any of these ranges.
    pub(crate) async fn in_ranges<T: DeserializeOwned + Send + 'static>(
        &self,
        fields: &str,
        ranges: &[(Seq, Seq)],
        condition: impl Fn(Seq, Seq) -> String,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        for ranges in ranges.chunks(RANGES_MAX) {
            let mut query = format!("SELECT {fields} FROM c WHERE (");
            for (at, (first, last)) in ranges.iter().enumerate() {
                let or = if at == 0 { "" } else { " OR " };
                // Writing into a text does not fail.
                let _ = write!(query, "{or}({})", condition(*first, *last));
            }
            query.push(')');
            found.extend(self.query(&query, usize::MAX).await?);
        }
        Ok(found)
    }

    /// Returns the whole text; joins the pieces of a long text.
    pub(crate) async fn text(&self, text: &Text) -> Result<String, StoreError> {
        if let Text::Here(text) = text {
            return Ok(text.clone());
        }
        let piece = |id: String| async move {
            let piece: Option<Found<Staged>> = self.item(&id).await?;
            piece.map(|piece| piece.fields.text).ok_or_else(|| lost("a piece of a text"))
        };
        let pieces: Vec<String> =
            futures::stream::iter(text.pieces()).map(piece).buffered(REQUESTS_MAX).try_collect().await?;
        Ok(pieces.concat())
    }

    /// Writes all changes of the batch, or none.
    pub(crate) async fn batch(&self, batch: &[Change]) -> Result<Written, StoreError> {
        let mut transaction = TransactionalBatch::new(self.key.clone());
        for change in batch {
            transaction = change.add(transaction).map_err(|error| self.failed(&error))?;
        }
        match self.timed(self.container.execute_transactional_batch(transaction, None)).await? {
            Ok(response) => self.written(response),
            Err(error) if is_of_an_item(&error) && is_moved(u16::from(error.status().status_code())) => {
                Ok(Written::Moved)
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn written(&self, response: BatchResponse) -> Result<Written, StoreError> {
        let status = response.status();
        let results = response.into_model().map_err(|error| self.failed(&error))?;
        // Status 424 marks a change that failed because another one failed.
        let failed = results.results().iter().filter(|result| !result.is_success());
        let failed: Vec<u16> =
            failed.map(|result| result.status_code()).filter(|status| *status != 424).collect();
        match failed.first() {
            None if results.results().iter().all(|result| result.is_success()) => {
                let first = results.results().first().and_then(|result| result.etag());
                Ok(Written::Done(first.unwrap_or_default().to_owned()))
            }
            Some(status) if is_moved(*status) => Ok(Written::Moved),
            Some(429 | 449) | None => Err(self.unavailable("the service is busy; try again")),
            Some(_) => Err(of_status(self.operation, status)),
        }
    }

    async fn timed<T>(
        &self,
        request: impl Future<Output = azure_data_cosmos::Result<T>>,
    ) -> Result<Result<T, CosmosError>, StoreError> {
        let late = |_| self.unavailable(&format!("no answer within {:?}", self.remote.timeout));
        timeout(self.remote.timeout, request).await.map_err(late)
    }

    /// Waits for a random time, so that competing writers can finish. The maximum grows with the number of failed
    /// attempts.
    pub(crate) async fn step_aside(&self, times: u32) {
        let longest = STEP_ASIDE.saturating_mul(1_u32.wrapping_shl(times.min(5)));
        // These bits of a random UUID are random.
        let share = Uuid::new_v4().as_fields().0 >> 16;
        sleep(longest.saturating_mul(share) / (1 << 16)).await;
    }

    pub(crate) fn failed(&self, error: &CosmosError) -> StoreError {
        of_cosmos(self.operation, error)
    }

    pub(crate) fn unavailable(&self, why: &str) -> StoreError {
        StoreError::new(StoreErrorKind::Unavailable, format!("{}: {why}", self.operation))
    }

    pub(crate) const fn operation(&self) -> &'static str {
        self.operation
    }
}

/// The results of a query, at most `limit`.
pub(crate) async fn query_container<T: DeserializeOwned + Send + 'static>(
    container: &ContainerClient,
    remote: RemoteOptions,
    operation: &'static str,
    query: Query,
    scope: FeedScope,
    limit: usize,
) -> Result<Vec<T>, StoreError> {
    let late = |_| {
        let context = format!("{operation}: no answer within {:?}", remote.timeout);
        StoreError::new(StoreErrorKind::Unavailable, context)
    };
    let asked =
        timeout(remote.timeout, container.query_items::<T>(query, scope, None)).await.map_err(late)?;
    let mut answers = asked.map_err(|error| of_cosmos(operation, &error))?;
    let mut found = Vec::new();
    while found.len() < limit {
        match timeout(remote.timeout, answers.try_next()).await.map_err(late)? {
            Ok(Some(answer)) => found.push(answer),
            Ok(None) => break,
            Err(error) => return Err(of_cosmos(operation, &error)),
        }
    }
    Ok(found)
}

/// A change of one item.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Create(Value),
    Upsert(Value),
    /// Id, new content, and the etag that the item must have.
    Replace(String, Value, String),
    Delete(String, Option<String>),
}

impl Change {
    fn add(&self, batch: TransactionalBatch) -> azure_data_cosmos::Result<TransactionalBatch> {
        use azure_data_cosmos::options::{BatchDeleteOptions, BatchReplaceOptions, Precondition};
        match self {
            Self::Create(item) => batch.create_item(item),
            Self::Upsert(item) => batch.upsert_item(item, None),
            Self::Replace(id, item, etag) => {
                let same = Precondition::IfMatch(etag.clone().into());
                batch.replace_item(
                    id.clone(),
                    item,
                    Some(BatchReplaceOptions::default().with_precondition(same)),
                )
            }
            Self::Delete(id, etag) => {
                let same = etag.clone().map(|etag| Precondition::IfMatch(etag.into()));
                let options = same.map(|same| BatchDeleteOptions::default().with_precondition(same));
                Ok(batch.delete_item(id.clone(), options))
            }
        }
    }

    /// Size of the change in a request, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let item = match self {
            Self::Create(item) | Self::Upsert(item) | Self::Replace(_, item, _) => item.to_string().len(),
            Self::Delete(..) => 0,
        };
        item.saturating_add(CHANGE_BYTES)
    }
}

/// Whether the error is about an item, and not about the container or a replica.
fn is_of_an_item(error: &CosmosError) -> bool {
    error.status().sub_status().is_none_or(|sub| sub.value() == 0)
}

/// Whether the status means that an item had changed.
const fn is_moved(status: u16) -> bool {
    matches!(status, 404 | 409 | 412)
}

/// Size of a change in a batch in addition to its item, in bytes: its id and its etag.
const CHANGE_BYTES: usize = 256;

/// Maximum number of ranges in one query. A query has at most 512 KiB; shorter queries are planned faster.
const RANGES_MAX: usize = 50;

/// Unit of the wait for other writers: about the time of a request in the region of the account.
const STEP_ASIDE: Duration = Duration::from_millis(5);

/// Maximum number of pieces of a text that are read at once.
const REQUESTS_MAX: usize = 8;
