//! Checksums of rows: SQLite has none, and would return damaged bytes as valid.
//!
//! `row_sum(..)` computes the checksum of a row's columns, for a statement that writes the row. `intact(sum, ..)` is
//! true if the checksum is right, and fails the statement if not. Both are functions of this program only. Other tools
//! can read the file without them, but rows that they write are detected as damaged.

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};

/// The columns of a table that its checksum covers: all except the checksum itself and a session's own number.
macro_rules! columns {
    (sessions, $of:literal) => {
        concat!(
            $of,
            "name, ",
            $of,
            "head, ",
            $of,
            "revision, ",
            $of,
            "live_messages, ",
            $of,
            "live_tokens, ",
            $of,
            "created, ",
            $of,
            "appended, ",
            $of,
            "unanswered"
        )
    };
    (messages, $of:literal) => {
        concat!(
            $of,
            "session, ",
            $of,
            "seq, ",
            $of,
            "anchor, ",
            $of,
            "turn, ",
            $of,
            "tokens, ",
            $of,
            "basis, ",
            $of,
            "counter, ",
            $of,
            "late, ",
            $of,
            "orphan, ",
            $of,
            "hidden_by, ",
            $of,
            "pruned_by, ",
            $of,
            "standing"
        )
    };
    (bodies, $of:literal) => {
        concat!($of, "session, ", $of, "seq, ", $of, "body, ", $of, "part_tokens")
    };
    (words, $of:literal) => {
        concat!($of, "first, ", $of, "span, ", $of, "term, ", $of, "body")
    };
    (edits, $of:literal) => {
        concat!(
            $of,
            "session, ",
            $of,
            "seq, ",
            $of,
            "revision, ",
            $of,
            "tokens, ",
            $of,
            "basis, ",
            $of,
            "counter, ",
            $of,
            "stand_ins"
        )
    };
    (summaries, $of:literal) => {
        concat!(
            $of,
            "session, ",
            $of,
            "revision, ",
            $of,
            "key, ",
            $of,
            "turn, ",
            $of,
            "tokens, ",
            $of,
            "basis, ",
            $of,
            "counter, ",
            $of,
            "hidden_by, ",
            $of,
            "pruned_by, ",
            $of,
            "standing, ",
            $of,
            "covers, ",
            $of,
            "body"
        )
    };
    (unanswered, $of:literal) => {
        concat!($of, "session, ", $of, "anchor, ", $of, "ordinal, ", $of, "turn, ", $of, "id")
    };
    (tokens, $of:literal) => {
        concat!(
            $of,
            "session, ",
            $of,
            "token, ",
            $of,
            "digest, ",
            $of,
            "first, ",
            $of,
            "head, ",
            $of,
            "revision, ",
            $of,
            "time"
        )
    };
    (records, $of:literal) => {
        concat!($of, "session, ", $of, "revision, ", $of, "id, ", $of, "body, ", $of, "undone_by")
    };
    (prunes, $of:literal) => {
        concat!($of, "session, ", $of, "revision, ", $of, "through, ", $of, "messages, ", $of, "summaries")
    };
    (states, $of:literal) => {
        concat!($of, "session, ", $of, "revision, ", $of, "head, ", $of, "body")
    };
}

/// Whether a row is undamaged; the statement fails if not. `$of` is the alias of the table in the statement.
macro_rules! intact {
    ($table:ident) => {
        $crate::sums::intact!($table, "")
    };
    ($table:ident, $of:literal) => {
        concat!("intact(", $of, "sum, ", $crate::sums::columns!($table, $of), ")")
    };
}

pub(super) use {columns, intact};

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("row_sum", -1, flags, |row| Ok(sum(row, 0)))?;
    connection.create_scalar_function("intact", -1, flags, |row| match row.get_raw(0) {
        ValueRef::Integer(stored) if stored == sum(row, 1) => Ok(true),
        // An outer join without a row.
        ValueRef::Null if (1..row.len()).all(|at| row.get_raw(at) == ValueRef::Null) => Ok(true),
        _ => Err(rusqlite::Error::UserFunctionError("a row is not as it was written".into())),
    })
}

/// The checksum of the columns from `first` on.
fn sum(row: &Context<'_>, first: usize) -> i64 {
    let mut hash = Sha256::new();
    for at in first..row.len() {
        let (kind, bytes): (u8, &[u8]) = match row.get_raw(at) {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(number) => {
                hash.update([1]);
                hash.update(number.to_le_bytes());
                continue;
            }
            ValueRef::Real(number) => {
                hash.update([2]);
                hash.update(number.to_le_bytes());
                continue;
            }
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(blob) => (4, blob),
        };
        hash.update([kind]);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
}
