//! Requests that Postgres refuses or cannot serve now: each has its kind of error, and no error has a secret.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::thread;

use epitome_core::Seq;
use epitome_std::history::StoreErrorKind::{self, Invalid, Unavailable};
use epitome_std::history::{
    Append, AppendToken, Appended, HistoryStore, Migrate, PostgresOptions, PostgresStore, RemoteOptions,
    StoreError,
};
use futures::FutureExt;
use futures::executor::block_on;

use crate::postgres_server::{Holder, Line, Tables, execute, tables, url, variable};
use crate::remote::patient;
use crate::support::{append, commit, fails, fill, keys, prune, record, session, uncompact, user};

/// One attempt.
fn once() -> RemoteOptions {
    patient().with_retries(0)
}

/// One attempt with a short time limit.
fn impatient() -> RemoteOptions {
    once().with_timeout(Duration::from_millis(800))
}

/// Repeats an attempt that may be too slow on a busy machine.
pub(crate) fn in_time<T>(attempt: impl Fn() -> Result<T, StoreError>) -> T {
    for _ in 0..50 {
        match attempt() {
            Err(error) if error.kind() == Unavailable => {}
            done => return done.unwrap(),
        }
    }
    attempt().unwrap()
}

/// Checks the error of a store that does not open. The error contains no secret.
#[track_caller]
fn refused(url: &str, options: PostgresOptions, kind: StoreErrorKind, says: &str) {
    let error = PostgresStore::open_with(url, options).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let shown = format!("{error} {error:?}");
    assert!(shown.contains(says), "{shown}");
    let (_, after) = url.split_once("://").unwrap();
    let (user, _) = after.split_once('@').unwrap();
    let (_, password) = user.split_once(':').unwrap();
    assert!(!shown.contains(password), "{shown}");
}

#[test]
fn who_may_not_come_in_is_told_so() {
    let Some(url) = url() else { return };
    let (head, place) = url.split_once('@').unwrap();
    let (scheme, _) = head.split_once("://").unwrap();
    let options = || PostgresOptions::default().with_remote(once());
    refused(&format!("{scheme}://epitome:SECRET@{place}"), options(), Invalid, "password");
    refused(&format!("{scheme}://nobody:SECRET@{place}"), options(), Invalid, "28P01");
    let elsewhere = url.replace("/postgres?", "/no_such_database?");
    refused(&elsewhere, options(), Invalid, "no such database");
    let closed = format!("{scheme}://epitome:SECRET@127.0.0.1:1/postgres?sslmode=disable");
    refused(&closed, options(), Unavailable, "cannot be reached");
    let port = format!("{scheme}://epitome:SECRET@127.0.0.1:SECRET/postgres");
    refused(&port, options(), Invalid, "the url cannot be read");
    for bad in ["?sslmode=SECRET", "?SECRET=1"] {
        let error = PostgresStore::open(&format!("postgres://localhost/x{bad}")).unwrap_err();
        assert_eq!(error.kind(), Invalid);
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    }
}

#[test]
fn a_certificate_is_asked_for_and_must_be_trusted() {
    let Some(tables) = tables() else { return };
    let Some(authority) = variable("EPITOME_TEST_POSTGRES_CA") else {
        eprintln!("skipped: EPITOME_TEST_POSTGRES_CA names no certificate");
        return;
    };
    for mode in ["require", "prefer"] {
        let url = tables.url.replace("sslmode=disable", &format!("sslmode={mode}"));
        refused(&url, tables.options(), Invalid, "certificate");
        let trusting = tables.options().with_root_certificates(std::fs::read(&authority).unwrap());
        let store = PostgresStore::open_with(&url, trusting).unwrap();
        block_on(store.list(None, 1)).unwrap();
    }
    let url = tables.url.replace("disable", "require");
    let broken = "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n";
    refused(&url, tables.options().with_root_certificates(broken), Invalid, "PEM");
}

#[test]
fn tables_are_made_when_they_are_to_be() {
    let Some(tables) = tables() else { return };
    tables.forget();
    let options = || tables.options().with_migrate(Migrate::Explicitly);
    let store = PostgresStore::open_with(&tables.url, options()).unwrap();
    for _ in 0..2 {
        let error = block_on(store.load(&session())).unwrap_err();
        assert_eq!(error.kind(), Invalid);
        assert!(error.to_string().contains("call `migrate`"), "{error}");
    }
    // Another process has created the tables.
    block_on(PostgresStore::open_with(&tables.url, options()).unwrap().migrate()).unwrap();
    fill(&store, 2);
    block_on(store.migrate()).unwrap();
    assert_eq!(keys(&store), [0, 1]);
    execute(&tables.url, &format!("DROP TABLE \"{}\".epitome_messages", tables.schema));
    let error = append(&store, "t", 2, &[user(2)]).unwrap_err();
    assert_eq!(error.kind(), Invalid);
    assert!(error.to_string().contains("the tables are missing"), "{error}");
    tables.forget();
}

