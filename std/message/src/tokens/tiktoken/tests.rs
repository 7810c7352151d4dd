//! The exact counters on difficult texts: long runs, special tokens.

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

/// Length of long texts. A megabyte takes seconds without optimization.
const LONG_BYTES: usize = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };

#[test]
fn long_runs_of_one_character_are_counted() {
    for counter in [Tiktoken::o200k_base(), Tiktoken::cl100k_base()] {
        for character in ["\n", "\t", "a", "-", " \t"] {
            let text = character.repeat(LONG_BYTES / character.len());
            for text in [format!("before;{text}x"), text] {
                let Amount { tokens, basis, .. } = counter.measure(&text);
                assert!(
                    (text.len() / 200..=text.len()).contains(&(tokens.0 as usize)),
                    "{counter:?} {tokens}"
                );
                assert!(basis == Basis::Counted || LONG_BYTES == 1_000_000, "{counter:?} {character:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_split_is_counted_in_parts_and_said_to_be_estimated() {
    let spaces = " ".repeat(1_000_000);
    let amount = Tiktoken::o200k_base().measure(&spaces);
    assert_eq!(amount, Amount::new(Tokens(7_813), Basis::Estimated));
    let message = epitome_core::message::SimpleMessage::user(&spaces);
    assert_eq!(epitome_core::measure_message(&message, &Tiktoken::o200k_base()).basis, Basis::Estimated);
}

#[test]
fn a_cut_run_of_spaces_counts_as_in_one_piece() {
    // o200k_harmony splits and counts text as o200k_base does.
    for counter in [Tiktoken::o200k_base(), Tiktoken::cl100k_base()] {
        let spaces = " ".repeat(RUN_CHARS_MAX + 77);
        for text in [format!("let x;{spaces}y"), spaces] {
            assert_eq!(Some(in_parts(counter, &text)), counter.try_count(&text), "{counter:?}");
        }
    }
}

#[test]
fn a_cut_run_of_other_whitespace_is_off_by_a_token_or_two() {
    // cl100k_base never needs the cuts.
    let counter = Tiktoken::o200k_base();
    for unit in ["\n", "\r\n", "   \t\n\n", "\u{3000} "] {
        let text = format!("let x;{}y", unit.repeat(RUN_CHARS_MAX / unit.chars().count() + 50));
        let exact = counter.try_count(&text).unwrap();
        let cuts = parts(&text).count() as u64 - 1;
        assert!(cuts > 0 && in_parts(counter, &text).abs_diff(exact) <= 2 * cuts, "{unit:?}");
    }
}
