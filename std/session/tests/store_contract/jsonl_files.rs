//! The files of a directory: durability, damage, and simultaneous operations.

mod damage;
mod format;
mod killed;
mod states;
mod undone;

use std::fs::{self, File};
use std::path::Path;
use std::thread;

use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{Conflict, Corrupt, Invalid, NotFound, Unavailable};
use epitome_std::history::{
    Append, AppendToken, Fsync, HistoryStore, JsonlOptions, JsonlStore, SessionId, StoreError, open_store,
};
use futures::executor::block_on;

use crate::support::{
    append, commit, everything, fails, fill, keys, load, log, record, session, summarized, user,
};

/// A store that never syncs: the system decides when to write to the disk. Only a loss of power would show a
/// difference.
fn quick(folder: &Path) -> JsonlStore {
    JsonlStore::open_with(folder, JsonlOptions::default().with_fsync(Fsync::Never)).unwrap()
}

/// An encrypted store that never syncs.
#[cfg(feature = "encryption")]
fn quick_encrypted(folder: &Path) -> JsonlStore {
    let options = JsonlOptions::default().with_fsync(Fsync::Never);
    JsonlStore::open_encrypted(folder, options, crate::subjects::key(1)).unwrap()
}

#[test]
fn what_is_acknowledged_is_there_after_a_reopen() {
    for fsync in [Fsync::Always, Fsync::OnCommit, Fsync::Never] {
        let directory = tempfile::tempdir().unwrap();
        let open =
            || JsonlStore::open_with(directory.path(), JsonlOptions::default().with_fsync(fsync)).unwrap();
        let store = open();
        fill(&store, 5);
        let record = summarized(record(0, 5, &[(1, 3)]), &[&[(1, 3)]]);
        commit(&store, &record).unwrap();
        let before = everything(&store);
        drop(store);
        let store = open();
        assert_eq!(everything(&store), before);
        assert_eq!(commit(&store, &record).unwrap(), Revision(1));
        let first: Vec<_> = (0..5).map(user).collect();
        assert_eq!(append(&store, "fill", 9, &first).unwrap().head, Seq(5));
        assert_eq!(store.cut_tails(), []);
    }
}

#[test]
fn a_directory_is_opened_by_its_url() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("jsonl:{}", directory.path().join("a/b").display());
    fill(&*open_store(&url).unwrap(), 2);
    assert_eq!(keys(&*open_store(&url).unwrap()), [0, 1]);
    fails(open_store("jsonl:"), Invalid);
}

/// Number of the simultaneous attempts that succeed; the others must be conflicts.
fn race<T: Send>(
    handles: &[JsonlStore; 2],
    attempt: impl Fn(u64, &JsonlStore) -> Result<T, StoreError> + Sync,
) -> usize {
    let attempt = &attempt;
    thread::scope(|scope| {
        let racers: Vec<_> =
            (0..).zip(handles).map(|(index, store)| scope.spawn(move || attempt(index, store))).collect();
        let results = racers.into_iter().map(|racer| racer.join().unwrap());
        results.map(|result| result.map_or_else(|error| fails::<()>(Err(error), Conflict), |_| ())).count()
    })
}

#[test]
fn of_two_racing_appends_one_gets_a_conflict() {
    let directory = tempfile::tempdir().unwrap();
    let handles = [quick(directory.path()), quick(directory.path())];
    for round in 0..50 {
        race(&handles, |index, store| append(store, &format!("{index} {round}"), round, &[user(round)]));
        assert_eq!(load(&handles[0]).head, Seq(round + 1));
    }
    assert_eq!(everything(&handles[0]), everything(&handles[1]));
}

