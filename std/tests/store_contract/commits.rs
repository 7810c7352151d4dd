//! Committing: what a record may hide, what it shows, and who comes second.

use epitome_core::{Revision, Seq, Turn};
use epitome_std::history::StoreErrorKind::{Conflict, Invalid, NotFound};
use epitome_std::history::{Committed, HistoryStore};
use epitome_std::message::Attribution;
use futures::FutureExt;
use futures::executor::block_on;

use crate::support::{
    answer, append, calls, commit, count, everything, fails, fill, hidden, keys, load, range, record,
    records, session, summarized, summary, unanswered, user,
};

on_every_store! {
    a_commit_hides_and_deletes_nothing,
    a_summary_stands_at_the_lowest_number_that_it_covers,
    a_summary_over_a_summary_hides_it,
    a_summary_may_cover_less_than_is_hidden,
    several_ranges_and_summaries_are_one_step,
    a_commit_repeated_after_a_lost_answer_is_no_conflict,
    a_repetition_is_recognized_after_a_late_answer,
    a_stale_commit_is_a_conflict,
    messages_appended_after_the_plan_do_not_matter,
    a_group_that_has_grown_since_is_a_conflict,
    a_record_that_splits_a_group_is_invalid,
    a_record_that_splits_a_summary_is_invalid,
    a_record_that_hides_nothing_visible_is_invalid,
    a_record_from_beyond_the_head_is_invalid,
    ranges_out_of_order_are_invalid,
    a_summary_outside_what_is_hidden_is_invalid,
    an_unanswered_call_outside_what_is_hidden_is_invalid,
    records_are_kept_whole_and_have_pages,
    a_message_that_claims_to_be_a_summary_covers_nothing,
    a_commit_on_no_session_is_not_found,
    a_dropped_commit_is_found_out_by_its_id,
}

fn a_commit_hides_and_deletes_nothing(store: &dyn HistoryStore) {
    fill(store, 5);
    assert_eq!(commit(store, &record(0, 5, &[(1, 3)])).unwrap(), Revision(1));
    assert_eq!(keys(store), [0, 4]);
    assert_eq!(hidden(store), [None, Some(1), Some(1), Some(1), None]);
    let loaded = load(store);
    assert_eq!((loaded.head, loaded.revision), (Seq(5), Revision(1)));
    let info = &block_on(store.list(None, 1)).unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (2, 20));
}

fn a_summary_stands_at_the_lowest_number_that_it_covers(store: &dyn HistoryStore) {
    let mut second = user(1);
    second.turn = Turn(7);
    append(store, "t", 0, &[user(0), second, user(2), user(3)]).unwrap();
    let record = summarized(record(0, 4, &[(1, 2)]), &[&[(1, 2)]]);
    commit(store, &record).unwrap();
    assert_eq!(keys(store), [0, 1, 3]);
    let live = &load(store).live[1];
    assert_eq!(live.covers, [range(1, 2)]);
    assert!(load(store).live[0].covers.is_empty());
    assert_eq!(live.entry.message, record.summaries[0].message);
    assert_eq!(live.entry.count, count(3));
    assert_eq!((live.entry.anchor, live.entry.turn), (Seq(1), Turn(7)));
    assert!(!live.entry.late && !live.entry.orphan);
    let info = &block_on(store.list(None, 1)).unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (3, 23));
}

fn a_summary_over_a_summary_hides_it(store: &dyn HistoryStore) {
    fill(store, 6);
    commit(store, &summarized(record(0, 6, &[(0, 1)]), &[&[(0, 1)]])).unwrap();
    commit(store, &summarized(record(1, 6, &[(0, 3)]), &[&[(0, 3)]])).unwrap();
    assert_eq!(keys(store), [0, 4, 5]);
    assert_eq!(load(store).live[0].entry.message, summary(&[(0, 3)]).message);
    assert_eq!(hidden(store), [Some(1), Some(1), Some(2), Some(2), None, None]);
    // A summary alone may be dropped too, and its place taken by another.
    commit(store, &summarized(record(2, 6, &[(0, 3)]), &[&[(0, 3)]])).unwrap();
    commit(store, &record(3, 6, &[(0, 3)])).unwrap();
    assert_eq!(keys(store), [4, 5]);
}

fn a_summary_may_cover_less_than_is_hidden(store: &dyn HistoryStore) {
    fill(store, 6);
    commit(store, &summarized(record(0, 6, &[(0, 2), (4, 4)]), &[&[(1, 2), (4, 4)]])).unwrap();
    assert_eq!(keys(store), [1, 3, 5]);
    fails(commit(store, &record(1, 6, &[(1, 3)])), Invalid);
    commit(store, &record(1, 6, &[(1, 4)])).unwrap();
    assert_eq!(keys(store), [5]);
}

fn several_ranges_and_summaries_are_one_step(store: &dyn HistoryStore) {
    fill(store, 9);
    let record = summarized(record(0, 9, &[(0, 2), (4, 4), (6, 7)]), &[&[(0, 2)], &[(6, 7)]]);
    assert_eq!(commit(store, &record).unwrap(), Revision(1));
    assert_eq!(keys(store), [0, 3, 5, 6, 8]);
}

