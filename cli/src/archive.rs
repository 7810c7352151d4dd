//! The sessions for searches and reading: those that agents left in the user's home, or those of a store.

use core::ops::ControlFlow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::BufReader;
use std::path::Path;
use std::time::SystemTime;

use epitome::core::Seq;
use epitome::history::{SessionId, SessionInfo};
use epitome::message::Message;
use epitome::wire::document::utf8;
use epitome::wire::{ReadOptions, SessionLines, WireErrorKind, read};
use futures::executor::block_on;

use crate::args::{ScopeArgs, StoreArgs};
use crate::commands::session::store::{Access, PAGE, Store, open, sessions, shown};
use crate::commands::sessions::rfc3339;
use crate::failure::{Failure, Result, code};
use crate::sessions::{
    self, BUFFER_BYTES, Found, Home, LINE_BYTES_MAX, Project, WHOLE_BYTES_MAX, Wanted, find, nothing,
};

/// All sessions, the newest first; those of a store in the order of their ids.
pub(crate) struct Archive {
    pub(crate) sessions: Vec<Session>,
    store: Option<Store>,
}

/// A session of the archive.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Home {
        found: Found,
        project: String,
    },
    Stored {
        /// Number of appended messages.
        messages: u64,
        /// The reason that the session cannot be read.
        damage: Option<String>,
    },
}

impl Archive {
    /// Opens the store of `scope`. Without a store, finds the sessions in the home folders of agents.
    ///
    /// # Errors
    ///
    /// Also fails if there is no session.
    pub(crate) fn open(scope: &ScopeArgs) -> Result<Self> {
        match scope.store() {
            Some(store) => Self::of_store(&store),
            None => Self::of_homes(scope.project.as_deref()),
        }
    }

    fn of_homes(project: Option<&str>) -> Result<Self> {
        let homes = Home::all()?;
        let wanted = project.map(Wanted::named);
        let found = find(&homes).into_iter().filter(|found| found.is_regular);
        let found = found.map(|found| (Project::of(&found), found));
        let found = found.filter(|(project, _)| wanted.as_ref().is_none_or(|wanted| wanted.is(project)));
        let sessions = found.map(|(Project { folder, id }, found)| {
            let place = Place::Home { found, project: folder };
            Session { id, place }
        });
        let mut sessions: Vec<_> = sessions.collect();
        // A session that continues in a second file has the same id in both files. Sessions with equal ids are renamed:
        // to the name of the file, or to its path if the name is not unique either.
        let names: [fn(&Path) -> Option<&OsStr>; 2] = [Path::file_stem, |path| Some(path.as_os_str())];
        for name in names {
            rename_repeated(&mut sessions, name);
        }
        match sessions.is_empty() {
            true => Err(Failure::new(code::VIOLATIONS, nothing(&homes, project))),
            false => Ok(Self { sessions, store: None }),
        }
    }

    fn of_store(args: &StoreArgs) -> Result<Self> {
        let store = open(args, Access::Read)?;
        let session = |info: SessionInfo| Session {
            id: info.id.as_str().to_owned(),
            place: Place::Stored { messages: info.head.0, damage: info.damage },
        };
        let sessions: Vec<_> = sessions(&store, args)?.into_iter().map(session).collect();
        match sessions.is_empty() {
            true => Err(Failure::new(code::VIOLATIONS, format!("{}: no sessions", shown(args)))),
            false => Ok(Self { sessions, store: Some(store) }),
        }
    }

    /// The store, if the sessions are those of a store.
    pub(crate) const fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// The session with this id, or the only session whose id begins with `wanted`.
    pub(crate) fn named(&self, wanted: &str) -> Result<&Session> {
        if let Some(session) = self.sessions.iter().find(|session| session.id == wanted) {
            return Ok(session);
        }
        let begins = |session: &&Session| !wanted.is_empty() && session.id.starts_with(wanted);
        let found: Vec<_> = self.sessions.iter().filter(begins).collect();
        match found.as_slice() {
            [only] => Ok(only),
            [] => Err(Failure::input(format!("there is no session {wanted:?} here; a search names them"))),
            [one, other, ..] => Err(Failure::input(format!(
                "several sessions begin with {wanted:?}, {:?} and {:?} among them: give more of the id",
                one.id, other.id
            ))),
        }
    }

    /// Calls `visit` with the number of each message and the message, from the number `first` on. The order is that of
    /// the log or of the file. Branches, side chains and messages from before a compaction are included. Stops when
    /// `visit` returns [`ControlFlow::Break`].
    ///
    /// Returns the number of lines that could not be read, for example the last line of a session that an agent is
    /// writing.
    pub(crate) fn for_each(
        &self,
        session: &Session,
        first: u64,
        visit: &mut dyn FnMut(u64, Message) -> Result<ControlFlow<()>>,
    ) -> Result<u64> {
        match (&session.place, &self.store) {
            (Place::Home { found, .. }, _) => for_each_in_file(found, &mut |number, message| {
                if number < first { Ok(ControlFlow::Continue(())) } else { visit(number, message) }
            }),
            (Place::Stored { .. }, Some(store)) => for_each_stored(store, &session.id, Seq(first), visit),
            (Place::Stored { .. }, None) => Ok(0),
        }
    }
}

