//! Conversion of SQLite's errors into errors of the store.

use rusqlite::ErrorCode;

use epitome_history::{StoreError, StoreErrorKind};

/// The cause of a failed operation: SQLite, or a rule of the store.
#[derive(Debug)]
pub(super) enum Failure {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
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
            Self::Sqlite(error) => of_sqlite(operation, &error),
        }
    }
}

fn of_sqlite(operation: &str, error: &rusqlite::Error) -> StoreError {
    let code = error.sqlite_error().copied();
    let (kind, advice) = meaning(code.map(|code| code.code));
    let failed = StoreError::new(kind, format!("{operation}: {advice}"));
    // The source is SQLite's error code only: a conversion error contains the value, which may be a text.
    match code {
        Some(code) => failed.with_source(code),
        None => failed,
    }
}

fn meaning(code: Option<ErrorCode>) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Corrupt, Invalid, Unavailable};
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (Unavailable, "another program is writing to the file; try again")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => (
            Unavailable,
            "the file or its directory cannot be written; make both writable, or open it read-only",
        ),
        Some(ErrorCode::DiskFull) => (Unavailable, "the disk is full; make room and try again"),
        Some(ErrorCode::TooBig) => (Invalid, "a text is longer than SQLite stores"),
        Some(ErrorCode::NotADatabase) => {
            (Corrupt, "the file is no SQLite database, or its beginning is damaged")
        }
        // A failed constraint, or a missing table or type: another program has written to the file.
        None
        | Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::Unknown,
        ) => (Corrupt, "the file is damaged; restore it from a backup"),
        Some(_) => (Unavailable, "SQLite failed; try again"),
    }
}

pub(super) fn unavailable(context: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, context)
}
