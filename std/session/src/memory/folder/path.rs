//! Paths of memory files, and the limits of a folder.

use super::Files;
use super::record::FileTexts;

/// The path of the folder itself.
pub(super) const ROOT: &str = "/memories";

/// The most bytes of a path. A listing shows the path of each file: 256 files with such paths take about 16,000 tokens.
pub const PATH_BYTES_MAX: usize = 256;

/// The most bytes of one memory file: about 16,000 tokens, so that a view of it fits the window of any current model.
pub const FILE_BYTES_MAX: usize = 64 * 1024;

/// The most files of one folder. A model reads the list of all of them.
pub const FILES_MAX: usize = 256;

/// The most bytes of all files of one folder together. A store writes all of them with each change.
pub const FOLDER_BYTES_MAX: usize = 1024 * 1024;

/// The path in its one form: without a slash at the end. It is [`ROOT`] or lies below it.
pub(super) fn checked(path: &str) -> Result<&str, String> {
    if path.len() > PATH_BYTES_MAX {
        return Err(format!(
            "Error: The path has {} bytes, and at most {PATH_BYTES_MAX} are allowed. Choose a shorter path.",
            path.len()
        ));
    }
    match fault(path) {
        None => Ok(path.strip_suffix('/').unwrap_or(path)),
        Some(fault) => Err(format!(
            "Error: The path {path:?} {fault}. Give a path below {ROOT}, for example {ROOT}/notes.md."
        )),
    }
}

/// The fault of a path; `None` if there is none.
fn fault(path: &str) -> Option<&'static str> {
    let Some(below) = path.strip_prefix(ROOT).filter(|below| below.is_empty() || below.starts_with('/'))
    else {
        return Some("does not start with /memories");
    };
    if path.contains(char::is_control) {
        return Some("has a control character");
    }
    if path.contains('\\') {
        return Some("has a backslash");
    }
    if is_percent_encoded(path) {
        return Some("is percent-encoded");
    }
    let below = below.strip_suffix('/').unwrap_or(below);
    // The first segment is the one before the first slash.
    for segment in below.split('/').skip(1) {
        match segment {
            "" => return Some("has an empty segment"),
            "." | ".." => return Some("has the segment . or .."),
            _ => {}
        }
    }
    None
}

fn is_percent_encoded(path: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    path.split('%').skip(1).any(|behind| {
        let behind = behind.as_bytes();
        is_hex(behind.first()) && is_hex(behind.get(1))
    })
}

/// The files at or below `path`: one file, or all files of a directory.
pub(super) fn members<'f>(files: &'f Files, path: &str) -> impl Iterator<Item = (&'f String, &'f String)> {
    let (file, directory) = (path.to_owned(), format!("{path}/"));
    files.iter().filter(move |(member, _)| **member == file || member.starts_with(&directory))
}

/// Whether there is a directory of this path. The folder itself is one, also without files.
pub(super) fn is_directory(files: &Files, path: &str) -> bool {
    path == ROOT || (!files.contains_key(path) && members(files, path).next().is_some())
}

/// Refuses a path below a file.
pub(super) fn check_parents(files: &Files, path: &str) -> Result<(), String> {
    let parents = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
    match { parents }.find(|parent| files.contains_key(*parent)) {
        Some(file) => Err(format!("Error: {file} is a file, not a directory. Choose another path.")),
        None => Ok(()),
    }
}

/// Refuses a change that exceeds a limit. A change that makes a folder smaller exceeds none.
pub(super) fn check_limits(files: &Files, change: &FileTexts) -> Result<(), String> {
    let written = || change.iter().filter_map(|(path, text)| Some((path, text.as_ref()?)));
    for (path, text) in written() {
        checked(path)?;
        if text.len() > FILE_BYTES_MAX {
            return Err(format!(
                "Error: {path} would have {} bytes, and a file may have at most {FILE_BYTES_MAX}. Shorten the text or split \
                 it into several files.",
                text.len()
            ));
        }
    }
    let replaced = || change.keys().filter_map(|path| files.get(path));
    let count = files.len().saturating_sub(replaced().count()).saturating_add(written().count());
    if count > FILES_MAX && count > files.len() {
        return Err(format!(
            "Error: There are {} files, and {FILES_MAX} are allowed. Delete files that are no longer needed, or merge files.",
            files.len()
        ));
    }
    let bytes =
        |texts: &mut dyn Iterator<Item = &String>| texts.map(String::len).fold(0, usize::saturating_add);
    let before = bytes(&mut files.values());
    let after = before
        .saturating_sub(bytes(&mut replaced()))
        .saturating_add(bytes(&mut written().map(|(_, text)| text)));
    if after > FOLDER_BYTES_MAX && after > before {
        return Err(format!(
            "Error: All files together would have {after} bytes, and {FOLDER_BYTES_MAX} are allowed. Delete or shorten \
             files that are no longer needed."
        ));
    }
    Ok(())
}
