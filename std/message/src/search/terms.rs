//! The terms of a text.

use super::words::{folded, for_each_word};

/// Number of letters of a word in a term: forms of one word mostly differ behind them.
const LETTERS_MAX: usize = 5;

/// Calls `visit` with a hash of each term of a text, in order, with repetitions.
///
/// A term is a word in lower case. A word of letters alone is cut to its first five: `invoice` and `invoices` are
/// one term. Words end at ASCII characters that are neither letters nor digits; beyond ASCII the rules of Unicode
/// apply (UAX #29). In Chinese, Japanese and Korean each pair of adjacent characters is a term, and a single
/// character between others is one too.
///
/// *Cost*: one pass over the text, without allocation.
pub fn for_each_term(text: &str, visit: &mut dyn FnMut(u64)) {
    each_term(text, visit);
}

/// The implementation of [`for_each_term`], for callers that inline `visit` into the pass.
#[inline]
pub(super) fn each_term(text: &str, mut visit: impl FnMut(u64)) {
    let (bytes, mut begin, mut classes) = (text.as_bytes(), 0, BORDER);
    let mut visit_one = |word: core::ops::Range<usize>, classes: u8| match classes {
        LETTER => visit(hash_of_ascii(bytes, word.start, word.len().min(LETTERS_MAX))),
        classes if classes & BEYOND_ASCII == 0 => visit(hash_of_ascii(bytes, word.start, word.len())),
        _ => each_term_beyond_ascii(text.get(word).unwrap_or_default(), &mut visit),
    };
    for (at, byte) in bytes.iter().enumerate() {
        let class = class_of(*byte);
        if class != BORDER {
            classes |= class;
            continue;
        }
        if classes != BORDER {
            visit_one(begin..at, classes);
            classes = BORDER;
        }
        begin = at + 1;
    }
    if classes != BORDER {
        visit_one(begin..bytes.len(), classes);
    }
}

/// Words also end behind the sentence marks of Chinese, Japanese and Korean, so that a text has the terms of its
/// sentences.
#[inline(never)]
fn each_term_beyond_ascii(text: &str, visit: &mut impl FnMut(u64)) {
    for text in text.split(['。', '！', '？']) {
        for_each_word(text, |word| visit(hash(folded(word))));
    }
}

/// A byte outside words.
const BORDER: u8 = 0;
const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const BEYOND_ASCII: u8 = 4;

const fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' => LETTER,
        b'0'..=b'9' => DIGIT,
        0..=127 => BORDER,
        128.. => BEYOND_ASCII,
    }
}

/// The class of each byte. A table is faster than the comparisons.
static CLASSES: [u8; 256] = {
    let mut classes = [BORDER; 256];
    let (mut left, mut byte): (&mut [u8], u8) = (&mut classes, 0);
    while let [own, others @ ..] = left {
        *own = class(byte);
        (left, byte) = (others, byte.wrapping_add(1));
    }
    classes
};

fn class_of(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(BORDER)
}

/// The hash of `length` ASCII letters and digits from `begin` on, in lower case.
fn hash_of_ascii(bytes: &[u8], begin: usize, length: usize) -> u64 {
    // Most terms fit into one block, with more text behind them, so that a single read is enough.
    let unused = BLOCK_BYTES.checked_sub(length);
    let read = bytes.get(begin..).and_then(<[u8]>::first_chunk);
    if let (Some(unused), Some(read)) = (unused, read) {
        let block = u64::from_le_bytes(*read) & u64::MAX.unbounded_shr(8 * unused as u32);
        return finished(mixed(SEED, block | IN_LOWER_CASE.unbounded_shr(8 * unused as u32)));
    }
    let blocks = bytes.get(begin..begin + length).unwrap_or_default().chunks(BLOCK_BYTES);
    finished(blocks.fold(SEED, |hash, block| mixed(hash, in_lower_case(block))))
}

/// Up to eight ASCII letters and digits in lower case, the first in the lowest byte.
fn in_lower_case(block: &[u8]) -> u64 {
    match block.first_chunk() {
        Some(block) => u64::from_le_bytes(*block) | IN_LOWER_CASE,
        None => block.iter().rfold(0, |block, byte| block << 8 | u64::from(byte.to_ascii_lowercase())),
    }
}

