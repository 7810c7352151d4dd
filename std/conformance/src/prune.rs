//! Scenarios of prunes.

use epitome_core::{Revision, Seq};
use epitome_history::Logged;
use epitome_history::StoreErrorKind::{Conflict, Invalid, NotFound, Pruned};
use epitome_message::{Message, Part};

use super::support::{
    Room, answer, append, calls, commit, edit, edited, everything, fails, fill, hidden, keys, late, load,
    log, orphan, prune, prunes, range, record, records, summarized, unanswered, uncompact, user,
};

fn pruned(logged: &[Logged]) -> Vec<Option<u64>> {
    logged.iter().map(|logged| logged.pruned_by.map(|by| by.0)).collect()
}

/// Whether only the place of the message is left.
fn is_bare(message: &Message) -> bool {
    message.is_pruned() && message.parts().is_empty()
}

pub(super) async fn what_is_hidden_is_deleted_and_nothing_else(room: &Room<'_>) {
    fill(room, 5).await;
    commit(room, &record(0, 5, &[(1, 2)])).await.unwrap();
    let (shown, logged) = (load(room).await, log(room).await);
    let done = prune(room, 1).await.unwrap();
    assert_eq!((done.revision, done.through), (Revision(2), Revision(1)));
    assert_eq!((done.messages, done.summaries), (2, 0));
    let after = load(room).await;
    assert_eq!((after.live, after.head, after.revision), (shown.live, Seq(5), Revision(2)));
    assert_eq!(pruned(&log(room).await), [None, Some(2), Some(2), None, None]);
    for (was, is) in logged.iter().zip(log(room).await) {
        let (gone, same) = (is_bare(&is.entry.message), is.entry.message == was.entry.message);
        assert_eq!((gone, same), (is.pruned_by.is_some(), is.pruned_by.is_none()));
        assert_eq!(
            (is.entry.anchor, is.entry.turn, is.hidden_by),
            (was.entry.anchor, was.entry.turn, was.hidden_by)
        );
        assert_eq!((&is.entry.count, is.entry.message.role()), (&was.entry.count, was.entry.message.role()));
    }
    let info = &room.list(None, 1).await.unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens, info.revision), (3, 30, Revision(2)));
}

pub(super) async fn no_more_is_deleted_than_was_hidden_by_then(room: &Room<'_>) {
    fill(room, 5).await;
    commit(room, &record(0, 5, &[(0, 0)])).await.unwrap();
    commit(room, &record(1, 5, &[(1, 1)])).await.unwrap();
    assert_eq!(prune(room, 1).await.unwrap().messages, 1);
    assert_eq!(pruned(&log(room).await), [Some(3), None, None, None, None]);
    assert_eq!(prune(room, 2).await.unwrap().messages, 1);
    assert_eq!(pruned(&log(room).await), [Some(3), Some(4), None, None, None]);
}

pub(super) async fn what_a_replaced_summary_said_is_deleted(room: &Room<'_>) {
    fill(room, 6).await;
    commit(room, &summarized(record(0, 6, &[(0, 1)]), &[&[(0, 1)]])).await.unwrap();
    commit(room, &summarized(record(1, 6, &[(0, 3)]), &[&[(0, 3)]])).await.unwrap();
    let shown = load(room).await.live;
    let done = prune(room, 2).await.unwrap();
    assert_eq!((done.messages, done.summaries), (4, 1));
    let found = records(room).await;
    let (gone, there) = (&found[0].record.summaries[0], &found[1].record.summaries[0]);
    assert!(is_bare(&gone.message) && !there.message.is_pruned());
    assert_eq!(gone.message.attribution().derived_from, [range(0, 1)]);
    assert_eq!(load(room).await.live, shown);
}

pub(super) async fn the_texts_that_stood_in_a_pruned_message_are_deleted(room: &Room<'_>) {
    fill(room, 4).await;
    let edits = [edit(0, &[(0, Some("[cut]"))], 4), edit(1, &[(0, Some("[gone]"))], 4)];
    commit(room, &edited(record(0, 4, &[]), &edits)).await.unwrap();
    commit(room, &record(1, 4, &[(0, 0)])).await.unwrap();
    prune(room, 2).await.unwrap();
    let found = &records(room).await[0].record.edits;
    let texts: Vec<_> = found.iter().map(|edit| edit.stand_ins[0].text.as_deref()).collect();
    assert_eq!(texts, [Some(""), Some("[gone]")]);
    assert_eq!(log(room).await[0].edited_by, Some(Revision(1)));
}

pub(super) async fn what_a_shortened_message_said_stays(room: &Room<'_>) {
    fill(room, 3).await;
    commit(room, &edited(record(0, 3, &[(0, 0)]), &[edit(1, &[(0, Some("[cut]"))], 4)])).await.unwrap();
    let said = log(room).await[1].entry.message.clone();
    prune(room, 1).await.unwrap();
    assert_eq!(log(room).await[1].entry.message, said);
    assert_eq!(load(room).await.live[0].entry.message.parts(), [Part::Text("[cut]".into())]);
}

pub(super) async fn what_an_undone_record_showed_is_deleted(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &summarized(record(0, 4, &[(0, 1)]), &[&[(0, 1)]])).await.unwrap();
    uncompact(room, 1).await.unwrap();
    assert_eq!(prune(room, 1).await.unwrap().summaries, 0);
    let done = prune(room, 2).await.unwrap();
    assert_eq!((done.messages, done.summaries), (0, 1));
    assert!(is_bare(&records(room).await[0].record.summaries[0].message));
    assert_eq!(keys(room).await, [0, 1, 2, 3]);
    // A repetition of the uncompact is still recognized.
    assert_eq!(uncompact(room, 1).await.unwrap(), Revision(2));
}

