//! The rows of the index of words, and their maintenance. The index refers to texts by their ids.
//!
//! An encrypted file has no index, because an index would contain the words in plain text.

use epitome_history::rules::corrupt;
use epitome_history::words::{Block, Indexed, blocks, damaged, left_of_row, places_in_row, torn};
use epitome_history::{StoreErrorKind, stored};
use epitome_message::Message;
use epitome_message::search::{Postings, Term};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row};

use super::failure::Failure;
use super::row::rows;
use super::sql;

#[cfg(test)]
mod tests;

/// The id of the text that was written last.
pub(super) fn last_text(connection: &Connection) -> Result<i64, Failure> {
    let found = rows(connection, sql::LAST_TEXT, [], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    let last = found.into_iter().flatten().max().unwrap_or_default();
    match (0..LAST_MAX).contains(&last) {
        true => Ok(last),
        false => Err(corrupt("the ids of the messages are damaged; restore the file from a backup").into()),
    }
}

/// More than the number of texts of any file.
const LAST_MAX: i64 = 1 << 48;

/// The mark of the messages of a session.
pub(super) fn session_mark(session: i64) -> Term {
    Term::mark("session", &session.to_string())
}

/// Indexes a block if `id` is its last text. Damage of the index, or of a text, does not prevent writes of messages.
pub(super) fn written(connection: &Connection, id: i64) -> Result<(), Failure> {
    let Some(block) = Block::ended_by(id) else { return Ok(()) };
    keep(connection, block, of_texts(connection, block, |_| false)?)?;
    Block::wide_ended_by(id).map_or(Ok(()), |wide| widen(connection, wide))
}

/// The terms of the texts of a block, without the texts for which `is_gone` is true. A text that cannot be read has no
/// terms here: a reader of the message gets the error.
pub(super) fn of_texts(
    connection: &Connection,
    block: Block,
    is_gone: impl Fn(u32) -> bool,
) -> Result<Postings, Failure> {
    let mut indexed = Indexed::new();
    let mut statement = connection.prepare_cached(sql::TEXTS)?;
    let mut texts = statement.query((block.first, block.end()))?;
    while let Some(row) = texts.next()? {
        let (number, session, seq) =
            (block.place(row.get(0)?)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?);
        let Some(message) = decoded(row, 3)?.filter(|_| !is_gone(number)) else { continue };
        if indexed.add(number, &message) {
            indexed.postings.mark(number, session_mark(session));
        }
        if Indexed::<Group>::has_tools(&message) {
            let mut anchor = connection.prepare_cached(sql::ANCHOR)?;
            let anchor = anchor.query_row((session, seq), |row| row.get::<_, i64>(0)).optional();
            // A damaged row has no known group.
            let anchor = anchor.ok().flatten().unwrap_or(seq);
            indexed.add_tools(number, &message, (session, anchor), (seq, anchor));
        }
    }
    let mut statement = connection.prepare_cached(sql::EARLIER_IN_GROUP)?;
    for ((session, anchor), last) in indexed.missing() {
        let mut texts = statement.query((session, anchor, last))?;
        while let Some(row) = texts.next()? {
            if let Some(message) = decoded(row, 1)? {
                indexed.add_calls(&message, (session, anchor), row.get(0)?);
            }
        }
    }
    Ok(indexed.finish())
}

/// A group: its session, and its first message.
type Group = (i64, i64);

/// The message of a row, if it can be read.
fn decoded(row: &Row<'_>, column: usize) -> Result<Option<Message>, Failure> {
    Ok(row.get_ref(column)?.as_str().ok().and_then(|text| stored::decode(text).ok()))
}

/// Merges all smaller blocks within a block. If one of them is damaged, indexes the texts again.
fn widen(connection: &Connection, wide: Block) -> Result<(), Failure> {
    let merged = match merged(connection, wide) {
        Err(failure) if is_damage(&failure) => of_texts(connection, wide, |_| false)?,
        merged => merged?,
    };
    connection.prepare_cached(sql::DROP_WORDS)?.execute((wide.first, wide.end() - 1))?;
    keep(connection, wide, merged)
}

fn merged(connection: &Connection, wide: Block) -> Result<Postings, Failure> {
    let mut postings = Postings::new();
    let mut statement = connection.prepare_cached(sql::WORDS)?;
    let mut found = statement.query((wide.first, wide.end() - 1))?;
    while let Some(row) = found.next()? {
        let moved = wide.place(row.get(0)?)?;
        postings
            .add_row(row.get_ref(2)?.as_blob().map_err(|_| damaged())?, moved, |_| false)
            .map_err(torn)?;
    }
    Ok(postings)
}

fn keep(connection: &Connection, block: Block, postings: Postings) -> Result<(), Failure> {
    let mut insert = connection.prepare_cached(sql::NEW_WORDS)?;
    for (term, row) in postings.into_rows() {
        insert.execute((block.first, block.span, term.0, row))?;
    }
    Ok(())
}

/// Removes the terms of these texts from the index.
pub(super) fn forget(connection: &Connection, mut ids: Vec<i64>) -> Result<(), Failure> {
    let last = last_text(connection)?;
    ids.sort_unstable();
    for gone in ids.chunk_by(|one, other| Block::of(*one, last) == Block::of(*other, last)) {
        let Some(block) = gone.first().and_then(|id| Block::of(*id, last)) else { continue };
        let is_gone = |number: u32| gone.binary_search(&(block.first + i64::from(number))).is_ok();
        match forget_in(connection, block, is_gone) {
            // A damaged block is indexed again.
            Err(failure) if is_damage(&failure) => {
                let left = of_texts(connection, block, is_gone)?;
                connection.prepare_cached(sql::DROP_WORDS)?.execute((block.first, block.first))?;
                keep(connection, block, left)?;
            }
            done => done?,
        }
    }
    Ok(())
}

/// Rewrites the rows of a block that contain one of these texts.
fn forget_in(connection: &Connection, block: Block, is_gone: impl Fn(u32) -> bool) -> Result<(), Failure> {
    let row = |row: &Row<'_>| Ok((row.get::<_, u32>(1)?, row.get::<_, Vec<u8>>(2)?));
    for (term, bytes) in rows(connection, sql::WORDS, (block.first, block.first), row)? {
        if let Some(left) = left_of_row(&bytes, &is_gone)? {
            let mut update = connection.prepare_cached(sql::MOVE_WORDS)?;
            update.execute((block.first, block.span, term, left))?;
        }
    }
    Ok(())
}

/// The places of the texts of a block that have a term, ascending.
pub(super) fn find(connection: &Connection, block: Block, term: Term) -> Result<Vec<u32>, Failure> {
    let of_row = |row: &Row<'_>| {
        let bytes = row.get_ref(0)?.as_blob().map_err(|_| damaged())?;
        Ok(places_in_row(bytes, term)?)
    };
    let found = rows(connection, sql::WORD, (block.first, block.span, term.0), of_row);
    let found = found.map_err(|failure| if is_damage(&failure) { damaged().into() } else { failure })?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// Rebuilds the index.
pub(super) fn rebuild(connection: &Connection) -> Result<(), Failure> {
    let last = last_text(connection)?;
    connection.prepare_cached(sql::DROP_WORDS)?.execute((0, last))?;
    let (blocks, _) = blocks(last);
    for block in blocks {
        keep(connection, block, of_texts(connection, block, |_| false)?)?;
    }
    Ok(())
}

/// Whether a failure is a damaged row, which fails only the statement that read it. After any other failure the
/// transaction may have ended.
fn is_damage(failure: &Failure) -> bool {
    match failure {
        Failure::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::Unknown),
        Failure::Store(error) => error.kind() == StoreErrorKind::Corrupt,
    }
}
