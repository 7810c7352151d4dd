//! The facts that cuts and bounds depend on, read from the vocabularies; and cuts and bounds against counts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use core::cell::RefCell;

use proptest::prelude::*;
use tiktoken::CoreBpe;

use super::super::nasty;
use super::*;

fn encodings() -> [&'static CoreBpe; 2] {
    ["o200k_base", "cl100k_base"].map(|name| tiktoken::get_encoding(name).unwrap())
}

fn vocabulary(encoding: &CoreBpe) -> Vec<Vec<u8>> {
    let ids = 0..u32::try_from(encoding.vocab_size()).unwrap();
    ids.map(|id| encoding.decode(&[id])).filter(|token| !token.is_empty()).collect()
}

#[test]
fn the_longest_token_is_known() {
    for encoding in encodings() {
        let longest = vocabulary(encoding).iter().map(Vec::len).max().unwrap();
        assert_eq!(longest as u64, TOKEN_BYTES_MAX);
    }
}

#[test]
fn every_pair_of_letters_that_is_not_listed_is_a_token() {
    for encoding in encodings() {
        let missing = |pair: &[u8; 2]| {
            let text = str::from_utf8(pair).unwrap();
            encoding.count(text) > 1
        };
        let pairs = (b'a'..=b'z').flat_map(|first| (b'a'..=b'z').map(move |second| [first, second]));
        let unlisted: Vec<_> = pairs.filter(missing).filter(|pair| !is_unpaired(pair[0], pair[1])).collect();
        assert!(unlisted.is_empty(), "{unlisted:?}");
    }
}

#[test]
fn no_token_of_white_space_goes_on_after_its_last_newline() {
    // So it makes no difference whether white space at the end of a text is one piece, as the reference takes it for
    // cl100k_base, or two.
    let bytes = |from: char, to: char| {
        (from..=to).filter(|c| c.is_whitespace()).flat_map(|c| c.to_string().into_bytes())
    };
    let blank: Vec<u8> = bytes('\0', '\u{ffff}').collect();
    for encoding in encodings() {
        let tokens = vocabulary(encoding);
        let blank = tokens.iter().filter(|token| token.iter().all(|byte| blank.contains(byte)));
        let with_newline: Vec<_> =
            blank.filter(|token| token.iter().any(|byte| b"\r\n".contains(byte))).collect();
        assert!(with_newline.len() > 100);
        assert!(with_newline.iter().all(|token| token.ends_with(b"\n") || token.ends_with(b"\r")));
    }
}

#[test]
fn no_other_byte_is_a_cut_that_is_none_as_a_character() {
    for before in '\0'..='\u{7f}' {
        for after in '\0'..='\u{7f}' {
            let (byte_before, byte_after) = (CLASSES[before as usize], CLASSES[after as usize]);
            if is_certain_cut(byte_before, byte_after) {
                assert!(is_cut(class_of(before), class_of(after)), "{before:?} {after:?}");
            }
        }
    }
    assert!(CLASSES[128..].iter().all(|class| *class == Other));
}

/// The cuts of a text, found by a check of every pair of neighbours.
fn cuts(text: &str) -> Vec<usize> {
    let pairs = text.char_indices().zip(text.char_indices().skip(1));
    pairs.filter(|((_, a), (_, b))| is_cut(class_of(*a), class_of(*b))).map(|(_, (at, _))| at).collect()
}

/// Places of the last character of white space of two or more characters, if all of this is ASCII.
fn indents(text: &str) -> Vec<usize> {
    let is_blank = |byte: u8| byte.is_ascii() && char::from(byte).is_whitespace();
    let threes = (1..).zip(text.as_bytes().windows(3));
    let found = threes.filter(|(_, three)| match three {
        [first, last, after] => {
            let is_last = is_blank(*last) && !b"\r\n".contains(last) && !is_blank(*after);
            is_blank(*first) && is_last && after.is_ascii()
        }
        _ => false,
    });
    found.map(|(at, _)| at).collect()
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let cuts = cuts(text);
    let mut all = [cuts.clone(), indents(text)].concat();
    all.sort_unstable();
    for encoding in encodings() {
        let tokens = encoding.count(text) as u64;
        for at in &all {
            let (left, right) = text.split_at(*at);
            prop_assert_eq!(encoding.count(left) + encoding.count(right), tokens as usize, "cut at {}", at);
        }
        let bounds = bounds(text);
        prop_assert!(
            bounds.lower.as_u64() <= tokens && tokens <= bounds.upper.as_u64(),
            "{:?} {}",
            bounds,
            tokens
        );
    }
    for from in 0..=text.len() {
        prop_assert_eq!(last_cut(text, from), all.iter().copied().rfind(|at| *at > from));
        prop_assert_eq!(first_cut(text, from), cuts.iter().copied().find(|at| *at >= from.max(1)));
    }
    prop_assert_eq!(parts(text, 5).collect::<String>(), text);
    Ok(())
}

