//! The sessions that agents have left in the user's home.
//!
//! Where they are is known from the agents themselves: Claude Code writes `projects/FOLDER/ID.jsonl` under `~/.claude`
//! (`CLAUDE_CONFIG_DIR`), Codex `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl` under `~/.codex` (`CODEX_HOME`), Gemini CLI
//! `tmp/PROJECT/chats/session-TIME-ID.json`, and since 0.39 `.jsonl`, under `~/.gemini` (in `GEMINI_CLI_HOME`). Threads of
//! sub-agents that have files of their own (`agent-ID.jsonl`, files in folders of sessions) are part of a session and not
//! listed.

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

pub(crate) use latest::{LATEST, latest};
pub(crate) use project::{Project, Wanted};

/// How much of a file is read at a time.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// How large a file may be that has no outline and is read whole for a list or a search. Sessions of Gemini CLI have some megabytes; what
/// is read takes three times as much memory.
pub(crate) const WHOLE_BYTES_MAX: u64 = 256 << 20;

/// How long a line may be in a file that is read for a list or a search. The longest of agents have some megabytes, for images; a line is held
/// while it is read, and a list is to be there in seconds.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 20;

/// An agent that leaves sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    ClaudeCode,
    Codex,
    GeminiCli,
}

/// A file that holds a session.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) tool: Tool,
    pub(crate) path: PathBuf,
    /// When it was last written.
    pub(crate) modified: SystemTime,
    pub(crate) bytes: u64,
    /// Whether it is a regular file: a pipe or a device of that name is listed, and never opened.
    pub(crate) is_regular: bool,
}

/// Where an agent keeps its files.
#[derive(Debug)]
pub(crate) struct Home {
    tool: Tool,
    /// The folder that has the sessions somewhere below it.
    pub(crate) root: PathBuf,
}

impl Tool {
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::ClaudeCode => Format::ClaudeCode,
            Self::Codex => Format::Codex,
            Self::GeminiCli => Format::GeminiCli,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        self.format().as_str()
    }

    /// The folders between its root and a session: any of this depth, but for names that are given.
    const fn folders(self) -> &'static [Option<&'static str>] {
        match self {
            Self::ClaudeCode => &[None],
            Self::Codex => &[None, None, None],
            Self::GeminiCli => &[None, Some("chats")],
        }
    }

    /// Whether a file of this name is a session.
    fn has(self, name: &str) -> bool {
        match self {
            Self::ClaudeCode => name.ends_with(".jsonl") && !name.starts_with("agent-"),
            Self::Codex => name.starts_with("rollout-") && name.ends_with(".jsonl"),
            Self::GeminiCli => {
                name.starts_with("session-") && (name.ends_with(".json") || name.ends_with(".jsonl"))
            }
        }
    }
}

impl Home {
    /// Of all agents, by the environment.
    pub(crate) fn all() -> Result<Vec<Self>> {
        let user = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let of =
            |own: Option<PathBuf>, below: &str| own.or_else(|| user.as_ref().map(|user| user.join(below)));
        let gemini = named("GEMINI_CLI_HOME").or_else(|| user.clone());
        let homes = [
            (Tool::ClaudeCode, of(named("CLAUDE_CONFIG_DIR"), ".claude"), "projects"),
            (Tool::Codex, of(named("CODEX_HOME"), ".codex"), "sessions"),
            (Tool::GeminiCli, gemini.map(|home| home.join(".gemini")), "tmp"),
        ];
        let homes =
            homes.into_iter().filter_map(|(tool, home, root)| Some(Self { tool, root: home?.join(root) }));
        match homes.collect::<Vec<_>>() {
            none if none.is_empty() => Err(Failure::input("there is no home folder to look in: set HOME")),
            homes => Ok(homes),
        }
    }
}

/// All sessions, the newest first; what cannot be looked into is passed over.
pub(crate) fn find(homes: &[Home]) -> Vec<Found> {
    let mut found = Vec::new();
    for Home { tool, root } in homes {
        walk(*tool, root, tool.folders(), &mut found);
    }
    // Of two that were written at once, always the same is the first.
    found.sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.path.cmp(&other.path)));
    found
}

/// Opens a file of a home. To open a pipe that nobody writes to would wait for ever, and a device may never end.
///
/// # Errors
/// Also where it is no regular file.
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

/// All of a file of a home that is read whole.
///
/// # Errors
/// As [`open`], and where it has more than `bytes_max` bytes.
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

fn walk(tool: Tool, folder: &Path, below: &[Option<&str>], found: &mut Vec<Found>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        match below {
            [wanted, below @ ..] => {
                if wanted.is_none_or(|wanted| wanted == name) {
                    walk(tool, &path, below, found);
                }
            }
            [] => {
                let about = fs::metadata(&path).ok().filter(|about| tool.has(&name) && !about.is_dir());
                let about =
                    about.and_then(|about| Some((about.modified().ok()?, about.len(), about.is_file())));
                if let Some((modified, bytes, is_regular)) = about {
                    found.push(Found { tool, path, modified, bytes, is_regular });
                }
            }
        }
    }
}

/// What to say where there is nothing.
pub(crate) fn nothing(homes: &[Home], project: Option<&str>) -> String {
    let looked: Vec<_> = homes.iter().map(|home| home.root.display().to_string()).collect();
    let of = project.map_or_else(String::new, |project| format!(" of the project {project}"));
    format!(
        "no sessions{of} in {}; CLAUDE_CONFIG_DIR, CODEX_HOME and GEMINI_CLI_HOME say where else they are",
        looked.join(", ")
    )
}
