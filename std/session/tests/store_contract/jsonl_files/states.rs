//! States of a session in its file.

use std::fs;
use std::path::Path;

use epitome_core::Seq;
use epitome_std::history::{
    Append, AppendToken, Entry, HistoryStore, KeptState, NewState, StateOutcome, StateRevision,
};
use futures::executor::block_on;

use super::quick;
use crate::support::{commit, everything, fill, keys, prune, record, session, user};

fn text(folder: &Path) -> String {
    fs::read_to_string(folder.join("s.jsonl")).unwrap()
}

fn store(store: &dyn HistoryStore, head: u64, entries: &[Entry], state: (u64, &str)) -> StateOutcome {
    let (token, state) = (AppendToken::new(head.to_string()), NewState::new(StateRevision(state.0), state.1));
    let append = Append::new(&token, Seq(head), entries);
    block_on(store.append_with_state(&session(), &append, &state)).unwrap().1
}

fn save(store: &dyn HistoryStore, made_from: u64, text: &str) -> u64 {
    block_on(store.save_state(&session(), &NewState::new(StateRevision(made_from), text))).unwrap().0
}

const fn kept(revision: u64) -> StateOutcome {
    StateOutcome::Kept(StateRevision(revision))
}

fn state(store: &dyn HistoryStore) -> Option<KeptState> {
    block_on(store.state(&session())).unwrap()
}

#[test]
fn a_file_cut_anywhere_has_an_append_with_its_state_or_neither() {
    let directory = tempfile::tempdir().unwrap();
    let all = quick(directory.path());
    let mut steps = vec![(0, None)];
    let mut step = |done: &mut dyn FnMut()| {
        done();
        let len = text(directory.path()).len();
        steps.push((len, Some((everything(&all), state(&all)))));
    };
    step(&mut || assert_eq!(store(&all, 0, &[user(0), user(1)], (0, "first")), kept(1)));
    step(&mut || assert_eq!(store(&all, 2, &[user(2)], (1, "second")), kept(2)));
    step(&mut || assert_eq!(save(&all, 2, "third"), 3));
    step(&mut || assert_eq!(store(&all, 3, &[user(3)], (0, "stale")), StateOutcome::Stale));
    let whole = text(directory.path()).into_bytes();
    for end in 0..=whole.len() {
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("s.jsonl"), &whole[..end]).unwrap();
        let store = quick(copy.path());
        let (_, expected) = steps.iter().rfind(|(len, _)| *len <= end).unwrap();
        match expected {
            Some((all, kept)) => assert!(everything(&store) == *all && state(&store) == *kept, "{end}"),
            None => assert!(block_on(store.state(&session())).is_err(), "{end}"),
        }
    }
}

#[test]
fn a_file_that_is_written_anew_has_the_latest_state_only() {
    let directory = tempfile::tempdir().unwrap();
    let (all, other) = (quick(directory.path()), quick(directory.path()));
    store(&all, 0, &[user(0), user(1)], (0, "the first one"));
    store(&all, 2, &[user(2)], (1, "the second one"));
    save(&all, 2, "the third one");
    store(&all, 3, &[user(3)], (3, "the fourth one"));
    assert_eq!(state(&other).unwrap().revision, StateRevision(4));
    commit(&all, &record(0, 4, &[(0, 0)])).unwrap();
    prune(&all, 1).unwrap();
    let left = text(directory.path());
    assert!(
        ["the first one", "the second one", "the third one"].iter().all(|old| !left.contains(old)),
        "{left}"
    );
    let latest = Some(KeptState::new(StateRevision(4), Seq(4), "the fourth one".into()));
    for store in [&all, &other, &quick(directory.path())] {
        assert_eq!(state(store), latest);
        assert_eq!(keys(store), [1, 2, 3]);
    }
    assert_eq!(save(&other, 4, "the fifth one"), 5);
    assert_eq!(state(&all).unwrap().revision, StateRevision(5));
    assert_eq!(everything(&quick(directory.path())), everything(&all));
}

/// A file of version 1 comes from a release without states. Its lines are the same except for the version, and its
/// first state rewrites it.
#[test]
fn a_file_of_version_1_is_written_anew_for_its_first_state() {
    for with_append in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("s.jsonl"), super::format::version_1()).unwrap();
        let all = quick(directory.path());
        let before = keys(&all);
        assert_eq!(state(&all), None);
        match with_append {
            true => assert_eq!(store(&all, 2, &[user(2)], (0, "first")), kept(1)),
            false => assert_eq!(save(&all, 0, "first"), 1),
        }
        assert!(text(directory.path()).contains(r#""session":{"v":4,"#));
        assert_eq!(keys(&all).len(), before.len() + usize::from(with_append));
        let kept = state(&all);
        assert_eq!(&*kept.as_ref().unwrap().text, "first");
        let fresh = quick(directory.path());
        assert_eq!((state(&fresh), everything(&fresh)), (kept, everything(&all)));
        // After that, one line is enough.
        let whole = text(directory.path());
        save(&all, 1, "second");
        assert!(text(directory.path()).starts_with(&whole));
    }
}

#[test]
fn a_state_line_that_fits_nothing_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let all = quick(directory.path());
    fill(&all, 1);
    save(&all, 0, "first");
    let whole = fs::read(directory.path().join("s.jsonl")).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    // The same line again is invalid, because its place is different.
    let twice = [&whole[..], &whole[last..]].concat();
    fs::write(directory.path().join("s.jsonl"), twice).unwrap();
    let error = block_on(quick(directory.path()).state(&session())).unwrap_err();
    assert_eq!(error.kind(), epitome_std::history::StoreErrorKind::Corrupt);
}
