//! Commands to the server, and translation of its errors into errors of this crate.

use epitome_history::{RemoteOptions, StoreError, StoreErrorKind};
use epitome_redis::{RedisClient, RedisServer};
use epitome_std::session::{SessionError, SessionErrorKind};
use redis::{Cmd, Value};

/// Connection to a server with the search module.
#[derive(Debug)]
pub(crate) struct Service(RedisClient);

impl Service {
    pub(crate) fn new(server: &RedisServer, remote: RemoteOptions) -> Result<Self, SessionError> {
        RedisClient::new(server, remote).map(Self).map_err(of_store)
    }

    /// Sends a command and returns the answer. A missing index is `NotFound`; an index that already exists is
    /// `Conflict`.
    pub(crate) async fn ask(&self, operation: &str, command: &Cmd) -> Result<Value, SessionError> {
        let explain = |said: &str| {
            let (kind, advice) = meaning(said)?;
            Some(StoreError::new(kind, format!("{operation}: {advice}")))
        };
        self.0.ask(operation, command, &explain).await.map_err(of_store)
    }
}

/// The meaning of an error of the search module, whose wording differs between releases. `None` for an error of Redis
/// itself.
fn meaning(refusal: &str) -> Option<(StoreErrorKind, &'static str)> {
    use StoreErrorKind::{Conflict, Invalid, NotFound, Unavailable};
    let said = refusal.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    let is_of_redis = ["err max number of clients", "err db index is out of range", "search_oom"]
        .iter()
        .any(|start| said.starts_with(start));
    let is_late = said.starts_with("timeout") || said.starts_with("search_timeout");
    let meanings = [
        (is_late, (Unavailable, "the search took the server longer than it may; try again")),
        (has(&["cannot create index on db != 0"]), (Invalid, OTHER_DATABASE)),
        (said.starts_with("err unknown command"), (Invalid, NO_MODULE)),
        (has(&["no such index", "unknown index", "index not found"]), (NotFound, "the index is gone")),
        (has(&["index already exists"]), (Conflict, "the index is there already")),
        (is_of_module(refusal), (Invalid, REFUSED)),
    ];
    let own = meanings.into_iter().find(|(is_meant, _)| *is_meant && !is_of_redis);
    own.map(|(_, meaning)| meaning)
}

/// Whether the error comes from the search module. An error of Redis itself begins with a code in capitals other than
/// `ERR`.
fn is_of_module(refusal: &str) -> bool {
    let begins = |start: &&str| refusal.starts_with(*start);
    let first = refusal.split_ascii_whitespace().next().unwrap_or_default();
    let is_code = first.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    !is_code || ["ERR ", "SEARCH_", "LIMIT exceeds"].iter().any(begins)
}

const OTHER_DATABASE: &str =
    "only database 0 of a server has indexes; take that: a url that ends with `/0`, or none";

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
