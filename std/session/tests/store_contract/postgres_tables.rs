//! The tables in Postgres: access, refusals, and simultaneous operations.

use std::thread;

use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::Conflict;
use epitome_std::history::{
    Append, AppendToken, HistoryStore, PostgresStore, SessionId, StoreError, open_store,
};
use epitome_std::message::Message;
use futures::executor::block_on;

use crate::postgres_refusals::in_time;
use crate::postgres_server::{tables, url};
use crate::support::{append, commit, entry, everything, fill, keys, load, log, record, summarized, user};

#[test]
fn a_store_shows_where_it_is_and_not_who_asks() {
    let Some(tables) = tables() else { return };
    let shown = format!("{:?}", tables.open());
    let (_, after) = tables.url.split_once("://").unwrap();
    let (user, place) = after.split_once('@').unwrap();
    assert!(shown.contains(place.split_once('?').unwrap().0) && !shown.contains(user), "{shown}");
}

#[test]
fn many_may_make_the_tables_at_once() {
    let Some(tables) = tables() else { return };
    tables.forget();
    thread::scope(|scope| {
        for index in 0..4 {
            let tables = &tables;
            scope.spawn(move || {
                let store = tables.open();
                let (session, token) = (SessionId::new(index.to_string()), AppendToken::new("t"));
                block_on(store.append(&session, &Append::new(&token, Seq(0), &[user(0)]))).unwrap();
            });
        }
    });
    assert_eq!(block_on(tables.open().list(None, 9)).unwrap().len(), 4);
}

#[test]
fn what_is_acknowledged_is_there_for_another_store() {
    let Some(tables) = tables() else { return };
    let store = tables.open();
    fill(&store, 5);
    let record = summarized(record(0, 5, &[(1, 3)]), &[&[(1, 3)]]);
    commit(&store, &record).unwrap();
    let before = everything(&store);
    drop(store);
    let store = tables.open();
    assert_eq!(everything(&store), before);
    assert_eq!(commit(&store, &record).unwrap(), Revision(1));
}

/// Number of the simultaneous attempts that succeed; the others must be conflicts.
fn race<T: Send>(
    handles: &[PostgresStore; 2],
    attempt: impl Fn(u64, &PostgresStore) -> Result<T, StoreError> + Sync,
) -> usize {
    thread::scope(|scope| {
        let racers: Vec<_> = (0..)
            .zip(handles)
            .map(|(index, store)| {
                let attempt = &attempt;
                scope.spawn(move || match attempt(index, store) {
                    Ok(_) => 1,
                    Err(error) if error.kind() == Conflict => 0,
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    })
}

#[test]
fn of_two_racing_appends_one_gets_a_conflict() {
    let Some(tables) = tables() else { return };
    let handles = [tables.open(), tables.open()];
    for round in 0..30 {
        let attempt =
            |index, store: &PostgresStore| append(store, &format!("{index} {round}"), round, &[user(round)]);
        assert_eq!(race(&handles, attempt), 1);
    }
    assert_eq!(load(&handles[0]), load(&handles[1]));
    assert_eq!(load(&handles[0]).head, Seq(30));
}

#[test]
fn of_two_that_begin_a_session_one_gets_a_conflict() {
    let Some(tables) = tables() else { return };
    let handles = [tables.open(), tables.open()];
    let (entries, token) = ([user(0)], AppendToken::new("t"));
    for round in 0..30 {
        let session = SessionId::new(round.to_string());
        let attempt = |index: u64, store: &PostgresStore| {
            let token = AppendToken::new(index.to_string());
            block_on(store.append(&session, &Append::new(&token, Seq(0), &entries)))
        };
        assert_eq!(race(&handles, attempt), 1);
        // With the same token, both attempts succeed.
        let session = SessionId::new(format!("same {round}"));
        let attempt = |_, store: &PostgresStore| {
            block_on(store.append(&session, &Append::new(&token, Seq(0), &entries)))
        };
        assert_eq!(race(&handles, attempt), 2);
        assert_eq!(block_on(handles[0].load(&session)).unwrap().head, Seq(1));
    }
}

#[test]
fn of_two_racing_commits_one_gets_a_conflict() {
    let Some(tables) = tables() else { return };
    let handles = [tables.open(), tables.open()];
    fill(&handles[0], 40);
    for round in 0..20 {
        let attempt = |index, store: &PostgresStore| {
            let at = 2 * round + index;
            commit(store, &record(round, 40, &[(at, at)]))
        };
        assert_eq!(race(&handles, attempt), 1);
    }
    assert_eq!(log(&handles[0]), log(&handles[1]));
    assert_eq!(keys(&handles[0]).len(), 20);
}

#[test]
fn a_text_may_hold_anything_and_be_long() {
    let Some(tables) = tables() else { return };
    let store = tables.open();
    let long = "\u{1f642}x".repeat(300_000);
    let said: Vec<_> = ["a\0b", "", "\\", "$1 @ # '", &long].into_iter().map(Message::user).collect();
    let entries: Vec<_> = (0..).zip(&said).map(|(seq, said)| entry(said.clone(), seq, 1)).collect();
    append(&store, "\0", 0, &entries).unwrap();
    let loaded: Vec<_> = load(&store).live.into_iter().map(|live| live.entry.message).collect();
    assert!(loaded == said);
    // Names with the same beginning that no index could hold as a whole.
    let names: Vec<_> = (0..5).map(|at| SessionId::new(format!("{long}{at}"))).collect();
    for name in &names {
        block_on(store.append(name, &Append::new(&AppendToken::new(&*long), Seq(0), &[user(0)]))).unwrap();
    }
    let after = block_on(store.list(Some(&names[1]), 2)).unwrap();
    assert!(after.into_iter().map(|info| info.id).collect::<Vec<_>>() == names[2..4]);
}

#[test]
fn more_messages_than_fit_a_statement_are_one_append() {
    let Some(tables) = tables() else { return };
    let store = tables.open();
    fill(&store, 2_345);
    assert_eq!(keys(&store), (0..2_345).collect::<Vec<_>>());
    assert_eq!(
        append(&store, "fill", 0, &(0..2_345).map(user).collect::<Vec<_>>()).unwrap().head,
        Seq(2_345)
    );
}

#[test]
fn a_store_is_opened_by_its_url() {
    let Some(url) = url() else { return };
    for url in [url.clone(), url.replace("postgres://", "postgresql://")] {
        in_time(|| block_on(open_store(&url)?.list(None, 1)));
    }
    let error = open_store("postgres://user:secret@host:port/x").unwrap_err();
    assert!(error.to_string().contains("cannot be read") && !format!("{error:?}").contains("secret"));
}
