//! The fast counter against the reference.

use core::cell::Cell;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::{StreamCounter, Tiktoken, nasty};
use super::*;

const PAIRS: [(FastTiktoken, Tiktoken); 3] = [
    (FastTiktoken::o200k_base(), Tiktoken::o200k_base()),
    (FastTiktoken::o200k_harmony(), Tiktoken::o200k_harmony()),
    (FastTiktoken::cl100k_base(), Tiktoken::cl100k_base()),
];

#[track_caller]
fn assert_equal(what: &str, text: &str) {
    // Long texts are not tested with o200k_harmony, which equals o200k_base except for its special tokens, as short
    // texts show.
    for (fast, reference) in [PAIRS[0], PAIRS[2]] {
        assert_eq!(fast.count(text), reference.count(text), "{fast:?}: {what}");
    }
}

#[test]
fn both_have_the_same_tokens_in_the_same_order() {
    // From the same pieces both counters make the same tokens: they merge the first pair, again and again.
    for (fast, reference) in [
        (PAIRS[0].0, tiktoken_rs::o200k_base_singleton()),
        (PAIRS[2].0, tiktoken_rs::cl100k_base_singleton()),
    ] {
        let encoding = fast.encoding().unwrap();
        let last = u32::try_from(encoding.vocab_size()).unwrap();
        for id in 0..last {
            assert_eq!(encoding.decode(&[id]), reference.decode_bytes(&[id]).unwrap(), "{fast:?} {id}");
        }
        assert!(reference.decode_bytes(&[last]).is_err(), "{fast:?}");
    }
}

/// Length of long texts. The reference needs most of a second for a megabyte if it is not optimized.
const LONG_BYTES: usize = if cfg!(debug_assertions) { 6_000 } else { 1_000_000 };

#[test]
fn long_runs_count_as_in_the_reference() {
    for unit in [
        "a", " ", "-", "\n", "\t", "\r\n", " \t", "!", "é", "中", "\u{3000}", "😀", "0", "ab", "Aa", "'s",
        "a ",
    ] {
        let text = unit.repeat(LONG_BYTES / unit.len());
        assert_equal(unit, &text);
        assert_equal(unit, &format!("before;{text}x"));
    }
}

#[test]
fn a_million_of_one_character_is_counted() {
    // The reference fails here for o200k_base. The fast counter must not, and blanks are one token for each 128.
    let blanks = " ".repeat(1_280_000);
    assert_eq!(FastTiktoken::o200k_base().count(&blanks), Tokens(10_000));
}

#[test]
fn random_long_texts_count_as_in_the_reference() {
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let base64: String = (0..LONG_BYTES).map(|_| BASE64[next() % 64] as char).collect();
    assert_equal("base64", &base64);
    let hex: String = (0..LONG_BYTES).map(|_| char::from_digit((next() % 16) as u32, 16).unwrap()).collect();
    assert_equal("hex", &hex);
    let mixed: String =
        (0..LONG_BYTES / 6).map(|_| nasty::FRAGMENTS[next() % nasty::FRAGMENTS.len()]).collect();
    assert_equal("mixed scripts", &mixed);
    let any: String =
        (0..LONG_BYTES / 3).filter_map(|_| char::from_u32((next() % 0x11_0000) as u32)).collect();
    assert_equal("any characters", &any);
}

