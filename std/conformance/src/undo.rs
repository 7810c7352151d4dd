//! Scenarios of uncompacts.

use epitome_core::{Revision, Seq};
use epitome_history::StoreErrorKind::{Conflict, Invalid, NotFound};

use super::support::{
    Room, answer, append, calls, commit, edit, edited, everything, fails, fill, hidden, keys, late, load,
    log, record, records, summarized, unanswered, uncompact, user,
};

async fn listed(room: &Room<'_>) -> (u64, u64) {
    let info = &room.list(None, 1).await.unwrap()[0];
    (info.live_messages, info.live_tokens)
}

pub(super) async fn what_a_record_hid_is_visible_again(room: &Room<'_>) {
    fill(room, 5).await;
    let before = load(room).await.live;
    commit(room, &summarized(record(0, 5, &[(1, 2), (4, 4)]), &[&[(1, 2)]])).await.unwrap();
    assert_eq!(uncompact(room, 1).await.unwrap(), Revision(2));
    let after = load(room).await;
    assert_eq!((after.live, after.head, after.revision), (before, Seq(5), Revision(2)));
    assert_eq!(hidden(room).await, [None; 5]);
    assert_eq!(listed(room).await, (5, 50));
    append(room, "next", 5, &[user(5)]).await.unwrap();
    assert_eq!(keys(room).await, [0, 1, 2, 3, 4, 5]);
}

pub(super) async fn the_summary_that_a_record_replaced_is_back(room: &Room<'_>) {
    fill(room, 6).await;
    commit(room, &summarized(record(0, 6, &[(1, 2)]), &[&[(1, 2)]])).await.unwrap();
    let before = load(room).await.live;
    commit(room, &summarized(record(1, 6, &[(1, 4)]), &[&[(1, 4)]])).await.unwrap();
    uncompact(room, 2).await.unwrap();
    assert_eq!(load(room).await.live, before);
    assert_eq!(hidden(room).await, [None, Some(1), Some(1), None, None, None]);
    assert_eq!(listed(room).await, (5, 43));
    uncompact(room, 1).await.unwrap();
    assert_eq!(keys(room).await, [0, 1, 2, 3, 4, 5]);
    assert!(load(room).await.live.iter().all(|live| live.covers.is_empty()));
}

pub(super) async fn what_stood_in_a_message_before_is_back(room: &Room<'_>) {
    append(room, "a", 0, &[calls(0, &["a", "b"]), answer(0, "a"), user(2)]).await.unwrap();
    let whole = load(room).await.live;
    commit(room, &edited(record(0, 3, &[]), &[edit(0, &[(0, Some("-"))], 8), edit(1, &[(0, Some("-"))], 4)]))
        .await
        .unwrap();
    let once = load(room).await.live;
    commit(room, &edited(record(1, 3, &[]), &[edit(0, &[(0, Some(".")), (1, Some("+"))], 6)])).await.unwrap();
    uncompact(room, 2).await.unwrap();
    assert_eq!(load(room).await.live, once);
    assert_eq!(listed(room).await, (3, 22));
    assert_eq!(log(room).await[0].edited_by, Some(Revision(1)));
    uncompact(room, 1).await.unwrap();
    assert_eq!(load(room).await.live, whole);
    assert_eq!(listed(room).await, (3, 30));
    assert_eq!(log(room).await[0].edited_by, None);
}

pub(super) async fn a_message_comes_back_as_short_as_it_was(room: &Room<'_>) {
    fill(room, 3).await;
    commit(room, &edited(record(0, 3, &[]), &[edit(1, &[(0, Some("[cut]"))], 2)])).await.unwrap();
    let short = load(room).await.live;
    commit(room, &record(1, 3, &[(1, 1)])).await.unwrap();
    uncompact(room, 2).await.unwrap();
    assert_eq!(load(room).await.live, short);
    assert_eq!(listed(room).await, (3, 22));
}

pub(super) async fn an_answer_that_came_late_comes_back_with_its_group(room: &Room<'_>) {
    append(room, "a", 0, &[user(0), calls(1, &["a"]), user(2)]).await.unwrap();
    let mut gone = record(0, 3, &[(1, 1)]);
    gone.unanswered = vec![unanswered("a", 1, 0)];
    commit(room, &gone).await.unwrap();
    append(room, "late", 3, &[late(answer(1, "a"))]).await.unwrap();
    assert_eq!((keys(room).await, hidden(room).await), (vec![0, 2], vec![None, Some(1), None, Some(1)]));
    assert_eq!(uncompact(room, 1).await.unwrap(), Revision(3));
    assert_eq!((keys(room).await, hidden(room).await), (vec![0, 1, 2, 3], vec![None; 4]));
    assert_eq!(load(room).await.unanswered, []);
}

