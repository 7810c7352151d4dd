//! What a model must be able to write letter by letter after a summary: paths, addresses, ids, amounts. No model is asked:
//! models leave such things out, or write them wrong.

use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{TokenCounter, Tokens};
use epitome_std::message::{Message, Part};

/// Identifiers with how much speaks for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identifiers {
    found: BTreeMap<String, Found>,
    /// How many messages were looked through.
    messages: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Found {
    /// In how many messages it stands, weighted by who wrote them.
    weight: u64,
    /// Of that, what tools have written.
    by_tools: u64,
    /// The last of the messages in which it stands, counted from 1.
    last: u64,
}

/// Who writes something. What users name comes first, and what only tools list, by the thousands, comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    User,
    Model,
    Tool,
}

impl Writer {
    const ALL: [Self; 3] = [Self::User, Self::Model, Self::Tool];

    const fn weight(self) -> u64 {
        match self {
            Self::User => 8,
            Self::Model => 4,
            Self::Tool => 1,
        }
    }
}

/// What an earlier summary lists was worth it then: more than what the model names once, less than what it names twice.
const KNOWN: u64 = 6;
/// What only tools write never outweighs what the model names.
const BY_TOOLS_MAX: u64 = 3;

/// Longer ones cost more than they are worth.
const BYTES_MAX: usize = 200;
/// As many are remembered until it is known for how many there is room.
const FOUND_MAX: usize = 4_096;

impl Identifiers {
    /// Those of an earlier summary.
    pub(crate) fn known<'a>(list: impl Iterator<Item = &'a str>) -> Self {
        let known = Found { weight: KNOWN, ..Found::default() };
        Self { found: list.map(|identifier| (identifier.to_owned(), known)).collect(), messages: 0 }
    }

    /// These and those of another summary.
    pub(crate) fn with(mut self, other: Self) -> Self {
        for (identifier, found) in other.found {
            self.found.entry(identifier).or_insert(found);
        }
        self
    }

    /// Looks through the messages that came after. Those that are remembered first are those of the users, because there
    /// may be more than can be.
    pub(crate) fn look_through<'m>(&mut self, messages: impl Iterator<Item = &'m Message> + Clone) {
        for writer in Writer::ALL {
            for (message, at) in messages.clone().zip(self.messages.saturating_add(1)..) {
                let own = if message.role() == Role::User { Writer::User } else { Writer::Model };
                self.look_through_parts(message.parts(), own, writer, at);
            }
        }
        self.messages = self.messages.saturating_add(messages.count() as u64);
    }

    fn look_through_parts(&mut self, parts: &[Part], own: Writer, wanted: Writer, at: u64) {
        for part in parts {
            match part {
                Part::Text(text) if own == wanted => self.look_through_text(text, wanted, at),
                Part::ToolCall(call) if wanted == Writer::Model => {
                    self.look_through_text(&call.arguments, wanted, at);
                }
                Part::ToolResult(result) => self.look_through_parts(&result.parts, Writer::Tool, wanted, at),
                _ => {}
            }
        }
    }

    fn look_through_text(&mut self, text: &str, writer: Writer, at: u64) {
        for word in text.split(is_border) {
            let word = trimmed(word);
            if !word.is_empty() && word.len() <= BYTES_MAX && is_identifier(word) {
                self.add(word, writer, at);
            }
        }
    }

    fn add(&mut self, identifier: &str, writer: Writer, at: u64) {
        if !self.found.contains_key(identifier) && self.found.len() >= FOUND_MAX {
            return;
        }
        let found = self.found.entry(identifier.to_owned()).or_default();
        // Once for each message, however often it stands there.
        if found.last == at {
            return;
        }
        found.last = found.last.max(at);
        if writer == Writer::Tool {
            if found.by_tools == BY_TOOLS_MAX {
                return;
            }
            found.by_tools = found.by_tools.saturating_add(1);
        }
        found.weight = found.weight.saturating_add(writer.weight());
    }

    /// The most important ones, as many as there is room for, each in a line of a list.
    pub(crate) fn best(&self, room: Tokens, counter: &dyn TokenCounter) -> Vec<&str> {
        let mut all: Vec<_> = self.found.iter().collect();
        all.sort_by_key(|(identifier, found)| {
            (core::cmp::Reverse((found.weight, found.last)), identifier.as_str())
        });
        let mut left = room.0;
        let mut best = Vec::new();
        for (identifier, _) in all {
            if left < LINE_TOKENS {
                break;
            }
            let tokens = counter.count(identifier).0.saturating_add(LINE_TOKENS);
            // One that is too long is no reason to leave out the next.
            if let Some(rest) = left.checked_sub(tokens) {
                left = rest;
                best.push(identifier.as_str());
            }
        }
        best
    }
}

