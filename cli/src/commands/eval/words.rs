//! The identifiers and the runs of words in a text: the units of the measurement.
//!
//! The definitions belong to the measurement, not to a strategy: a strategy that keeps identifiers has an extractor of
//! its own, so that the measurement does not agree with it by construction.

use core::hash::{Hash as _, Hasher as _};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;

use epitome::message::{Message, Part};
use regex::Regex;
use serde_json::Value;

use crate::failure::{Failure, Result};

/// Number of words in a run: long enough that two texts share a run only if one copies the other.
pub(super) const RUN: usize = 5;

/// Maximum length of an identifier: longer matches are payloads.
const BYTES_MAX: usize = 200;

/// One alternative for each kind, in the order in which they are tried at a place.
const IDENTIFIER: &str = concat!(
    r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>()\[\]{}|,;`\\]+"#, // URL
    r"|(?:[A-Za-z]:\\|~?/|\.{1,2}/)?[\w.@+-]+(?:[/\\][\w.@+-]+)+", // path
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", // UUID
    r"|\b[\w-]*\w\.[A-Za-z][A-Za-z0-9]{0,5}\b",              // file name
    r"|\b[A-Za-z]+[-_][0-9]+\b",                             // issue key, numbered id
    r"|\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b",                  // snake_case, UPPER_CASE
    r"|\b[a-z]+[A-Z][A-Za-z0-9]*\b",                         // camelCase
    r"|\b[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*\b",                 // PascalCase
    r"|\b[0-9a-f]*[0-9][0-9a-f]*[a-f][0-9a-f]*\b",           // hex, of HEX_MIN digits
    r"|\b[0-9]{3,}\b",                                       // number
    r"|\b[A-Z][A-Z0-9]{2,}\b",                               // UPPER
);

/// Minimum length of a hexadecimal identifier: shorter ones are words like `2nd` or `5a`.
const HEX_MIN: usize = 7;

/// Finds identifiers.
#[derive(Debug)]
pub(super) struct Finder(Regex);

impl Finder {
    pub(super) fn new() -> Result<Self> {
        Regex::new(IDENTIFIER).map(Self).map_err(|error| Failure::input(error.to_string()))
    }

    /// The identifiers in a text, in order, repeated ones too.
    pub(super) fn identifiers<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let all = self.0.find_iter(text).map(|found| found.as_str());
        all.map(|word| word.trim_end_matches(['.', ':', '-', '/'])).filter(|word| is_name(word))
    }
}

/// Whether a match is a name: not `and/or`, not `1/2`, not a payload.
fn is_name(word: &str) -> bool {
    let separators = word.bytes().filter(|b| matches!(b, b'/' | b'\\')).count();
    if separators == 1 && !word.contains('.') && !word.starts_with(['/', '~']) {
        return false;
    }
    let hex = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let number = word.bytes().all(|b| b.is_ascii_digit());
    let long_enough = if hex && !number { word.len() >= HEX_MIN } else { word.len() >= 3 };
    long_enough && word.len() <= BYTES_MAX
}

/// The runs of [`RUN`] words in a text, as hashes, repeated ones too. In a script without blanks, each character is a
/// word.
pub(super) fn runs(text: &str) -> Vec<u64> {
    let words: Vec<&str> = words(text).collect();
    let hash = |run: &[&str]| {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        hasher.finish()
    };
    words.windows(RUN).map(hash).collect()
}

/// The distinct words of a text, in lower case, in their order.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let words = words(text).map(str::to_lowercase);
    words.filter(|word| seen.insert(word.clone())).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c| !is_word(c)).filter(|word| !word.is_empty()).flat_map(by_script)
}

/// A word; in a script without blanks, its characters.
fn by_script(word: &str) -> impl Iterator<Item = &str> {
    word.split_inclusive(is_ideograph).flat_map(|piece| {
        let own = piece.char_indices().next_back().filter(|(_, c)| is_ideograph(*c)).map(|(at, _)| at);
        let (before, character) = piece.split_at(own.unwrap_or(piece.len()));
        [before, character].into_iter().filter(|word| !word.is_empty())
    })
}

/// Kana, Han and Hangul.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

/// All text of a message, one line for each text: texts, reasoning, names and arguments of calls, results.
pub(super) fn text_of(message: &Message) -> String {
    let mut text = String::new();
    add_parts(message.parts(), true, &mut text);
    text
}

/// The text that the model writes for others: its texts and the arguments of its calls, without its reasoning.
pub(super) fn written(message: &Message) -> String {
    let mut text = String::new();
    add_parts(message.parts(), false, &mut text);
    text
}

fn add_parts(parts: &[Part], reasoning: bool, text: &mut String) {
    for part in parts {
        match part {
            Part::Text(own) => add(own, text),
            Part::Reasoning(own) if reasoning => add(&own.text, text),
            Part::ToolCall(call) => {
                add(&call.name, text);
                match serde_json::from_str(&call.arguments) {
                    Ok(arguments) => add_json(&arguments, text),
                    Err(_) => add(&call.arguments, text),
                }
            }
            Part::ToolResult(result) => add_parts(&result.parts, reasoning, text),
            _ => {}
        }
    }
}

/// Adds the texts and numbers of arguments, without their escapes.
fn add_json(value: &Value, text: &mut String) {
    match value {
        Value::String(own) => add(own, text),
        Value::Array(all) => all.iter().for_each(|one| add_json(one, text)),
        Value::Object(all) => all.iter().for_each(|(name, one)| {
            add(name, text);
            add_json(one, text);
        }),
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => add(&number.to_string(), text),
    }
}

fn add(own: &str, text: &mut String) {
    text.push_str(own);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        Finder::new().unwrap().identifiers(text).collect()
    }

    #[test]
    fn identifiers_are_found_by_their_form() {
        for (text, expected) in [
            ("See https://example.com/a?b=1.", &["https://example.com/a?b=1"][..]),
            ("in `src/main.rs`: /etc/hosts, ../x/y", &["src/main.rs", "/etc/hosts", "../x/y"]),
            ("C:\\temp\\x.txt and Cargo.toml", &["C:\\temp\\x.txt", "Cargo.toml"]),
            ("call read_file or readFile of FileReader", &["read_file", "readFile", "FileReader"]),
            ("PROJ-123, MAX_LEN and HTTP", &["PROJ-123", "MAX_LEN", "HTTP"]),
            ("commit 3f2a9bc of 12 in 4711", &["3f2a9bc", "4711"]),
            ("550e8400-e29b-41d4-a716-446655440000", &["550e8400-e29b-41d4-a716-446655440000"]),
            ("计数器在 src/计数.rs 中", &["src/计数.rs"]),
            ("plain words, the 2nd of 5a, and/or well known", &[]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn terms_are_different_words_in_small_letters() {
        assert_eq!(terms("The cat, the CAT: 19 May!"), ["the", "cat", "19", "may"]);
        assert_eq!(terms("在北京"), ["在", "北", "京"]);
    }

    #[test]
    fn runs_are_five_words_or_characters() {
        assert_eq!(runs("one two three four").len(), 0);
        assert_eq!(runs("one two, three; four (five) six").len(), 2);
        assert_eq!(runs("a b c d e"), runs("a  b\tc\nd-e"));
        assert_eq!(runs("这是一个例子").len(), 2);
        assert_eq!(words("mix这是2 ok").collect::<Vec<_>>(), ["mix", "这", "是", "2", "ok"]);
    }
}
