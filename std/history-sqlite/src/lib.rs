//! A store in one SQLite file.
//!
//! This crate reads the facts of an operation and writes its changes. `epitome-history` makes the decisions.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod facts;
mod failure;
mod open;
mod read;
mod row;
mod schema;
mod search;
mod session;
mod sql;
mod sums;
#[cfg(test)]
mod tests;
mod transaction;
mod words;
mod worker;

use core::fmt;
use core::ops::Range;
use std::path::Path;

use epitome_core::{Revision, Seq};
#[cfg(feature = "encryption")]
use epitome_history::StoreKey;
use epitome_history::bodies::RowTexts;
use epitome_history::encryption::Vault;
use epitome_history::kernel::{Extent, Op, OwnedOp, Reply, Tables, run_now, scan};
use epitome_history::rows::StoredRecord;
use epitome_history::{
    AppendToken, Appended, Committed, FoundMessage, KeptState, Loaded, LogPage, LogSearch, LoggedAppend,
    Pruned, SessionId, SessionInfo, StoreError,
};
use rusqlite::Connection;
use uuid::Uuid;

use self::failure::Failure;
use self::open::Opened;
use self::session::Session;
use self::transaction::SessionTransaction;
use self::worker::{Access, Worker};

/// Keeps sessions in one SQLite file, on any executor.
///
/// ```
/// use epitome_core::{Basis, Seq, Tokens, Turn};
/// use epitome_history::{Append, AppendToken, Entry, HistoryStore, SessionId, TokenCount};
/// use epitome_message::Message;
/// use epitome_sqlite::SqliteStore;
///
/// # futures::executor::block_on(async {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("history.db");
/// let session = SessionId::new("demo");
/// let count = TokenCount::new(Tokens(3), Basis::Estimated, "default".into());
/// let entry = Entry::new(Message::user("Hello"), Seq(0), Turn(1), count);
/// let token = AppendToken::new("first");
/// SqliteStore::open(&path)?.append(&session, &Append::new(&token, Seq(0), &[entry])).await?;
///
/// let reopened = SqliteStore::open(&path)?;
/// assert_eq!(reopened.load(&session).await?.live.len(), 1);
/// # Ok::<(), epitome_history::StoreError>(())
/// # }).unwrap();
/// ```
///
/// One thread owns the connection and runs one job after another; reads wait behind writes. Appends and commits that
/// wait at the same time share a transaction, and with it one write to the disk. A refused one fails alone. If the
/// transaction cannot begin or end (the file is locked, the disk is full), all its operations fail, and waiting reads
/// do not. At most 4,096 jobs wait, including jobs whose callers have dropped their futures. One more is `Unavailable`.
///
/// *Concurrency*: several stores, also in several processes, may have one file open. A store that finds the file locked
/// waits for up to 15 seconds, and then returns `Unavailable`. The file must not be on a network file system. On Unix
/// the store detects that its open file was removed or replaced: every operation is `Unavailable` from then on.
///
/// *Cancel safety*: if a future is dropped before its job was sent, nothing happens. If it is dropped later, the job is
/// done and its answer is lost.
///
/// *Durability*: an acknowledged write survives the end of the process. It also survives a loss of power, as far as the
/// drive flushes its caches correctly: WAL mode with `synchronous = FULL` writes the log to the disk before the
/// acknowledgement. A pruned or deleted text is overwritten in the file (`secure_delete`); the write-ahead log and the
/// drive itself may still have copies. The file keeps its size, and later messages use the space;
/// [`vacuum`](epitome_history::HistoryStore::vacuum) makes it smaller.
///
/// *Damage*: every row has a checksum, which each statement that reads the row checks. A read returns the written
/// content, or `Corrupt`. `verify` finds a record or a prune whose whole row is lost.
///
/// *Dropping* the store: the jobs that were sent are still done, then the thread closes the file and ends. Dropping
/// blocks until then, for as long as the last write takes.
pub struct SqliteStore {
    worker: Worker,
    access: Access,
    vault: Vault,
    /// The file's own id.
    file: Uuid,
}

