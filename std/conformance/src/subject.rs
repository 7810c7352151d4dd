//! The store that is looked at.

use std::sync::Arc;

use async_trait::async_trait;

use epitome_history::{HistoryStore, StoreError};

/// Opens the store that the scenarios are about.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Opens a handle on the store at `place`: a name of letters, digits, `_` and `-`, less than 150 bytes long, that each
    /// scenario has of its own. It may become the name of a folder, of a table, a prefix of keys, or be ignored: the
    /// sessions' names differ anyway. Opened again at the same place, it is another handle on the same sessions, as
    /// another process would have one; a store that can be opened only once gives the same handle again.
    ///
    /// # Errors
    /// What opening says. The scenario has failed then.
    async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError>;

    /// Whether a store at a place that was not opened before is empty. Lists are then looked at whole, and sessions have
    /// names that somebody else's could have, the empty one too. Otherwise all their names begin with the place's.
    fn is_apart(&self) -> bool {
        false
    }
}

/// One store for all scenarios, and one handle on it. The sessions in it are left alone.
#[derive(Debug)]
pub struct OneStore(Arc<dyn HistoryStore>);

impl OneStore {
    /// This store.
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
