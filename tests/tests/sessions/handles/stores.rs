//! A model that uses the numbers in notes gets back all facts, from every store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::history::{
    ByteStore, Fsync, HistoryStore, JsonlOptions, JsonlStore, MemoryStore, PostgresOptions, PostgresStore,
    RedisOptions, RedisStore, Saved, SessionId, SimpleHistory, SqliteStore, StoreError, StoreErrorKind,
};

use super::{PRESETS, all_facts_are_got_back};
use crate::sessions::support::server;

#[test]
fn each_of_fifty_facts_is_got_back_from_memory() {
    all_facts_are_got_back(&(Arc::new(MemoryStore::new()) as _), &PRESETS);
}

#[test]
fn each_of_fifty_facts_is_got_back_from_files() {
    let folder = std::env::temp_dir().join(format!("epitome-handles-{}", std::process::id()));
    let options = JsonlOptions::default().with_fsync(Fsync::Never);
    all_facts_are_got_back(&(Arc::new(JsonlStore::open_with(&folder, options).unwrap()) as _), &PRESETS);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn each_of_fifty_facts_is_got_back_from_sqlite() {
    all_facts_are_got_back(&(Arc::new(SqliteStore::open_in_memory().unwrap()) as _), &PRESETS);
}

/// Each operation reads all bytes of the session: each preset has a test of its own, so that the tests run in parallel.
#[test]
fn each_of_fifty_facts_is_got_back_from_bytes() {
    all_facts_are_got_back(&(Arc::new(SimpleHistory::new(Shelf::default())) as _), &PRESETS[..1]);
}

#[test]
fn each_of_fifty_facts_is_got_back_from_bytes_behind_summaries() {
    all_facts_are_got_back(&(Arc::new(SimpleHistory::new(Shelf::default())) as _), &PRESETS[1..]);
}

#[test]
fn each_of_fifty_facts_is_got_back_from_postgres() {
    let Some(url) = server("postgres") else { return };
    let options = PostgresOptions::default().with_schema("epitome test handles");
    let store: Arc<dyn HistoryStore> = Arc::new(PostgresStore::open_with(&url, options).unwrap());
    all_facts_are_got_back(&store, &PRESETS);
}

#[test]
fn each_of_fifty_facts_is_got_back_from_redis() {
    let Some(url) = server("redis") else { return };
    let prefix = format!("epitome-handles-{}", std::process::id());
    let store: Arc<dyn HistoryStore> =
        Arc::new(RedisStore::open(&url, RedisOptions::default().with_prefix(prefix)).unwrap());
    all_facts_are_got_back(&store, &PRESETS);
}

/// Bytes by name, each version with a number.
#[derive(Debug, Default)]
struct Shelf(Mutex<BTreeMap<SessionId, Saved>>);

#[async_trait]
impl ByteStore for Shelf {
    async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError> {
        Ok(self.0.lock().unwrap().get(session).cloned())
    }

    async fn save(
        &self,
        session: &SessionId,
        was: Option<&Saved>,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let mut saved = self.0.lock().unwrap();
        let version = |saved: Option<&Saved>| saved.map(|saved| saved.version.clone());
        let there = version(saved.get(session));
        if there != version(was) {
            return Err(StoreError::new(StoreErrorKind::Conflict, "another version is there"));
        }
        let next = there.map_or(0, |there| there.parse::<u64>().unwrap() + 1);
        match bytes {
            Some(bytes) => drop(saved.insert(session.clone(), Saved::new(bytes.to_vec(), next.to_string()))),
            None => drop(saved.remove(session)),
        }
        Ok(())
    }

    async fn names(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        let saved = self.0.lock().unwrap();
        let behind = saved.keys().filter(|name| after.is_none_or(|after| *name > after));
        Ok(behind.take(limit as usize).cloned().collect())
    }
}
