//! Stores on the Postgres server of `EPITOME_TEST_POSTGRES`, each with its own tables.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};

use epitome_std::history::{PostgresOptions, PostgresStore};

use crate::remote::patient;

/// The server's URL; `None`, after a message, if there is no server.
pub(crate) fn url() -> Option<String> {
    let url = variable("EPITOME_TEST_POSTGRES").filter(|url| !url.is_empty());
    if url.is_none() {
        let required = variable("EPITOME_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name == "postgres"), "EPITOME_TEST_POSTGRES names no server");
        eprintln!("skipped: EPITOME_TEST_POSTGRES names no server; tests/servers.sh starts one");
    }
    url
}

pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}

/// A schema that no other test uses at the same time. It stays, without sessions, for the next test: the creation of
/// tables takes longer than most tests.
pub(crate) struct Tables {
    pub(crate) url: String,
    pub(crate) schema: String,
}

static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(crate) fn tables() -> Option<Tables> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let url = url()?;
    if let Some(schema) = FREE.lock().unwrap().pop() {
        return Some(Tables { url, schema });
    }
    alone(&url);
    let schema = format!("epitome test {}", NUMBER.fetch_add(1, Ordering::Relaxed));
    execute(&url, &format!("DROP SCHEMA IF EXISTS \"{schema}\" CASCADE"));
    Some(Tables { url, schema })
}

/// Waits until no other process uses these schemas, and keeps others out until this one ends.
fn alone(url: &str) {
    static ALONE: OnceLock<()> = OnceLock::new();
    ALONE.get_or_init(|| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let url = url.to_owned();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (client, connection) =
                    tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
                let connection = tokio::spawn(connection);
                client.batch_execute("SELECT pg_advisory_lock(3748)").await.unwrap();
                ready.send(()).unwrap();
                let _ = connection.await;
            });
        });
        is_ready.recv().unwrap();
    });
}

impl Tables {
    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions::default().with_schema(&*self.schema).with_remote(patient())
    }

    /// Drops the tables with their content.
    pub(crate) fn forget(&self) {
        execute(&self.url, &format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", self.schema));
    }

    pub(crate) fn open(&self) -> PostgresStore {
        PostgresStore::open_with(&self.url, self.options()).unwrap()
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        let schema = &self.schema;
        // If a test has damaged the tables, they are created again.
        let forget = format!("DELETE FROM \"{schema}\".epitome_sessions");
        if std::thread::panicking() || !try_execute(&self.url, &forget) {
            self.forget();
        }
        FREE.lock().unwrap().push(schema.clone());
    }
}

/// Runs `sql` on a separate connection.
pub(crate) fn execute(url: &str, sql: &str) {
    assert!(try_execute(url, sql), "{sql}");
}

fn try_execute(url: &str, sql: &str) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let done = client.batch_execute(sql).await.is_ok();
        drop(client);
        connection.await.unwrap().unwrap();
        done
    })
}

/// Half a minute: without an error, the expected event occurs at once.
const ROUNDS_MAX: usize = 6_000;

/// A connection that holds a lock, and one that watches the waiting connections: within a transaction it would see no
/// changes.
pub(crate) struct Holder {
    runtime: tokio::runtime::Runtime,
    holds: tokio_postgres::Client,
    watches: tokio_postgres::Client,
}

impl Holder {
    pub(crate) fn new(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connect = || {
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                client
            })
        };
        let (holds, watches) = (connect(), connect());
        Self { runtime, holds, watches }
    }

    pub(crate) fn run(&self, sql: &str) {
        self.runtime.block_on(self.holds.batch_execute(sql)).unwrap();
    }

    /// Number of other connections whose last query names `schema` and whose state fulfils `condition`.
    fn count(&self, schema: &str, condition: &str) -> i64 {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND query LIKE '%\"' || $1 || '\"%' AND {condition}"
        );
        self.runtime.block_on(self.watches.query_one(&sql, &[&schema])).unwrap().get(0)
    }

    /// Waits until this many connections wait for a lock on these tables.
    pub(crate) fn until_waiting(&self, schema: &str, count: i64) {
        self.until(schema, "wait_event_type = 'Lock'", count);
    }

    fn until(&self, schema: &str, condition: &str, count: i64) {
        for _ in 0..ROUNDS_MAX {
            if self.count(schema, condition) == count {
                return;
            }
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(5)).await });
        }
        panic!("never were there {count} connections of which {condition}");
    }

    /// Waits until no transaction on these tables is idle.
    pub(crate) fn until_no_open_transaction(&self, schema: &str) {
        self.until(schema, "state LIKE 'idle in transaction%'", 0);
    }

    /// Ends the connections that wait for a lock on these tables.
    pub(crate) fn terminate(&self, schema: &str) {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE query LIKE '%\"' || $1 || '\"%' AND wait_event_type = 'Lock'";
        self.runtime.block_on(self.watches.execute(sql, &[&schema])).unwrap();
    }
}

/// A proxy between a store and its server, which counts the connections.
pub(crate) struct Line {
    pub(crate) url: String,
    state: Arc<LineState>,
}

#[derive(Default)]
struct LineState {
    connections: AtomicUsize,
    /// Number of cuts. An older connection ends with its next request.
    cuts: AtomicUsize,
}

impl Line {
    pub(crate) fn to(url: &str) -> Self {
        let (head, rest) = url.split_once('@').unwrap();
        let (place, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{head}@{}/{database}", listener.local_addr().unwrap());
        let (state, place) = (Arc::new(LineState::default()), place.to_owned());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&place).unwrap());
                // Data is sent at once, and not held back for more.
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || carry(from, to, || true));
                let state = Arc::clone(&shared);
                let cuts = state.cuts.load(Ordering::SeqCst);
                std::thread::spawn(move || {
                    carry(client, server, || state.cuts.load(Ordering::SeqCst) == cuts);
                });
            }
        });
        Self { url, state }
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn cut(&self) {
        self.state.cuts.fetch_add(1, Ordering::SeqCst);
    }
}

/// Forwards the data as long as `may` returns true.
fn carry(mut from: TcpStream, mut to: TcpStream, mut may: impl FnMut() -> bool) {
    let mut bytes = [0; 65_536];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 || !may() || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
