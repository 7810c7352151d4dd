//! Rewinds: all messages after a given one are hidden.

use epitome_core::attribution::Retention;
use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{Invalid, NotFound};
use epitome_std::history::{Entry, HistoryStore, HistoryStoreExt, SessionId, StoreError};
use epitome_std::message::{Attribution, Message};
use futures::executor::block_on;

use crate::support::{
    answer, append, calls, commit, entry, fails, fill, keys, late, load, log, record, session, summarized,
    unanswered, user,
};

on_every_store! {
    after_a_rewind_a_session_shows_what_a_fork_from_there_shows,
    a_rewind_is_undone,
    a_session_goes_on_after_a_rewind,
    an_answer_that_came_later_stays_with_its_call,
    a_call_that_is_taken_back_can_still_be_answered,
    a_rewind_stops_at_a_summary_and_says_where_it_can_go,
    what_is_not_there_is_not_taken_back,
}

fn rewind(store: &dyn HistoryStore, at: u64) -> Result<Revision, StoreError> {
    block_on(store.rewind(&session(), Seq(at)))
}

fn pinned(seq: u64) -> Entry {
    let message = user(seq).message;
    let attribution = Attribution::caller(message.attribution().authority);
    entry(message.with_attribution(attribution.with_retention(Retention::Pinned)), seq, 1)
}

/// An instruction at the beginning and one in the middle, a pin, parallel calls.
fn conversation() -> Vec<Entry> {
    vec![
        entry(Message::system("Be brief."), 0, 0),
        user(1),
        calls(2, &["a", "b"]),
        answer(2, "b"),
        answer(2, "a"),
        entry(Message::assistant("Done."), 5, 1),
        entry(Message::system("Be kind."), 6, 1),
        pinned(7),
        calls(8, &["c"]),
        answer(8, "c"),
        user(10),
    ]
}

/// After a rewind, a session shows the same messages as a fork at that place. The fork repeats all operations up to
/// there, and has none of the hidden messages.
fn after_a_rewind_a_session_shows_what_a_fork_from_there_shows(store: &dyn HistoryStore) {
    append(store, "a", 0, &conversation()).unwrap();
    let before = load(store);
    for at in 1..11 {
        let is_inside = matches!(at, 3 | 4 | 9);
        let rewound = rewind(store, at);
        let fork = SessionId::new(format!("fork at {at}"));
        let forked = block_on(store.fork(&session(), Seq(at), &fork));
        if is_inside {
            for error in [rewound.unwrap_err(), forked.unwrap_err()] {
                assert_eq!(error.kind(), Invalid);
                assert!(error.to_string().contains(if at == 9 { "with 8" } else { "with 2" }), "{error}");
            }
            assert!(block_on(store.tail(&fork)).is_err(), "nothing is begun");
            continue;
        }
        forked.unwrap();
        assert_eq!(load(store).live, block_on(store.load(&fork)).unwrap().live);
        assert_eq!((load(store).head, log(store).len()), (Seq(11), 11));
        block_on(store.uncompact(&session(), rewound.unwrap())).unwrap();
        assert_eq!(load(store).live, before.live);
    }
}

fn a_rewind_is_undone(store: &dyn HistoryStore) {
    fill(store, 6);
    commit(store, &summarized(record(0, 6, &[(0, 1), (3, 4)]), &[&[(0, 1)], &[(3, 4)]])).unwrap();
    let before = load(store);
    // The summary of hidden messages is hidden too.
    assert_eq!(rewind(store, 3).unwrap(), Revision(2));
    assert_eq!(keys(store), [0, 2]);
    assert_eq!(
        block_on(store.latest_compaction(&session())).unwrap().unwrap().record.strategy,
        "rewind:at=3"
    );
    block_on(store.uncompact(&session(), Revision(2))).unwrap();
    assert_eq!(load(store).live, before.live);
    block_on(store.verify(&session())).unwrap();
}

fn a_session_goes_on_after_a_rewind(store: &dyn HistoryStore) {
    fill(store, 4);
    rewind(store, 2).unwrap();
    append(store, "more", 4, &[user(4), user(5)]).unwrap();
    assert_eq!(keys(store), [0, 1, 4, 5]);
    assert_eq!(rewind(store, 5).unwrap(), Revision(2));
    assert_eq!(rewind(store, 1).unwrap(), Revision(3));
    assert_eq!(keys(store), [0]);
    for made in [3, 2] {
        block_on(store.uncompact(&session(), Revision(made))).unwrap();
    }
    // Newer messages stand after the restored ones.
    block_on(store.uncompact(&session(), Revision(1))).unwrap();
    assert_eq!(keys(store), [0, 1, 2, 3, 4, 5]);
    block_on(store.verify(&session())).unwrap();
}

fn an_answer_that_came_later_stays_with_its_call(store: &dyn HistoryStore) {
    append(store, "a", 0, &[calls(0, &["a"]), user(1), late(answer(0, "a")), user(3)]).unwrap();
    rewind(store, 1).unwrap();
    assert_eq!(keys(store), [0, 2]);
}

fn a_call_that_is_taken_back_can_still_be_answered(store: &dyn HistoryStore) {
    append(store, "a", 0, &[user(0), calls(1, &["a"])]).unwrap();
    rewind(store, 1).unwrap();
    assert_eq!(load(store).unanswered, [unanswered("a", 1, 0)]);
    append(store, "late", 2, &[answer(1, "a"), user(3)]).unwrap();
    assert_eq!((keys(store), load(store).unanswered), (vec![0, 3], vec![]));
}

fn a_rewind_stops_at_a_summary_and_says_where_it_can_go(store: &dyn HistoryStore) {
    fill(store, 6);
    commit(store, &summarized(record(0, 6, &[(1, 3)]), &[&[(1, 3)]])).unwrap();
    let before = load(store);
    for at in [2, 3] {
        let error = rewind(store, at).unwrap_err();
        assert_eq!(error.kind(), Invalid);
        assert!(error.to_string().contains("1 to 3") && error.to_string().contains("rewind to 1"), "{error}");
    }
    assert_eq!(load(store), before);
    rewind(store, 4).unwrap();
    assert_eq!(keys(store), [0, 1]);
    rewind(store, 1).unwrap();
    assert_eq!(keys(store), [0]);
}

fn what_is_not_there_is_not_taken_back(store: &dyn HistoryStore) {
    fails(rewind(store, 0), NotFound);
    fill(store, 3);
    fails(rewind(store, 3), Invalid);
    rewind(store, 1).unwrap();
    // The message is hidden already.
    assert_eq!(rewind(store, 1).unwrap(), Revision(1));
    assert_eq!(rewind(store, 2).unwrap(), Revision(1));
    assert_eq!(rewind(store, 0).unwrap(), Revision(2));
    assert_eq!(keys(store), [0_u64; 0]);
}