impl SqliteStore {
    /// Opens the file at `path`, or creates it, readable by its owner only. Blocks the calling thread.
    ///
    /// # Errors
    /// `Invalid` if the file is a directory, another program's database, or written by another version; `Corrupt` if it
    /// is not a database; `Unavailable` if it cannot be created or written, or another process keeps it locked.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_in(path.as_ref(), Vault::Plain)
    }

    /// Opens the file as [`SqliteStore::open`] does, with texts that are encrypted with `key`. `docs/encryption.md`
    /// lists the content that stays plain: the names of sessions, the tokens of appends, and all numbers.
    ///
    /// ```
    /// use epitome_history::StoreKey;
    /// use epitome_sqlite::SqliteStore;
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("history.db");
    /// let key = StoreKey::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")?;
    /// SqliteStore::open_encrypted(&path, key)?;
    /// assert!(SqliteStore::open(&path).is_err());
    /// # Ok::<(), epitome_history::StoreError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`SqliteStore::open`]. `Invalid` if the file is plain, or encrypted with another key. To encrypt a
    /// plain file, open it without a key and copy its sessions into a new encrypted store.
    #[cfg(feature = "encryption")]
    pub fn open_encrypted(path: impl AsRef<Path>, key: StoreKey) -> Result<Self, StoreError> {
        Self::open_in(path.as_ref(), Vault::Keyed(key))
    }

    fn open_in(path: &Path, vault: Vault) -> Result<Self, StoreError> {
        let opened = open::open(path, &vault)?;
        Self::start(opened, Access::Write, vault)
    }

    fn start(opened: Opened, access: Access, vault: Vault) -> Result<Self, StoreError> {
        let Opened { connection, file, place } = opened;
        Ok(Self { worker: Worker::start(connection, place)?, access, vault, file })
    }

    /// Opens the file at `path` to load, list and read logs. This works even if the file and its directory cannot be
    /// written. An operation that would change the file is `Unavailable`. Blocks the calling thread.
    ///
    /// # Errors
    /// The errors of [`SqliteStore::open`]; `Unavailable` if there is no file, `Invalid` if it is empty.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::start(open::open_read_only(path.as_ref(), &Vault::Plain)?, Access::Read, Vault::Plain)
    }

    /// Opens the file as [`SqliteStore::open_read_only`] does, with texts that are encrypted with `key`.
    ///
    /// # Errors
    /// The errors of [`SqliteStore::open_read_only`]; `Invalid` if the file is plain, or encrypted with another key.
    #[cfg(feature = "encryption")]
    pub fn open_encrypted_read_only(path: impl AsRef<Path>, key: StoreKey) -> Result<Self, StoreError> {
        let vault = Vault::Keyed(key);
        Self::start(open::open_read_only(path.as_ref(), &vault)?, Access::Read, vault)
    }

    /// Opens a store in memory, which is lost when it is dropped. [`MemoryStore`](epitome_history::MemoryStore) is
    /// cheaper.
    ///
    /// # Errors
    /// `Unavailable` if the thread cannot be started.
    pub fn open_in_memory() -> Result<Self, StoreError> {
        Self::start(open::open_in_memory()?, Access::Write, Vault::Plain)
    }
}

impl SqliteStore {
    fn session(&self, name: &SessionId) -> Session {
        Session::new(name.clone(), &self.vault, self.file)
    }

    fn writable(&self, operation: &str) -> Result<(), StoreError> {
        match self.access {
            Access::Write | Access::Alone => Ok(()),
            Access::Read => {
                Err(failure::unavailable(format!("{operation}: the store is open for reading only")))
            }
        }
    }

    /// Reads a session on the worker thread.
    async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        session: &SessionId,
        read: impl FnOnce(&Connection, &Session) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let session = self.session(session);
        self.worker.call(operation, Access::Read, move |connection| read(connection, &session)).await
    }
}

/// Writes the file again without its free pages. Returns whether it is smaller now. While other connections read the
/// log, the file becomes smaller only when the last of them has ended.
fn vacuum(connection: &Connection) -> Result<bool, Failure> {
    connection.execute_batch("VACUUM")?;
    // Readers may take an unlimited time, so this does not wait for them.
    open::without_waiting(|| {
        let busy =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))?;
        Ok(!busy)
    })
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Tables for SqliteStore {
    async fn execute(&self, session: &SessionId, op: Op<'_>) -> Result<Reply, StoreError> {
        self.writable(op.name())?;
        let session = self.session(session);
        let texts = session.close_texts(&op, RowTexts::of(&op)?)?;
        let (operation, op) = (op.name(), OwnedOp::of(op));
        let run = move |connection: &Connection| {
            let (session, texts) = (&session, &texts);
            run_now(&op.as_op(), &mut SessionTransaction { connection, session, texts, row: None })
        };
        self.worker.call(operation, Access::Write, run).await
    }

    async fn load(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        let load = match extent {
            Extent::All => read::load,
            Extent::LastTurn => read::tail,
        };
        self.read("load", session, load).await?.into_loaded()
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        let token = token.clone();
        let find = move |connection: &_, session: &_| read::appended(connection, session, &token);
        self.read("appended", session, find).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        let log = move |connection: &_, session: &_| read::log(connection, session, &range, limit);
        self.read("log", session, log).await?.into_page()
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        let records = move |connection: &_, session: &_| read::records(connection, session, after, limit);
        let stored = self.read("records", session, records).await?;
        stored.into_iter().map(StoredRecord::into_committed).collect()
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        let list = move |connection: &_, session: &_| read::prunes(connection, session, after, limit);
        self.read("prunes", session, list).await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        let list = move |connection: &_, session: &_| read::appends(connection, session, from, limit);
        self.read("appends", session, list).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        self.read("state", session, read::state).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let after = after.cloned();
        let list = move |connection: &_| read::list(connection, after.as_ref(), limit);
        self.worker.call("list", Access::Read, list).await
    }

    async fn search(&self, search: &LogSearch) -> Result<Vec<FoundMessage>, StoreError> {
        if self.vault.is_plain() {
            let (search, file) = (search.clone(), self.file);
            let by_index = move |connection: &_| {
                let open = |name: &SessionId| Session::new(name.clone(), &Vault::Plain, file);
                search::search(connection, &search, &open)
            };
            if let Some(found) = self.worker.call("search", Access::Read, by_index).await? {
                return Ok(found);
            }
        }
        scan(self, search).await
    }

    async fn reindex(&self) -> Result<(), StoreError> {
        self.writable("reindex")?;
        if !self.vault.is_plain() {
            return Ok(());
        }
        self.worker.call("reindex", Access::Write, words::rebuild).await
    }

    async fn vacuum(&self) -> Result<bool, StoreError> {
        self.writable("vacuum")?;
        self.worker.call("vacuum", Access::Alone, vacuum).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.writable("delete")?;
        let session = session.clone();
        self.worker.call("delete", Access::Write, move |connection| read::delete(connection, &session)).await
    }
}
