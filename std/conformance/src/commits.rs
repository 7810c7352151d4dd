//! Scenarios of commits: the messages that a record may hide, the summaries that it shows, and conflicts.

use epitome_core::{Revision, Seq, Turn};
use epitome_history::Committed;
use epitome_history::StoreErrorKind::{Conflict, Invalid, NotFound};
use epitome_message::Attribution;
use futures::FutureExt;

use super::support::{
    Room, answer, append, calls, commit, count, entry, everything, fails, fill, hidden, keys, late, load,
    range, record, records, summarized, summary, unanswered, user,
};

pub(super) async fn a_commit_hides_and_deletes_nothing(room: &Room<'_>) {
    fill(room, 5).await;
    assert_eq!(commit(room, &record(0, 5, &[(1, 3)])).await.unwrap(), Revision(1));
    assert_eq!(keys(room).await, [0, 4]);
    assert_eq!(hidden(room).await, [None, Some(1), Some(1), Some(1), None]);
    let loaded = load(room).await;
    assert_eq!((loaded.head, loaded.revision), (Seq(5), Revision(1)));
    let info = &room.list(None, 1).await.unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (2, 20));
}

pub(super) async fn a_summary_stands_at_the_lowest_number_that_it_covers(room: &Room<'_>) {
    let mut second = user(1);
    second.turn = Turn(7);
    append(room, "t", 0, &[user(0), second, user(2), user(3)]).await.unwrap();
    let record = summarized(record(0, 4, &[(1, 2)]), &[&[(1, 2)]]);
    commit(room, &record).await.unwrap();
    assert_eq!(keys(room).await, [0, 1, 3]);
    let live = &load(room).await.live[1];
    assert_eq!(live.covers, [range(1, 2)]);
    assert!(load(room).await.live[0].covers.is_empty());
    assert_eq!(live.entry.message, record.summaries[0].message);
    assert_eq!(live.entry.count, count(3));
    assert_eq!((live.entry.anchor, live.entry.turn), (Seq(1), Turn(7)));
    assert!(!live.entry.late && !live.entry.orphan);
    let info = &room.list(None, 1).await.unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (3, 23));
}

pub(super) async fn a_summary_over_a_summary_hides_it(room: &Room<'_>) {
    fill(room, 6).await;
    commit(room, &summarized(record(0, 6, &[(0, 1)]), &[&[(0, 1)]])).await.unwrap();
    commit(room, &summarized(record(1, 6, &[(0, 3)]), &[&[(0, 3)]])).await.unwrap();
    assert_eq!(keys(room).await, [0, 4, 5]);
    assert_eq!(load(room).await.live[0].entry.message, summary(&[(0, 3)]).message);
    assert_eq!(hidden(room).await, [Some(1), Some(1), Some(2), Some(2), None, None]);
    // A record may also hide only a summary, and a later record may use its place.
    commit(room, &summarized(record(2, 6, &[(0, 3)]), &[&[(0, 3)]])).await.unwrap();
    commit(room, &record(3, 6, &[(0, 3)])).await.unwrap();
    assert_eq!(keys(room).await, [4, 5]);
}

pub(super) async fn a_summary_may_cover_less_than_is_hidden(room: &Room<'_>) {
    fill(room, 6).await;
    commit(room, &summarized(record(0, 6, &[(0, 2), (4, 4)]), &[&[(1, 2), (4, 4)]])).await.unwrap();
    assert_eq!(keys(room).await, [1, 3, 5]);
    fails(commit(room, &record(1, 6, &[(1, 3)])).await, Invalid);
    // The summary is hidden with all its coverage, also if another message is between the covered ones.
    commit(room, &record(1, 6, &[(1, 2), (4, 4)])).await.unwrap();
    assert_eq!(keys(room).await, [3, 5]);
    fails(commit(room, &record(2, 6, &[(1, 2), (5, 5)])).await, Invalid);
}

pub(super) async fn several_ranges_and_summaries_are_one_step(room: &Room<'_>) {
    fill(room, 9).await;
    let record = summarized(record(0, 9, &[(0, 2), (4, 4), (6, 7)]), &[&[(0, 2)], &[(6, 7)]]);
    assert_eq!(commit(room, &record).await.unwrap(), Revision(1));
    assert_eq!(keys(room).await, [0, 3, 5, 6, 8]);
}

