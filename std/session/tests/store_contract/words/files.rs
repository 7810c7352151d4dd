//! The index in a file next to that of a session: its damage, its removal, and failed writes.

use std::fs;

use epitome_conformance::index::{Dice, append_some, assert_found, prune_some};
use epitome_core::{Basis, Seq, Tokens, Turn};
use epitome_history::words::{Block, WIDE_SPAN};
use epitome_message::Message;
use epitome_std::history::{
    Append, AppendToken, Entry, Fsync, HistoryStore, JsonlOptions, JsonlStore, LogSearch, SessionId,
    TokenCount,
};
use futures::executor::block_on;

use super::{WORDS, assert_kept, jsonl, kept};

/// The names of the files that are not sessions.
fn indexes(folder: &std::path::Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|found| found.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with(".jsonl")).collect()
}

#[test]
fn a_damaged_file_of_words_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (store, mut dice, session) = (jsonl(folder.path()), Dice::new(7), SessionId::new("s"));
    block_on(async {
        append_some(&store, &session, 5_200, &mut dice).await;
        let search = LogSearch::new(WORDS).in_session(session.clone());
        let found = store.search(&search).await.unwrap();
        assert_eq!(indexes(folder.path()), ["s.jsonl.words"]);
        let path = folder.path().join("s.jsonl.words");
        let whole = fs::read(&path).unwrap();
        let first = Block { first: 0, span: WIDE_SPAN };
        for _ in 0..60 {
            let mut bytes = whole.clone();
            let at = usize::try_from(dice.below(whole.len() as u64)).unwrap();
            match dice.below(3) {
                0 => bytes.truncate(at),
                1 => bytes[at] ^= 1 << dice.below(8),
                _ => bytes[at % 60] = dice.below(256) as u8,
            }
            fs::write(&path, &bytes).unwrap();
            assert_eq!(store.search(&search).await.unwrap(), found, "damaged at {at}");
            assert!(kept(&store, &session).await.iter().any(|(block, _)| *block == first));
            assert_kept(&store, &session).await;
        }
        // The index of another file is not valid for this one.
        let other = SessionId::new("other");
        append_some(&store, &other, 5_200, &mut dice).await;
        fs::write(folder.path().join("other.jsonl.words"), &whole).unwrap();
        assert_eq!(kept(&store, &other).await, []);
        assert_found(&store, &other, "other").await;
    });
}

#[test]
fn an_index_in_a_file_serves_other_handles_and_goes_with_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::new("s");
    block_on(async {
        let store = jsonl(folder.path());
        append_some(&store, &session, 2_000, &mut Dice::new(5)).await;
        let search = LogSearch::new("common3 w17").in_session(session.clone());
        let found = store.search(&search).await.unwrap();
        let other = jsonl(folder.path());
        assert_eq!(kept(&other, &session).await.len(), 7);
        assert_eq!(other.search(&search).await.unwrap(), found);
        // The other handle deletes texts: afterwards no file contains a word of them.
        prune_some(&other, &session, 2_000).await;
        assert_eq!(indexes(folder.path()), Vec::<String>::new());
        assert_found(&store, &session, "s").await;
        assert_eq!(indexes(folder.path()), ["s.jsonl.words"]);
        assert!(other.delete(&session).await.unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    });
}

/// An encrypted store has no index, because the index would contain the words.
#[cfg(feature = "encryption")]
#[test]
fn an_encrypted_folder_has_no_index() {
    let folder = tempfile::tempdir().unwrap();
    let options = JsonlOptions::default().with_fsync(Fsync::Never);
    let store = JsonlStore::open_encrypted(folder.path(), options, crate::subjects::key(1)).unwrap();
    block_on(async {
        append_some(&store, &SessionId::new("s"), 2_000, &mut Dice::new(5)).await;
        assert!(assert_found(&store, &SessionId::new("s"), "s").await > 0);
    });
    assert_eq!(indexes(folder.path()), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_searched() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let folder = tempfile::tempdir().unwrap();
    let store = jsonl(folder.path());
    block_on(async {
        append_some(&store, &SessionId::new("s"), 2_000, &mut Dice::new(5)).await;
        // A folder in the place of the file: root cannot write it either.
        fs::create_dir(folder.path().join("s.jsonl.words")).unwrap();
        assert!(assert_found(&store, &SessionId::new("s"), "s").await > 0);
        fs::remove_dir(folder.path().join("s.jsonl.words")).unwrap();
        assert!(assert_found(&store, &SessionId::new("s"), "s").await > 0);
    });
    let index = fs::metadata(folder.path().join("s.jsonl.words")).unwrap();
    assert_eq!(index.permissions().mode() & 0o777, 0o600);
    assert!(index.size() > 1_000);
}

/// The documented repair of a damaged file cuts it. The index of the removed lines is not valid for the lines in their
/// place.
#[test]
fn a_file_that_was_cut_has_no_index_of_what_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::new("s");
    let path = folder.path().join("s.jsonl");
    let count = TokenCount::new(Tokens(1), Basis::Estimated, "c".into());
    // The same texts in the same places, except for one.
    let say = async |store: &JsonlStore, token: &str, word: &str| {
        let text = |seq| if seq == 1_150 { word } else { "common1" };
        let entry = |seq| Entry::new(Message::user(text(seq)), Seq(seq), Turn(1), count.clone());
        let entries: Vec<Entry> = (1_100..1_400).map(entry).collect();
        store.append(&session, &Append::new(&AppendToken::new(token), Seq(1_100), &entries)).await.unwrap();
    };
    block_on(async {
        let store = jsonl(folder.path());
        append_some(&store, &session, 1_100, &mut Dice::new(11)).await;
        let whole = fs::metadata(&path).unwrap().len();
        say(&store, "one", "w17").await;
        assert_found(&store, &session, "s").await;
        assert_eq!(kept(&store, &session).await.len(), 5);
        fs::File::options().write(true).open(&path).unwrap().set_len(whole).unwrap();
        let store = jsonl(folder.path());
        say(&store, "two", "w18").await;
        assert_eq!(kept(&store, &session).await.len(), 4);
        assert_found(&store, &session, "s").await;
        assert_eq!(kept(&store, &session).await.len(), 5);
        assert_kept(&store, &session).await;
    });
}
