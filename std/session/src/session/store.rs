//! Sessions in files.

#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tracing::{Instrument, debug_span};

use super::{AgentSession, SessionError, SessionErrorKind};
use crate::history::SessionId;
use crate::history::files::{self, hex};

/// Stores whole sessions: their ids, their state, and the histories that they keep themselves. Histories in a
/// [`HistoryStore`](crate::history::HistoryStore) are not included.
///
/// Each session has a file of its own: `ROOT/sessions/session-1.json` for the session `session-1`. An id that is no
/// plain name (lower-case letters, digits, `-` and `_`, at most 128 of them) has a file whose name ends in its digest.
///
/// A file has the text of [`AgentSession::to_json`], with a last field `sha256`: the checksum of all before it. A file
/// with a wrong checksum, or without JSON, is moved aside on loading, to `session-1.json.corrupt-1`, so that it can be
/// examined and a new session can begin. These files stay where they are: JSON that is no session, a session of a kind
/// that this release does not know, and a session without a checksum, as an older release wrote it.
///
/// ```
/// use epitome_std::session::{AgentSession, FileSessionStore};
///
/// # let folder = std::env::temp_dir().join(format!("epitome-doc-{}", std::process::id()));
/// # futures::executor::block_on(async {
/// let store = FileSessionStore::new(&folder);
/// store.save(&AgentSession::with_id("session-1")).await?;
/// assert!(folder.join("sessions/session-1.json").exists());
/// assert_eq!(store.load(&store.list().await?[0]).await?.session_id().as_str(), "session-1");
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
///
/// *Durability*: a saved session survives a crash of the program and of the machine, if the disk keeps the data that it
/// has confirmed.
///
/// *Concurrency*: any number of handles and processes. Files are read and written on threads of their own, under any
/// executor. A loaded session is a copy: its changes are stored when it is saved. If two callers save one session, the
/// last save wins as a whole: run one session in one place at a time.
///
/// *Cancel safety*: dropping a future leaves the whole old or the whole new session.
#[derive(Debug, Clone)]
pub struct FileSessionStore {
    folder: PathBuf,
}

/// Suffix of a session's file name.
const END: &str = ".json";

impl FileSessionStore {
    /// Sessions under `root`. The folder is made when the first is saved.
    #[must_use]
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self { folder: root.as_ref().join("sessions") }
    }

    /// The file of a session.
    #[must_use]
    pub fn path(&self, id: &SessionId) -> PathBuf {
        self.folder.join(format!("{}{END}", files::file_stem(id.as_str())))
    }

    /// Stores a session, in place of the stored session with its id.
    ///
    /// # Errors
    /// As [`AgentSession::to_dict`]; `Unavailable` if it cannot be written now.
    pub async fn save(&self, session: &AgentSession) -> Result<(), SessionError> {
        let (path, text) = (self.path(session.session_id()), with_sum(&session.to_json()?)?);
        let span = debug_span!("save_session", session = session.session_id().as_str(), bytes = text.len());
        files::off_thread(move || files::replace(&path, &text))
            .instrument(span)
            .await
            .flatten()
            .map_err(|error| failed("save", error))
    }

    /// Loads a session.
    ///
    /// # Errors
    /// `NotFound` if the session is not stored; `Corrupt` if the file is not UTF-8 or not JSON, does not match its
    /// checksum, or holds another session; `Invalid` if its JSON is no session that this release knows, or has no
    /// checksum; `Unavailable` if the file cannot be read now.
    pub async fn load(&self, id: &SessionId) -> Result<AgentSession, SessionError> {
        let (path, span) = (self.path(id), debug_span!("load_session", session = id.as_str()));
        let session = files::off_thread(move || load(&path)).instrument(span).await;
        let session = session.map_err(|error| failed("load", error))??;
        if session.session_id() == id {
            return Ok(session);
        }
        Err(SessionError::new(
            SessionErrorKind::Corrupt,
            format!("load: {} holds another session than its name says", self.path(id).display()),
        ))
    }

    /// Deletes a session. Returns whether there was one.
    ///
    /// # Errors
    /// `Unavailable` if that cannot be done now.
    pub async fn delete(&self, id: &SessionId) -> Result<bool, SessionError> {
        let (path, folder) = (self.path(id), self.folder.clone());
        let delete = move || match fs::remove_file(path) {
            Ok(()) => files::sync_folder(&folder).map(|()| true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        files::off_thread(delete).await.flatten().map_err(|error| failed("delete", error))
    }

    /// The ids of all sessions that can be read, in order.
    ///
    /// # Errors
    /// `Unavailable` if they cannot be listed now.
    pub async fn list(&self) -> Result<Vec<SessionId>, SessionError> {
        let folder = self.folder.clone();
        files::off_thread(move || list(&folder)).await.flatten().map_err(|error| failed("list", error))
    }
}

fn failed(what: &str, error: io::Error) -> SessionError {
    SessionError::new(SessionErrorKind::Unavailable, format!("{what}: the session's file")).with_source(error)
}

fn load(path: &Path) -> Result<AgentSession, SessionError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(SessionError::new(SessionErrorKind::NotFound, "load: no such session"));
        }
        Err(error) => return Err(failed("load", error)),
    };
    let read = match core::str::from_utf8(&bytes) {
        Ok(text) => read(path, text),
        Err(_) => Err(SessionError::new(SessionErrorKind::Corrupt, "the session is not UTF-8")),
    };
    match read {
        Err(error) if error.kind() == SessionErrorKind::Corrupt => Err(quarantine(path, error)),
        read => read,
    }
}

