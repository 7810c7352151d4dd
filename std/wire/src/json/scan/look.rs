//! How closely a value is looked at while it is passed over.

use memchr::{memchr, memchr2};

use super::Scanner;

/// How values are passed over.
pub(in crate::json) trait Look: Sized {
    /// How many bytes of `rest`, which begins behind the first quote, a string takes with its last quote.
    fn string(rest: &[u8]) -> Option<usize>;

    /// Passes over an array or an object.
    fn container(scanner: &mut Scanner<'_, Self>) -> Option<()>;
}

/// Every byte is looked at.
pub(in crate::json) enum Checked {}

/// In a text that has been looked at, only the ends of strings, arrays and objects are looked for.
pub(in crate::json) enum Known {}

impl Look for Checked {
    fn string(rest: &[u8]) -> Option<usize> {
        let mut at = 0_usize;
        loop {
            let rest = rest.get(at..)?;
            let plain = plain_length(rest)?;
            let passed = match rest.get(plain..)? {
                [b'"', ..] => 1,
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                [b'\\', b'u', digits @ ..] if digits.get(..4)?.iter().all(u8::is_ascii_hexdigit) => 6,
                _ => return None,
            };
            at = at.saturating_add(plain).saturating_add(passed);
            if passed == 1 {
                return Some(at);
            }
        }
    }

    /// Without a step into the call stack for what is nested in it.
    fn container(scanner: &mut Scanner<'_, Self>) -> Option<()> {
        let mut open = Brackets::default();
        loop {
            match scanner.peek()? {
                b'{' => {
                    scanner.eat(b'{')?;
                    if scanner.byte(b'}').is_none() {
                        open.push(true);
                        scanner.key()?;
                        continue;
                    }
                }
                b'[' => {
                    scanner.eat(b'[')?;
                    if scanner.byte(b']').is_none() {
                        open.push(false);
                        continue;
                    }
                }
                other => scanner.scalar(other)?,
            }
            loop {
                let Some(is_object) = open.innermost() else { return Some(()) };
                scanner.blank();
                if scanner.eat(b',').is_some() {
                    if is_object {
                        scanner.key()?;
                    }
                    break;
                }
                scanner.byte(if is_object { b'}' } else { b']' })?;
                open.pop();
            }
        }
    }
}

impl Look for Known {
    fn string(rest: &[u8]) -> Option<usize> {
        let mut at = 0_usize;
        loop {
            let quote = at.saturating_add(quote_in(rest.get(at..)?)?);
            let before = rest.get(..quote)?.iter().rev();
            at = quote.saturating_add(1);
            // An odd number of backslashes escapes it.
            if before.take_while(|byte| **byte == b'\\').count().is_multiple_of(2) {
                return Some(at);
            }
        }
    }

    fn container(scanner: &mut Scanner<'_, Self>) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match scanner.peek()? {
                b'"' => {
                    scanner.string()?;
                    continue;
                }
                b'{' | b'[' => open = open.saturating_add(1),
                b'}' | b']' => open = open.saturating_sub(1),
                _ => {}
            }
            scanner.at = scanner.at.saturating_add(1);
            if open == 0 {
                return Some(());
            }
        }
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
pub(super) fn plain_length(bytes: &[u8]) -> Option<usize> {
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

/// Where the first quote stands. Most keys and names are short: `memchr` pays behind the first two words.
fn quote_in(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    let mut length = 0_usize;
    for word in words.iter().take(SHORT_WORDS) {
        let zero = u64::from_le_bytes(*word) ^ (EACH_BYTE * b'"' as u64);
        let found = zero.wrapping_sub(EACH_BYTE) & !zero & (EACH_BYTE * 0x80);
        if found != 0 {
            return Some(length.saturating_add((found.trailing_zeros() / 8) as usize));
        }
        length = length.saturating_add(8);
    }
    Some(length.saturating_add(memchr(b'"', bytes.get(length..)?)?))
}

/// Whether one of these bytes is a control character: the lowest of all of them tells, which compilers find sixteen at a time.
pub(super) fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().fold(u8::MAX, |lowest, byte| lowest.min(*byte)) < 0x20
}

/// How many words of a string are looked at one by one.
const WORDS: usize = 8;

/// How many of them where only the end is looked for.
const SHORT_WORDS: usize = 2;

/// A word of eight bytes of one.
const EACH_BYTE: u64 = u64::MAX / 255;
