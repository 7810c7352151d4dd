//! A file and its log without their ends, and a full disk. `power.rs` tests a loss of power, on a traced process.

use std::fs;
use std::path::Path;

use epitome_core::Seq;
use epitome_std::history::{Entry, HistoryStore, Logged, SqliteStore, StoreErrorKind};

use crate::support::{append, commit, everything, load, log, record, records, user};

/// Length of the log's header, and of the header of each of its pages.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Performs write number `step`: an append of three messages, or a commit that hides one.
fn write(store: &dyn HistoryStore, step: u64) {
    if step.is_multiple_of(2) {
        let head = step / 2 * 3;
        let entries: Vec<Entry> = (head..head + 3).map(user).collect();
        append(store, &step.to_string(), head, &entries).unwrap();
    } else {
        let at = step / 2;
        commit(store, &record(at, (at + 1) * 3, &[(at, at)])).unwrap();
    }
}

/// Number of writes in a store, all of them whole.
fn writes(store: &dyn HistoryStore) -> u64 {
    let (loaded, logged) = (load(store), log(store));
    assert_eq!((loaded.head.0 % 3, logged.len() as u64), (0, loaded.head.0));
    assert_eq!(records(store).len() as u64, loaded.revision.0);
    for (seq, Logged { entry, hidden_by, .. }) in (0..).zip(&logged) {
        assert_eq!(*entry, user(seq));
        assert_eq!(hidden_by.is_some(), seq < loaded.revision.0);
    }
    let keys: Vec<Seq> = loaded.live.iter().map(|live| live.key).collect();
    assert_eq!(keys, (loaded.revision.0..loaded.head.0).map(Seq).collect::<Vec<_>>());
    loaded.head.0 / 3 + loaded.revision.0
}

/// Number of writes that are found if only this part of the log was written.
fn found(folder: &Path, file: &[u8], log: &[u8]) -> u64 {
    let path = folder.join("cut.db");
    let _ = fs::remove_file(folder.join("cut.db-shm"));
    fs::write(&path, file).unwrap();
    fs::write(folder.join("cut.db-wal"), log).unwrap();
    writes(&SqliteStore::open(&path).unwrap())
}

#[test]
fn a_log_that_ends_anywhere_holds_the_writes_before_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    write(&store, 0);
    // The disk at an acknowledgement: the file does not change before the log is moved into it.
    let file = fs::read(&path).unwrap();
    let log = || fs::read(directory.path().join("store.db-wal")).unwrap();
    let mut acknowledged = vec![log().len()];
    for step in 1..24 {
        write(&store, step);
        acknowledged.push(log().len());
    }
    assert!(fs::read(&path).unwrap() == file);
    let whole = log();
    let page = usize::from(u16::from_be_bytes([file[16], file[17]]));
    let frame = FRAME_HEADER + page;
    assert_eq!((whole.len() - LOG_HEADER) % frame, 0);
    let first = acknowledged[0];
    let mut tried = 0;
    for end in (first..=whole.len()).step_by(frame) {
        // The writes are found in the order of their acknowledgements.
        let expected = acknowledged.iter().filter(|len| **len <= end).count() as u64;
        let next = whole.len().min(end + frame);
        let torn = end.midpoint(next);
        for cut in [&whole[..end], &whole[..torn], &[&whole[..end], &vec![0; next - end][..]].concat()] {
            assert_eq!(found(directory.path(), &file, cut), expected, "{} of {}", cut.len(), whole.len());
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}

/// Variable with the folder for the child, which may write no large file.
#[cfg(unix)]
const FULL: &str = "EPITOME_TEST_SQLITE_FULL_FOLDER";

/// Writes until a write fails.
#[cfg(unix)]
#[test]
fn a_child_writes_until_there_is_no_room() {
    use std::io::Write;

    let Some(folder) = std::env::var_os(FULL) else { return };
    let store = SqliteStore::open(Path::new(&folder).join("store.db")).unwrap();
    for head in 0.. {
        let before = (head > 0).then(|| everything(&store));
        let Err(error) = append(&store, &head.to_string(), head, &[user(head)]) else { continue };
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert_eq!(before, Some(everything(&store)));
        assert!(head > 3);
        let mut out = std::io::stdout();
        writeln!(out, "\nacknowledged {head}").unwrap();
        return out.flush().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_write_without_room_changes_nothing_and_is_made_later() {
    let directory = tempfile::tempdir().unwrap();
    let name = "sqlite_file::power::a_child_writes_until_there_is_no_room";
    // Without the signal, a write beyond the limit writes as much as fits, and the next one fails.
    let script = r#"trap "" XFSZ; ulimit -f 1000; exec "$0" --exact "$1" --nocapture"#;
    let mut child = std::process::Command::new("sh");
    child.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(name);
    let output = child.env(FULL, directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let head = said.lines().find_map(|line| line.strip_prefix("acknowledged "));
    let head: u64 = head.unwrap().parse().unwrap();
    let store = SqliteStore::open(directory.path().join("store.db")).unwrap();
    assert_eq!(load(&store).head, Seq(head));
    append(&store, &head.to_string(), head, &[user(head)]).unwrap();
    for (seq, logged) in (0..).zip(log(&store)) {
        assert_eq!(logged.entry, user(seq));
    }
    assert_eq!(load(&store).head, Seq(head + 1));
}
