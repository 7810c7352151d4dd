//! The commands of a model, decided on the files as they are. Nothing here reads or writes a store.

use serde::Deserialize;

use super::Files;
use super::path::{ROOT, check_limits, check_parents, checked, is_directory, members};
use super::record::{Change, FileTexts};
use super::view::{self, lines, lines_at, shown_argument, snippet};

/// A command. Its names are those of Anthropic's memory tool (`memory_20250818`).
#[derive(Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(crate) enum Command {
    View {
        path: String,
        view_range: Option<(i64, i64)>,
    },
    Create {
        path: String,
        file_text: String,
    },
    StrReplace {
        path: String,
        old_str: String,
        #[serde(default)]
        new_str: String,
    },
    Insert {
        path: String,
        insert_line: i64,
        insert_text: String,
    },
    Delete {
        path: String,
    },
    Rename {
        old_path: String,
        new_path: String,
    },
    /// Creates a file or replaces its text: for an application, not for a model.
    #[serde(skip)]
    Write {
        path: String,
        file_text: String,
    },
}

/// The outcome of a command.
pub(super) enum Outcome {
    /// Nothing changes. The text is for the model.
    Shown(String),
    /// The change, with the answer to the model.
    Changed(Change),
}

impl Command {
    /// Reads the command in the arguments of a call. The error is for the model.
    pub(crate) fn from_arguments(arguments: &str) -> Result<Self, String> {
        serde_json::from_str(arguments).map_err(|error| {
            format!("Error: The arguments are no command: {}", shown_argument(&error.to_string()))
        })
    }

    /// Decides the command on these files. The error is for the model.
    pub(super) fn decide(&self, files: &Files) -> Result<Outcome, String> {
        let (answer, change) = match self {
            Self::View { path, view_range } => return show(files, path, *view_range).map(Outcome::Shown),
            Self::Create { path, file_text } => create(files, path, file_text)?,
            Self::StrReplace { path, old_str, new_str } => replace(files, path, old_str, new_str)?,
            Self::Insert { path, insert_line, insert_text } => {
                insert(files, path, *insert_line, insert_text)?
            }
            Self::Delete { path } => delete(files, path)?,
            Self::Rename { old_path, new_path } => rename(files, old_path, new_path)?,
            Self::Write { path, file_text } => write(files, path, file_text)?,
        };
        check_limits(files, &change)?;
        Ok(Outcome::Changed(Change::new(answer, change)))
    }
}

/// Maximum number of lines that an error names if a text occurs in several lines.
const LINES_NAMED_MAX: usize = 20;

fn show(files: &Files, path: &str, range: Option<(i64, i64)>) -> Result<String, String> {
    let path = checked(path)?;
    match files.get(path) {
        Some(text) => view::file(path, text, range),
        None if is_directory(files, path) => Ok(view::listing(files, path)),
        None => Err(format!("The path {path} does not exist. Please provide a valid path.")),
    }
}

fn create(files: &Files, path: &str, text: &str) -> Result<(String, FileTexts), String> {
    let path = checked(path)?;
    if files.contains_key(path) {
        return Err(format!("Error: File {path} already exists"));
    }
    write(files, path, text)
}

fn write(files: &Files, path: &str, text: &str) -> Result<(String, FileTexts), String> {
    let path = checked(path)?;
    if is_directory(files, path) {
        return Err(format!("Error: {path} is a directory. Choose the path of a file."));
    }
    check_parents(files, path)?;
    Ok((format!("File created successfully at: {path}"), written(path, text)))
}

fn replace(files: &Files, path: &str, old: &str, new: &str) -> Result<(String, FileTexts), String> {
    let path = checked(path)?;
    let Some(text) = files.get(path) else {
        return Err(format!("Error: The path {path} does not exist. Please provide a valid path."));
    };
    if old.is_empty() {
        return Err("No replacement was performed, old_str is empty. Use insert to add text.".into());
    }
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    match *places {
        [at] => {
            let text = text.replacen(old, new, 1);
            let shown = snippet(&text, at, new);
            Ok((format!("The memory file has been edited.\n{shown}"), written(path, &text)))
        }
        [] => Err(format!(
            "No replacement was performed, old_str `{}` did not appear verbatim in {path}.",
            shown_argument(old)
        )),
        _ => {
            let named = lines_at(text, &places);
            let more = if named.len() > LINES_NAMED_MAX { " and others" } else { "" };
            let named: Vec<String> = named.iter().take(LINES_NAMED_MAX).map(usize::to_string).collect();
            Err(format!(
                "No replacement was performed. Multiple occurrences of old_str `{}` in lines: {}{more}. Please ensure it \
                 is unique",
                shown_argument(old),
                named.join(", ")
            ))
        }
    }
}

fn insert(files: &Files, path: &str, line: i64, new: &str) -> Result<(String, FileTexts), String> {
    let path = checked(path)?;
    let Some(text) = files.get(path) else {
        return Err(format!("Error: The path {path} does not exist"));
    };
    let count = if text.is_empty() { 0 } else { lines(text).count() };
    let Some(behind) = usize::try_from(line).ok().filter(|behind| *behind <= count) else {
        return Err(format!(
            "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {count}]"
        ));
    };
    let at = text.split_inclusive('\n').take(behind).map(str::len).fold(0, usize::saturating_add);
    let (head, tail) = (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default());
    // Lines stay whole: one that had no end before the new text gets one, and so does the new text.
    let end = |text: &str| if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let text = [head, end(head), new, if new.ends_with('\n') { "" } else { "\n" }, tail].concat();
    Ok((format!("The file {path} has been edited."), written(path, &text)))
}

fn delete(files: &Files, path: &str) -> Result<(String, FileTexts), String> {
    let path = checked(path)?;
    if path == ROOT {
        return Err(format!("Error: {ROOT} itself cannot be deleted. Delete the files in it."));
    }
    let change: FileTexts = members(files, path).map(|(member, _)| (member.clone(), None)).collect();
    match change.is_empty() {
        true => Err(format!("Error: The path {path} does not exist")),
        false => Ok((format!("Successfully deleted {path}"), change)),
    }
}

fn rename(files: &Files, old: &str, new: &str) -> Result<(String, FileTexts), String> {
    let (old, new) = (checked(old)?, checked(new)?);
    if old == ROOT {
        return Err(format!("Error: {ROOT} itself cannot be renamed. Rename the files in it."));
    }
    if members(files, old).next().is_none() {
        return Err(format!("Error: The path {old} does not exist"));
    }
    if files.contains_key(new) || is_directory(files, new) {
        return Err(format!("Error: The destination {new} already exists"));
    }
    if new.strip_prefix(old).is_some_and(|below| below.starts_with('/')) {
        return Err(format!("Error: {old} cannot be moved into itself"));
    }
    check_parents(files, new)?;
    let mut change = FileTexts::new();
    for (member, text) in members(files, old) {
        let below = member.strip_prefix(old).unwrap_or_default();
        change.insert(member.clone(), None);
        change.insert(format!("{new}{below}"), Some(text.clone()));
    }
    Ok((format!("Successfully renamed {old} to {new}"), change))
}

fn written(path: &str, text: &str) -> FileTexts {
    FileTexts::from([(path.to_owned(), Some(text.to_owned()))])
}