proptest! {
    #![proptest_config(nasty::cases(100))]

    #[test]
    fn short_texts_count_as_in_the_reference(text in nasty::text()) {
        for (fast, reference) in PAIRS {
            prop_assert_eq!(fast.count(&text), reference.count(&text), "{:?}", fast);
        }
    }

    #[test]
    fn a_stream_counts_as_its_text(deltas in proptest::collection::vec(nasty::text(), 0..3), size in 1..7_usize) {
        for fast in [FastTiktoken::o200k_base(), FastTiktoken::cl100k_base()] {
            let mut stream = StreamCounter::new(fast);
            let mut text = String::new();
            let all = deltas.concat();
            let characters: Vec<char> = all.chars().collect();
            for delta in characters.chunks(size) {
                let delta: String = delta.iter().collect();
                text.push_str(&delta);
                stream.push(&delta);
                prop_assert_eq!(stream.tokens(), fast.count(&text));
            }
        }
    }

    #[test]
    fn a_stream_counts_as_its_text_however_seldom_it_is_asked(
        deltas in proptest::collection::vec((nasty::text(), 1..40_usize, any::<bool>()), 0..8),
    ) {
        for fast in [FastTiktoken::o200k_base(), FastTiktoken::cl100k_base()] {
            let (mut stream, mut text) = (StreamCounter::new(fast), String::new());
            for (delta, times, is_asked) in &deltas {
                // In texts of many kilobytes, the stream counts a part before the test asks for the count.
                let delta = delta.repeat(*times);
                text.push_str(&delta);
                stream.push(&delta);
                if *is_asked {
                    prop_assert_eq!(stream.tokens(), fast.count(&text));
                }
            }
            prop_assert_eq!(stream.tokens(), fast.count(&text));
        }
    }

    #[test]
    fn counting_up_to_a_limit_is_counting(text in nasty::text(), times in 1..30_usize, off in -3..3_i64) {
        let text = text.repeat(times);
        for (fast, reference) in [PAIRS[0], PAIRS[2]] {
            let tokens = fast.count(&text);
            let limit = Tokens::from_u64(tokens.as_u64().saturating_add_signed(off));
            let expected = (tokens <= limit).then_some(tokens);
            prop_assert_eq!(fast.count_up_to(&text, limit), expected);
            prop_assert_eq!(reference.count_up_to(&text, limit), expected);
        }
    }
}

/// Records the number of bytes that it was given to count.
struct Spy(FastTiktoken, Cell<usize>);

impl TokenCounter for Spy {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn basis(&self) -> Basis {
        self.0.basis()
    }

    fn count(&self, text: &str) -> Tokens {
        self.1.set(self.1.get() + text.len());
        self.0.count(text)
    }

    fn last_cut(&self, text: &str, from: usize) -> Option<usize> {
        self.0.last_cut(text, from)
    }
}

#[test]
fn of_a_stream_only_the_last_words_are_counted_again() {
    let text = "fn main() {\n    let words = [\"two words\", \"no\"];\n}\n\nIt prints 12 words, doesn't it? "
        .repeat(20);
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let characters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
    // Each word is counted about once and a half, with the blank that ends it. For a word that arrives by characters,
    // all its beginnings are counted.
    for (what, deltas, percent_max) in [("words", words, 150), ("characters", characters, 330)] {
        let spy = Spy(FastTiktoken::o200k_base(), Cell::new(0));
        let mut stream = StreamCounter::new(&spy);
        for delta in deltas {
            stream.push(delta);
            stream.tokens();
        }
        let counted = spy.1.get();
        assert!(counted * 100 <= text.len() * percent_max, "{what}: {counted} of {}", text.len());
        assert_eq!(stream.tokens(), spy.0.count(&text));
    }
}

#[test]
fn a_stream_of_one_endless_piece_is_counted() {
    let mut stream = StreamCounter::new(FastTiktoken::o200k_base());
    for _ in 0..2_000 {
        stream.push("aaaaaa");
    }
    assert_eq!(stream.tokens(), FastTiktoken::o200k_base().count(&"a".repeat(12_000)));
    stream.push(" b c");
    assert_eq!(stream.tokens(), FastTiktoken::o200k_base().count(&format!("{} b c", "a".repeat(12_000))));
}

#[test]
fn recorded_transcripts_count_as_in_the_reference() {
    // Real conversations are not in the repository; `counter_equality` in `benches` reads all of them.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    for path in files(&folder).into_iter().step_by(7) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let end = text.floor_char_boundary(LONG_BYTES);
        assert_equal("a transcript", &text[..end]);
        for line in text[..end].lines().take(20) {
            assert_equal("a line of a transcript", line);
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let (folders, mut files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files
}
