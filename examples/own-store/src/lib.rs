//! A history store over [redb](https://www.redb.org), an embedded database of ordered keys: one file, many sessions.
//!
//! It is an example of a store; `docs/adding-a-store.md` explains it step by step. The rules of a session are those of
//! [`epitome_history::kernel`]. This crate only reads and writes rows:
//!
//! - this file: the methods that read, and [`Tables::execute`], which runs one operation in one transaction;
//! - `facts.rs` and `changes.rs`: the two halves of that transaction;
//! - `row.rs`: the rows; `table.rs`: their keys, in one table of redb.

mod changes;
mod facts;
mod row;
mod table;

use core::ops::Range;
use std::path::Path;
use std::sync::Arc;

use epitome_core::{Revision, Seq};
use epitome_history::kernel::{
    Attempt, Changes, Extent, Facts, Needs, Op, Reply, Tables, Transaction, last_turn, next_page, not_found,
    run_now,
};
use epitome_history::{
    AppendToken, Appended, Committed, KeptState, Live, Loaded, LogPage, LoggedAppend, Pruned, SessionId,
    SessionInfo, StoreError,
};
use redb::{Database, ReadableDatabase, ReadableTable};

use crate::row::{
    AppendRow, CallRow, LiveRow, MessageRow, PruneRow, RecordRow, SessionRow, StateRow, SummaryRow,
};
use crate::table::{KeyRange, Kind, ROWS, Rows, SESSIONS, decoded, medium};

/// Sessions in one file of redb. A clone is another handle on the same sessions.
#[derive(Debug, Clone)]
pub struct RedbStore {
    database: Arc<Database>,
}

impl RedbStore {
    /// Opens the file at `path`, or creates it.
    ///
    /// # Errors
    /// Those of redb: `Corrupt` if the file is damaged, `Unavailable` if it cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::over(Database::create(path).map_err(medium)?)
    }

    /// Keeps the sessions in `database`.
    ///
    /// # Errors
    /// Those of redb.
    pub fn over(database: Database) -> Result<Self, StoreError> {
        let transaction = database.begin_write().map_err(medium)?;
        // A reader cannot open a table that does not exist yet.
        transaction.open_table(SESSIONS).map_err(medium)?;
        transaction.open_table(ROWS).map_err(medium)?;
        transaction.commit().map_err(medium)?;
        Ok(Self { database: Arc::new(database) })
    }

    /// Reads a session that must exist.
    fn read<T>(
        &self,
        operation: &str,
        session: &SessionId,
        read: impl FnOnce(
            &SessionRow,
            &Rows<'_, redb::ReadOnlyTable<table::Key, &'static [u8]>>,
        ) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = self.database.begin_read().map_err(medium)?;
        let sessions = transaction.open_table(SESSIONS).map_err(medium)?;
        let Some(found) = sessions.get(session.as_str()).map_err(medium)? else {
            return Err(not_found(operation));
        };
        let rows = Rows::new(session.as_str(), transaction.open_table(ROWS).map_err(medium)?);
        read(&decoded(found.value())?, &rows)
    }
}

impl Tables for RedbStore {
    async fn execute(&self, session: &SessionId, op: Op<'_>) -> Result<Reply, StoreError> {
        // One writer at a time: no other writer changes the session between the facts and the changes.
        let transaction = self.database.begin_write().map_err(medium)?;
        let reply = {
            let mut session = Writer {
                session: session.as_str(),
                sessions: transaction.open_table(SESSIONS).map_err(medium)?,
                rows: Rows::new(session.as_str(), transaction.open_table(ROWS).map_err(medium)?),
            };
            run_now(&op, &mut session)?
        };
        transaction.commit().map_err(medium)?;
        Ok(reply)
    }

