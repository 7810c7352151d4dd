//! The terms of a text.

use super::words::for_each_word;

/// Letters of a word that count: forms of one word mostly differ behind them.
const LETTERS_MAX: usize = 5;

/// Calls `visit` with a hash of each term of a text, in order, repeated ones too.
///
/// A term is a word in lower case. One of letters alone is cut to its first five: `invoice` and `invoices` are one term. Words
/// end where the text has ASCII characters that are neither letters nor digits, and beyond ASCII as Unicode says (UAX #29). Of
/// Chinese, Japanese and Korean each pair of neighbouring characters is a term, and a character that stands alone.
///
/// *Cost*: one pass over the text, without allocation in ASCII.
pub fn for_each_term(text: &str, visit: &mut dyn FnMut(u64)) {
    for word in text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()) {
        if word.is_ascii() {
            if !word.is_empty() {
                visit(hash_of_ascii(word.as_bytes()));
            }
        } else {
            for_each_word(word, &mut |word| visit(hash(word.chars())));
        }
    }
}

/// The hash of the word in lower case.
fn hash_of_ascii(word: &[u8]) -> u64 {
    let has_digit = word.iter().any(u8::is_ascii_digit);
    let count = if has_digit { word.len() } else { LETTERS_MAX };
    let letters = word.iter().take(count).map(|byte| char::from(byte.to_ascii_lowercase()));
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

    use super::*;

    proptest! {
        #[test]
        fn ascii_has_the_hash_that_any_word_has(word in "[a-zA-Z0-9]{1,12}") {
            prop_assert_eq!(hash_of_ascii(word.as_bytes()), hash(word.to_ascii_lowercase().chars()));
        }
    }
}
