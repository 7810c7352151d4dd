//! Opening stores and the sessions in them.

use core::ops::ControlFlow;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use epitome::core::{Revision, Seq, TokenCounter};
#[cfg(feature = "sqlite")]
use epitome::history::SqliteStore;
use epitome::history::{
    History, HistoryStore, HistoryStoreExt as _, Logged, SessionId, SessionInfo, StoreError, StoreErrorKind,
    StoreKey, open_store, open_store_with_key, shown_url,
};
use futures::executor::block_on;

use super::copy::exists;
use super::key;
use crate::args::{OneSessionArgs, StoreArgs};
use crate::failure::{Failure, Result};

pub(crate) type Store = Arc<dyn HistoryStore>;
pub(super) type Counter = Arc<dyn TokenCounter + Send + Sync>;

/// Number of rows per request to a store.
pub(crate) const PAGE: u32 = 500;

/// The purpose of an opened store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To write; a missing store is created.
    Create,
    Write,
    /// To read, even if the medium cannot be written.
    Read,
}

/// The store of this URL, opened with its key if it has one.
pub(crate) fn open(args: &StoreArgs, access: Access) -> Result<Store> {
    open_with(args, key::of(args)?, access)
}

/// The store of this URL, opened with this key.
pub(super) fn open_with(args: &StoreArgs, key: Option<StoreKey>, access: Access) -> Result<Store> {
    let url = &args.store;
    let opened = || {
        let opened = match key.clone() {
            Some(key) => open_store_with_key(url, key),
            None => open_store(url),
        };
        let opened = match opened {
            Err(error) if access == Access::Read && error.to_string().contains("open it read-only") => {
                read_only(url, key).unwrap_or(Err(error))
            }
            opened => opened,
        };
        opened.map_err(|error| {
            let is_locked = error.to_string().contains("open the store with its key");
            let failure = in_store(args, error);
            if is_locked { failure.advise(HOW_KEYED) } else { failure }
        })
    };
    let kind = url.split_once(':');
    let path = match kind {
        Some(("sqlite", ":memory:")) => {
            return Err(Failure::input(
                "--store: a store in memory ends with this program; expected sqlite:PATH",
            ));
        }
        Some(("sqlite" | "jsonl", path)) => path,
        Some(("postgres" | "postgresql" | "redis" | "rediss", _)) => {
            return opened();
        }
        _ => {
            let what = match kind {
                Some(("memory", _)) => "a store in memory ends with this program".to_owned(),
                // The text after a scheme may contain a password: it is not repeated.
                Some((scheme, _)) => format!("there is no store {scheme:?}"),
                None if Path::new(url).is_dir() => {
                    format!("the store has no kind: did you mean jsonl:{url}?")
                }
                None if Path::new(url).is_file() => {
                    format!("the store has no kind: did you mean sqlite:{url}?")
                }
                None => "the store has no kind".to_owned(),
            };
            let expected = "expected sqlite:PATH, jsonl:DIR, postgres://.. or redis://HOST";
            return Err(Failure::input(format!("--store: {what}; {expected}")));
        }
    };
    if access == Access::Create || path.is_empty() {
        return opened();
    }
    let why = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("there is no {path}; `epitome session import` creates it")
        }
        // SQLite would create its tables in the empty file.
        Ok(found) if found.is_file() && found.len() == 0 => {
            format!("{path} is empty; `epitome session import` makes a store of it")
        }
        _ => return opened(),
    };
    Err(Failure::input(format!("--store: {why}")))
}

/// The store of this URL in a file that cannot be written; `None` for a store of another kind.
#[cfg(feature = "sqlite")]
fn read_only(url: &str, key: Option<StoreKey>) -> Option<core::result::Result<Store, StoreError>> {
    let path = url.strip_prefix("sqlite:")?;
    let opened = match key {
        Some(key) => SqliteStore::open_encrypted_read_only(path, key),
        None => SqliteStore::open_read_only(path),
    };
    Some(opened.map(|store| Arc::new(store) as Store))
}

#[cfg(not(feature = "sqlite"))]
fn read_only(_: &str, _: Option<StoreKey>) -> Option<core::result::Result<Store, StoreError>> {
    None
}

/// The places of a key, as text for messages.
const HOW_KEYED: &str = "--key-file FILE or the environment variable EPITOME_KEY has it";