fn a_commit_repeated_after_a_lost_answer_is_no_conflict(store: &dyn HistoryStore) {
    fill(store, 5);
    let mut first = summarized(record(0, 5, &[(0, 2)]), &[&[(0, 2)]]);
    assert_eq!(commit(store, &first).unwrap(), Revision(1));
    let before = everything(store);
    assert_eq!(commit(store, &first).unwrap(), Revision(1));
    first.strategy = "notes do not matter".into();
    assert_eq!(commit(store, &first).unwrap(), Revision(1));
    append(store, "more", 5, &[user(5)]).unwrap();
    assert_eq!(commit(store, &first).unwrap(), Revision(1));
    commit(store, &record(1, 6, &[(3, 3)])).unwrap();
    assert_eq!(commit(store, &first).unwrap(), Revision(1), "known also when it is not the latest");
    let mut other = first.clone();
    other.hides = vec![range(0, 3)];
    fails(commit(store, &other), Conflict);
    assert_ne!(everything(store), before);
}

fn a_repetition_is_recognized_after_a_late_answer(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a"]), user(1), user(2)]).unwrap();
    let first = record(0, 3, &[(1, 1)]);
    assert_eq!(commit(store, &first).unwrap(), Revision(1));
    append(store, "late", 3, &[crate::support::late(answer(0, "a"))]).unwrap();
    assert_eq!(load(store).revision, Revision(2));
    assert_eq!(commit(store, &first).unwrap(), Revision(1));
}

fn a_stale_commit_is_a_conflict(store: &dyn HistoryStore) {
    fill(store, 5);
    commit(store, &record(0, 5, &[(0, 0)])).unwrap();
    let before = everything(store);
    fails(commit(store, &record(0, 5, &[(1, 1)])), Conflict);
    fails(commit(store, &record(2, 5, &[(1, 1)])), Conflict);
    assert_eq!(everything(store), before);
}

fn messages_appended_after_the_plan_do_not_matter(store: &dyn HistoryStore) {
    fill(store, 3);
    append(store, "later", 3, &[user(3), user(4)]).unwrap();
    commit(store, &record(0, 3, &[(0, 1)])).unwrap();
    assert_eq!(keys(store), [2, 3, 4]);
    fails(commit(store, &record(1, 3, &[(2, 3)])), Invalid);
}

fn a_group_that_has_grown_since_is_a_conflict(store: &dyn HistoryStore) {
    append(store, "t", 0, &[user(0), calls(1, &["a", "b"]), answer(1, "a")]).unwrap();
    append(store, "later", 3, &[answer(1, "b"), user(4)]).unwrap();
    let before = everything(store);
    fails(commit(store, &record(0, 3, &[(1, 2)])), Conflict);
    fails(commit(store, &summarized(record(0, 3, &[(1, 2)]), &[&[(0, 1)]])), Invalid);
    assert_eq!(everything(store), before);
    commit(store, &record(0, 5, &[(1, 3)])).unwrap();
}

fn a_record_that_splits_a_group_is_invalid(store: &dyn HistoryStore) {
    let entries = [user(0), calls(1, &["a", "b"]), answer(1, "a"), answer(1, "b"), user(4)];
    append(store, "t", 0, &entries).unwrap();
    let before = everything(store);
    for hides in [&[(0, 1)][..], &[(1, 2)], &[(2, 3)], &[(3, 4)], &[(1, 1), (3, 3)]] {
        fails(commit(store, &record(0, 5, hides)), Invalid);
    }
    assert_eq!(everything(store), before);
    commit(store, &record(0, 5, &[(1, 3)])).unwrap();
}

fn a_record_that_splits_a_summary_is_invalid(store: &dyn HistoryStore) {
    fill(store, 6);
    commit(store, &summarized(record(0, 6, &[(1, 3)]), &[&[(1, 3)]])).unwrap();
    let before = everything(store);
    for hides in [&[(0, 1)][..], &[(1, 1)], &[(3, 4)], &[(2, 2)], &[(1, 1), (3, 3)]] {
        fails(commit(store, &record(1, 6, hides)), Invalid);
    }
    assert_eq!(everything(store), before);
}

fn a_record_that_hides_nothing_visible_is_invalid(store: &dyn HistoryStore) {
    fill(store, 6);
    fails(commit(store, &record(0, 6, &[])), Invalid);
    commit(store, &record(0, 6, &[(1, 3)])).unwrap();
    fails(commit(store, &record(1, 6, &[(1, 3)])), Invalid);
    fails(commit(store, &record(1, 6, &[(2, 2), (4, 5)])), Invalid);
    // What is hidden already may lie between.
    commit(store, &record(1, 6, &[(0, 4)])).unwrap();
    assert_eq!(hidden(store), [Some(2), Some(1), Some(1), Some(1), Some(2), None]);
}

