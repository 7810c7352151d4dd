//! The sessions of agents in the user's home; [`AGENTS`] has their places. Threads of sub-agents in files of their own
//! (`agent-ID.jsonl`, files in folders of sessions) are part of a session and are not listed.

mod agents;
mod latest;
mod project;

use std::env;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome::wire::Format;

use crate::failure::{Failure, Result};
use crate::progress::BinaryBytes;

use agents::{AGENTS, Agent, matches};
pub(crate) use latest::{LATEST, latest, of_id};
pub(crate) use project::{Project, Wanted};

/// Number of bytes per read.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Maximum size of a file without an outline that a list or a search reads whole. Such sessions have some megabytes;
/// reading takes three times as much memory.
pub(crate) const WHOLE_BYTES_MAX: u64 = 256 << 20;

/// Maximum length of a line in a file that a list or a search reads. The longest lines of agents have some megabytes,
/// because of images. A line is held while it is read, and a list must be ready in seconds.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 20;

/// A file that holds a session.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) agent: &'static Agent,
    pub(crate) path: PathBuf,
    /// Time of the last write.
    pub(crate) modified: SystemTime,
    pub(crate) bytes: u64,
    /// Whether it is a regular file: a pipe or a device with such a name is listed, and never opened.
    pub(crate) is_regular: bool,
}

/// The folder of an agent.
#[derive(Debug)]
pub(crate) struct Home {
    agent: &'static Agent,
    folder: PathBuf,
}

impl Home {
    /// The folders of all agents, from the environment.
    pub(crate) fn all() -> Result<Vec<Self>> {
        let user = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = |agent: &'static Agent| {
            let own = agent.variable.and_then(named);
            let folder = own.or_else(|| user.as_ref().map(|user| user.join(agent.folder)))?;
            Some(Self { agent, folder })
        };
        match AGENTS.iter().filter_map(home).collect::<Vec<_>>() {
            none if none.is_empty() => Err(Failure::input("there is no home folder to look in: set HOME")),
            homes => Ok(homes),
        }
    }
}

/// All sessions, the newest first. Folders and files that cannot be read are skipped.
pub(crate) fn find(homes: &[Home]) -> Vec<Found> {
    let mut found = Vec::new();
    for Home { agent, folder } in homes {
        for sessions in agent.sessions {
            walk(agent, folder, sessions, &mut found);
        }
    }
    // The order of sessions with equal times is fixed.
    found.sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.path.cmp(&other.path)));
    found
}

/// Opens a file of a home. The opening of a pipe without a writer would wait for ever, and a device may never end.
///
/// # Errors
///
/// Also fails if it is no regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let regular = |about: fs::Metadata| match about.is_file() {
        true => Ok(()),
        false => {
            Err(io::Error::other("not a regular file, and not opened: move it away, or give another FILE"))
        }
    };
    regular(fs::metadata(path)?)?;
    let file = File::open(path)?;
    regular(file.metadata()?)?;
    Ok(file)
}

/// Reads a whole file of a home.
///
/// # Errors
///
/// As [`open`], and if the file has more than `bytes_max` bytes.
pub(crate) fn read_whole(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let what = format!(
            "larger than {}: only a command that is given it as FILE reads it",
            BinaryBytes(bytes_max)
        );
        return Err(io::Error::other(what));
    }
    Ok(bytes)
}

/// Finds the sessions of an agent below a folder, by the rest of a pattern for their paths.
fn walk(agent: &'static Agent, folder: &Path, sessions: &str, found: &mut Vec<Found>) {
    let (pattern, below) = match sessions.split_once('/') {
        Some((pattern, below)) => (pattern, Some(below)),
        None => (sessions, None),
    };
    if !pattern.contains('*') {
        // No other entry of this folder, which may be the whole home, has to be read.
        let path = folder.join(pattern);
        match below {
            Some(below) => walk(agent, &path, below, found),
            None => found.extend(Found::at(agent, path)),
        }
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if !matches(pattern, &name) {
            continue;
        }
        match below {
            Some(below) => walk(agent, &path, below, found),
            None if agent.others.is_some_and(|others| matches(others, &name)) => {}
            None => found.extend(Found::at(agent, path)),
        }
    }
}

impl Found {
    /// The file at a path, unless it is a folder.
    fn at(agent: &'static Agent, path: PathBuf) -> Option<Self> {
        let about = fs::metadata(&path).ok().filter(|about| !about.is_dir())?;
        let (modified, bytes, is_regular) = (about.modified().ok()?, about.len(), about.is_file());
        Some(Self { agent, path, modified, bytes, is_regular })
    }

    pub(crate) const fn format(&self) -> Format {
        self.agent.format
    }

    /// The name of the agent, which is that of its format.
    pub(crate) const fn tool(&self) -> &'static str {
        self.format().as_str()
    }
}

/// Message for a list without sessions.
pub(crate) fn nothing(homes: &[Home], project: Option<&str>) -> String {
    let root = |home: &Home| home.folder.join(home.agent.root()).components().collect::<PathBuf>();
    let looked: Vec<_> = homes.iter().map(|home| root(home).display().to_string()).collect();
    let of = project.map_or_else(String::new, |project| format!(" of the project {project}"));
    let variables: Vec<_> = AGENTS.iter().filter_map(|agent| agent.variable).collect();
    format!(
        "no sessions{of} in {}; the environment variables {} say where else they are",
        looked.join(", "),
        variables.join(", ")
    )
}
