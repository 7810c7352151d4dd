//! Cuts: places in a text at which OpenAI's encodings always end a piece. Counts on both sides of a cut add up, and
//! cuts give bounds for the amount of a text.
//!
//! An encoding splits text into pieces by a regular expression, and makes tokens of each piece alone. A *cut* is a
//! place between two characters at which a piece ends in every text, and at which no pattern on the left side looks
//! further. The tokens of the two sides then add up to the tokens of the whole. `o200k_base`, `o200k_harmony` and
//! `cl100k_base` agree on the cuts below. The names stand for the alternatives of their patterns:
//!
//! - *word*: at most one character that is no letter, digit or newline, then letters (and marks), then perhaps a
//!   contraction (`'s`, `'re`); *number*: one to three digits;
//! - *signs*: at most one space, then characters that are neither space, letter nor digit, then newlines (and
//!   slashes);
//! - *blank*: white space up to its last newline, or without its last character if other text follows.
//!
//! One further cut depends on three characters: before the last character of *blank* that other text follows, if
//! this character is no newline. The text before it is the same piece as at the end of a text. [`last_cut`] and
//! [`bounds`] use this cut, for ASCII only: each indented line has one.

use epitome_core::{TokenBounds, Tokens};

/// Class of a character, for the detection of cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// A letter that is in every encoding's class of letters, and no mark.
    Letter,
    Digit,
    /// A character that only *signs* can contain, except as the first character of a word.
    Sign,
    /// A sign that may begin a contraction.
    Apostrophe,
    /// A sign that may follow newlines in one piece.
    Slash,
    /// White space except newlines.
    Space,
    Newline,
    /// A character that is no white space, with no other known property.
    Other,
}

use Class::{Apostrophe, Digit, Letter, Newline, Other, Sign, Slash, Space};

/// Whether there is a cut between two adjacent characters.
const fn is_cut(before: Class, after: Class) -> bool {
    match after {
        // White space begins a piece behind anything but white space, because only *blank* contains it there.
        Space => !matches!(before, Space | Newline),
        // A newline does so too, but behind signs and marks it may belong to *signs*.
        Newline => matches!(before, Letter | Digit),
        // No piece has a digit or a newline before a letter. A sign may begin the word.
        Letter => matches!(before, Digit | Newline),
        // No piece has anything but digits before a digit. White space may lose its last character to the next
        // piece.
        Digit => matches!(before, Letter | Newline | Sign | Apostrophe | Slash),
        // *Signs* have one space in front. No other alternative continues with a sign, except those below.
        Sign => matches!(before, Letter | Digit | Newline),
        // A contraction belongs to its word.
        Apostrophe => matches!(before, Digit | Newline),
        // A slash may follow the newlines of *signs*.
        Slash => matches!(before, Letter | Digit),
        Other => false,
    }
}

pub(super) const fn class_of(character: char) -> Class {
    match character {
        'a'..='z' | 'A'..='Z' => Letter,
        // Ideographs, kana and hangul: letters without case since long before the encodings.
        '\u{4e00}'..='\u{9fa5}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{ac00}'..='\u{d7a3}' => Letter,
        '0'..='9' => Digit,
        '\'' => Apostrophe,
        '/' => Slash,
        '!'..='~' => Sign,
        // Punctuation of these scripts.
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' => Sign,
        '\u{ff01}' | '\u{ff08}'..='\u{ff0c}' | '\u{ff0e}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}' => Sign,
        '\n' | '\r' => Newline,
        character if character.is_whitespace() => Space,
        _ => Other,
    }
}

/// The first cut in `text` at or behind byte `from`.
pub(super) fn first_cut(text: &str, from: usize) -> Option<usize> {
    let from = text.ceil_char_boundary(from.max(1));
    let mut before = class_of(text.get(..from)?.chars().next_back()?);
    text.get(from..)?.char_indices().find_map(|(at, character)| {
        let after = class_of(character);
        let cut = is_cut(before, after);
        before = after;
        cut.then_some(from.saturating_add(at))
    })
}

