//! A writer of JSON that takes secrets out of the string literals.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{Redactor, context, marker};

/// Passes JSON, or lines of it, to a writer. It holds only the string literal that it is reading.
#[derive(Debug)]
pub(crate) struct Writer<'r, W> {
    redactor: &'r mut Redactor,
    out: W,
    depth: u8,
    literals: Literals,
    /// The string literal so far, with its opening quote.
    literal: Vec<u8>,
    /// Whether the last byte of the literal was a backslash that escapes the next byte.
    escaped: bool,
    /// The last string, if only white space has followed: it is a key if a colon follows.
    last: Option<String>,
    /// The key of the next value.
    key: Option<String>,
    /// The name of a header whose list of values follows.
    list: Option<String>,
}

/// Treatment of a string literal that holds a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Literals {
    /// The literal is written again, without the secret.
    Rewritten,
    /// A marker takes its place: all bytes outside of markers stay the same.
    Replaced,
}

impl<'r, W: Write> Writer<'r, W> {
    pub(super) const fn new(redactor: &'r mut Redactor, out: W) -> Self {
        Self::within(redactor, out, 0, Literals::Rewritten)
    }

    /// A writer for a text within a text.
    pub(super) const fn within(redactor: &'r mut Redactor, out: W, depth: u8, literals: Literals) -> Self {
        Self {
            redactor,
            out,
            depth,
            literals,
            literal: Vec::new(),
            escaped: false,
            last: None,
            key: None,
            list: None,
        }
    }

    /// Writes the rest, which is not empty only if the JSON ends too early.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let rest = core::mem::take(&mut self.literal);
        let rest = String::from_utf8_lossy(&rest).into_owned();
        let new = self.redactor.text(&rest);
        self.out.write_all(new.as_deref().unwrap_or(&rest).as_bytes())?;
        self.out.flush()
    }

    /// Passes on `bytes` outside of strings.
    fn structure(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b':' => self.key = self.last.take(),
                b'[' => {
                    self.list = self.key.take().filter(|key| context::is_header(key));
                    self.last = None;
                }
                b']' | b'{' | b'}' => (self.key, self.last, self.list) = (None, None, None),
                _ => (self.key, self.last) = (None, None),
            }
        }
        self.out.write_all(bytes)
    }

    /// Passes on the complete literal.
    fn end(&mut self) -> io::Result<()> {
        let bytes = core::mem::take(&mut self.literal);
        let Ok(literal) = core::str::from_utf8(&bytes) else { return self.out.write_all(&bytes) };
        let Some(text) = decoded(literal) else {
            let new = self.redactor.text(literal);
            return self.out.write_all(new.as_deref().unwrap_or(literal).as_bytes());
        };
        let key = self.key.take();
        let new = self.redactor.nested(key.as_deref().or(self.list.as_deref()), &text, self.depth);
        match (new, self.literals) {
            (None, _) => self.out.write_all(&bytes)?,
            (Some(new), Literals::Rewritten) => {
                serde_json::to_writer(&mut self.out, &new).map_err(io::Error::from)?;
            }
            (Some(_), Literals::Replaced) => write!(self.out, "\"{}\"", marker(context::ASSIGNMENT))?,
        }
        // A longer text is no key, and need not be held.
        self.last = (text.len() <= KEY_BYTES_MAX).then(|| text.into_owned());
        self.literal = bytes;
        self.literal.clear();
        Ok(())
    }

    /// Takes the bytes of the current string from `bytes`; returns the rest.
    fn string<'b>(&mut self, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        for (at, byte) in bytes.iter().enumerate() {
            match (self.escaped, byte) {
                (true, _) => self.escaped = false,
                (false, b'\\') => self.escaped = true,
                (false, b'"') => {
                    let (inside, rest) = bytes.split_at(at + 1);
                    self.literal.extend_from_slice(inside);
                    self.end()?;
                    return Ok(rest);
                }
                _ => {}
            }
        }
        self.literal.extend_from_slice(bytes);
        Ok(&[])
    }
}

impl<W: Write> Write for Writer<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if !self.literal.is_empty() {
                rest = self.string(rest)?;
                continue;
            }
            let quote = rest.iter().position(|byte| *byte == b'"').unwrap_or(rest.len());
            let (outside, inside) = rest.split_at(quote);
            self.structure(outside)?;
            rest = inside;
            if let Some((quote, after)) = rest.split_first() {
                self.literal.push(*quote);
                rest = after;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Maximum length of a key: names of values are short.
const KEY_BYTES_MAX: usize = 256;

/// The text of a string literal. Half a surrogate pair, which is no text, becomes U+FFFD, also in a literal that is
/// written again.
fn decoded(literal: &str) -> Option<Cow<'_, str>> {
    if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(literal) {
        return Some(text);
    }
    let mut whole = String::with_capacity(literal.len());
    let mut rest = literal;
    while let Some((before, escape)) = rest.split_once('\\') {
        whole += before;
        let is_half = escape.get(..2).is_some_and(|start| matches!(start, "ud" | "uD"))
            && escape
                .as_bytes()
                .get(2)
                .is_some_and(|digit| matches!(digit, b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F'));
        let length = if is_half { 5 } else { escape.chars().next().map_or(0, char::len_utf8) };
        let (escape, after) = escape.split_at_checked(length)?;
        whole.push('\\');
        whole += if is_half { "ufffd" } else { escape };
        rest = after;
    }
    whole += rest;
    serde_json::from_str::<String>(&whole).ok().map(Cow::Owned)
}
