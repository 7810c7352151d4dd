//! The project of a session.

use std::env;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use epitome::wire::Format;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Agent, Found, open, read_whole};

/// The project and the id that a session names at its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Project {
    /// The folder in which the agent worked, or the agent's name for it if only that is known.
    pub(crate) folder: String,
    /// The agent's name for the session.
    pub(crate) id: String,
}

/// The requested project.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    folder: PathBuf,
    name: Option<String>,
    /// Gemini CLI's name for the folder of a project.
    digest: String,
    /// Cursor's name for the folder.
    slug: String,
}

/// Number of bytes of a file that are read: Codex writes its instructions at the beginning, on the line with the
/// folder.
const HEAD_BYTES: u64 = 256 * 1024;

/// Maximum length of the path of a project: Linux's `PATH_MAX`, the longest of all systems.
const PATH_BYTES_MAX: u64 = 4_096;

impl Project {
    /// Reads the beginning of the file, and the folder that contains it. If the folder of the project is unknown, it is
    /// empty; an unknown id is the name of the file.
    pub(crate) fn of(found: &Found) -> Self {
        let mut project = Self::default();
        let agent = found.agent;
        let text = head(&found.path);
        for record in records(&text) {
            for (field, place) in [(&mut project.folder, agent.project), (&mut project.id, agent.id)] {
                if field.is_empty()
                    && let Some(Value::String(value)) = place.and_then(|place| record.pointer(place))
                {
                    field.clone_from(value);
                }
            }
            let is_known = |field: &str, place: Option<&str>| place.is_none() || !field.is_empty();
            if is_known(&project.folder, agent.project) && is_known(&project.id, agent.id) {
                break;
            }
        }
        match agent.format {
            Format::GeminiCli => project.folder = gemini(&found.path),
            Format::Cursor => project.folder = cursor(&found.path),
            _ => project.folder = without_scheme(project.folder),
        }
        if project.id.is_empty() {
            project.id = name(&found.path, agent);
        }
        project
    }
}

/// The beginning of a file. If it cannot be read, the reader of the whole file reports the error.
fn head(path: &Path) -> String {
    let mut bytes = Vec::new();
    let _ = open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The objects at the beginning of a file: its lines and, for a document, the fields before its messages.
fn records(text: &str) -> impl Iterator<Item = Value> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let documents = ["\"messages\"", "\"history\""].into_iter();
    let documents = documents.filter_map(|key| before(text.split_once(key)?.0));
    lines.filter(Value::is_object).chain(documents)
}

/// The fields of a JSON object that is cut off after one of them.
fn before(head: &str) -> Option<Value> {
    let fields = head.trim_end().trim_end_matches(',');
    serde_json::from_str(&format!("{fields}}}")).ok()
}

/// The path that a `file:` URI names; anything else as it is.
fn without_scheme(folder: String) -> String {
    match folder.strip_prefix("file://") {
        Some(path) => percent_decode_str(path).decode_utf8_lossy().into_owned(),
        None => folder,
    }
}

/// The name of a file, or of its folder if all sessions of the agent have files with the same name.
fn name(path: &Path, agent: &Agent) -> String {
    let is_of_all = agent.sessions.iter().any(|sessions| {
        // A pattern is no name of a file.
        sessions.rsplit('/').next().is_some_and(|name| path.ends_with(name))
    });
    let name = match is_of_all {
        true => path.parent().and_then(Path::file_name),
        false => path.file_stem(),
    };
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The project of a transcript of Cursor, `PROJECT/agent-transcripts/FILE` or `PROJECT/agent-transcripts/ID/FILE`: only
/// Cursor's name for the folder is known.
fn cursor(path: &Path) -> String {
    let mut folders = path.ancestors().skip_while(|folder| !folder.ends_with("agent-transcripts"));
    let project = folders.nth(1).and_then(Path::file_name);
    project.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Cursor's name for a folder: its letters and digits, with a hyphen for the characters between them.
fn slug(folder: &str) -> String {
    let words = folder.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The project of a session of Gemini CLI, `PROJECT/chats/FILE`: newer versions store its folder beside the sessions.
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

    /// The current folder.
    pub(crate) fn here() -> Self {
        Self::new(Path::new("."), None)
    }

    fn new(folder: &Path, name: Option<String>) -> Self {
        // A project may be deleted while its sessions still exist.
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| absolute(folder));
        let digest = Sha256::digest(folder.to_string_lossy().as_bytes());
        let slug = slug(&folder.to_string_lossy());
        Self { folder, name, slug, digest: digest.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    /// Whether `project`, the project of a session, is the requested one.
    pub(crate) fn is(&self, project: &Project) -> bool {
        let folder = Path::new(&project.folder);
        let last = || folder.file_name().map(|name| name.to_string_lossy());
        project.folder == self.digest
            || !folder.is_absolute() && !self.slug.is_empty() && slug(&project.folder) == self.slug
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
        let wanted = Wanted::named("/no/such.project");
        assert!(
            wanted.is(&of("no-such-project"))
                && !wanted.is(&of("/no/such-project"))
                && !Wanted::named("/").is(&of(""))
        );
    }

    #[test]
    fn a_document_is_read_up_to_its_messages() {
        let head = before("{\n \"sessionId\": \"s\",\n \"n\": 1,\n ").unwrap();
        assert_eq!(head["sessionId"], "s");
        assert!(before("{ \"sessionId\": ").is_none());
    }
}