#[test]
fn another_schema_is_refused() {
    let Some(tables) = tables() else { return };
    let before = tables.open();
    fill(&before, 1);
    let explicitly = tables.options().with_migrate(Migrate::Explicitly);
    let newer = format!("INSERT INTO \"{}\".epitome_migrations (version) VALUES (99)", tables.schema);
    execute(&tables.url, &newer);
    for options in [tables.options(), explicitly.clone()] {
        refused(&tables.url, options, Invalid, "newer version: schema 99");
    }
    fails(block_on(before.migrate()), Invalid);
    let older = format!("UPDATE \"{}\".epitome_migrations SET version = 3 WHERE version = 99", tables.schema);
    execute(
        &tables.url,
        &format!("DELETE FROM \"{}\".epitome_migrations WHERE version < 99; {older}", tables.schema),
    );
    for options in [tables.options(), explicitly] {
        refused(&tables.url, options, Invalid, "older version: schema 3, this one has 6");
    }
    tables.forget();
}

#[test]
fn tables_of_something_else_are_left_alone() {
    let Some(tables) = tables() else { return };
    tables.forget();
    let theirs =
        format!("CREATE SCHEMA \"{0}\"; CREATE TABLE \"{0}\".epitome_sessions (x int)", tables.schema);
    execute(&tables.url, &theirs);
    refused(&tables.url, tables.options(), Invalid, "another prefix");
    let other = tables.options().with_prefix("mine_");
    fill(&PostgresStore::open_with(&tables.url, other).unwrap(), 1);
    tables.forget();
}

/// A store with one connection, on a session that another connection keeps locked.
fn locked(tables: &Tables, remote: RemoteOptions) -> (PostgresStore, Holder) {
    fill(&tables.open(), 3);
    let one = remote.with_connections_max(NonZeroUsize::MIN);
    let store = in_time(|| PostgresStore::open_with(&tables.url, tables.options().with_remote(one)));
    let holder = Holder::new(&tables.url);
    holder.run(&format!("BEGIN; SELECT 1 FROM \"{}\".epitome_sessions FOR UPDATE", tables.schema));
    (store, holder)
}

async fn append_one(store: &PostgresStore) -> Result<Appended, StoreError> {
    store.append(&session(), &Append::new(&AppendToken::new("more"), Seq(3), &[user(3)])).await
}

#[test]
fn who_waits_for_a_lock_too_long_is_told_so_and_leaves_nothing() {
    let Some(tables) = tables() else { return };
    let (store, holder) = locked(&tables, impatient());
    let error = block_on(append_one(&store)).unwrap_err();
    assert_eq!(error.kind(), Unavailable);
    let said = error.to_string();
    // The time limit of the server, or that of the store.
    assert!(said.contains("took too long") || said.contains("no answer within"), "{said}");
    // Reads wait for no lock.
    let seen = in_time(|| block_on(store.load(&session())));
    assert_eq!(seen.live.iter().map(|live| live.key.0).collect::<Vec<_>>(), [0, 1, 2]);
    holder.run("ROLLBACK");
    assert_eq!(in_time(|| block_on(append_one(&store))).head, Seq(4));
}

#[test]
fn a_full_pool_is_unavailable() {
    let Some(tables) = tables() else { return };
    let (store, holder) = locked(&tables, once().with_timeout(Duration::from_secs(30)));
    thread::scope(|scope| {
        let waits = scope.spawn(|| block_on(append_one(&store)));
        holder.until_waiting(&tables.schema, 1);
        let error = block_on(store.load(&session())).unwrap_err();
        assert_eq!(error.kind(), Unavailable);
        assert!(error.to_string().contains("all connections are in use"), "{error}");
        holder.run("ROLLBACK");
        // The append got the lock at its release, or its time was over.
        let _ = waits.join().unwrap();
    });
    assert_eq!(in_time(|| block_on(append_one(&store))).head, Seq(4));
}

