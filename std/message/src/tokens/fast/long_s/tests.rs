//! Contractions with the long s against the reference, and the facts that the cuts after them depend on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use epitome_core::{Basis, TokenCounter, Tokens};

use super::super::super::{StreamCounter, Tiktoken, nasty};
use super::super::{CL100K, FastTiktoken, O200K, PART_BYTES_MIN, Tables};
use super::*;

const PAIRS: [(FastTiktoken, Tiktoken); 2] = [
    (FastTiktoken::o200k_base(), Tiktoken::o200k_base()),
    (FastTiktoken::cl100k_base(), Tiktoken::cl100k_base()),
];

/// All classes that the patterns distinguish next to an apostrophe, and letters that fold to others or belong to
/// contractions.
const SYMBOLS: &[&str] = &[
    "'\u{17f}", "'", "\u{17f}", "s", "S", "t", "re", "ll", "d", "a", "I", "A", "1", "\u{b2}", " ", "\t",
    "\u{a0}", "\n", "\r", "!", "/", "😀", "\u{301}", "\u{903}", "Å", "é", "\u{1c5}", "\u{2b0}", "你", "ﬀ",
    "\u{212a}", "Ⓐ",
];

fn assert_equal(text: &str) {
    for (fast, reference) in PAIRS {
        assert_eq!(fast.measure(text), reference.measure(text), "{fast:?}: {text:?}");
        assert_eq!(fast.basis(), Basis::Counted);
    }
}

/// Calls `read` with all texts of at most `length` symbols after `text`.
fn for_all(text: &mut String, length: usize, read: &mut impl FnMut(&mut String)) {
    read(text);
    if length == 0 {
        return;
    }
    for symbol in SYMBOLS {
        let end = text.len();
        text.push_str(symbol);
        for_all(text, length - 1, read);
        text.truncate(end);
    }
}

fn dense(symbols: core::ops::RangeInclusive<usize>) -> impl Strategy<Value = String> {
    let symbol = prop_oneof![2 => Just(LONG_S), 5 => select(SYMBOLS), 2 => select(nasty::FRAGMENTS)];
    vec(symbol, symbols).prop_map(|symbols| symbols.concat())
}

fn encodings() -> [(&'static CoreBpe, &'static Tables); 2] {
    [&O200K, &CL100K].map(|tables| (tiktoken::get_encoding(tables.name).unwrap(), tables))
}

#[test]
fn the_probe_tells_contractions() {
    for (before, in_o200k, in_cl100k) in [
        ("", false, true),
        ("it", true, true),
        ("1", false, true),
        ("\n", false, true),
        ("\t", false, true),
        (" ", false, false),
        ("!", false, false),
        ("it's", false, true),
        ("it's's", true, true),
        ("e\u{301}", true, false),
        // The mark belongs to the signs, because two of them stand before it.
        ("!!\u{301}", false, false),
        ("!\u{301}", true, false),
    ] {
        let found = encodings().map(|(encoding, _)| is_contraction(encoding, before));
        assert_eq!(found, [in_o200k, in_cl100k], "{before:?}");
    }
}

#[test]
fn the_probe_has_its_tokens_in_the_vocabularies() {
    for (encoding, tables) in encodings() {
        let in_signs = PROBE.trim_start_matches('\'').as_bytes();
        let tokens = encoding.encode(PROBE).len();
        assert_eq!(tokens, if tables.joins_apostrophe { 1 } else { 2 });
        for letters in [in_signs, BEHIND_CONTRACTION] {
            assert_eq!(encoding.count(str::from_utf8(letters).unwrap()), 1);
        }
    }
}

#[test]
fn one_token_reaches_over_the_apostrophe_of_a_contraction() {
    for (encoding, tables) in encodings() {
        let tokens = (0..u32::try_from(encoding.vocab_size()).unwrap()).map(|id| encoding.decode(&[id]));
        let reaching = tokens.filter(|token| {
            let apostrophes = (1..token.len()).filter(|at| token[*at] == b'\'');
            // After the last byte of a letter or mark: an ASCII letter, or a byte beyond ASCII.
            let mut words =
                apostrophes.filter(|at| token[at - 1].is_ascii_alphabetic() || token[at - 1] >= 0x80);
            words.any(|at| "\u{17f}".as_bytes().starts_with(&token[at + 1..]))
        });
        let expected: &[&[u8]] = if tables.joins_apostrophe { &[b" I'"] } else { &[] };
        assert_eq!(reaching.collect::<Vec<_>>(), expected);
        assert_eq!(encoding.count(JOINED), 1);
    }
}

