//! Conversion of Redis's errors into errors of the store.

use core::fmt;

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

use epitome_history::{StoreError, StoreErrorKind};

/// The error of `operation`, for its caller.
///
/// It contains only the first word of the server's answer: the rest may repeat the sent text, for example a message or
/// a password.
pub(super) fn of_redis(operation: &str, error: &RedisError) -> StoreError {
    let (kind, advice) = meaning(error);
    let failed = StoreError::new(kind, format!("{operation}: {advice}"));
    match reason(error) {
        Some(reason) => failed.with_source(reason),
        None => failed,
    }
}

/// The server's full text of a refusal, for an inspection only: it may repeat the sent text.
pub(super) fn refusal(error: &RedisError) -> Option<String> {
    // If the first word is not a known code, it belongs to the sentence.
    let code = error.code()?;
    Some([code, error.detail().unwrap_or_default()].join(" "))
}

/// Whether the connection may be unusable after this error. A refused command leaves it usable, unless another
/// connection may have another login or lead to another server.
pub(super) fn spoils(error: &RedisError) -> bool {
    let is_answer = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    !is_answer || needs_another(error) || ends(error)
}

fn needs_another(error: &RedisError) -> bool {
    let codes = "NOAUTH WRONGPASS DENIED READONLY MASTERDOWN CLUSTERDOWN TRYAGAIN MOVED ASK";
    error.code().is_some_and(|code| codes.split(' ').any(|other| other == code))
}

/// Whether the server has refused the connection itself: it is closed, or was never made and does not reconnect.
fn ends(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    let is_refused =
        ["max number of clients", "Protocol error"].iter().any(|start| detail.starts_with(start));
    // A text of the client that has no kind of its own; and an old server, which does not know the greeting.
    is_refused || error.to_string().starts_with("Redis server refused") || detail.contains("HELLO")
}

fn meaning(error: &RedisError) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Corrupt, Invalid, Unavailable};
    if let Some(meaning) = error.code().and_then(meaning_of_code) {
        return meaning;
    }
    match error.kind() {
        ErrorKind::Io => (Unavailable, "the server cannot be reached, or did not answer; try again"),
        ErrorKind::AuthenticationFailed => (Invalid, REFUSED),
        ErrorKind::InvalidClientConfig | ErrorKind::Client => {
            (Invalid, "the connection cannot be made as the url says")
        }
        // The server has a maximum number of clients, and reports it without a code.
        ErrorKind::Server(ServerErrorKind::ResponseError)
            if error.detail().is_some_and(|detail| detail.starts_with("max number of clients")) =>
        {
            (Unavailable, "the server has as many clients as it takes; try again")
        }
        ErrorKind::Server(ServerErrorKind::ResponseError)
            if error.detail().is_some_and(|detail| detail.starts_with(NO_DATABASE)) =>
        {
            (Invalid, "the server has no such database; take database 0: a url that ends with `/0`")
        }
        ErrorKind::Server(ServerErrorKind::ResponseError)
            if error.detail().is_some_and(|detail| detail.starts_with("Script killed")) =>
        {
            (Unavailable, "the server's operator ended the script; try again")
        }
        ErrorKind::Server(ServerErrorKind::ResponseError)
            if error.detail().is_some_and(|detail| detail.contains(" script: ")) =>
        {
            (Corrupt, "what is stored is not what this store writes")
        }
        ErrorKind::Server(ServerErrorKind::ResponseError) => (
            Invalid,
            "the server refuses the command; Redis 7 or later is needed, and a database that there is",
        ),
        ErrorKind::Parse => (Unavailable, "what answers there is no Redis server, or was interrupted"),
        _ => (Unavailable, "Redis failed; try again"),
    }
}