pub(super) async fn calls_that_come_back_are_hidden_no_more(room: &Room<'_>) {
    append(room, "a", 0, &[calls(0, &["a"]), calls(1, &["b"]), user(2)]).await.unwrap();
    let mut first = record(0, 3, &[(0, 0)]);
    first.unanswered = vec![unanswered("a", 0, 0)];
    commit(room, &first).await.unwrap();
    let mut second = record(1, 3, &[(1, 1)]);
    second.unanswered = vec![unanswered("b", 1, 0)];
    commit(room, &second).await.unwrap();
    assert_eq!(load(room).await.unanswered, [unanswered("a", 0, 0), unanswered("b", 1, 0)]);
    uncompact(room, 2).await.unwrap();
    assert_eq!(load(room).await.unanswered, [unanswered("a", 0, 0)]);
    append(room, "late", 3, &[late(answer(1, "b"))]).await.unwrap();
    assert_eq!(keys(room).await, [1, 2, 3]);
}

pub(super) async fn records_are_undone_latest_first(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &record(0, 4, &[(0, 0)])).await.unwrap();
    commit(room, &record(1, 4, &[(2, 2)])).await.unwrap();
    let before = everything(room).await;
    fails(uncompact(room, 1).await, Conflict);
    assert_eq!(everything(room).await, before);
    assert_eq!(uncompact(room, 2).await.unwrap(), Revision(3));
    assert_eq!(uncompact(room, 1).await.unwrap(), Revision(4));
    assert_eq!(keys(room).await, [0, 1, 2, 3]);
}

pub(super) async fn an_undoing_repeated_after_a_lost_answer_is_no_conflict(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &record(0, 4, &[(0, 0)])).await.unwrap();
    uncompact(room, 1).await.unwrap();
    commit(room, &record(2, 4, &[(1, 1)])).await.unwrap();
    let before = everything(room).await;
    assert_eq!(uncompact(room, 1).await.unwrap(), Revision(2));
    assert_eq!(everything(room).await, before);
}

pub(super) async fn what_made_no_record_cannot_be_undone(room: &Room<'_>) {
    append(room, "a", 0, &[calls(0, &["a"]), user(1)]).await.unwrap();
    append(room, "late", 2, &[late(answer(0, "a"))]).await.unwrap();
    let before = everything(room).await;
    for revision in [0, 1, 2, u64::MAX] {
        fails(uncompact(room, revision).await, Invalid);
    }
    assert_eq!(everything(room).await, before);
    commit(room, &record(1, 3, &[(1, 1)])).await.unwrap();
    uncompact(room, 2).await.unwrap();
    fails(uncompact(room, 3).await, Invalid);
}

pub(super) async fn an_undone_record_is_remembered_as_undone(room: &Room<'_>) {
    fill(room, 4).await;
    let first = summarized(record(0, 4, &[(0, 1)]), &[&[(0, 1)]]);
    commit(room, &first).await.unwrap();
    uncompact(room, 1).await.unwrap();
    commit(room, &record(2, 4, &[(3, 3)])).await.unwrap();
    let found = records(room).await;
    let undone: Vec<_> = found.iter().map(|it| (it.revision.0, it.undone_by.map(|by| by.0))).collect();
    assert_eq!(undone, [(1, Some(2)), (3, None)]);
    assert_eq!(found[0].record, first);
    // A repeated commit gets the original answer.
    assert_eq!(commit(room, &first).await.unwrap(), Revision(1));
}

pub(super) async fn what_was_undone_can_be_committed_again(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &summarized(record(0, 4, &[(0, 1)]), &[&[(0, 1)]])).await.unwrap();
    let short = load(room).await.live;
    uncompact(room, 1).await.unwrap();
    commit(room, &summarized(record(2, 4, &[(0, 1)]), &[&[(0, 1)]])).await.unwrap();
    assert_eq!(load(room).await.live, short);
    uncompact(room, 3).await.unwrap();
    assert_eq!(keys(room).await, [0, 1, 2, 3]);
}

pub(super) async fn a_plan_from_before_an_undoing_is_a_conflict(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &record(0, 4, &[(0, 0)])).await.unwrap();
    uncompact(room, 1).await.unwrap();
    fails(commit(room, &record(1, 4, &[(1, 1)])).await, Conflict);
}

pub(super) async fn an_undoing_on_no_session_is_not_found(room: &Room<'_>) {
    fails(uncompact(room, 1).await, NotFound);
}
