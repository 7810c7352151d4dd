//! Identifiers that a model must be able to write letter by letter after a summary: paths, addresses, ids, amounts.
//! They are found without a model, because models omit them or write them wrong.

use core::cmp::Reverse;
use std::borrow::ToOwned;
use std::collections::{BinaryHeap, HashMap};
use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{TokenCounter, Tokens};
use epitome_std::identifiers::for_each_identifier;
use epitome_std::message::{Message, Part};
use foldhash::fast::RandomState;
use serde_json::Value;

use super::pieces::Pieces;

/// Identifiers, with the weight of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identifiers {
    found: HashMap<String, Found, RandomState>,
    /// Whether names in code and plain numbers count as identifiers.
    code: bool,
    /// Number of the processed messages.
    messages: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Found {
    /// Number of messages with the identifier, weighted by their writers.
    weight: u64,
    /// Part of this weight that comes from tools.
    by_tools: u64,
    /// The last message with the identifier, counted from 1.
    last: u64,
}

impl Found {
    /// Adds an occurrence in this message.
    fn add(&mut self, writer: Writer, at: u64) {
        // An identifier counts once for each message.
        if self.last == at {
            return;
        }
        self.last = self.last.max(at);
        if writer == Writer::Tool {
            if self.by_tools == BY_TOOLS_MAX {
                return;
            }
            self.by_tools = self.by_tools.saturating_add(1);
        }
        self.weight = self.weight.saturating_add(writer.weight());
    }
}

/// The writer of a text. Identifiers from users come first. Identifiers that only tools list, often thousands, come
/// last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    User,
    Model,
    Tool,
}

impl Writer {
    const ALL: [Self; 3] = [Self::User, Self::Model, Self::Tool];

    /// The writer of a message outside the results in it.
    fn of(message: &Message) -> Self {
        if message.role() == Role::User { Self::User } else { Self::Model }
    }

    const fn weight(self) -> u64 {
        match self {
            Self::User => 8,
            Self::Model => 4,
            Self::Tool => 1,
        }
    }
}

/// Weight of an identifier in an earlier summary: more than of one that the model names once, less than of one that
/// it names twice.
const KNOWN: u64 = 6;
/// Maximum weight from tools: an identifier that only tools write never exceeds one that the model names.
const BY_TOOLS_MAX: u64 = 3;

/// Maximum number of identifiers in memory, before the room for the list is known.
const FOUND_MAX: usize = 4_096;
/// The same maximum for a ledger.
const FOUND_IN_CODE_MAX: usize = 65_536;

