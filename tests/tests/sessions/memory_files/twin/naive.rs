//! The twin: texts by path, and the versions of each path. Slow, and without a store.

use std::collections::{BTreeMap, BTreeSet};

use epitome::memory::{FILE_BYTES_MAX, FILES_MAX, FOLDER_BYTES_MAX, PATH_BYTES_MAX};

use super::Said;

/// The naive twin.
#[derive(Default)]
pub(super) struct Twin {
    pub(super) files: BTreeMap<String, String>,
    pub(super) versions: BTreeMap<String, Vec<Option<String>>>,
}

type Change = Vec<(String, Option<String>)>;

impl Twin {
    /// Executes a command. Returns `None` if it is refused, the text of a view, and an empty text for other commands.
    pub(super) fn execute(&mut self, said: &Said) -> Option<String> {
        let change = match said {
            Said::View(path, range) => return self.view(&path_of(path)?, *range),
            Said::Create(path, text) => {
                let path = path_of(path)?;
                (!self.files.contains_key(&path)).then_some(())?;
                self.write(path, text.clone())?
            }
            Said::Replace(path, old, new) => {
                let path = path_of(path)?;
                let text = self.files.get(&path)?;
                let at = text.find(old.as_str()).filter(|_| !old.is_empty())?;
                let (head, tail) = (&text[..at], &text[at + old.len()..]);
                (!tail.contains(old.as_str())).then(|| vec![(path, Some(format!("{head}{new}{tail}")))])?
            }
            Said::Insert(path, line, new) => {
                let path = path_of(path)?;
                let mut lines = whole_lines(self.files.get(&path)?);
                let at = usize::try_from(*line).ok().filter(|at| *at <= lines.len())?;
                lines.insert(at, new.clone());
                // The new text and the line before it get a line break if they end without one. A text of several lines
                // gets one too.
                let ended = lines.iter().enumerate().map(|(nth, line)| {
                    let needs = !line.ends_with('\n') && (nth == at || nth + 1 == at);
                    format!("{line}{}", if needs { "\n" } else { "" })
                });
                vec![(path, Some(ended.collect()))]
            }
            Said::Delete(path) => {
                let path = path_of(path).filter(|path| path != "/memories")?;
                self.below(&path).into_iter().map(|file| (file, None)).collect()
            }
            Said::Rename(old, new) => {
                let (old, new) = (path_of(old).filter(|path| path != "/memories")?, path_of(new)?);
                let is_taken = self.files.contains_key(&new) || self.directories().contains(&new);
                let is_inside = new.starts_with(&format!("{old}/")) || self.is_under_a_file(&new);
                (!is_taken && !is_inside).then_some(())?;
                let moved = self.below(&old);
                let to = |file: &String| (file.replacen(&old, &new, 1), Some(self.files[file].clone()));
                let to: Change = moved.iter().map(to).collect();
                moved.iter().map(|file| (file.clone(), None)).chain(to).collect()
            }
            Said::Write(path, text) => self.write(path_of(path)?, text.clone())?,
            Said::Restore(path, back) => {
                let versions = self.versions.get(path)?;
                let at = versions.len().checked_sub(back + 1)?;
                self.write(path_of(path)?, versions[at].clone()?)?
            }
            Said::Reopen => Vec::new(),
        };
        if change.is_empty() && !matches!(said, Said::Reopen) {
            return None;
        }
        self.change(change)
    }

    /// Makes a change, unless a limit is exceeded.
    fn change(&mut self, change: Change) -> Option<String> {
        let mut files = self.files.clone();
        for (path, text) in &change {
            match text {
                Some(text) => files.insert(path.clone(), text.clone()),
                None => files.remove(path),
            };
        }
        let bytes = |files: &BTreeMap<String, String>| files.values().map(String::len).sum::<usize>();
        let too_large =
            change.iter().any(|(_, text)| text.as_ref().is_some_and(|it| it.len() > FILE_BYTES_MAX));
        let too_long = change.iter().any(|(path, text)| text.is_some() && path.len() > PATH_BYTES_MAX);
        let too_many = files.len() > FILES_MAX || bytes(&files) > FOLDER_BYTES_MAX;
        if too_large || too_long || too_many {
            return None;
        }
        self.files = files;
        for (path, text) in change {
            self.versions.entry(path).or_default().push(text);
        }
        Some(String::new())
    }

