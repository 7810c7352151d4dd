//! Any bytes as the file of a session: it is loaded, or an error says that it is damaged; and a loaded session is loaded again.
#![no_main]

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use epitome_core::{Basis, Seq, Tokens, Turn};
use epitome_std::history::{
    Append, AppendToken, Entry, HistoryStore, HistoryStoreExt, JsonlStore, SessionId, StoreErrorKind,
    TokenCount,
};
use epitome_std::message::Message;
use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;

/// A folder, and where the file of the session is in it.
struct Place {
    folder: tempfile::TempDir,
    file: PathBuf,
}

thread_local! {
    static PLACE: OnceCell<Place> = const { OnceCell::new() };
}

fn session() -> SessionId {
    SessionId::new("s")
}

/// The store names the file, so it is found by a session that was appended to.
fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let store = JsonlStore::open(folder.path()).unwrap();
    let count = TokenCount::new(Tokens(1), Basis::Estimated, "c".into());
    let entry = Entry::new(Message::user("Hi."), Seq(0), Turn(1), count);
    block_on(store.append(&session(), &Append::new(&AppendToken::new("t"), Seq(0), &[entry]))).unwrap();
    let mut files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|it| it == "jsonl")).unwrap();
    Place { folder, file }
}

fuzz_target!(|bytes: &[u8]| {
    PLACE.with(|place_of| {
        let Place { folder, file } = place_of.get_or_init(place);
        fs::write(file, bytes).unwrap();
        let store = JsonlStore::open(folder.path()).unwrap();
        let loaded = match block_on(store.load(&session())) {
            Ok(loaded) => loaded,
            Err(error) => {
                let damaged = [StoreErrorKind::Corrupt, StoreErrorKind::Invalid, StoreErrorKind::NotFound];
                return assert!(damaged.contains(&error.kind()), "{error}");
            }
        };
        if let Err(error) = block_on(store.verify(&session())) {
            assert!(matches!(error.kind(), StoreErrorKind::Corrupt | StoreErrorKind::Invalid), "{error}");
        }
        drop(store);
        let again = JsonlStore::open(folder.path()).unwrap();
        assert_eq!(block_on(again.load(&session())).unwrap(), loaded);
    });
});
