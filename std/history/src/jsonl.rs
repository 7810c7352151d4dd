//! A store in a directory, one append-only file of JSON lines per session.

mod directory;
mod failure;
mod frame;
mod index;
mod known;
mod lines;
mod options;
mod read;
mod report;
mod rewrite;
mod session;
#[cfg(test)]
mod tests;
mod undo;
mod words;
mod worker;
mod write;

use core::fmt;
use core::ops::Range;
use std::path::Path;

use epitome_core::{Revision, Seq};

use self::directory::Directory;
use self::failure::Here;
pub use self::options::{Fsync, JsonlOptions};
pub use self::report::CutTail;
use self::report::Cuts;
use self::worker::Worker;
#[cfg(feature = "encryption")]
use super::StoreKey;
use super::encryption::Vault;
use super::kernel::{Extent, Op, OwnedOp, Reply, Tables};
use super::words::search_sessions;
use super::{
    AppendToken, Appended, Committed, FoundMessage, KeptState, Loaded, LogPage, LogSearch, LoggedAppend,
    Pruned, SessionId, SessionInfo, StoreError, ext::scan,
};

/// Keeps sessions in a directory, each in a file of JSON lines. Works on any executor. Operations only add lines to a
/// file; a prune rewrites it. `docs/jsonl.md` documents the files.
///
/// ```
/// use epitome_core::{Basis, Seq, Tokens, Turn};
/// use epitome_history::{Append, AppendToken, Entry, HistoryStore, JsonlStore, SessionId, TokenCount};
/// use epitome_message::Message;
///
/// # futures::executor::block_on(async {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("history");
/// let session = SessionId::new("demo");
/// let count = TokenCount::new(Tokens(3), Basis::Estimated, "default".into());
/// let entry = Entry::new(Message::user("Hello"), Seq(0), Turn(1), count);
/// let token = AppendToken::new("first");
/// JsonlStore::open(&path)?.append(&session, &Append::new(&token, Seq(0), &[entry])).await?;
/// assert!(path.join("demo.jsonl").exists());
///
/// let reopened = JsonlStore::open(&path)?;
/// assert_eq!(reopened.load(&session).await?.live.len(), 1);
/// assert!(reopened.cut_tails().is_empty());
/// # Ok::<(), epitome_history::StoreError>(())
/// # }).unwrap();
/// ```
///
/// *Cost*: the first operation of a store on a session reads the whole file. From then on the store knows the positions
/// of all lines (some 60 bytes a message, no texts). It reads only the lines that other writers added, and loads only
/// visible messages. It remembers up to a million messages over all sessions. It forgets the sessions that were used
/// longest ago, and reads them again when needed. A list reads every session of its page in this way.
///
/// *Files*: a session whose id is a plain name (lower-case letters, digits, `-` and `_`, at most 128 of them) is in a
/// file of that name. The file name of any other id ends in the digest of the id. On Unix, only the owner may access a
/// new directory (mode 0700) and its files (0600).
///
/// *Damage*: every line has a checksum. The incomplete end of an interrupted write was never acknowledged; it is cut
/// off, and [`JsonlStore::cut_tails`] reports it. Any other difference from the written text is `Corrupt`, with the
/// byte where the damage begins. Whole lines that are missing at the end cannot be detected.
///
/// *Concurrency*: any number of stores, also in several processes, may have one directory open. A file is locked while
/// it is read or written, and an operation on a locked file waits without a limit. The directory must not be on a
/// network file system. On systems other than Unix, delete a session only while no other process writes to it.
///
/// *Cancel safety*: if a future is dropped before its job was sent, nothing happens. If it is dropped later, the job is
/// done and its answer is lost.
///
/// *Durability*: an acknowledged write survives the end of the process. With [`Fsync::Always`], the default, it also
/// survives a loss of power, as far as the drive flushes its caches correctly.
///
/// *Dropping* the store: the jobs that were sent are still done, then its thread ends. Dropping waits for the end of
/// the thread. One thread serves a store, one operation after another.
pub struct JsonlStore {
    worker: Worker,
    options: JsonlOptions,
    cuts: Cuts,
    /// Whether the sessions are encrypted. An encrypted store has no index, because an index would contain the words in
    /// plain text.
    is_encrypted: bool,
}

