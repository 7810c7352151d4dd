//! The exact counters on text that breaks others: long runs, special tokens.

use super::*;

const ALL: [Tiktoken; 3] = [Tiktoken::o200k_base(), Tiktoken::o200k_harmony(), Tiktoken::cl100k_base()];

fn in_parts(counter: Tiktoken, text: &str) -> u64 {
    parts(text).map(|part| counter.count_halving(part)).sum()
}

#[test]
fn known_texts_have_known_counts() {
    for (text, o200k, cl100k) in [
        ("", 0, 0),
        ("hello world", 2, 2),
        ("The quick brown fox jumps over the lazy dog.", 10, 10),
        ("1234567", 3, 3),
        ("let x = vec![1, 2];\n", 10, 10),
    ] {
        assert_eq!(Tiktoken::o200k_base().count(text), Tokens(o200k), "{text:?}");
        assert_eq!(Tiktoken::o200k_harmony().count(text), Tokens(o200k), "{text:?}");
        assert_eq!(Tiktoken::cl100k_base().count(text), Tokens(cl100k), "{text:?}");
    }
}

#[test]
fn what_looks_like_a_special_token_is_text() {
    for counter in ALL {
        for text in ["<|endoftext|>", "<|endofprompt|>", "<|start|>", "<|message|>"] {
            assert!(counter.count(text) > Tokens(2), "{counter:?} {text}");
        }
    }
}

#[test]
fn a_megabyte_of_one_character_is_counted() {
    for counter in [Tiktoken::o200k_base(), Tiktoken::cl100k_base()] {
        for character in [" ", "\n", "\t", "a", "-"] {
            let tokens = counter.count(&character.repeat(1_000_000));
            assert!(
                tokens > Tokens(1_000) && tokens <= Tokens(1_000_000),
                "{counter:?} {character:?} {tokens}"
            );
        }
        let tokens = counter.count(&format!("before;{}x", " \t".repeat(500_000)));
        assert!(tokens > Tokens(1_000) && tokens <= Tokens(1_000_000), "{counter:?} {tokens}");
    }
}

#[test]
fn a_cut_run_of_spaces_counts_as_in_one_piece() {
    for counter in ALL {
        for length in [RUN_CHARS_MAX + 1, 2 * RUN_CHARS_MAX + 77] {
            for text in [" ".repeat(length), format!("let x;{}y", " ".repeat(length))] {
                assert_eq!(Some(in_parts(counter, &text)), counter.try_count(&text), "{counter:?} {length}");
            }
        }
    }
}

#[test]
fn a_cut_run_of_other_whitespace_is_off_by_a_token_or_two() {
    let units =
        ["\n", "\t", "\r", "\u{a0}", "\u{3000}", " \t", "\r\n", "\n ", "  \n\t", "   \t\n\n", "\u{3000} "];
    // cl100k_base never needs the cuts, and harmony splits and counts text as o200k_base does.
    for counter in [Tiktoken::o200k_base()] {
        for unit in units {
            let text = format!("let x;{}y", unit.repeat(RUN_CHARS_MAX / unit.chars().count() + 50));
            let exact = counter.try_count(&text).unwrap();
            let cuts = parts(&text).count() as u64 - 1;
            assert!(cuts > 0 && in_parts(counter, &text).abs_diff(exact) <= 2 * cuts, "{counter:?} {unit:?}");
        }
    }
}

#[test]
fn paragraphs_count_as_together() {
    let lines =
        ["fn main() {", "  x;", "// a/b", "x();\r", "", " ", "\t", "Ünïcode", "12", "don't", "{};/", "word"];
    let mut state = 7_usize;
    for counter in ALL {
        for _ in 0..20 {
            let text: String = core::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                format!("{}\n", lines[(state >> 33) % lines.len()])
            })
            .take(3000)
            .collect();
            assert!(paragraphs(&text).count() > 2);
            assert_eq!(paragraphs(&text).collect::<String>(), text);
            let tokens = counter.count(&text);
            assert_eq!(counter.count_up_to(&text, Tokens::MAX), Some(tokens));
            assert_eq!(counter.count_up_to(&text, tokens), Some(tokens));
            assert_eq!(counter.count_up_to(&text, Tokens(tokens.0 - 1)), None);
        }
    }
}
