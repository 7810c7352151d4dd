//! Finds conversations in a JSON or JSONL text, and writes the text back with some of their messages.
//!
//! All results are slices or byte ranges of the text: no value tree, no copy, no recursion with the text's depth.
//!
//! ```
//! use epitome_wire::document::{Document, Pointer, conversation};
//!
//! let text = r#"{"runs": [{"history": [{"role": "user", "content": "Hi"}]}]}"#;
//! let there = Document::parse(text)?.at(&Pointer::parse("/runs/0/history")?)?;
//! assert_eq!(there.conversation()?.len(), 1);
//!
//! let error = conversation(text).unwrap_err();
//! assert!(error.to_string().ends_with("/runs/0/history holds 1 message: try --at /runs/0/history"));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```

mod conversation;
mod foreign;
mod lines;
mod looks;
mod pointer;
mod route;
mod values;

use core::ops::Range;
use core::str::Utf8Error;

use super::error::quoted;
use super::json::{self, ValueKind};
use super::{WireError, WireErrorKind};

pub use conversation::{DocumentConversation, Layout, Piece};
pub(crate) use foreign::{Foreign, foreign_in_lines, foreign_in_value};
pub use lines::{LINE_BYTES_MAX, Line, LineKind, Lines, TextLines, lines, looks_like_jsonl};
pub use pointer::Pointer;
pub(crate) use route::{is_message, refusal};
pub use values::{ElementFields, elements_and_fields, fields, members};

/// The text of `bytes`, without a leading byte order mark.
///
/// ```
/// use epitome_wire::document::utf8;
///
/// assert_eq!(utf8(b"\xEF\xBB\xBF{}")?, "{}");
/// assert!(utf8(b"{\n\xFF}").unwrap_err().to_string().contains("line 2"));
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// `NotUtf8`, with the offset and the line of the first invalid byte.
pub fn utf8(bytes: &[u8]) -> Result<&str, WireError> {
    let (start, rest) = match bytes.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK.len(), rest),
        None => (0, bytes),
    };
    core::str::from_utf8(rest).map_err(|error| utf8_error(bytes, rest, error, (start, 1)))
}

/// The error for `rest`, the end of `bytes`, which begins at the given offset and line of the file.
fn utf8_error(bytes: &[u8], rest: &[u8], error: Utf8Error, (start, line): (usize, usize)) -> WireError {
    let good = rest.get(..error.valid_up_to()).unwrap_or_default();
    let what = match (bytes, error.error_len()) {
        ([0xFF, 0xFE, ..] | [0xFE, 0xFF, ..], _) => "not UTF-8 but UTF-16: convert it to UTF-8",
        (_, None) => "not UTF-8: the text ends in the middle of a character",
        _ => "not UTF-8: convert the text to UTF-8",
    };
    WireError::new(WireErrorKind::NotUtf8, what)
        .with_offset(good.len())
        .positioned(core::str::from_utf8(good).unwrap_or_default(), line)
        .shifted(start)
}

/// Finds the conversation in `text`: JSON, or JSONL with one message per line.
///
/// # Errors
/// As [`Document::parse`] and [`Document::conversation`]; for JSONL as [`DocumentConversation::from_lines`].
pub fn conversation(text: &str) -> Result<DocumentConversation<'_>, WireError> {
    match is_lines(text) {
        true => DocumentConversation::from_lines(text),
        false => Document::parse(text)?.conversation(),
    }
}

/// Whether `text` is read line by line: as JSONL, or as one line with one message, like a log after its first message.
pub(crate) fn is_lines(text: &str) -> bool {
    looks_like_jsonl(text) || !json::trim(text).contains('\n') && is_message(text)
}

/// The values in `text`: the elements of a JSON array, or the lines of JSONL.
///
/// ```
/// use epitome_wire::document::each;
///
/// let texts = |text| Ok::<_, epitome_wire::WireError>(each(text)?.map(|value| value.map(|it| it.text().to_owned())).collect::<Result<Vec<_>, _>>()?);
/// assert_eq!(texts("[1, {}]")?, ["1", "{}"]);
/// assert_eq!(texts("{\"a\":1}\n{\"b\":2}\n")?.len(), 2);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// As [`Document::parse`] and [`Document::each`]. A line that is not JSON is an error in its place.
pub fn each(text: &str) -> Result<Each<'_>, WireError> {
    match is_one_line(text) || looks_like_jsonl(text) {
        true => Ok(Each { from: Values::Lines(lines(text)) }),
        false => Document::parse(text)?.each(),
    }
}

