//! Stores by name.

use std::sync::Arc;

use epitome_history::rules::invalid;

use super::{HistoryStore, JsonlStore, MemoryStore, StoreError};

/// Opens the store at `url`. Blocks the thread.
///
/// | url | store |
/// |---|---|
/// | `memory:` | a new [`MemoryStore`] |
/// | `jsonl:DIR` | the files in the directory `DIR`, made if there is none: a [`JsonlStore`] |
/// | `sqlite:PATH` | the SQLite file at `PATH`, created if there is none (feature `sqlite`) |
/// | `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, `postgresql://..` | tables in that database, made if missing (feature `postgres`) |
/// | `redis://..`, `rediss://..` | the Redis server there, over TLS with the second (feature `redis`) |
///
/// ```
/// let store = epitome_std::history::open_store("memory:")?;
/// # Ok::<(), epitome_std::history::StoreError>(())
/// ```
///
/// # Errors
/// `Invalid` for any other url; otherwise the error of opening the store.
pub fn open_store(url: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
    // The text after the scheme may contain a password: errors do not repeat it.
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(MemoryStore::new())),
        Some(("memory", _)) => Err(invalid("open: nothing may stand after `memory:`")),
        Some(("jsonl", "")) => Err(invalid("open: a directory must follow `jsonl:`")),
        Some(("jsonl", folder)) => Ok(Arc::new(JsonlStore::open(folder)?)),
        Some(("sqlite", path)) => open_sqlite(path),
        Some(("postgres" | "postgresql", _)) => open_postgres(url),
        Some(("redis" | "rediss", _)) => open_redis(url),
        Some((scheme, _)) => Err(invalid(format!("open: no store is named {scheme:?}; known are {KNOWN}"))),
        None => Err(invalid(format!("open: the url names no store; known are {KNOWN}"))),
    }
}

/// Opens a `jsonl:DIR` or `sqlite:PATH` store as [`open_store`] does, with its texts encrypted by `key`.
///
/// ```
/// use epitome_std::history::{StoreKey, open_store_with_key};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let url = format!("jsonl:{}", directory.path().display());
/// let key = StoreKey::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")?;
/// let store = open_store_with_key(&url, key)?;
/// # Ok::<(), epitome_std::history::StoreError>(())
/// ```
///
/// # Errors
/// As [`open_store`]; `Invalid` for a store that does not encrypt, or that is not encrypted with this key.
#[cfg(feature = "encryption")]
pub fn open_store_with_key(url: &str, key: super::StoreKey) -> Result<Arc<dyn HistoryStore>, StoreError> {
    match url.split_once(':') {
        Some(("jsonl", folder)) if !folder.is_empty() => {
            Ok(Arc::new(JsonlStore::open_encrypted(folder, super::JsonlOptions::default(), key)?))
        }
        #[cfg(feature = "sqlite")]
        Some(("sqlite", path)) if !path.is_empty() => {
            Ok(Arc::new(super::SqliteStore::open_encrypted(path, key)?))
        }
        _ => Err(invalid(
            "open: only `jsonl:DIR` and `sqlite:PATH` are encrypted; open any other store without a key",
        )),
    }
}

const KNOWN: &str =
    "`memory:`, `jsonl:DIR`, `sqlite:PATH`, `postgres://..`, `redis://HOST` and `rediss://HOST`";

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

#[cfg(feature = "postgres")]
fn open_postgres(url: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
    Ok(Arc::new(super::PostgresStore::open(url)?))
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
    Err(invalid("open: this build has no Postgres; build it with the feature `postgres`"))
}

#[cfg(feature = "redis")]
fn open_redis(url: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
    Ok(Arc::new(super::RedisStore::open(url, super::RedisOptions::default())?))
}

#[cfg(not(feature = "redis"))]
fn open_redis(_: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
    Err(invalid("open: this build has no Redis; build it with the feature `redis`"))
}
