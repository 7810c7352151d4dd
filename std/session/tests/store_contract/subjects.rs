//! The stores of this crate, as subjects of the suite.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome_conformance::Subject;
use epitome_std::history::{Fsync, HistoryStore, JsonlOptions, JsonlStore, MemoryStore, StoreError};
use tempfile::TempDir;

pub(crate) use crate::simple::simple;

type Opened = Result<Arc<dyn HistoryStore>, StoreError>;

/// Opens stores of one kind: each place in its own folder, or all places in one.
struct Files<Open> {
    folder: TempDir,
    is_apart: bool,
    open: Open,
}

#[async_trait]
impl<Open: Fn(&std::path::Path) -> Opened + Send + Sync> Subject for Files<Open> {
    async fn open(&self, place: &str) -> Opened {
        (self.open)(&self.folder.path().join(if self.is_apart { place } else { "one" }))
    }

    fn is_apart(&self) -> bool {
        self.is_apart
    }
}

fn files(is_apart: bool, open: impl Fn(&std::path::Path) -> Opened + Send + Sync) -> impl Subject {
    Files { folder: tempfile::tempdir().unwrap(), is_apart, open }
}

/// A store for each place, with one handle only.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Arc<MemoryStore>>>);

#[async_trait]
impl Subject for Memory {
    async fn open(&self, place: &str) -> Opened {
        Ok(Arc::clone(self.0.lock().unwrap().entry(place.to_owned()).or_default()) as _)
    }

    fn is_apart(&self) -> bool {
        true
    }
}

pub(crate) fn memory() -> impl Subject {
    Memory::default()
}

pub(crate) fn jsonl() -> impl Subject {
    files(true, |path| Ok(Arc::new(JsonlStore::open(path)?)))
}

/// JSONL files that are never synced to the disk.
pub(crate) fn jsonl_unsynced(is_apart: bool) -> impl Subject {
    let options = JsonlOptions::default().with_fsync(Fsync::Never);
    files(is_apart, move |path| Ok(Arc::new(JsonlStore::open_with(path, options)?)))
}

#[cfg(feature = "sqlite")]
pub(crate) fn sqlite() -> impl Subject {
    sqlite_files(true)
}

#[cfg(feature = "sqlite")]
pub(crate) fn sqlite_files(is_apart: bool) -> impl Subject {
    files(is_apart, |path| Ok(Arc::new(epitome_std::history::SqliteStore::open(path)?)))
}

/// A key of these bytes.
#[cfg(feature = "encryption")]
pub(crate) fn key(byte: u8) -> epitome_std::history::StoreKey {
    epitome_std::history::StoreKey::new([byte; 32])
}

#[cfg(feature = "encryption")]
pub(crate) fn jsonl_encrypted() -> impl Subject {
    let options = JsonlOptions::default().with_fsync(Fsync::Never);
    files(true, move |path| Ok(Arc::new(JsonlStore::open_encrypted(path, options, key(1))?)))
}

#[cfg(all(feature = "encryption", feature = "sqlite"))]
pub(crate) fn sqlite_encrypted() -> impl Subject {
    files(true, |path| Ok(Arc::new(epitome_std::history::SqliteStore::open_encrypted(path, key(1))?)))
}

/// Separate tables for each place, on the available server.
#[cfg(feature = "postgres")]
struct Postgres(Mutex<BTreeMap<String, crate::postgres_server::Tables>>);

#[cfg(feature = "postgres")]
#[async_trait]
impl Subject for Postgres {
    async fn open(&self, place: &str) -> Opened {
        let mut places = self.0.lock().unwrap();
        if !places.contains_key(place) {
            places.extend(crate::postgres_server::tables().map(|tables| (place.to_owned(), tables)));
        }
        Ok(Arc::new(places[place].open()))
    }

    fn is_apart(&self) -> bool {
        true
    }
}

#[cfg(feature = "postgres")]
pub(crate) fn postgres() -> Option<impl Subject> {
    crate::postgres_server::url().map(|_| Postgres(Mutex::default()))
}
