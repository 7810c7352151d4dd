//! Commands to the server, and its refusals in words of this crate.

use epitome_history::{RemoteOptions, StoreError, StoreErrorKind};
use epitome_redis::{RedisClient, RedisServer};
use epitome_std::session::{SessionError, SessionErrorKind};
use redis::{Cmd, Value};

/// A server with the module for searches.
#[derive(Debug)]
pub(crate) struct Service(RedisClient);

impl Service {
    pub(crate) fn new(server: &RedisServer, remote: RemoteOptions) -> Result<Self, SessionError> {
        RedisClient::new(server, remote).map(Self).map_err(of_store)
    }

    /// The answer to this command. An index that is not there is `NotFound`, one that is there already a `Conflict`.
    pub(crate) async fn ask(&self, operation: &str, command: &Cmd) -> Result<Value, SessionError> {
        let explain = |said: &str| {
            let (kind, advice) = meaning(&said.to_ascii_lowercase())?;
            Some(StoreError::new(kind, format!("{operation}: {advice}")))
        };
        self.0.ask(operation, command, &explain).await.map_err(of_store)
    }
}

/// What a refusal of the module means, by its words in small letters; each release has others. `None` of a refusal by Redis itself.
fn meaning(said: &str) -> Option<(StoreErrorKind, &'static str)> {
    use StoreErrorKind::{Conflict, Invalid, NotFound, Unavailable};
    let has = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    // Redis itself begins with a word for the kind, other than this one.
    let is_of_module = |said: &str| {
        ["syntax", "unknown", "invalid", "bad", "property", "no such", "search_", "could not", "err "]
            .iter()
            .any(|start| said.starts_with(start))
    };
    Some(match () {
        () if said.starts_with("err unknown command") => (Invalid, NO_MODULE),
        () if has(&["no such index", "unknown index", "index not found"]) => (NotFound, "the index is gone"),
        () if has(&["index already exists"]) => (Conflict, "the index is there already"),
        () if said.starts_with("timeout") || said.starts_with("search_timeout") => {
            (Unavailable, "the search took the server longer than it may; try again")
        }
        () if said.starts_with("err max number of clients") => return None,
        () if is_of_module(said) => (Invalid, REFUSED),
        () => return None,
    })
}

const NO_MODULE: &str = "the server has no search: take Redis 8, or load RediSearch 2.10 or later into an older one (`loadmodule \
                         redisearch.so`)";

const REFUSED: &str =
    "the server's search refuses the command; Redis 8 or RediSearch 2.10 is needed, or a later one";

fn of_store(error: StoreError) -> SessionError {
    let context = format!("redis: {error}");
    SessionError::new(SessionError::from(error).kind(), context)
}

pub(crate) fn invalid(what: &str) -> SessionError {
    SessionError::new(SessionErrorKind::Invalid, format!("redis: {what}"))
}
