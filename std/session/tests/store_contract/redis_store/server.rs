//! The servers of the tests.

use core::time::Duration;
use std::sync::{Arc, mpsc};

use async_trait::async_trait;
use epitome_conformance::{Subject, Suite};
use epitome_core::{Basis, Seq, Tokens, Turn};
use epitome_std::history::{
    Append, AppendToken, Appended, Entry, HistoryStore, RedisOptions, RedisStore, SessionId, StoreError,
    TokenCount,
};
use epitome_std::message::Message;
use futures::executor::block_on;
use uuid::Uuid;

use crate::remote::patient;

/// The URL of the test server; `None`, after a message of the test, if there is no server.
pub(crate) fn url() -> Option<String> {
    variable("EPITOME_TEST_REDIS")
}

pub(crate) fn variable(name: &str) -> Option<String> {
    let value = |name: &str| std::env::var_os(name)?.into_string().ok();
    let found = value(name);
    if found.is_none() {
        let required = value("EPITOME_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|word| word == "redis"),
            "{name} names no server, and one is required"
        );
        eprintln!("skipped: {name} names no server; tests/servers.sh starts one");
    }
    found
}

/// A suite with as many series of operations as `EPITOME_CASES` requests. The server waits for its disk at each of
/// them.
pub(crate) fn suite() -> Suite {
    let cases = std::env::var_os("EPITOME_CASES").and_then(|cases| cases.to_str()?.parse().ok());
    Suite::new().with_cases(cases.unwrap_or(40))
}

/// Options of a store whose keys begin with `prefix`.
pub(crate) fn options(prefix: impl Into<String>) -> RedisOptions {
    RedisOptions::default().with_prefix(prefix).with_remote(patient())
}

/// Keys on a server that no other test has. They are deleted at the end.
pub(crate) struct Room {
    pub(crate) url: String,
    pub(crate) prefix: String,
}

impl Room {
    pub(crate) fn new() -> Option<Self> {
        Some(Self { url: url()?, prefix: format!("epitome-test-{}", Uuid::new_v4().simple()) })
    }

    pub(crate) fn options(&self) -> RedisOptions {
        options(&self.prefix)
    }

    pub(crate) fn store(&self) -> RedisStore {
        RedisStore::open(&self.url, self.options()).unwrap()
    }

    /// A second connection.
    pub(crate) fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url.as_str()).unwrap().get_connection().unwrap()
    }

    /// The names of all keys.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut connection = self.connection();
        let mut keys: Vec<String> =
            redis::cmd("KEYS").arg(format!("{}*", self.prefix)).query(&mut connection).unwrap();
        keys.sort();
        keys
    }

    /// The key of this kind of the session `s`.
    pub(crate) fn key(&self, kind: &str) -> String {
        self.keys().into_iter().find(|key| key.ends_with(&format!(":{kind}:s"))).unwrap()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let keys = self.keys();
        if !keys.is_empty() {
            redis::cmd("UNLINK").arg(keys).exec(&mut self.connection()).unwrap();
        }
    }
}

/// A prefix of keys for each place.
#[async_trait]
impl Subject for Room {
    async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
        let options = options(format!("{}:{place}", self.prefix));
        Ok(Arc::new(RedisStore::open(&self.url, options)?))
    }

    fn is_apart(&self) -> bool {
        true
    }
}

/// Waits for this time.
pub(crate) fn pause(time: Duration) {
    let (_sender, nothing) = mpsc::channel::<()>();
    let _ = nothing.recv_timeout(time);
}

pub(crate) fn session() -> SessionId {
    SessionId::new("s")
}

pub(crate) fn user(seq: u64) -> Entry {
    let count = TokenCount::new(Tokens(10), Basis::Estimated, "test".into());
    Entry::new(Message::user(format!("question {seq}")), Seq(seq), Turn(1), count)
}

pub(crate) fn append(store: &dyn HistoryStore, token: &str, head: u64) -> Result<Appended, StoreError> {
    block_on(store.append(&session(), &Append::new(&AppendToken::new(token), Seq(head), &[user(head)])))
}

/// Appends messages until the head is `head`.
pub(crate) fn fill(store: &dyn HistoryStore, head: u64) {
    let entries: Vec<Entry> = (0..head).map(user).collect();
    block_on(store.append(&session(), &Append::new(&AppendToken::new("fill"), Seq(0), &entries))).unwrap();
}
