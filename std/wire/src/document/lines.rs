//! JSONL: one JSON value per line.

use std::io::{BufRead, ErrorKind, Seek};

use memchr::memchr;

use super::{BYTE_ORDER_MARK, Document, Origin, route, utf8_error};
use crate::json::{self, ValueKind};
use crate::{WireError, WireErrorKind};

/// Whether `text` is JSONL and not JSON: its first line is a whole object or array, and another object or array begins
/// after it.
///
/// The beginning of a large file is enough if it holds the first line and part of the second.
#[must_use]
pub fn looks_like_jsonl(text: &str) -> bool {
    let mut lines = lines(text);
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let is_container =
        |line: Line<'_>| matches!(ValueKind::of(line.text()), ValueKind::Object | ValueKind::Array);
    is_container(first) && is_container(second) && json::check(first.text()).is_ok()
}

/// One line of JSONL that is not blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    number: usize,
    offset: usize,
    text: &'a str,
}

/// The kind of a line of JSONL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineKind {
    /// A message: an object with `role`.
    Message,
    /// A conversation: an object with `messages`, or an array of messages.
    Conversation,
}

impl<'a> Line<'a> {
    /// The number of the line, counted from 1. Blank lines count.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The offset of the text of the line in its file or source text.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The text of the line, without surrounding white space.
    #[must_use]
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// Parses the line as a JSON value. Errors have the number of the line.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn document(&self) -> Result<Document<'a>, WireError> {
        Document::parse_at(self.text, Origin { offset: self.offset, line: self.number })
    }

    /// Whether the line is a message or a conversation.
    ///
    /// # Errors
    /// As [`Document::parse`], and `Shape` if it is neither.
    pub fn kind(&self) -> Result<LineKind, WireError> {
        let document = self.document()?;
        if route::is_message(self.text) {
            return Ok(LineKind::Message);
        }
        let refused = match document.conversation() {
            Ok(_) => return Ok(LineKind::Conversation),
            Err(error) => error,
        };
        if route::is_conversation(self.text) {
            return Err(refused);
        }
        let mut what = format!(
            "neither a message (an object with `role`) nor a conversation (with `messages`); found {}",
            json::describe(self.text)
        );
        if let Some(advice) = route::advice_for_lines(self.text) {
            what = format!("{what}; {advice}");
        }
        Err(document.place(WireError::shape(what).with_offset(0)))
    }
}

/// The lines of `text` that are not blank.
#[must_use]
pub fn lines(text: &str) -> TextLines<'_> {
    TextLines { rest: text, number: 0, offset: 0 }
}

/// The lines of a text that are not blank. Made by [`lines`].
#[derive(Debug, Clone)]
pub struct TextLines<'a> {
    rest: &'a str,
    number: usize,
    offset: usize,
}

impl<'a> Iterator for TextLines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while !self.rest.is_empty() {
            let end = memchr(b'\n', self.rest.as_bytes()).map_or(self.rest.len(), |at| at.saturating_add(1));
            let (raw, rest) = self.rest.split_at(end);
            self.number = self.number.saturating_add(1);
            let (text, start) = (json::trim(raw), self.offset);
            self.rest = rest;
            self.offset = start.saturating_add(end);
            if !text.is_empty() {
                let offset = start.saturating_add(json::offset_of(raw, text));
                return Some(Line { number: self.number, offset, text });
            }
        }
        None
    }
}

/// Default of the maximum length of a line of a file, in bytes. A line is in memory as a whole, and more than once
/// while it is read. The longest lines of agents have tens of megabytes, because of the images in them.
pub const LINE_BYTES_MAX: usize = 256 << 20;

/// The lines of a file that are not blank, one in memory at a time.
///
/// ```
/// use epitome_wire::document::Lines;
///
/// let mut lines = Lines::new(&b"{\"role\":\"user\"}\n\n{\"role\":\"assistant\"}\n"[..]);
/// let mut numbers = Vec::new();
/// while let Some(line) = lines.next_line()? {
///     numbers.push(line.number());
/// }
/// assert_eq!(numbers, [1, 3]);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: usize,
    offset: usize,
    line_bytes_max: usize,
    /// Whether the reader is within a line that was refused.
    is_within: bool,
}