    fn write(&self, path: String, text: String) -> Option<Change> {
        let is_free = !self.directories().contains(&path) && !self.is_under_a_file(&path);
        is_free.then(|| vec![(path, Some(text))])
    }

    fn below(&self, path: &str) -> Vec<String> {
        let is_below = |file: &&String| **file == path || file.starts_with(&format!("{path}/"));
        self.files.keys().filter(is_below).cloned().collect()
    }

    fn directories(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::from(["/memories".to_owned()]);
        for file in self.files.keys() {
            let mut path = file.clone();
            while let Some(at) = path.rfind('/').filter(|at| *at > 0) {
                path.truncate(at);
                all.insert(path.clone());
            }
        }
        all
    }

    fn is_under_a_file(&self, path: &str) -> bool {
        self.files.keys().any(|file| path.starts_with(&format!("{file}/")))
    }

    fn view(&self, path: &str, range: Option<(i64, i64)>) -> Option<String> {
        let Some(text) = self.files.get(path) else {
            return self.directories().contains(path).then(|| self.listing(path));
        };
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.len() > 1 && lines.last() == Some(&"") {
            lines.pop();
        }
        let (first, last) = range.unwrap_or((1, -1));
        let last = if last == -1 { lines.len() as i64 } else { last };
        (1 <= first && first <= lines.len() as i64 && first <= last).then_some(())?;
        let shown = (1..).zip(lines).filter(|(at, _)| (first..=last).contains(at));
        let shown: Vec<String> = shown.map(|(at, line)| format!("{at:>6}\t{line}")).collect();
        Some(format!("Here's the content of {path} with line numbers:\n{}", shown.join("\n")))
    }

    fn listing(&self, path: &str) -> String {
        let visible = |file: &&String| {
            let below = file.strip_prefix(path).unwrap_or_default();
            file.starts_with(&format!("{path}/")) && !below.contains("/.") && !below.contains("/node_modules")
        };
        let files: Vec<String> = { self.files.keys() }.filter(visible).cloned().collect();
        let size = |prefix: &str| -> String {
            let counted = files.iter().filter(|file| file.starts_with(prefix));
            match counted.map(|file| self.files[file].len()).sum::<usize>() {
                bytes @ ..1_024 => format!("{bytes}B"),
                bytes if bytes < 1_048_576 => tenths(bytes as f64 / 1_024.0, "K"),
                bytes => tenths(bytes as f64 / 1_048_576.0, "M"),
            }
        };
        let depth = |entry: &str| entry[path.len()..].trim_end_matches('/').matches('/').count();
        let directories = self.directories().into_iter().map(|directory| format!("{directory}/"));
        let directories = directories.filter(|it| files.iter().any(|file| file.starts_with(it)));
        let mut entries: Vec<String> = directories.chain(files.clone()).collect();
        entries.retain(|entry| entry.starts_with(&format!("{path}/")) && (1..=2).contains(&depth(entry)));
        entries.sort();
        let header = "Here're the files and directories up to 2 levels deep in";
        let mut lines = vec![format!("{header} {path}, excluding hidden items and node_modules:")];
        lines.push(format!("{}\t{path}", size(&format!("{path}/"))));
        lines.extend(entries.iter().map(|entry| format!("{}\t{entry}", size(entry))));
        lines.join("\n")
    }
}

fn tenths(size: f64, unit: &str) -> String {
    let floor = (size * 10.0).floor() / 10.0;
    format!("{floor}{unit}")
}

/// The path of a file with this name; `None` if no file can have this name.
fn path_of(path: &str) -> Option<String> {
    let bad = |c: char| c.is_control() || c == '\\';
    let bytes = path.as_bytes();
    let encoded = bytes.windows(3).any(|it| it[0] == b'%' && it[1..].iter().all(u8::is_ascii_hexdigit));
    let path = path.strip_suffix('/').unwrap_or(path);
    let names: Vec<&str> = path.split('/').collect();
    let is_name = |name: &&str| !["", ".", ".."].contains(name);
    let fits = bytes.len() <= PATH_BYTES_MAX && !path.contains(bad) && !encoded;
    (fits && names.len() > 1 && names[..2] == ["", "memories"] && names[2..].iter().all(is_name))
        .then(|| path.to_owned())
}

/// The lines of a text, each with its end.
fn whole_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for c in text.chars() {
        line.push(c);
        if c == '\n' {
            lines.push(core::mem::take(&mut line));
        }
    }
    lines.extend((!line.is_empty()).then_some(line));
    lines
}
