//! Keys, tokens and passwords taken out of what is exported.
//!
//! What is found becomes `[redacted:KIND]`, always the same for the same text. Only texts change: of JSON the string
//! literals that hold something, byte for byte nothing else, so that its structure and its validity stay. A text that is
//! itself JSON, as the arguments of a call are, is searched in the same way inside. Redacting what was redacted changes
//! nothing: what stands in the brackets of an earlier pass is not searched, and passes are repeated until one finds nothing.
//!
//! What it cannot do: find secrets that look like any word and stand beside no name for them, those that are cut in two,
//! and those in numbers. What cannot be searched, because it is encrypted or an image, is counted, and the user is told.

mod assignment;
mod json;
mod list;
mod message;
mod opaque;
mod table;
#[cfg(test)]
mod tests;

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use crate::amount::{counted, grouped};
use crate::args::RedactArgs;
use crate::failure::Result;
use crate::output;

use table::{Rule, TABLE};

/// Takes secrets out of texts, and counts them.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    own: Vec<Regex>,
    found: Found,
}

/// What was found, and what could not be searched.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Found {
    /// How many secrets of each kind.
    pub(crate) redacted: BTreeMap<&'static str, u64>,
    /// Values that are base64, encrypted or signed.
    pub(crate) not_searched: u64,
    /// Their bytes.
    pub(crate) not_searched_bytes: u64,
}

/// The kind of what the user's own list names.
const LISTED: &str = "listed";

/// What stands in the place of a secret: nothing in it is searched again.
static MARKER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let mut kinds: Vec<&str> = TABLE.iter().map(|rule| rule.kind).collect();
    kinds.extend([LISTED, assignment::KIND]);
    Regex::new(&format!(r"\[redacted:(?:{})\]", kinds.join("|"))).ok()
});

impl Redactor {
    /// The one that is asked for, if one is.
    pub(crate) fn new(args: &RedactArgs) -> Result<Option<Self>> {
        match &args.redact_list {
            Some(path) => Ok(Some(Self { own: list::read(path)?, found: Found::default() })),
            None => Ok(args.redact.then(Self::default)),
        }
    }

    pub(crate) const fn found(&self) -> &Found {
        &self.found
    }

    /// `text`, JSON or lines of it, without secrets.
    pub(crate) fn json(&mut self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        let mut writer = self.writer(&mut out);
        // Writing into memory does not fail.
        let _ = writer.write_all(text.as_bytes()).and_then(|()| writer.finish());
        String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// A writer of JSON into `out`, without secrets. End it with [`json::Writer::finish`].
    pub(crate) const fn writer<W: Write>(&mut self, out: W) -> json::Writer<'_, W> {
        json::Writer::new(self, out)
    }

    /// A text without secrets; `None` if it has none. `key` is the name that it stands under.
    pub(crate) fn value(&mut self, key: Option<&str>, text: &str) -> Option<String> {
        self.nested(key, text, 0)
    }

    fn nested(&mut self, key: Option<&str>, text: &str, depth: u8) -> Option<String> {
        if let Some(bytes) = opaque::of(key, text).filter(|_| !begins_with_secret(text)) {
            self.found.not_searched += 1;
            self.found.not_searched_bytes += bytes as u64;
            return None;
        }
        if depth < NESTING_MAX && is_json(text) {
            let mut out = Vec::with_capacity(text.len());
            let mut writer = json::Writer::within(self, &mut out, depth + 1);
            writer.write_all(text.as_bytes()).and_then(|()| writer.finish()).ok()?;
            return String::from_utf8(out).ok().filter(|new| new != text);
        }
        let new = self.text(text);
        let now = new.as_deref().unwrap_or(text);
        if key.is_some_and(|key| assignment::is_secret_under(key, now)) {
            self.count(assignment::KIND);
            return Some(marker(assignment::KIND));
        }
        new
    }

    /// A text without secrets, whatever it is; `None` if it has none.
    fn text(&mut self, text: &str) -> Option<String> {
        let mut now: Option<String> = None;
        // Each pass takes something out of what may be searched, so that there is a last one.
        while let Some(next) = self.pass(now.as_deref().unwrap_or(text)) {
            now = Some(next);
        }
        now
    }