#[test]
fn of_two_racing_commits_one_gets_a_conflict() {
    let directory = tempfile::tempdir().unwrap();
    let handles = [quick(directory.path()), quick(directory.path())];
    fill(&handles[0], 40);
    for round in 0..20 {
        race(&handles, |index, store| {
            let at = 2 * round + index;
            commit(store, &record(round, 40, &[(at, at)]))
        });
        assert_eq!(load(&handles[1]).revision, Revision(round + 1));
    }
    assert_eq!(log(&handles[0]), log(&handles[1]));
    assert_eq!(keys(&handles[0]).len(), 20);
}

#[test]
fn appends_and_commits_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let first = quick(directory.path());
    fill(&first, 30);
    thread::scope(|scope| {
        for writer in 0..3 {
            let store = quick(directory.path());
            scope.spawn(move || {
                let mut done = 0;
                while done < 20 {
                    let head = load(&store).head.0;
                    match append(&store, &format!("{writer} {done}"), head, &[user(head)]) {
                        Ok(_) => done += 1,
                        Err(error) => assert_eq!(error.kind(), Conflict, "{error}"),
                    }
                }
            });
        }
        // An append never fails because of a commit, nor this commit because of an append.
        for revision in 0..30 {
            commit(&first, &record(revision, 30, &[(revision, revision)])).unwrap();
        }
    });
    assert_eq!(load(&first).head, Seq(90));
    assert_eq!(keys(&first), (30..90).collect::<Vec<_>>());
    let texts: Vec<_> = log(&first).into_iter().map(|logged| logged.entry).collect();
    assert_eq!(texts, (0..90).map(user).collect::<Vec<_>>());
}

#[test]
fn many_may_create_a_session_at_once() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let created = thread::scope(|scope| {
            let creators: Vec<_> = (0..4)
                .map(|index| {
                    let path = &path;
                    scope.spawn(move || append(&quick(path), &index.to_string(), 0, &[user(0)]).is_ok())
                })
                .collect();
            creators.into_iter().filter_map(|creator| creator.join().ok()).filter(|created| *created).count()
        });
        assert_eq!(created, 1);
        assert_eq!(keys(&quick(&path)), [0]);
    }
}

#[test]
fn a_handle_notices_that_others_have_deleted_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (quick(directory.path()), quick(directory.path()));
    fill(&one, 3);
    assert_eq!(keys(&other), [0, 1, 2]);
    assert!(block_on(one.delete(&session())).unwrap());
    fails(block_on(other.load(&session())), NotFound);
    // A session of the same length in the same place is a different session.
    fill(&one, 3);
    assert_eq!(keys(&other), [0, 1, 2]);
    block_on(one.delete(&session())).unwrap();
    let said = crate::support::entry(epitome_std::message::Message::user("question 9"), 0, 1);
    append(&one, "fill", 0, &[said.clone(), user(1), user(2)]).unwrap();
    assert_eq!(load(&other).live[0].entry, said);
    fails(append(&other, "fill", 0, &[user(0), user(1), user(2)]), Invalid);
}

/// A writer may wait for a file that is deleted meanwhile. It then writes to the file in its place.
#[test]
fn nothing_is_written_to_a_file_without_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let store = quick(directory.path());
    let path = directory.path().join("s.jsonl");
    for _ in 0..20 {
        fill(&store, 1);
        let held = File::open(&path).unwrap();
        held.lock().unwrap();
        thread::scope(|scope| {
            let appender = scope.spawn(|| append(&store, "next", 0, &[user(0), user(1)]));
            for _ in 0..100 {
                thread::yield_now();
            }
            fs::remove_file(&path).unwrap();
            drop(held);
            appender.join().unwrap().unwrap();
        });
        assert_eq!(keys(&quick(directory.path())), [0, 1]);
        assert!(block_on(store.delete(&session())).unwrap());
    }
}