impl<R: BufRead> Lines<R> {
    /// Creates a reader for the lines of `reader`.
    #[must_use]
    pub const fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            number: 0,
            offset: 0,
            line_bytes_max: LINE_BYTES_MAX,
            is_within: false,
        }
    }

    /// Sets the maximum length of a line in bytes, including the line break. The default is [`LINE_BYTES_MAX`].
    #[must_use]
    pub fn with_line_bytes_max(mut self, line_bytes_max: usize) -> Self {
        self.line_bytes_max = line_bytes_max;
        self
    }

    /// The next line that is not blank; `None` at the end. The buffer grows to the longest line.
    ///
    /// # Errors
    /// `TooLarge` if the line exceeds the maximum length or the available memory. `Io` if reading fails. `NotUtf8` if
    /// the line is not UTF-8. The next call continues with the line after it.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, WireError> {
        loop {
            self.pass_over_the_rest()?;
            self.buffer.clear();
            let start = self.offset;
            self.number = self.number.saturating_add(1);
            self.fill()?;
            if self.buffer.is_empty() {
                return Ok(None);
            }
            let mark = match start {
                0 if self.buffer.starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len(),
                _ => 0,
            };
            let mut said = self.buffer.iter().skip(mark);
            if !said.all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
                return self.line(start, mark).map(Some);
            }
        }
    }

    /// Reads up to the end of the line.
    fn fill(&mut self) -> Result<(), WireError> {
        loop {
            let here = match self.reader.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                here => here.map_err(WireError::io)?,
            };
            let end = memchr(b'\n', here).map(|at| at.saturating_add(1));
            let piece = here.get(..end.unwrap_or(here.len())).unwrap_or_default();
            let is_long = self.buffer.len().saturating_add(piece.len()) > self.line_bytes_max;
            // A line without enough memory is an error too: without `try_reserve` it would end the process.
            if is_long || self.buffer.try_reserve(piece.len()).is_err() {
                self.is_within = true;
                return Err(self.too_long(is_long));
            }
            self.buffer.extend_from_slice(piece);
            let read = piece.len();
            self.reader.consume(read);
            self.offset = self.offset.saturating_add(read);
            if read == 0 || end.is_some() {
                return Ok(());
            }
        }
    }

    /// Skips the rest of a refused line, if the reader is within one.
    fn pass_over_the_rest(&mut self) -> Result<(), WireError> {
        if core::mem::take(&mut self.is_within) {
            self.buffer = Vec::new();
            let read = self.reader.skip_until(b'\n').map_err(WireError::io)?;
            self.offset = self.offset.saturating_add(read);
        }
        Ok(())
    }

    fn too_long(&self, is_long: bool) -> WireError {
        let what = match is_long {
            true => format!("is longer than the {} bytes that a line may have", self.line_bytes_max),
            false => "is too long for the memory that there is".to_owned(),
        };
        let what = format!("line {} {what}: cut it into several, or leave it out", self.number);
        WireError::new(WireErrorKind::TooLarge, what)
    }

    fn line(&self, start: usize, mark: usize) -> Result<Line<'_>, WireError> {
        let bytes = self.buffer.get(mark..).unwrap_or_default();
        let start = start.saturating_add(mark);
        let raw = core::str::from_utf8(bytes)
            .map_err(|error| utf8_error(&self.buffer, bytes, error, (start, self.number)))?;
        let text = json::trim(raw);
        let offset = start.saturating_add(json::offset_of(raw, text));
        Ok(Line { number: self.number, offset, text })
    }
}

impl<R: BufRead + Seek> Lines<R> {
    /// Goes to the line that begins at `offset`. The number of the line is then unknown.
    pub(crate) fn go_to(&mut self, offset: u64) -> Result<(), WireError> {
        let here = i64::try_from(self.offset).ok();
        let there = i64::try_from(offset).ok();
        let by = there.zip(here).and_then(|(there, here)| there.checked_sub(here));
        let too_far = || std::io::Error::from(ErrorKind::InvalidInput);
        // The bytes in the buffer of a reader are not read again.
        by.ok_or_else(too_far).and_then(|by| self.reader.seek_relative(by)).map_err(WireError::io)?;
        self.offset = usize::try_from(offset).unwrap_or(usize::MAX);
        (self.number, self.is_within) = (0, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor, Read as _};

    use super::*;

    /// The result of each call of `next_line`: the number and the offset of the line with its text, or the kind of the error.
    fn all<R: BufRead>(mut lines: Lines<R>) -> Vec<Result<(usize, usize, String), WireErrorKind>> {
        let mut found = Vec::new();
        loop {
            match lines.next_line() {
                Ok(None) => return found,
                Ok(Some(line)) => found.push(Ok((line.number(), line.offset(), line.text().to_owned()))),
                Err(error) => found.push(Err(error.kind())),
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_and_passed_over() {
        let text = "1234567\n12345678\n\n1\n123456789";
        for piece in [1, 3, 8, 100] {
            let lines = Lines::new(BufReader::with_capacity(piece, text.as_bytes())).with_line_bytes_max(8);
            let expected = [
                Ok((1, 0, "1234567".to_owned())),
                Err(WireErrorKind::TooLarge),
                Ok((4, 18, "1".to_owned())),
                Err(WireErrorKind::TooLarge),
            ];
            assert_eq!(all(lines), expected, "read by {piece}");
        }
        let error = Lines::new(Cursor::new(text)).with_line_bytes_max(4).next_line().unwrap_err();
        let said =
            "line 1 is longer than the 4 bytes that a line may have: cut it into several, or leave it out";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn no_more_of_a_line_is_held_than_it_may_have() {
        let endless = BufReader::new(std::io::repeat(b'x').take(1 << 40));
        let mut lines = Lines::new(endless).with_line_bytes_max(1 << 20);
        assert_eq!(lines.next_line().unwrap_err().kind(), WireErrorKind::TooLarge);
        assert!(lines.buffer.capacity() <= 4 << 20);
    }
}
