//! Stores that only get and save bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome_core::Seq;
use epitome_std::history::StoreErrorKind::{Conflict, Corrupt, NotFound, Unavailable, Unsupported};
use epitome_std::history::conformance::{OneStore, Subject, Suite};
use epitome_std::history::{ByteStore, HistoryStore, Saved, SessionId, SimpleHistory, StoreError};
use futures::executor::block_on;

use crate::faults::pause;
use crate::support::{append, commit, fails, fill, keys, load, prune, record, session, summarized, user};

/// Bytes by name, each version with a number. Others get their turn between what is read and what is saved.
#[derive(Debug, Clone, Default)]
struct Shelf {
    saved: Arc<Mutex<BTreeMap<SessionId, Saved>>>,
    /// Whether it saves whatever is there.
    is_blind: bool,
}

#[async_trait]
impl ByteStore for Shelf {
    async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError> {
        let saved = self.saved.lock().unwrap().get(session).cloned();
        pause().await;
        Ok(saved)
    }

    async fn save(
        &self,
        session: &SessionId,
        was: Option<&Saved>,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        pause().await;
        let mut saved = self.saved.lock().unwrap();
        let there = saved.get(session);
        if !self.is_blind && there.map(|it| &it.version) != was.map(|it| &it.version) {
            return Err(StoreError::new(Conflict, "save: another version is there"));
        }
        let version = there.map_or(0, |there| there.version.parse().unwrap()) + 1;
        match bytes {
            Some(bytes) => {
                drop(saved.insert(session.clone(), Saved::new(bytes.to_vec(), version.to_string())))
            }
            None => drop(saved.remove(session)),
        }
        Ok(())
    }

    async fn names(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        let saved = self.saved.lock().unwrap();
        let behind = saved.keys().filter(|name| after.is_none_or(|after| *name > after));
        Ok(behind.take(limit as usize).cloned().collect())
    }
}

/// Each handle is a process of its own, with nothing in common but the bytes.
struct Shelves(Mutex<BTreeMap<String, Shelf>>, bool);

#[async_trait]
impl Subject for Shelves {
    async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
        let mut shelves = self.0.lock().unwrap();
        let shelf = shelves.entry(place.to_owned()).or_default();
        shelf.is_blind = self.1;
        Ok(Arc::new(SimpleHistory::new(shelf.clone())))
    }

    fn is_apart(&self) -> bool {
        true
    }
}

pub(crate) fn simple() -> impl Subject {
    Shelves(Mutex::default(), false)
}

#[test]
fn one_shelf_passes_beside_others() {
    crate::every_store::passes_beside_others(
        Suite::new(),
        &OneStore::new(Arc::new(SimpleHistory::new(Shelf::default()))),
    );
}

/// Saving blindly loses what another process writes at the same time, and nothing else.
#[test]
fn a_shelf_that_saves_blindly_fails_between_processes_only() {
    let (blind, suite) = (Shelves(Mutex::default(), true), Suite::new().with_cases(5));
    let handles = || Suite::scenarios().filter(|(group, _)| ["handles", "random"].contains(group));
    let failed: Vec<&str> = handles()
        .map(|(_, scenario)| scenario)
        .filter(|scenario| block_on(suite.run_one(scenario, &blind)).passed() == 0)
        .collect();
    let racing = [
        "of_two_appends_at_one_head_one_succeeds",
        "of_two_commits_on_one_revision_one_succeeds",
        "an_append_and_a_commit_at_once_both_succeed",
    ];
    assert_eq!(failed, racing);
    // With one handle for all it is whole.
    let one = OneStore::new(Arc::new(SimpleHistory::new(Shelf { is_blind: true, ..Shelf::default() })));
    for (_, scenario) in handles() {
        block_on(suite.run_one(scenario, &one)).assert_passed();
    }
}

/// A session with something of everything.
fn written(shelf: &Shelf) -> SimpleHistory<Shelf> {
    let store = SimpleHistory::new(shelf.clone());
    fill(&store, 6);
    commit(&store, &summarized(record(0, 6, &[(0, 1)]), &[&[(0, 1)]])).unwrap();
    commit(&store, &summarized(record(1, 6, &[(0, 3)]), &[&[(0, 3)]])).unwrap();
    prune(&store, 1).unwrap();
    store
}

#[test]
fn no_byte_may_change() {
    let shelf = Shelf::default();
    let store = written(&shelf);
    let whole = shelf.saved.lock().unwrap()[&session()].bytes.clone();
    assert!(whole.starts_with(b"epitome-session 1 "));
    let put = |bytes: Vec<u8>| {
        shelf.saved.lock().unwrap().insert(session(), Saved::new(bytes, "1"));
        block_on(store.load(&session()))
    };
    let loaded = put(whole.clone()).unwrap();
    for at in 0..whole.len() {
        for bit in [0, 5, 7] {
            let mut other = whole.clone();
            other[at] ^= 1 << bit;
            fails(put(other), Corrupt);
        }
    }
    for len in 0..whole.len() {
        fails(put(whole[..len].to_vec()), Corrupt);
    }
    let error = put(b"question 1".to_vec()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("question"));
    // What is corrupt is not written over, and can be deleted.
    fails(append(&store, "more", 6, &[user(6)]), Corrupt);
    assert!(block_on(store.delete(&session())).unwrap());
    fails(block_on(store.load(&session())), NotFound);
    assert_eq!(put(whole).unwrap(), loaded);
}

#[test]
fn the_bytes_of_another_session_are_not_taken() {
    let shelf = Shelf::default();
    let store = written(&shelf);
    let mut saved = shelf.saved.lock().unwrap();
    let bytes = saved[&session()].clone();
    saved.insert(SessionId::new("other"), bytes);
    drop(saved);
    fails(block_on(store.load(&SessionId::new("other"))), Corrupt);
}

/// It gets what is there, and says that something else is there whenever it is to save.
#[derive(Debug)]
struct Overtaken(Shelf);

#[async_trait]
impl ByteStore for Overtaken {
    async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError> {
        self.0.get(session).await
    }

    async fn save(&self, _: &SessionId, _: Option<&Saved>, _: Option<&[u8]>) -> Result<(), StoreError> {
        Err(StoreError::new(Conflict, "save: another version is there"))
    }
}

#[test]
fn who_is_always_overtaken_gives_up() {
    let shelf = Shelf::default();
    fill(&SimpleHistory::new(shelf.clone()), 2);
    let store = SimpleHistory::new(Overtaken(shelf));
    fails(append(&store, "t", 2, &[user(2)]), Unavailable);
    fails(block_on(store.delete(&session())), Unavailable);
    fails(block_on(store.list(None, 9)), Unsupported);
    // What changes nothing saves nothing.
    assert_eq!(append(&store, "fill", 0, &[user(0), user(1)]).unwrap().head, Seq(2));
    assert_eq!((keys(&store), load(&store).head), (vec![0, 1], Seq(2)));
}
