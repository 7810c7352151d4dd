//! Scenarios of the states of sessions, which are saved beside the log and deleted with it.

use core::future::Future;

use epitome_core::{Revision, Seq};
use epitome_history::StoreErrorKind::{Conflict, Invalid, NotFound};
use epitome_history::{
    Append, AppendToken, Appended, Entry, KeptState, NewState, StateOutcome, StateRevision, StoreError,
};
use futures::FutureExt as _;
use futures::future::join;

use super::support::{
    Room, append, appends, commit, everything, fails, fill, keys, load, log, prune, record, uncompact, user,
};

/// Appends at `head` with the state `text`, made from the state `made_from`.
async fn store(
    room: &Room<'_>,
    (token, head): (&str, u64),
    entries: &[Entry],
    (made_from, text): (u64, &str),
) -> Result<(Appended, StateOutcome), StoreError> {
    let token = AppendToken::new(token);
    let (append, state) = (Append::new(&token, Seq(head), entries), new(made_from, text));
    room.append_with_state(&room.session(), &append, &state).await
}

async fn save(room: &Room<'_>, made_from: u64, text: &str) -> Result<StateRevision, StoreError> {
    room.save_state(&room.session(), &new(made_from, text)).await
}

const fn new(made_from: u64, text: &str) -> NewState<'_> {
    NewState::new(StateRevision(made_from), text)
}

const fn kept(revision: u64) -> StateOutcome {
    StateOutcome::Kept(StateRevision(revision))
}

fn state(revision: u64, head: u64, text: &str) -> Option<KeptState> {
    Some(KeptState::new(StateRevision(revision), Seq(head), text.into()))
}

/// The saved state.
async fn found(room: &Room<'_>) -> Option<KeptState> {
    room.state(&room.session()).await.unwrap()
}

pub(super) async fn a_state_is_kept_with_its_append(room: &Room<'_>) {
    let (appended, outcome) = store(room, ("a", 0), &[user(0), user(1)], (0, "first")).await.unwrap();
    assert_eq!((appended.head, outcome), (Seq(2), kept(1)));
    assert_eq!(found(room).await, state(1, 2, "first"));
    let (appended, outcome) = store(room, ("b", 2), &[user(2)], (1, "second")).await.unwrap();
    assert_eq!((appended, outcome), (Appended::new(Seq(2), Seq(3), Revision(0)), kept(2)));
    assert_eq!((found(room).await, keys(room).await), (state(2, 3, "second"), vec![0, 1, 2]));
    assert_eq!(found(&room.another().await).await, state(2, 3, "second"));
}

pub(super) async fn a_session_without_a_state_has_none(room: &Room<'_>) {
    fill(room, 2).await;
    assert_eq!(found(room).await, None);
    // The first state is made from none, at any head.
    let (_, outcome) = store(room, ("a", 2), &[user(2)], (1, "too new")).await.unwrap();
    assert_eq!((outcome, found(room).await), (StateOutcome::Stale, None));
    assert_eq!(store(room, ("b", 3), &[user(3)], (0, "first")).await.unwrap().1, kept(1));
    assert_eq!(found(room).await, state(1, 4, "first"));
}

pub(super) async fn a_stale_state_is_refused_and_the_append_is_not(room: &Room<'_>) {
    store(room, ("a", 0), &[user(0)], (0, "first")).await.unwrap();
    store(room, ("b", 1), &[user(1)], (1, "second")).await.unwrap();
    for (made_from, head) in (0..4).filter(|made_from| *made_from != 2).zip(2..) {
        let token = head.to_string();
        let (appended, outcome) =
            store(room, (&token, head), &[user(head)], (made_from, "another")).await.unwrap();
        assert_eq!((appended.head, outcome), (Seq(head + 1), StateOutcome::Stale), "from {made_from}");
    }
    assert_eq!(found(room).await, state(2, 2, "second"));
    assert_eq!((keys(room).await, log(room).await.len()), ((0..5).collect(), 5));
}

pub(super) async fn a_refused_append_keeps_no_state(room: &Room<'_>) {
    fails(store(room, ("a", 1), &[user(0)], (0, "first")).await, Conflict);
    fails(room.load(&room.session()).await, NotFound);
    store(room, ("a", 0), &[user(0)], (0, "first")).await.unwrap();
    let before = everything(room).await;
    fails(store(room, ("b", 0), &[user(1)], (1, "second")).await, Conflict);
    fails(store(room, ("b", 9), &[user(1)], (1, "second")).await, Conflict);
    fails(store(room, ("b", 1), &[], (1, "second")).await, Invalid);
    // The token belongs to another append.
    fails(store(room, ("a", 1), &[user(7)], (1, "second")).await, Invalid);
    assert_eq!((found(room).await, everything(room).await), (state(1, 1, "first"), before));
}

