//! The store under test.

use std::sync::Arc;

use async_trait::async_trait;

use epitome_history::{HistoryStore, StoreError};

/// Opens the store under test.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use epitome_conformance::{Subject, Suite};
/// use epitome_history::{HistoryStore, MemoryStore, StoreError};
///
/// /// One store in memory. Each handle is a handle on it.
/// struct InMemory(Arc<MemoryStore>);
///
/// #[async_trait]
/// impl Subject for InMemory {
///     async fn open(&self, _place: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
///         Ok(Arc::clone(&self.0) as _)
///     }
/// }
///
/// futures::executor::block_on(async {
///     Suite::new().with_cases(1).run(&InMemory(Arc::new(MemoryStore::new()))).await.assert_passed();
/// });
/// ```
#[async_trait]
pub trait Subject: Send + Sync {
    /// Opens a handle on the store at `place`. A place is a name of letters, digits, `_` and `-`, shorter than 150
    /// bytes; each scenario has its own. It may become the name of a folder or table, or a prefix of keys. It may also
    /// be ignored, because the sessions' ids differ anyway. A second call with the same place must return another
    /// handle on the same sessions, as another process would have it. A store that can be opened only once returns the
    /// same handle again.
    ///
    /// # Errors
    /// The error of the store. The scenario then fails.
    async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError>;

    /// Whether a store at a new place is empty. If `true`, scenarios check whole lists, and use common session ids,
    /// including the empty one. If `false`, all ids of a scenario begin with its place.
    fn is_apart(&self) -> bool {
        false
    }
}

/// One handle on one store, for all scenarios. Other sessions in the store are not changed.
#[derive(Debug)]
pub struct OneStore(Arc<dyn HistoryStore>);

impl OneStore {
    /// Makes the subject of this store.
    #[must_use]
    pub fn new(store: Arc<dyn HistoryStore>) -> Self {
        Self(store)
    }
}

#[async_trait]
impl Subject for OneStore {
    async fn open(&self, _: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
        Ok(Arc::clone(&self.0))
    }
}
