//! Scenarios of sessions: their ids, their lists, and the pages of their logs.

use core::ops::Range;

use epitome_core::{Revision, Seq};
use epitome_history::StoreErrorKind::NotFound;
use epitome_history::{Append, AppendToken, SessionId, SessionInfo};

use super::support::{Room, append, commit, fails, fill, keys, log, record, user};

pub(super) async fn what_is_not_there_is_not_found(room: &Room<'_>) {
    fails(room.load(&room.session()).await, NotFound);
    fails(room.log(&room.session(), Seq(0)..Seq(9), 9).await, NotFound);
    assert!(!room.delete(&room.session()).await.unwrap());
    assert_eq!(room.list(None, 9).await.unwrap(), []);
}

fn odd_names(room: &Room<'_>) -> Vec<SessionId> {
    let long = "x".repeat(100_000);
    let names =
        ["", "../../x", "a\0b", "a\0", "a", "A", "\u{e9}", "e\u{301}", "\u{1f642}", "'; --", "%", " ", &long];
    names.into_iter().map(|name| room.named(name)).collect()
}

pub(super) async fn any_text_names_a_session(room: &Room<'_>) {
    let token = AppendToken::new("t");
    for (index, name) in (0..).zip(odd_names(room)) {
        room.append(&name, &Append::new(&token, Seq(0), &[user(0)])).await.unwrap();
        let entries: Vec<_> = (1..=index).map(user).collect();
        if index > 0 {
            room.append(&name, &Append::new(&AppendToken::new("u"), Seq(1), &entries)).await.unwrap();
        }
    }
    for (index, name) in (0..).zip(odd_names(room)) {
        assert_eq!(room.load(&name).await.unwrap().head, Seq(index + 1), "{name:?}");
    }
    let mut names = odd_names(room);
    names.sort();
    let listed: Vec<SessionId> = room.list(None, 99).await.unwrap().into_iter().map(|info| info.id).collect();
    assert_eq!(listed, names);
    for name in names {
        assert!(room.delete(&name).await.unwrap());
    }
    assert_eq!(room.list(None, 99).await.unwrap(), []);
}

pub(super) async fn sessions_do_not_touch_each_other(room: &Room<'_>) {
    fill(room, 3).await;
    let other = room.named("other");
    room.append(&other, &Append::new(&AppendToken::new("fill"), Seq(0), &[user(0)])).await.unwrap();
    commit(room, &record(0, 3, &[(0, 1)])).await.unwrap();
    let loaded = room.load(&other).await.unwrap();
    assert_eq!((loaded.head, loaded.revision, loaded.live.len()), (Seq(1), Revision(0), 1));
    assert_eq!(keys(room).await, [2]);
}

pub(super) async fn a_list_has_pages_in_the_order_of_bytes(room: &Room<'_>) {
    for name in ["b", "a", "", "c", "aa"] {
        let (session, token) = (room.named(name), AppendToken::new("t"));
        room.append(&session, &Append::new(&token, Seq(0), &[user(0)])).await.unwrap();
    }
    let page = async |after: Option<&str>, limit| -> Vec<String> {
        let after = after.map(|name| room.named(name));
        let listed = room.list(after.as_ref(), limit).await.unwrap();
        listed.into_iter().map(|info| room.name_of(&info.id)).collect()
    };
    assert_eq!(page(None, 2).await, ["", "a"]);
    assert_eq!(page(Some("a"), 2).await, ["aa", "b"]);
    assert_eq!(page(Some("b"), 2).await, ["c"]);
    assert_eq!(page(Some("absent"), 1).await, ["b"]);
    assert_eq!(page(Some("c"), 2).await, [""; 0]);
    assert_eq!(page(None, 0).await, [""; 0]);
    let mut info = SessionInfo::new(room.named("a"));
    info.head = Seq(1);
    info.live_messages = 1;
    info.live_tokens = 10;
    assert_eq!(room.list(Some(&room.named("")), 1).await.unwrap(), [info]);
}

pub(super) async fn a_log_has_pages(room: &Room<'_>) {
    fill(room, 7).await;
    commit(room, &record(0, 7, &[(1, 4)])).await.unwrap();
    let page = async |range: Range<u64>, limit| {
        let page = room.log(&room.session(), Seq(range.start)..Seq(range.end), limit).await.unwrap();
        (page.messages.iter().map(|logged| logged.seq.0).collect::<Vec<_>>(), page.next.map(|seq| seq.0))
    };
    assert_eq!(page(0..7, 3).await, (vec![0, 1, 2], Some(3)));
    assert_eq!(page(3..7, 3).await, (vec![3, 4, 5], Some(6)));
    assert_eq!(page(6..7, 3).await, (vec![6], None));
    assert_eq!(page(2..5, 3).await, (vec![2, 3, 4], None));
    assert_eq!(page(5..u64::MAX, u32::MAX).await, (vec![5, 6], None));
    assert_eq!(page(7..9, 3).await, (vec![], None));
    assert_eq!(page(u64::MAX..u64::MAX, 3).await, (vec![], None));
    let (end, start) = (2, 5);
    assert_eq!(page(start..end, 3).await, (vec![], None));
    assert_eq!(page(2..5, 0).await, (vec![], Some(2)));
}

pub(super) async fn a_deleted_session_is_gone_with_everything(room: &Room<'_>) {
    fill(room, 3).await;
    commit(room, &record(0, 3, &[(0, 1)])).await.unwrap();
    assert!(room.delete(&room.session()).await.unwrap());
    fails(room.load(&room.session()).await, NotFound);
    assert!(!room.delete(&room.session()).await.unwrap());
    // The new session has neither the log, nor the tokens, nor the records of the deleted one.
    append(room, "fill", 0, &[user(0), user(1)]).await.unwrap();
    assert_eq!(keys(room).await, [0, 1]);
    assert!(log(room).await.iter().all(|logged| logged.hidden_by.is_none()));
    commit(room, &record(0, 2, &[(0, 0)])).await.unwrap();
}

pub(super) async fn an_empty_token_is_a_token(room: &Room<'_>) {
    append(room, "", 0, &[user(0)]).await.unwrap();
    append(room, "", 0, &[user(0)]).await.unwrap();
    append(room, "\0", 1, &[user(1)]).await.unwrap();
    assert_eq!(keys(room).await, [0, 1]);
}

pub(super) async fn nothing_shows_text(room: &Room<'_>) {
    fill(room, 1).await;
    assert!(!format!("{:?}", room.store()).contains("question"));
    let error = append(room, "fill", 0, &[user(0), user(1)]).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("question"));
}