/// The last cut in `text` behind byte `from`. Called for each word of a stream.
pub(super) fn last_cut(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    // There is no cut between letters, and most of a stream are letters.
    let letters = bytes.get(from..)?.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let mut at = bytes.len().checked_sub(letters.max(1))?;
    let mut after = bits(*bytes.get(at)?);
    for &before in bytes.get(from..at)?.iter().rev() {
        let (before_bits, cuts) = (bits(before), CUTS.get(usize::from(before)).copied().unwrap_or(0));
        let is_ascii = before_bits != 0 && after != 0;
        if cuts & after != 0 || !is_ascii && is_cut_at(text, at) {
            return Some(at);
        }
        // The next character to be checked as `after` is followed by the current one.
        let is_followed = after & !(BLANK | BLANK << FOLLOWED) != 0;
        (at, after) =
            (at.saturating_sub(1), before_bits | before_bits << (FOLLOWED * u16::from(is_followed)));
    }
    None
}

/// The bit of the class of a byte; 0 beyond ASCII.
fn bits(byte: u8) -> u16 {
    BITS.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Whether there is a cut at this byte, by the two adjacent characters.
#[cold]
fn is_cut_at(text: &str, at: usize) -> bool {
    let beside = |(left, right): (&str, &str)| Some((left.chars().next_back()?, right.chars().next()?));
    let found = text.split_at_checked(at).and_then(beside);
    found.is_some_and(|(before, after)| is_cut(class_of(before), class_of(after)))
}

/// `text` in parts of at least `bytes_min` bytes, split at cuts.
pub(super) fn parts(text: &str, bytes_min: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    core::iter::from_fn(move || {
        let end = first_cut(rest, bytes_min).unwrap_or(rest.len());
        let (part, after) = rest.split_at_checked(end)?;
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// The amount of `text` if it is at most `limit`; counted in parts until the limit is exceeded.
pub(super) fn count_up_to(text: &str, limit: Tokens, count: impl Fn(&str) -> Tokens) -> Option<Tokens> {
    if (text.len() as u64).div_ceil(TOKEN_BYTES_MAX) > limit.as_u64() {
        return None;
    }
    let mut sum = 0_u64;
    for part in parts(text, PART_BYTES_MIN) {
        sum = sum.saturating_add(count(part).as_u64());
        if Tokens::from_u64(sum) > limit {
            return None;
        }
    }
    Some(Tokens::from_u64(sum))
}

/// The bounds of the amount of `text`, in one pass over its bytes.
///
/// *Lower*: every cut ends a piece, every piece has a token, and no token is longer than [`TOKEN_BYTES_MAX`].
///
/// *Upper*: a token has at least one byte. In a run of `a` to `z`, two adjacent bytes are not both tokens of one
/// byte: the pair is itself a token, and byte pairs are merged until no pair can be. Only the pairs in [`UNPAIRED`]
/// are no tokens. So of n bytes of a run at most (2n + 2) / 3 begin a token: every third begins none. Behind an
/// apostrophe, up to two letters may be a separate contraction.
pub(super) fn bounds(text: &str) -> TokenBounds {
    let (mut cuts, mut merged) = (0_u64, 0_u64);
    let (mut before, mut last, mut run, mut is_indented) = (Other, 0_u8, 0_u8, false);
    for &byte in text.as_bytes() {
        let after = CLASSES.get(usize::from(byte)).copied().unwrap_or(Other);
        let (was_blank, is_known) = (bits(last) & BLANK != 0, bits(byte) & !BLANK != 0);
        cuts = cuts.wrapping_add(u64::from(is_certain_cut(before, after) || is_indented && is_known));
        // The last two characters are white space, and the second one is no newline.
        is_indented = was_blank && matches!(after, Space);
        run = match byte {
            b'a'..=b'z' if last == b'\'' => CONTRACTION,
            b'a'..=b'z' if is_unpaired(last, byte) => 1,
            b'a'..=b'z' => NEXT.get(usize::from(run)).copied().unwrap_or(0),
            _ => 0,
        };
        merged = merged.wrapping_add(u64::from(run == THIRD));
        (before, last) = (after, byte);
    }
    let bytes = text.len() as u64;
    let pieces = cuts.saturating_add(u64::from(bytes > 0));
    let lower = pieces.max(bytes.div_ceil(TOKEN_BYTES_MAX));
    TokenBounds::new(Tokens::from_u64(lower), Tokens::from_u64(bytes.saturating_sub(merged)))
}

/// Whether there is a cut, from single bytes. [`Other`] may be white space here, so that it never is before a cut.
const fn is_certain_cut(before: Class, after: Class) -> bool {
    !matches!(before, Other) && is_cut(before, after)
}

/// Whether `second`, one of `a` to `z`, begins a new run behind `first`.
fn is_unpaired(first: u8, second: u8) -> bool {
    let row = UNPAIRED.get(usize::from(first.wrapping_sub(b'a')));
    row.is_some_and(|row| row >> (second.wrapping_sub(b'a') % 32) & 1 == 1)
}

/// The place in a run behind each place: first, second, third, then first again; or within a contraction.
const NEXT: [u8; 6] = [1, 2, THIRD, 1, CONTRACTION + 1, 1];
/// The place of every third byte of a run.
const THIRD: u8 = 3;
/// The place of the first byte behind an apostrophe.
const CONTRACTION: u8 = 4;

/// The classes of single bytes.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const CLASSES: [Class; 256] = {
    let mut classes = [Other; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = class_of(byte as u8 as char);
        byte += 1;
    }
    classes
};

/// The bit of the class of each byte; 0 beyond ASCII.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const BITS: [u16; 256] = {
    let (mut bits, mut byte) = ([0; 256], 0);
    while byte < 128 {
        bits[byte] = 1 << CLASSES[byte] as u16;
        byte += 1;
    }
    bits
};
/// The bits of the classes of white space.
const BLANK: u16 = 1 << Space as u16 | 1 << Newline as u16;
/// Shift of the second bit of a class, which is set if the next character is known to be no white space.
const FOLLOWED: u16 = 8;
/// By byte, the bits of the classes before which it has a cut behind it: for any next character, and for one that
/// is followed by no white space.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const CUTS: [u16; 256] = {
    let (mut cuts, mut before) = ([0; 256], 0);
    while before < 128 {
        let mut after = 0;
        while after < 128 {
            if is_cut(CLASSES[before], CLASSES[after]) {
                cuts[before] |= BITS[after];
            }
            after += 1;
        }
        if BITS[before] & BLANK != 0 {
            cuts[before] |= 1 << (Space as u16 + FOLLOWED);
        }
        before += 1;
    }
    cuts
};

/// By first letter, a bit for each second letter: the pairs that are no token in at least one encoding.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const UNPAIRED: [u32; 26] = {
    let mut rows = [0; 26];
    let mut at = 0;
    while at < UNPAIRED_SECONDS.len() {
        let seconds = UNPAIRED_SECONDS[at].as_bytes();
        let mut second = 0;
        while second < seconds.len() {
            rows[at] |= 1 << (seconds[second] - b'a');
            second += 1;
        }
        at += 1;
    }
    rows
};
/// The second letters of [`UNPAIRED`] pairs, by first letter from `a` on.
const UNPAIRED_SECONDS: [&str; 26] = [
    "", "q", "", "", "", "jz", "jkq", "j", "", "gvwxyz", "qxz", "q", "z", "q", "q", "", "fgjkovyz", "j", "",
    "jq", "q", "qz", "qvz", "ghjkquvw", "fjqv", "gjqrv",
];
/// Minimum length of the text that is counted between two checks of a limit, in bytes.
const PART_BYTES_MIN: usize = 4096;
/// The longest token of either encoding: 128 spaces.
const TOKEN_BYTES_MAX: u64 = 128;

#[cfg(all(test, feature = "fast-tokens"))]
mod tests;
