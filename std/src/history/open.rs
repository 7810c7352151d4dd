//! Stores by name.

use std::sync::Arc;

use super::rules::invalid;
use super::{HistoryStore, MemoryStore, StoreError};

/// Opens the store that `url` names. Blocks while it does so.
///
/// | url | store |
/// |---|---|
/// | `memory:` | a new [`MemoryStore`] |
/// | `sqlite:PATH` | the SQLite file at `PATH`, created if there is none (feature `sqlite`) |
///
/// ```
/// let store = epitome_std::history::open_store("memory:")?;
/// # Ok::<(), epitome_std::history::StoreError>(())
/// ```
///
/// # Errors
/// `Invalid` for any other url; otherwise what opening the store says.
pub fn open_store(url: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
    // What stands after the scheme may hold a password: it is not repeated.
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(MemoryStore::new())),
        Some(("memory", _)) => Err(invalid("open: nothing may stand after `memory:`")),
        Some(("sqlite", path)) => open_sqlite(path),
        Some((scheme, _)) => Err(invalid(format!("open: no store is named {scheme:?}; known are {KNOWN}"))),
        None => Err(invalid(format!("open: the url names no store; known are {KNOWN}"))),
    }
}

const KNOWN: &str = "`memory:` and `sqlite:PATH`";

#[cfg(feature = "sqlite")]
fn open_sqlite(path: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
    if path.is_empty() {
        return Err(invalid("open: a path must follow `sqlite:`"));
    }
    Ok(Arc::new(super::SqliteStore::open(path)?))
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(_: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
    Err(invalid("open: this build has no SQLite; build it with the feature `sqlite`"))
}
