//! Clearing, and retention by count and by age.

use epitome_core::attribution::Retention;
use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::NotFound;
use epitome_std::history::{
    Append, AppendToken, Entry, HistoryStore, HistoryStoreExt, Keep, Retained, Timestamp,
};
use epitome_std::message::{Attribution, Message};
use futures::executor::block_on;

use crate::support::{
    answer, append, calls, commit, entry, fails, fill, keys, load, log, record, session, summarized,
    unanswered, user,
};

on_every_store! {
    a_cleared_session_shows_nothing_and_goes_on,
    clearing_what_is_empty_changes_nothing,
    a_cleared_call_that_is_answered_stays_hidden,
    a_retention_by_count_leaves_the_newest_and_deletes_the_others,
    a_retention_never_splits_a_group,
    a_retention_spares_what_must_stay,
    a_retention_counts_a_summary_as_old_as_what_it_covers,
    a_retention_by_age_takes_what_was_appended_before,
    a_retention_that_has_nothing_to_do_changes_nothing,
    a_retention_of_no_session_is_not_found,
}

fn retain(store: &dyn HistoryStore, keep: Keep) -> Retained {
    block_on(store.retain(&session(), keep)).unwrap()
}

fn pruned(store: &dyn HistoryStore) -> Vec<u64> {
    log(store).iter().filter(|logged| logged.pruned_by.is_some()).map(|logged| logged.seq.0).collect()
}

fn a_cleared_session_shows_nothing_and_goes_on(store: &dyn HistoryStore) {
    fill(store, 4);
    commit(store, &summarized(record(0, 4, &[(0, 1)]), &[&[(0, 1)]])).unwrap();
    assert_eq!(block_on(store.clear(&session())).unwrap(), Revision(2));
    let after = load(store);
    assert_eq!((after.live.len(), after.head), (0, Seq(4)));
    append(store, "more", 4, &[user(4)]).unwrap();
    assert_eq!((keys(store), pruned(store)), (vec![4], vec![]));
    // No message is lost.
    assert_eq!(block_on(store.uncompact(&session(), Revision(2))).unwrap(), Revision(3));
    assert_eq!(keys(store), [0, 2, 3, 4]);
}

fn clearing_what_is_empty_changes_nothing(store: &dyn HistoryStore) {
    fill(store, 2);
    assert_eq!(block_on(store.clear(&session())).unwrap(), Revision(1));
    assert_eq!(block_on(store.clear(&session())).unwrap(), Revision(1));
    fails(block_on(store.clear(&epitome_std::history::SessionId::new("nobody"))), NotFound);
}

fn a_cleared_call_that_is_answered_stays_hidden(store: &dyn HistoryStore) {
    append(store, "a", 0, &[user(0), calls(1, &["a", "b"]), answer(1, "a")]).unwrap();
    block_on(store.clear(&session())).unwrap();
    assert_eq!(load(store).unanswered, [unanswered("b", 1, 1)]);
    append(store, "late", 3, &[answer(1, "b")]).unwrap();
    assert_eq!((keys(store), load(store).unanswered), (vec![], vec![]));
}

fn a_retention_by_count_leaves_the_newest_and_deletes_the_others(store: &dyn HistoryStore) {
    fill(store, 6);
    let done = retain(store, Keep::Messages(2));
    assert_eq!((done.hidden, done.pruned.messages, done.pruned.revision), (4, 4, Revision(2)));
    assert_eq!((keys(store), pruned(store)), (vec![4, 5], vec![0, 1, 2, 3]));
}

fn a_retention_never_splits_a_group(store: &dyn HistoryStore) {
    let entries = [user(0), calls(1, &["a", "b"]), answer(1, "a"), answer(1, "b"), user(4)];
    append(store, "a", 0, &entries).unwrap();
    // Two messages of the group would fit.
    assert_eq!(retain(store, Keep::Messages(3)).hidden, 4);
    assert_eq!(keys(store), [4]);
}

fn a_retention_spares_what_must_stay(store: &dyn HistoryStore) {
    let mut pinned = user(1).message;
    let attribution = Attribution::caller(pinned.attribution().authority).with_retention(Retention::Pinned);
    pinned = pinned.with_attribution(attribution);
    let said: Vec<Entry> = vec![
        entry(Message::system("Be brief."), 0, 0),
        entry(pinned, 1, 1),
        user(2),
        user(3),
        calls(4, &["a"]),
        entry(Message::assistant("Meanwhile."), 5, 1),
    ];
    append(store, "a", 0, &said).unwrap();
    assert_eq!(retain(store, Keep::Messages(0)).hidden, 2);
    // The instruction, the pin, the last request, the open call.
    assert_eq!(keys(store), [0, 1, 3, 4]);
}

fn a_retention_counts_a_summary_as_old_as_what_it_covers(store: &dyn HistoryStore) {
    fill(store, 6);
    commit(store, &summarized(record(0, 6, &[(0, 2)]), &[&[(0, 2)]])).unwrap();
    assert_eq!(retain(store, Keep::Messages(4)).hidden, 0);
    let done = retain(store, Keep::Messages(3));
    assert_eq!((done.hidden, done.pruned.summaries), (1, 1));
    assert_eq!(keys(store), [3, 4, 5]);
}

fn a_retention_by_age_takes_what_was_appended_before(store: &dyn HistoryStore) {
    for (head, time) in [(0, None), (1, Some(100)), (2, Some(200)), (3, None), (4, Some(300))] {
        let (token, entries) = (AppendToken::new(head.to_string()), [user(head)]);
        let append = Append::new(&token, Seq(head), &entries).at(time.map(Timestamp));
        block_on(store.append(&session(), &append)).unwrap();
    }
    assert_eq!(retain(store, Keep::Since(Timestamp(100))).hidden, 0);
    assert_eq!(retain(store, Keep::Since(Timestamp(101))).hidden, 2);
    assert_eq!(keys(store), [2, 3, 4]);
    // A message without a time is as old as the message before it.
    retain(store, Keep::Since(Timestamp(250)));
    assert_eq!(keys(store), [4]);
}

fn a_retention_that_has_nothing_to_do_changes_nothing(store: &dyn HistoryStore) {
    fill(store, 3);
    let before = load(store);
    let done = retain(store, Keep::Messages(3));
    assert_eq!((done.hidden, done.pruned.messages), (0, 0));
    assert_eq!(load(store), before);
}

fn a_retention_of_no_session_is_not_found(store: &dyn HistoryStore) {
    fails(block_on(store.retain(&session(), Keep::Messages(1))), NotFound);
}
