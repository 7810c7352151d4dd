//! Appending: tokens, heads, groups.

use epitome_core::message::Role;
use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{Conflict, Invalid};
use epitome_std::history::{Append, AppendToken, Appended, HistoryStore};
use epitome_std::message::{Message, Part, ToolResult};
use futures::FutureExt;
use futures::executor::block_on;

use crate::support::{
    answer, append, calls, commit, entry, everything, fails, fill, keys, late, load, log, orphan, record,
    session, user,
};

on_every_store! {
    an_append_creates_the_session_and_is_loaded_as_it_was_given,
    a_second_append_goes_on_at_the_head,
    an_append_with_the_same_token_is_done_once,
    a_token_is_looked_at_before_the_head_and_the_revision,
    a_token_for_other_messages_is_invalid,
    a_token_is_known_wherever_its_messages_are_placed_now,
    an_append_behind_or_ahead_of_the_head_is_a_conflict,
    an_append_of_nothing_is_invalid,
    an_anchor_after_its_message_is_invalid,
    an_anchor_that_begins_no_group_is_invalid,
    a_group_may_begin_in_an_earlier_append,
    an_answer_to_several_calls_is_invalid,
    an_orphan_is_in_the_log_and_never_visible,
    a_message_of_ten_megabytes_is_kept,
    a_message_that_could_not_be_read_again_is_invalid,
    a_dropped_append_is_found_out_by_its_token,
}

fn an_append_creates_the_session_and_is_loaded_as_it_was_given(store: &dyn HistoryStore) {
    let entries = [user(0), calls(1, &["a"]), answer(1, "a")];
    let appended = append(store, "t", 0, &entries).unwrap();
    assert_eq!(appended, Appended::new(Seq(0), Seq(3), Revision(0)));
    let loaded = load(store);
    assert_eq!((loaded.head, loaded.revision), (Seq(3), Revision(0)));
    assert!(loaded.live.iter().map(|live| &live.entry).eq(&entries));
    assert!(loaded.live.iter().map(|live| live.key.0).eq(0..3));
    assert!(log(store).iter().map(|logged| &logged.entry).eq(&entries));
}

fn a_second_append_goes_on_at_the_head(store: &dyn HistoryStore) {
    fill(store, 2);
    let appended = append(store, "t", 2, &[user(2), user(3)]).unwrap();
    assert_eq!(appended, Appended::new(Seq(2), Seq(4), Revision(0)));
    assert_eq!(keys(store), [0, 1, 2, 3]);
}

fn an_append_with_the_same_token_is_done_once(store: &dyn HistoryStore) {
    let first = append(store, "t", 0, &[user(0)]).unwrap();
    assert_eq!(append(store, "t", 0, &[user(0)]).unwrap(), first);
    assert_eq!(keys(store), [0]);
}

fn a_token_is_looked_at_before_the_head_and_the_revision(store: &dyn HistoryStore) {
    let first = append(store, "t", 0, &[user(0)]).unwrap();
    append(store, "u", 1, &[user(1), user(2)]).unwrap();
    commit(store, &record(0, 3, &[(0, 1)])).unwrap();
    for head in [0, 3, 77] {
        assert_eq!(append(store, "t", head, &[user(0)]).unwrap(), first);
    }
}

fn a_token_for_other_messages_is_invalid(store: &dyn HistoryStore) {
    append(store, "t", 0, &[user(0), user(1)]).unwrap();
    let before = everything(store);
    for entries in [vec![], vec![user(0)], vec![user(0), user(0)], vec![user(0), user(1), user(2)]] {
        fails(append(store, "t", 2, &entries), Invalid);
    }
    assert_eq!(everything(store), before);
}

/// A caller that lost the answer has loaded the session since, and places and counts its messages after themselves.
fn a_token_is_known_wherever_its_messages_are_placed_now(store: &dyn HistoryStore) {
    let appended = append(store, "t", 0, &[user(0), user(1)]).unwrap();
    let before = everything(store);
    let mut again = [user(0), user(1)];
    for (entry, seq) in again.iter_mut().zip(2..) {
        (entry.anchor, entry.count.counter) = (Seq(seq), "other".into());
    }
    assert_eq!(append(store, "t", 2, &again).unwrap(), appended);
    assert_eq!(everything(store), before);
}

fn an_append_behind_or_ahead_of_the_head_is_a_conflict(store: &dyn HistoryStore) {
    fails(append(store, "t", 1, &[user(1)]), Conflict);
    assert!(block_on(store.list(None, 10)).unwrap().is_empty());
    fill(store, 2);
    let before = everything(store);
    for head in [0, 1, 3, u64::MAX] {
        fails(append(store, "t", head, &[user(0)]), Conflict);
    }
    assert_eq!(everything(store), before);
    append(store, "t", 2, &[user(2)]).unwrap();
}

