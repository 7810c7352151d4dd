//! Stores that only load and save bytes.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome_conformance::{OneStore, Subject, Suite};
use epitome_core::Seq;
use epitome_std::history::StoreErrorKind::{Conflict, Corrupt, NotFound, Unavailable, Unsupported};
use epitome_std::history::{
    Append, AppendToken, ByteStore, Entry, HistoryStore, HistoryStoreExt, Saved, SessionId, SimpleHistory,
    StoreError,
};
use futures::executor::block_on;

use crate::faults::pause;
use crate::support::{append, commit, fails, fill, keys, load, prune, record, session, summarized, user};

/// Bytes by name, each version with a number. Other tasks may run between a load and a save.
#[derive(Debug, Clone, Default)]
struct Shelf {
    saved: Arc<Mutex<BTreeMap<SessionId, Saved>>>,
    /// If true, a save overwrites any version.
    is_blind: bool,
    /// If true, no other task runs in between.
    is_ready: bool,
}

impl Shelf {
    async fn pause(&self) {
        if !self.is_ready {
            pause().await;
        }
    }
}

#[async_trait]
impl ByteStore for Shelf {
    async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError> {
        let saved = self.saved.lock().unwrap().get(session).cloned();
        self.pause().await;
        Ok(saved)
    }

    async fn save(
        &self,
        session: &SessionId,
        was: Option<&Saved>,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        self.pause().await;
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

/// Each handle acts as a separate process: the handles share only the bytes.
#[derive(Default)]
struct Shelves {
    places: Mutex<BTreeMap<String, Shelf>>,
    is_blind: bool,
    is_ready: bool,
}

#[async_trait]
impl Subject for Shelves {
    async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
        let mut shelves = self.places.lock().unwrap();
        let shelf = shelves.entry(place.to_owned()).or_default();
        (shelf.is_blind, shelf.is_ready) = (self.is_blind, self.is_ready);
        Ok(Arc::new(SimpleHistory::new(shelf.clone())))
    }

    fn is_apart(&self) -> bool {
        true
    }
}

pub(crate) fn simple() -> impl Subject {
    Shelves::default()
}

#[test]
fn one_shelf_passes_beside_others() {
    crate::every_store::passes_beside_others(
        Suite::new(),
        &OneStore::new(Arc::new(SimpleHistory::new(Shelf::default()))),
    );
}

/// A save without a version check loses the simultaneous writes of another process, and nothing else.
#[test]
fn a_shelf_that_saves_blindly_fails_between_processes_only() {
    let suite = Suite::new().with_cases(5);
    let handles = || Suite::scenarios().filter(|(group, _)| ["handles", "random"].contains(group));
    let failed = |is_ready| -> Vec<&str> {
        let blind = Shelves { is_blind: true, is_ready, ..Shelves::default() };
        let scenarios = handles().map(|(_, scenario)| scenario);
        scenarios.filter(|scenario| block_on(suite.run_one(scenario, &blind)).passed() == 0).collect()
    };
    let racing = [
        "of_two_appends_at_one_head_one_succeeds",
        "of_two_commits_on_one_revision_one_succeeds",
        "an_append_and_a_commit_at_once_both_succeed",
    ];
    assert_eq!((failed(false), failed(true)), (racing.to_vec(), racing.to_vec()));
    // With one handle for all writers, nothing is lost.
    let one = OneStore::new(Arc::new(SimpleHistory::new(Shelf { is_blind: true, ..Shelf::default() })));
    for (_, scenario) in handles() {
        block_on(suite.run_one(scenario, &one)).assert_passed();
    }
}

/// A session with every kind of content.
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
    assert!(whole.starts_with(b"epitome-session 2 "));
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
    let error = put(b"epitome-session 1 {}".to_vec()).unwrap_err();
    assert!(error.kind() == Corrupt && error.to_string().contains("an earlier release"), "{error}");
    let error = put(b"question 1".to_vec()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("question"));
    // A corrupt session is not overwritten, and it can be deleted.
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
    let listed = block_on(store.list(None, 9)).unwrap();
    assert!(
        listed[0]
            .damage
            .as_deref()
            .is_some_and(|damage| listed[0].id.as_str() == "other" && !damage.is_empty())
    );
    assert_eq!((listed.len(), listed[1].head, &listed[1].damage), (2, Seq(6), &None));
}

/// A shelf that returns its bytes, and refuses each save because of another version.
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
    // An operation that changes nothing saves nothing.
    assert_eq!(append(&store, "fill", 0, &[user(0), user(1)]).unwrap().head, Seq(2));
    assert_eq!((keys(&store), load(&store).head), (vec![0, 1], Seq(2)));
}

/// Action before a save of the session `f`, by the number of saves before it.
type BeforeSave = Box<dyn Fn(usize) -> Result<(), StoreError> + Send + Sync>;

/// A shelf with such an action.
struct Watched(Shelf, AtomicUsize, BeforeSave);