pub(super) async fn a_commit_repeated_after_a_lost_answer_is_no_conflict(room: &Room<'_>) {
    fill(room, 5).await;
    let mut first = summarized(record(0, 5, &[(0, 2)]), &[&[(0, 2)]]);
    assert_eq!(commit(room, &first).await.unwrap(), Revision(1));
    let before = everything(room).await;
    assert_eq!(commit(room, &first).await.unwrap(), Revision(1));
    first.strategy = "notes do not matter".into();
    assert_eq!(commit(room, &first).await.unwrap(), Revision(1));
    append(room, "more", 5, &[user(5)]).await.unwrap();
    assert_eq!(commit(room, &first).await.unwrap(), Revision(1));
    commit(room, &record(1, 6, &[(3, 3)])).await.unwrap();
    assert_eq!(commit(room, &first).await.unwrap(), Revision(1), "known also when it is not the latest");
    let mut other = first.clone();
    other.hides = vec![range(0, 3)];
    fails(commit(room, &other).await, Conflict);
    assert_ne!(everything(room).await, before);
}

pub(super) async fn a_repetition_is_recognized_after_a_late_answer(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a"]), user(1), user(2)]).await.unwrap();
    let first = record(0, 3, &[(1, 1)]);
    assert_eq!(commit(room, &first).await.unwrap(), Revision(1));
    append(room, "late", 3, &[late(answer(0, "a"))]).await.unwrap();
    assert_eq!(load(room).await.revision, Revision(2));
    assert_eq!(commit(room, &first).await.unwrap(), Revision(1));
}

pub(super) async fn a_stale_commit_is_a_conflict(room: &Room<'_>) {
    fill(room, 5).await;
    commit(room, &record(0, 5, &[(0, 0)])).await.unwrap();
    let before = everything(room).await;
    fails(commit(room, &record(0, 5, &[(1, 1)])).await, Conflict);
    fails(commit(room, &record(2, 5, &[(1, 1)])).await, Conflict);
    assert_eq!(everything(room).await, before);
}

pub(super) async fn messages_appended_after_the_plan_do_not_matter(room: &Room<'_>) {
    fill(room, 3).await;
    append(room, "later", 3, &[user(3), user(4)]).await.unwrap();
    commit(room, &record(0, 3, &[(0, 1)])).await.unwrap();
    assert_eq!(keys(room).await, [2, 3, 4]);
    fails(commit(room, &record(1, 3, &[(2, 3)])).await, Invalid);
}

pub(super) async fn a_group_that_has_grown_since_is_a_conflict(room: &Room<'_>) {
    append(room, "t", 0, &[user(0), calls(1, &["a", "b"]), answer(1, "a")]).await.unwrap();
    append(room, "later", 3, &[answer(1, "b"), user(4)]).await.unwrap();
    let before = everything(room).await;
    fails(commit(room, &record(0, 3, &[(1, 2)])).await, Conflict);
    fails(commit(room, &summarized(record(0, 3, &[(1, 2)]), &[&[(0, 1)]])).await, Invalid);
    assert_eq!(everything(room).await, before);
    commit(room, &record(0, 5, &[(1, 3)])).await.unwrap();
}

pub(super) async fn a_record_that_splits_a_group_is_invalid(room: &Room<'_>) {
    let entries = [user(0), calls(1, &["a", "b"]), answer(1, "a"), answer(1, "b"), user(4)];
    append(room, "t", 0, &entries).await.unwrap();
    let before = everything(room).await;
    for hides in [&[(0, 1)][..], &[(1, 2)], &[(2, 3)], &[(3, 4)], &[(1, 1), (3, 3)]] {
        fails(commit(room, &record(0, 5, hides)).await, Invalid);
    }
    assert_eq!(everything(room).await, before);
    commit(room, &record(0, 5, &[(1, 3)])).await.unwrap();
}

pub(super) async fn a_record_that_splits_a_summary_is_invalid(room: &Room<'_>) {
    fill(room, 6).await;
    commit(room, &summarized(record(0, 6, &[(1, 3)]), &[&[(1, 3)]])).await.unwrap();
    let before = everything(room).await;
    for hides in [&[(0, 1)][..], &[(1, 1)], &[(3, 4)], &[(2, 2)], &[(1, 1), (3, 3)]] {
        fails(commit(room, &record(1, 6, hides)).await, Invalid);
    }
    assert_eq!(everything(room).await, before);
}

pub(super) async fn a_record_that_hides_nothing_visible_is_invalid(room: &Room<'_>) {
    fill(room, 6).await;
    fails(commit(room, &record(0, 6, &[])).await, Invalid);
    commit(room, &record(0, 6, &[(1, 3)])).await.unwrap();
    fails(commit(room, &record(1, 6, &[(1, 3)])).await, Invalid);
    fails(commit(room, &record(1, 6, &[(2, 2), (4, 5)])).await, Invalid);
    // Messages that are hidden already may lie between.
    commit(room, &record(1, 6, &[(0, 4)])).await.unwrap();
    assert_eq!(hidden(room).await, [Some(2), Some(1), Some(1), Some(1), Some(2), None]);
}