/// A failure in the store, with the name of the store.
pub(crate) fn in_store(args: &StoreArgs, error: impl Into<Failure>) -> Failure {
    error.into().during(shown(args))
}

/// The store's name, without a password in it.
pub(crate) fn shown(args: &StoreArgs) -> String {
    match args.store.split_once(':') {
        Some(("sqlite" | "jsonl", _)) => args.store.clone(),
        _ => shown_url(&args.store),
    }
}

/// A failure of a store to create something. A conflict is an error of the command line: the thing exists already.
pub(super) fn refused(args: &StoreArgs, error: StoreError) -> Failure {
    match error.kind() {
        StoreErrorKind::Conflict => Failure::input(error.to_string()).during(shown(args)),
        _ => in_store(args, error),
    }
}

pub(super) fn id(args: &OneSessionArgs) -> SessionId {
    SessionId::new(args.session.as_str())
}

pub(super) fn no_session(args: &OneSessionArgs) -> Failure {
    let (id, store) = (&args.session, shown(&args.store));
    Failure::input(format!(
        "there is no session {id:?} in {store}; `epitome session list --store {store}` lists them"
    ))
}

/// The compaction of this revision, else the latest that is not undone. `what` is the action, for messages.
pub(super) fn compaction(
    store: &Store,
    args: &OneSessionArgs,
    revision: Option<u64>,
    what: &str,
) -> Result<Revision> {
    if let Some(revision) = revision {
        return Ok(Revision(revision));
    }
    let latest = exists(args, block_on(store.latest_compaction(&id(args))))?;
    let none = || Failure::input(format!("session {:?} has no compaction to {what}", args.session));
    Ok(latest.ok_or_else(none)?.revision)
}

/// All sessions, by name.
pub(crate) fn sessions(store: &Store, args: &StoreArgs) -> Result<Vec<SessionInfo>> {
    let mut sessions: Vec<SessionInfo> = Vec::new();
    loop {
        let after = sessions.last().map(|last| &last.id);
        let page = block_on(store.list(after, PAGE)).map_err(|error| in_store(args, error))?;
        if page.is_empty() {
            return Ok(sessions);
        }
        sessions.extend(page);
    }
}

/// An existing session.
pub(super) fn history(store: Store, args: &OneSessionArgs, counter: Counter) -> Result<History> {
    let history =
        block_on(History::open(store, id(args), counter)).map_err(|error| in_store(&args.store, error))?;
    // A session exists from its first message on.
    if history.head() == Seq(0) { Err(no_session(args)) } else { Ok(history) }
}

/// Calls `visit` with every page of an existing session's log, in order. Stops when `visit` returns
/// [`ControlFlow::Break`].
pub(crate) fn for_each_page(
    store: &Store,
    args: &OneSessionArgs,
    mut visit: impl FnMut(&[Logged]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let failed = |error: StoreError| match error.kind() {
        StoreErrorKind::NotFound => no_session(args),
        _ => in_store(&args.store, error),
    };
    let mut next = Some(Seq(0));
    while let Some(from) = next {
        let page = block_on(store.log(&id(args), from..Seq(u64::MAX), PAGE)).map_err(failed)?;
        next = page.next;
        if visit(&page.messages)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Refuses to overwrite a file of the store.
pub(crate) fn check_outside(args: &StoreArgs, output: &Path) -> Result<()> {
    match is_of_store(&args.store, output) {
        true => {
            let output = output.display();
            Err(Failure::input(format!("-o {output}: this is a file of the store: name another file")))
        }
        false => Ok(()),
    }
}

/// Whether the path is a file of the store, also through a link: the file of SQLite or one of its journals, or a file
/// in the directory of JSON lines.
fn is_of_store(url: &str, output: &Path) -> bool {
    let Some(output) = resolved(output) else { return false };
    match url.split_once(':') {
        Some(("sqlite", path)) => resolved(Path::new(path)).is_some_and(|path| {
            let is_beside = |end: &&str| {
                let mut path = path.clone().into_os_string();
                path.push(end);
                output == Path::new(&path)
            };
            ["", "-wal", "-shm", "-journal"].iter().any(is_beside)
        }),
        Some(("jsonl", path)) => fs::canonicalize(path).is_ok_and(|folder| output.starts_with(folder)),
        _ => false,
    }
}

/// The path with its links resolved, even if the file does not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(path).ok().or_else(|| Some(fs::canonicalize(folder).ok()?.join(path.file_name()?)))
}