    fn pass(&mut self, text: &str) -> Option<String> {
        let mut now: Option<String> = None;
        for rule in TABLE.iter() {
            let next = self.apply(rule, now.as_deref().unwrap_or(text));
            now = next.or(now);
        }
        for pattern in assignment::patterns() {
            let next =
                self.replace(assignment::KIND, pattern, now.as_deref().unwrap_or(text), |whole, found| {
                    assignment::is_secret(whole, found)
                });
            now = next.or(now);
        }
        for pattern in core::mem::take(&mut self.own) {
            let next = self.replace(LISTED, &pattern, now.as_deref().unwrap_or(text), |_, _| true);
            now = next.or(now);
            self.own.push(pattern);
        }
        now
    }

    fn apply(&mut self, rule: &Rule, text: &str) -> Option<String> {
        match rule.may_be_in(text) {
            true => self.replace(rule.kind, &rule.pattern, text, |_, found| {
                found.name(table::SECRET).is_some_and(|secret| (rule.accepts)(secret.as_str()))
            }),
            false => None,
        }
    }

    /// Puts the marker of `kind` in the place of what `pattern` finds and `accepts` takes; `None` if that is nothing.
    fn replace(
        &mut self,
        kind: &'static str,
        pattern: &Regex,
        text: &str,
        accepts: impl Fn(&str, &regex::Captures<'_>) -> bool,
    ) -> Option<String> {
        if !pattern.is_match(text) {
            return None;
        }
        let (mut out, mut written) = (String::new(), 0);
        for segment in segments(text) {
            let within = text.get(segment.clone()).unwrap_or_default();
            let mut from = 0;
            while from <= within.len() {
                let Some(found) = pattern.captures_at(within, from) else { break };
                let Some(whole) = found.get(0) else { break };
                let secret = found.name(table::SECRET).unwrap_or(whole);
                // A place between two characters is nothing that could be taken out.
                if !secret.is_empty() && accepts(within, &found) {
                    out += text.get(written..segment.start + secret.start()).unwrap_or_default();
                    out += &marker(kind);
                    written = segment.start + secret.end();
                    self.count(kind);
                    from = secret.end();
                } else {
                    // What is none may hide the beginning of one.
                    from = whole.start() + within.get(whole.start()..).map_or(1, first_bytes);
                }
            }
        }
        out += text.get(written..).unwrap_or_default();
        (written > 0).then_some(out)
    }

    fn count(&mut self, kind: &'static str) {
        *self.found.redacted.entry(kind).or_default() += 1;
    }
}

impl Found {
    /// Says on standard error what was found, and what was not searched.
    pub(crate) fn tell(&self) {
        let _ = write!(io::stderr().lock(), "{}", self.to_text());
    }

    /// Lets an interrupt say the same, of what was found until then.
    pub(crate) fn tell_on_interrupt(&self) {
        output::set_last_words(self.to_text());
    }

    fn to_text(&self) -> String {
        let kinds: Vec<_> =
            self.redacted.iter().map(|(kind, count)| format!("{} {kind}", grouped(*count))).collect();
        let mut text = match kinds.is_empty() {
            true => "epitome: nothing was redacted\n".to_owned(),
            false => format!("epitome: redacted {}\n", kinds.join(", ")),
        };
        if self.not_searched > 0 {
            // Writing into a text does not fail.
            let _ = writeln!(
                text,
                "epitome: not searched: {} that {} encrypted, signed or base64 ({})",
                counted(self.not_searched, "value"),
                if self.not_searched == 1 { "is" } else { "are" },
                counted(self.not_searched_bytes, "byte")
            );
        }
        text
    }
}

/// Texts in texts in texts: every level doubles the escapes, so that nothing real is deeper.
const NESTING_MAX: u8 = 8;

fn marker(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// What stands between the markers in `text`.
fn segments(text: &str) -> Vec<core::ops::Range<usize>> {
    let mut segments = Vec::new();
    let mut start = 0;
    for found in MARKER.iter().flat_map(|marker| marker.find_iter(text)) {
        segments.push(start..found.start());
        start = found.end();
    }
    segments.push(start..text.len());
    segments
}

/// The bytes of the first character.
fn first_bytes(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

fn is_json(text: &str) -> bool {
    let inner = text.trim_start();
    inner.starts_with(['{', '[', '"']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether a text that looks like base64 is a key: those of the table begin with a sign.
fn begins_with_secret(text: &str) -> bool {
    TABLE.iter().any(|rule| {
        let found = rule.pattern.captures(text).and_then(|found| found.name(table::SECRET));
        found.is_some_and(|secret| secret.start() == 0 && (rule.accepts)(secret.as_str()))
    })
}
