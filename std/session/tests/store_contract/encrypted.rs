//! Encryption at rest: access with a key, texts that are not in the files, and data that was moved within them.

mod moved;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{Corrupt, Invalid};
use epitome_std::history::{
    Append, AppendToken, HistoryStore, HistoryStoreExt, SessionId, StoreError, StoreKey, open_store,
    open_store_with_key,
};
use epitome_std::message::{Message, Part, ToolCall};
use futures::executor::block_on;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::moving::whole;
use crate::subjects::key;
use crate::support::{
    answer, append, calls, commit, edit, edited, entry, everything, fails, fill, late, load, prune, record,
    session, summarized, unanswered, uncompact, user,
};

type Opened = Result<Arc<dyn HistoryStore>, StoreError>;

/// The URLs of encrypted stores in a folder.
fn urls(folder: &Path) -> Vec<String> {
    let folder = folder.display();
    let mut urls = vec![format!("jsonl:{folder}/files")];
    if cfg!(feature = "sqlite") {
        urls.push(format!("sqlite:{folder}/file.db"));
    }
    urls
}

#[track_caller]
fn refused(opened: Opened, advice: &str) {
    let error = opened.unwrap_err();
    let said = format!("{error} {error:?}");
    assert_eq!(error.kind(), Invalid, "{said}");
    assert!(said.contains(advice), "{said}");
    assert!(!said.contains("0101") && !said.contains("question"), "{said}");
}

#[test]
fn a_store_is_opened_with_the_key_that_it_was_written_with() {
    let folder = tempfile::tempdir().unwrap();
    for url in urls(folder.path()) {
        let store = open_store_with_key(&url, key(1)).unwrap();
        fill(&*store, 3);
        let before = everything(&*store);
        drop(store);
        assert_eq!(everything(&*open_store_with_key(&url, key(1)).unwrap()), before);
        refused(open_store(&url), "is encrypted; open the store with its key");
        refused(open_store_with_key(&url, key(2)), "another key; open the store with that one");
        assert_eq!(everything(&*open_store_with_key(&url, key(1)).unwrap()), before);
    }
    for url in ["memory:", "jsonl:", "sqlite:", "postgres://host/db", "redis://host", "x"] {
        refused(open_store_with_key(url, key(1)), "only `jsonl:DIR` and `sqlite:PATH`");
    }
}

#[test]
fn a_store_that_is_not_encrypted_is_refused_with_a_key_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    let sealed = tempfile::tempdir().unwrap();
    for (url, to) in urls(folder.path()).iter().zip(urls(sealed.path())) {
        let plain = open_store(url).unwrap();
        eventful(&*plain);
        refused(open_store_with_key(url, key(1)), "HistoryStoreExt::copy");
        let target = open_store_with_key(&to, key(1)).unwrap();
        block_on(plain.copy(&session(), &*target, &session())).unwrap();
        assert_eq!(whole(&*target, &session()), whole(&*plain, &session()));
        let back = open_store("memory:").unwrap();
        block_on(target.copy(&session(), &*back, &session())).unwrap();
        assert_eq!(whole(&*back, &session()), whole(&*plain, &session()));
    }
}

/// Each file of a directory is checked: the first file is valid, and a second file is of another kind.
#[test]
fn each_file_of_a_directory_is_looked_at() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |folder: &Path, key: Option<StoreKey>| {
        let url = format!("jsonl:{}", folder.display());
        key.map_or_else(|| open_store(&url), |key| open_store_with_key(&url, key)).unwrap()
    };
    let store = at(one.path(), Some(key(1)));
    fill(&*store, 1);
    for key in [None, Some(key(2))] {
        let _ = fs::remove_file(other.path().join("t.jsonl"));
        let id = SessionId::new("t");
        let append = |store: &dyn HistoryStore| {
            block_on(store.append(&id, &Append::new(&AppendToken::new("t"), Seq(0), &[user(0)])))
        };
        append(&*at(other.path(), key)).unwrap();
        fs::copy(other.path().join("t.jsonl"), one.path().join("t.jsonl")).unwrap();
        fails(block_on(store.load(&id)), Invalid);
        fails(append(&*store), Invalid);
        fails(block_on(store.list(None, 9)), Invalid);
        assert_eq!(load(&*store).head, Seq(1));
        // A session that no key opens can be erased.
        assert!(block_on(store.delete(&id)).unwrap());
    }
}

#[test]
fn a_key_is_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    for url in urls(folder.path()) {
        let store = open_store_with_key(&url, key(0x5a)).unwrap();
        fill(&*store, 1);
        let shown = format!("{store:?} {:?}", key(0x5a)).to_lowercase();
        assert!(!shown.contains("5a") && !shown.contains("90"), "{shown}");
    }
}

