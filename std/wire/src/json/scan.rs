//! Finds the ends of values and checks whether a text is JSON. `serde_json` finds the reason for an error.
//!
//! A text is scanned several times, once for each level that a reader opens, so the scan is most of the cost of
//! reading. `memchr` skips long strings, and the scanner stores only one bit for each open bracket. A first scan can
//! note the ends of long strings, arrays and objects, so that later scans skip each of them in one step.

mod look;

use core::convert::Infallible;

pub(crate) use look::Spans;
pub(super) use look::{Checked, Known, Look, NEAR_BYTES, position};

/// Calls `visit` with every key and value of the object `text`. Keys are unchanged, quotes included.
///
/// # Errors
/// `None` if the text is not JSON, or no object; otherwise the error of `visit`.
pub(super) fn members<'a, S: Look, E>(
    look: S,
    text: &'a str,
    mut visit: impl FnMut(&'a str, &'a str) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut scanner = Scanner::at_start(look, text);
    let member = |scanner: &mut Scanner<'a, S>| scanner.member(Scanner::value);
    scanner.list(b'{', b'}', member, |(key, value)| visit(key, value))?;
    scanner.end().ok_or(None)
}

/// Calls `visit` with every element of the array `text`.
///
/// # Errors
/// As [`members`].
pub(super) fn items<'a, S: Look, E>(
    look: S,
    text: &'a str,
    visit: impl FnMut(&'a str) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut scanner = Scanner::at_start(look, text);
    scanner.list(b'[', b']', |scanner| scanner.slice(Scanner::value), visit)?;
    scanner.end().ok_or(None)
}

/// Works like [`members`], and before each value that is an array calls `visit_item` with every element of it.
pub(super) fn members_and_items<'a, S: Look, E>(
    look: S,
    text: &'a str,
    mut visit_item: impl FnMut(&'a str),
    mut visit: impl FnMut(&'a str, &'a str) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut value = |scanner: &mut Scanner<'a, S>| match scanner.peek()? {
        b'[' => {
            let item = |scanner: &mut Scanner<'a, S>| scanner.slice(Scanner::value);
            let mut visit_item = |item| {
                visit_item(item);
                Ok::<_, Infallible>(())
            };
            scanner.list(b'[', b']', item, &mut visit_item).ok()
        }
        _ => scanner.value(),
    };
    let mut scanner = Scanner::at_start(look, text);
    scanner.list(b'{', b'}', |scanner| scanner.member(&mut value), |(key, value)| visit(key, value))?;
    scanner.end().ok_or(None)
}

/// Works like [`items`], and before each element that is an object calls `visit_member` with every key and value of it.
pub(super) fn items_and_members<'a, S: Look, E>(
    look: S,
    text: &'a str,
    mut visit_member: impl FnMut(&'a str, &'a str),
    visit: impl FnMut(&'a str) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut element = |scanner: &mut Scanner<'a, S>| match scanner.peek()? {
        b'{' => {
            let member = |scanner: &mut Scanner<'a, S>| scanner.member(Scanner::value);
            let mut visit_member = |(key, value)| {
                visit_member(key, value);
                Ok::<_, Infallible>(())
            };
            scanner.list(b'{', b'}', member, &mut visit_member).ok()
        }
        _ => scanner.value(),
    };
    let mut scanner = Scanner::at_start(look, text);
    scanner.list(b'[', b']', |scanner| scanner.slice(&mut element), visit)?;
    scanner.end().ok_or(None)
}

/// Whether `text` is one JSON value.
pub(super) fn is_value(text: &str) -> bool {
    is_value_by(Checked::default(), text)
}

pub(super) fn is_value_by(look: Checked<'_>, text: &str) -> bool {
    let mut scanner = Scanner::at_start(look, text);
    scanner.value().and_then(|()| scanner.end()).is_some()
}

/// A place in a text. Every step returns `None` if the text is not JSON.
pub(super) struct Scanner<'a, S> {
    text: &'a str,
    at: usize,
    look: S,
}

impl<'a, S: Look> Scanner<'a, S> {
    fn at_start(look: S, text: &'a str) -> Self {
        let mut scanner = Self { text, at: 0, look };
        scanner.blank();
        scanner
    }

    /// Scans a list between these brackets, with one `step` for each element.
    fn list<T, E>(
        &mut self,
        open: u8,
        close: u8,
        mut step: impl FnMut(&mut Self) -> Option<T>,
        mut visit: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), Option<E>> {
        self.eat(open).ok_or(None)?;
        if self.byte(close).is_none() {
            loop {
                visit(step(self).ok_or(None)?).map_err(Some)?;
                self.blank();
                if self.eat(b',').is_none() {
                    break;
                }
            }
            self.byte(close).ok_or(None)?;
        }
        Ok(())
    }

    /// A member of an object: its key, quotes included, and its value, which `value` skips.
    fn member(&mut self, value: impl FnOnce(&mut Self) -> Option<()>) -> Option<(&'a str, &'a str)> {
        let key = self.slice(Self::string)?;
        self.colon()?;
        Some((key, self.slice(value)?))
    }

    /// The text that `step` skips.
    fn slice(&mut self, step: impl FnOnce(&mut Self) -> Option<()>) -> Option<&'a str> {
        let start = self.at;
        step(self)?;
        self.text.get(start..self.at)
    }

    fn value(&mut self) -> Option<()> {
        if let Some(end) = self.look.end_of(self.at) {
            self.at = end;
            return Some(());
        }
        match self.peek()? {
            b'{' | b'[' => S::container(self),
            other => self.scalar(other),
        }
    }

    /// Skips a value without nested values, which begins with `first`.
    fn scalar(&mut self, first: u8) -> Option<()> {
        match first {
            b'"' => self.string(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.colon()
    }

    fn colon(&mut self) -> Option<()> {
        self.blank();
        self.eat(b':')
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at;
        self.byte(b'"')?;
        let length = S::string(self.text.as_bytes().get(self.at..)?)?;
        self.at = self.at.saturating_add(length);
        self.look.note(start, self.at);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.byte(b'-');
        if self.byte(b'0').is_none() {
            self.digits()?;
        }
        if self.byte(b'.').is_some() {
            self.digits()?;
        }
        if self.byte(b'e').or_else(|| self.byte(b'E')).is_some() {
            let _ = self.byte(b'+').or_else(|| self.byte(b'-'));
            self.digits()?;
        }
        Some(())
    }

    /// Skips at least one digit.
    fn digits(&mut self) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at = self.at.saturating_add(count);
        (count > 0).then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at = self.at.saturating_add(word.len());
        rest.starts_with(word.as_bytes()).then_some(())
    }

    /// Checks for the end of the text.
    fn end(&mut self) -> Option<()> {
        self.blank();
        if self.at >= self.text.len() { Some(()) } else { None }
    }

    /// Skips this byte and the white space after it.
    fn eat(&mut self, byte: u8) -> Option<()> {
        self.byte(byte)?;
        self.blank();
        Some(())
    }

    /// Skips this byte.
    fn byte(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.at = self.at.saturating_add(1);
        Some(())
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at = self.at.saturating_add(1);
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests;
