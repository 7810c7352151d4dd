//! Scenarios of the appends that a session lists: tokens and times.

use epitome_core::Seq;
use epitome_history::StoreErrorKind::NotFound;
use epitome_history::{Append, AppendToken, Timestamp};

use super::support::{Room, append, appends, fails, user};

async fn append_at(room: &Room<'_>, token: &str, head: u64, time: Option<u64>) {
    let (token, entries) = (AppendToken::new(token), [user(head)]);
    let append = Append::new(&token, Seq(head), &entries).at(time.map(Timestamp));
    room.append(&room.session(), &append).await.unwrap();
}

async fn times(room: &Room<'_>) -> Vec<Option<u64>> {
    appends(room).await.iter().map(|logged| logged.time.map(|time| time.0)).collect()
}

pub(super) async fn appends_are_listed_in_order_and_have_pages(room: &Room<'_>) {
    let answers = [
        append(room, "z", 0, &[user(0), user(1)]).await.unwrap(),
        append(room, "\u{0}b", 2, &[user(2)]).await.unwrap(),
        append(room, "", 3, &[user(3), user(4)]).await.unwrap(),
    ];
    let found = appends(room).await;
    assert_eq!(found.iter().map(|logged| logged.appended).collect::<Vec<_>>(), answers);
    let tokens = async |from, limit| -> Vec<String> {
        let page = room.appends(&room.session(), Seq(from), limit).await.unwrap();
        page.iter().map(|logged| logged.token.as_str().to_owned()).collect()
    };
    assert_eq!(tokens(0, 9).await, ["z", "\u{0}b", ""]);
    assert_eq!(
        (tokens(1, 1).await, tokens(2, 1).await, tokens(4, 9).await),
        (vec!["z".into()], vec!["\u{0}b".into()], vec!["".into()])
    );
    assert_eq!((tokens(5, 9).await, tokens(u64::MAX, 9).await, tokens(0, 0).await), (vec![], vec![], vec![]));
}

pub(super) async fn a_clock_that_was_set_back_is_not_believed(room: &Room<'_>) {
    for (head, time) in [(0, None), (1, Some(50)), (2, Some(20)), (3, None), (4, Some(60))] {
        append_at(room, &head.to_string(), head, time).await;
    }
    assert_eq!(times(room).await, [None, Some(50), Some(50), Some(50), Some(60)]);
}

pub(super) async fn a_repetition_keeps_the_first_time(room: &Room<'_>) {
    append_at(room, "a", 0, Some(5)).await;
    append_at(room, "a", 0, Some(9)).await;
    assert_eq!(times(room).await, [Some(5)]);
}

pub(super) async fn a_list_says_when_a_session_was_used(room: &Room<'_>) {
    let said = async || {
        let info = &room.list(None, 9).await.unwrap()[0];
        (info.created.map(|time| time.0), info.appended.map(|time| time.0))
    };
    append_at(room, "a", 0, None).await;
    assert_eq!(said().await, (None, None));
    append_at(room, "b", 1, Some(1_700_000_000_000)).await;
    append_at(room, "c", 2, Some(1_700_000_000_500)).await;
    append_at(room, "d", 3, Some(7)).await;
    assert_eq!(said().await, (Some(1_700_000_000_000), Some(1_700_000_000_500)));
}

pub(super) async fn appends_of_no_session_are_not_found(room: &Room<'_>) {
    fails(room.appends(&room.session(), Seq(0), 9).await, NotFound);
}
