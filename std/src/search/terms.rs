//! The terms of a text.

use super::words::{folded, for_each_word};

/// Letters of a word that count: forms of one word mostly differ behind them.
const LETTERS_MAX: usize = 5;

/// Calls `visit` with a hash of each term of a text, in order, repeated ones too.
///
/// A term is a word in lower case. One of letters alone is cut to its first five: `invoice` and `invoices` are one term. Words
/// end where the text has ASCII characters that are neither letters nor digits, and beyond ASCII as Unicode says (UAX #29). Of
/// Chinese, Japanese and Korean each pair of neighbouring characters is a term, and a character that stands alone.
///
/// *Cost*: one pass over the text, without allocation.
pub fn for_each_term(text: &str, visit: &mut dyn FnMut(u64)) {
    each_term(text, visit);
}

/// The same for what is inlined into the pass.
#[inline]
pub(super) fn each_term(text: &str, mut visit: impl FnMut(u64)) {
    let (bytes, mut at) = (text.as_bytes(), 0_usize);
    loop {
        while bytes.get(at).is_some_and(|byte| class_of(*byte) == BORDER) {
            at += 1;
        }
        let (begin, mut classes) = (at, 0);
        while let Some(class) = bytes.get(at).map(|byte| class_of(*byte)).filter(|class| *class != BORDER) {
            classes |= class;
            at += 1;
        }
        match classes {
            0 => return,
            LETTER => visit(hash_of_ascii(bytes.get(begin..at.min(begin + LETTERS_MAX)).unwrap_or_default())),
            classes if classes & BEYOND_ASCII == 0 => {
                visit(hash_of_ascii(bytes.get(begin..at).unwrap_or_default()));
            }
            _ => each_term_beyond_ascii(text.get(begin..at).unwrap_or_default(), &mut visit),
        }
    }
}

/// Words also end behind the marks of Chinese, Japanese and Korean that end a sentence, so that a text has the terms of its sentences.
#[inline(never)]
fn each_term_beyond_ascii(text: &str, visit: &mut impl FnMut(u64)) {
    for text in text.split(['。', '！', '？']) {
        for_each_word(text, |word| visit(hash(folded(word))));
    }
}

/// A byte that is in no word.
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

/// The class of each byte: a look into a table is faster than the comparisons.
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

/// The hash of ASCII letters and digits in lower case.
fn hash_of_ascii(term: &[u8]) -> u64 {
    let letters = term.iter().map(|byte| char::from(byte.to_ascii_lowercase()));
    finished(letters.fold(SEED, mixed))
}

fn hash(word: impl Iterator<Item = char>) -> u64 {
    let (mut whole, mut start, mut has_digit) = (SEED, SEED, false);
    for (at, c) in word.enumerate() {
        whole = mixed(whole, c);
        has_digit |= c.is_numeric();
        if at < LETTERS_MAX {
            start = whole;
        }
    }
    finished(if has_digit { whole } else { start })
}

/// FNV-1a by character (Fowler, Noll, Vo).
const SEED: u64 = 0xcbf2_9ce4_8422_2325;

fn mixed(hash: u64, c: char) -> u64 {
    (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0000_0100_0000_01b3)
}

/// FNV leaves the upper bits of short words alike.
const fn finished(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
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

    /// The rule as it is written, but for Chinese, Japanese and Korean.
    fn naive(text: &str) -> Vec<u64> {
        let runs = text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
        runs.flat_map(UnicodeSegmentation::unicode_words).map(|word| hash(folded(word))).collect()
    }

    proptest! {
        #[test]
        fn they_are_those_of_the_rule(text in "([a-z]{1,9}|[A-Z0-9]{1,7}|[ .,_'\n-]|[öЯя\u{301}·ªΣé]|हि|\u{1f600}){0,20}") {
            prop_assert_eq!(terms(&text), naive(&text));
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
