//! Which project a session belongs to.

use std::env;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Found, Tool, open, read_whole};

/// What a session says of itself, at its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Project {
    /// The folder in which the agent worked; where only a name for it is known, that.
    pub(crate) folder: String,
    /// What the agent calls the session.
    pub(crate) id: String,
}

/// The project that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    folder: PathBuf,
    name: Option<String>,
    /// What Gemini CLI calls the folder of a project.
    digest: String,
}

/// How much of a file is looked at: Codex begins with its instructions, on the line that names the folder.
const HEAD_BYTES: u64 = 256 * 1024;

/// How long the path of a project may be: Linux's `PATH_MAX`, the longest of all systems.
const PATH_BYTES_MAX: u64 = 4_096;

/// The fields that lines of any agent have; Gemini's are those of its header.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    cwd: Option<String>,
    #[serde(rename = "sessionId")]
    session_id: Option<String>,
    payload: Option<Payload>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payload {
    cwd: Option<String>,
    id: Option<String>,
}

impl Project {
    /// As the beginning of the file, and the folder that it is in, say. What is not known is empty or the file's name.
    pub(crate) fn of(found: &Found) -> Self {
        let mut project = Self::default();
        for head in heads(&found.path) {
            let payload = head.payload.unwrap_or_default();
            for (field, value) in [
                (&mut project.folder, head.cwd.or(payload.cwd)),
                (&mut project.id, head.session_id.or(payload.id)),
            ] {
                if let Some(value) = value.filter(|_| field.is_empty()) {
                    *field = value;
                }
            }
            if !project.folder.is_empty() && !project.id.is_empty() {
                break;
            }
        }
        if found.tool == Tool::GeminiCli {
            project.folder = gemini(&found.path);
        }
        if project.id.is_empty() {
            project.id =
                found.path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        }
        project
    }
}

/// The whole lines at the beginning of a file that are objects; of a document the fields before its messages.
fn heads(path: &Path) -> Vec<Head> {
    let mut bytes = Vec::new();
    // A file that cannot be read is said to be so where it is read whole.
    let _ = open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<Head> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    match lines.is_empty() {
        true => text.split_once("\"messages\"").and_then(|(head, _)| before(head)).into_iter().collect(),
        false => lines,
    }
}

/// The fields of a JSON object that is cut off behind one of them.
fn before(head: &str) -> Option<Head> {
    let fields = head.trim_end().trim_end_matches(',');
    serde_json::from_str(&format!("{fields}}}")).ok()
}

/// The project of a session of Gemini CLI, `PROJECT/chats/FILE`: newer versions note its folder beside its sessions.
fn gemini(path: &Path) -> String {
    let folder = path.parent().and_then(Path::parent);
    let noted = folder.and_then(|folder| read_whole(&folder.join(".project_root"), PATH_BYTES_MAX).ok());
    let noted = noted.and_then(|noted| String::from_utf8(noted).ok());
    let name = || {
        folder.and_then(Path::file_name).map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    noted.map(|noted| noted.trim().to_owned()).filter(|noted| !noted.is_empty()).unwrap_or_else(name)
}

impl Wanted {
    /// The project that `text` names: a folder, or the last part of one.
    pub(crate) fn named(text: &str) -> Self {
        let is_name = !text.is_empty() && !text.contains(['/', '\\']) && text != "." && text != "..";
        Self::new(Path::new(text), is_name.then(|| text.to_owned()))
    }

    /// The folder that the program runs in.
    pub(crate) fn here() -> Self {
        Self::new(Path::new("."), None)
    }

    fn new(folder: &Path, name: Option<String>) -> Self {
        // A project may be gone while its sessions are still there.
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| absolute(folder));
        let digest = Sha256::digest(folder.to_string_lossy().as_bytes());
        Self { folder, name, digest: digest.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    /// Whether an agent that worked in the folder `project` worked on this.
    pub(crate) fn is(&self, project: &Project) -> bool {
        let folder = Path::new(&project.folder);
        let last = || folder.file_name().map(|name| name.to_string_lossy());
        project.folder == self.digest
            || folder.is_absolute() && folder.starts_with(&self.folder)
            || self.name.as_deref().is_some_and(|name| last().is_some_and(|last| last == name))
    }
}

/// `path` from the root, without `.` and `..`, whether it exists or not.
fn absolute(path: &Path) -> PathBuf {
    let mut whole = env::current_dir().unwrap_or_default();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            part => whole.push(part),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_a_folder_or_its_name() {
        let of = |folder: &str| Project { folder: folder.to_owned(), id: String::new() };
        let wanted = Wanted::named("/no/such/project");
        assert!(wanted.is(&of("/no/such/project")) && wanted.is(&of("/no/such/project/part")));
        assert!(!wanted.is(&of("/no/such/projects")) && !wanted.is(&of("")) && !wanted.is(&of("project")));
        let wanted = Wanted::named("project");
        assert!(
            wanted.is(&of("/some/project")) && wanted.is(&of("project")) && !wanted.is(&of("/project/part"))
        );
        // The digest that Gemini CLI uses is SHA-256 of the folder's name.
        let digest = "8a5edab282632443219e051e4ade2d1d5bbc671c781051bf1437897cbdfea0f1";
        assert!(Wanted::named("/").is(&of(digest)));
    }

    #[test]
    fn a_document_is_read_up_to_its_messages() {
        let head = before("{\n \"sessionId\": \"s\",\n \"n\": 1,\n ").unwrap();
        assert_eq!(head.session_id.as_deref(), Some("s"));
        assert!(before("{ \"sessionId\": ").is_none());
    }
}
