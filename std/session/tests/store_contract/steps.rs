//! Steps of a process in a store, with a failing disk or under a trace.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::Unavailable;
use epitome_std::history::{
    Append, AppendToken, HistoryStore, HistoryStoreExt as _, MemoryStore, NewState, StateOutcome,
    StateRevision, StoreError, open_store,
};
use futures::executor::block_on;

use crate::support::{commit, everything, prune, record, session, summarized, uncompact, user};

/// Variable with the URL for the child.
const URL: &str = "EPITOME_TEST_STEPS_URL";

/// Variable with the number of steps that were taken before.
const FROM: &str = "EPITOME_TEST_STEPS_FROM";

/// Number of steps.
pub(crate) const STEPS: usize = 9;

/// Moves the session from one state to the next. A repeated step changes nothing.
fn step(store: &dyn HistoryStore, at: usize) -> Result<(), StoreError> {
    match at {
        0 => append(store, at, 0, 0),
        1 => commit(store, &summarized(record(0, 3, &[(0, 1)]), &[&[(0, 1)]])).map(drop),
        2 => append(store, at, 3, 1),
        3 => uncompact(store, 1).map(drop),
        4 => commit(store, &record(2, 6, &[(0, 3)])).map(drop),
        5 => prune(store, 3).map(drop),
        // A prune just before the deletion could lose everything, and look like the deletion.
        6 => append(store, at, 6, 2),
        7 => block_on(store.delete(&session())).map(drop),
        _ => append(store, at, 0, 0),
    }
}

/// Appends three messages and the state that follows `made_from`.
fn append(store: &dyn HistoryStore, at: usize, head: u64, made_from: u64) -> Result<(), StoreError> {
    let entries: Vec<_> = (head..head + 3).map(user).collect();
    let (token, text) = (AppendToken::new(at.to_string()), format!("state {at}"));
    let state = NewState::new(StateRevision(made_from), &text);
    let append = Append::new(&token, Seq(head), &entries);
    let (_, outcome) = block_on(store.append_with_state(&session(), &append, &state))?;
    assert_eq!(outcome, StateOutcome::Kept(state.made_from.next()));
    Ok(())
}

/// Number of steps that a store has seen: `done`, or one more whose acknowledgement was lost.
pub(crate) fn seen(store: &dyn HistoryStore, done: usize) -> usize {
    let all = |store: &dyn HistoryStore| {
        let is_there = !block_on(store.list(None, 1)).unwrap().is_empty();
        is_there.then(|| (everything(store), block_on(store.state(&session())).unwrap()))
    };
    let found = all(store);
    let memory = MemoryStore::new();
    for at in 0..=STEPS {
        if at >= done && found == all(&memory) {
            return at;
        }
        assert!(at <= done, "after {done} steps there is neither what they made nor what the next one makes");
        if at < STEPS {
            step(&memory, at).unwrap();
        }
    }
    panic!("{found:?} after all steps");
}

/// Returns the number of steps that the store at `url` has seen, of which `done` were acknowledged. Performs the other
/// steps.
pub(crate) fn goes_on(url: &str, done: usize) -> usize {
    let store = open_store(url).unwrap();
    let found = seen(&*store, done);
    for at in found..STEPS {
        step(&*store, at).unwrap();
    }
    assert_eq!(seen(&*store, STEPS), STEPS);
    assert_eq!(block_on(store.verify(&session())).unwrap().revision, Revision(0));
    found
}

/// The child: takes all steps, repeats a step that has failed, and prints the acknowledged ones.
#[test]
fn a_child_takes_all_steps() {
    let Some(url) = std::env::var_os(URL).and_then(|url| url.into_string().ok()) else { return };
    let from: usize = std::env::var_os(FROM).unwrap().to_str().unwrap().parse().unwrap();
    let mut out = std::io::stdout();
    let mut say = |what: &str, at: usize| {
        writeln!(out, "\n{what} {at}").unwrap();
        out.flush().unwrap();
    };
    let mut failures = 0;
    // Each fault occurs once.
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
    for at in from..STEPS {
        while let Err(error) = step(&*store, at) {
            failed(&error);
            seen(&*store, at);
            say("failed", at);
        }
        say("acknowledged", at + 1);
    }
    assert_eq!(seen(&*store, STEPS), STEPS);
}

/// Runs a child under `tracer`, which takes the steps from `from` on.
pub(crate) fn child(mut tracer: Command, url: &str, from: usize) -> Output {
    tracer.arg(std::env::current_exe().unwrap()).args(["--exact", "steps::a_child_takes_all_steps"]);
    tracer.arg("--nocapture").env(URL, url).env(FROM, from.to_string());
    tracer.stdin(Stdio::null()).output().unwrap()
}

/// True if one process may trace another here.
///
/// # Panics
/// If it may not, and `EPITOME_REQUIRE` names `strace`.
pub(crate) fn can_trace() -> bool {
    let traced =
        Command::new("strace").args(["-f", "--seccomp-bpf", "-qq", "-e", "trace=none", "true"]).output();
    let why = if cfg!(target_pointer_width = "32") {
        "the system calls of a 32-bit process have other names"
    } else if traced.is_ok_and(|traced| traced.status.success()) {
        return true;
    } else {
        "there is no strace, or it may not trace"
    };
    let required = std::env::var_os("EPITOME_REQUIRE").unwrap_or_default();
    assert!(!required.to_string_lossy().split(',').any(|name| name == "strace"), "{why}");
    eprintln!("skipped: {why}");
    false
}
