//! The end of a file of lines that another program is writing, or left incomplete.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use epitome::wire::document;
use serde::de::IgnoredAny;

use super::head::without_mark;
use crate::failure::{Failure, Result};

/// The length of the complete lines of a JSONL file whose last line is the beginning of a JSON value; `None` for any
/// other file. `head` is the beginning of the file, and `size` its size.
pub(super) fn whole_lines(file: &mut File, (head, size): (&str, u64), path: &Path) -> Result<Option<u64>> {
    if !document::looks_like_jsonl(without_mark(head)) {
        return Ok(None);
    }
    let found = last_line(file, size).and_then(|found| file.rewind().map(|()| found));
    let found = found.map_err(|error| Failure::io(path, &error))?;
    Ok(found.filter(|(_, line)| is_unfinished(line)).map(|(start, _)| start))
}

/// The last line of a file that does not end with a line break, and the place where the line starts. `None` too if the line is too long, or
/// if the file became shorter meanwhile.
fn last_line(file: &mut File, size: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut chunk = Vec::new();
    let mut end = size;
    while end > 0 && size.saturating_sub(end) < LINE_BYTES_MAX {
        let start = end.saturating_sub(CHUNK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        (&mut *file).take(end.saturating_sub(start)).read_to_end(&mut chunk)?;
        if chunk.len() as u64 != end.saturating_sub(start) {
            return Ok(None);
        }
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            let line = start.saturating_add(at as u64).saturating_add(1);
            file.seek(SeekFrom::Start(line))?;
            chunk.clear();
            (&mut *file).take(size.saturating_sub(line)).read_to_end(&mut chunk)?;
            return Ok(Some((line, chunk)).filter(|(_, line)| !line.is_empty()));
        }
        end = start;
    }
    Ok(None)
}

/// Whether a line is an object that ends too early. The error of a number that was cut off is at its last byte or
/// later.
fn is_unfinished(line: &[u8]) -> bool {
    let at_end = |error: &serde_json::Error| error.is_eof() || error.column() >= line.len();
    line.trim_ascii_start().starts_with(b"{")
        && serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| at_end(&error))
}

/// Number of bytes per read: usually the first read has the last line.
const CHUNK_BYTES: u64 = 64 * 1024;

/// Maximum size of a last line that is checked. Sessions with pictures have lines of megabytes.
const LINE_BYTES_MAX: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn found(content: &[u8]) -> Option<u64> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let head = String::from_utf8_lossy(content);
        whole_lines(&mut file, (&head, content.len() as u64), Path::new("x")).unwrap()
    }

    #[test]
    fn the_whole_lines_end_where_an_unfinished_one_starts() {
        let lines = "{\"a\":1}\n{\"b\":2}\r\n";
        let whole = Some(lines.len() as u64);
        for cut in ["{", "{\"c", "{\"c\":\"\u{1F98A}", "{\"c\":0.", "{\"c\":[1,", "{\"c\":tr", "  {\"c\":1"] {
            assert_eq!(found([lines, cut].concat().as_bytes()), whole, "{cut}");
        }
        // In the middle of a character.
        let mut bytes = [lines, "{\"c\":\"\u{1F98A}"].concat().into_bytes();
        bytes.pop();
        assert_eq!(found(&bytes), whole);
        // Over several chunks.
        let long = format!("{{\"c\":\"{}", "x".repeat(3 * 64 * 1024 + 7));
        assert_eq!(found([lines, &long].concat().as_bytes()), whole);
    }

    #[test]
    fn other_files_have_no_unfinished_line() {
        let long = format!("[{}1]", "1,".repeat(70_000));
        for text in [
            "",
            "{\"a\":1}",
            "{\"a\":1}\n",
            "{\"a\":1}\n{\"b\":2}",
            "{\"a\":1}\n{\"b\":x}",
            "{\n\"a\":{",
            "{\"a\":",
            &long,
        ] {
            assert_eq!(found(text.as_bytes()), None, "{text}");
        }
    }
}
