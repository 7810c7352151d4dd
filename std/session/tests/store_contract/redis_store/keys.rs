//! Keys on the server: layouts, foreign keys, lost keys, and sessions that expire.

use core::time::Duration;

use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{Corrupt, Invalid, NotFound};
use epitome_std::history::{
    CompactionRecord, HistoryStore, RedisOptions, RedisStore, StoreError, StoreErrorKind,
};
use futures::executor::block_on;
use redis::cmd;

use super::server::{Room, append, fill, session};

#[track_caller]
fn fails<T: core::fmt::Debug>(result: Result<T, StoreError>, kind: StoreErrorKind) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

fn hide_first(store: &dyn HistoryStore, head: u64) -> Result<Revision, StoreError> {
    let mut record = CompactionRecord::new(Revision(0), Seq(head));
    record.hides = vec![epitome_core::attribution::SeqRange { first: Seq(0), last: Seq(0) }];
    block_on(store.commit(&session(), &record))
}

#[test]
fn another_layout_is_refused_and_another_programs_key_too() {
    let Some(room) = Room::new() else { return };
    drop(room.store());
    let layout = format!("{}:layout", room.prefix);
    let set = |value: &str| cmd("SET").arg(&layout).arg(value).exec(&mut room.connection()).unwrap();
    set("3");
    let open = || RedisStore::open(&room.url, room.options());
    assert!(fails(open(), Invalid).contains("newer version: layout 3, this one reads up to 2"));
    set("1");
    assert!(fails(open(), Invalid).contains("older version: layout 1, this one has 2"));
    set("hello");
    assert!(!fails(open(), Corrupt).contains("hello"));
    cmd("DEL").arg(&layout).exec(&mut room.connection()).unwrap();
    cmd("RPUSH").arg(&layout).arg("1").exec(&mut room.connection()).unwrap();
    fails(open(), Corrupt);
    fails(RedisStore::open(&room.url, RedisOptions::default().with_prefix("a{b}")), Invalid);
}

#[test]
fn keys_of_other_types_are_corrupt_and_nothing_is_written_beside_them() {
    let Some(room) = Room::new() else { return };
    let store = room.store();
    fill(&store, 2);
    // The scripts check the types of the keys before they write: a script that fails does not undo its writes.
    for kind in ["log", "places", "live", "receipts", "appends"] {
        let (key, mut connection) = (room.key(kind), room.connection());
        let kept = format!("{key}-kept");
        cmd("RENAME").arg(&key).arg(&kept).exec(&mut connection).unwrap();
        cmd("SET").arg(&key).arg("secret").exec(&mut connection).unwrap();
        let counters = || -> Vec<String> {
            cmd("HGETALL").arg(room.key("session")).query(&mut room.connection()).unwrap()
        };
        let before = counters();
        let error = fails(append(&store, "new", 2), Corrupt);
        assert!(error.contains("another type") && !error.contains("secret"), "{error}");
        fails(hide_first(&store, 2), Corrupt);
        fails(block_on(store.delete(&session())), Corrupt);
        assert_eq!(counters(), before);
        cmd("RENAME").arg(&kept).arg(&key).exec(&mut connection).unwrap();
    }
    append(&store, "new", 2).unwrap();
    assert_eq!(block_on(store.load(&session())).unwrap().live.len(), 3);
}

#[test]
fn lost_keys_are_corrupt() {
    let Some(room) = Room::new() else { return };
    let store = room.store();
    fill(&store, 3);
    for kind in ["live", "log"] {
        let (key, mut connection) = (room.key(kind), room.connection());
        let kept: Vec<u8> = cmd("DUMP").arg(&key).query(&mut connection).unwrap();
        cmd("DEL").arg(&key).exec(&mut connection).unwrap();
        let error = fails(block_on(store.load(&session())), Corrupt);
        assert!(!error.contains("question"), "{error}");
        cmd("RESTORE").arg(&key).arg(0).arg(kept).exec(&mut connection).unwrap();
    }
    // A place in the set of visible messages that no operation has added.
    cmd("ZADD").arg(room.key("live")).arg(9).arg("m 9 9 1 1 - 2").exec(&mut room.connection()).unwrap();
    fails(block_on(store.load(&session())), Corrupt);
    fails(hide_first(&store, 3), Corrupt);
}

