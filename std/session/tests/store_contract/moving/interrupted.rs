//! Imports that end early, and their repetition.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use epitome_core::ClassEstimator;
use epitome_std::history::StoreErrorKind::{Corrupt, Invalid, Unavailable};
use epitome_std::history::{History, HistoryStore, HistoryStoreExt, MemoryStore};
use futures::executor::block_on;

use super::{eventful, exported, import, named, whole};
use crate::support::{commit, fails, fill, prune, record, session};

on_every_store! {
    an_import_that_was_interrupted_goes_on,
    half_an_import_of_a_pruned_session_is_damaged,
}

fn an_import_that_was_interrupted_goes_on(store: &dyn HistoryStore) {
    eventful(store);
    let file = exported(store);
    let ends: Vec<usize> =
        file.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for end in &ends[..ends.len() - 1] {
        fails(import(store, "part", &file[..*end]), Invalid);
        import(store, "part", &file).unwrap();
        assert_eq!(whole(store, &named("part")), whole(store, &session()));
        import(store, "part", &file).unwrap();
        block_on(store.delete(&named("part"))).unwrap();
    }
}

/// The appends of an export whose input fails behind them: the messages that were pruned have no text, and the record
/// that hides them is missing.
fn import_the_appends(store: &dyn HistoryStore, name: &str, file: &[u8]) {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("unplugged"))
        }
    }
    let commit = file.windows(9).position(|window| window == b"{\"commit\"").unwrap();
    let mut input = BufReader::new((&file[..commit]).chain(Failing));
    fails(block_on(store.import(&named(name), &mut input)), Unavailable);
}

fn half_an_import_of_a_pruned_session_is_damaged(store: &dyn HistoryStore) {
    fill(store, 5);
    commit(store, &record(0, 5, &[(1, 2)])).unwrap();
    prune(store, 1).unwrap();
    let file = exported(store);
    import_the_appends(store, "half", &file);
    let error = block_on(store.verify(&named("half"))).unwrap_err();
    assert_eq!(error.kind(), Corrupt);
    assert!(
        error.to_string().starts_with("verify: message 1 is visible, and its text was pruned"),
        "{error}"
    );
    import(store, "half", &file).unwrap();
    assert_eq!(block_on(store.verify(&named("half"))).unwrap().records, 1);
}

#[test]
fn half_an_import_of_a_pruned_session_is_not_opened() {
    let store = MemoryStore::new();
    half_an_import_of_a_pruned_session_is_damaged(&store);
    import_the_appends(&store, "again", &exported(&store));
    let (store, counter) = (Arc::new(store), Arc::new(ClassEstimator::new()));
    let open = |name| block_on(History::open(store.clone(), named(name), counter.clone()));
    assert!(open("half").is_ok());
    let error = open("again").unwrap_err();
    assert_eq!(error.kind(), Corrupt);
    assert!(error.to_string().starts_with("session \"again\": message 1 is visible"), "{error}");
}
