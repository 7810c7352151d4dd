//! Any bytes in the file of an index of words, or any changes of one: a search finds the same messages as without that
//! file.
#![no_main]

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use epitome_core::{Basis, Seq, Tokens, Turn};
use epitome_std::history::{
    Append, AppendToken, Entry, FoundMessage, HistoryStore, JsonlStore, LogSearch, SessionId, TokenCount,
};
use epitome_std::message::Message;
use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;

/// A session that is long enough for an index, and its index.
struct Place {
    _folder: tempfile::TempDir,
    store: JsonlStore,
    file: PathBuf,
    whole: Vec<u8>,
    search: LogSearch,
    found: Vec<FoundMessage>,
}

thread_local! {
    static PLACE: OnceCell<Place> = const { OnceCell::new() };
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let store = JsonlStore::open(folder.path()).unwrap();
    let session = SessionId::new("s");
    let count = TokenCount::new(Tokens(1), Basis::Estimated, "c".into());
    let said = |seq: u64| Message::user(format!("w{} w{}", seq % 7, seq % 101));
    let entries: Vec<Entry> =
        (0..1_300).map(|seq| Entry::new(said(seq), Seq(seq), Turn(1), count.clone())).collect();
    block_on(store.append(&session, &Append::new(&AppendToken::new("t"), Seq(0), &entries))).unwrap();
    let search = LogSearch::new("w3 w50").in_session(session);
    let found = block_on(store.search(&search)).unwrap();
    let file = folder.path().join("s.jsonl.words");
    let whole = fs::read(&file).unwrap();
    Place { _folder: folder, store, file, whole, search, found }
}

fuzz_target!(|bytes: &[u8]| {
    PLACE.with(|place_of| {
        let place = place_of.get_or_init(place);
        let Some((kind, rest)) = bytes.split_first() else { return };
        let file = match kind % 3 {
            0 => rest.to_vec(),
            // Changes of single bytes, each by its place and the bits that change.
            1 => {
                let mut file = place.whole.clone();
                for [high, low, bits] in rest.as_chunks::<3>().0 {
                    let at = usize::from(u16::from_be_bytes([*high, *low])) % file.len();
                    file[at] ^= bits;
                }
                file
            }
            // The file up to a place, followed by other bytes.
            _ => {
                let Some(([high, low], rest)) = rest.split_first_chunk::<2>() else { return };
                let at = usize::from(u16::from_be_bytes([*high, *low])) % place.whole.len();
                [&place.whole[..at], rest].concat()
            }
        };
        fs::write(&place.file, file).unwrap();
        assert_eq!(block_on(place.store.search(&place.search)).unwrap(), place.found);
    });
});
