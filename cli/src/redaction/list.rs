//! The user's own list of texts to redact.

use std::fs;
use std::path::Path;

use regex::Regex;

use crate::failure::{Failure, Result};

/// Reads a list: each line has a text, or a regular expression between slashes. Empty lines, and lines that begin with
/// `#`, are ignored.
pub(super) fn read(path: &Path) -> Result<Vec<Regex>> {
    let list = fs::read_to_string(path).map_err(|error| Failure::io(path, &error))?;
    let lines = list.strip_prefix('\u{FEFF}').unwrap_or(&list).lines().enumerate();
    let lines = lines.map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| pattern(line).map_err(|why| wrong(path, number, &why))).collect()
}

fn pattern(line: &str) -> core::result::Result<Regex, String> {
    let inner =
        line.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|inner| !inner.is_empty());
    let Some(inner) = inner else {
        return Regex::new(&regex::escape(line))
            .map_err(|_| "this text is too long to search for".to_owned());
    };
    // The error of the crate quotes the pattern, which may be a secret.
    let pattern = Regex::new(inner)
        .map_err(|_| "what stands between the slashes is no regular expression".to_owned())?;
    match pattern.is_match("") {
        true => Err("this expression matches the empty text, which is everywhere".to_owned()),
        false => Ok(pattern),
    }
}

fn wrong(path: &Path, line: usize, why: &str) -> Failure {
    Failure::input(format!("{}: line {line}: {why}", path.display()))
}