#[test]
fn a_dropped_operation_leaves_no_transaction_and_no_lock() {
    let Some(tables) = tables() else { return };
    let (store, holder) = locked(&tables, patient());
    let mut dropped = Box::pin(append_one(&store));
    assert!((&mut dropped).now_or_never().is_none());
    holder.until_waiting(&tables.schema, 1);
    drop(dropped);
    // The only connection is not the one with the interrupted operation.
    assert_eq!(keys(&store), [0, 1, 2]);
    holder.run("ROLLBACK");
    holder.until_waiting(&tables.schema, 0);
    holder.until_no_open_transaction(&tables.schema);
    assert_eq!(keys(&store), [0, 1, 2]);
    assert_eq!(block_on(append_one(&store)).unwrap().head, Seq(4));
    assert_eq!(keys(&store), [0, 1, 2, 3]);
}

#[test]
fn a_lost_connection_is_unavailable_and_a_new_one_is_made() {
    let Some(tables) = tables() else { return };
    let (store, holder) = locked(&tables, once());
    thread::scope(|scope| {
        let waits = scope.spawn(|| block_on(append_one(&store)));
        holder.until_waiting(&tables.schema, 1);
        holder.terminate(&tables.schema);
        fails(waits.join().unwrap(), Unavailable);
    });
    assert_eq!(keys(&store), [0, 1, 2]);
    // With a further attempt, the caller does not see the error.
    let patient = tables.open();
    thread::scope(|scope| {
        let waits = scope.spawn(|| block_on(append_one(&patient)));
        holder.until_waiting(&tables.schema, 1);
        holder.terminate(&tables.schema);
        holder.run("ROLLBACK");
        assert_eq!(waits.join().unwrap().unwrap().head, Seq(4));
    });
    assert_eq!(keys(&store), [0, 1, 2, 3]);
}

#[test]
fn a_pool_of_the_callers_serves_as_well() {
    let Some(tables) = tables() else { return };
    let config: tokio_postgres::Config = tables.url.parse().unwrap();
    let manager = deadpool_postgres::Manager::new(config, tokio_postgres::NoTls);
    let pool = deadpool_postgres::Pool::builder(manager).max_size(2).build().unwrap();
    fails(block_on(PostgresStore::from_pool(pool.clone(), tables.options())), Invalid);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = PostgresStore::from_pool(pool.clone(), tables.options()).await.unwrap();
        store.append(&session(), &Append::new(&AppendToken::new("t"), Seq(0), &[user(0)])).await.unwrap();
        assert_eq!(store.load(&session()).await.unwrap().live.len(), 1);
        // The settings of the store apply to its own transactions only.
        let client = pool.get().await.unwrap();
        let row = client.query_one("SELECT current_setting('enable_seqscan')", &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "on");
        let connected = PostgresStore::connect(&tables.url, tables.options()).await.unwrap();
        assert_eq!(connected.load(&session()).await.unwrap().live.len(), 1);
    });
}

/// A server that accepts no writes is unavailable for them: it acts like a standby, or like a server during its
/// replacement.
#[test]
fn a_server_that_takes_no_writes_is_unavailable_to_them() {
    let Some(tables) = tables() else { return };
    let before = tables.open();
    fill(&before, 3);
    commit(&before, &record(0, 3, &[(0, 0)])).unwrap();
    let url = format!("{}&options=-c%20default_transaction_read_only%3Don", tables.url);
    // If the tables exist already, an open does not write.
    let store = PostgresStore::open_with(&url, tables.options().with_remote(once())).unwrap();
    let takes_none = |error: StoreError| {
        assert_eq!(error.kind(), Unavailable, "{error}");
        assert!(error.to_string().contains("takes no writes"), "{error}");
    };
    takes_none(append(&store, "more", 3, &[user(3)]).unwrap_err());
    takes_none(commit(&store, &record(1, 3, &[(1, 1)])).unwrap_err());
    takes_none(uncompact(&store, 1).unwrap_err());
    takes_none(prune(&store, 1).unwrap_err());
    takes_none(block_on(store.delete(&session())).unwrap_err());
    assert_eq!(keys(&store), [1, 2]);
    tables.forget();
    let error = PostgresStore::open_with(&url, tables.options().with_remote(once())).unwrap_err();
    takes_none(error);
}

#[test]
fn one_lost_connection_takes_the_idle_ones_along() {
    let Some(tables) = tables() else { return };
    fill(&tables.open(), 3);
    let line = Line::to(&tables.url);
    let options = tables.options().with_remote(once());
    let store = PostgresStore::open_with(&line.url, options).unwrap();
    let id = session();
    let all = || block_on(futures::future::join_all((0..6).map(|_| store.load(&id))));
    assert!(all().iter().all(Result::is_ok));
    assert!(line.connections() >= 3, "they are used at once");
    // The server behind these connections has ended without a notice.
    line.cut();
    fails(block_on(store.load(&id)), Unavailable);
    assert!(all().iter().all(Result::is_ok), "the others were given up too");
}
