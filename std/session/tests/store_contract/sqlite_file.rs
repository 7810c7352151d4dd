//! The SQLite file: access, durability, and simultaneous operations.

mod damage;
mod power;
mod turns;

use std::fs;
use std::path::Path;
use std::thread;

use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{self, Conflict, Corrupt, Invalid, Unavailable};
use epitome_std::history::{
    Append, AppendToken, HistoryStore, HistoryStoreExt, LogSearch, SessionId, SqliteStore, StoreError,
};
use epitome_std::message::Part;
use futures::executor::block_on;
use futures::future::BoxFuture;
use rusqlite::Connection;

use crate::support::{
    append, commit, everything, fails, fill, keys, load, log, record, session, summarized, user,
};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn what_is_acknowledged_is_there_after_a_reopen() {
    let directory = directory();
    let path = directory.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    fill(&store, 5);
    let record = summarized(record(0, 5, &[(1, 3)]), &[&[(1, 3)]]);
    commit(&store, &record).unwrap();
    let before = everything(&store);
    // The first store may still be closing the file.
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(everything(&store), before);
    assert_eq!(commit(&store, &record).unwrap(), Revision(1));
    let first: Vec<_> = (0..5).map(user).collect();
    assert_eq!(append(&store, "fill", 9, &first).unwrap().head, Seq(5));
}

/// A vacuum frees the space of deleted texts, and changes no stored data. Other connections write and read meanwhile.
#[test]
fn a_vacuum_shrinks_the_file_and_changes_nothing_stored() {
    let directory = directory();
    let path = directory.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    // More messages than a block of the index of words has.
    fill(&store, 600);
    let gone = SessionId::new("gone");
    let mut large = user(0);
    large.message = large.message.clone().with_parts(vec![Part::Text("a long text ".repeat(100_000).into())]);
    block_on(store.append(&gone, &Append::new(&AppendToken::new("gone"), Seq(0), &[large]))).unwrap();
    let record = summarized(record(0, 600, &[(1, 300)]), &[&[(1, 300)]]);
    commit(&store, &record).unwrap();
    assert!(block_on(store.delete(&gone)).unwrap());
    let found = |store: &SqliteStore| {
        let search = LogSearch::new("message 7").with_limit(5);
        block_on(store.search(&search)).unwrap().into_iter().map(|found| found.logged.seq).collect::<Vec<_>>()
    };
    let (before, nearest) = (everything(&store), found(&store));
    assert!(!nearest.is_empty());
    // After the close, the log is in the file.
    drop(store);
    let bytes = || fs::metadata(&path).unwrap().len();
    let whole = bytes();
    let store = SqliteStore::open(&path).unwrap();
    // A reader keeps the old file; the vacuum does not wait for it.
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM messages").unwrap();
    assert!(!block_on(store.vacuum()).unwrap());
    assert!(bytes() + 1_000_000 > whole);
    reader.execute_batch("COMMIT").unwrap();
    assert!(block_on(store.vacuum()).unwrap());
    assert!(bytes() + 1_000_000 < whole, "{} of {whole}", bytes());
    assert_eq!((everything(&store), found(&store)), (before, nearest));

    fails(block_on(SqliteStore::open_read_only(&path).unwrap().vacuum()), Unavailable);
    assert!(block_on(SqliteStore::open_in_memory().unwrap().vacuum()).unwrap());

    let other = SqliteStore::open(&path).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for at in 600..640 {
                append(&other, &format!("{at}"), at, &[user(at)]).unwrap();
                assert_eq!(load(&other).head, Seq(at + 1));
            }
        });
        for _ in 0..5 {
            block_on(store.vacuum()).unwrap();
        }
        writer.join().unwrap();
    });
    assert_eq!(load(&store).head, Seq(640));
    block_on(store.verify(&session())).unwrap();
}

