//! Sessions, their names, their lists, and the pages of their logs.

use core::ops::Range;

use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{Invalid, NotFound};
use epitome_std::history::{Append, AppendToken, HistoryStore, SessionId, SessionInfo, open_store};
use futures::executor::block_on;

use crate::support::{append, commit, fails, fill, keys, log, record, session, user};

on_every_store! {
    what_is_not_there_is_not_found,
    any_text_names_a_session,
    sessions_do_not_touch_each_other,
    a_list_has_pages_in_the_order_of_bytes,
    a_log_has_pages,
    a_deleted_session_is_gone_with_everything,
    an_empty_token_is_a_token,
    nothing_shows_text,
}

fn what_is_not_there_is_not_found(store: &dyn HistoryStore) {
    fails(block_on(store.load(&session())), NotFound);
    fails(block_on(store.log(&session(), Seq(0)..Seq(9), 9)), NotFound);
    assert!(!block_on(store.delete(&session())).unwrap());
    assert_eq!(block_on(store.list(None, 9)).unwrap(), []);
}

fn odd_names() -> Vec<SessionId> {
    let long = "x".repeat(100_000);
    let names =
        ["", "../../x", "a\0b", "a\0", "a", "A", "\u{e9}", "e\u{301}", "\u{1f642}", "'; --", "%", " ", &long];
    names.into_iter().map(SessionId::new).collect()
}

fn any_text_names_a_session(store: &dyn HistoryStore) {
    let token = AppendToken::new("t");
    for (index, name) in (0..).zip(odd_names()) {
        block_on(store.append(&name, &Append::new(&token, Seq(0), &[user(0)]))).unwrap();
        let entries: Vec<_> = (1..=index).map(user).collect();
        if index > 0 {
            block_on(store.append(&name, &Append::new(&AppendToken::new("u"), Seq(1), &entries))).unwrap();
        }
    }
    for (index, name) in (0..).zip(odd_names()) {
        assert_eq!(block_on(store.load(&name)).unwrap().head, Seq(index + 1), "{name:?}");
    }
    let mut names = odd_names();
    names.sort();
    let listed: Vec<SessionId> =
        block_on(store.list(None, 99)).unwrap().into_iter().map(|info| info.id).collect();
    assert_eq!(listed, names);
    for name in names {
        assert!(block_on(store.delete(&name)).unwrap());
    }
    assert_eq!(block_on(store.list(None, 99)).unwrap(), []);
}

fn sessions_do_not_touch_each_other(store: &dyn HistoryStore) {
    fill(store, 3);
    let other = SessionId::new("other");
    block_on(store.append(&other, &Append::new(&AppendToken::new("fill"), Seq(0), &[user(0)]))).unwrap();
    commit(store, &record(0, 3, &[(0, 1)])).unwrap();
    let loaded = block_on(store.load(&other)).unwrap();
    assert_eq!((loaded.head, loaded.revision, loaded.live.len()), (Seq(1), Revision(0), 1));
    assert_eq!(keys(store), [2]);
}

fn a_list_has_pages_in_the_order_of_bytes(store: &dyn HistoryStore) {
    for name in ["b", "a", "", "c", "aa"] {
        block_on(
            store.append(&SessionId::new(name), &Append::new(&AppendToken::new("t"), Seq(0), &[user(0)])),
        )
        .unwrap();
    }
    let page = |after: Option<&str>, limit| -> Vec<String> {
        let after = after.map(SessionId::new);
        let listed = block_on(store.list(after.as_ref(), limit)).unwrap();
        listed.into_iter().map(|info| info.id.as_str().to_owned()).collect()
    };
    assert_eq!(page(None, 2), ["", "a"]);
    assert_eq!(page(Some("a"), 2), ["aa", "b"]);
    assert_eq!(page(Some("b"), 2), ["c"]);
    assert_eq!(page(Some("absent"), 1), ["b"]);
    assert_eq!(page(Some("c"), 2), [""; 0]);
    assert_eq!(page(None, 0), [""; 0]);
    let mut info = SessionInfo::new(SessionId::new("a"));
    info.head = Seq(1);
    info.live_messages = 1;
    info.live_tokens = 10;
    assert_eq!(block_on(store.list(Some(&SessionId::new("")), 1)).unwrap(), [info]);
}

fn a_log_has_pages(store: &dyn HistoryStore) {
    fill(store, 7);
    commit(store, &record(0, 7, &[(1, 4)])).unwrap();
    let page = |range: Range<u64>, limit| {
        let page = block_on(store.log(&session(), Seq(range.start)..Seq(range.end), limit)).unwrap();
        (page.messages.iter().map(|logged| logged.seq.0).collect::<Vec<_>>(), page.next.map(|seq| seq.0))
    };
    assert_eq!(page(0..7, 3), (vec![0, 1, 2], Some(3)));
    assert_eq!(page(3..7, 3), (vec![3, 4, 5], Some(6)));
    assert_eq!(page(6..7, 3), (vec![6], None));
    assert_eq!(page(2..5, 3), (vec![2, 3, 4], None));
    assert_eq!(page(5..u64::MAX, u32::MAX), (vec![5, 6], None));
    assert_eq!(page(7..9, 3), (vec![], None));
    assert_eq!(page(u64::MAX..u64::MAX, 3), (vec![], None));
    let (end, start) = (2, 5);
    assert_eq!(page(start..end, 3), (vec![], None));
    assert_eq!(page(2..5, 0), (vec![], Some(2)));
}

fn a_deleted_session_is_gone_with_everything(store: &dyn HistoryStore) {
    fill(store, 3);
    commit(store, &record(0, 3, &[(0, 1)])).unwrap();
    assert!(block_on(store.delete(&session())).unwrap());
    fails(block_on(store.load(&session())), NotFound);
    assert!(!block_on(store.delete(&session())).unwrap());
    // Neither the log, nor the token, nor the record is remembered.
    append(store, "fill", 0, &[user(0), user(1)]).unwrap();
    assert_eq!(keys(store), [0, 1]);
    assert!(log(store).iter().all(|logged| logged.hidden_by.is_none()));
    commit(store, &record(0, 2, &[(0, 0)])).unwrap();
}

fn an_empty_token_is_a_token(store: &dyn HistoryStore) {
    append(store, "", 0, &[user(0)]).unwrap();
    append(store, "", 0, &[user(0)]).unwrap();
    append(store, "\0", 1, &[user(1)]).unwrap();
    assert_eq!(keys(store), [0, 1]);
}

fn nothing_shows_text(store: &dyn HistoryStore) {
    fill(store, 1);
    assert!(!format!("{store:?}").contains("question"));
    let error = append(store, "fill", 0, &[user(0), user(1)]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("question"));
}

#[test]
fn a_store_is_opened_by_its_url() {
    let store = open_store("memory:").unwrap();
    fill(&*store, 1);
    for url in ["", "memory", "memory:x", "redis://user:secret@host", "sqlite:"] {
        let error = open_store(url).unwrap_err();
        assert_eq!(error.kind(), Invalid);
        assert!(!error.to_string().contains("secret"));
    }
    let message = open_store("redis:x").unwrap_err().to_string();
    assert!(message.contains("memory:") && message.contains("sqlite:PATH"), "{message}");
}

#[cfg(feature = "sqlite")]
#[test]
fn an_sqlite_file_is_opened_by_its_url() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("store.db").display());
    fill(&*open_store(&url).unwrap(), 2);
    assert_eq!(keys(&*open_store(&url).unwrap()), [0, 1]);
}
