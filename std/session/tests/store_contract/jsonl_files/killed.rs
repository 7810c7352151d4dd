//! A process that is killed while it writes, or that may not write as much as it needs.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use epitome_core::{Revision, Seq};
use epitome_std::history::{AppendToken, HistoryStore, JsonlStore, StoreErrorKind};
use futures::executor::block_on;

use crate::support::{append, commit, load, log, record, records, session, user};

/// Variable with the folder for the child.
const FOLDER: &str = "EPITOME_TEST_JSONL_FOLDER";

/// Variable with the folder for a child whose disk is full.
#[cfg(unix)]
const FULL: &str = "EPITOME_TEST_JSONL_FULL_FOLDER";

/// Number of messages of one append.
const BATCH: u64 = 3;

/// The child: appends, hides messages that it has appended before, and prints the acknowledged state after each
/// operation.
#[test]
fn a_child_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = JsonlStore::open(folder).unwrap();
    let (mut head, mut revision) = match block_on(store.load(&session())) {
        Ok(loaded) => (loaded.head.0, loaded.revision.0),
        Err(_) => (0, 0),
    };
    loop {
        let entries: Vec<_> = (head..head + BATCH).map(user).collect();
        head = match append(&store, &head.to_string(), head, &entries) {
            Ok(appended) => appended.head.0,
            // Another process was faster.
            Err(error) if error.kind() == StoreErrorKind::Conflict => {
                head = load(&store).head.0;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        say(head, revision);
        revision = commit(&store, &record(revision, head, &[(revision, revision)])).unwrap().0;
        say(head, revision);
    }
}

/// Appends until an append fails, in a process that may write no large file.
#[cfg(unix)]
#[test]
fn a_child_writes_until_there_is_no_room() {
    let Some(folder) = std::env::var_os(FULL) else { return };
    let store = JsonlStore::open(&folder).unwrap();
    let path = Path::new(&folder).join("s.jsonl");
    for head in 0.. {
        let before = std::fs::read(&path).unwrap_or_default();
        let Err(error) = append(&store, &head.to_string(), head, &[user(head)]) else { continue };
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("make room"), "{error}");
        assert!(head > 3 && std::fs::read(&path).unwrap() == before);
        assert_eq!(load(&store).head, Seq(head));
        return say(head, 0);
    }
}

#[cfg(unix)]
#[test]
fn a_write_without_room_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let name = "jsonl_files::killed::a_child_writes_until_there_is_no_room";
    // Without the signal, a write beyond the limit writes as much as fits, and the next one fails.
    let script = r#"trap "" XFSZ; ulimit -f 8; exec "$0" --exact "$1" --nocapture"#;
    let mut child = Command::new("sh");
    child.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(name);
    let output = child.env(FULL, directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let head = said.lines().find_map(|line| line.strip_prefix("acknowledged ")?.strip_suffix(" 0"));
    let head: u64 = head.unwrap().parse().unwrap();
    // As soon as there is space again, the store continues.
    let store = JsonlStore::open(directory.path()).unwrap();
    append(&store, &head.to_string(), head, &[user(head)]).unwrap();
    assert_eq!(log(&store).len() as u64, head + 1);
    assert_eq!(store.cut_tails(), []);
}

fn say(head: u64, revision: u64) {
    let mut out = std::io::stdout();
    writeln!(out, "\nacknowledged {head} {revision}").unwrap();
    out.flush().unwrap();
}

/// Starts a child that writes, kills it after this many acknowledgements, and returns the last of them. After each
/// acknowledgement this process calls `meanwhile`.
fn child(folder: &Path, acknowledgements: usize, mut meanwhile: impl FnMut()) -> (u64, u64) {
    let name = "jsonl_files::killed::a_child_writes_until_it_is_killed";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(FOLDER, OsString::from(folder))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = (0, 0);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let acknowledged = lines.map_while(Result::ok).filter_map(|line| {
        let (head, revision) = line.strip_prefix("acknowledged ")?.split_once(' ')?;
        Some((head.parse().ok()?, revision.parse().ok()?))
    });
    let mut left = acknowledgements;
    for acknowledgement in acknowledged {
        said = acknowledgement;
        left = left.saturating_sub(1);
        if left == 0 {
            // The child may be in any operation. Its output up to then is read to the end.
            child.kill().unwrap();
        }
        meanwhile();
    }
    child.wait().unwrap();
    assert_eq!(left, 0, "the child has ended by itself");
    said
}

#[test]
fn what_was_acknowledged_survives_a_kill_and_nothing_is_half_there() {
    let directory = tempfile::tempdir().unwrap();
    for kill in 0..12 {
        let (head, revision) = child(directory.path(), 1 + kill % 5, || {});
        let store = JsonlStore::open(directory.path()).unwrap();
        let loaded = load(&store);
        assert!(loaded.head.0 == head || loaded.head.0 == head + BATCH, "{} after {head}", loaded.head);
        assert!(loaded.revision.0 == revision || loaded.revision.0 == revision + 1);
        assert_eq!(loaded.head.0 % BATCH, 0);
        let keys: Vec<_> = loaded.live.iter().map(|live| live.key).collect();
        assert_eq!(keys, (loaded.revision.0..loaded.head.0).map(Seq).collect::<Vec<_>>());
        for (seq, logged) in (0..).zip(log(&store)) {
            assert_eq!(logged.entry, user(seq));
            let hidden_by = (seq < loaded.revision.0).then(|| Revision(seq + 1));
            assert_eq!(logged.hidden_by, hidden_by);
        }
        assert_eq!(records(&store).len() as u64, loaded.revision.0);
    }
}

#[test]
fn two_processes_write_one_session() {
    let directory = tempfile::tempdir().unwrap();
    let store = JsonlStore::open(directory.path()).unwrap();
    let mut mine = Vec::new();
    child(directory.path(), 12, || {
        // An append never fails because of a commit, and only a limited number of times because of another append.
        for _ in 0..1_000 {
            let head = load(&store).head.0;
            let token = format!("mine {}", mine.len());
            let entries: Vec<_> = (head..head + BATCH).map(user).collect();
            match append(&store, &token, head, &entries) {
                Ok(appended) => return mine.push((AppendToken::new(token), appended)),
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}"),
            }
        }
        panic!("the other process leaves this one no turn");
    });
    assert!(mine.len() >= 12);
    let fresh = JsonlStore::open(directory.path()).unwrap();
    for (token, appended) in mine {
        assert_eq!(block_on(fresh.appended(&session(), &token)).unwrap(), Some(appended));
    }
    let loaded = load(&fresh);
    assert_eq!(loaded, load(&store));
    assert!(loaded.revision.0 >= 6);
    let keys: Vec<_> = loaded.live.iter().map(|live| live.key).collect();
    assert_eq!(keys, (loaded.revision.0..loaded.head.0).map(Seq).collect::<Vec<_>>());
    for (seq, logged) in (0..).zip(log(&fresh)) {
        assert_eq!(logged.entry, user(seq));
    }
}