/// Jobs that wait before and after a vacuum run in their order, in separate transactions.
#[test]
fn a_vacuum_waits_in_the_row_of_the_others() {
    let directory = directory();
    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    let entries: Vec<_> = (0..40).map(user).collect();
    let tokens: Vec<_> = (0..40).map(|at| AppendToken::new(at.to_string())).collect();
    block_on(async {
        let session = session();
        let mut jobs: Vec<BoxFuture<'_, Result<(), StoreError>>> = Vec::new();
        for (at, (entry, token)) in (0..).zip(entries.iter().zip(&tokens)) {
            let (store, session, entry) = (&store, &session, core::slice::from_ref(entry));
            jobs.push(Box::pin(async move {
                store.append(session, &Append::new(token, Seq(at), entry)).await.map(|_| ())
            }));
            if at % 10 == 3 {
                let vacuum = || Box::pin(async { store.vacuum().await.map(drop) });
                jobs.extend([vacuum() as BoxFuture<'_, _>, vacuum()]);
            }
        }
        for done in futures::future::join_all(jobs).await {
            done.unwrap();
        }
    });
    assert_eq!(load(&store).head, Seq(40));
    block_on(store.verify(&session())).unwrap();
}

/// Number of the simultaneous attempts that succeed; the others must be conflicts.
fn race<T: Send>(
    handles: &[SqliteStore; 2],
    attempt: impl Fn(u64, &SqliteStore) -> Result<T, StoreError> + Sync,
) -> usize {
    thread::scope(|scope| {
        let racers: Vec<_> = (0..)
            .zip(handles)
            .map(|(index, store)| {
                let attempt = &attempt;
                scope.spawn(move || match attempt(index, store) {
                    Ok(_) => 1,
                    Err(error) if error.kind() == Conflict => 0,
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    })
}

fn two_handles(path: &Path) -> [SqliteStore; 2] {
    [SqliteStore::open(path).unwrap(), SqliteStore::open(path).unwrap()]
}

#[test]
fn of_two_racing_appends_one_gets_a_conflict() {
    let directory = directory();
    let handles = two_handles(&directory.path().join("store.db"));
    for round in 0..50 {
        let attempt =
            |index, store: &SqliteStore| append(store, &format!("{index} {round}"), round, &[user(round)]);
        assert_eq!(race(&handles, attempt), 1);
    }
    assert_eq!(load(&handles[0]), load(&handles[1]));
    assert_eq!(load(&handles[0]).head, Seq(50));
}

#[test]
fn of_two_racing_commits_one_gets_a_conflict() {
    let directory = directory();
    let handles = two_handles(&directory.path().join("store.db"));
    fill(&handles[0], 40);
    for round in 0..20 {
        let attempt = |index, store: &SqliteStore| {
            let at = 2 * round + index;
            commit(store, &record(round, 40, &[(at, at)]))
        };
        assert_eq!(race(&handles, attempt), 1);
    }
    assert_eq!(log(&handles[0]), log(&handles[1]));
    assert_eq!(keys(&handles[0]).len(), 20);
}

#[test]
fn many_may_create_the_file_at_once() {
    for _ in 0..10 {
        let directory = directory();
        let path = directory.path().join("store.db");
        thread::scope(|scope| {
            for index in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let store = SqliteStore::open(path).unwrap();
                    let session = SessionId::new(index.to_string());
                    block_on(
                        store.append(&session, &Append::new(&AppendToken::new("t"), Seq(0), &[user(0)])),
                    )
                    .unwrap();
                });
            }
        });
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(block_on(store.list(None, 9)).unwrap().len(), 4);
    }
}

#[test]
fn appends_sent_together_from_many_tasks_all_arrive() {
    let directory = directory();
    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    let sessions: Vec<SessionId> = (0..200).map(|index| SessionId::new(format!("{index:03}"))).collect();
    let (token, entries) = (AppendToken::new("t"), [user(0)]);
    let append = Append::new(&token, Seq(0), &entries);
    let appends = sessions.iter().map(|session| store.append(session, &append));
    for appended in block_on(futures::future::join_all(appends)) {
        assert_eq!(appended.unwrap().head, Seq(1));
    }
    assert_eq!(block_on(store.list(None, 999)).unwrap().len(), 200);
}

fn open_fails(path: &Path, kind: StoreErrorKind, says: &str) {
    for opened in [SqliteStore::open(path), SqliteStore::open_read_only(path)] {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_foreign_database_is_refused_and_left_alone() {
    let directory = directory();
    let path = directory.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    open_fails(&path, Invalid, "another program");
    assert!(fs::read(&path).unwrap() == before);
    Connection::open(&path).unwrap().pragma_update(None, "application_id", 7).unwrap();
    open_fails(&path, Invalid, "another program");
}

#[test]
fn a_newer_schema_is_refused() {
    let directory = directory();
    let path = directory.path().join("store.db");
    fill(&SqliteStore::open(&path).unwrap(), 1);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    open_fails(&path, Invalid, "newer version: schema 99");
}

#[test]
fn what_is_no_database_is_corrupt_and_left_alone() {
    let directory = directory();
    let path = directory.path().join("notes.txt");
    let text = "These are notes, and no database. ".repeat(100);
    fs::write(&path, &text).unwrap();
    open_fails(&path, Corrupt, "no SQLite database");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_damaged_file_is_corrupt() {
    let directory = directory();
    let path = directory.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    fill(&store, 2000);
    // Moves the log into the file.
    let checkpoint = Connection::open(&path).unwrap();
    let done = checkpoint.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    assert_eq!(done, Ok(0));
    let whole = fs::read(&path).unwrap();

    // After the pages that the schema needs.
    let mut scribbled = whole.clone();
    scribbled[64 * 4096..].fill(0xa5);
    let path = directory.path().join("scribbled.db");
    fs::write(&path, scribbled).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    fails(block_on(store.load(&session())), Corrupt);
    fails(append(&store, "more", 2000, &[user(2000)]), Corrupt);

    let cut = directory.path().join("cut.db");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let failed = SqliteStore::open(&cut).and_then(|store| block_on(store.load(&session())));
    fails(failed, Corrupt);
}

#[test]
fn a_directory_and_a_path_into_nowhere_are_refused() {
    let directory = directory();
    open_fails(directory.path(), Invalid, "directory");
    open_fails(&directory.path().join("no/such/store.db"), Unavailable, "");
    open_fails(Path::new(""), Invalid, "path");
}

#[test]
fn a_store_that_is_open_for_reading_reads_and_does_not_write() {
    let directory = directory();
    let path = directory.path().join("store.db");
    fails(SqliteStore::open_read_only(&path), Unavailable);
    fs::write(&path, "").unwrap();
    fails(SqliteStore::open_read_only(&path), Invalid);
    let writer = SqliteStore::open(&path).unwrap();
    let reader = SqliteStore::open_read_only(&path).unwrap();
    fill(&writer, 3);
    assert_eq!(everything(&reader), everything(&writer));
    fails(append(&reader, "t", 3, &[user(3)]), Unavailable);
    fails(commit(&reader, &record(0, 3, &[(0, 0)])), Unavailable);
    fails(block_on(reader.delete(&session())), Unavailable);
    assert_eq!(keys(&reader), [0, 1, 2]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_file_and_its_companions_are_for_their_owner_only() {
        let directory = directory();
        let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
        fill(&store, 1);
        for entry in fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
        }
    }

    /// A store notices that its file was removed or replaced, and all operations fail.
    #[test]
    fn a_file_that_is_removed_or_replaced_is_noticed() {
        for replaced in [false, true] {
            let directory = directory();
            let path = directory.path().join("store.db");
            let other = directory.path().join("other.db");
            let (store, reader) =
                (SqliteStore::open(&path).unwrap(), SqliteStore::open_read_only(&path).unwrap());
            fill(&store, 2);
            if replaced {
                drop(SqliteStore::open(&other).unwrap());
                fs::rename(&other, &path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            let error = append(&store, "more", 2, &[user(2)]).unwrap_err();
            assert_eq!(error.kind(), Unavailable);
            assert!(error.to_string().contains("removed or replaced"), "{error}");
            fails(commit(&store, &record(0, 2, &[(0, 0)])), Unavailable);
            for store in [&store, &reader] {
                fails(block_on(store.load(&session())), Unavailable);
                fails(block_on(store.verify(&session())), Unavailable);
            }
            drop((store, reader));
            assert_eq!(path.exists(), replaced);
        }
    }

    /// A second store does not release the locks of the first. A close of any descriptor of a file releases all locks
    /// of the process on it, and another process could then take the log from under a store.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_second_store_leaves_the_locks_of_the_first() {
        use std::collections::BTreeSet;
        use std::os::unix::fs::MetadataExt;

        let directory = directory();
        let path = directory.path().join("store.db");
        let first = SqliteStore::open(&path).unwrap();
        fill(&first, 1);
        load(&first);
        let file = format!(":{} ", fs::metadata(&path).unwrap().ino());
        let listed = || {
            let locks = fs::read_to_string("/proc/locks").unwrap();
            let own = locks.lines().filter(|lock| lock.contains("POSIX") && lock.contains(&file));
            // A line begins with its number in the list.
            own.filter_map(|lock| lock.split_once(": ")).map(|(_, lock)| lock).collect::<BTreeSet<_>>().len()
        };
        // While other processes lock and unlock, the list is no snapshot: it may lack some locks, and have others
        // twice. Each held lock appears in it sooner or later.
        let before = (0..20).map(|_| listed()).max().unwrap_or_default();
        let are_held = || (0..2000).any(|_| listed() >= before);
        assert!(before > 0);
        let second = SqliteStore::open_read_only(&path).unwrap();
        assert!(are_held());
        drop(second);
        assert!(are_held());
        // A write may divide a range of locks into two.
        drop(SqliteStore::open(&path).unwrap());
        assert!(are_held());
    }

    /// A file without write permission can be read. An administrator may write anything: run as one, this test checks only
    /// that reading works.
    #[test]
    fn what_cannot_be_written_can_be_read() {
        let directory = directory();
        let path = directory.path().join("store 100%.db");
        fill(&SqliteStore::open(&path).unwrap(), 3);
        // Closes the log, as the last connection does.
        while directory.path().join("store 100%.db-wal").exists() {
            let last = Connection::open(&path).unwrap();
            assert!(last.query_row("SELECT count(*) FROM messages", [], |row| row.get::<_, i64>(0)).is_ok());
        }
        for (file, parent) in [(0o400, 0o700), (0o600, 0o500), (0o400, 0o500)] {
            // A reader may leave these files behind.
            for companion in ["store 100%.db-wal", "store 100%.db-shm"] {
                let _ = fs::remove_file(directory.path().join(companion));
            }
            allow(&path, file);
            allow(directory.path(), parent);
            let administrator = match parent {
                0o500 => fs::write(directory.path().join("probe"), "").is_ok(),
                _ => fs::OpenOptions::new().append(true).open(&path).is_ok(),
            };
            if !administrator {
                let error = SqliteStore::open(&path).unwrap_err();
                assert_eq!(error.kind(), Unavailable, "{error}");
                assert!(error.to_string().contains("read-only"), "{error}");
            }
            assert_eq!(keys(&SqliteStore::open_read_only(&path).unwrap()), [0, 1, 2]);
            allow(directory.path(), 0o700);
            allow(&path, 0o600);
        }
    }
}
