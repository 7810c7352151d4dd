//! Eight writers of one file, each with its own store: none of them starves, with or without compactors, even if none
//! of them ever pauses.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;

use epitome_core::{ClassEstimator, Revision, Seq, TokenCounter, Turn};
use epitome_std::history::StoreErrorKind::{Conflict, NotFound};
use epitome_std::history::{
    Append, AppendToken, History, HistoryStore, HistoryStoreExt, SessionId, SqliteStore,
};
use epitome_std::message::{Message, Part};
use epitome_std::provider::HistoryProvider;
use futures::executor::block_on;

use super::directory;
use crate::support::{record, session, summarized, user};

const WRITERS: usize = 8;

/// Number of messages that the writers append together before all of them end.
const APPENDS: usize = 400;
/// Number of messages of writers without pauses: over this number, chance evens out.
const RESTLESS_APPENDS: usize = 1_600;

/// Ratio of the fair share of a writer to the least allowed share.
const FAIR_OVER_LEAST: usize = 3;
/// The same ratio if an overtaken append is tried again: its success depends on luck too.
const FAIR_OVER_UNLUCKIEST: usize = 10;

/// Number of messages that a compactor leaves visible.
const KEPT: u64 = 20;

/// Appends at the end of the session, until all writers together have appended enough. Returns the number of its own
/// messages.
fn write(path: &Path, session: &SessionId, writer: usize, (begun, start): (&AtomicUsize, &Barrier)) -> usize {
    let store = SqliteStore::open(path).unwrap();
    let mut own = 0;
    // The writer that opens the file first has no advantage.
    start.wait();
    while begun.fetch_add(1, Relaxed) < APPENDS {
        let token = AppendToken::new(format!("{writer}, {own}"));
        while !appends_at_the_end(&store, session, &token) {}
        own += 1;
    }
    own
}

/// True if no other writer was faster.
fn appends_at_the_end(store: &SqliteStore, session: &SessionId, token: &AppendToken) -> bool {
    let head = match block_on(store.tail(session)) {
        Ok(tail) => tail.head,
        Err(error) if error.kind() == NotFound => Seq(0),
        Err(error) => panic!("{error}"),
    };
    let mut entry = user(head.0);
    // A separate turn, because a compaction keeps the last turn unchanged.
    entry.turn = Turn(u32::try_from(head.0).unwrap());
    match block_on(store.append(session, &Append::new(token, head, &[entry]))) {
        Ok(_) => true,
        Err(error) if error.kind() == Conflict => false,
        Err(error) => panic!("{error}"),
    }
}

/// Replaces all messages except the newest with one summary, until the writers end. Returns the number of its commits.
fn compact(path: &Path, compactor: usize, begun: &AtomicUsize) -> usize {
    let store = SqliteStore::open(path).unwrap();
    let mut commits = 0;
    while begun.load(Relaxed) < APPENDS {
        let loaded = match block_on(store.load(&session())) {
            Ok(loaded) => loaded,
            Err(error) if error.kind() == NotFound => continue,
            Err(error) => panic!("{error}"),
        };
        let covers = loaded.live.first().and_then(|live| live.covers.last());
        let covered = covers.map_or(0, |range| range.last.0);
        let Some(last) = loaded.head.0.checked_sub(KEPT).filter(|last| *last > covered) else {
            thread::yield_now();
            continue;
        };
        let hides = [(0, last)];
        let mut record = summarized(record(loaded.revision.0, loaded.head.0, &hides), &[&hides]);
        // If two compactors committed the same record, both would get the answer that it is stored.
        let summary = &mut record.summaries[0];
        summary.message =
            summary.message.clone().with_parts(vec![Part::Text(format!("by {compactor}").into())]);
        match block_on(store.commit(&session(), &record)) {
            Ok(_) => commits += 1,
            Err(error) if error.kind() == Conflict => {}
            Err(error) => panic!("{error}"),
        }
    }
    commits
}

