//! Counts of windows against counts of the whole text.

use core::cell::Cell;

use proptest::prelude::*;
use proptest::sample::select;

use super::super::super::nasty;
use super::*;

fn encodings() -> [&'static CoreBpe; 2] {
    ["o200k_base", "cl100k_base"].map(|name| tiktoken::get_encoding(name).unwrap())
}

/// Runs of few characters, in which merges tie and continue for long; and runs of many characters.
fn run() -> impl Strategy<Value = String> {
    let alphabet = select(
        &[
            "a",
            "ab",
            "aab",
            "lls",
            "etaoin",
            "abcdefghijklmnopqrstuvwxyz",
            "中",
            "中文字",
            "のカ한中a",
            "あいうえおカキクケコ",
            " ",
            "-",
            "-=*。",
            "\n",
        ][..],
    );
    (alphabet, proptest::collection::vec(any::<u8>(), 1..400)).prop_map(|(alphabet, places)| {
        let letters: Vec<char> = alphabet.chars().collect();
        places.into_iter().map(|place| letters[usize::from(place) % letters.len()]).collect()
    })
}

#[test]
fn windows_count_what_the_whole_counts() {
    let (answered, seams) = (Cell::new(0), Cell::new(0));
    let mut runner = proptest::test_runner::TestRunner::new(nasty::cases(400));
    let texts = (nasty::text(), run(), nasty::text(), 0..60_usize, 8..80_usize, 0..40_usize);
    let checked = runner.run(&texts, |(before, run, after, into, window, overlap)| {
        let text = format!("{before}{run}{after}");
        // Far enough inside that no piece of the text before reaches this place.
        let from = before.len() + into;
        for encoding in encodings() {
            if let Some(tokens) =
                count(encoding, &text, from, Sizes { window, overlap: overlap.min(window / 2) })
            {
                prop_assert_eq!(tokens, encoding.count(&text), "{} {}", from, window);
                answered.set(answered.get() + 1);
                seams.set(seams.get() + run.len() / window);
            }
        }
        Ok(())
    });
    checked.unwrap();
    println!("{} texts in {} windows", answered.get(), seams.get());
    assert!(answered.get() >= 200 && seams.get() >= 1_000, "{} {}", answered.get(), seams.get());
}

#[test]
fn runs_end_where_something_else_could_go_on() {
    let run = |text: &str| end_of_run(text, 1);
    assert_eq!(run("xabc"), Some(4));
    assert_eq!(run("xabcB"), Some(4));
    assert_eq!(run("x中文."), Some(7));
    assert_eq!(run("x中文"), Some(7));
    // `中文Bc` is one piece, but not after a small letter.
    assert_eq!(run("x中文Bc"), None);
    assert_eq!(run("xab中文Bc"), Some(3));
    assert_eq!(run("xab中文\u{301}"), Some(3));
    assert_eq!(run("xABC"), None);
    assert_eq!(run("x   \n"), Some(4));
    assert_eq!(run("x--\n"), Some(3));
    assert_eq!(run("x\n\ny"), Some(3));
    // With a sign before them the slash is in their piece; blanks and newlines are where none is.
    for after in ["/", " \n", "\r\n", "\u{3000}"] {
        assert_eq!(run(&format!("x\n\n{after}")), None, "{after:?}");
    }
}

#[test]
fn long_runs_are_counted_in_windows() {
    for unit in ["a", "ab", "the", "中", "文字", "の", " ", "-", "=-", "\n"] {
        let text = format!("Before {}", unit.repeat(40_000 / unit.len()));
        for encoding in encodings() {
            assert_eq!(count(encoding, &text, 100, SIZES), Some(encoding.count(&text)), "{unit}");
        }
    }
    for short in ["", "word", "two words", &"abc ".repeat(20_000)] {
        assert_eq!(count(encodings()[0], short, 0, SIZES), None);
    }
}
