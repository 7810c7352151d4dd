//! Answers that come after their call has gone by, or has been hidden.

use epitome_core::Revision;
use epitome_std::history::HistoryStore;
use epitome_std::history::StoreErrorKind::Conflict;
use futures::executor::block_on;

use crate::support::{
    answer, append, calls, commit, fails, hidden, keys, late, load, orphan, record, summarized, unanswered,
    user,
};

on_every_store! {
    a_late_answer_to_a_visible_group_is_visible_and_moves_the_revision,
    a_plan_made_before_a_late_answer_is_a_conflict,
    a_late_answer_to_a_hidden_group_is_hidden_by_the_same_revision,
    any_answer_to_a_hidden_group_is_hidden,
    a_late_answer_is_hidden_with_its_group,
    several_late_answers_move_the_revision_once,
    unanswered_calls_of_all_records_are_carried_over,
    the_first_call_with_an_id_is_answered_first,
    a_late_append_is_repeatable,
}

fn a_late_answer_to_a_visible_group_is_visible_and_moves_the_revision(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a"]), user(1)]).unwrap();
    let appended = append(store, "u", 2, &[late(answer(0, "a")), user(3)]).unwrap();
    assert_eq!(appended.revision, Revision(1));
    assert_eq!(keys(store), [0, 1, 2, 3]);
    assert!(load(store).live[2].entry.late);
    assert_eq!(load(store).revision, Revision(1));
}

fn a_plan_made_before_a_late_answer_is_a_conflict(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a"]), user(1)]).unwrap();
    append(store, "u", 2, &[late(answer(0, "a"))]).unwrap();
    fails(commit(store, &record(0, 2, &[(0, 0)])), Conflict);
}

fn a_late_answer_to_a_hidden_group_is_hidden_by_the_same_revision(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a"]), user(1), user(2)]).unwrap();
    let mut hides = summarized(record(0, 3, &[(0, 0)]), &[&[(0, 0)]]);
    hides.unanswered = vec![unanswered("a", 0, 0)];
    commit(store, &hides).unwrap();
    commit(store, &record(1, 3, &[(1, 1)])).unwrap();
    let appended = append(store, "u", 3, &[late(answer(0, "a"))]).unwrap();
    assert_eq!(appended.revision, Revision(3));
    assert_eq!(hidden(store), [Some(1), Some(2), None, Some(1)]);
    assert_eq!(keys(store), [0, 2]);
    assert!(load(store).unanswered.is_empty());
    let info = &block_on(store.list(None, 1)).unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (2, 13));
}

fn any_answer_to_a_hidden_group_is_hidden(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a"]), user(1)]).unwrap();
    commit(store, &record(0, 2, &[(0, 0)])).unwrap();
    let appended = append(store, "u", 2, &[answer(0, "a")]).unwrap();
    assert_eq!(appended.revision, Revision(1));
    assert_eq!(hidden(store), [Some(1), None, Some(1)]);
    append(store, "v", 3, &[orphan(answer(0, "a"))]).unwrap();
    assert_eq!(hidden(store), [Some(1), None, Some(1), None]);
    assert_eq!(keys(store), [1]);
}

fn a_late_answer_is_hidden_with_its_group(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a"]), user(1)]).unwrap();
    append(store, "u", 2, &[late(answer(0, "a")), user(3)]).unwrap();
    fails(commit(store, &record(1, 4, &[(0, 0)])), epitome_std::history::StoreErrorKind::Invalid);
    commit(store, &record(1, 4, &[(0, 0), (2, 2)])).unwrap();
    assert_eq!(keys(store), [1, 3]);
}

fn several_late_answers_move_the_revision_once(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a", "b"]), user(1)]).unwrap();
    append(store, "u", 2, &[late(answer(0, "a")), late(answer(0, "b"))]).unwrap();
    assert_eq!(load(store).revision, Revision(1));
}

fn unanswered_calls_of_all_records_are_carried_over(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a", "b"]), calls(1, &["c"]), user(2)]).unwrap();
    let mut first = record(0, 3, &[(0, 0)]);
    first.unanswered = vec![unanswered("a", 0, 0), unanswered("b", 0, 1)];
    commit(store, &first).unwrap();
    let mut second = summarized(record(1, 3, &[(0, 1)]), &[&[(0, 1)]]);
    second.unanswered = vec![unanswered("c", 1, 0)];
    commit(store, &second).unwrap();
    let all = [unanswered("a", 0, 0), unanswered("b", 0, 1), unanswered("c", 1, 0)];
    assert_eq!(load(store).unanswered, all);

    append(store, "u", 3, &[late(answer(0, "b"))]).unwrap();
    assert_eq!(load(store).unanswered, [all[0].clone(), all[2].clone()]);
    append(store, "v", 4, &[late(answer(0, "c"))]).unwrap();
    assert_eq!(load(store).unanswered.len(), 2, "another group's call is not answered");
    append(store, "w", 5, &[late(answer(1, "c")), late(answer(0, "a"))]).unwrap();
    assert!(load(store).unanswered.is_empty());
}

fn the_first_call_with_an_id_is_answered_first(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a\0", "a\0", "a"]), user(1)]).unwrap();
    let mut hides = record(0, 2, &[(0, 0)]);
    hides.unanswered = vec![unanswered("a\0", 0, 0), unanswered("a\0", 0, 1), unanswered("a", 0, 2)];
    commit(store, &hides).unwrap();
    append(store, "u", 2, &[late(answer(0, "a\0"))]).unwrap();
    assert_eq!(load(store).unanswered, hides.unanswered[1..]);
    append(store, "v", 3, &[late(answer(0, "a"))]).unwrap();
    assert_eq!(load(store).unanswered, hides.unanswered[1..2]);
}

fn a_late_append_is_repeatable(store: &dyn HistoryStore) {
    append(store, "t", 0, &[calls(0, &["a", "a"]), user(1)]).unwrap();
    let mut hides = record(0, 2, &[(0, 0)]);
    hides.unanswered = vec![unanswered("a", 0, 0), unanswered("a", 0, 1)];
    commit(store, &hides).unwrap();
    let first = append(store, "u", 2, &[late(answer(0, "a"))]).unwrap();
    assert_eq!(append(store, "u", 2, &[late(answer(0, "a"))]).unwrap(), first);
    assert_eq!(load(store).unanswered.len(), 1);
    assert_eq!(load(store).revision, Revision(2));
}