/// Lets eight writers append to their sessions, with this number of compactors of the first session.
fn all_come_to_their_turn(session_of: impl Fn(usize) -> SessionId, compactors: usize) {
    let directory = directory();
    let path = directory.path().join("store.db");
    let (begun, start) = (AtomicUsize::new(0), Barrier::new(WRITERS));
    let (own, commits) = thread::scope(|scope| {
        let (path, begun, start) = (&path, &begun, &start);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let session = session_of(writer);
                scope.spawn(move || write(path, &session, writer, (begun, start)))
            })
            .collect();
        let compactors: Vec<_> =
            (0..compactors).map(|it| scope.spawn(move || compact(path, it, begun))).collect();
        let own: Vec<usize> = writers.into_iter().map(|thread| thread.join().unwrap()).collect();
        let commits: Vec<usize> = compactors.into_iter().map(|thread| thread.join().unwrap()).collect();
        (own, commits)
    });
    println!("appends of each writer {own:?}, commits of each compactor {commits:?}");
    assert_eq!(own.iter().sum::<usize>(), APPENDS);
    let least = own.iter().min().unwrap();
    assert!(least * FAIR_OVER_UNLUCKIEST >= APPENDS / WRITERS, "{own:?}");
    assert!(commits.iter().all(|commits| *commits > 0), "{commits:?}");

    let store = SqliteStore::open(&path).unwrap();
    let first = session_of(0);
    let appended: usize =
        (0..WRITERS).filter(|writer| session_of(*writer) == first).map(|writer| own[writer]).sum();
    block_on(store.verify(&first)).unwrap();
    let tail = block_on(store.tail(&first)).unwrap();
    let made = commits.iter().sum::<usize>();
    assert_eq!((tail.head, tail.revision), (Seq(appended as u64), Revision(made as u64)));
}

#[test]
fn eight_writers_of_one_session_all_come_to_their_turn() {
    all_come_to_their_turn(|_| session(), 0);
}

#[test]
fn eight_writers_of_one_session_all_come_to_their_turn_beside_two_compactors() {
    all_come_to_their_turn(|_| session(), 2);
}

/// Writers of different sessions compete only for the lock of the file.
#[test]
fn eight_writers_of_sessions_of_their_own_all_come_to_their_turn() {
    all_come_to_their_turn(|writer| SessionId::new(format!("of {writer}")), 0);
}

/// Lets eight writers append to one session without pauses, each with its own store; `append` adds one message. No
/// append may fail: a writer without conflicts needs no luck.
fn none_has_to_be_lucky<T>(
    open: impl Fn(SqliteStore) -> T + Sync,
    append: impl Fn(&mut T, &AppendToken, usize) + Sync,
) {
    let directory = directory();
    let path = directory.path().join("store.db");
    let (begun, start) = (AtomicUsize::new(0), Barrier::new(WRITERS));
    let write = |writer: usize| {
        let (mut opened, mut own) = (open(SqliteStore::open(&path).unwrap()), 0);
        start.wait();
        while begun.fetch_add(1, Relaxed) < RESTLESS_APPENDS {
            append(&mut opened, &AppendToken::new(format!("{writer}, {own}")), own);
            own += 1;
        }
        own
    };
    let own: Vec<usize> = thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        writers.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    println!("appends of each writer {own:?}");
    assert_eq!(own.iter().sum::<usize>(), RESTLESS_APPENDS);
    let least = own.iter().min().unwrap();
    assert!(least * FAIR_OVER_LEAST >= RESTLESS_APPENDS / WRITERS, "{own:?}");

    let store = SqliteStore::open(&path).unwrap();
    block_on(store.verify(&session())).unwrap();
    assert_eq!(block_on(store.tail(&session())).unwrap().head, Seq(RESTLESS_APPENDS as u64));
}

#[test]
fn eight_writers_of_one_session_that_never_rest_all_come_to_their_turn() {
    none_has_to_be_lucky(
        |store| store,
        |store, token, own| {
            // Grouped at the head that this writer saw last: its own.
            let entries = [user(own as u64)];
            let append = Append::new(token, Seq(own as u64), &entries).at_end();
            block_on(store.append(&session(), &append)).unwrap();
        },
    );
}

#[test]
fn eight_providers_of_one_session_that_never_rest_all_come_to_their_turn() {
    let counter: Arc<dyn TokenCounter + Send + Sync> = Arc::new(ClassEstimator::new());
    none_has_to_be_lucky(
        |store| block_on(History::open(Arc::new(store), session(), Arc::clone(&counter))).unwrap(),
        |history, token, own| {
            let said = vec![Message::user(format!("message {own}"))];
            block_on(HistoryProvider::append(history, token, said)).unwrap();
        },
    );
}