impl core::fmt::Debug for Watched {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Watched").field(&self.0).finish()
    }
}

#[async_trait]
impl ByteStore for Watched {
    async fn get(&self, session: &SessionId) -> Result<Option<Saved>, StoreError> {
        self.0.get(session).await
    }

    async fn save(
        &self,
        session: &SessionId,
        was: Option<&Saved>,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        if session.as_str() == "f" {
            let at = self.1.fetch_add(1, Ordering::Relaxed);
            // The action may block, which this thread does not allow.
            std::thread::scope(|scope| scope.spawn(|| (self.2)(at)).join().unwrap())?;
        }
        self.0.save(session, was, bytes).await
    }
}

/// Forks the session with every kind of content into `f`, on a shelf with this action.
fn forked(shelf: &Shelf, before_save: BeforeSave) -> Result<(), StoreError> {
    let store = SimpleHistory::new(Watched(shelf.clone(), AtomicUsize::new(0), before_save));
    block_on(store.fork(&session(), Seq(6), &SessionId::new("f")))
}

fn unavailable() -> StoreError {
    StoreError::new(Unavailable, "save: the shelf is not there now")
}

#[test]
fn a_fork_that_fails_leaves_nothing() {
    let shelf = Shelf::default();
    let store = written(&shelf);
    let head = |name: &str| block_on(store.tail(&SessionId::new(name))).map(|tail| tail.head);
    // An append, two commits and a prune; after a failure the fork is deleted.
    for failing in 0..4 {
        let error =
            forked(&shelf, Box::new(move |at| if at == failing { Err(unavailable()) } else { Ok(()) }));
        fails(error, Unavailable);
        fails(head("f"), NotFound);
    }
    // If the deletion fails too, the error says so.
    let error = forked(&shelf, Box::new(|at| if at == 0 { Ok(()) } else { Err(unavailable()) })).unwrap_err();
    assert_eq!(error.kind(), Unavailable);
    assert!(error.to_string().contains("delete the session that it has begun"), "{error}");
    assert_eq!(head("f").unwrap(), Seq(6));
    fails(forked(&shelf, Box::new(|_| Ok(()))), Conflict);
    block_on(store.delete(&SessionId::new("f"))).unwrap();
    forked(&shelf, Box::new(|_| Ok(()))).unwrap();
    assert_eq!(head("f").unwrap(), Seq(6));
}

#[test]
fn a_fork_takes_back_nothing_of_others() {
    let shelf = Shelf::default();
    let theirs = written(&shelf);
    let other = SessionId::new("f");
    let write = |token: &str, head: u64, entries: &[Entry]| {
        let token = AppendToken::new(token);
        block_on(theirs.append(&other, &Append::new(&token, Seq(head), entries))).map(|_| ())
    };
    // Another process was faster under the same name.
    let shared = shelf.clone();
    let faster = move |at| {
        let token = AppendToken::new("theirs");
        let entries = [user(0)];
        let append = Append::new(&token, Seq(0), &entries);
        if at == 0 {
            block_on(SimpleHistory::new(shared.clone()).append(&SessionId::new("f"), &append))?;
        }
        Ok(())
    };
    fails(forked(&shelf, Box::new(faster)), Conflict);
    write("more", 1, &[user(1)]).unwrap();
    block_on(theirs.delete(&other)).unwrap();
    // Another process has continued the session.
    let shared = shelf.clone();
    let goes_on = move |at| {
        let token = AppendToken::new("theirs");
        let entries = [user(6)];
        let append = Append::new(&token, Seq(6), &entries);
        if at == 1 {
            block_on(SimpleHistory::new(shared.clone()).append(&SessionId::new("f"), &append))?;
        }
        if at > 1 { Err(unavailable()) } else { Ok(()) }
    };
    fails(forked(&shelf, Box::new(goes_on)), Unavailable);
    assert_eq!(block_on(theirs.tail(&other)).unwrap().head, Seq(7));
}

#[test]
fn who_was_pruned_meanwhile_is_told_what_has_failed() {
    let shelf = Shelf::default();
    let store = written(&shelf);
    let shared = shelf.clone();
    let error = forked(
        &shelf,
        Box::new(move |at| {
            let source = SimpleHistory::new(shared.clone());
            if at == 0 {
                prune(&source, 2)?;
            }
            Ok(())
        }),
    );
    let error = error.unwrap_err();
    assert!(
        error.kind() == Conflict && error.to_string().starts_with("fork: the session was pruned"),
        "{error}"
    );
    fails(block_on(store.tail(&SessionId::new("f"))), NotFound);
    // The error of a copy onto another session begins with its own operation too.
    let mine = SessionId::new("mine");
    block_on(store.append(&mine, &Append::new(&AppendToken::new("mine"), Seq(0), &[user(0)]))).unwrap();
    let error = block_on(store.copy(&session(), &store, &mine)).unwrap_err();
    assert!(error.to_string().starts_with("copy: there is another session"), "{error}");
}
