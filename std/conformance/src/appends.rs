//! Scenarios of appends: tokens, heads, groups.

use epitome_core::message::Role;
use epitome_core::{Revision, Seq};
use epitome_history::StoreErrorKind::{Conflict, Invalid};
use epitome_history::{Append, AppendToken, Appended};
use epitome_message::{Message, Part, ToolResult};
use futures::FutureExt;

use super::support::{
    Room, answer, append, calls, commit, entry, everything, fails, fill, keys, late, load, log, orphan,
    record, user,
};

pub(super) async fn an_append_creates_the_session_and_is_loaded_as_it_was_given(room: &Room<'_>) {
    let entries = [user(0), calls(1, &["a"]), answer(1, "a")];
    let appended = append(room, "t", 0, &entries).await.unwrap();
    assert_eq!(appended, Appended::new(Seq(0), Seq(3), Revision(0)));
    let loaded = load(room).await;
    assert_eq!((loaded.head, loaded.revision), (Seq(3), Revision(0)));
    assert!(loaded.live.iter().map(|live| &live.entry).eq(&entries));
    assert!(loaded.live.iter().map(|live| live.key.0).eq(0..3));
    assert!(log(room).await.iter().map(|logged| &logged.entry).eq(&entries));
}

pub(super) async fn a_second_append_goes_on_at_the_head(room: &Room<'_>) {
    fill(room, 2).await;
    let appended = append(room, "t", 2, &[user(2), user(3)]).await.unwrap();
    assert_eq!(appended, Appended::new(Seq(2), Seq(4), Revision(0)));
    assert_eq!(keys(room).await, [0, 1, 2, 3]);
}

pub(super) async fn an_append_with_the_same_token_is_done_once(room: &Room<'_>) {
    let first = append(room, "t", 0, &[user(0)]).await.unwrap();
    assert_eq!(append(room, "t", 0, &[user(0)]).await.unwrap(), first);
    assert_eq!(keys(room).await, [0]);
}

pub(super) async fn a_token_is_looked_at_before_the_head_and_the_revision(room: &Room<'_>) {
    let first = append(room, "t", 0, &[user(0)]).await.unwrap();
    append(room, "u", 1, &[user(1), user(2)]).await.unwrap();
    commit(room, &record(0, 3, &[(0, 1)])).await.unwrap();
    for head in [0, 3, 77] {
        assert_eq!(append(room, "t", head, &[user(0)]).await.unwrap(), first);
    }
}

pub(super) async fn a_token_for_other_messages_is_invalid(room: &Room<'_>) {
    append(room, "t", 0, &[user(0), user(1)]).await.unwrap();
    let before = everything(room).await;
    for entries in [vec![], vec![user(0)], vec![user(0), user(0)], vec![user(0), user(1), user(2)]] {
        fails(append(room, "t", 2, &entries).await, Invalid);
    }
    assert_eq!(everything(room).await, before);
}

/// A caller that lost the answer has loaded the session again. Its messages are then grouped and counted after their
/// own stored copies.
pub(super) async fn a_token_is_known_wherever_its_messages_are_placed_now(room: &Room<'_>) {
    let appended = append(room, "t", 0, &[user(0), user(1)]).await.unwrap();
    let before = everything(room).await;
    let mut again = [user(0), user(1)];
    for (entry, seq) in again.iter_mut().zip(2..) {
        (entry.anchor, entry.count.counter) = (Seq(seq), "other".into());
    }
    assert_eq!(append(room, "t", 2, &again).await.unwrap(), appended);
    assert_eq!(everything(room).await, before);
}

pub(super) async fn an_append_behind_or_ahead_of_the_head_is_a_conflict(room: &Room<'_>) {
    fails(append(room, "t", 1, &[user(1)]).await, Conflict);
    assert!(room.list(None, 10).await.unwrap().is_empty());
    fill(room, 2).await;
    let before = everything(room).await;
    for head in [0, 1, 3, u64::MAX] {
        fails(append(room, "t", head, &[user(0)]).await, Conflict);
    }
    assert_eq!(everything(room).await, before);
    append(room, "t", 2, &[user(2)]).await.unwrap();
}

pub(super) async fn an_append_of_nothing_is_invalid(room: &Room<'_>) {
    fails(append(room, "t", 0, &[]).await, Invalid);
    assert!(room.list(None, 10).await.unwrap().is_empty());
}

