//! JSONL: a JSON value on every line.

use std::io::{BufRead, Seek};

use memchr::memchr;

use super::{BYTE_ORDER_MARK, Document, Origin, route, utf8_error};
use crate::wire::WireError;
use crate::wire::json::{self, Kind};

/// Whether `text` is JSONL and not JSON: its first line is a whole object or array, and another one begins after it.
///
/// Give it the beginning of a large file only if that holds the first line and part of the second.
#[must_use]
pub fn looks_like_jsonl(text: &str) -> bool {
    let mut lines = lines(text);
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let is_container = |line: Line<'_>| matches!(Kind::of(line.text()), Kind::Object | Kind::Array);
    is_container(first) && is_container(second) && json::check(first.text()).is_ok()
}

/// One line of JSONL that is not blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    number: usize,
    offset: usize,
    text: &'a str,
}

/// What a line of JSONL is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineKind {
    /// A message: an object with `role`.
    Message,
    /// A conversation: an object with `messages`, or an array of messages.
    Conversation,
}

impl<'a> Line<'a> {
    /// Its number, counted from 1; blank lines count.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The offset of its text in the file or text that it was read from.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Its text, without the white space around it.
    #[must_use]
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// The line as a JSON value; its errors name the line.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn document(&self) -> Result<Document<'a>, WireError> {
        Document::parse_at(self.text, Origin { offset: self.offset, line: self.number })
    }

    /// Whether it is a message or a conversation.
    ///
    /// # Errors
    /// As [`Document::parse`], and `Shape` when it is neither.
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

/// The lines of a file that are not blank, one in memory at a time.
///
/// ```
/// use epitome_std::wire::document::Lines;
///
/// let mut lines = Lines::new(&b"{\"role\":\"user\"}\n\n{\"role\":\"assistant\"}\n"[..]);
/// let mut numbers = Vec::new();
/// while let Some(line) = lines.next_line()? {
///     numbers.push(line.number());
/// }
/// assert_eq!(numbers, [1, 3]);
/// # Ok::<(), epitome_std::wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: usize,
    offset: usize,
}

impl<R: BufRead> Lines<R> {
    /// The lines that `reader` gives.
    #[must_use]
    pub const fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0, offset: 0 }
    }

    /// The next line that is not blank; `None` at the end. The buffer grows to the longest line.
    ///
    /// # Errors
    /// `Io` when reading fails, `NotUtf8` when the line is not UTF-8. The next call goes on with the line after it.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, WireError> {
        loop {
            self.buffer.clear();
            let read = self.reader.read_until(b'\n', &mut self.buffer).map_err(WireError::io)?;
            if read == 0 {
                return Ok(None);
            }
            let start = self.offset;
            self.number = self.number.saturating_add(1);
            self.offset = start.saturating_add(read);
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
    /// Goes to the line that begins at `offset`; its number is not known.
    pub(crate) fn go_to(&mut self, offset: u64) -> Result<(), WireError> {
        let here = i64::try_from(self.offset).ok();
        let there = i64::try_from(offset).ok();
        let by = there.zip(here).and_then(|(there, here)| there.checked_sub(here));
        let too_far = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
        // What a reader has in its buffer is not read again.
        by.ok_or_else(too_far).and_then(|by| self.reader.seek_relative(by)).map_err(WireError::io)?;
        self.offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.number = 0;
        Ok(())
    }
}
