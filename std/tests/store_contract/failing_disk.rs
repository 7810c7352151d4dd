//! A disk that fails, and a process that is killed, at each single call that writes: `strace` makes the system do so.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::Unavailable;
use epitome_std::history::{
    Append, AppendToken, HistoryStore, HistoryStoreExt as _, MemoryStore, NewState, StateOutcome,
    StateRevision, StoreError, open_store,
};
use futures::executor::block_on;

use crate::support::{commit, everything, prune, record, session, summarized, uncompact, user};

/// Tells the child where to write.
const URL: &str = "EPITOME_TEST_FAILING_URL";

/// What the child does, from one state to the next.
fn step(store: &dyn HistoryStore, at: usize) -> Result<(), StoreError> {
    let head = [0, 3, 3, 6, 6, 6][at];
    match at {
        0 | 2 => {
            let entries: Vec<_> = (head..head + 3).map(user).collect();
            let (token, text) = (AppendToken::new(at.to_string()), format!("state {at}"));
            let state = NewState::new(StateRevision(at as u64 / 2), &text);
            let append = Append::new(&token, Seq(head), &entries);
            let (_, outcome) = block_on(store.append_with_state(&session(), &append, &state))?;
            assert_eq!(outcome, StateOutcome::Kept(state.made_from.next()));
            Ok(())
        }
        1 => commit(store, &summarized(record(0, head, &[(0, 1)]), &[&[(0, 1)]])).map(drop),
        3 => uncompact(store, 1).map(drop),
        4 => commit(store, &record(2, head, &[(0, 3)])).map(drop),
        _ => prune(store, 3).map(drop),
    }
}

const STEPS: usize = 6;

/// How many steps a store has seen: `done`, or one more whose acknowledgement was lost.
fn seen(store: &dyn HistoryStore, done: usize) -> usize {
    let is_there = !block_on(store.list(None, 1)).unwrap().is_empty();
    let all = |store: &dyn HistoryStore| (everything(store), block_on(store.state(&session())).unwrap());
    let found = is_there.then(|| all(store));
    // What is in a store in memory after so many.
    let memory = MemoryStore::new();
    let mut expected = None;
    for at in 0..=STEPS {
        if at >= done && found == expected {
            return at;
        }
        assert!(at <= done, "after {done} steps there is neither what they made nor what the next one makes");
        if at < STEPS {
            step(&memory, at).unwrap();
            expected = Some(all(&memory));
        }
    }
    panic!("{found:?} after all steps");
}

/// The child: does all steps, each again when it has failed, and says which are acknowledged.
#[test]
fn a_child_writes_on_a_failing_disk() {
    let Some(url) = std::env::var_os(URL).and_then(|url| url.into_string().ok()) else { return };
    let mut out = std::io::stdout();
    let mut say = |what: &str, at: usize| {
        writeln!(out, "\n{what} {at}").unwrap();
        out.flush().unwrap();
    };
    let mut failures = 0;
    // What fails fails once.
    let mut failed = |error: &StoreError| {
        failures += 1;
        assert_eq!(error.kind(), Unavailable, "{error:?}");
        assert!(failures < 3, "{error:?}");
    };
    let store: Arc<dyn HistoryStore> = loop {
        match open_store(&url) {
            Ok(store) => break store,
            Err(error) => failed(&error),
        }
    };
    for at in 0..STEPS {
        while let Err(error) = step(&*store, at) {
            failed(&error);
            seen(&*store, at);
            say("failed", at);
        }
        say("acknowledged", at + 1);
    }
    assert_eq!(seen(&*store, STEPS), STEPS);
}

/// What came of a child.
struct Ended {
    acknowledged: usize,
    failed: usize,
    /// Whether the system has done what it was asked to.
    is_injected: bool,
    whole: bool,
}

/// Runs a child to whom `fault` happens at the `number`th call of `call` for one of `paths`.
fn child(url: &str, paths: &[PathBuf], call: &str, fault: &str, number: usize) -> Ended {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", &format!("trace={call}"), "-o"]).arg(log.path());
    command.args(["-e", &format!("inject={call}:{fault}:when={number}")]);
    for path in paths {
        command.arg("-P").arg(path);
    }
    let name = "failing_disk::a_child_writes_on_a_failing_disk";
    command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]).env(URL, url);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let count = |what: &str| said.lines().filter(|line| line.starts_with(what)).count();
    let traced = std::fs::read_to_string(log.path()).unwrap();
    let is_killed = fault.starts_with("signal") && traced.contains("+++ killed");
    let is_injected = is_killed || traced.contains("(INJECTED)");
    let whole = output.status.success();
    assert!(
        whole || is_killed,
        "{call} {number} {fault}: {said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ended { acknowledged: count("acknowledged "), failed: count("failed "), is_injected, whole }
}

/// Whether the system lets one process make the calls of another fail.
fn is_possible() -> bool {
    let traced = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    let is_possible = traced.is_ok_and(|traced| traced.status.success());
    if !is_possible {
        eprintln!("skipped: there is no strace, or it may not trace");
    }
    is_possible
}

/// Every call of a kind fails, or kills, one after another. `files` are all that a store has in a folder.
fn survives(scheme: &str, files: &[&str], calls: &[&str], least: usize) {
    if !is_possible() {
        return;
    }
    let faults = ["error=EIO", "error=ENOSPC", "signal=SIGKILL"];
    let (mut counts, mut told) = (BTreeMap::<_, usize>::new(), 0);
    for call in calls {
        for fault in faults {
            // A disk is full for one write as it is for the next.
            let stride = if fault == "error=ENOSPC" { 5 } else { 1 };
            for number in (1..).step_by(stride) {
                let folder = tempfile::tempdir().unwrap();
                let paths: Vec<PathBuf> = files.iter().map(|name| folder.path().join(name)).collect();
                let url = format!("{scheme}:{}", paths[0].display());
                let ended = child(&url, &paths, call, fault, number);
                if !ended.is_injected {
                    assert_eq!(ended.acknowledged, STEPS);
                    break;
                }
                *counts.entry((*call, fault)).or_default() += 1;
                told += ended.failed;
                check(&url, &ended);
            }
        }
    }
    println!("{scheme}: {counts:?}, {told} steps failed and were repeated");
    let [errors, full, kills] =
        faults.map(|of| counts.iter().filter(|it| it.0.1 == of).map(|it| it.1).sum::<usize>());
    assert!(errors >= least && full >= 3 && kills >= least && told >= least, "fewer than {least}");
}

/// What was acknowledged is there, whatever happened, and what was not can be done now.
fn check(url: &str, ended: &Ended) {
    let store = open_store(url).unwrap();
    let found = seen(&*store, ended.acknowledged);
    assert!(!ended.whole || found == STEPS);
    for at in found..STEPS {
        step(&*store, at).unwrap();
    }
    assert_eq!(seen(&*store, STEPS), STEPS);
    assert_eq!(block_on(store.verify(&session())).unwrap().revision, Revision(4));
}

#[test]
fn a_directory_of_files_loses_nothing_at_any_call() {
    survives(
        "jsonl",
        &["store", "store/s.jsonl", "store/s.jsonl.new"],
        &["write", "fdatasync", "fsync", "rename"],
        12,
    );
}

#[cfg(feature = "sqlite")]
#[test]
fn a_database_file_loses_nothing_at_any_call() {
    survives("sqlite", &["s.db", "s.db-wal"], &["pwrite64", "fsync", "fdatasync", "ftruncate"], 20);
}
