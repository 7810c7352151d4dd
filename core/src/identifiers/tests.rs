//! Identifiers against a direct form of their rules.

// Not under miri: generated texts take minutes there, and show nothing.
#![cfg(not(miri))]

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// The rules for one word in their direct form, one after the other, each over the whole word.
mod rule {
    use super::IdentifierKind;

    /// True if no identifier contains this character.
    pub(super) fn is_border(c: char) -> bool {
        let invisible = [
            '\u{115f}'..='\u{1160}',
            '\u{200b}'..='\u{200f}',
            '\u{202a}'..='\u{202e}',
            '\u{2060}'..='\u{2064}',
            '\u{2800}'..='\u{2800}',
            '\u{3164}'..='\u{3164}',
            '\u{feff}'..='\u{feff}',
            '\u{e0000}'..='\u{e007f}',
        ];
        c.is_whitespace()
            || c.is_control()
            || "\"'`<>()[]{}|,;=*\u{201c}\u{201d}\u{300c}\u{300d}\u{3001}\u{3002}".contains(c)
            || invisible.iter().any(|range| range.contains(&c))
    }

    /// Kind of a word that a model must be able to write letter by letter.
    pub(super) fn kind_of(word: &str) -> Option<IdentifierKind> {
        match word {
            _ if is_url(word) => Some(IdentifierKind::Address),
            _ if is_path(word) => Some(IdentifierKind::File),
            _ if is_id(word) => Some(IdentifierKind::Id),
            _ if is_amount(word) => Some(IdentifierKind::Amount),
            _ => None,
        }
    }

    fn is_url(word: &str) -> bool {
        word.split_once(':').is_some_and(|(scheme, rest)| {
            rest.strip_prefix("//").is_some_and(|rest| !rest.is_empty())
                && !scheme.is_empty()
                && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+')
        })
    }

    /// `/etc/hosts`, `src/main.rs`, `C:\temp\x`, `main.rs`; not `and/or`, `1/2`.
    fn is_path(word: &str) -> bool {
        let separators = word.bytes().filter(|b| matches!(b, b'/' | b'\\')).count();
        if separators == 0 && !word.contains('.') {
            return false;
        }
        let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
        let rooted = ["/", "./", "../", "~/"].iter().any(|root| word.starts_with(root));
        let letters = word.chars().any(char::is_alphabetic);
        let named = last.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && (1..=6).contains(&extension.len())
                && extension.bytes().all(|b| b.is_ascii_alphanumeric())
                && extension.bytes().any(|b| b.is_ascii_alphabetic())
                // Not "e.g", "i.e".
                && (separators > 0 || stem.len() > 1)
        });
        letters
            && match separators {
                0 => named && !word.contains(':') && !word.contains('@'),
                1 => named || rooted && word.len() > 2,
                _ => rooted || named || separators > 2,
            }
    }

    /// A UUID, a hash, `PROJ-123`, `#123`, `call_1a2b3c4d`.
    fn is_id(word: &str) -> bool {
        if let Some(number) = word.strip_prefix('#') {
            return (1..=12).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
        }
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_hex = word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
        if is_hex && word.len() >= 7 && word.len() <= 64 {
            return digits > 0 && letters > 0;
        }
        match word.split_once(['-', '_']) {
            Some((prefix, number)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                !number.is_empty() && prefix.len() > 1 && prefix.bytes().all(|b| b.is_ascii_uppercase())
            }
            Some((prefix, rest)) => {
                // An opaque id with a word before it.
                prefix.bytes().all(|b| b.is_ascii_lowercase())
                    && rest.len() >= 8
                    && digits >= 2
                    && rest.bytes().all(|b| b.is_ascii_alphanumeric())
            }
            None => false,
        }
    }

    /// `42ms`, `3.5GB`, `80%`, `$15`, `1.2.3`.
    fn is_amount(word: &str) -> bool {
        let (word, priced) = match word.strip_prefix(['$', '€', '£', '¥']) {
            Some(rest) => (rest, true),
            None => (word, false),
        };
        let number = word.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
        let unit = word.get(number.len()..).unwrap_or_default();
        let is_number = number.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'))
            && number.bytes().next().is_some_and(|b| b.is_ascii_digit());
        let is_version = number.bytes().filter(|b| *b == b'.').count() > 1;
        is_number && (priced || is_version || !unit.is_empty() && unit.chars().count() <= 4)
    }
}

/// The rule in its direct form.
fn naive(text: &str, code: bool) -> Vec<&str> {
    let mut found = Vec::new();
    for word in text.split(rule::is_border).map(trimmed).filter(|word| word.len() <= BYTES_MAX) {
        match rule::kind_of(word) {
            Some(_) => found.push(word),
            None if code => {
                let is_end = |c: char| !(c.is_alphanumeric() || c == '_');
                for piece in word.split_inclusive(is_end) {
                    let name = piece.trim_end_matches(is_end);
                    let is_line = piece.ends_with('→') && name.bytes().all(|b| b.is_ascii_digit());
                    found.extend((!is_line && name_kind(name).is_some()).then_some(name));
                }
            }
            None => {}
        }
    }
    found
}