/// Whether `text` is an object in one line. [`each`] reads it as a list of one value.
fn is_one_line(text: &str) -> bool {
    let inner = json::trim(text.strip_prefix('\u{FEFF}').unwrap_or(text));
    ValueKind::of(inner) == ValueKind::Object && !inner.contains('\n')
}

/// The value at `pointer` in `text`. In JSONL the first key of the pointer is the number of a line, from 0; blank lines have no number.
///
/// ```
/// use epitome_wire::document::{Pointer, at};
///
/// let id = at("{\"id\":7}\n{\"id\":8}\n", &Pointer::parse("/1/id")?)?;
/// assert_eq!(id.text(), "8");
/// assert_eq!(at("{\"id\":7}\n", &Pointer::parse("/0/id")?)?.text(), "7");
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// As [`Document::parse`] and [`Document::at`]. `NotFound` too if there is no line with that number.
pub fn at<'a>(text: &'a str, pointer: &Pointer) -> Result<Document<'a>, WireError> {
    if !looks_like_jsonl(text) {
        let found = Document::parse(text)?.at(pointer);
        // The number 0 means the only line, if the object in it has no such key.
        if found.is_ok() || pointer.keys().next().as_deref() != Some("0") || !is_one_line(text) {
            return found;
        }
    }
    let mut keys = pointer.keys();
    let first = keys.next().unwrap_or_default();
    let missing = |what: String| WireError::new(WireErrorKind::NotFound, what);
    let Some(number) = index(&first) else {
        let example = Pointer::default().join("0").then(pointer);
        return Err(missing(format!(
            "this is JSONL: a place in it begins with the number of a line, from 0, as {example} does"
        )));
    };
    let none = || {
        missing(format!(
            "there is no line {first}: the lines have the numbers 0 to {}",
            lines(text).count() - 1
        ))
    };
    let line = lines(text).nth(number).ok_or_else(none)?.document()?;
    line.at(&keys.fold(Pointer::default(), |below, key| below.join(&key)))
}

/// One JSON value in a text: the whole text, or a part of it.
///
/// ```
/// use epitome_wire::document::{Document, Pointer};
///
/// let text = r#"{"runs": [{"id": 7}]}"#;
/// let id = Document::parse(text)?.at(&Pointer::parse("/runs/0/id")?)?;
/// assert_eq!((id.text(), id.path().to_string()), ("7", "/runs/0/id".into()));
/// assert_eq!(&text[id.range().clone()], "7");
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Document<'a> {
    whole: &'a str,
    range: Range<usize>,
    path: Pointer,
    origin: Origin,
}

/// The place of a text in a file: its first byte, and its first line.
#[derive(Debug, Clone, Copy)]
struct Origin {
    offset: usize,
    line: usize,
}

impl<'a> Document<'a> {
    /// Parses `text`, one JSON value.
    ///
    /// # Errors
    /// `Empty`, `Truncated` or `NotJson`, with line and column.
    pub fn parse(text: &'a str) -> Result<Self, WireError> {
        Self::parse_at(text, Origin { offset: 0, line: 1 })
    }

    fn parse_at(whole: &'a str, origin: Origin) -> Result<Self, WireError> {
        let range = json::range_of(whole, json::trim(whole));
        let document = Self { whole, range, path: Pointer::default(), origin };
        match json::check(whole) {
            Ok(()) => Ok(document),
            Err(error) => Err(error.positioned(whole, origin.line).shifted(origin.offset)),
        }
    }

    /// The value of `text`, which is known to be one JSON value.
    pub(crate) fn known(text: &'a str) -> Self {
        let range = json::range_of(text, json::trim(text));
        Self { whole: text, range, path: Pointer::default(), origin: Origin { offset: 0, line: 1 } }
    }

