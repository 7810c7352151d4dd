//! Files that a model keeps across sessions, with all their versions, in one session of a history store.

mod command;
mod path;
mod record;
mod view;

#[cfg(test)]
mod tests;

use core::fmt;
use core::slice::from_ref;
use std::collections::BTreeMap;
use std::sync::Arc;

use epitome_core::{Basis, ClassEstimator, Seq, Turn, count_message};

pub(super) use self::command::Command;
use self::command::Outcome;
pub use self::path::{FILE_BYTES_MAX, FILES_MAX, FOLDER_BYTES_MAX, PATH_BYTES_MAX};
use self::record::{Change, FolderState};
use crate::history::{
    Append, AppendToken, Entry, HistoryStore, Logged, NewState, SessionId, StateRevision, StoreError,
    StoreErrorKind, Timestamp, TokenCount,
};
use crate::session::{IdSource, SessionError, SessionErrorKind, UuidSource};

/// The files of a folder: texts by path.
type Files = BTreeMap<String, String>;

/// A folder of memory files: texts that a model keeps from session to session, with all their versions.
///
/// Use it through [`MemoryTool`](super::MemoryTool), which a model calls; an application reads and writes the same files here.
///
/// A folder is stored as one session of a store. Give it a session id that no conversation uses, for example `memory-of-alice`. Several
/// owners need several folders. The store has to implement [`save_state`](HistoryStore::save_state); all stores of this project do.
///
/// The files are the state of that session, and each change is one message of its log. If the model deletes a file, its old versions
/// stay in the log. [`retain`](crate::history::HistoryStoreExt::retain) deletes old versions and leaves the files: call it now and then,
/// because the number of versions has no limit. [`prune`](HistoryStore::prune) alone deletes versions only if they are hidden.
/// [`rewind`](crate::history::HistoryStoreExt::rewind) and [`clear`](crate::history::HistoryStoreExt::clear) do not change the files.
/// [`export`](crate::history::HistoryStoreExt::export) and [`verify`](crate::history::HistoryStoreExt::verify) work as on any session,
/// and [`delete`](HistoryStore::delete) deletes the folder. A search of the whole store finds versions of files too.
///
/// Paths begin with `/memories`. A directory exists as long as a file lies below it. Limits: [`FILE_BYTES_MAX`], [`FILES_MAX`],
/// [`FOLDER_BYTES_MAX`], [`PATH_BYTES_MAX`].
///
/// *Concurrency*: any number of folders, threads and processes may change the files of one owner. A command that loses a race is
/// decided again on the new files.
///
/// *Durability*: that of the store. The new files and the new version are stored in one step if the store overrides
/// [`append_with_state`](HistoryStore::append_with_state). In another store a crash can leave the saved files older than the log; the
/// next call adds the missing changes from the log.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_std::history::{MemoryStore, SessionId};
/// use epitome_std::memory::MemoryFolder;
///
/// # futures::executor::block_on(async {
/// let folder = MemoryFolder::new(Arc::new(MemoryStore::new()), SessionId::new("memory-of-alice"));
/// folder.write("/memories/tea.md", "green\n").await?;
/// folder.write("/memories/tea.md", "black\n").await?;
/// assert_eq!(folder.files().await?["/memories/tea.md"], "black\n");
///
/// let versions = folder.versions("/memories/tea.md").await?;
/// assert_eq!(versions.len(), 2);
/// folder.restore("/memories/tea.md", versions[0].number).await?;
/// assert_eq!(folder.files().await?["/memories/tea.md"], "green\n");
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct MemoryFolder {
    store: Arc<dyn HistoryStore>,
    owner: SessionId,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// A version of a memory file.
///
/// [`MemoryFolder::versions`] lists the versions of a file; [`MemoryFolder::read_version`] reads one of them by its number.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_std::history::{MemoryStore, SessionId, Timestamp};
/// use epitome_std::memory::MemoryFolder;
///
/// # futures::executor::block_on(async {
/// let folder = MemoryFolder::new(Arc::new(MemoryStore::new()), SessionId::new("memory-of-alice"))
///     .with_clock(|| Timestamp(1_000));
/// folder.write("/memories/tea.md", "green\n").await?;
/// let version = &folder.versions("/memories/tea.md").await?[0];
/// assert_eq!((version.bytes, version.time), (Some(6), Some(Timestamp(1_000))));
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileVersion {
    /// The number of the version: the sequence number of the change in the log of the folder. All files of a folder share one sequence,
    /// so the numbers of one file have gaps.
    pub number: Seq,
    /// The size of the file in bytes; `None` if the change deleted or moved the file.
    pub bytes: Option<usize>,
    /// The time of the change; `None` if the store does not list it.
    pub time: Option<Timestamp>,
}

/// The files at one moment.
#[derive(Default)]
struct Snapshot {
    files: Files,
    head: Seq,
    state: StateRevision,
}

/// Number of messages of the log that are read at once: each may have a text of [`FILE_BYTES_MAX`].
const PAGE: u32 = 64;

/// Maximum number of attempts of a command. An attempt fails if another writer was faster; each time another change was made.
const ATTEMPTS_MAX: u32 = 100;

impl MemoryFolder {
    /// The folder of `owner` in `store`. Nothing is read or written yet.
    #[must_use]
    pub fn new(store: Arc<dyn HistoryStore>, owner: SessionId) -> Self {
        Self { store, owner, clock: Arc::new(Timestamp::now) }
    }

    /// Sets the clock that gives the times of changes. The default is the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The session of the store that holds the folder.
    #[must_use]
    pub const fn owner(&self) -> &SessionId {
        &self.owner
    }

    /// The texts of all files, by path.
    ///
    /// # Errors
    /// `Invalid` if the store keeps no states, or if the session of the owner holds something other than memory files.
    /// `Corrupt` or `Unavailable` as the error of the store.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn files(&self) -> Result<BTreeMap<String, String>, SessionError> {
        Ok(self.snapshot().await?.files)
    }

    /// Creates the file `path`, or replaces its text.
    ///
    /// # Errors
    /// `Invalid` if the path is not the path of a file, or if a limit would be exceeded; `Conflict` if other writers
    /// change the folder again and again. Otherwise as [`MemoryFolder::files`].
    ///
    /// # Cancel safety
    /// The file is as before, or has the new text. The same call again makes another version of it.
    pub async fn write(&self, path: &str, text: &str) -> Result<(), SessionError> {
        let command = Command::Write { path: path.to_owned(), file_text: text.to_owned() };
        match self.execute(&command, None).await? {
            Ok(_) => Ok(()),
            Err(refusal) => Err(SessionError::invalid(refusal.trim_start_matches("Error: "))),
        }
    }

    /// The versions of the file `path`, oldest first. Versions whose change was pruned are not among them.
    ///
    /// *Cost*: reads the log of the folder once, page by page.
    ///
    /// # Errors
    /// As [`MemoryFolder::files`].
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn versions(&self, path: &str) -> Result<Vec<FileVersion>, SessionError> {
        let mut versions = Vec::new();
        let mut next = self.exists().await?.then_some(Seq(0));
        while let Some(first) = next {
            let page = self.store.log(&self.owner, first..Seq(u64::MAX), PAGE).await?;
            let times = match self.store.appends(&self.owner, first, PAGE).await {
                Ok(appends) => appends.into_iter().map(|it| (it.appended.first, it.time)).collect(),
                Err(error) if error.kind() == StoreErrorKind::Unsupported => BTreeMap::new(),
                Err(error) => return Err(error.into()),
            };
            for logged in page.messages.iter().filter(|logged| logged.pruned_by.is_none()) {
                let change = self.change(logged)?;
                let Some(text) = change.files.get(path) else { continue };
                let (number, bytes) = (logged.seq, text.as_ref().map(String::len));
                let time = times.get(&number).copied().flatten();
                versions.push(FileVersion { number, bytes, time });
            }
            next = page.next;
        }
        Ok(versions)
    }

    /// The text of the file `path` in the version of this number.
    ///
    /// # Errors
    /// `NotFound` if there is no such version, if it has no text because the file was deleted, or if it was pruned. Otherwise as
    /// [`MemoryFolder::files`].
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn read_version(&self, path: &str, number: Seq) -> Result<String, SessionError> {
        let none = |why: &str| {
            let context =
                format!("version {number} of a memory file: {why}; `versions` lists those that can be read");
            SessionError::new(SessionErrorKind::NotFound, context)
        };
        let logged = if self.exists().await? { self.logged(number).await? } else { None };
        let Some(logged) = logged else { return Err(none("the folder has no such change")) };
        if logged.pruned_by.is_some() {
            return Err(none("it was pruned"));
        }
        match self.change(&logged)?.files.remove(path) {
            Some(Some(text)) => Ok(text),
            Some(None) => Err(none("the file was deleted")),
            None => Err(none("that change was one of other files")),
        }
    }

    /// Restores the text that the file `path` had in the version of this number. That makes a new version.
    ///
    /// # Errors
    /// As [`MemoryFolder::read_version`] and [`MemoryFolder::write`].
    ///
    /// # Cancel safety
    /// As [`MemoryFolder::write`].
    pub async fn restore(&self, path: &str, number: Seq) -> Result<(), SessionError> {
        let text = self.read_version(path, number).await?;
        self.write(path, &text).await
    }

    /// Executes a command of a model, at most once per `token`. Both texts are for the model: the answer, or the
    /// refusal.
    pub(super) async fn execute(
        &self,
        command: &Command,
        token: Option<AppendToken>,
    ) -> Result<Result<String, String>, SessionError> {
        let may_be_known = token.is_some();
        let token = token.unwrap_or_else(|| AppendToken::new(UuidSource.new_id()));
        for _ in 0..ATTEMPTS_MAX {
            // In this order: a token that is unknown after the files were read has no change in them.
            let before = self.snapshot().await?;
            if may_be_known && let Some(answer) = self.answer_to(&token).await? {
                return Ok(Ok(answer));
            }
            let change = match command.decide(&before.files) {
                Ok(Outcome::Changed(change)) => change,
                Ok(Outcome::Shown(text)) => return Ok(Ok(text)),
                Err(refusal) => return Ok(Err(refusal)),
            };
            let error = match self.save(before, &change, &token).await {
                Ok(()) => return Ok(Ok(change.answer)),
                Err(error) => error,
            };
            // The change may be stored nevertheless: the answer was lost, or the same call was made twice at once.
            if error.kind() != SessionErrorKind::Conflict {
                return self.answer_to(&token).await.ok().flatten().map(Ok).ok_or(error);
            }
        }
        let context =
            "the memory files are changed again and again by others; nothing was changed: try again";
        Err(SessionError::new(SessionErrorKind::Conflict, context))
    }

    /// Stores a change of these files, if they are the current ones.
    async fn save(&self, before: Snapshot, change: &Change, token: &AppendToken) -> Result<(), SessionError> {
        let unwritable = |error| SessionError::invalid("memory files cannot be written").with_source(error);
        let Snapshot { mut files, head, state } = before;
        change.apply_to(&mut files);
        let text = serde_json::to_string(&FolderState::new(head.next().0, files)).map_err(unwritable)?;
        let message = change.to_message().map_err(unwritable)?;
        let tokens = count_message(&message, &ClassEstimator::new());
        let count = TokenCount::new(tokens, Basis::Estimated, ClassEstimator::NAME.into());
        // Each change is a group and a turn of its own: a retention may take any of them.
        let turn = Turn(u32::try_from(head.next().0).unwrap_or(u32::MAX));
        let entry = Entry::new(message, head, turn, count);
        let append = Append::new(token, head, from_ref(&entry)).at(Some((self.clock)()));
        // A state that is stale by now is not kept. The log has the change, and the next snapshot takes it from there.
        self.store.append_with_state(&self.owner, &append, &NewState::new(state, &text)).await?;
        Ok(())
    }

    /// The answer to the command that was executed under `token`.
    async fn answer_to(&self, token: &AppendToken) -> Result<Option<String>, SessionError> {
        let Some(appended) = self.store.appended(&self.owner, token).await? else { return Ok(None) };
        match self.logged(appended.first).await? {
            Some(logged) if logged.pruned_by.is_none() => Ok(Some(self.change(&logged)?.answer)),
            _ => Ok(Some("This command was executed before. View the file for its current text.".into())),
        }
    }

    /// The current files: the files of the state, with the changes after it.
    async fn snapshot(&self) -> Result<Snapshot, SessionError> {
        let mut now = Snapshot::default();
        let kept = match self.store.state(&self.owner).await {
            Ok(kept) => kept,
            Err(error) if error.kind() == StoreErrorKind::NotFound => return Ok(now),
            Err(error) => return Err(stateless(error)),
        };
        if let Some(kept) = kept {
            let state = FolderState::from_json(&kept.text).ok_or_else(|| self.foreign())?;
            now = Snapshot { files: state.files, head: Seq(state.head), state: kept.revision };
        }
        let mut next = Some(now.head);
        while let Some(first) = next {
            let page = self.store.log(&self.owner, first..Seq(u64::MAX), PAGE).await?;
            for logged in &page.messages {
                if logged.pruned_by.is_some() {
                    let context =
                        "memory files: the state is missing, and versions were pruned: restore a backup";
                    return Err(SessionError::new(SessionErrorKind::Corrupt, context));
                }
                self.change(logged)?.apply_to(&mut now.files);
                now.head = logged.seq.next();
            }
            next = page.next;
        }
        Ok(now)
    }

    /// Whether the folder was ever changed.
    async fn exists(&self) -> Result<bool, SessionError> {
        match self.store.state(&self.owner).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == StoreErrorKind::NotFound => Ok(false),
            Err(error) => Err(stateless(error)),
        }
    }

    async fn logged(&self, number: Seq) -> Result<Option<Logged>, SessionError> {
        Ok(self.store.log(&self.owner, number..number.next(), 1).await?.messages.pop())
    }

    fn change(&self, logged: &Logged) -> Result<Change, SessionError> {
        Change::from_message(&logged.entry.message).ok_or_else(|| self.foreign())
    }

    fn foreign(&self) -> SessionError {
        SessionError::invalid(format!(
            "the session {:?} holds something other than memory files, or files of a newer release: give the folder an owner \
             whose id no other session has",
            self.owner.as_str()
        ))
    }
}

impl fmt::Debug for MemoryFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFolder")
            .field("store", &self.store)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// The error of a store that was asked for a state.
fn stateless(error: StoreError) -> SessionError {
    match error.kind() {
        StoreErrorKind::Unsupported => {
            let context = "the store keeps no states, which memory files need: use one that does, for example `JsonlStore` \
                           or `SqliteStore`";
            SessionError::invalid(context).with_source(error)
        }
        _ => error.into(),
    }
}