    async fn load(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        self.read("load", session, |row, rows| load(row, rows, extent))
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        let found = self.read("appended", session, |_, rows| append(rows, token));
        match found {
            Err(error) if error.kind() == epitome_history::StoreErrorKind::NotFound => Ok(None),
            found => Ok(found?.map(|row| row.appended())),
        }
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        self.read("log", session, |row, rows| {
            let end = range.end.min(Seq(range.start.0.saturating_add(limit.into())));
            let page = rows.range(KeyRange::from_to(Kind::Message, range.start.0, end.0))?;
            let page = page.map(|row: Result<MessageRow, _>| row?.logged()).collect::<Result<Vec<_>, _>>()?;
            let end = Seq(range.start.0.saturating_add(page.len() as u64));
            Ok(LogPage::new(page, next_page(end, range.end, Seq(row.head))))
        })
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        self.read("records", session, |_, rows| {
            let page = rows.range(KeyRange::behind(Kind::Record, after.map(|after| after.0)))?;
            page.take(limit as usize).map(|row: Result<RecordRow, _>| row?.committed()).collect()
        })
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        self.read("prunes", session, |_, rows| {
            let page = rows.range(KeyRange::behind(Kind::Prune, after.map(|after| after.0)))?;
            page.take(limit as usize).map(|row: Result<PruneRow, _>| Ok(row?.pruned())).collect()
        })
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        // The key of an append is its head, so the append that contains `from` is the first one after it.
        self.read("appends", session, |_, rows| {
            let page = rows.range(KeyRange::behind(Kind::Append, Some(from.0)))?;
            page.take(limit as usize).map(|row: Result<AppendRow, _>| Ok(row?.logged())).collect()
        })
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        self.read("state", session, |_, rows| {
            Ok(rows.get(&Kind::State.key([]))?.map(|row: StateRow| row.kept()))
        })
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let transaction = self.database.begin_read().map_err(medium)?;
        let sessions = transaction.open_table(SESSIONS).map_err(medium)?;
        let page = sessions.range(after.map_or("", SessionId::as_str)..).map_err(medium)?;
        let page = page.map(|found| {
            let (name, row) = found.map_err(medium)?;
            decoded::<SessionRow>(row.value()).map(|row| row.info(SessionId::new(name.value())))
        });
        let is_behind = |info: &SessionInfo| after.is_none_or(|after| info.id > *after);
        page.filter(|info| info.as_ref().map_or(true, is_behind)).take(limit as usize).collect()
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        let transaction = self.database.begin_write().map_err(medium)?;
        let was = {
            let mut sessions = transaction.open_table(SESSIONS).map_err(medium)?;
            let mut rows = Rows::new(session.as_str(), transaction.open_table(ROWS).map_err(medium)?);
            rows.clear()?;
            sessions.remove(session.as_str()).map_err(medium)?.is_some()
        };
        transaction.commit().map_err(medium)?;
        Ok(was)
    }
}

/// One session in a transaction that writes.
struct Writer<'t> {
    session: &'t str,
    sessions: redb::Table<'t, &'static str, &'static [u8]>,
    rows: Rows<'t, redb::Table<'t, table::Key, &'static [u8]>>,
}

impl Transaction for Writer<'_> {
    type Error = StoreError;

    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, StoreError> {
        let found = self.sessions.get(self.session).map_err(medium)?;
        // Without a session there are no facts: the first append creates the session.
        if let Some(found) = found {
            facts::read(&decoded(found.value())?, &self.rows, needs, facts)?;
        }
        Ok(Attempt::Done)
    }

    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, StoreError> {
        changes::write(&mut self.rows, changes)?;
        let row = serde_json::to_vec(&SessionRow::of(&changes.after)).map_err(table::unwritable)?;
        self.sessions.insert(self.session, &*row).map_err(medium)?;
        Ok(Attempt::Done)
    }
}

/// The append under `token`.
fn append<T: table::Readable>(
    rows: &Rows<'_, T>,
    token: &AppendToken,
) -> Result<Option<AppendRow>, StoreError> {
    match rows.get::<u64>(&Kind::Token.named(token.as_str()))? {
        Some(head) => rows.get(&Kind::Append.key([head])),
        None => Ok(None),
    }
}

/// Reads the rows of the visible messages. The hidden rest of the log costs nothing.
fn load<T: table::Readable>(
    row: &SessionRow,
    rows: &Rows<'_, T>,
    extent: Extent,
) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::new(Seq(row.head), Revision(row.revision));
    let from = match extent {
        Extent::All => 0,
        Extent::LastTurn => last_turn_of(rows)?.map_or(row.head, |begin| begin.0),
    };
    for place in rows.range(KeyRange::from(Kind::Live, from))? {
        loaded.live.push(live(rows, place?)?);
    }
    for call in rows.range(KeyRange::all(Kind::Call))? {
        loaded.unanswered.push(CallRow::call(call?));
    }
    Ok(loaded)
}

fn live<T: table::Readable>(rows: &Rows<'_, T>, place: LiveRow) -> Result<Live, StoreError> {
    match place.summary_of {
        Some(made) => rows.must::<SummaryRow>(&Kind::Summary.key([made, place.key]))?.live(),
        None => rows.must::<MessageRow>(&Kind::Message.key([place.key]))?.live(),
    }
}

/// The beginning of the last turn, found by a read in reverse up to the turn before.
fn last_turn_of<T: table::Readable>(rows: &Rows<'_, T>) -> Result<Option<Seq>, StoreError> {
    let (mut turn, mut newest_first) = (None, Vec::new());
    for place in rows.range::<LiveRow>(KeyRange::all(Kind::Live))?.rev() {
        let live = live(rows, place?)?;
        newest_first.push((live.key, live.entry.turn, live.entry.late));
        if !live.entry.late && *turn.get_or_insert(live.entry.turn) != live.entry.turn {
            break;
        }
    }
    Ok(last_turn(newest_first.into_iter()).map(|(begin, _)| begin))
}
