//! Finding where values end. What is no JSON is told here from what is; why it is none, `serde_json` says.
//!
//! A text is looked at several times, once for each level that a reader opens, so that this is most of what reading costs:
//! long strings are passed over by `memchr`, and nothing is kept but one bit for each open bracket.

use core::convert::Infallible;

use memchr::memchr2;

/// Calls `visit` with every key and value of the object `text`: keys as they are written, quotes included.
///
/// # Errors
/// `None` where the text is not JSON, or no object; else what `visit` says.
pub(super) fn members<'a, E>(
    text: &'a str,
    mut visit: impl FnMut(&'a str, &'a str) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut scanner = Scanner::at_start(text);
    let member = |scanner: &mut Scanner<'a>| scanner.member(Scanner::value);
    scanner.list(b'{', b'}', member, |(key, value)| visit(key, value))?;
    scanner.end().ok_or(None)
}

/// Calls `visit` with every element of the array `text`.
///
/// # Errors
/// As [`members`].
pub(super) fn items<'a, E>(
    text: &'a str,
    visit: impl FnMut(&'a str) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut scanner = Scanner::at_start(text);
    scanner.list(b'[', b']', |scanner| scanner.slice(Scanner::value), visit)?;
    scanner.end().ok_or(None)
}

/// As [`members`], and before each value that is an array `visit_item` with every element of it.
pub(super) fn members_and_items<'a, E>(
    text: &'a str,
    mut visit_item: impl FnMut(&'a str),
    mut visit: impl FnMut(&'a str, &'a str) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut value = |scanner: &mut Scanner<'a>| match scanner.peek()? {
        b'[' => {
            let item = |scanner: &mut Scanner<'a>| scanner.slice(Scanner::value);
            let mut visit_item = |item| {
                visit_item(item);
                Ok::<_, Infallible>(())
            };
            scanner.list(b'[', b']', item, &mut visit_item).ok()
        }
        _ => scanner.value(),
    };
    let mut scanner = Scanner::at_start(text);
    scanner.list(b'{', b'}', |scanner| scanner.member(&mut value), |(key, value)| visit(key, value))?;
    scanner.end().ok_or(None)
}

/// As [`items`], and before each element that is an object `visit_member` with every key and value of it.
pub(super) fn items_and_members<'a, E>(
    text: &'a str,
    mut visit_member: impl FnMut(&'a str, &'a str),
    visit: impl FnMut(&'a str) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut element = |scanner: &mut Scanner<'a>| match scanner.peek()? {
        b'{' => {
            let member = |scanner: &mut Scanner<'a>| scanner.member(Scanner::value);
            let mut visit_member = |(key, value)| {
                visit_member(key, value);
                Ok::<_, Infallible>(())
            };
            scanner.list(b'{', b'}', member, &mut visit_member).ok()
        }
        _ => scanner.value(),
    };
    let mut scanner = Scanner::at_start(text);
    scanner.list(b'[', b']', |scanner| scanner.slice(&mut element), visit)?;
    scanner.end().ok_or(None)
}

/// Whether `text` is one JSON value.
pub(super) fn is_value(text: &str) -> bool {
    let mut scanner = Scanner::at_start(text);
    scanner.value().and_then(|()| scanner.end()).is_some()
}