proptest! {
    #![proptest_config(nasty::cases(300))]

    #[test]
    fn counts_add_up_at_cuts_and_lie_in_bounds(text in nasty::text()) {
        check(&text)?;
    }

    #[test]
    fn nothing_is_counted_once_a_limit_is_passed(text in nasty::text(), times in 1..200_usize, share in 0..110_usize) {
        let text = text.repeat(times);
        let limit = text.len() * share / 100;
        let (answer, lengths) = counted_up_to(&text, limit);
        prop_assert_eq!(answer, (text.len() <= limit).then_some(Tokens::from_u64(text.len() as u64)));
        // All but the last part are within the limit.
        let before: usize = lengths.iter().rev().skip(1).sum();
        prop_assert!(before <= limit, "{} {:?}", limit, lengths);
    }

    #[test]
    fn counts_add_up_before_the_last_blank(
        blanks in "[ \t\n\r\u{b}\u{c}]{1,9}", before in nasty::text(), after in nasty::text(),
    ) {
        check(&format!("{before}{blanks}{after}"))?;
        check(&format!("{before}{blanks}x{after}"))?;
    }
}

/// The result of counting up to `limit` where every byte is a token, and the lengths of the parts that it counts.
fn counted_up_to(text: &str, limit: usize) -> (Option<Tokens>, Vec<usize>) {
    let lengths = RefCell::new(Vec::new());
    let answer = count_up_to(text, Tokens::from_u64(limit as u64), |part| {
        lengths.borrow_mut().push(part.len());
        Tokens::from_u64(part.len() as u64)
    });
    (answer, lengths.into_inner())
}

#[test]
fn counting_up_to_a_limit_looks_at_little_more() {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(10_000);
    let (bytes, a_word) = (text.len(), 16);
    let (answer, lengths) = counted_up_to(&text, bytes / 10);
    let looked_at: usize = lengths.iter().sum();
    assert_eq!(answer, None);
    assert!(looked_at <= bytes / 10 + PART_BYTES_MIN + a_word, "{looked_at} of {bytes}");
    // This number of tokens cannot hold this number of bytes.
    assert_eq!(counted_up_to(&text, bytes / 128 - 1), (None, Vec::new()));
    let (answer, lengths) = counted_up_to(&text, bytes);
    assert_eq!(answer, Some(Tokens::from_u64(bytes as u64)));
    assert_eq!(lengths.iter().sum::<usize>(), bytes);
}

#[test]
fn ordinary_text_has_a_cut_at_every_word() {
    assert_eq!(cuts("It's 12 o'clock.\nNow"), [4, 7, 15, 17]);
    assert_eq!(cuts("{\"a\":1,\"b\":[2]}"), [3, 5, 6, 9, 12, 13]);
    assert_eq!(cuts("今日は、晴れ。3時\n"), [9, 18, 21, 22, 25]);
    assert_eq!(indents("if x:\n\t\treturn  1\n  \n"), [7, 15]);
    assert_eq!(last_cut("if x:\n        ret", 0), Some(13));
    assert_eq!(bounds("").upper, Tokens::ZERO);
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(100);
    let (bounds, tokens) = (bounds(&text), encodings()[0].count(&text) as f64);
    assert!(
        f64::from(bounds.lower.0) > 0.8 * tokens && f64::from(bounds.upper.0) < 4.0 * tokens,
        "{bounds:?}"
    );
}