pub(super) async fn an_anchor_after_its_message_is_invalid(room: &Room<'_>) {
    fails(append(room, "t", 0, &[user(1), user(1)]).await, Invalid);
    fails(append(room, "t", 0, &[user(0), answer(2, "a"), user(2)]).await, Invalid);
    fails(append(room, "t", 0, &[user(u64::MAX)]).await, Invalid);
    assert!(room.list(None, 10).await.unwrap().is_empty());
}

pub(super) async fn an_anchor_that_begins_no_group_is_invalid(room: &Room<'_>) {
    fails(append(room, "t", 0, &[calls(0, &["a"]), answer(0, "a"), answer(1, "a")]).await, Invalid);
    append(room, "t", 0, &[calls(0, &["a"]), answer(0, "a")]).await.unwrap();
    let before = everything(room).await;
    fails(append(room, "u", 2, &[answer(1, "a")]).await, Invalid);
    assert_eq!(everything(room).await, before);
}

pub(super) async fn a_group_may_begin_in_an_earlier_append(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a", "b"]), answer(0, "a")]).await.unwrap();
    append(room, "u", 2, &[answer(0, "b"), user(3)]).await.unwrap();
    let anchors: Vec<u64> = load(room).await.live.iter().map(|live| live.entry.anchor.0).collect();
    assert_eq!(anchors, [0, 0, 0, 3]);
}

pub(super) async fn an_answer_to_several_calls_is_invalid(room: &Room<'_>) {
    fill(room, 1).await;
    let result = |id: &str| Part::ToolResult(ToolResult::new(id, vec![Part::Text("done".into())]));
    let results = |role| Message::new(role, vec![result("a"), result("b")]);
    let before = everything(room).await;
    for role in [Role::Tool, Role::User] {
        fails(append(room, "t", 1, &[calls(1, &["a", "b"]), entry(results(role), 1, 1)]).await, Invalid);
    }
    assert_eq!(everything(room).await, before);
    // A result of a hosted tool is in the model's own message, and answers no call.
    append(room, "t", 1, &[entry(results(Role::Assistant), 1, 1)]).await.unwrap();
    assert_eq!(load(room).await.live[1].entry.call_id(), None);
}

pub(super) async fn an_orphan_is_in_the_log_and_never_visible(room: &Room<'_>) {
    append(room, "t", 0, &[user(0), orphan(late(answer(1, "gone"))), user(2)]).await.unwrap();
    assert_eq!(keys(room).await, [0, 2]);
    assert_eq!(load(room).await.revision, Revision(0), "nothing visible has changed");
    commit(room, &record(0, 3, &[(0, 2)])).await.unwrap();
    let log = log(room).await;
    assert!(log[1].entry.orphan && log[1].hidden_by.is_none());
    assert_eq!(keys(room).await, [0; 0]);
    let info = &room.list(None, 1).await.unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (0, 0));
}

pub(super) async fn a_message_of_ten_megabytes_is_kept(room: &Room<'_>) {
    let large = entry(Message::user("\u{20ac}\n".repeat(2_500_000)), 0, 1);
    append(room, "t", 0, core::slice::from_ref(&large)).await.unwrap();
    append(room, "u", 1, &[user(1)]).await.unwrap();
    assert_eq!(load(room).await.live[0].entry, large);
    commit(room, &record(0, 2, &[(0, 0)])).await.unwrap();
    assert_eq!(log(room).await[0].entry, large);
}

pub(super) async fn a_message_that_could_not_be_read_again_is_invalid(room: &Room<'_>) {
    let nested =
        (0..50).fold(Part::Text("x".into()), |part, _| Part::ToolResult(ToolResult::new("c", vec![part])));
    let message = Message::new(Role::Tool, vec![nested]);
    fails(append(room, "t", 0, &[entry(message, 0, 1)]).await, Invalid);
    assert!(room.list(None, 10).await.unwrap().is_empty());
}

pub(super) async fn a_dropped_append_is_found_out_by_its_token(room: &Room<'_>) {
    let (session, token, entries) = (room.session(), AppendToken::new("t"), [user(0), user(1)]);
    let append = Append::new(&token, Seq(0), &entries);
    drop(room.append(&session, &append));
    let _ = room.append(&session, &append).now_or_never();
    let appended = room.append(&session, &append).await.unwrap();
    assert_eq!(appended, Appended::new(Seq(0), Seq(2), Revision(0)));
    let _ = room.load(&session).now_or_never();
    assert_eq!(keys(room).await, [0, 1]);
}