fn a_record_from_beyond_the_head_is_invalid(store: &dyn HistoryStore) {
    fill(store, 3);
    fails(commit(store, &record(0, 4, &[(0, 0)])), Invalid);
    fails(commit(store, &record(0, 3, &[(0, 3)])), Invalid);
    fails(commit(store, &record(0, 3, &[(0, u64::MAX)])), Invalid);
    fails(commit(store, &record(0, u64::MAX, &[(0, 0)])), Invalid);
    assert_eq!(keys(store), [0, 1, 2]);
}

fn ranges_out_of_order_are_invalid(store: &dyn HistoryStore) {
    fill(store, 9);
    for hides in [&[(2, 1)][..], &[(3, 4), (0, 1)], &[(0, 3), (2, 5)], &[(0, 3), (4, 5)]] {
        fails(commit(store, &record(0, 9, hides)), Invalid);
    }
    assert_eq!(load(store).revision, Revision(0));
}

fn a_summary_outside_what_is_hidden_is_invalid(store: &dyn HistoryStore) {
    fill(store, 9);
    let of = |summaries: &[&[(u64, u64)]]| summarized(record(0, 9, &[(1, 3), (5, 6)]), summaries);
    let mut records = vec![
        of(&[&[(0, 3)]]),
        of(&[&[(1, 4)]]),
        of(&[&[(1, 6)]]),
        of(&[&[(3, 1)]]),
        of(&[&[(5, 6)], &[(1, 3)]]),
        of(&[&[(1, 3)], &[(1, 3)]]),
        of(&[&[(1, 2)], &[(2, 3)]]),
        of(&[&[(5, 6), (1, 3)]]),
    ];
    let mut elsewhere = of(&[&[(1, 3)]]);
    elsewhere.summaries[0].key = Seq(2);
    let mut covers_nothing = of(&[&[(1, 3)]]);
    let message = covers_nothing.summaries[0].message.clone();
    let authority = message.attribution().authority;
    covers_nothing.summaries[0].message = message.with_attribution(Attribution::caller(authority));
    records.extend([elsewhere, covers_nothing]);
    for record in records {
        fails(commit(store, &record), Invalid);
    }
    commit(store, &of(&[&[(1, 3)], &[(5, 6)]])).unwrap();
}

fn an_unanswered_call_outside_what_is_hidden_is_invalid(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a"]), user(1), user(2)]).unwrap();
    let mut wrong = record(0, 3, &[(1, 1)]);
    wrong.unanswered = vec![unanswered("a", 0, 0)];
    fails(commit(store, &wrong), Invalid);
    wrong.hides = vec![range(0, 1)];
    commit(store, &wrong).unwrap();
}

fn records_are_kept_whole_and_have_pages(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a"]), user(1), user(2), user(3), user(4)]).unwrap();
    assert_eq!(records(store), []);
    let mut first = summarized(record(0, 5, &[(0, 2)]), &[&[(0, 0)], &[(1, 2)]]);
    first.unanswered = vec![unanswered("a", 0, 0)];
    (first.strategy, first.tokens_before, first.tokens_after) = ("window".into(), 50, 26);
    commit(store, &first).unwrap();
    // A late answer moves the revision and is no record.
    append(store, "late", 5, &[crate::support::late(answer(0, "a"))]).unwrap();
    let second = record(2, 5, &[(3, 3)]);
    commit(store, &second).unwrap();
    let [first, second] = [Committed::new(Revision(1), first), Committed::new(Revision(3), second)];
    let page =
        |after: Option<u64>, limit| block_on(store.records(&session(), after.map(Revision), limit)).unwrap();
    assert_eq!(page(None, 9), [first.clone(), second.clone()]);
    assert_eq!(page(None, 1), core::slice::from_ref(&first));
    assert_eq!(page(Some(0), 9), [first, second.clone()]);
    assert_eq!(page(Some(1), 9), core::slice::from_ref(&second));
    assert_eq!(page(Some(2), 9), [second]);
    assert_eq!(page(Some(3), 9), []);
    assert_eq!(page(Some(u64::MAX), 9), []);
    assert_eq!(page(None, 0), []);
}

fn a_message_that_claims_to_be_a_summary_covers_nothing(store: &dyn HistoryStore) {
    fill(store, 2);
    let claims = summary(&[(0, 1)]).message;
    append(store, "t", 2, &[crate::support::entry(claims, 2, 1)]).unwrap();
    assert!(load(store).live.iter().all(|live| live.covers.is_empty()));
    commit(store, &record(0, 3, &[(1, 1)])).unwrap();
    commit(store, &record(1, 3, &[(2, 2)])).unwrap();
    assert_eq!(keys(store), [0]);
}

fn a_commit_on_no_session_is_not_found(store: &dyn HistoryStore) {
    fails(commit(store, &record(0, 0, &[(0, 0)])), NotFound);
}

fn a_dropped_commit_is_found_out_by_its_id(store: &dyn HistoryStore) {
    fill(store, 3);
    let record = record(0, 3, &[(0, 1)]);
    let session = session();
    drop(store.commit(&session, &record));
    let _ = store.commit(&session, &record).now_or_never();
    assert_eq!(commit(store, &record).unwrap(), Revision(1));
    assert_eq!(keys(store), [2]);
}