pub(super) async fn a_record_from_beyond_the_head_is_invalid(room: &Room<'_>) {
    fill(room, 3).await;
    fails(commit(room, &record(0, 4, &[(0, 0)])).await, Invalid);
    fails(commit(room, &record(0, 3, &[(0, 3)])).await, Invalid);
    fails(commit(room, &record(0, 3, &[(0, u64::MAX)])).await, Invalid);
    fails(commit(room, &record(0, u64::MAX, &[(0, 0)])).await, Invalid);
    assert_eq!(keys(room).await, [0, 1, 2]);
}

pub(super) async fn ranges_out_of_order_are_invalid(room: &Room<'_>) {
    fill(room, 9).await;
    for hides in [&[(2, 1)][..], &[(3, 4), (0, 1)], &[(0, 3), (2, 5)], &[(0, 3), (4, 5)]] {
        fails(commit(room, &record(0, 9, hides)).await, Invalid);
    }
    assert_eq!(load(room).await.revision, Revision(0));
}

pub(super) async fn a_summary_outside_what_is_hidden_is_invalid(room: &Room<'_>) {
    fill(room, 9).await;
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
        fails(commit(room, &record).await, Invalid);
    }
    commit(room, &of(&[&[(1, 3)], &[(5, 6)]])).await.unwrap();
}

pub(super) async fn an_unanswered_call_outside_what_is_hidden_is_invalid(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a"]), user(1), user(2)]).await.unwrap();
    let mut wrong = record(0, 3, &[(1, 1)]);
    wrong.unanswered = vec![unanswered("a", 0, 0)];
    fails(commit(room, &wrong).await, Invalid);
    wrong.hides = vec![range(0, 1)];
    commit(room, &wrong).await.unwrap();
}

pub(super) async fn records_are_kept_whole_and_have_pages(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a"]), user(1), user(2), user(3), user(4)]).await.unwrap();
    assert_eq!(records(room).await, []);
    let mut first = summarized(record(0, 5, &[(0, 2)]), &[&[(0, 0)], &[(1, 2)]]);
    first.unanswered = vec![unanswered("a", 0, 0)];
    (first.strategy, first.tokens_before, first.tokens_after) = ("window".into(), 50, 26);
    commit(room, &first).await.unwrap();
    // A late answer changes the revision without a record.
    append(room, "late", 5, &[late(answer(0, "a"))]).await.unwrap();
    let second = record(2, 5, &[(3, 3)]);
    commit(room, &second).await.unwrap();
    let [first, second] = [Committed::new(Revision(1), first), Committed::new(Revision(3), second)];
    let page = async |after: Option<u64>, limit| {
        room.records(&room.session(), after.map(Revision), limit).await.unwrap()
    };
    assert_eq!(page(None, 9).await, [first.clone(), second.clone()]);
    assert_eq!(page(None, 1).await, core::slice::from_ref(&first));
    assert_eq!(page(Some(0), 9).await, [first, second.clone()]);
    assert_eq!(page(Some(1), 9).await, core::slice::from_ref(&second));
    assert_eq!(page(Some(2), 9).await, [second]);
    assert_eq!(page(Some(3), 9).await, []);
    assert_eq!(page(Some(u64::MAX), 9).await, []);
    assert_eq!(page(None, 0).await, []);
}

pub(super) async fn a_message_that_claims_to_be_a_summary_covers_nothing(room: &Room<'_>) {
    fill(room, 2).await;
    let claims = summary(&[(0, 1)]).message;
    append(room, "t", 2, &[entry(claims, 2, 1)]).await.unwrap();
    assert!(load(room).await.live.iter().all(|live| live.covers.is_empty()));
    commit(room, &record(0, 3, &[(1, 1)])).await.unwrap();
    commit(room, &record(1, 3, &[(2, 2)])).await.unwrap();
    assert_eq!(keys(room).await, [0]);
}

pub(super) async fn a_commit_on_no_session_is_not_found(room: &Room<'_>) {
    fails(commit(room, &record(0, 0, &[(0, 0)])).await, NotFound);
}

pub(super) async fn a_dropped_commit_is_found_out_by_its_id(room: &Room<'_>) {
    fill(room, 3).await;
    let record = record(0, 3, &[(0, 1)]);
    let session = room.session();
    drop(room.commit(&session, &record));
    let _ = room.commit(&session, &record).now_or_never();
    assert_eq!(commit(room, &record).await.unwrap(), Revision(1));
    assert_eq!(keys(room).await, [2]);
}