/// A session after all operations that store texts.
fn eventful(store: &dyn HistoryStore) {
    append(store, "0", 0, &[user(0), calls(1, &["a", "b"]), answer(1, "a"), user(3)]).unwrap();
    append(store, "1", 4, &[user(4), user(5)]).unwrap();
    let mut hiding = summarized(record(0, 6, &[(0, 2)]), &[&[(0, 2)]]);
    hiding.unanswered = vec![unanswered("b", 1, 1)];
    commit(store, &hiding).unwrap();
    append(store, "2", 6, &[late(answer(1, "b"))]).unwrap();
    commit(store, &edited(record(2, 7, &[]), &[edit(3, &[(0, Some("[-]"))], 4)])).unwrap();
    commit(store, &record(3, 7, &[(4, 4)])).unwrap();
    uncompact(store, 4).unwrap();
    prune(store, 5).unwrap();
}

/// The contents of all files in a folder.
fn bytes(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(bytes(&entry));
        } else {
            found.push((entry.clone(), fs::read(&entry).unwrap()));
        }
    }
    found
}

/// The words that occur in the files of a folder.
fn found(folder: &Path, words: &[String]) -> Vec<String> {
    let files = bytes(folder);
    let holds = |word: &str, bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    let stand = |word: &&String| files.iter().any(|(_, bytes)| holds(word, bytes));
    words.iter().filter(stand).cloned().collect()
}

/// Stores these words: in a message, a call, an answer, an id, a summary, a stand-in and a record.
fn say(store: &dyn HistoryStore, words: &[String]) {
    let [text, call, argument, said, name, id, label, summary, stand_in, strategy] = words else { panic!() };
    let mut entries = vec![user(0), calls(1, &[call]), answer(1, call), user(3)];
    let text =
        Message::user(text.clone()).with_name(name.clone()).with_id(id.clone()).with_label(label.clone());
    entries[0].message = text;
    let parts = vec![Part::ToolCall(ToolCall::new(call.clone(), "read", argument.clone()))];
    entries[1].message = Message::new(Role::Assistant, parts);
    entries[2].message = Message::tool(call.clone(), said.clone());
    append(store, "0", 0, &entries[..2]).unwrap();
    let mut hiding = summarized(record(0, 2, &[(0, 1)]), &[&[(0, 1)]]);
    let attribution = hiding.summaries[0].message.attribution().clone();
    hiding.summaries[0].message = Message::assistant(summary.clone()).with_attribution(attribution);
    hiding.strategy = strategy.as_str().into();
    hiding.unanswered = vec![unanswered(call, 1, 1)];
    commit(store, &hiding).unwrap();
    let last = entry(Message::assistant("So it is."), 3, 1);
    append(store, "1", 2, &[late(entries.remove(2)), last]).unwrap();
    let edits = [edit(3, &[(0, Some(stand_in))], 4)];
    commit(store, &edited(record(2, 4, &[]), &edits)).unwrap();
    assert_eq!(load(store).revision, Revision(3));
}

#[test]
fn nothing_that_was_said_is_in_the_files() {
    let words = proptest::collection::vec("[a-zA-Z0-9äöü€漢字 ]{10,30}", 10);
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&words, |words| {
        let (folder, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (url, clear) in urls(folder.path()).iter().zip(urls(plain.path())) {
            // While the store is open, the log of SQLite is next to the file.
            let store = open_store_with_key(url, key(1)).unwrap();
            say(&*store, &words);
            prop_assert_eq!(found(folder.path(), &words), Vec::<String>::new());
            drop(store);
            prop_assert_eq!(found(folder.path(), &words), Vec::<String>::new());
            // In files without encryption, the search finds the words.
            say(&*open_store(&clear).unwrap(), &words);
        }
        prop_assert_eq!(found(plain.path(), &words), words);
        Ok(())
    });
    outcome.map_err(|failure| failure.to_string()).unwrap();
}

/// The log of the database, which is not yet in the file, contains none of the words either.
#[cfg(feature = "sqlite")]
#[test]
fn the_log_beside_the_file_is_encrypted_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store_with_key(&format!("sqlite:{}/file.db", folder.path().display()), key(1)).unwrap();
    fill(&*store, 50);
    let (_, log) = bytes(folder.path()).into_iter().find(|(path, _)| path.ends_with("file.db-wal")).unwrap();
    assert!(log.len() > 50 * 100);
    assert_eq!(found(folder.path(), &["question".to_owned()]), Vec::<String>::new());
}
