//! Scenarios of appends at the present end of a session.

use epitome_core::{Revision, Seq, Turn};
use epitome_history::StoreErrorKind::Invalid;
use epitome_history::{
    Append, AppendToken, Appended, Entry, NewState, StateOutcome, StateRevision, StoreError,
};
use futures::future::join_all;

use super::support::{
    Room, answer, append, calls, commit, fails, hidden, keys, load, log, record, unanswered, user,
};

async fn at_end(room: &Room<'_>, token: &str, head: u64, entries: &[Entry]) -> Result<Appended, StoreError> {
    let token = AppendToken::new(token);
    room.append(&room.session(), &Append::new(&token, Seq(head), entries).at_end()).await
}

fn in_turn(turn: u32, mut entry: Entry) -> Entry {
    entry.turn = Turn(turn);
    entry
}

pub(super) async fn an_append_at_the_end_goes_behind_what_others_have_appended(room: &Room<'_>) {
    append(room, "1", 0, &[user(0)]).await.unwrap();
    append(room, "2", 1, &[in_turn(2, user(1))]).await.unwrap();
    // Both entries were grouped when only the first message existed.
    let entries = [calls(1, &["b"]), answer(1, "b")];
    let appended = at_end(room, "3", 1, &entries).await.unwrap();
    assert_eq!((appended.first, appended.head, appended.revision), (Seq(2), Seq(4), Revision(0)));
    let logged = log(room).await;
    for (entry, logged) in entries.iter().zip(&logged[2..]) {
        assert_eq!((logged.entry.anchor, logged.entry.turn), (Seq(2), Turn(2)));
        assert_eq!((&logged.entry.message, &logged.entry.count), (&entry.message, &entry.count));
    }
    assert_eq!(keys(room).await, [0, 1, 2, 3]);
    // An append at the head at which it was grouped keeps its groups.
    let as_given = in_turn(7, user(4));
    at_end(room, "4", 4, core::slice::from_ref(&as_given)).await.unwrap();
    assert_eq!(log(room).await[4].entry, as_given);
}

pub(super) async fn an_append_at_the_end_creates_the_session(room: &Room<'_>) {
    let appended = at_end(room, "1", 5, &[user(5)]).await.unwrap();
    assert_eq!((appended.first, appended.head), (Seq(0), Seq(1)));
    assert_eq!(log(room).await[0].entry.anchor, Seq(0));
    fails(at_end(room, "2", 9, &[]).await, Invalid);
}

pub(super) async fn an_append_at_the_end_is_done_once(room: &Room<'_>) {
    append(room, "1", 0, &[user(0)]).await.unwrap();
    let appended = at_end(room, "2", 0, &[user(1)]).await.unwrap();
    append(room, "3", 2, &[user(2)]).await.unwrap();
    assert_eq!(at_end(room, "2", 3, &[user(1)]).await.unwrap(), appended);
    fails(at_end(room, "2", 3, &[user(7)]).await, Invalid);
    assert_eq!(load(room).await.head, Seq(3));
}

pub(super) async fn an_answer_at_the_end_joins_its_call(room: &Room<'_>) {
    append(room, "1", 0, &[calls(0, &["a"])]).await.unwrap();
    append(room, "2", 1, &[in_turn(2, user(1))]).await.unwrap();
    let appended = at_end(room, "3", 1, &[answer(0, "a")]).await.unwrap();
    // The answer is now late.
    assert_eq!((appended.first, appended.revision), (Seq(2), Revision(1)));
    let logged = log(room).await;
    assert_eq!((logged[2].entry.anchor, logged[2].entry.late), (Seq(0), true));
    let appended = at_end(room, "4", 1, &[answer(0, "x")]).await.unwrap();
    assert_eq!(appended.revision, Revision(1));
    assert!(log(room).await[3].entry.orphan, "it answers nothing");
}

pub(super) async fn an_answer_at_the_end_to_a_hidden_call_is_hidden(room: &Room<'_>) {
    append(room, "1", 0, &[calls(0, &["a"])]).await.unwrap();
    append(room, "2", 1, &[in_turn(2, user(1))]).await.unwrap();
    let mut hides = record(0, 2, &[(0, 0)]);
    hides.unanswered = vec![unanswered("a", 0, 0)];
    commit(room, &hides).await.unwrap();
    at_end(room, "3", 1, &[answer(0, "a")]).await.unwrap();
    assert_eq!(hidden(room).await, [Some(1), None, Some(1)]);
    assert!(load(room).await.unanswered.is_empty());
}

pub(super) async fn an_append_at_the_end_keeps_its_state(room: &Room<'_>) {
    append(room, "1", 0, &[user(0), user(1)]).await.unwrap();
    let (token, entries) = (AppendToken::new("2"), [user(1)]);
    let append = Append::new(&token, Seq(1), &entries).at_end();
    let new = NewState::new(StateRevision(0), "state");
    let kept = room.append_with_state(&room.session(), &append, &new).await.unwrap();
    assert_eq!((kept.0.first, kept.1), (Seq(2), StateOutcome::Kept(StateRevision(1))));
    assert_eq!(room.state(&room.session()).await.unwrap().unwrap().head, Seq(3));
}

pub(super) async fn of_appends_at_the_end_at_once_all_succeed(room: &Room<'_>) {
    let other = room.another().await;
    let appends = (0..16_u64).map(|at| {
        let store = if at % 2 == 0 { room.store() } else { other.store() };
        async move {
            let (token, entries) = (AppendToken::new(at.to_string()), [user(0)]);
            store.append(&room.session(), &Append::new(&token, Seq(0), &entries).at_end()).await
        }
    });
    let mut firsts: Vec<u64> =
        join_all(appends).await.into_iter().map(|appended| appended.unwrap().first.0).collect();
    firsts.sort_unstable();
    assert!(firsts.into_iter().eq(0..16));
}