pub(super) async fn an_append_with_a_state_is_done_once(room: &Room<'_>) {
    let entries = [user(0), user(1)];
    let first = store(room, ("a", 0), &entries, (0, "first")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(store(room, ("a", 0), &entries, (0, "first")).await.unwrap(), first);
        assert_eq!((found(room).await, log(room).await.len()), (state(1, 2, "first"), 2));
    }
    // Another text, made from the same state.
    let other = store(room, ("a", 0), &entries, (0, "other")).await.unwrap();
    assert_eq!(other, (first.0, StateOutcome::Stale));
    store(room, ("b", 2), &[user(2)], (1, "second")).await.unwrap();
    // Now the state of this append is no longer the latest one.
    assert_eq!(store(room, ("a", 0), &entries, (0, "first")).await.unwrap(), (first.0, StateOutcome::Stale));
    assert_eq!((found(room).await, log(room).await.len()), (state(2, 3, "second"), 3));
}

pub(super) async fn a_state_that_did_not_come_to_it_is_kept_by_the_repetition(room: &Room<'_>) {
    let entries = [user(0), user(1)];
    let appended = append(room, "a", 0, &entries).await.unwrap();
    append(room, "b", 2, &[user(2)]).await.unwrap();
    assert_eq!(store(room, ("a", 0), &entries, (0, "late")).await.unwrap(), (appended, kept(1)));
    assert_eq!((found(room).await, keys(room).await), (state(1, 3, "late"), vec![0, 1, 2]));
}

pub(super) async fn a_state_is_saved_without_an_append(room: &Room<'_>) {
    fill(room, 3).await;
    let before = (everything(room).await, appends(room).await);
    assert_eq!(save(room, 0, "first").await.unwrap(), StateRevision(1));
    assert_eq!(save(room, 1, "second").await.unwrap(), StateRevision(2));
    // Repetitions after a lost answer, and outdated states.
    assert_eq!(save(room, 1, "second").await.unwrap(), StateRevision(2));
    for (made_from, text) in [(0, "first"), (1, "third"), (3, "third"), (u64::MAX, "third")] {
        fails(save(room, made_from, text).await, Conflict);
    }
    assert_eq!(found(room).await, state(2, 3, "second"));
    assert_eq!((everything(room).await, appends(room).await), before);
    assert_eq!(store(room, ("a", 3), &[user(3)], (2, "third")).await.unwrap().1, kept(3));
    assert_eq!(found(&room.another().await).await, state(3, 4, "third"));
}

pub(super) async fn a_state_stays_when_the_log_changes(room: &Room<'_>) {
    store(room, ("a", 0), &[user(0), user(1), user(2)], (0, "first")).await.unwrap();
    store(room, ("b", 3), &[user(3)], (1, "second")).await.unwrap();
    commit(room, &record(0, 4, &[(0, 0)])).await.unwrap();
    commit(room, &record(1, 4, &[(1, 1)])).await.unwrap();
    uncompact(room, 2).await.unwrap();
    prune(room, 1).await.unwrap();
    append(room, "c", 4, &[user(4)]).await.unwrap();
    // The state has the head at which it was saved.
    assert_eq!(found(room).await, state(2, 4, "second"));
    assert_eq!(save(room, 2, "third").await.unwrap(), StateRevision(3));
    assert_eq!(found(&room.another().await).await, state(3, 5, "third"));
    assert_eq!(keys(room).await, [1, 2, 3, 4]);
}

pub(super) async fn any_text_is_a_state(room: &Room<'_>) {
    fill(room, 1).await;
    let long = "\u{1f642}x\n".repeat(200_000);
    let texts =
        ["", "\0", "a\0b", "\"}\\n\n\r\u{2028}", "e\u{301} \u{e9}", "'; DROP TABLE states; --", &long, "{}"];
    for (made_from, text) in (0..).zip(texts) {
        assert_eq!(save(room, made_from, text).await.unwrap(), StateRevision(made_from + 1));
        assert_eq!(found(room).await, state(made_from + 1, 1, text));
        assert_eq!(save(room, made_from, text).await.unwrap(), StateRevision(made_from + 1));
    }
    for (text, head) in texts.into_iter().zip(1..) {
        let made_from = texts.len() as u64 + head - 1;
        let token = head.to_string();
        assert_eq!(
            store(room, (&token, head), &[user(head)], (made_from, text)).await.unwrap().1,
            kept(made_from + 1)
        );
        assert_eq!(found(&room.another().await).await, state(made_from + 1, head + 1, text));
    }
}

