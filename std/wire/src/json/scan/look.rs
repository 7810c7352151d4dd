//! Ways to skip a value: with a check, or in a text that is known to be JSON.

use core::cmp::Ordering;

use memchr::{memchr, memchr2};

use super::Scanner;
use crate::json::text::short;

/// A way to skip values.
pub(in crate::json) trait Look: Sized {
    /// Length of a string in bytes, including its last quote. `rest` begins behind the first quote.
    fn string(rest: &[u8]) -> Option<usize>;

    /// Skips an array or an object.
    fn container(scanner: &mut Scanner<'_, Self>) -> Option<()>;

    /// The end of the value that begins at `start`, if it is known.
    fn end_of(&mut self, start: usize) -> Option<usize>;

    /// Notes the range of a string.
    fn note(&mut self, start: usize, end: usize);
}

/// Checks every byte.
#[derive(Default)]
pub(in crate::json) struct Checked<'n> {
    /// The long values, for later scans of the text.
    spans: Option<&'n mut Vec<(u32, u32)>>,
}

/// In a text that is known to be JSON, looks only for the ends of strings, arrays and objects.
#[derive(Default, Clone, Copy)]
pub(in crate::json) struct Known<'e> {
    /// The known long values, and the offset of the current text in the text to which they belong.
    spans: &'e [(u32, u32)],
    start: usize,
}

/// The ranges of long strings, arrays and objects, in the order of their beginnings. Arrays and objects are noted only
/// near the top level of the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans {
    places: Vec<(u32, u32)>,
    /// Offset of their text in the whole text.
    start: usize,
    /// Number of spans that a forward reader has passed.
    passed: usize,
}

impl Spans {
    /// The spans of a text that begins at `start` in the whole text.
    pub(crate) const fn of_text_at(start: usize) -> Self {
        Self { places: Vec::new(), start, passed: 0 }
    }

    /// Passes the spans that begin before `start` in the whole text. Later searches begin here.
    pub(crate) fn pass(&mut self, start: usize) {
        let start = start.saturating_sub(self.start);
        let last = self.passed.checked_sub(1).and_then(|last| self.places.get(last));
        if last.is_some_and(|(begin, _)| *begin as usize >= start) {
            self.passed = 0;
        }
        let rest = self.places.get(self.passed..).unwrap_or_default();
        self.passed = self.passed.saturating_add(count_before(rest, start));
    }
}

impl<'n> Checked<'n> {
    /// A scan of `text` from its beginning that notes the long values.
    pub(in crate::json) fn noting(text: &str, spans: &'n mut Spans) -> Self {
        spans.passed = 0;
        spans.places.clear();
        // Each place has four bytes: a larger text is scanned without notes.
        Self { spans: u32::try_from(text.len()).is_ok().then_some(&mut spans.places) }
    }

    /// Begins an array or an object, and returns the index of its note.
    fn open(&mut self, start: usize) -> usize {
        let Some(spans) = &mut self.spans else { return 0 };
        spans.push((narrow(start), 0));
        spans.len().saturating_sub(1)
    }

    /// Ends the array or the object with this note. A short one contains no long value.
    fn close(&mut self, place: usize, end: usize) {
        let Some(spans) = &mut self.spans else { return };
        match spans.get_mut(place) {
            Some(note) if end.saturating_sub(note.0 as usize) >= LONG_BYTES => note.1 = narrow(end),
            _ => spans.truncate(place),
        }
    }
}

impl<'e> Known<'e> {
    /// A text that begins at `start` in the whole text.
    pub(in crate::json) fn new(spans: &'e Spans, start: usize) -> Self {
        let rest = spans.places.get(spans.passed..).unwrap_or_default();
        Self { spans: rest, start: 0 }.behind(start.saturating_sub(spans.start))
    }

    /// The text that begins at `start` in this text.
    pub(in crate::json) fn behind(self, start: usize) -> Self {
        let start = self.start.saturating_add(start);
        let before = count_before(self.spans, start);
        Self { spans: self.spans.get(before..).unwrap_or_default(), start }
    }
}

/// Number of spans that begin before `start`, which is mostly near: the number of steps is logarithmic in the result.
pub(super) fn count_before(spans: &[(u32, u32)], start: usize) -> usize {
    let is_before = |(begin, _): &(u32, u32)| (*begin as usize) < start;
    let mut reach = NEAR_SPANS;
    while spans.get(reach).is_some_and(is_before) {
        reach = reach.saturating_mul(2);
    }
    spans.get(..reach).unwrap_or(spans).partition_point(is_before)
}

fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Look for Checked<'_> {
    fn string(bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes;
        loop {
            let plain = plain_length(rest)?;
            rest = match rest.get(plain..)? {
                [b'"', after @ ..] => return bytes.len().checked_sub(after.len()),
                [b'\\', letter, after @ ..] if short(*letter).is_some() => after,
                [b'\\', b'u', after @ ..] => {
                    let (digits, after) = after.split_first_chunk::<4>()?;
                    Some(after).filter(|_| digits.iter().all(u8::is_ascii_hexdigit))?
                }
                _ => return None,
            };
        }
    }

    /// Skips nested values without recursion.
    fn container(scanner: &mut Scanner<'_, Self>) -> Option<()> {
        let mut open = Brackets::default();
        let mut notes = [0; NOTED_DEPTH];
        loop {
            match scanner.peek()? {
                b'{' => {
                    let start = scanner.at;
                    scanner.eat(b'{')?;
                    if scanner.byte(b'}').is_none() {
                        if let Some(note) = notes.get_mut(open.depth()) {
                            *note = scanner.look.open(start);
                        }
                        open.push(true);
                        scanner.key()?;
                        continue;
                    }
                }
                b'[' => {
                    let start = scanner.at;
                    scanner.eat(b'[')?;
                    if scanner.byte(b']').is_none() {
                        if let Some(note) = notes.get_mut(open.depth()) {
                            *note = scanner.look.open(start);
                        }
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
                if let Some(note) = notes.get(open.depth()) {
                    scanner.look.close(*note, scanner.at);
                }
            }
        }
    }

    fn end_of(&mut self, _: usize) -> Option<usize> {
        None
    }

    fn note(&mut self, start: usize, end: usize) {
        if end.saturating_sub(start) >= LONG_BYTES
            && let Some(spans) = &mut self.spans
        {
            spans.push((narrow(start), narrow(end)));
        }
    }
}

impl Look for Known<'_> {
    fn string(rest: &[u8]) -> Option<usize> {
        let mut at = 0_usize;
        loop {
            let quote = at.saturating_add(position(b'"', rest.get(at..)?, SHORT_BYTES)?);
            let before = rest.get(..quote)?.iter().rev();
            at = quote.saturating_add(1);
            // An odd number of backslashes escapes the quote.
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
                    match scanner.look.end_of(scanner.at) {
                        Some(end) => scanner.at = end,
                        None => scanner.string()?,
                    }
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

    fn end_of(&mut self, start: usize) -> Option<usize> {
        let here = self.start.saturating_add(start);
        while let Some(((begin, end), rest)) = self.spans.split_first() {
            match (*begin as usize).cmp(&here) {
                Ordering::Less => self.spans = rest,
                Ordering::Equal => return Some((*end as usize).saturating_sub(self.start)),
                Ordering::Greater => break,
            }
        }
        None
    }

    fn note(&mut self, _: usize, _: usize) {}
}

/// The open brackets, with one bit for each: whether it belongs to an object.
#[derive(Default)]
struct Brackets {
    /// The innermost brackets are in the lowest bits.
    bits: u64,
    count: u32,
    /// The outer brackets, in full words.
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

    /// Number of open brackets.
    const fn depth(&self) -> usize {
        self.outer.len().saturating_mul(u64::BITS as usize).saturating_add(self.count as usize)
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

/// Number of bytes before the first quote or backslash. `None` if there is none, or if a control character precedes it,
/// which JSON escapes. Most strings are short: `memchr` is faster only behind the first few words.
pub(super) fn plain_length(bytes: &[u8]) -> Option<usize> {
    let (mut length, mut rest) = (0_usize, bytes);
    while let Some((word, after)) = rest.split_first_chunk::<8>().filter(|_| length < NEAR_BYTES) {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            let at = length.saturating_add((found.trailing_zeros() / 8) as usize);
            return Some(at).filter(|at| bytes.get(*at).is_some_and(|byte| *byte >= 0x20));
        }
        (length, rest) = (length.saturating_add(8), after);
    }
    let more = memchr2(b'"', b'\\', rest)?;
    if has_control(rest.get(..more)?) { None } else { Some(length.saturating_add(more)) }
}

/// The highest bit of each byte of `word` that is a control character, a quote or a backslash. Bits above the lowest one may be wrong. With
/// the bit of two turned, the first two of these kinds are all that is below `0x21`.
const fn special(word: u64) -> u64 {
    let low = (word ^ (EACH_BYTE * 0x02)).wrapping_sub(EACH_BYTE * 0x21);
    let backslash = (word ^ (EACH_BYTE * b'\\' as u64)).wrapping_sub(EACH_BYTE);
    (low | backslash) & !word & (EACH_BYTE * 0x80)
}

/// The first place of `byte`. `memchr` is faster only behind the first `near` bytes.
pub(in crate::json) fn position(byte: u8, bytes: &[u8], near: usize) -> Option<usize> {
    let (mut length, mut rest) = (0_usize, bytes);
    while let Some((word, after)) = rest.split_first_chunk::<8>().filter(|_| length < near) {
        let zero = u64::from_le_bytes(*word) ^ EACH_BYTE.wrapping_mul(u64::from(byte));
        let found = zero.wrapping_sub(EACH_BYTE) & !zero & (EACH_BYTE * 0x80);
        if found != 0 {
            return Some(length.saturating_add((found.trailing_zeros() / 8) as usize));
        }
        (length, rest) = (length.saturating_add(8), after);
    }
    let at = match rest.len() < size_of::<u64>() {
        true => rest.iter().position(|one| *one == byte)?,
        false => memchr(byte, rest)?,
    };
    Some(length.saturating_add(at))
}

/// Whether one of these bytes is a control character. The minimum of all bytes decides, which compilers compute for
/// sixteen bytes at a time.
pub(super) fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().fold(u8::MAX, |lowest, byte| lowest.min(*byte)) < 0x20
}

/// Minimum length of a noted value, in bytes: the end of a shorter value is found as fast without a note.
const LONG_BYTES: usize = 64;

/// Usual number of notes of one value.
const NEAR_SPANS: usize = 8;

/// Maximum number of arrays and objects around a noted value: readers open no deeper ones.
const NOTED_DEPTH: usize = 4;

/// Number of bytes of a string that are scanned eight at a time, up to its end or the next escape. Few strings are
/// longer.
pub(in crate::json) const NEAR_BYTES: usize = 64;

/// The same number for a search of the end alone: most keys and names are short.
const SHORT_BYTES: usize = 16;

/// A word of eight bytes with the value 1.
const EACH_BYTE: u64 = u64::MAX / 255;
