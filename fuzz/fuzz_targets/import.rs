//! Any bytes as an export: it is refused and nothing is left of it, or the session is one that verifies and is exported again.
#![no_main]

use epitome_std::history::{HistoryStore, HistoryStoreExt, MemoryStore, SessionId, StoreErrorKind};
use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (store, session) = (MemoryStore::new(), SessionId::new("s"));
    if block_on(store.import(&session, &mut &*bytes)).is_err() {
        let left = block_on(store.load(&session)).unwrap_err();
        assert_eq!(left.kind(), StoreErrorKind::NotFound);
        return;
    }
    block_on(store.verify(&session)).unwrap();
    let mut exported = Vec::new();
    block_on(store.export(&session, &mut exported)).unwrap();
    let other = MemoryStore::new();
    block_on(other.import(&session, &mut &*exported)).unwrap();
    assert_eq!(block_on(other.load(&session)).unwrap(), block_on(store.load(&session)).unwrap());
});