/// Each read and each change of a session that lacks a key fails, and does not create the lost key again.
#[test]
fn a_session_without_its_messages_or_places_is_corrupt_for_everyone() {
    let Some(room) = Room::new() else { return };
    let store = room.store();
    fill(&store, 3);
    hide_first(&store, 3).unwrap();
    for kind in ["places", "log", "session"] {
        let (key, mut connection) = (room.key(kind), room.connection());
        let kept: Vec<u8> = cmd("DUMP").arg(&key).query(&mut connection).unwrap();
        cmd("DEL").arg(&key).exec(&mut connection).unwrap();
        let mut late = super::server::user(3);
        late.anchor = Seq(1);
        let joins = |head: u64| {
            let token = epitome_std::history::AppendToken::new("joins");
            let append = epitome_std::history::Append::new(&token, Seq(head), core::slice::from_ref(&late));
            block_on(store.append(&session(), &append)).map(|_| ())
        };
        if kind == "session" {
            // The remaining keys do not become part of a new session.
            fails(append(&store, "new", 0), Corrupt);
            fails(block_on(store.load(&session())), NotFound);
        } else {
            let mut record = CompactionRecord::new(Revision(1), Seq(3));
            record.hides = vec![epitome_core::attribution::SeqRange { first: Seq(1), last: Seq(1) }];
            fails(append(&store, "new", 3), Corrupt);
            fails(joins(3), Corrupt);
            fails(block_on(store.load(&session())), Corrupt);
            fails(block_on(store.tail(&session())), Corrupt);
            fails(block_on(store.log(&session(), Seq(0)..Seq(9), 9)), Corrupt);
            fails(block_on(store.commit(&session(), &record)), Corrupt);
            fails(block_on(store.uncompact(&session(), Revision(1))), Corrupt);
            fails(block_on(store.prune(&session(), Revision(1))), Corrupt);
        }
        assert!(!room.keys().contains(&key), "{kind} was made anew");
        cmd("RESTORE").arg(&key).arg(0).arg(kept).exec(&mut connection).unwrap();
    }
    assert_eq!(block_on(store.load(&session())).unwrap().live.len(), 2);
    // A damaged session can be deleted, and then written again.
    cmd("DEL").arg(room.key("places")).exec(&mut room.connection()).unwrap();
    assert!(block_on(store.delete(&session())).unwrap());
    fill(&store, 2);
}

#[test]
fn a_session_ends_by_itself_whole_and_leaves_the_list() {
    let Some(room) = Room::new() else { return };
    let store = room.store();
    fill(&store, 2);
    let left = || -> Vec<i64> {
        let keys = room.keys().into_iter().filter(|key| key.ends_with(":s"));
        keys.map(|key| cmd("PTTL").arg(key).query(&mut room.connection()).unwrap()).collect()
    };
    assert!(left().iter().all(|left| *left == -1));
    let hour = RedisStore::open(&room.url, room.options().with_ttl(Duration::from_secs(3_600))).unwrap();
    append(&hour, "second", 2).unwrap();
    hide_first(&hour, 3).unwrap();
    assert!(left().len() >= 8 && left().iter().all(|left| (1..=3_600_000).contains(left)), "{:?}", left());
    // A store without expiry keeps a session forever from its next change on.
    append(&store, "third", 3).unwrap();
    assert!(left().iter().all(|left| *left == -1), "{:?}", left());

    let moment = RedisStore::open(&room.url, room.options().with_ttl(Duration::from_millis(1))).unwrap();
    append(&moment, "fourth", 4).unwrap();
    while block_on(store.load(&session())).is_ok() {}
    fails(block_on(store.load(&session())), NotFound);
    assert_eq!(block_on(store.list(None, 9)).unwrap(), []);
    let keys = room.keys();
    assert!(keys.len() == 1 && keys[0].ends_with(":layout"), "{keys:?}");
    append(&store, "fill", 0).unwrap();
    assert_eq!(block_on(store.list(None, 9)).unwrap().len(), 1);
}

