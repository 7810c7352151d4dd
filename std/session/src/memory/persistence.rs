//! Memories in files.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use epitome_core::message::Role;
use serde::{Deserialize, Serialize};

use super::{InMemoryStore, Memory};
use crate::history::SessionId;
use crate::history::files;
use crate::session::{SessionError, SessionErrorKind};

/// Keeps the memories of each session in a file of its own: `session-1-memory.json` for the session `session-1`. Names and
/// durability are those of [`FileSessionStore`](crate::session::FileSessionStore).
///
/// ```
/// use epitome_core::message::Role;
/// use epitome_std::history::SessionId;
/// use epitome_std::memory::{InMemoryStore, Memory, MemoryManager, MemoryPersistence};
///
/// # let root = std::env::temp_dir().join(format!("epitome-memory-doc-{}", std::process::id()));
/// # futures::executor::block_on(async {
/// let (files, session) = (MemoryPersistence::new(&root), SessionId::new("session-1"));
/// let store = InMemoryStore::default();
/// store.add(&session, "run-1", vec![Memory::new(Role::User, "I like tea.")]).await?;
/// files.save(&store, &session).await?;
/// assert!(root.join("memory/session-1-memory.json").exists());
/// assert_eq!(files.load(&InMemoryStore::default(), &session).await?, 1);
/// # std::fs::remove_dir_all(&root).unwrap();
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct MemoryPersistence {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    v: u64,
    session_id: String,
    memories: Vec<KeptMemory>,
}

/// Session of a file.
#[derive(Deserialize)]
struct Owner {
    session_id: String,
}

#[derive(Serialize, Deserialize)]
struct KeptMemory {
    /// The token under which it was stored.
    token: String,
    role: Role,
    text: String,
}

/// The version that this release writes, and the highest that it reads.
const VERSION: u64 = 1;

/// End of the name of a file.
const END: &str = "-memory.json";

impl MemoryPersistence {
    /// Files in `ROOT/memory`: beside the sessions that a file store has under the same root.
    #[must_use]
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self::in_folder(root.as_ref().join("memory"))
    }

    /// Files in this folder, for example the directory in `MEMORY_DIR`.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The file of a session.
    #[must_use]
    pub fn path(&self, session: &SessionId) -> PathBuf {
        self.folder.join(format!("{}{END}", files::file_stem(session.as_str())))
    }

    /// Writes the memories that `store` has of `session`, in place of those that were written before.
    ///
    /// # Errors
    /// `Unavailable` if they cannot be written now; the old file is then as it was.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the whole old or the whole new file.
    pub async fn save(&self, store: &InMemoryStore, session: &SessionId) -> Result<(), SessionError> {
        let mut memories = Vec::new();
        store.for_each(session, &mut |token, memory| {
            let (token, text) = (token.to_owned(), memory.text.as_str().to_owned());
            memories.push(KeptMemory { token, role: memory.role, text });
        });
        let kept = Kept { v: VERSION, session_id: session.as_str().to_owned(), memories };
        let text = serde_json::to_string(&kept);
        let text =
            text.map_err(|error| SessionError::invalid("memories cannot be written").with_source(error))?;
        let path = self.path(session);
        files::off_thread(move || files::replace(&path, &text)).await.flatten().map_err(unavailable)
    }

    /// Reads the memories of `session` into `store`. Memories that `store` has already stay. Returns the number of
    /// memories in the file: 0 if there is no file.
    ///
    /// # Errors
    /// `Corrupt` if the file is damaged or of another session; `Invalid` if a newer release has written it;
    /// `Unavailable` if it cannot be read now. The file stays as it is.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the store as it was.
    pub async fn load(&self, store: &InMemoryStore, session: &SessionId) -> Result<usize, SessionError> {
        let path = self.path(session);
        let text = match files::off_thread(move || fs::read_to_string(path)).await.flatten() {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) if error.kind() == ErrorKind::InvalidData => return Err(self.corrupt(session)),
            Err(error) => return Err(unavailable(error)),
        };
        self.take_in(store, session, &text)
    }

    /// Reads the memories of all sessions into `store`, as [`load`](Self::load) does. A file that cannot be read is left out, with a
    /// warning.
    ///
    /// # Errors
    /// `Unavailable` if the files cannot be listed now.
    pub(super) async fn load_all(&self, store: &InMemoryStore) -> Result<(), SessionError> {
        let folder = self.folder.clone();
        let texts = files::off_thread(move || texts_in(&folder)).await.flatten().map_err(unavailable)?;
        for (path, text) in texts {
            // A file whose name does not match its session is a copy.
            let owner = serde_json::from_str::<Owner>(&text).map(|owner| SessionId::new(owner.session_id));
            let owner = owner.ok().filter(|owner| self.path(owner) == path);
            if owner.and_then(|owner| self.take_in(store, &owner, &text).ok()).is_none() {
                tracing::warn!(file = %path.display(), "a file does not hold the memories of its session");
            }
        }
        Ok(())
    }

    /// Adds the memories in the text of the file of `session` to `store`.
    fn take_in(&self, store: &InMemoryStore, session: &SessionId, text: &str) -> Result<usize, SessionError> {
        let kept: Kept = serde_json::from_str(text).map_err(|_| self.corrupt(session))?;
        if kept.v > VERSION {
            return Err(SessionError::invalid(format!(
                "{} is of version {}, and this release reads up to {VERSION}: use a newer one",
                self.path(session).display(),
                kept.v
            )));
        }
        if kept.session_id != session.as_str() {
            return Err(self.corrupt(session));
        }
        let count = kept.memories.len();
        for of_token in kept.memories.chunk_by(|one, other| one.token == other.token) {
            let memories = of_token.iter().map(|kept| Memory::new(kept.role, kept.text.as_str()));
            let token = of_token.first().map_or("", |kept| &kept.token);
            store.add_now(session, token, memories.collect());
        }
        Ok(count)
    }

    fn corrupt(&self, session: &SessionId) -> SessionError {
        let path = self.path(session);
        SessionError::new(
            SessionErrorKind::Corrupt,
            format!("{} does not hold the memories of this session: restore or remove it", path.display()),
        )
    }
}

/// The files of memories in a folder, with their texts.
fn texts_in(folder: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut texts = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(END) {
            // A file that is not text has no memories.
            let path = entry.path();
            let text = fs::read_to_string(&path).unwrap_or_default();
            texts.push((path, text));
        }
    }
    Ok(texts)
}

fn unavailable(error: io::Error) -> SessionError {
    SessionError::new(SessionErrorKind::Unavailable, "the file of the memories").with_source(error)
}