    /// The value at `pointer` in this value.
    ///
    /// # Errors
    /// `NotFound`: it names the deepest place that exists, and the kind of the value there.
    pub fn at(&self, pointer: &Pointer) -> Result<Self, WireError> {
        let mut here = self.clone();
        for key in pointer.keys() {
            let text = here.text();
            let found = match ValueKind::of(text) {
                ValueKind::Object => json::field(text, &key).map_err(|error| here.place(error))?,
                ValueKind::Array => element(text, &key),
                _ => None,
            };
            let Some(found) = found else { return Err(here.missing(&key)) };
            here = Self { range: json::range_of(here.whole, found), path: here.path.join(&key), ..here };
        }
        Ok(here)
    }

    /// The conversation in this value: an array of messages, or an object with `messages`, for example a Chat
    /// Completions request.
    ///
    /// # Errors
    /// `Shape`: it describes the value here, and, where possible, the pointer of a conversation.
    pub fn conversation(&self) -> Result<DocumentConversation<'a>, WireError> {
        DocumentConversation::find(self)
    }

    /// The elements of this value, an array.
    ///
    /// # Errors
    /// `Shape` if the value is not an array.
    pub fn each(&self) -> Result<Each<'a>, WireError> {
        let text = self.text();
        if ValueKind::of(text) != ValueKind::Array {
            let what = format!("found {}; expected an array", json::describe(text));
            return Err(self.place(WireError::shape(what)));
        }
        let mut ranges = Vec::new();
        json::items(text, |item| {
            ranges.push(json::range_of(self.whole, item));
            Ok(())
        })?;
        Ok(Each { from: Values::Elements(self.clone(), ranges.into_iter().enumerate()) })
    }

    /// The value's text.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.whole.get(self.range.clone()).unwrap_or_default()
    }

    /// The text that contains the value.
    #[must_use]
    pub const fn whole(&self) -> &'a str {
        self.whole
    }

    /// The byte range of the value in [`whole`](Self::whole).
    #[must_use]
    pub const fn range(&self) -> &Range<usize> {
        &self.range
    }

    /// The place of the value in the whole text.
    #[must_use]
    pub const fn path(&self) -> &Pointer {
        &self.path
    }

    /// Adds the place in the whole text to `error`, which is about this value's text.
    #[must_use]
    pub fn place(&self, error: WireError) -> WireError {
        let error = error.inside(&self.path, self.range.start);
        // Line 1, column 1 is no useful place for an error of a whole text.
        if self.origin.line == 1 && error.offset() == Some(0) {
            return error;
        }
        error.positioned(self.whole, self.origin.line).shifted(self.origin.offset)
    }

    fn missing(&self, key: &str) -> WireError {
        let found = json::describe(self.text());
        let lacks = match ValueKind::of(self.text()) {
            ValueKind::Object => format!("it has no key {}", quoted(key)),
            ValueKind::Array if index(key).is_some() => format!("it has no element {key}"),
            ValueKind::Array => format!("{} is not an index", quoted(key)),
            _ => format!("there is no {} below it", quoted(key)),
        };
        self.place(WireError::new(WireErrorKind::NotFound, format!("found {found}; {lacks}")))
    }
}

/// The element of the array `text` at the index `key`.
fn element<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let wanted = index(key)?;
    let (mut at, mut found) = (0_usize, None);
    json::items(text, |item| {
        if at == wanted {
            found = Some(item);
        }
        at = at.saturating_add(1);
        Ok(())
    })
    .ok()?;
    found
}

/// Parses `key` as an index of RFC 6901: digits without a leading zero.
fn index(key: &str) -> Option<usize> {
    let digits = key.bytes().all(|byte| byte.is_ascii_digit()) && (key == "0" || !key.starts_with('0'));
    if digits { key.parse().ok() } else { None }
}

/// An iterator over the values in a text.
#[derive(Debug, Clone)]
pub struct Each<'a> {
    from: Values<'a>,
}

#[derive(Debug, Clone)]
enum Values<'a> {
    Elements(Document<'a>, core::iter::Enumerate<std::vec::IntoIter<Range<usize>>>),
    Lines(TextLines<'a>),
}

impl<'a> Iterator for Each<'a> {
    type Item = Result<Document<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.from {
            Values::Lines(lines) => lines.next().map(|line| line.document()),
            Values::Elements(array, ranges) => ranges.next().map(|(index, range)| {
                let path = array.path.join(&index.to_string());
                Ok(Document { range, path, ..array.clone() })
            }),
        }
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[cfg(test)]
mod tests;