/// The meaning of the first word of an answer.
fn meaning_of_code(code: &str) -> Option<(StoreErrorKind, &'static str)> {
    use StoreErrorKind::{Corrupt, Invalid, Unavailable};
    Some(match code {
        "WRONGPASS" | "NOAUTH" => (Invalid, REFUSED),
        "NOPERM" => {
            (Invalid, "the server's user may not do that; give it what the documentation of keys lists")
        }
        "WRONGTYPE" => (Corrupt, "a key holds something of another type: another program uses this prefix"),
        "DAMAGED" => (Corrupt, LOST),
        "READONLY" => (Unavailable, "the server is a replica, which takes no writes; try again"),
        "LOADING" => (Unavailable, "the server is still loading its data; try again"),
        "OOM" => (Unavailable, "the server's memory is full; make room and try again"),
        "MISCONF" => (Unavailable, "the server cannot write to its disk; make room and try again"),
        "BUSY" => (Unavailable, "the server is busy with a script; try again"),
        "NOREPLICAS" => (Unavailable, "too few replicas are there to write; try again"),
        "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" => {
            (Unavailable, "the servers are being rearranged; try again")
        }
        "MOVED" | "ASK" | "CROSSSLOT" => {
            (Invalid, "the server is one of a cluster; connect to it as to a cluster")
        }
        _ => return None,
    })
}

/// Beginning of the server's text if it refuses a database. The connection is then not made.
const NO_DATABASE: &str = "DB index is out of range";

const REFUSED: &str = "the server refuses this name and password";

/// Redis may be configured to drop keys when it runs out of memory.
pub(super) const LOST: &str =
    "keys of the session are lost; is the server set to evict keys, or was one deleted by hand?";

/// The reason of a failure, without text of the server.
#[derive(Debug)]
struct Reason(String);

fn reason(error: &RedisError) -> Option<Reason> {
    let word = match error.code() {
        Some(code) if is_code(code) => code,
        _ if error.is_timeout() => "no answer in time",
        _ if error.is_connection_refusal() => "connection refused",
        _ if error.is_connection_dropped() => "connection lost",
        _ => return None,
    };
    Some(Reason(word.to_owned()))
}

/// Whether this is a code of the server, and not a part of a text that it repeats.
fn is_code(code: &str) -> bool {
    code.len() <= CODE_BYTES_MAX && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Maximum length of a code in bytes. The longest known code has eleven letters.
const CODE_BYTES_MAX: usize = 16;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Reason {}

#[cfg(test)]
mod tests {
    use redis::{ServerError, Value, parse_redis_value};

    use super::*;

    fn answer(line: &str) -> RedisError {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        let Value::ServerError(error) = value else { panic!("{value:?}") };
        ServerError::into(error)
    }

    #[test]
    fn a_refused_command_leaves_the_connection_and_a_refused_connection_does_not() {
        for line in [
            "ERR unknown command 'FT.SEARCH', with args beginning with: 'x'",
            "ERR syntax error",
            "Syntax error at offset 12 near x",
            "Unknown index name",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "NOPERM this user has no permissions",
            "LOADING Redis is loading the dataset in memory",
            "OOM command not allowed",
            "BUSY Redis is busy running a script",
            "DAMAGED x",
        ] {
            assert!(!spoils(&answer(line)), "{line}");
        }
        for line in [
            "NOAUTH Authentication required.",
            "WRONGPASS invalid username-password pair",
            "READONLY You can't write against a read only replica.",
            "MASTERDOWN Link with MASTER is down",
            "CLUSTERDOWN The cluster is down",
            "MOVED 1 127.0.0.1:7",
            "DENIED Redis is running in protected mode",
            "ERR max number of clients reached",
            "ERR unknown command 'HELLO', with args beginning with: '3'",
        ] {
            assert!(spoils(&answer(line)), "{line}");
        }
        let response = ErrorKind::Server(ServerErrorKind::ResponseError);
        for error in [
            (response, "Redis server refused to switch database", "LOADING".to_owned()).into(),
            (ErrorKind::Io, "lost").into(),
            (ErrorKind::Parse, "no answer of Redis").into(),
            (ErrorKind::AuthenticationFailed, "Password authentication failed").into(),
        ] {
            assert!(spoils(&error), "{error}");
        }
    }
}
