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

/// Keeps sessions in a directory, each in a file of JSON lines that is only ever added to, but for a prune, on any executor. The files are
/// documented in `docs/jsonl.md`.
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
/// *Cost*: the first operation of a handle on a session reads its file from end to end. From then on the handle knows the places of all
/// lines (some 60 bytes a message, no texts), reads only the additions of others, and loads only visible messages. It remembers up to a
/// million messages over all sessions; those that were used longest ago are forgotten, and read again. A list reads every session of its
/// page so.
///
/// *Files*: a session whose id is a plain name (lower-case letters, digits, `-` and `_`, at most 128 of them) is in a file of
/// that name; any other id has a file whose name ends in its digest. On Unix a new directory is for its owner only
/// (mode 0700), and so is every file (0600).
///
/// *Damage*: every line has a checksum. The rest of an interrupted write at the end of a file was never acknowledged; it is cut off, and
/// [`JsonlStore::cut_tails`] tells. Any other difference from the written text is `Corrupt`, with the byte where the damage begins. Whole
/// lines that are missing at the end cannot be noticed.
///
/// *Concurrency*: any number of stores, also in several processes, may have one directory open. A file is locked while it is read or
/// written; an operation on a locked file waits for as long as that takes. The directory must not lie on a network file system. Elsewhere
/// than on Unix, a session may be deleted only while no other process writes to it.
///
/// *Cancel safety*: a dropped future either has not sent its job, and nothing happens, or the job is done and its
/// answer lost.
///
/// *Durability*: an acknowledged write survives the end of the process, and with [`Fsync::Always`], the default, a loss of power, as far as
/// the drive keeps its promises.
///
/// *Dropping* it: the jobs that were sent are still done, then its thread ends, and dropping waits for that. One thread serves a store, one
/// operation after another.
pub struct JsonlStore {
    worker: Worker,
    options: JsonlOptions,
    cuts: Cuts,
    /// Whether the sessions are encrypted. An index would name the words.
    is_encrypted: bool,
}

impl JsonlStore {
    /// Opens the directory `folder`, or makes it. Blocks while it does so.
    ///
    /// # Errors
    /// `Invalid` if it is a file, or its sessions are encrypted; `Unavailable` if it cannot be made or read.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(folder, JsonlOptions::default())
    }

    /// Does what [`JsonlStore::open`] does, with options.
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
    /// As [`JsonlStore::open`].
    pub fn open_with(folder: impl AsRef<Path>, options: JsonlOptions) -> Result<Self, StoreError> {
        Self::open_in(folder.as_ref(), options, Vault::Plain)
    }

    /// Does what [`JsonlStore::open_with`] does, for sessions that are encrypted with `key`. `docs/encryption.md` lists the plain content:
    /// the names of sessions, and the number and lengths of lines.
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
    /// As [`JsonlStore::open`]. `Invalid` if the sessions there are not encrypted, or with another key: copy them from a store
    /// that is opened as they are into a new one.
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

    /// The torn ends that this store has cut off files since it was opened, oldest first: the latest thousand. Each is
    /// also an event (`tracing`, a warning).
    #[must_use]
    pub fn cut_tails(&self) -> Vec<CutTail> {
        self.cuts.list()
    }
}

impl JsonlStore {
    /// Reads a session on the thread.
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

    /// Removes the index of all sessions: the searches make it anew.
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
