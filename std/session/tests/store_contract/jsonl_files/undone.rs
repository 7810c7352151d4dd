//! Effects of uncompacts and prunes on a file.

use std::fs;
use std::path::Path;

use epitome_core::Revision;
use futures::executor::block_on;

use super::quick;
use epitome_std::history::HistoryStore;
use epitome_std::history::StoreErrorKind::Pruned;

use crate::support::{
    append, commit, edit, edited, everything, fails, fill, keys, prune, record, records, session, summarized,
    uncompact, user,
};

fn text(folder: &Path) -> String {
    fs::read_to_string(folder.join("s.jsonl")).unwrap()
}

fn compacted(folder: &Path) -> epitome_std::history::JsonlStore {
    let store = quick(folder);
    fill(&store, 6);
    commit(&store, &edited(record(0, 6, &[]), &[edit(1, &[(0, Some("[shortened]"))], 4)])).unwrap();
    commit(&store, &summarized(record(1, 6, &[(0, 2)]), &[&[(0, 2)]])).unwrap();
    store
}

#[test]
fn a_file_cut_within_an_undoing_is_as_it_was_before() {
    let directory = tempfile::tempdir().unwrap();
    let store = compacted(directory.path());
    let (before, long) = (everything(&store), fs::read(directory.path().join("s.jsonl")).unwrap().len());
    uncompact(&store, 2).unwrap();
    let after = everything(&store);
    let whole = fs::read(directory.path().join("s.jsonl")).unwrap();
    for end in long..=whole.len() {
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("s.jsonl"), &whole[..end]).unwrap();
        let store = quick(copy.path());
        let expected = if end == whole.len() { &after } else { &before };
        assert!(everything(&store) == *expected, "{end}");
        assert_eq!(store.cut_tails().len(), usize::from(end > long && end < whole.len()), "{end}");
    }
}

#[test]
fn a_file_that_was_pruned_says_no_more_what_it_said() {
    let directory = tempfile::tempdir().unwrap();
    let (store, other) = (compacted(directory.path()), quick(directory.path()));
    let shown = keys(&other);
    assert!(text(directory.path()).contains("question 1") && text(directory.path()).contains("shortened"));
    prune(&store, 2).unwrap();
    let left = text(directory.path());
    assert!(["question 0", "question 1", "question 2", "shortened"].iter().all(|said| !left.contains(said)));
    assert!(left.contains("question 3") && left.contains("summary of"));
    // Another handle that knew the earlier file, and a handle that reads the new file from its beginning.
    assert_eq!(everything(&other), everything(&store));
    assert_eq!(everything(&quick(directory.path())), everything(&store));
    assert_eq!(keys(&other), shown);
    append(&other, "more", 6, &[user(6)]).unwrap();
    fails(uncompact(&store, 2), Pruned);
    assert_eq!(
        uncompact(&store, 1).map_err(|error| error.kind()),
        Err(epitome_std::history::StoreErrorKind::Conflict)
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(directory.path().join("s.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn what_an_interrupted_prune_has_left_is_not_looked_at_and_goes_with_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let store = compacted(directory.path());
    let (before, rest) = (everything(&store), directory.path().join("s.jsonl.new"));
    fs::write(&rest, &text(directory.path())[..400]).unwrap();
    assert_eq!(everything(&quick(directory.path())), before);
    prune(&store, 2).unwrap();
    assert!(!rest.exists());
    fs::write(&rest, "{").unwrap();
    block_on(store.delete(&session())).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_prune_that_cannot_be_written_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = compacted(directory.path());
    let (before, rest) = (everything(&store), directory.path().join("s.jsonl.new"));
    fs::create_dir(&rest).unwrap();
    fails(prune(&store, 2), epitome_std::history::StoreErrorKind::Unavailable);
    assert_eq!(everything(&store), before);
    fs::remove_dir(&rest).unwrap();
    assert_eq!(prune(&store, 2).unwrap().messages, 3);
}

/// A file of version 1 comes from a release without uncompacts. Its lines are the same except for the version, and its
/// first uncompact rewrites it.
#[test]
fn a_file_of_version_1_is_written_anew_for_its_first_undoing() {
    let directory = tempfile::tempdir().unwrap();
    let old = super::format::version_1();
    fs::write(directory.path().join("s.jsonl"), &old).unwrap();
    let store = quick(directory.path());
    assert_eq!(keys(&store), [1]);
    append(&store, "u", 2, &[user(2)]).unwrap();
    assert!(text(directory.path()).as_bytes().starts_with(&old));
    assert_eq!(uncompact(&store, 1).unwrap(), Revision(2));
    assert!(text(directory.path()).contains(r#""session":{"v":4,"#));
    assert_eq!(keys(&store), [0, 1, 2]);
    assert_eq!(uncompact(&store, 1).unwrap(), Revision(2));
    assert_eq!(records(&store)[0].undone_by, Some(Revision(2)));
    let after = everything(&store);
    assert_eq!(everything(&quick(directory.path())), after);
    // After that, one line is enough.
    let whole = text(directory.path());
    commit(&store, &record(2, 3, &[(0, 0)])).unwrap();
    uncompact(&store, 3).unwrap();
    assert!(text(directory.path()).starts_with(&whole));
}