pub(super) async fn states_of_two_sessions_do_not_touch_each_other(room: &Room<'_>) {
    let other = room.named("other");
    store(room, ("a", 0), &[user(0)], (0, "one")).await.unwrap();
    room.append(&other, &Append::new(&AppendToken::new("a"), Seq(0), &[user(0)])).await.unwrap();
    assert_eq!(room.state(&other).await.unwrap(), None);
    room.save_state(&other, &new(0, "other")).await.unwrap();
    assert_eq!(
        (found(room).await, room.state(&other).await.unwrap()),
        (state(1, 1, "one"), state(1, 1, "other"))
    );
    assert!(room.delete(&other).await.unwrap());
    assert_eq!(found(room).await, state(1, 1, "one"));
}

pub(super) async fn a_deleted_session_has_no_state(room: &Room<'_>) {
    store(room, ("a", 0), &[user(0)], (0, "first")).await.unwrap();
    save(room, 1, "second").await.unwrap();
    assert!(room.delete(&room.session()).await.unwrap());
    fails(room.state(&room.session()).await, NotFound);
    fails(save(room, 2, "third").await, NotFound);
    append(room, "a", 0, &[user(0)]).await.unwrap();
    assert_eq!(found(room).await, None);
    assert_eq!(save(room, 0, "anew").await.unwrap(), StateRevision(1));
}

pub(super) async fn a_state_of_no_session_is_not_found(room: &Room<'_>) {
    fails(room.state(&room.session()).await, NotFound);
    fails(save(room, 0, "first").await, NotFound);
    assert_eq!(room.list(None, 9).await.unwrap(), []);
}

pub(super) async fn of_two_states_made_from_one_one_is_kept(room: &Room<'_>) {
    let other = room.another().await;
    fill(room, 1).await;
    for made_from in 0..20 {
        let head = 1 + 2 * made_from;
        let (one, another) = (format!("one {made_from}"), format!("another {made_from}"));
        let tokens = [format!("one {head}"), format!("other {head}")];
        let both = join(
            anywhere(room, &tokens[0], (made_from, &one)),
            anywhere(&other, &tokens[1], (made_from, &another)),
        );
        let text = match both.await {
            (StateOutcome::Kept(_), StateOutcome::Stale) => one,
            (StateOutcome::Stale, StateOutcome::Kept(_)) => another,
            both => panic!("{both:?}"),
        };
        let now = found(room).await.unwrap();
        assert_eq!((now.revision, &*now.text), (StateRevision(made_from + 1), &*text));
        assert_eq!(load(room).await.head, Seq(head + 2));
    }
}

/// Appends a message at the present end.
async fn anywhere(room: &Room<'_>, token: &str, state: (u64, &str)) -> StateOutcome {
    loop {
        let head = load(room).await.head.0;
        match store(room, (token, head), &[user(head)], state).await {
            Err(error) if error.kind() == Conflict => {}
            done => return done.unwrap().1,
        }
    }
}

pub(super) async fn nobody_sees_an_append_without_its_state(room: &Room<'_>) {
    const APPENDS: u64 = 40;
    let other = room.another().await;
    store(room, ("0", 0), &[user(0)], (0, "0")).await.unwrap();
    let writes = async {
        for head in 1..=APPENDS {
            let text = head.to_string();
            let (_, outcome) = store(room, (&text, head), &[user(head)], (head, &text)).await.unwrap();
            assert_eq!(outcome, kept(head + 1));
        }
    };
    let reads = async {
        loop {
            let before = load(&other).await.head;
            let state = found(&other).await.unwrap();
            let after = load(&other).await.head;
            assert!(before <= state.head && state.head <= after, "{before} {state:?} {after}");
            assert_eq!((state.revision.0, &*state.text), (state.head.0, &*(state.head.0 - 1).to_string()));
            if after == Seq(APPENDS + 1) {
                break;
            }
            pause().await;
        }
    };
    join(writes, reads).await;
}

/// Yields once to the other tasks.
fn pause() -> impl Future<Output = ()> {
    let mut paused = false;
    core::future::poll_fn(move |context| {
        context.waker().wake_by_ref();
        if core::mem::replace(&mut paused, true) {
            core::task::Poll::Ready(())
        } else {
            core::task::Poll::Pending
        }
    })
}

pub(super) async fn a_dropped_append_leaves_no_state_without_it(room: &Room<'_>) {
    let (session, token, entries) = (room.session(), AppendToken::new("t"), [user(0), user(1)]);
    let (append, state) = (Append::new(&token, Seq(0), &entries), new(0, "first"));
    drop(room.append_with_state(&session, &append, &state));
    let _ = room.append_with_state(&session, &append, &state).now_or_never();
    if let Ok(found) = room.state(&session).await {
        // An operation that was sent is done completely, perhaps after a delay.
        assert_eq!((found, keys(room).await), (self::state(1, 2, "first"), vec![0, 1]));
    }
    let stored = room.append_with_state(&session, &append, &state).await.unwrap();
    assert_eq!(stored, (Appended::new(Seq(0), Seq(2), Revision(0)), kept(1)));
    assert_eq!((found(room).await, log(room).await.len()), (self::state(1, 2, "first"), 2));
}
