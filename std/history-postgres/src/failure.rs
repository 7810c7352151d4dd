//! Conversion of Postgres' errors into errors of the store.

use core::error::Error;
use core::fmt;
use std::io;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

use epitome_history::StoreErrorKind::{self, Corrupt, Invalid, Unavailable};
use epitome_history::rules::corrupt;
use epitome_history::{StoreError, remote};

/// The cause of a failed operation: the connection to the server, the server, or a rule of the store.
#[derive(Debug)]
pub(super) enum Failure {
    Pool(PoolError),
    Postgres(tokio_postgres::Error),
    Store(StoreError),
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        Self::Pool(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// The error for the caller of `operation`.
    pub(super) fn of(self, operation: &str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Postgres(error) => of_statement(operation, &error),
            Self::Pool(PoolError::Backend(error)) => of_connecting(operation, error),
            Self::Pool(PoolError::Timeout(TimeoutType::Wait)) => remote::unavailable(format!(
                "{operation}: all connections are in use; try again, or allow more of them"
            )),
            Self::Pool(PoolError::Timeout(_)) => {
                remote::unavailable(format!("{operation}: the server cannot be reached in time"))
            }
            Self::Pool(PoolError::Closed) => {
                remote::unavailable(format!("{operation}: the pool of connections is closed"))
            }
            Self::Pool(PoolError::NoRuntimeSpecified) => StoreError::new(
                Invalid,
                format!("{operation}: the pool has timeouts and no runtime; build it with one"),
            ),
            Self::Pool(PoolError::PostCreateHook(_)) => {
                remote::unavailable(format!("{operation}: the pool could not prepare a connection"))
            }
        }
    }

    /// Whether the connection can be reused after the transaction is rolled back.
    pub(super) fn spares_the_connection(&self) -> bool {
        match self {
            Self::Store(_) => true,
            // If a server refuses writes or shuts down, a new connection may lead to its replacement.
            Self::Postgres(error) => {
                let stays = |code: &SqlState| {
                    *code != SqlState::READ_ONLY_SQL_TRANSACTION
                        && (*code == SqlState::QUERY_CANCELED || !code.code().starts_with("57"))
                };
                error.code().is_some_and(stays) && !error.is_closed()
            }
            Self::Pool(_) => false,
        }
    }
}

fn of_connecting(operation: &str, error: tokio_postgres::Error) -> StoreError {
    if error.source().is_some_and(|source| source.is::<StoreError>()) {
        let of_password = error.into_source().and_then(|source| source.downcast::<StoreError>().ok());
        let lost = || remote::unavailable(format!("{operation}: the password cannot be had"));
        return of_password.map_or_else(lost, |error| *error);
    }
    match error.code() {
        // Poolers return this code when they have no free connection. No table was read.
        Some(code) if code.code().starts_with("XX") => {
            return remote::unavailable(format!("{operation}: the server takes no connection; try again"));
        }
        Some(code) => return of_code(operation, code),
        None => {}
    }
    let Some(cause) = io_error(&error) else {
        let advice =
            "the connection cannot be made as it is asked for: the server wants a password, or no TLS";
        return StoreError::new(Invalid, format!("{operation}: {advice}"));
    };
    if cause.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
        let advice = "the server's certificate is not trusted; name its issuer's in the options, or where the \
                      network is trusted say `sslmode=disable` in the url";
        return StoreError::new(Invalid, format!("{operation}: {advice}"));
    }
    remote::unavailable(format!("{operation}: the server cannot be reached")).with_source(Cause(cause.kind()))
}

fn of_statement(operation: &str, error: &tokio_postgres::Error) -> StoreError {
    if let Some(code) = error.code() {
        return of_code(operation, code);
    }
    match io_error(error).map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput) => {
            StoreError::new(Invalid, format!("{operation}: a text is longer than Postgres stores"))
        }
        Some(kind) => {
            remote::unavailable(format!("{operation}: the connection was lost")).with_source(Cause(kind))
        }
        None if error.is_closed() => remote::unavailable(format!("{operation}: the connection was lost")),
        // A column is missing or has an unexpected value. The error does not contain the value.
        None => corrupt(format!("{operation}: the tables hold what this store has not written")),
    }
}

fn of_code(operation: &str, code: &SqlState) -> StoreError {
    let (kind, advice) = meaning(code);
    // The source is the error code only: the server's message may contain a value of a row.
    StoreError::new(kind, format!("{operation}: {advice}")).with_source(Code(code.code().to_owned()))
}

fn meaning(code: &SqlState) -> (StoreErrorKind, &'static str) {
    match *code {
        SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME => {
            (Invalid, "the tables are missing; call `migrate`, or correct the schema and the prefix")
        }
        SqlState::UNDEFINED_COLUMN | SqlState::DUPLICATE_TABLE | SqlState::DUPLICATE_OBJECT => {
            (Invalid, "tables of these names belong to something else; choose another prefix")
        }
        SqlState::INVALID_CATALOG_NAME => {
            (Invalid, "there is no such database; create it, or correct the url")
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            (Invalid, "the user may not do this; grant it, or name another user")
        }
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            (Unavailable, "the server takes no writes; name the one that does")
        }
        SqlState::QUERY_CANCELED => (Unavailable, "it took too long, or was cancelled; try again"),
        SqlState::FEATURE_NOT_SUPPORTED | SqlState::UNDEFINED_OBJECT => {
            (Invalid, "the server is too old; Postgres 12 or newer is needed")
        }
        ref code => by_class(code.code()),
    }
}

/// The first two characters of a code are its class.
fn by_class(code: &str) -> (StoreErrorKind, &'static str) {
    match code.get(..2) {
        Some("28") => (Invalid, "the server does not let this user in; correct the user or the password"),
        Some("23" | "XX") => (Corrupt, "the tables are damaged; restore them from a backup"),
        Some("22" | "42" | "54") => (Invalid, "the server refuses the statement"),
        Some("53") => (Unavailable, "the server has no room for this; try again"),
        Some("40") => (Unavailable, "another transaction was in the way; try again"),
        _ => (Unavailable, "the server failed; try again"),
    }
}

fn io_error(error: &tokio_postgres::Error) -> Option<&io::Error> {
    error.source().and_then(|source| source.downcast_ref())
}

/// The SQLSTATE code of an error of Postgres.
#[derive(Debug)]
struct Code(String);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SQLSTATE {}", self.0)
    }
}

impl Error for Code {}

/// The kind of a socket error. Its message may contain the name of the server, and is left out.
#[derive(Debug)]
struct Cause(io::ErrorKind);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Cause {}
