//! What a model must be able to write letter by letter after a summary: paths, addresses, ids, amounts. No model is asked:
//! models leave such things out, or write them wrong.

use std::borrow::ToOwned;
use std::collections::HashMap;
use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{TokenCounter, Tokens};
use epitome_std::message::{Message, Part};
use serde_json::Value;

/// Identifiers with how much speaks for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identifiers {
    found: HashMap<String, Found>,
    /// Whether names in code and plain numbers count too.
    code: bool,
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

/// What an identifier is. Lists are in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    File,
    Address,
    Id,
    /// A name in code: only a ledger lists it.
    Name,
    Amount,
    /// A number of at least three digits: only a ledger lists it.
    Number,
}

/// Who writes something. What users name comes first, and what only tools list, by the thousands, comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    User,
    Model,
    Tool,
}

impl Kind {
    pub(super) const ALL: [Self; 6] =
        [Self::File, Self::Address, Self::Id, Self::Name, Self::Amount, Self::Number];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::File => "files",
            Self::Address => "addresses",
            Self::Id => "ids",
            Self::Name => "names",
            Self::Amount => "amounts",
            Self::Number => "numbers",
        }
    }

    /// That of a word in a list.
    pub(super) fn of(word: &str) -> Self {
        kind_of(word).or_else(|| name_kind(word)).unwrap_or(Self::Name)
    }
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
/// The same for a ledger.
const FOUND_IN_CODE_MAX: usize = 65_536;

impl Identifiers {
    /// Those of an earlier summary.
    pub(crate) fn known<'a>(list: impl Iterator<Item = &'a str>) -> Self {
        let known = Found { weight: KNOWN, ..Found::default() };
        let found = list.map(|identifier| (identifier.to_owned(), known)).collect();
        Self { found, ..Self::default() }
    }

    /// None, for a ledger: names in code and plain numbers count too.
    pub(crate) fn of_code() -> Self {
        Self { code: true, ..Self::default() }
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
                    for_each_argument(&call.arguments, &mut |text| self.look_through_text(text, wanted, at));
                }
                Part::ToolResult(result) => self.look_through_parts(&result.parts, Writer::Tool, wanted, at),
                _ => {}
            }
        }
    }

    /// Looks through what a tool returned.
    pub(crate) fn look_through_result(&mut self, text: &str) {
        self.messages = self.messages.saturating_add(1);
        self.look_through_text(text, Writer::Tool, self.messages);
    }

    fn look_through_text(&mut self, text: &str, writer: Writer, at: u64) {
        let code = self.code;
        for_each_identifier(text, code, &mut |identifier| self.add(identifier, writer, at));
    }

    /// Leaves out what stands in these messages, which are still shown.
    pub(crate) fn leave_out(&mut self, message: &Message) {
        self.leave_out_parts(message.parts());
    }

    fn leave_out_parts(&mut self, parts: &[Part]) {
        let code = self.code;
        for part in parts {
            let mut leave_out = |text: &str| {
                for_each_identifier(text, code, &mut |identifier| {
                    self.found.remove(identifier);
                });
            };
            match part {
                Part::Text(text) => leave_out(text),
                Part::ToolCall(call) => for_each_argument(&call.arguments, &mut leave_out),
                Part::ToolResult(result) => self.leave_out_parts(&result.parts),
                _ => {}
            }
        }
    }

    fn add(&mut self, identifier: &str, writer: Writer, at: u64) {
        let max = if self.code { FOUND_IN_CODE_MAX } else { FOUND_MAX };
        let is_full = self.found.len() >= max;
        // Looked up twice where it is new, which is seldom: to be put in, it has to be copied.
        if !self.found.contains_key(identifier) {
            if is_full {
                return;
            }
            self.found.insert(identifier.to_owned(), Found::default());
        }
        let Some(found) = self.found.get_mut(identifier) else { return };
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

    /// The most important ones, as many as there is room for.
    pub(crate) fn best(&self, room: Tokens, counter: &dyn TokenCounter) -> Vec<&str> {
        let mut all: Vec<_> = self.found.iter().collect();
        all.sort_by_key(|(identifier, found)| {
            (core::cmp::Reverse(self.worth(identifier, found)), identifier.as_str())
        });
        let (mut left, mut misses) = (room.0, 0_u32);
        let mut best = Vec::new();
        for (identifier, _) in all {
            if left <= SPACE_TOKENS || misses > MISSES_MAX {
                break;
            }
            // A name is seen in a path that ends with it.
            if self.code && best.iter().any(|known: &&str| known.contains(identifier.as_str())) {
                continue;
            }
            let tokens = counter.count(identifier).0.saturating_add(SPACE_TOKENS);
            // One that is too long is no reason to leave out the next.
            match left.checked_sub(tokens) {
                Some(rest) => {
                    left = rest;
                    best.push(identifier.as_str());
                }
                None => misses = misses.saturating_add(1),
            }
        }
        best
    }

    /// How much speaks for one. A ledger has room for few, and the newest are needed most.
    fn worth(&self, identifier: &str, found: &Found) -> (u64, u64) {
        if !self.code {
            return (found.weight, found.last);
        }
        let age = self.messages.saturating_sub(found.last);
        let bytes = (identifier.len() as u64).saturating_add(BYTES_FREE);
        let divisor = age.saturating_add(AGE_HALVES).saturating_mul(bytes);
        (found.weight.saturating_mul(1 << 24).checked_div(divisor).unwrap_or(0), found.last)
    }
}