impl Identifiers {
    /// The identifiers of an earlier summary.
    pub(crate) fn known<'a>(list: impl Iterator<Item = &'a str>) -> Self {
        let known = Found { weight: KNOWN, ..Found::default() };
        let found = list.map(|identifier| (identifier.to_owned(), known)).collect();
        Self { found, ..Self::default() }
    }

    /// An empty set for a ledger, in which names in code and plain numbers count too.
    pub(crate) fn of_code() -> Self {
        Self { code: true, ..Self::default() }
    }

    /// Adds the identifiers of another summary.
    pub(crate) fn with(mut self, other: Self) -> Self {
        for (identifier, found) in other.found {
            self.found.entry(identifier).or_insert(found);
        }
        self
    }

    /// Adds the identifiers of the next messages. Those of users are added first, because the number of identifiers
    /// is limited.
    pub(crate) fn look_through<'m>(&mut self, messages: impl Iterator<Item = &'m Message> + Clone) {
        for writer in Writer::ALL {
            for (message, at) in messages.clone().zip(self.messages.saturating_add(1)..) {
                self.look_through_parts(message.parts(), Writer::of(message), writer, at);
            }
        }
        self.messages = self.messages.saturating_add(messages.count() as u64);
    }

    /// Adds the identifiers of one part of a message.
    pub(crate) fn look_through_part(&mut self, message: &Message, ordinal: usize) {
        self.messages = self.messages.saturating_add(1);
        let part = message.parts().get(ordinal).map_or(&[][..], core::slice::from_ref);
        for writer in Writer::ALL {
            self.look_through_parts(part, Writer::of(message), writer, self.messages);
        }
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

    fn look_through_text(&mut self, text: &str, writer: Writer, at: u64) {
        let code = self.code;
        for_each_identifier(text, code, &mut |identifier| {
            if writer == Writer::User || !is_of_note(text, identifier) {
                self.add(identifier, writer, at);
            }
        });
    }

    /// Removes the identifiers in these parts, which stay visible.
    pub(crate) fn leave_out<'m>(&mut self, parts: impl Iterator<Item = &'m Part>) {
        for part in parts {
            match part {
                Part::Text(text) => self.leave_out_text(text),
                Part::ToolCall(call) => {
                    for_each_argument(&call.arguments, &mut |text| self.leave_out_text(text));
                }
                Part::ToolResult(result) => self.leave_out(result.parts.iter()),
                _ => {}
            }
        }
    }

    /// Removes the identifiers in this text.
    pub(crate) fn leave_out_text(&mut self, text: &str) {
        for_each_identifier(text, self.code, &mut |identifier| {
            self.found.remove(identifier);
        });
    }

    fn add(&mut self, identifier: &str, writer: Writer, at: u64) {
        if let Some(found) = self.found.get_mut(identifier) {
            found.add(writer, at);
            return;
        }
        let max = if self.code { FOUND_IN_CODE_MAX } else { FOUND_MAX };
        if self.found.len() < max {
            let mut found = Found::default();
            found.add(writer, at);
            self.found.insert(identifier.to_owned(), found);
        }
    }

    /// The identifiers of the highest worth that fit into `room`.
    pub(crate) fn best(&self, room: Tokens, counter: &dyn TokenCounter) -> Vec<&str> {
        let worths = self.found.iter();
        let worths =
            worths.map(|(identifier, found)| (self.worth(identifier, found), Reverse(identifier.as_str())));
        // A heap instead of a sort, because `room` is seldom enough for all.
        let mut all: BinaryHeap<_> = worths.collect();
        let (mut left, mut misses) = (room.0, 0_u32);
        let (mut best, mut seen) = (Vec::new(), Pieces::default());
        while left > SPACE_TOKENS && misses <= MISSES_MAX {
            let Some((_, Reverse(identifier))) = all.pop() else { break };
            // A name needs no entry if a listed path ends with it.
            if self.code && seen.contains(identifier) {
                continue;
            }
            let tokens = counter.count(identifier).0.saturating_add(SPACE_TOKENS);
            // After an identifier that is too long, shorter ones may still fit.
            match left.checked_sub(tokens) {
                Some(rest) => {
                    left = rest;
                    best.push(identifier);
                    if self.code {
                        seen.add(identifier);
                    }
                }
                None => misses = misses.saturating_add(1),
            }
        }
        best
    }

    /// The worth of an identifier. A ledger has room for few identifiers, of which the newest are needed most.
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

/// Age, in messages, that halves the worth of an identifier in a ledger.
const AGE_HALVES: u64 = 32;

/// Bytes that are added to the length of an identifier in a ledger. Twice this sum halves the worth, because it
/// costs twice the room.
const BYTES_FREE: u64 = 16;

/// Tokens between two identifiers of a list.
const SPACE_TOKENS: u32 = 1;
/// Maximum number of identifiers that are skipped as too long. Then the list ends.
const MISSES_MAX: u32 = 64;

/// Whether `identifier`, a slice of `text`, is a number in the note of an earlier compaction: the number of a message in
/// `[cleared; #57]`, or an amount in `[120 lines cut; #57]`.
fn is_of_note(text: &str, identifier: &str) -> bool {
    let start = (identifier.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let end = start.saturating_add(identifier.len());
    let (Some(before), Some(after)) = (text.get(..start), text.get(end..)) else { return false };
    let is_number =
        identifier.strip_prefix('#').is_some() && before.ends_with("; ") && after.starts_with(']');
    let cut = [" lines cut", " elements cut", " characters cut"];
    let is_amount = before.ends_with('[') && cut.iter().any(|cut| after.starts_with(cut));
    is_number || is_amount
}

/// Calls `visit` with the texts in the arguments of a call, without the escapes of JSON.
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

#[cfg(test)]
mod tests {
    use epitome_core::ClassEstimator;
    use epitome_std::message::ToolResult;

    use super::*;

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
    fn numbers_in_notes_of_a_compaction_are_no_identifiers() {
        let notes = [
            "[cleared; #57]",
            "[120 lines cut; #58]",
            "\"[48 elements cut; #59]\"",
            "a\n[... cut#60 ...]\nb",
            "x[5210 characters cut]y",
        ];
        let messages: Vec<_> = notes.into_iter().map(|note| returned(note.into())).collect();
        let mut found = Identifiers::of_code();
        found.look_through(messages.iter());
        assert_eq!(found.best(Tokens(1_000), &ClassEstimator::new()), [""; 0]);

        // Numbers of others stay: a user writes no notes, and a note ends with its number.
        let said =
            [Message::user("See [done; #57]."), returned("[#58] and [fixed; #59 too], 120 lines".into())];
        found.look_through(said.iter());
        let mut best = found.best(Tokens(1_000), &ClassEstimator::new());
        best.sort_unstable();
        assert_eq!(best, ["#57", "#58", "#59", "120"]);
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