fn read(path: &Path, text: &str) -> Result<AgentSession, SessionError> {
    if let Some((body, said)) = split_sum(text) {
        // The closing brace stands after the checksum in the file.
        let body = format!("{body}}}");
        if sum(&body) != said {
            return Err(SessionError::new(
                SessionErrorKind::Corrupt,
                "the session is not what its checksum says",
            ));
        }
        return AgentSession::from_json(&body);
    }
    AgentSession::from_json(text)?;
    let path = path.display();
    let why = format!(
        "load: {path} has no checksum: an older version wrote it, or something else; if it is as it should be, read it with \
         AgentSession::from_json and save that"
    );
    Err(SessionError::new(SessionErrorKind::Invalid, why))
}

/// Text before a checksum, and text between the checksum and the end.
const SUM: &str = ",\"sha256\":\"";
const SUM_END: &str = "\"}";

/// `text`, an object, with its checksum as the last field.
fn with_sum(text: &str) -> Result<String, SessionError> {
    let body = text.strip_suffix('}');
    let body =
        body.ok_or_else(|| SessionError::new(SessionErrorKind::Invalid, "save: the session is no object"))?;
    Ok([body, SUM, &sum(text), SUM_END].concat())
}

/// The text before a checksum, without its last brace, and the checksum; `None` if there is none.
fn split_sum(text: &str) -> Option<(&str, &str)> {
    let (body, said) = text.strip_suffix(SUM_END)?.rsplit_once(SUM)?;
    (said.len() == 64).then_some((body, said))
}

fn sum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Moves a file that cannot be read aside.
fn quarantine(path: &Path, why: SessionError) -> SessionError {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let asides = (1_u32..).map(|number| path.with_file_name(format!("{name}.corrupt-{number}")));
    let Some(aside) = { asides }.find(|aside| !aside.exists()) else { return why };
    let what = match fs::rename(path, &aside) {
        Ok(()) => format!("the session's file cannot be read and is now {}", aside.display()),
        Err(_) => format!("the session's file {} cannot be read", path.display()),
    };
    tracing::warn!(file = %aside.display(), "a session's file cannot be read");
    SessionError::new(SessionErrorKind::Corrupt, what).with_source(why)
}

/// The ids are read from the files, because not every file name is an id.
fn list(folder: &Path) -> io::Result<Vec<SessionId>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(END)) else { continue };
        if !stem.starts_with('~') {
            ids.extend((files::file_stem(stem) == stem).then(|| SessionId::new(stem)));
            continue;
        }
        let Ok(text) = fs::read_to_string(folder.join(&name)) else { continue };
        let value = serde_json::from_str::<Value>(&text).unwrap_or_default();
        let id = value.get("session_id").and_then(Value::as_str);
        ids.extend(id.filter(|id| files::file_stem(id) == stem).map(SessionId::new));
    }
    ids.sort_unstable();
    Ok(ids)
}