#[test]
fn any_id_has_a_file_in_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("store");
    let store = quick(&folder);
    let long = "x".repeat(100_000);
    let ids = ["", ".", "..", "../up", "/etc/passwd", "a\\b", "C:x", "nul", "A", "a", "a\0", "\n", &long];
    for id in ids {
        let append = AppendToken::new("t");
        block_on(store.append(&SessionId::new(id), &Append::new(&append, Seq(0), &[user(0)]))).unwrap();
    }
    let names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), ids.len());
    let plain = |name: &String| {
        let stem = name.strip_suffix(".jsonl").unwrap();
        name.len() < 140 && stem.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'~'))
    };
    assert!(names.iter().all(plain), "{names:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(block_on(quick(&folder).list(None, 99)).unwrap().len(), ids.len());
}

#[test]
fn what_is_refused_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = quick(directory.path());
    fails(append(&store, "t", 1, &[user(1)]), Conflict);
    fails(append(&store, "t", 0, &[]), Invalid);
    fails(append(&store, "t", 0, &[user(1)]), Invalid);
    fails(commit(&store, &record(0, 0, &[(0, 0)])), NotFound);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn files_of_others_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = quick(directory.path());
    fill(&store, 1);
    fs::write(directory.path().join("Notes of mine.jsonl"), "{}\n").unwrap();
    fs::write(directory.path().join("notes.txt"), "notes").unwrap();
    assert_eq!(block_on(store.list(None, 9)).unwrap().len(), 1);
    // A file with the name of a session counts as a session.
    fs::write(directory.path().join("notes.jsonl"), "{\"note\":1}\n").unwrap();
    let listed = block_on(store.list(None, 9)).unwrap();
    assert_eq!([listed[0].id.as_str(), listed[1].id.as_str()], ["notes", "s"]);
    assert!(listed[0].damage.as_deref().is_some_and(|damage| damage.contains("notes.jsonl")), "{listed:?}");
    fails(block_on(store.load(&SessionId::new("notes"))), Corrupt);
    assert_eq!(fs::read_to_string(directory.path().join("notes.jsonl")).unwrap(), "{\"note\":1}\n");
    // The file of a session under another session's name is corrupt.
    fs::copy(directory.path().join("s.jsonl"), directory.path().join("t.jsonl")).unwrap();
    fails(block_on(store.load(&SessionId::new("t"))), Corrupt);
    assert_eq!(keys(&store), [0]);
    // Sessions that cannot be read can be deleted.
    assert!(block_on(store.delete(&SessionId::new("notes"))).unwrap());
    assert!(block_on(store.delete(&SessionId::new("t"))).unwrap());
    assert_eq!(block_on(store.list(None, 9)).unwrap().len(), 1);
}

#[test]
fn a_path_that_is_no_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    fails(JsonlStore::open(&file), Invalid);
    fails(JsonlStore::open(""), Invalid);
    fails(JsonlStore::open(file.join("below")), Unavailable);
    // The deletion of a directory deletes its sessions.
    let folder = directory.path().join("store");
    let store = quick(&folder);
    fill(&store, 1);
    fs::remove_dir_all(&folder).unwrap();
    fails(block_on(store.load(&session())), NotFound);
    fails(append(&store, "t", 0, &[user(0)]), Unavailable);
    fails(block_on(store.list(None, 9)), Unavailable);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn directory_and_files_are_for_their_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("a/b");
        fill(&quick(&folder), 1);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("s.jsonl"))), (0o700, 0o600));
    }

    /// A file without write permission can be read. An administrator may write anything: run as one, this test checks
    /// only that reading works.
    #[test]
    fn what_cannot_be_written_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        fill(&quick(directory.path()), 3);
        let path = directory.path().join("s.jsonl");
        // With the rest of a write that no process may cut off.
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"sum\":\"");
        fs::write(&path, &bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        let administrator = fs::OpenOptions::new().append(true).open(&path).is_ok();
        let store = quick(directory.path());
        assert_eq!(keys(&store), [0, 1, 2]);
        if !administrator {
            assert!(fs::read(&path).unwrap() == bytes);
            fails(append(&store, "t", 3, &[user(3)]), Unavailable);
        }
    }
}
