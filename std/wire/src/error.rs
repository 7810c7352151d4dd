//! Errors of a text: their kind, their place, and a remedy.

use core::error::Error;
use core::fmt;
use std::borrow::Cow;

/// An error for a text that cannot be read, or a message that cannot be written.
///
/// It names the place, and never quotes the text of a message. Names of roles, kinds and keys are quoted, shortened to
/// 40 characters.
#[derive(Debug)]
pub struct WireError {
    kind: WireErrorKind,
    path: String,
    offset: Option<usize>,
    position: Option<(usize, usize)>,
    what: Cow<'static, str>,
    source: Option<std::io::Error>,
}

/// The kind of an error in a text or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// The text is empty, or only white space.
    Empty,
    /// The bytes are not UTF-8: convert them.
    NotUtf8,
    /// The text is not JSON.
    NotJson,
    /// The text is the beginning of a JSON value: get the rest of it.
    Truncated,
    /// A JSON pointer is malformed.
    Pointer,
    /// There is no value at the requested place.
    NotFound,
    /// The JSON is not of the expected form.
    Shape,
    /// Several formats fit the text, and their readers disagree on its content.
    Ambiguous,
    /// An object has the same key twice, so readers disagree on its value.
    DuplicateKey,
    /// The format does not have the role of the message.
    UnknownRole,
    /// The format cannot represent the content of the message.
    Unsupported,
    /// A line exceeds the maximum length: split it, or leave it out.
    TooLarge,
    /// Reading or writing failed before the text was complete.
    Io,
}

impl WireError {
    /// Creates an error of this kind. `what` describes the finding and the expected value, without any message text.
    #[must_use]
    pub fn new(kind: WireErrorKind, what: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, path: String::new(), offset: None, position: None, what: what.into(), source: None }
    }

    /// Sets the byte offset in the text that was being read.
    #[must_use]
    pub const fn with_offset(mut self, offset: usize) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Adds the place of the text that was being read: `path`, a JSON pointer, and `offset`, the position of its first
    /// byte in the enclosing text. Call it once for each enclosing text, from the inside out.
    #[must_use]
    pub fn inside(mut self, path: impl fmt::Display, offset: usize) -> Self {
        self.path = format!("{path}{}", self.path);
        self.offset = Some(self.offset.unwrap_or_default().saturating_add(offset));
        self
    }

    /// Sets line and column from the byte offset in `text`, whose first line has the number `first_line`.
    #[must_use]
    pub fn positioned(mut self, text: &str, first_line: usize) -> Self {
        if let Some(offset) = self.offset {
            let before = text.as_bytes().get(..offset.min(text.len())).unwrap_or_default();
            let lines = before.iter().filter(|byte| **byte == b'\n').count();
            let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
            self.position = Some((first_line.saturating_add(lines), column.saturating_add(1)));
        }
        self
    }

    /// The kind of the error.
    #[must_use]
    pub const fn kind(&self) -> WireErrorKind {
        self.kind
    }

    /// The place as a JSON pointer, for example `/messages/3/content`; empty for the whole text.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The place as a byte offset in the text, if it is known.
    #[must_use]
    pub const fn offset(&self) -> Option<usize> {
        self.offset
    }

    /// The place as a line number, counted from 1, if it is known.
    #[must_use]
    pub const fn line(&self) -> Option<usize> {
        match self.position {
            Some((line, _)) => Some(line),
            None => None,
        }
    }

    /// The place as a column of its line, in bytes, counted from 1, if it is known.
    #[must_use]
    pub const fn column(&self) -> Option<usize> {
        match self.position {
            Some((_, column)) => Some(column),
            None => None,
        }
    }

    pub(crate) fn shape(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(WireErrorKind::Shape, what)
    }

    pub(crate) fn unsupported(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(WireErrorKind::Unsupported, what)
    }

    pub(crate) fn io(source: std::io::Error) -> Self {
        Self::new(WireErrorKind::Io, "reading failed").because(source)
    }

    /// Sets `source` as the cause of the error.
    pub(crate) fn because(mut self, source: std::io::Error) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds `more` to the end of the message.
    pub(crate) fn and(mut self, more: impl fmt::Display) -> Self {
        self.what = format!("{}; {more}", self.what).into();
        self
    }

    /// Moves the offset of the error from a text to the enclosing text. Line and column are already correct.
    pub(crate) const fn shifted(mut self, offset: usize) -> Self {
        if let Some(inner) = self.offset {
            self.offset = Some(inner.saturating_add(offset));
        }
        self
    }
}

impl WireErrorKind {
    /// The remedy for this kind; empty if the message of the error contains it.
    const fn remedy(self) -> &'static str {
        match self {
            Self::Truncated => "it was cut off: get the rest of it",
            Self::DuplicateKey => "remove one of the two",
            Self::Ambiguous => "say which it is",
            Self::Unsupported => "write it in another format or remove that part",
            _ => "",
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        if let Some((line, column)) = self.position {
            write!(f, "line {line}")?;
            if column > 1 {
                write!(f, ", column {column}")?;
            }
            comma = ", ";
        } else if let Some(offset) = self.offset.filter(|offset| *offset > 0) {
            write!(f, "byte {offset}")?;
            comma = ", ";
        }
        if !self.path.is_empty() {
            write!(f, "{comma}at {}", self.path)?;
            comma = ", ";
        }
        let colon = if comma.is_empty() { "" } else { ": " };
        write!(f, "{colon}{}", self.what)?;
        match self.kind.remedy() {
            "" => {}
            remedy => write!(f, "; {remedy}")?,
        }
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for WireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Formats a name from the text for printing: escaped, in backticks, at most 40 characters of it.
pub(crate) fn quoted(name: &str) -> String {
    let mut out = String::from("`");
    out.extend(name.chars().take(NAME_CHARS_MAX).flat_map(char::escape_debug));
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        out.push_str("..");
    }
    out.push('`');
    out
}

/// Long enough to recognise a key or a role, and too short for the text of a message in the place of a name.
const NAME_CHARS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_place_from_the_outside_in() {
        let error = WireError::shape("expected a text").with_offset(3).inside("/content", 4);
        let error = error.inside("/messages/3", 10).positioned("{\n\n\"messages\": [[", 1);
        assert_eq!(error.to_string(), "line 3, column 15, at /messages/3/content: expected a text");
        assert_eq!((error.offset(), error.line(), error.column()), (Some(17), Some(3), Some(15)));
    }

    #[test]
    fn names_are_shortened_and_escaped() {
        assert_eq!(quoted("a\u{1b}[1m"), r"`a\u{1b}[1m`");
        assert_eq!(quoted(&"x".repeat(50)).len(), 2 + 40 + 2);
    }

    #[test]
    fn remedies_follow_what_is_wrong() {
        let error = WireError::new(WireErrorKind::Truncated, "the JSON ends early");
        assert_eq!(error.to_string(), "the JSON ends early; it was cut off: get the rest of it");
    }
}