#[test]
fn one_byte_of_the_long_s_joins_no_apostrophe() {
    for (encoding, _) in encodings() {
        for id in 0..u32::try_from(encoding.vocab_size()).unwrap() {
            let token = encoding.decode(&[id]);
            assert!(!token.ends_with(b"'\xC5") && !token.windows(3).any(|bytes| bytes == LONG_S.as_bytes()));
        }
    }
}

/// Symbols before and after the contraction. One more takes half a minute with an optimized reference.
const LENGTHS: (usize, usize) = if cfg!(debug_assertions) { (2, 1) } else { (3, 1) };

#[test]
fn all_short_texts_count_as_in_the_reference() {
    for_all(&mut String::new(), LENGTHS.0, &mut |text| {
        text.push_str(LONG_S);
        for_all(text, LENGTHS.1, &mut |text| assert_equal(text));
        text.truncate(text.len() - LONG_S.len());
    });
}

#[test]
fn known_texts_count_as_in_the_reference() {
    for text in [
        "d'\u{17f}'lldo",
        "it'\u{17f} so",
        "IT'\u{17f}s",
        "aI'\u{17f}",
        "AI'\u{17f}",
        "It's I'\u{17f}, I'\u{17f}",
    ] {
        assert_equal(text);
    }
}

/// Step between the characters that the test reads.
const CHARACTERS_STEP: usize = if cfg!(debug_assertions) { 101 } else { 1 };

#[test]
fn a_contraction_behind_any_character_counts_as_in_the_reference() {
    for character in (0..=0x10_FFFF).filter_map(char::from_u32).step_by(CHARACTERS_STEP) {
        assert_equal(&format!("{character}'\u{17f}ab!!{character}'\u{17f}ab"));
    }
}

#[test]
fn long_texts_count_as_in_the_reference() {
    for unit in [
        "!'\u{17f}",
        "a'\u{17f}",
        "'\u{17f}",
        "1'\u{17f}",
        "!!\u{301}'\u{17f}",
        " I'\u{17f}",
        "é''\u{17f}s",
        "\u{3000}'\u{17f}",
        "it'\u{17f} so; ",
    ] {
        let text = unit.repeat(2 * PART_BYTES_MIN / unit.len());
        assert_equal(&text);
    }
    for run in ["a", "A", "é", "你", "!", " ", "\n", "\u{301}", "1"] {
        let run = run.repeat(5 * PART_BYTES_MIN / 2 / run.len());
        assert_equal(&format!("{run}'\u{17f}x{run}''\u{17f}"));
    }
}

proptest! {
    #![proptest_config(nasty::cases(1000))]

    #[test]
    fn dense_texts_count_as_in_the_reference(text in dense(0..=12)) {
        for (fast, reference) in PAIRS {
            prop_assert_eq!(fast.measure(&text), reference.measure(&text), "{:?}", fast);
        }
    }
}

proptest! {
    #![proptest_config(nasty::cases(20))]

    #[test]
    fn long_dense_texts_count_as_in_the_reference(
        text in dense(0..=400), word in "[a-z]{1,9}", at in 0..20_000_usize, off in -2..2_i64,
    ) {
        let filler = |bytes: usize| format!("{word} ").repeat(bytes / word.len());
        let text = [filler(at), text, filler(20_000 - at)].concat();
        for (fast, reference) in PAIRS {
            let tokens = reference.count(&text);
            prop_assert_eq!(fast.count(&text), tokens);
            let limit = Tokens::from_u64(tokens.as_u64().saturating_add_signed(off));
            prop_assert_eq!(fast.count_up_to(&text, limit), (tokens <= limit).then_some(tokens));
        }
    }

    #[test]
    fn streams_of_dense_texts_count_as_in_the_reference(text in dense(0..=30), size in 1..4_usize) {
        let characters: Vec<char> = text.chars().collect();
        for (fast, reference) in PAIRS {
            let (mut stream, mut text) = (StreamCounter::new(fast), String::new());
            for delta in characters.chunks(size) {
                let delta = String::from_iter(delta);
                text.push_str(&delta);
                stream.push(&delta);
                prop_assert_eq!(stream.tokens(), reference.count(&text));
            }
        }
    }
}