/// What stands before an identifier in its list: the end of a line, a dash and a blank.
const LINE_TOKENS: u32 = 3;

/// Whether a character stands between words: no identifier holds it.
fn is_border(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || "\"'`<>()[]{}|,;=*\u{201c}\u{201d}\u{300c}\u{300d}\u{3001}\u{3002}".contains(c)
}

/// A word without the punctuation of the sentence around it.
fn trimmed(word: &str) -> &str {
    word.trim_end_matches(['.', ':', '!', '?', '\\']).trim_start_matches([':', '!'])
}

fn is_identifier(word: &str) -> bool {
    is_url(word) || is_path(word) || is_id(word) || is_amount(word)
}

fn is_url(word: &str) -> bool {
    word.split_once("://").is_some_and(|(scheme, rest)| {
        !rest.is_empty()
            && !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+')
    })
}

/// `/etc/hosts`, `src/main.rs`, `C:\temp\x`, `main.rs`; not `and/or`, `1/2`.
fn is_path(word: &str) -> bool {
    let separators = word.bytes().filter(|b| matches!(b, b'/' | b'\\')).count();
    let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| word.starts_with(root));
    let letters = word.chars().any(char::is_alphabetic);
    let named = last.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=6).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && extension.bytes().any(|b| b.is_ascii_alphabetic())
            // "e.g", "i.e"
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

#[cfg(test)]
mod tests {
    use epitome_core::ClassEstimator;
    use epitome_std::message::ToolResult;

    use super::*;

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
            assert!(is_identifier(word), "{word}");
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
            "-",
            "50000000",
        ] {
            assert!(!is_identifier(word), "{word}");
        }
    }

    fn found_in(messages: &[Message]) -> Identifiers {
        let mut found = Identifiers::default();
        found.look_through(messages.iter());
        found
    }

    fn returned(text: String) -> Message {
        let result = ToolResult::new("1", [Part::Text(text.into())].into());
        Message::new(Role::Tool, [Part::ToolResult(result)].into())
    }

    #[test]
    fn the_sentence_around_one_is_left_away() {
        let said = Message::user("See `src/main.rs`, (PROJ-7); and \"https://x.org/a\". 「/tmp/x」!");
        let (found, counter) = (found_in(&[said]), ClassEstimator::new());
        let mut best = found.best(Tokens(1_000), &counter);
        best.sort_unstable();
        assert_eq!(best, ["/tmp/x", "PROJ-7", "https://x.org/a", "src/main.rs"]);
    }

    #[test]
    fn there_is_room_for_what_people_name_before_what_tools_list() {
        let listed = (0..6_000).map(|n| std::format!("test {n} ok 42ms src/listed{n}.rs\n")).collect();
        let again = (0..50).map(|_| returned("src/often.rs 42ms".into()));
        let mut messages: Vec<_> = [returned(listed)].into_iter().chain(again).collect();
        messages.push(Message::user("Fix src/asked.rs."));
        messages.push(Message::assistant("PROJ-4711 is about it."));
        let found = found_in(&messages);
        let best = found.best(Tokens(60), &ClassEstimator::new());
        assert_eq!(best.get(..2), Some(&["src/asked.rs", "PROJ-4711"][..]));
        assert!((3..12).contains(&best.len()));
    }

    #[test]
    fn one_that_is_too_long_is_passed_over() {
        let url = std::format!("https://example.com/{}", "a1b2/".repeat(30));
        let found =
            found_in(&[Message::user(std::format!("{url} and PROJ-4711")), Message::assistant(url.clone())]);
        assert_eq!(found.best(Tokens(20), &ClassEstimator::new()), ["PROJ-4711"]);
    }

    #[test]
    fn what_was_known_stays_known_before_what_is_named_once() {
        let mut found = Identifiers::known(["src/first.rs", "src/second.rs"].into_iter());
        let later = [
            Message::assistant("Now src/third.rs, src/third.rs, and src/second.rs again."),
            Message::assistant("Then src/fourth.rs."),
            Message::assistant("And src/fourth.rs."),
        ];
        found.look_through(later.iter());
        let best = found.best(Tokens(1_000), &ClassEstimator::new());
        assert_eq!(best, ["src/second.rs", "src/fourth.rs", "src/first.rs", "src/third.rs"]);
        assert!(found.best(Tokens(0), &ClassEstimator::new()).is_empty());
    }
}
