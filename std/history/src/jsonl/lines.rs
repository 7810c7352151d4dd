//! A file as lines.

use core::ops::Range;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::frame::{self, HEAD_BYTES_MAX, Origin, Sum};

/// Minimum number of bytes that are read at once: some tens of messages.
const READ_BYTES: u64 = 16 * 1024;

/// Reads a file that has no writer meanwhile.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    file: &'a File,
    size: u64,
    /// End of the text that is read ahead: nothing behind it is wanted.
    ahead_to: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
    /// The text of the line that was last read, of a file that is encrypted.
    clear: String,
}

/// The content at a place of a file.
#[derive(Debug)]
pub(super) enum Next<'a> {
    /// A whole line of so many bytes, and its data.
    Line { len: u64, sum: Sum, data: &'a [u8] },
    /// Nothing: the file ends here.
    End,
    /// The beginning of a line that was never written to its end.
    Torn,
    /// Something else.
    Damaged,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(file: &'a File, size: u64) -> Self {
        Self { file, size, ahead_to: size, buffer: Vec::new(), buffer_at: 0, clear: String::new() }
    }

    /// Reads no further ahead than to `end`: the commits behind the last message that is shown can be many.
    pub(super) fn read_ahead_to(&mut self, end: u64) {
        self.ahead_to = end.min(self.size);
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// The `len` bytes at `at`, or what is there of them.
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

    /// Whether these bytes stand at `at`. Reads no more than them.
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

    /// The data of the line at `at`, which has `len` bytes; `None` if it is not as it was written.
    pub(super) fn data(&mut self, file: &Origin, at: u64, len: u64) -> io::Result<Option<&[u8]>> {
        match self.checked(file, at, len)? {
            Some(data) => self.text(file, at, len, data).map(Some),
            None => Ok(None),
        }
    }

    /// The range of the data in the line at `at`, if it is as it was written.
    fn checked(&mut self, file: &Origin, at: u64, len: u64) -> io::Result<Option<Range<usize>>> {
        let line = self.bytes(at, len)?;
        let data = frame::data(file.id, at, line);
        if file.seal.is_plain() {
            return Ok(data);
        }
        let clear = data.as_ref().and_then(|data| file.open(at, line.get(data.clone())?));
        self.clear = clear.unwrap_or_default();
        // No line has an empty text.
        Ok(data.filter(|_| !self.clear.is_empty()))
    }

    /// The text of a line that was just [`checked`](Self::checked), with its data there.
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

    /// Whether what stands at `at` is what a write leaves that was interrupted: less than the `line` bytes of a line, and
    /// then the end of the file, or only the zeros with which file systems fill what they have not yet written. A line
    /// that ends where the file does, and of which only the last byte is another one, was whole once.
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