async fn hide_a_call(room: &Room<'_>) {
    append(room, "a", 0, &[user(0), calls(1, &["a", "b"]), user(2)]).await.unwrap();
    let mut gone = record(0, 3, &[(1, 1)]);
    gone.unanswered = vec![unanswered("a", 1, 0), unanswered("b", 1, 1)];
    commit(room, &gone).await.unwrap();
}

pub(super) async fn a_late_answer_finds_the_group_that_was_pruned(room: &Room<'_>) {
    hide_a_call(room).await;
    prune(room, 1).await.unwrap();
    append(room, "late", 3, &[late(answer(1, "b"))]).await.unwrap();
    assert_eq!(hidden(room).await, [None, Some(1), None, Some(1)]);
    assert_eq!(pruned(&log(room).await), [None, Some(2), None, None]);
    assert_eq!(load(room).await.unanswered, [unanswered("a", 1, 0)]);
}

pub(super) async fn an_answer_that_comes_after_a_prune_is_deleted_by_the_next(room: &Room<'_>) {
    hide_a_call(room).await;
    prune(room, 1).await.unwrap();
    append(room, "late", 3, &[late(answer(1, "b"))]).await.unwrap();
    assert_eq!(prune(room, 1).await.unwrap().messages, 1);
    let left = log(room).await.remove(3);
    assert_eq!((left.entry.call_id(), left.pruned_by), (Some("b"), Some(Revision(4))));
    assert!(!format!("{:?}", left.entry.message).contains("answer to"));
}

pub(super) async fn a_prune_repeated_gives_the_same_answer(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &record(0, 4, &[(0, 0)])).await.unwrap();
    let done = prune(room, 1).await.unwrap();
    commit(room, &record(2, 4, &[(1, 1)])).await.unwrap();
    let before = everything(room).await;
    assert_eq!(prune(room, 1).await.unwrap(), done);
    assert_eq!(everything(room).await, before);
}

pub(super) async fn a_prune_of_nothing_changes_nothing(room: &Room<'_>) {
    fill(room, 4).await;
    let before = everything(room).await;
    let done = prune(room, 0).await.unwrap();
    assert_eq!((done.revision, done.messages, done.summaries), (Revision(0), 0, 0));
    assert_eq!(everything(room).await, before);
    assert_eq!(prunes(room).await, []);
}

pub(super) async fn what_has_not_come_yet_cannot_be_pruned(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &record(0, 4, &[(0, 0)])).await.unwrap();
    let before = everything(room).await;
    fails(prune(room, 2).await, Invalid);
    fails(prune(room, u64::MAX).await, Invalid);
    assert_eq!(everything(room).await, before);
}

pub(super) async fn what_was_pruned_cannot_be_shown_again(room: &Room<'_>) {
    fill(room, 5).await;
    commit(room, &record(0, 5, &[(0, 0)])).await.unwrap();
    commit(room, &record(1, 5, &[(1, 1)])).await.unwrap();
    prune(room, 1).await.unwrap();
    uncompact(room, 2).await.unwrap();
    let before = everything(room).await;
    fails(uncompact(room, 1).await, Pruned);
    assert_eq!(everything(room).await, before);
    assert_eq!(keys(room).await, [1, 2, 3, 4]);
}

pub(super) async fn a_token_is_known_when_its_messages_are_pruned(room: &Room<'_>) {
    let said = [user(0), user(1)];
    let appended = append(room, "a", 0, &said).await.unwrap();
    commit(room, &record(0, 2, &[(0, 0)])).await.unwrap();
    prune(room, 1).await.unwrap();
    assert_eq!(append(room, "a", 0, &said).await.unwrap(), appended);
    assert_eq!(append(room, "a", 0, &[user(7)]).await.unwrap(), appended);
}

pub(super) async fn a_plan_from_before_a_prune_is_a_conflict(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &record(0, 4, &[(0, 0)])).await.unwrap();
    prune(room, 1).await.unwrap();
    fails(commit(room, &record(1, 4, &[(1, 1)])).await, Conflict);
    assert_eq!(commit(room, &record(2, 4, &[(1, 1)])).await.unwrap(), Revision(3));
}

pub(super) async fn orphans_are_never_pruned(room: &Room<'_>) {
    append(room, "a", 0, &[user(0), orphan(answer(1, "gone")), user(2)]).await.unwrap();
    commit(room, &record(0, 3, &[(0, 1)])).await.unwrap();
    assert_eq!(prune(room, 1).await.unwrap().messages, 1);
    assert_eq!(pruned(&log(room).await), [Some(2), None, None]);
}

pub(super) async fn prunes_have_pages(room: &Room<'_>) {
    fill(room, 6).await;
    for (at, revision) in [(0, 0), (1, 2), (2, 4)] {
        commit(room, &record(revision, 6, &[(at, at)])).await.unwrap();
        prune(room, revision + 1).await.unwrap();
    }
    let revisions = async |after: Option<u64>, limit| {
        let page = room.prunes(&room.session(), after.map(Revision), limit).await.unwrap();
        page.iter().map(|pruned| (pruned.revision.0, pruned.through.0, pruned.messages)).collect::<Vec<_>>()
    };
    assert_eq!(revisions(None, 2).await, [(2, 1, 1), (4, 3, 1)]);
    assert_eq!(revisions(Some(4), 2).await, [(6, 5, 1)]);
    assert_eq!(revisions(Some(6), 2).await, []);
}

pub(super) async fn a_prune_of_no_session_is_not_found(room: &Room<'_>) {
    fails(prune(room, 0).await, NotFound);
    fails(room.prunes(&room.session(), None, 9).await, NotFound);
}