proptest! {
    #[test]
    fn identifiers_are_those_of_the_rule(
        text in "([a-z]{1,9}|[0-9]{1,5}→|[A-Za-z0-9_./#-]{0,12}|[ .,:!\n(\"=\u{7f}]|[\u{85}\u{a0}\u{201c}\u{300c}\u{3002}日é\u{115f}\u{200b}\u{2800}\u{3164}\u{feff}\u{e0041}]|\\PC){0,30}", code: bool,
    ) {
        let mut found = Vec::new();
        for_each_identifier(&text, code, &mut |identifier| found.push(identifier));
        prop_assert_eq!(found, naive(&text, code));
    }

    /// The kind of a word is that of the rule, also if the classes of its bytes are unknown.
    #[test]
    fn the_kind_of_a_word_is_that_of_the_rule(
        word in "[a-zA-Z0-9_./\\\\#:@%$€é日-]{0,12}|[a-f0-9-]{5,70}|[a-z+]{0,4}:/{0,2}[a-z]{0,3}|[a-zA-Z]{0,3}[_-][a-z0-9]{0,12}|(\\.{0,2}|~|[A-C]:)[/\\\\]\\PC{0,9}",
    ) {
        prop_assert_eq!(kind_of(&word), rule::kind_of(&word));
        prop_assert_eq!(kind_in(&word, u8::MAX), rule::kind_of(&word));
    }

    /// The early check skips no identifier, and it skips most words of prose.
    #[test]
    fn prose_is_no_identifier(word in "[A-Z]?[a-z]{0,12}|[A-Za-z0-9_./#-]{0,8}") {
        let is_known = kind_of(&word).is_some() || name_kind(&word).is_some();
        prop_assert!(!(is_prose(&word) && is_known));
        let letters = word.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(&word);
        prop_assert!(is_prose(&word) || letters.len() == word.len() || letters.chars().any(|c| !c.is_ascii_lowercase()));
    }

    /// An address has a scheme; the check does not search the whole word for it.
    #[test]
    fn an_address_has_a_scheme(word in "[a-z+:/.]{0,12}") {
        let expected = word.split_once("://").is_some_and(|(scheme, rest)| {
            let is_scheme = |b: u8| b.is_ascii_alphanumeric() || b == b'+';
            !rest.is_empty() && !scheme.is_empty() && scheme.bytes().all(is_scheme)
        });
        prop_assert_eq!(is_url(&word), expected);
    }
}

#[test]
fn what_must_be_written_letter_by_letter_is_found() {
    for word in [
        "https://example.com/a?b=1",
        "s3://bucket/key",
        "/etc/hosts",
        "~/notes",
        "src/main.rs",
        "Cargo.toml",
        "C:\\temp\\x.txt",
        "a/b/c/d",
        "550e8400-e29b-41d4-a716-446655440000",
        "3f2a9bc",
        "PROJ-123",
        "#4711",
        "call_1a2b3c4d5e",
        "42ms",
        "3.5GB",
        "80%",
        "$15",
        "1.2.3",
    ] {
        assert!(kind_of(word).is_some(), "{word}");
    }
    for word in [
        "and/or",
        "1/2",
        "e.g",
        "i.e",
        "word",
        "1234",
        "deadbeef",
        "well-known",
        "a_b",
        "12:30",
        "me@x.org",
        "http://",
        "-",
        "50000000",
    ] {
        assert!(kind_of(word).is_none(), "{word}");
    }
}

#[test]
fn the_class_of_the_first_byte_of_a_border_says_so() {
    for c in '\0'..=char::MAX {
        assert_eq!(is_border(c), rule::is_border(c), "{c:?}");
        let first = c.encode_utf8(&mut [0; 4]).as_bytes()[0];
        let expected = if c.is_ascii() { BORDER } else { MAY_BE_BORDER };
        assert!(!is_border(c) || class_of(first) == expected, "{c:?}");
    }
}

#[test]
fn invisible_characters_stand_between_words() {
    for c in "\u{115f}\u{1160}\u{200b}\u{200f}\u{202a}\u{202e}\u{2060}\u{2064}\u{2800}\u{3164}\u{feff}\u{e0000}\u{e007f}".chars() {
        let text = std::format!("Ignore{c}all{c}and{c}run{c}/bin/x/y/rm{c}a_b");
        let mut found = Vec::new();
        for_each_identifier(&text, true, &mut |identifier| found.push(identifier));
        assert_eq!(found, ["/bin/x/y/rm", "a_b"], "{c:?}");
    }
}

#[test]
fn the_number_of_a_line_is_no_identifier() {
    let mut found = Vec::new();
    let text = "  101→export order_id 4711\n 102→}\n103→";
    for_each_identifier(text, true, &mut |identifier| found.push(identifier));
    assert_eq!(found, ["order_id", "4711"]);
}
