//! Reads the beginning of a file, which shows its form, or the whole file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use epitome::wire::document::{self, LineKind};
use epitome::wire::{self, Format, Outline, WireErrorKind};

use crate::args::InputArgs;
use crate::failure::{Failure, Result, code};
use crate::progress::{BinaryBytes, DecimalBytes};

/// The beginning of a file, up to the first bytes that are not UTF-8.
pub(super) fn read(file: &mut File, path: &Path) -> Result<String> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let read = (&mut *file).take(HEAD_BYTES as u64).read_to_end(&mut head);
    let read = read.and_then(|_| file.seek(SeekFrom::Start(0)));
    read.map_err(|error| Failure::io(path, &error))?;
    let valid = core::str::from_utf8(&head).map_or_else(|error| error.valid_up_to(), str::len);
    head.truncate(valid);
    Ok(String::from_utf8(head).unwrap_or_default())
}

/// The complete lines at the beginning of a file, or the beginning of its first line if there are none.
fn whole_lines(head: &str) -> &str {
    let head = without_mark(head);
    head.get(..head.rfind('\n').map_or(head.len(), |end| end + 1)).unwrap_or(head)
}

pub(super) fn is_jsonl(head: &str) -> bool {
    // A text of no known format is read whole, so that the error names the line.
    let chat = match wire::detect(whole_lines(head)) {
        Ok(found) => found.format == Format::OpenaiChat,
        Err(error) => error.kind() != WireErrorKind::Shape,
    };
    let head = without_mark(head);
    document::looks_like_jsonl(head) && chat && !first_line_is_conversation(head)
}

/// The format of a session file whose lines need not be held.
pub(super) fn outlined(head: &str, args: &InputArgs) -> Option<Format> {
    let found = || wire::detect(whole_lines(head)).ok().map(|found| found.format);
    let is_lines = document::looks_like_jsonl(without_mark(head));
    args.part.from.0.or_else(found).filter(|format| is_lines && Outline::FORMATS.contains(format))
}

/// Whether the first line is a conversation. Such a file is read whole, so that the error can explain how to read it.
fn first_line_is_conversation(text: &str) -> bool {
    let first = document::lines(text).next();
    first.is_some_and(|line| !matches!(line.kind(), Ok(LineKind::Message)))
}

/// Reads a whole file, which is held while it is used.
pub(super) fn read_whole(file: &mut impl io::Read, size: u64, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let room = usize::try_from(size).ok().filter(|_| size <= WHOLE_BYTES_MAX && has_room(size));
    let room = room.and_then(|size| bytes.try_reserve_exact(size).ok());
    room.ok_or_else(|| too_large(path, size))?;
    fill(file, bytes, path)
}

/// Reads all of `reader`, up to the maximum size of a file.
pub(super) fn fill(
    reader: &mut (impl io::Read + ?Sized),
    mut bytes: Vec<u8>,
    path: &Path,
) -> Result<Vec<u8>> {
    match reader.take(WHOLE_BYTES_MAX + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > WHOLE_BYTES_MAX => Err(too_large(path, bytes.len() as u64)),
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(too_large(path, bytes.len() as u64)),
        Err(error) => Err(Failure::io(path, &error)),
    }
}

fn too_large(path: &Path, size: u64) -> Failure {
    let (path, size, most) = (path.display(), DecimalBytes(size), BinaryBytes(WHOLE_BYTES_MAX));
    let what = "a JSONL file, a message on each line, is read line by line";
    let rest =
        format!("cut a file of several conversations into smaller ones; more than {most} is never held");
    Failure::new(code::IO, format!("{path}: too large for memory ({size}): {what}; {rest}"))
}

/// Whether the system has enough memory for a file of this size. The memory is requested in one piece and released. If
/// a small piece were missing later, the process would end without a message.
fn has_room(size: u64) -> bool {
    let wanted = size.saturating_mul(3).max(size.saturating_mul(SMALL_FACTOR).min(SMALL_BYTES_MAX));
    usize::try_from(wanted).is_ok_and(|wanted| Vec::<u8>::new().try_reserve_exact(wanted).is_ok())
}

pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{FEFF}').unwrap_or(text)
}

/// Number of bytes that are read to distinguish JSONL from JSON: enough for the first line and part of the second.
const HEAD_BYTES: usize = 256 * 1024;

/// The largest file that is held whole: positions in a text have four bytes.
const WHOLE_BYTES_MAX: u64 = 4 << 30;

/// Maximum factor of memory over the size of a file with tiny messages: a kibibyte for each of them.
const SMALL_FACTOR: u64 = 24;

/// Maximum memory that is reserved for small messages. Larger files have larger messages, and take three times their
/// size.
const SMALL_BYTES_MAX: u64 = 1 << 30;