/// An identifier of a ledger that so many messages have not named is worth half.
const AGE_HALVES: u64 = 32;

/// In a ledger an identifier of twice the length, with this added, is worth half: it costs twice the room.
const BYTES_FREE: u64 = 16;

/// What stands between two identifiers of a list.
const SPACE_TOKENS: u32 = 1;
/// So many that are too long are passed over.
const MISSES_MAX: u32 = 64;

/// The texts in the arguments of a call, without the escapes of JSON.
fn for_each_argument(arguments: &str, visit: &mut dyn FnMut(&str)) {
    match serde_json::from_str(arguments) {
        Ok(value) => for_each_text(&value, visit),
        Err(_) => visit(arguments),
    }
}

fn for_each_text(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(all) => all.iter().for_each(|one| for_each_text(one, visit)),
        Value::Object(all) => all.values().for_each(|one| for_each_text(one, visit)),
        Value::Number(number) => visit(&number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The identifiers in a text, repeated ones too; with `code` also names in code and numbers.
fn for_each_identifier<'t>(text: &'t str, code: bool, visit: &mut dyn FnMut(&'t str)) {
    for word in text.split(is_border) {
        let word = trimmed(word);
        if word.is_empty() || word.len() > BYTES_MAX {
            continue;
        }
        if kind_of(word).is_some() {
            visit(word);
        } else if code {
            let names = word.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            names.filter(|name| name_kind(name).is_some()).for_each(&mut *visit);
        }
    }
}

/// A name in code, `snake_case`, `camelCase`, `PascalCase`, `UPPER`; or a number of three digits or more.
pub(super) fn name_kind(word: &str) -> Option<Kind> {
    let bytes = word.as_bytes();
    if bytes.len() < 3 || !word.is_ascii() {
        return None;
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        return Some(Kind::Number);
    }
    let snake = bytes
        .windows(3)
        .any(|three| matches!(three, [a, b'_', b] if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric()));
    let camel =
        bytes.windows(2).any(|two| matches!(two, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let upper = bytes.first().is_some_and(u8::is_ascii_uppercase)
        && bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    (snake || camel || upper).then_some(Kind::Name)
}

/// Whether a character stands between words: no identifier holds it.
fn is_border(c: char) -> bool {
    const OTHERS: u128 = {
        let (mut mask, mut rest): (u128, &[u8]) = (1 << 127, b"\"'`<>()[]{}|,;=*");
        while let [byte, after @ ..] = rest {
            mask |= 1 << *byte;
            rest = after;
        }
        mask
    };
    match u32::from(c) {
        0..=32 => true,
        ascii @ 33..=127 => OTHERS >> ascii & 1 == 1,
        _ => {
            c.is_whitespace()
                || c.is_control()
                || "\u{201c}\u{201d}\u{300c}\u{300d}\u{3001}\u{3002}".contains(c)
        }
    }
}

/// A word without the punctuation of the sentence around it.
fn trimmed(word: &str) -> &str {
    word.trim_end_matches(['.', ':', '!', '?', '\\']).trim_start_matches([':', '!'])
}

/// What a word is, if a model must be able to write it letter by letter.
pub(super) fn kind_of(word: &str) -> Option<Kind> {
    match word {
        _ if is_url(word) => Some(Kind::Address),
        _ if is_path(word) => Some(Kind::File),
        _ if is_id(word) => Some(Kind::Id),
        _ if is_amount(word) => Some(Kind::Amount),
        _ => None,
    }
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
            "-",
            "50000000",
        ] {
            assert!(kind_of(word).is_none(), "{word}");
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
