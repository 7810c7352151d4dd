//! Rows as values, and values as rows.

use epitome_core::attribution::SeqRange;
use epitome_core::{Basis, Head, Revision, Seq, Tokens, Turn};
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::{Failure, corrupt};
use super::sql;
use crate::history::{Entry, Live, SessionId, SessionInfo, StoreError, TokenCount};
use crate::message::Str;
use crate::wire::stored;

/// A number as SQLite keeps it. What does not fit is larger than any number that a session can have.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number in a column; one that is negative is out of range.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let stored: i64 = row.get(column)?;
    u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stored))
}

/// A row of `sessions`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionRow {
    pub(super) id: i64,
    pub(super) head: Head,
    pub(super) revision: Revision,
    pub(super) live_messages: u64,
    pub(super) live_tokens: u64,
}

impl SessionRow {
    pub(super) fn find(connection: &Connection, name: &SessionId) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(sql::SESSION)?
            .query_row([name.as_str().as_bytes()], |row| {
                Ok(Self {
                    id: row.get(0)?,
                    head: Seq(number(row, 1)?),
                    revision: Revision(number(row, 2)?),
                    live_messages: number(row, 3)?,
                    live_tokens: number(row, 4)?,
                })
            })
            .optional()
    }

    pub(super) fn create(connection: &Connection, name: &SessionId) -> rusqlite::Result<Self> {
        let id = connection.prepare_cached(sql::NEW_SESSION)?.insert([name.as_str().as_bytes()])?;
        Ok(Self { id, head: Seq(0), revision: Revision(0), live_messages: 0, live_tokens: 0 })
    }

    pub(super) fn save(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.prepare_cached(sql::MOVE_SESSION)?.execute((
            self.id,
            int(self.head.0),
            int(self.revision.0),
            int(self.live_messages),
            int(self.live_tokens),
        ))?;
        Ok(())
    }
}

/// A row of a list of sessions.
pub(super) fn session_info(row: &Row<'_>) -> Result<SessionInfo, Failure> {
    let name = String::from_utf8(row.get(0)?).map_err(|_| corrupt("list: a session's name is no text"))?;
    let mut info = SessionInfo::new(SessionId::new(name));
    info.head = Seq(number(row, 1)?);
    info.revision = Revision(number(row, 2)?);
    info.live_messages = number(row, 3)?;
    info.live_tokens = number(row, 4)?;
    Ok(info)
}

/// A message as it is stored: decoded by whoever asked, not by the thread that serves everyone.
#[derive(Debug)]
pub(super) struct MessageRow {
    pub(super) key: Seq,
    pub(super) hidden_by: Option<Revision>,
    anchor: Seq,
    turn: Turn,
    tokens: Tokens,
    basis: String,
    counter: String,
    late: bool,
    orphan: bool,
    body: Option<String>,
    /// What a summary covers; `None` for a message.
    covers: Option<String>,
}

impl MessageRow {
    /// A row of one of the statements that read messages or summaries.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let hidden_by = row.get::<_, Option<i64>>(8)?.map(|_| number(row, 8)).transpose()?;
        Ok(Self {
            key: Seq(number(row, 0)?),
            hidden_by: hidden_by.map(Revision),
            anchor: Seq(number(row, 1)?),
            turn: Turn(row.get(2)?),
            tokens: Tokens(row.get(3)?),
            basis: row.get(4)?,
            counter: row.get(5)?,
            late: row.get(6)?,
            orphan: row.get(7)?,
            body: row.get(9)?,
            covers: row.get(10)?,
        })
    }

    pub(super) fn into_live(self) -> Result<Live, StoreError> {
        let (key, covered) = (self.key, self.covers.as_deref().map(covers).transpose()?);
        let entry = self.into_entry()?;
        Ok(match covered {
            Some(covers) => Live::summary(key, entry, covers),
            None => Live::new(key, entry),
        })
    }

    pub(super) fn into_entry(self) -> Result<Entry, StoreError> {
        let place = self.key;
        let body = self.body.ok_or_else(|| corrupt(format!("the text of message {place} is missing")))?;
        let message = stored::decode(&body)
            .map_err(|error| corrupt(format!("message {place} cannot be read")).with_source(error))?;
        let count = count(self.tokens, &self.basis, self.counter)?;
        let mut entry = Entry::new(message, self.anchor, self.turn, count);
        entry.late = self.late;
        entry.orphan = self.orphan;
        Ok(entry)
    }
}

/// A stored count.
pub(super) fn count(tokens: Tokens, word: &str, counter: String) -> Result<TokenCount, StoreError> {
    let basis = basis(word).ok_or_else(|| corrupt("the count of a message is of an unknown kind"))?;
    Ok(TokenCount::new(tokens, basis, Str::from(counter)))
}

/// What a stored summary covers: `[[first,last],..]`.
pub(super) fn covers(text: &str) -> Result<Vec<SeqRange>, StoreError> {
    let pairs: Vec<[u64; 2]> =
        serde_json::from_str(text).map_err(|_| corrupt("the coverage of a summary cannot be read"))?;
    Ok(pairs.into_iter().map(|[first, last]| SeqRange { first: Seq(first), last: Seq(last) }).collect())
}

fn basis(word: &str) -> Option<Basis> {
    [Basis::Estimated, Basis::Counted, Basis::Reported].into_iter().find(|basis| basis.as_str() == word)
}