#[test]
fn what_is_hidden_is_out_of_the_way_of_a_load() {
    let Some(room) = Room::new() else { return };
    let store = room.store();
    fill(&store, 300);
    let mut record = CompactionRecord::new(Revision(0), Seq(300));
    record.hides = vec![epitome_core::attribution::SeqRange { first: Seq(0), last: Seq(289) }];
    block_on(store.commit(&session(), &record)).unwrap();
    let loaded = block_on(store.load(&session())).unwrap();
    assert_eq!((loaded.live.len(), loaded.live[0].key), (10, Seq(290)));
    let live: u64 = cmd("ZCARD").arg(room.key("live")).query(&mut room.connection()).unwrap();
    let hidden: u64 = cmd("ZCARD").arg(room.key("hidden")).query(&mut room.connection()).unwrap();
    assert_eq!((live, hidden), (10, 290));
}

#[test]
fn a_list_of_many_sessions_has_pages() {
    let Some(room) = Room::new() else { return };
    let store = room.store();
    let mut names: Vec<String> =
        (0..700_u32).map(|number| format!("{}", number.wrapping_mul(2_654_435_761))).collect();
    let all = names.iter().map(|name| async {
        let session = epitome_std::history::SessionId::new(&**name);
        let token = epitome_std::history::AppendToken::new("t");
        let entries = [super::server::user(0)];
        store.append(&session, &epitome_std::history::Append::new(&token, Seq(0), &entries)).await.unwrap();
    });
    block_on(futures::future::join_all(all));
    names.sort();
    for limit in [1, 2, 7, 300, 1_000] {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = block_on(store.list(after.as_ref(), limit)).unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            assert!(page.len() <= limit as usize, "{} of at most {limit}", page.len());
            listed.extend(page.iter().map(|info| info.id.as_str().to_owned()));
            // Each page reads all parts of the index.
            if limit < 3 && listed.len() >= 40 {
                break;
            }
        }
        assert_eq!(listed, names[..if limit < 3 { 40 } else { 700 }]);
    }
}

#[test]
fn a_user_with_the_documented_rights_can_do_everything() {
    let Some(room) = Room::new() else { return };
    let text = include_str!("../../../../../docs/redis.md");
    let rights = text.split_once("A user needs `").unwrap().1.split_once('`').unwrap().0;
    let rights = rights.replace("PREFIX", &room.prefix);
    let user = room.prefix.replace('-', "");
    let mut set = cmd("ACL");
    set.arg("SETUSER").arg(&user).arg("on").arg(">hunter2").arg("-@all");
    set.arg(rights.split(' ').collect::<Vec<_>>());
    set.exec(&mut room.connection()).unwrap();
    let url = room.url.replace("redis://", &format!("redis://{user}:hunter2@"));
    let options = room.options().with_ttl(Duration::from_secs(3_600));
    let store = RedisStore::open(&url, options).unwrap();
    let stays = RedisStore::open(&url, room.options()).unwrap();
    fill(&store, 3);
    hide_first(&stays, 3).unwrap();
    block_on(store.uncompact(&session(), Revision(1))).unwrap();
    block_on(store.prune(&session(), Revision(2))).unwrap();
    assert_eq!(block_on(store.load(&session())).unwrap().live.len(), 3);
    assert_eq!(block_on(store.tail(&session())).unwrap().live.len(), 3);
    assert_eq!(block_on(store.log(&session(), Seq(0)..Seq(9), 9)).unwrap().messages.len(), 3);
    assert_eq!(block_on(store.records(&session(), None, 9)).unwrap().len(), 1);
    assert_eq!(block_on(store.appends(&session(), Seq(0), 9)).unwrap().len(), 1);
    assert_eq!(block_on(store.list(None, 9)).unwrap().len(), 1);
    assert!(block_on(store.delete(&session())).unwrap());
    let wrong = url.replace("hunter2", "hunter3");
    let error = fails(RedisStore::open(&wrong, room.options()), Invalid);
    assert!(error.contains("name and password") && !error.contains("hunter"), "{error}");
    fails(RedisStore::open(&url, room.options().with_prefix("not-mine")), Invalid);
    cmd("ACL").arg("DELUSER").arg(&user).exec(&mut room.connection()).unwrap();
}
