//! Damage anywhere in the file: a read returns the written data, or an error.

use std::fs;
use std::path::Path;

use epitome_core::Seq;
use epitome_std::history::StoreErrorKind::Corrupt;
use epitome_std::history::{
    Committed, Exported, HistoryStore, HistoryStoreExt, KeptState, Loaded, LogPage, LoggedAppend, NewState,
    Pruned, SessionInfo, SqliteStore, StateRevision, StoreError,
};
use futures::executor::block_on;
use rusqlite::Connection;

use super::directory;
use crate::support::{
    answer, append, calls, commit, edit, edited, late, prune, record, session, summarized, unanswered,
    uncompact, user,
};

/// Number of damaged bytes, each in a separate file.
const DAMAGES: u64 = 700;

/// A file with a row in every table, and pages of messages.
fn write(path: &Path) {
    let store = SqliteStore::open(path).unwrap();
    append(&store, "t", 0, &[user(0), calls(1, &["a", "b"]), answer(1, "a"), user(3)]).unwrap();
    commit(&store, &edited(record(0, 4, &[]), &[edit(0, &[(0, Some("[short]"))], 3)])).unwrap();
    let mut gone = summarized(record(1, 4, &[(1, 2)]), &[&[(1, 2)]]);
    gone.unanswered = vec![unanswered("b", 1, 1)];
    commit(&store, &gone).unwrap();
    append(&store, "late", 4, &[late(answer(1, "a")), user(5)]).unwrap();
    prune(&store, 2).unwrap();
    let more: Vec<_> = (6..60).map(user).collect();
    for entry in more.chunks(3) {
        append(&store, &format!("more {}", entry[0].anchor), entry[0].anchor.0, entry).unwrap();
    }
    commit(&store, &summarized(record(4, 60, &[(10, 40)]), &[&[(10, 40)]])).unwrap();
    commit(&store, &record(5, 60, &[(41, 44)])).unwrap();
    uncompact(&store, 6).unwrap();
    block_on(store.save_state(&session(), &NewState::new(StateRevision(0), "remembered"))).unwrap();
}

/// Results of the operations that read.
struct Reads {
    projections: [Result<Loaded, StoreError>; 2],
    log: Result<LogPage, StoreError>,
    records: Result<Vec<Committed>, StoreError>,
    prunes: Result<Vec<Pruned>, StoreError>,
    appends: Result<Vec<LoggedAppend>, StoreError>,
    state: Result<Option<KeptState>, StoreError>,
    list: Result<Vec<SessionInfo>, StoreError>,
    verified: Result<Exported, StoreError>,
}

fn reads(store: &SqliteStore) -> Reads {
    let id = &session();
    block_on(async {
        Reads {
            projections: [store.load(id).await, store.tail(id).await],
            log: store.log(id, Seq(0)..Seq(u64::MAX), u32::MAX).await,
            records: store.records(id, None, u32::MAX).await,
            prunes: store.prunes(id, None, u32::MAX).await,
            appends: store.appends(id, Seq(0), u32::MAX).await,
            state: store.state(id).await,
            list: store.list(None, u32::MAX).await,
            verified: store.verify(id).await,
        }
    })
}

impl Reads {
    /// For each of them: the expected data, an error, or other data.
    fn outcomes(&self, expected: &Self) -> [(&'static str, Outcome); 9] {
        let [load, tail] = &self.projections;
        let [expected_load, expected_tail] = &expected.projections;
        [
            ("load", outcome(load, expected_load)),
            ("tail", outcome(tail, expected_tail)),
            ("log", outcome(&self.log, &expected.log)),
            ("records", outcome(&self.records, &expected.records)),
            ("prunes", outcome(&self.prunes, &expected.prunes)),
            ("appends", outcome(&self.appends, &expected.appends)),
            ("state", outcome(&self.state, &expected.state)),
            ("list", outcome(&self.list, &expected.list)),
            ("verify", outcome(&self.verified, &expected.verified)),
        ]
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Same,
    Error,
    Other,
}

fn outcome<T: PartialEq>(found: &Result<T, StoreError>, expected: &Result<T, StoreError>) -> Outcome {
    match (found, expected) {
        (Ok(found), Ok(expected)) if found == expected => Outcome::Same,
        (Err(error), _) => {
            assert!(!error.to_string().contains("question"), "{error}");
            Outcome::Error
        }
        _ => Outcome::Other,
    }
}

/// The generator known as `SplitMix64`.
fn dice(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn damage_is_an_error_and_never_other_data() {
    let directory = directory();
    let path = directory.path().join("store.db");
    write(&path);
    let whole = fs::read(&path).unwrap();
    let expected = reads(&SqliteStore::open_read_only(&path).unwrap());
    assert!(expected.outcomes(&expected).iter().all(|(_, outcome)| *outcome == Outcome::Same));
    let (mut seed, mut noticed, mut other) = (31, 0, Vec::new());
    for number in 0..DAMAGES {
        let mut damaged = whole.clone();
        let at = usize::try_from(dice(&mut seed)).unwrap() % damaged.len();
        damaged[at] ^= u8::try_from(dice(&mut seed) % 255).unwrap() + 1;
        let path = directory.path().join(format!("{number}.db"));
        fs::write(&path, &damaged).unwrap();
        let Ok(store) = SqliteStore::open_read_only(&path) else {
            noticed += 1;
            continue;
        };
        let outcomes = reads(&store).outcomes(&expected);
        noticed += u64::from(outcomes.iter().any(|(_, outcome)| *outcome == Outcome::Error));
        other
            .extend(outcomes.into_iter().filter(|(_, it)| *it == Outcome::Other).map(|(read, _)| (at, read)));
        drop(store);
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(other, [], "of {DAMAGES}");
    assert!(noticed > DAMAGES / 10, "only {noticed} were noticed");
}

/// A changed number in a row is damage, not a conflict that could be tried again.
#[test]
fn a_damaged_revision_is_corrupt_and_no_conflict() {
    let directory = directory();
    let path = directory.path().join("store.db");
    write(&path);
    for column in ["revision", "head", "live_messages", "live_tokens"] {
        let path = directory.path().join(column);
        fs::copy(directory.path().join("store.db"), &path).unwrap();
        let damage = format!("UPDATE sessions SET {column} = {column} + 1");
        Connection::open(&path).unwrap().execute_batch(&damage).unwrap();
        let store = SqliteStore::open(&path).unwrap();
        let errors = [
            commit(&store, &record(7, 60, &[(50, 51)])).unwrap_err(),
            append(&store, "new", 60, &[user(60)]).unwrap_err(),
            block_on(store.load(&session())).unwrap_err(),
            block_on(store.verify(&session())).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == Corrupt), "{column}: {errors:?}");
    }
}