fn an_append_of_nothing_is_invalid(store: &dyn HistoryStore) {
    fails(append(store, "t", 0, &[]), Invalid);
    assert!(block_on(store.list(None, 10)).unwrap().is_empty());
}

fn an_anchor_after_its_message_is_invalid(store: &dyn HistoryStore) {
    fails(append(store, "t", 0, &[user(1), user(1)]), Invalid);
    fails(append(store, "t", 0, &[user(0), answer(2, "a"), user(2)]), Invalid);
    fails(append(store, "t", 0, &[user(u64::MAX)]), Invalid);
    assert!(block_on(store.list(None, 10)).unwrap().is_empty());
}

fn an_anchor_that_begins_no_group_is_invalid(store: &dyn HistoryStore) {
    fails(append(store, "t", 0, &[calls(0, &["a"]), answer(0, "a"), answer(1, "a")]), Invalid);
    append(store, "t", 0, &[calls(0, &["a"]), answer(0, "a")]).unwrap();
    let before = everything(store);
    fails(append(store, "u", 2, &[answer(1, "a")]), Invalid);
    assert_eq!(everything(store), before);
}

fn a_group_may_begin_in_an_earlier_append(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a", "b"]), answer(0, "a")]).unwrap();
    append(store, "u", 2, &[answer(0, "b"), user(3)]).unwrap();
    let anchors: Vec<u64> = load(store).live.iter().map(|live| live.entry.anchor.0).collect();
    assert_eq!(anchors, [0, 0, 0, 3]);
}

fn an_answer_to_several_calls_is_invalid(store: &dyn HistoryStore) {
    fill(store, 1);
    let result = |id: &str| Part::ToolResult(ToolResult::new(id, vec![Part::Text("done".into())]));
    let results = |role| Message::new(role, vec![result("a"), result("b")]);
    let before = everything(store);
    for role in [Role::Tool, Role::User] {
        fails(append(store, "t", 1, &[calls(1, &["a", "b"]), entry(results(role), 1, 1)]), Invalid);
    }
    assert_eq!(everything(store), before);
    // What hosted tools have returned stands in the model's own message, and answers nothing.
    append(store, "t", 1, &[entry(results(Role::Assistant), 1, 1)]).unwrap();
    assert_eq!(load(store).live[1].entry.call_id(), None);
}

fn an_orphan_is_in_the_log_and_never_visible(store: &dyn HistoryStore) {
    append(store, "t", 0, &[user(0), orphan(late(answer(1, "gone"))), user(2)]).unwrap();
    assert_eq!(keys(store), [0, 2]);
    assert_eq!(load(store).revision, Revision(0), "nothing visible has changed");
    commit(store, &record(0, 3, &[(0, 2)])).unwrap();
    let log = log(store);
    assert!(log[1].entry.orphan && log[1].hidden_by.is_none());
    assert_eq!(keys(store), [0; 0]);
    let info = &block_on(store.list(None, 1)).unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (0, 0));
}

fn a_message_of_ten_megabytes_is_kept(store: &dyn HistoryStore) {
    let large = entry(Message::user("\u{20ac}\n".repeat(2_500_000)), 0, 1);
    append(store, "t", 0, core::slice::from_ref(&large)).unwrap();
    append(store, "u", 1, &[user(1)]).unwrap();
    assert_eq!(load(store).live[0].entry, large);
    commit(store, &record(0, 2, &[(0, 0)])).unwrap();
    assert_eq!(log(store)[0].entry, large);
}

fn a_message_that_could_not_be_read_again_is_invalid(store: &dyn HistoryStore) {
    let nested =
        (0..50).fold(Part::Text("x".into()), |part, _| Part::ToolResult(ToolResult::new("c", vec![part])));
    let message = Message::new(Role::Tool, vec![nested]);
    fails(append(store, "t", 0, &[entry(message, 0, 1)]), Invalid);
    assert!(block_on(store.list(None, 10)).unwrap().is_empty());
}

fn a_dropped_append_is_found_out_by_its_token(store: &dyn HistoryStore) {
    let (session, token, entries) = (session(), AppendToken::new("t"), [user(0), user(1)]);
    let append = Append::new(&token, Seq(0), &entries);
    drop(store.append(&session, &append));
    let _ = store.append(&session, &append).now_or_never();
    let appended = block_on(store.append(&session, &append)).unwrap();
    assert_eq!(appended, Appended::new(Seq(0), Seq(2), Revision(0)));
    let _ = store.load(&session).now_or_never();
    assert_eq!(keys(store), [0, 1]);
}
