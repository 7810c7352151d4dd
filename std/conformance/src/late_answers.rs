//! Scenarios of late answers: their call is in an earlier turn, or is hidden.

use epitome_core::Revision;
use epitome_history::StoreErrorKind::Conflict;

use super::support::{
    Room, answer, append, calls, commit, fails, hidden, keys, late, load, orphan, record, summarized,
    unanswered, user,
};

pub(super) async fn a_late_answer_to_a_visible_group_is_visible_and_moves_the_revision(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a"]), user(1)]).await.unwrap();
    let appended = append(room, "u", 2, &[late(answer(0, "a")), user(3)]).await.unwrap();
    assert_eq!(appended.revision, Revision(1));
    assert_eq!(keys(room).await, [0, 1, 2, 3]);
    assert!(load(room).await.live[2].entry.late);
    assert_eq!(load(room).await.revision, Revision(1));
}

pub(super) async fn a_plan_made_before_a_late_answer_is_a_conflict(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a"]), user(1)]).await.unwrap();
    append(room, "u", 2, &[late(answer(0, "a"))]).await.unwrap();
    fails(commit(room, &record(0, 2, &[(0, 0)])).await, Conflict);
}

pub(super) async fn a_late_answer_to_a_hidden_group_is_hidden_by_the_same_revision(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a"]), user(1), user(2)]).await.unwrap();
    let mut hides = summarized(record(0, 3, &[(0, 0)]), &[&[(0, 0)]]);
    hides.unanswered = vec![unanswered("a", 0, 0)];
    commit(room, &hides).await.unwrap();
    commit(room, &record(1, 3, &[(1, 1)])).await.unwrap();
    let appended = append(room, "u", 3, &[late(answer(0, "a"))]).await.unwrap();
    assert_eq!(appended.revision, Revision(3));
    assert_eq!(hidden(room).await, [Some(1), Some(2), None, Some(1)]);
    assert_eq!(keys(room).await, [0, 2]);
    assert!(load(room).await.unanswered.is_empty());
    let info = &room.list(None, 1).await.unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (2, 13));
}

pub(super) async fn any_answer_to_a_hidden_group_is_hidden(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a"]), user(1)]).await.unwrap();
    commit(room, &record(0, 2, &[(0, 0)])).await.unwrap();
    let appended = append(room, "u", 2, &[answer(0, "a")]).await.unwrap();
    assert_eq!(appended.revision, Revision(1));
    assert_eq!(hidden(room).await, [Some(1), None, Some(1)]);
    append(room, "v", 3, &[orphan(answer(0, "a"))]).await.unwrap();
    assert_eq!(hidden(room).await, [Some(1), None, Some(1), None]);
    assert_eq!(keys(room).await, [1]);
}

pub(super) async fn a_late_answer_is_hidden_with_its_group(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a"]), user(1)]).await.unwrap();
    append(room, "u", 2, &[late(answer(0, "a")), user(3)]).await.unwrap();
    fails(commit(room, &record(1, 4, &[(0, 0)])).await, epitome_history::StoreErrorKind::Invalid);
    commit(room, &record(1, 4, &[(0, 0), (2, 2)])).await.unwrap();
    assert_eq!(keys(room).await, [1, 3]);
}

pub(super) async fn several_late_answers_move_the_revision_once(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a", "b"]), user(1)]).await.unwrap();
    append(room, "u", 2, &[late(answer(0, "a")), late(answer(0, "b"))]).await.unwrap();
    assert_eq!(load(room).await.revision, Revision(1));
}

pub(super) async fn unanswered_calls_of_all_records_are_carried_over(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a", "b"]), calls(1, &["c"]), user(2)]).await.unwrap();
    let mut first = record(0, 3, &[(0, 0)]);
    first.unanswered = vec![unanswered("a", 0, 0), unanswered("b", 0, 1)];
    commit(room, &first).await.unwrap();
    let mut second = summarized(record(1, 3, &[(0, 1)]), &[&[(1, 1)]]);
    second.unanswered = vec![unanswered("c", 1, 0)];
    commit(room, &second).await.unwrap();
    let all = [unanswered("a", 0, 0), unanswered("b", 0, 1), unanswered("c", 1, 0)];
    assert_eq!(load(room).await.unanswered, all);

    append(room, "u", 3, &[late(answer(0, "b"))]).await.unwrap();
    assert_eq!(load(room).await.unanswered, [all[0].clone(), all[2].clone()]);
    append(room, "v", 4, &[late(answer(0, "c"))]).await.unwrap();
    assert_eq!(load(room).await.unanswered.len(), 2, "another group's call is not answered");
    append(room, "w", 5, &[late(answer(1, "c")), late(answer(0, "a"))]).await.unwrap();
    assert!(load(room).await.unanswered.is_empty());
}

pub(super) async fn the_first_call_with_an_id_is_answered_first(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a\0", "a\0", "a"]), user(1)]).await.unwrap();
    let mut hides = record(0, 2, &[(0, 0)]);
    hides.unanswered = vec![unanswered("a\0", 0, 0), unanswered("a\0", 0, 1), unanswered("a", 0, 2)];
    commit(room, &hides).await.unwrap();
    append(room, "u", 2, &[late(answer(0, "a\0"))]).await.unwrap();
    assert_eq!(load(room).await.unanswered, hides.unanswered[1..]);
    append(room, "v", 3, &[late(answer(0, "a"))]).await.unwrap();
    assert_eq!(load(room).await.unanswered, hides.unanswered[1..2]);
}

pub(super) async fn a_late_append_is_repeatable(room: &Room<'_>) {
    append(room, "t", 0, &[calls(0, &["a", "a"]), user(1)]).await.unwrap();
    let mut hides = record(0, 2, &[(0, 0)]);
    hides.unanswered = vec![unanswered("a", 0, 0), unanswered("a", 0, 1)];
    commit(room, &hides).await.unwrap();
    let first = append(room, "u", 2, &[late(answer(0, "a"))]).await.unwrap();
    assert_eq!(append(room, "u", 2, &[late(answer(0, "a"))]).await.unwrap(), first);
    assert_eq!(load(room).await.unanswered.len(), 1);
    assert_eq!(load(room).await.revision, Revision(2));
}
