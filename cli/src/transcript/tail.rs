//! The end of a file of lines that another program writes at the same time, or did not end.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use epitome::wire::document;
use serde::de::IgnoredAny;

use super::head::{self, without_mark};
use crate::failure::{Failure, Result};

/// The length of the whole lines of a JSONL file whose last line is the beginning of a JSON value; `None` for any other file.
pub(super) fn whole_lines(file: &mut File, size: u64, path: &Path) -> Result<Option<u64>> {
    let found = last_line(file, size).and_then(|found| {
        file.seek(SeekFrom::Start(0))?;
        Ok(found)
    });
    let Some((end, last)) = found.map_err(|error| Failure::io(path, &error))? else { return Ok(None) };
    let is_lines = is_unfinished(&last) && document::looks_like_jsonl(without_mark(&head::read(file, path)?));
    Ok(Some(end).filter(|_| is_lines))
}

/// The last line of a file that does not end with a line break, and its place. A longer line than any session has is none.
fn last_line(file: &mut File, size: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut tail = Vec::new();
    while (tail.len() as u64) < size.min(LINE_BYTES_MAX) {
        let start = size.saturating_sub(tail.len() as u64).saturating_sub(CHUNK_BYTES);
        let mut before = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(size.saturating_sub(start).saturating_sub(tail.len() as u64)).read_to_end(&mut before)?;
        let is_first = tail.is_empty();
        before.append(&mut tail);
        tail = before;
        if let Some(at) = tail.iter().rposition(|byte| *byte == b'\n') {
            let line = tail.split_off(at.saturating_add(1));
            let end = start.saturating_add(tail.len() as u64);
            return Ok(Some((end, line)).filter(|(_, line)| !line.is_empty()));
        }
        if is_first && tail.is_empty() {
            break;
        }
    }
    Ok(None)
}

/// Whether a line is an object that ends too early.
fn is_unfinished(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{")
        && serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| error.is_eof())
}

const CHUNK_BYTES: u64 = 64 * 1024;
const LINE_BYTES_MAX: u64 = 256 << 20;