impl JsonlStore {
    /// Opens the directory `folder`, or creates it. Blocks the calling thread.
    ///
    /// # Errors
    /// `Invalid` if `folder` is a file, or its sessions are encrypted; `Unavailable` if it cannot be created or read.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(folder, JsonlOptions::default())
    }

    /// Opens the directory as [`JsonlStore::open`] does, with options.
    ///
    /// ```
    /// use epitome_history::{Fsync, JsonlOptions, JsonlStore};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let options = JsonlOptions::default().with_fsync(Fsync::OnCommit);
    /// let store = JsonlStore::open_with(directory.path().join("history"), options)?;
    /// # Ok::<(), epitome_history::StoreError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`JsonlStore::open`].
    pub fn open_with(folder: impl AsRef<Path>, options: JsonlOptions) -> Result<Self, StoreError> {
        Self::open_in(folder.as_ref(), options, Vault::Plain)
    }

    /// Opens the directory as [`JsonlStore::open_with`] does, for sessions that are encrypted with `key`.
    /// `docs/encryption.md` lists the content that stays plain: the names of sessions, and the number and lengths of
    /// lines.
    ///
    /// ```
    /// use epitome_history::{JsonlOptions, JsonlStore, StoreKey};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let folder = directory.path().join("history");
    /// let key = StoreKey::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")?;
    /// let store = JsonlStore::open_encrypted(&folder, JsonlOptions::default(), key)?;
    /// # Ok::<(), epitome_history::StoreError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`JsonlStore::open`]. `Invalid` if the sessions are plain, or encrypted with another key. To
    /// encrypt plain sessions, open a plain store and copy them into a new encrypted one.
    #[cfg(feature = "encryption")]
    pub fn open_encrypted(
        folder: impl AsRef<Path>,
        options: JsonlOptions,
        key: StoreKey,
    ) -> Result<Self, StoreError> {
        Self::open_in(folder.as_ref(), options, Vault::Keyed(key))
    }

    fn open_in(folder: &Path, options: JsonlOptions, vault: Vault) -> Result<Self, StoreError> {
        let (cuts, is_encrypted) = (Cuts::default(), !vault.is_plain());
        let directory = Directory::open(folder, options, vault, cuts.clone())?;
        Ok(Self { worker: Worker::start(directory)?, options, cuts, is_encrypted })
    }

    /// The incomplete ends that this store has cut off files since it was opened, oldest first: the latest thousand.
    /// Each is also an event (`tracing`, a warning).
    #[must_use]
    pub fn cut_tails(&self) -> Vec<CutTail> {
        self.cuts.list()
    }
}

impl JsonlStore {
    /// Reads a session on the worker thread.
    async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        session: &SessionId,
        read: impl FnOnce(&mut Directory, &SessionId) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let session = session.clone();
        self.worker.call(operation, move |directory| read(directory, &session)).await
    }
}

impl fmt::Debug for JsonlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonlStore").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Tables for JsonlStore {
    async fn execute(&self, session: &SessionId, op: Op<'_>) -> Result<Reply, StoreError> {
        let texts = session::texts(&op)?;
        let (operation, op) = (op.name(), OwnedOp::of(op));
        let run =
            move |directory: &mut _, session: &_| session::execute(directory, session, &op.as_op(), &texts);
        self.read(operation, session, run).await
    }

    async fn load(&self, session: &SessionId, extent: Extent) -> Result<Loaded, StoreError> {
        self.read("load", session, move |directory, session| read::load(directory, session, extent)).await
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        let token = token.clone();
        let find = move |directory: &mut _, session: &_| read::appended(directory, session, &token);
        self.read("appended", session, find).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        let log = move |directory: &mut _, session: &_| read::log(directory, session, &range, limit);
        self.read("log", session, log).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        let records = move |directory: &mut _, session: &_| read::records(directory, session, after, limit);
        self.read("records", session, records).await
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        let prunes = move |directory: &mut _, session: &_| read::prunes(directory, session, after, limit);
        self.read("prunes", session, prunes).await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        let appends = move |directory: &mut _, session: &_| read::appends(directory, session, from, limit);
        self.read("appends", session, appends).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        self.read("state", session, read::state).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let after = after.cloned();
        self.worker.call("list", move |directory| read::list(directory, after.as_ref(), limit)).await
    }

    async fn search(&self, search: &LogSearch) -> Result<Vec<FoundMessage>, StoreError> {
        if self.is_encrypted { scan(self, search).await } else { search_sessions(self, search).await }
    }

    /// Removes the indexes of all sessions. Later searches make them again.
    async fn reindex(&self) -> Result<(), StoreError> {
        let remove = |directory: &mut Directory| {
            let here = Here { operation: "reindex", path: directory.folder() };
            words::remove_all(directory.folder()).map_err(|error| here.failed(error))
        };
        self.worker.call("reindex", remove).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.read("delete", session, write::delete).await
    }
}
