//! Takes keys, tokens and passwords out of exported texts.
//!
//! Each secret becomes `[redacted:KIND]`, always the same for the same text. Only texts change. In JSON these are the
//! string literals with secrets: all other bytes, the structure and the validity stay the same. A text that is itself
//! JSON, for example the arguments of a call, is searched in the same way inside.
//!
//! Redaction is idempotent: the markers of an earlier pass are not searched, and passes are repeated until one finds
//! nothing. Invisible characters are left out of the search, and are taken out with the secret that contains them.
//!
//! Some secrets cannot be found: those that look like any word and have no name of a secret beside them, those that a
//! line break or the end of a JSON text cuts in two, and those in numbers. A value that cannot be searched, because it
//! is encrypted or an image, is counted and reported to the user.
//!
//! This module does not depend on the program: a fuzz target compiles it alone.

#[cfg(test)]
mod alarms;
mod context;
#[cfg(test)]
mod corpus;
mod json;
mod opaque;
mod plain;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod words;

use core::ops::Range;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use json::Literals;
use plain::Plain;
use scan::Secret;

/// Takes secrets out of texts, and counts them.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    own: Vec<Regex>,
    found: Found,
    /// Number of bytes that the rules could read: a measure of their time.
    work: u64,
}

/// The secrets that were found, and the values that could not be searched.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Found {
    /// Number of secrets of each kind.
    pub(crate) redacted: BTreeMap<&'static str, u64>,
    /// Values that are base64, encrypted or signed.
    pub(crate) not_searched: u64,
    /// Bytes of these values.
    pub(crate) not_searched_bytes: u64,
}

/// Kind of the secrets in the user's own list.
const LISTED: &str = "listed";

/// Marker in the place of a secret: nothing in it is searched again.
static MARKER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let mut kinds: Vec<&str> = table::ROWS.iter().chain(context::ROWS).map(|row| row.kind).collect();
    kinds.push(LISTED);
    Regex::new(&format!(r"\[redacted:(?:{})\]", kinds.join("|"))).ok()
});

impl Redactor {
    /// A redactor that also takes out the matches of these patterns.
    pub(crate) fn with_own(own: Vec<Regex>) -> Self {
        Self { own, ..Self::default() }
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

    /// A text without secrets; `None` if it has none. `key` is the name of the value.
    pub(crate) fn value(&mut self, key: Option<&str>, text: &str) -> Option<String> {
        self.nested(key, text, 0)
    }

    fn nested(&mut self, key: Option<&str>, text: &str, depth: u8) -> Option<String> {
        if let Some(bytes) = opaque::of(key, text).filter(|_| !table::KEYS.begins(text)) {
            self.found.not_searched += 1;
            self.found.not_searched_bytes += bytes as u64;
            return None;
        }
        if depth < NESTING_MAX && is_json(text) {
            return self.inner(text, depth, Literals::Rewritten);
        }
        let new = self.text(text);
        let now = new.as_deref().unwrap_or(text);
        if key.is_some_and(|key| context::is_secret_under(key, now)) {
            self.count(context::ASSIGNMENT);
            return Some(marker(context::ASSIGNMENT));
        }
        let new = new?;
        // A secret may have contained a character that JSON forbids: only now can the names of values be read.
        let is_json = depth < NESTING_MAX && is_json(&new);
        Some(is_json.then(|| self.inner(&new, depth, Literals::Replaced)).flatten().unwrap_or(new))
    }

    /// JSON in a text without secrets; `None` if it has none.
    fn inner(&mut self, text: &str, depth: u8, literals: Literals) -> Option<String> {
        let mut out = Vec::with_capacity(text.len());
        let mut writer = json::Writer::within(self, &mut out, depth + 1, literals);
        writer.write_all(text.as_bytes()).and_then(|()| writer.finish()).ok()?;
        String::from_utf8(out).ok().filter(|new| new != text)
    }

    /// A text of any form without secrets; `None` if it has none.
    fn text(&mut self, text: &str) -> Option<String> {
        let mut now: Option<String> = None;
        for _ in 0..PASSES_MAX {
            let Some(next) = self.pass(now.as_deref().unwrap_or(text)) else { break };
            now = Some(next);
        }
        now
    }

    /// Puts markers in the place of all matches of the rules, outside of existing markers; `None` if there is no match.
    fn pass(&mut self, text: &str) -> Option<String> {
        let plain = Plain::new(text);
        let mut secrets = Vec::new();
        let mut gaps = segments(plain.text());
        for rules in [&*table::KEYS, &*context::CONTEXTS] {
            gaps = without(gaps, &mut secrets, |gap| rules.search(&plain, gap, &mut self.work));
        }
        for pattern in &self.own {
            gaps = without(gaps, &mut secrets, |gap| listed(pattern, plain.text(), gap));
        }
        secrets.sort_by_key(|(place, _)| place.start);
        let (mut out, mut written) = (String::new(), 0);
        for (place, kind) in &secrets {
            let place = plain.original(place);
            out += text.get(written..place.start).unwrap_or_default();
            out += &marker(kind);
            written = place.end;
            self.count(kind);
        }
        out += text.get(written..).unwrap_or_default();
        (!secrets.is_empty()).then_some(out)
    }

    fn count(&mut self, kind: &'static str) {
        *self.found.redacted.entry(kind).or_default() += 1;
    }
}

/// Maximum depth of texts within texts: every level doubles the escapes, so that no real text is deeper.
const NESTING_MAX: u8 = 8;

/// Maximum number of passes: one pass may expose secrets to the next. The rules of this program need two; more are for
/// the rules of the user.
const PASSES_MAX: u8 = 8;

fn marker(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// The parts of `text` between the markers.
fn segments(text: &str) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let mut start = 0;
    for found in MARKER.iter().flat_map(|marker| marker.find_iter(text)) {
        segments.push(start..found.start());
        start = found.end();
    }
    segments.push(start..text.len());
    segments
}

/// The parts of `gaps` outside of the secrets that `search` finds in them.
fn without(
    gaps: Vec<Range<usize>>,
    secrets: &mut Vec<Secret>,
    mut search: impl FnMut(Range<usize>) -> Vec<Secret>,
) -> Vec<Range<usize>> {
    let mut left = Vec::new();
    for gap in gaps {
        let mut start = gap.start;
        for (place, kind) in search(gap.clone()) {
            left.push(start..place.start);
            start = place.end;
            secrets.push((place, kind));
        }
        left.push(start..gap.end);
    }
    left.retain(|gap| !gap.is_empty());
    left
}

/// Matches of the user's `pattern` in the part `within` of `text`. An empty match cannot be taken out.
fn listed(pattern: &Regex, text: &str, within: Range<usize>) -> Vec<Secret> {
    let part = text.get(within.clone()).unwrap_or_default();
    let found = pattern.find_iter(part).filter(|found| !found.is_empty());
    found.map(|found| (within.start + found.start()..within.start + found.end(), LISTED)).collect()
}

fn is_json(text: &str) -> bool {
    let inner = text.trim_start();
    inner.starts_with(['{', '[', '"']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