impl Session {
    /// Description of a session in a file, besides its id: its agent, its project, the day of the last write.
    pub(crate) fn about(&self) -> Option<[String; 3]> {
        let Place::Home { found, project } = &self.place else { return None };
        let date = rfc3339(found.modified).get(..10).unwrap_or_default().to_owned();
        let project = if project.is_empty() { "(none)" } else { project };
        Some([found.tool().to_owned(), project.to_owned(), date])
    }

    /// The file of the session; a stored session has none.
    pub(crate) const fn file(&self) -> Option<&Found> {
        match &self.place {
            Place::Home { found, .. } => Some(found),
            Place::Stored { .. } => None,
        }
    }

    /// Number of messages appended to a stored session; 0 for a session in a file.
    pub(crate) const fn stored(&self) -> u64 {
        match self.place {
            Place::Stored { messages, .. } => messages,
            Place::Home { .. } => 0,
        }
    }

    /// The reason that the store cannot read the session.
    pub(crate) fn damage(&self) -> Option<&str> {
        match &self.place {
            Place::Stored { damage, .. } => damage.as_deref(),
            Place::Home { .. } => None,
        }
    }

    /// Whether the session was written at `time` or later; true for a stored session.
    pub(crate) fn is_since(&self, time: SystemTime) -> bool {
        self.file().is_none_or(|found| found.modified >= time)
    }
}

/// Renames each session whose id is not unique, if its file has a name.
fn rename_repeated(sessions: &mut [Session], name: impl Fn(&Path) -> Option<&OsStr>) {
    let mut counts = HashMap::<String, u64>::new();
    for session in &*sessions {
        *counts.entry(session.id.clone()).or_default() += 1;
    }
    for session in sessions {
        if let (Some(2..), Some(found)) = (counts.get(&session.id), session.file())
            && let Some(name) = name(&found.path)
        {
            session.id = name.to_string_lossy().into_owned();
        }
    }
}

fn for_each_in_file(
    found: &Found,
    visit: &mut dyn FnMut(u64, Message) -> Result<ControlFlow<()>>,
) -> Result<u64> {
    let (path, format) = (found.path.as_path(), found.format());
    let (mut number, mut unread) = (0, 0);
    let is_lines = path.extension().is_some_and(|extension| extension == "jsonl");
    if !is_lines || !SessionLines::<&[u8]>::FORMATS.contains(&format) {
        let bytes = sessions::read_whole(path, WHOLE_BYTES_MAX).map_err(|error| Failure::io(path, &error))?;
        let options = ReadOptions::default().with_from(format);
        let transcript = utf8(&bytes).and_then(|text| read(text, &options));
        let transcript = transcript.map_err(|error| Failure::wire(path, &error))?;
        for entry in transcript.conversations().iter().flat_map(|conversation| conversation.entries.iter()) {
            if visit(number, entry.message().clone())?.is_break() {
                break;
            }
            number += 1;
        }
        return Ok(0);
    }
    let file = sessions::open(path).map_err(|error| Failure::io(path, &error))?;
    let lines = SessionLines::new(BufReader::with_capacity(BUFFER_BYTES, file), format);
    let mut lines = lines.map_err(|error| Failure::wire(path, &error))?.with_line_bytes_max(LINE_BYTES_MAX);
    loop {
        match lines.next_record() {
            Ok(None) => return Ok(unread),
            Ok(Some(record)) => {
                for message in record.messages {
                    if visit(number, message)?.is_break() {
                        return Ok(unread);
                    }
                    number += 1;
                }
            }
            Err(error) if error.kind() == WireErrorKind::Io => return Err(Failure::wire(path, &error)),
            Err(_) => unread += 1,
        }
    }
}

fn for_each_stored(
    store: &Store,
    id: &str,
    first: Seq,
    visit: &mut dyn FnMut(u64, Message) -> Result<ControlFlow<()>>,
) -> Result<u64> {
    let (id, mut next) = (SessionId::new(id), Some(first));
    while let Some(from) = next {
        let page = block_on(store.log(&id, from..Seq(u64::MAX), PAGE))?;
        next = page.next;
        for logged in page.messages.into_iter().filter(|logged| logged.pruned_by.is_none()) {
            if visit(logged.seq.0, logged.entry.message)?.is_break() {
                return Ok(0);
            }
        }
    }
    Ok(0)
}
