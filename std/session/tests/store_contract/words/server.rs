//! The index in a hash of a Redis server: its damage and its removal.

use epitome_conformance::index::{Dice, append_some, prune_some};
use epitome_std::history::{HistoryStore, LogSearch, RedisStore, SessionId};
use futures::executor::block_on;

use super::{WORDS, assert_kept, finds_among_changes, forgets_what_is_pruned, kept};
use crate::redis_store::server::Room;

/// A search on a server finds the same messages as a scan. There are few scans, because they take long on a server.
#[test]
fn a_search_on_a_server_finds_what_reading_finds() {
    let Some(room) = Room::new() else { return };
    block_on(finds_among_changes(&room.store(), 9));
}

#[test]
fn a_server_forgets_what_is_pruned() {
    let Some(room) = Room::new() else { return };
    block_on(forgets_what_is_pruned(&room.store(), false));
    let store = room.store();
    block_on(store.delete(&SessionId::new("s"))).unwrap();
    assert!(room.keys().iter().all(|key| !key.contains(":words:")), "{:?}", room.keys());
}

/// A damaged index is written again: foreign entries in its hash are ignored. The end of a session removes its index.
#[test]
fn a_damaged_index_on_a_server_is_written_anew() {
    let Some(room) = Room::new() else { return };
    let session = SessionId::new("s");
    let hours = core::time::Duration::from_secs(7_200);
    let store = RedisStore::open(&room.url, room.options().with_ttl(hours)).unwrap();
    block_on(append_some(&store, &session, 5_200, &mut Dice::new(7)));
    let search = LogSearch::new(WORDS).in_session(session.clone());
    let found = block_on(store.search(&search)).unwrap();
    let (key, mut connection) = (room.key("words"), room.connection());
    let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
    assert!(left > 7_100_000, "{left}");
    let fields: Vec<String> = redis::cmd("HKEYS").arg(&key).query(&mut connection).unwrap();
    assert!(fields.len() > 10 && fields.contains(&"0.4096".to_owned()), "{fields:?}");
    for damage in [&b""[..], b"\0", b"12345678", b"0123456789abcdef0123"] {
        for field in &fields {
            let whole: Vec<u8> = redis::cmd("HGET").arg(&key).arg(field).query(&mut connection).unwrap();
            redis::cmd("HSET").arg(&key).arg(field).arg(damage).exec(&mut connection).unwrap();
            assert_eq!(block_on(store.search(&search)).unwrap(), found, "{field} is {damage:?}");
            // The search has written the blocks that it read, and nothing else.
            redis::cmd("HSET").arg(&key).arg(field).arg(whole).exec(&mut connection).unwrap();
        }
    }
    redis::cmd("SET").arg(&key).arg("a text").exec(&mut connection).unwrap();
    assert_eq!(block_on(store.search(&search)).unwrap(), found);
    let kind: String = redis::cmd("TYPE").arg(&key).query(&mut connection).unwrap();
    assert_eq!(kind, "hash");
    redis::cmd("SET").arg(&key).arg("a text").exec(&mut connection).unwrap();
    block_on(append_some(&store, &session, 2, &mut Dice::new(7)));
    assert_eq!(block_on(kept(&store, &session)), []);
    // A damaged index does not keep the words of a text that a prune deletes.
    let search_again = || block_on(store.search(&search)).unwrap();
    search_again();
    redis::cmd("HSET").arg(&key).arg("0.4096").arg("12345678").exec(&mut connection).unwrap();
    block_on(prune_some(&store, &session, 10));
    let left: Vec<String> = redis::cmd("HKEYS").arg(&key).query(&mut connection).unwrap();
    assert_eq!(left, Vec::<String>::new());
    search_again();
    assert!(!block_on(kept(&store, &session)).is_empty());
    block_on(assert_kept(&store, &session));
}