/// The bit that distinguishes lower case from upper case. Digits have it too.
const IN_LOWER_CASE: u64 = 0x2020_2020_2020_2020;

fn hash(word: impl Iterator<Item = char>) -> u64 {
    let (mut whole, mut start, mut has_digit) = (Hash::default(), Hash::default(), false);
    for (at, c) in word.enumerate() {
        c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| whole.add(byte));
        has_digit |= c.is_numeric();
        if at < LETTERS_MAX {
            start = whole;
        }
    }
    if has_digit { whole.finish() } else { start.finish() }
}

/// The hash of bytes other than 0, in blocks of eight: FNV-1a by blocks (Fowler, Noll, Vo). Different terms of one
/// block have different hashes.
#[derive(Debug, Clone, Copy)]
struct Hash {
    hash: u64,
    block: u64,
    /// Number of bytes in the block.
    length: usize,
}

const BLOCK_BYTES: usize = 8;

impl Default for Hash {
    fn default() -> Self {
        Self { hash: SEED, block: 0, length: 0 }
    }
}

impl Hash {
    fn add(&mut self, byte: u8) {
        if self.length == BLOCK_BYTES {
            *self = Self { hash: mixed(self.hash, self.block), block: 0, length: 0 };
        }
        self.block |= u64::from(byte) << (8 * self.length);
        self.length += 1;
    }

    const fn finish(self) -> u64 {
        finished(mixed(self.hash, self.block))
    }
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

const fn mixed(hash: u64, block: u64) -> u64 {
    let hash = (hash ^ block).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 32)
}

/// Mixes the bits: the upper bits of a hash depend on the lower ones, and these on all of the last block.
const fn finished(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::super::sentences::for_each_sentence;
    use super::*;

    fn terms(text: &str) -> Vec<u64> {
        let mut terms = Vec::new();
        for_each_term(text, &mut |term| terms.push(term));
        terms
    }

    /// A naive implementation of the rule, without Chinese, Japanese and Korean.
    fn naive(text: &str) -> Vec<u64> {
        let runs = text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
        runs.flat_map(UnicodeSegmentation::unicode_words).map(|word| hash(folded(word))).collect()
    }

    proptest! {
        #[test]
        fn they_are_those_of_the_rule(text in "([a-z]{1,9}|[A-Z0-9]{1,7}|[ .,_'\n-]|[öЯя\u{301}·ªΣé]|हि|\u{1f600}){0,20}") {
            prop_assert_eq!(terms(&text), naive(&text));
        }

        /// Compares the hashes of a word at the beginning of a text, before other characters, and by each way of hashing.
        #[test]
        fn a_word_of_ascii_has_the_hash_of_its_characters(word in "[a-zA-Z0-9]{1,20}", behind in "[ é]{0,9}") {
            let lower = word.to_lowercase();
            let has_digit = lower.bytes().any(|byte| byte.is_ascii_digit());
            let term: String = lower.chars().take(if has_digit { 20 } else { LETTERS_MAX }).collect();
            let mut slow = Hash::default();
            term.bytes().for_each(|byte| slow.add(byte));
            prop_assert_eq!(terms(&format!("{word} {behind}"))[0], slow.finish());
            prop_assert_eq!(hash(folded(&word)), slow.finish());
        }

        #[test]
        fn different_terms_have_different_hashes(terms in prop::collection::hash_set("[a-c0-1]{1,9}", 0..200)) {
            let hashes: std::collections::HashSet<u64> = terms.iter().map(|term| {
                let mut hash = Hash::default();
                term.bytes().for_each(|byte| hash.add(byte));
                hash.finish()
            }).collect();
            prop_assert_eq!(hashes.len(), terms.len());
        }

        #[test]
        fn a_text_has_the_terms_of_its_sentences(
            text in "([ab]|[.!?]|[ \n\t]|[。！？؟।]|[\u{a0}\u{202f}\u{3000}\u{2028}\u{85}\u{200d}\u{301}]|[éहिあ]|Ⓜ|\\PC){0,40}",
        ) {
            let mut of_sentences = Vec::new();
            for_each_sentence(&text, |sentence| of_sentences.extend(terms(sentence)));
            prop_assert_eq!(of_sentences, terms(&text));
        }
    }
}
