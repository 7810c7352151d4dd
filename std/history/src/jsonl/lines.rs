//! The lines of a file.

use core::ops::Range;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::frame::{self, HEAD_BYTES_MAX, Origin, Sum};

/// Minimum number of bytes per read: some tens of messages.
const READ_BYTES: u64 = 16 * 1024;

/// Reader of a file that has no writer at the same time.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    file: &'a File,
    size: u64,
    /// End of the text to read ahead. No text after it is needed.
    ahead_to: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
    /// The decrypted text of the line that was read last.
    clear: String,
}

/// The content at an offset of a file.
#[derive(Debug)]
pub(super) enum Next<'a> {
    /// A whole line: its length in bytes, its checksum and its data.
    Line { len: u64, sum: Sum, data: &'a [u8] },
    /// The end of the file.
    End,
    /// The beginning of a line that was not completely written.
    Torn,
    /// Anything else.
    Damaged,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(file: &'a File, size: u64) -> Self {
        Self { file, size, ahead_to: size, buffer: Vec::new(), buffer_at: 0, clear: String::new() }
    }

    /// Limits the read-ahead to `end`: after the last visible message there may be many commits.
    pub(super) fn read_ahead_to(&mut self, end: u64) {
        self.ahead_to = end.min(self.size);
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// The `len` bytes at `at`, or fewer at the end of the file.
    pub(super) fn bytes(&mut self, at: u64, len: u64) -> io::Result<&[u8]> {
        let left = self.size.saturating_sub(at);
        let len = len.min(left);
        let buffered = self.buffer_at..=self.buffer_at.saturating_add(self.buffer.len() as u64);
        if !buffered.contains(&at) || !buffered.contains(&at.saturating_add(len)) {
            self.buffer.clear();
            self.buffer_at = at;
            self.file.seek(SeekFrom::Start(at))?;
            let ahead = self.ahead_to.saturating_sub(at).min(READ_BYTES);
            let wanted = len.max(ahead);
            if self.file.take(wanted).read_to_end(&mut self.buffer)? as u64 != wanted {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter"));
            }
        }
        let from = at.saturating_sub(self.buffer_at);
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        Ok(self.buffer.get(place(from)..place(from.saturating_add(len))).unwrap_or_default())
    }

    /// Whether the file has these bytes at `at`. Reads no other bytes.
    pub(super) fn holds(&self, at: u64, bytes: &[u8]) -> io::Result<bool> {
        let (mut file, mut there) = (self.file, Vec::with_capacity(bytes.len()));
        file.seek(SeekFrom::Start(at))?;
        file.take(bytes.len() as u64).read_to_end(&mut there)?;
        Ok(there == bytes)
    }

    /// The checksum of the line at `at`, if a line begins there.
    pub(super) fn sum(&mut self, at: u64) -> io::Result<Option<Sum>> {
        Ok(frame::head(self.bytes(at, HEAD_BYTES_MAX as u64)?).map(|head| head.sum()))
    }

    /// The data of the line at `at`, which has `len` bytes; `None` if the line was changed.
    pub(super) fn data(&mut self, file: &Origin, at: u64, len: u64) -> io::Result<Option<&[u8]>> {
        match self.checked(file, at, len)? {
            Some(data) => self.text(file, at, len, data).map(Some),
            None => Ok(None),
        }
    }

    /// The range of the data in the line at `at`; `None` if the line was changed.
    fn checked(&mut self, file: &Origin, at: u64, len: u64) -> io::Result<Option<Range<usize>>> {
        let line = self.bytes(at, len)?;
        let data = frame::data(file.id, at, line);
        if file.seal.is_plain() {
            return Ok(data);
        }
        let clear = data.as_ref().and_then(|data| file.open(at, line.get(data.clone())?));
        self.clear = clear.unwrap_or_default();
        // An empty text marks a failed decryption: no line has an empty text.
        Ok(data.filter(|_| !self.clear.is_empty()))
    }

    /// The text of a line that was just [`checked`](Self::checked); `data` is the range of its data.
    fn text(&mut self, file: &Origin, at: u64, len: u64, data: Range<usize>) -> io::Result<&[u8]> {
        if file.seal.is_plain() {
            Ok(self.bytes(at, len)?.get(data).unwrap_or_default())
        } else {
            Ok(self.clear.as_bytes())
        }
    }

    /// The content at `at`.
    pub(super) fn next(&mut self, file: &Origin, at: u64) -> io::Result<Next<'_>> {
        let left = self.size.saturating_sub(at);
        if left == 0 {
            return Ok(Next::End);
        }
        let head = frame::head(self.bytes(at, HEAD_BYTES_MAX as u64)?);
        let whole = head.filter(|head| head.line_len() <= left);
        let data = match whole {
            Some(head) => self.checked(file, at, head.line_len())?,
            None => None,
        };
        if let (Some(head), Some(data)) = (whole, data) {
            let (len, sum) = (head.line_len(), head.sum());
            let data = self.text(file, at, len, data)?;
            return Ok(Next::Line { len, sum, data });
        }
        let torn = self.is_torn(at, head.map_or(u64::MAX, |head| head.line_len()))?;
        Ok(if torn { Next::Torn } else { Next::Damaged })
    }

    /// Whether the text at `at` can be the rest of an interrupted write. Such a rest has fewer than `line` bytes,
    /// followed by the end of the file or only by zeros, with which file systems fill space that is not yet written. A
    /// complete line at the end of the file in which only the last byte differs was written completely, so it is
    /// damaged.
    fn is_torn(&mut self, at: u64, line: u64) -> io::Result<bool> {
        let (mut from, mut written) = (at, 0_u64);
        while from < self.size {
            let chunk = self.bytes(from, READ_BYTES)?;
            if chunk.contains(&b'\n') {
                return Ok(false);
            }
            if let Some(last) = chunk.iter().rposition(|byte| *byte != 0) {
                written = from.saturating_sub(at).saturating_add(last as u64).saturating_add(1);
            }
            from = from.saturating_add(chunk.len() as u64);
        }
        let left = self.size.saturating_sub(at);
        Ok(left < line || written.saturating_add(1) < line || (written < line && left > line))
    }
}