/// A place in a text. Every step gives `None` where the text is not JSON.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn at_start(text: &'a str) -> Self {
        let mut scanner = Self { text, at: 0 };
        scanner.blank();
        scanner
    }

    /// A list between these brackets, one `step` for each element.
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

    /// A member of an object: its key, quotes included, and what `value` passes over.
    fn member(&mut self, value: impl FnOnce(&mut Self) -> Option<()>) -> Option<(&'a str, &'a str)> {
        let key = self.slice(Self::string)?;
        self.colon()?;
        Some((key, self.slice(value)?))
    }

    /// The text that `step` passes over.
    fn slice(&mut self, step: impl FnOnce(&mut Self) -> Option<()>) -> Option<&'a str> {
        let start = self.at;
        step(self)?;
        self.text.get(start..self.at)
    }

    /// A value, without a step into the call stack for what is nested in it.
    fn value(&mut self) -> Option<()> {
        let mut open = Brackets::default();
        loop {
            match self.peek()? {
                b'"' => self.string()?,
                b'{' => {
                    self.eat(b'{')?;
                    if self.byte(b'}').is_none() {
                        open.push(true);
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.eat(b'[')?;
                    if self.byte(b']').is_none() {
                        open.push(false);
                        continue;
                    }
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number()?,
            }
            loop {
                let Some(is_object) = open.innermost() else { return Some(()) };
                self.blank();
                if self.eat(b',').is_some() {
                    if is_object {
                        self.key()?;
                    }
                    break;
                }
                self.byte(if is_object { b'}' } else { b']' })?;
                open.pop();
            }
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
        self.byte(b'"')?;
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            let plain = plain_length(rest)?;
            let passed = match rest.get(plain..)? {
                [b'"', ..] => 1,
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                [b'\\', b'u', digits @ ..] if digits.get(..4)?.iter().all(u8::is_ascii_hexdigit) => 6,
                _ => return None,
            };
            self.at = self.at.saturating_add(plain).saturating_add(passed);
            if passed == 1 {
                return Some(());
            }
        }
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

    /// At least one digit.
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

    /// The end of the text.
    fn end(&mut self) -> Option<()> {
        self.blank();
        if self.at >= self.text.len() { Some(()) } else { None }
    }

    /// This byte and the white space after it.
    fn eat(&mut self, byte: u8) -> Option<()> {
        self.byte(byte)?;
        self.blank();
        Some(())
    }

    /// This byte.
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

/// The brackets that are open, one bit for each: whether it is that of an object.
#[derive(Default)]
struct Brackets {
    /// The innermost are the lowest.
    bits: u64,
    count: u32,
    /// Those outside of a word that is full.
    outer: Vec<u64>,
}

impl Brackets {
    fn push(&mut self, is_object: bool) {
        if self.count == u64::BITS {
            self.outer.push(self.bits);
            self.count = 0;
        }
        self.bits = self.bits << 1 | u64::from(is_object);
        self.count = self.count.saturating_add(1);
    }

    const fn innermost(&self) -> Option<bool> {
        if self.count == 0 { None } else { Some(self.bits & 1 == 1) }
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.count = self.count.saturating_sub(1);
        if self.count == 0
            && let Some(bits) = self.outer.pop()
        {
            (self.bits, self.count) = (bits, u64::BITS);
        }
    }
}

/// How many bytes stand before the first quote or backslash; `None` if there is none, or a control character before it,
/// which JSON escapes. Most strings are short: `memchr` pays behind the first few words.
fn plain_length(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    let mut length = 0_usize;
    for word in words.iter().take(WORDS) {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            let at = length.saturating_add((found.trailing_zeros() / 8) as usize);
            return Some(at).filter(|at| bytes.get(*at).is_some_and(|byte| *byte >= 0x20));
        }
        length = length.saturating_add(8);
    }
    let rest = bytes.get(length..)?;
    let more = memchr2(b'"', b'\\', rest)?;
    if has_control(rest.get(..more)?) { None } else { Some(length.saturating_add(more)) }
}

/// The highest bit of each byte of `word` that is a control character, a quote or a backslash. Those above the lowest may be
/// wrong. With the bit of two turned, the first two of these kinds are all that is below `0x21`.
const fn special(word: u64) -> u64 {
    let low = (word ^ (EACH_BYTE * 0x02)).wrapping_sub(EACH_BYTE * 0x21);
    let backslash = (word ^ (EACH_BYTE * b'\\' as u64)).wrapping_sub(EACH_BYTE);
    (low | backslash) & !word & (EACH_BYTE * 0x80)
}

/// Whether one of these bytes is a control character: the lowest of all of them tells, which compilers find sixteen at a time.
fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().fold(u8::MAX, |lowest, byte| lowest.min(*byte)) < 0x20
}

/// How many words of a string are looked at one by one.
const WORDS: usize = 8;

/// A word of eight bytes of one.
const EACH_BYTE: u64 = u64::MAX / 255;

#[cfg(test)]
mod tests;
