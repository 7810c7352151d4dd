//! Files and directories as a model reads them.

use std::collections::BTreeMap;

use super::Files;
use super::path::members;

/// Depth of a listing, in levels.
const LEVELS: usize = 2;

/// Number of lines that are shown before and after an edit.
const LINES_AROUND: usize = 4;

/// The most characters of an argument that an error repeats. The model knows its own argument; a file of it would be shown twice.
const ARGUMENT_CHARS_MAX: usize = 1_000;

/// The directory `path`, two levels deep. A directory has the size of the files that the listing counts.
pub(super) fn listing(files: &Files, path: &str) -> String {
    let (mut total, mut entries) = (0_usize, BTreeMap::<String, usize>::new());
    for (member, text) in members(files, path) {
        let Some(below) = member.strip_prefix(path) else { continue };
        let segments: Vec<&str> = below.split('/').skip(1).collect();
        if segments.iter().any(|segment| segment.starts_with('.') || *segment == "node_modules") {
            continue;
        }
        total = total.saturating_add(text.len());
        let mut entry = path.to_owned();
        for (level, segment) in segments.iter().enumerate().take(LEVELS) {
            entry.push('/');
            entry.push_str(segment);
            let is_file = level.saturating_add(1) == segments.len();
            let shown = if is_file { entry.clone() } else { format!("{entry}/") };
            let size = entries.entry(shown).or_default();
            *size = size.saturating_add(text.len());
        }
    }
    let mut listing = format!(
        "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:\n\
         {}\t{path}",
        shown_size(total)
    );
    for (entry, bytes) in entries {
        listing.push_str(&format!("\n{}\t{entry}", shown_size(bytes)));
    }
    listing
}

/// `512B`, `4K`, `5.5K`, `1.2M`.
fn shown_size(bytes: usize) -> String {
    const UNITS: [(usize, &str); 2] = [(1024 * 1024, "M"), (1024, "K")];
    let unit = UNITS.into_iter().find(|(unit, _)| bytes >= *unit);
    let Some((unit, name)) = unit else { return format!("{bytes}B") };
    let tenths = bytes.saturating_mul(10) / unit;
    match tenths % 10 {
        0 => format!("{}{name}", tenths / 10),
        rest => format!("{}.{rest}{name}", tenths / 10),
    }
}

/// The lines of a text. A line break at the end begins no line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}

/// The file `path`, with line numbers.
pub(super) fn file(path: &str, text: &str, range: Option<(i64, i64)>) -> Result<String, String> {
    let count = lines(text).count();
    let (first, last) = range.map_or(Some((1, count)), |range| within(range, count)).ok_or_else(|| {
        let (first, last) = range.unwrap_or_default();
        format!(
            "Error: Invalid `view_range` parameter: [{first}, {last}]. It should be within the range of lines of the file: \
             [1, {count}], and -1 may stand for the last line."
        )
    })?;
    Ok(format!("Here's the content of {path} with line numbers:\n{}", numbered(text, first, last)))
}

fn within((first, last): (i64, i64), count: usize) -> Option<(usize, usize)> {
    let first = usize::try_from(first).ok().filter(|first| (1..=count).contains(first))?;
    let last = if last == -1 { count } else { usize::try_from(last).ok()? };
    (last >= first).then_some((first, last))
}

/// The lines from `first` to `last` with their numbers.
fn numbered(text: &str, first: usize, last: usize) -> String {
    let from = first.saturating_sub(1);
    let shown = lines(text).enumerate().skip(from).take(last.saturating_sub(from));
    let shown = shown.map(|(at, line)| format!("{:>6}\t{line}", at.saturating_add(1)));
    shown.collect::<Vec<_>>().join("\n")
}

/// The lines around an edit that put `new` at this byte of a text.
pub(super) fn snippet(text: &str, at: usize, new: &str) -> String {
    let first = lines_at(text, &[at]).first().copied().unwrap_or(1);
    let last = first.saturating_add(new.matches('\n').count());
    let from = first.saturating_sub(LINES_AROUND).max(1);
    numbered(text, from, last.saturating_add(LINES_AROUND))
}

/// The numbers of the lines that have these bytes, which ascend. Each line is named once.
pub(super) fn lines_at(text: &str, places: &[usize]) -> Vec<usize> {
    let (mut from, mut line, mut named) = (0, 1_usize, Vec::new());
    for at in places {
        line = line.saturating_add(text.get(from..*at).unwrap_or_default().matches('\n').count());
        from = *at;
        named.push(line);
    }
    named.dedup();
    named
}

/// The beginning of an argument.
pub(super) fn shown_argument(text: &str) -> String {
    match text.char_indices().nth(ARGUMENT_CHARS_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
