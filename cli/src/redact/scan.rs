//! The search for secrets by rules. Its cost is linear to the length of the text, for any text.
//!
//! One search finds the signs of all rules. At a sign, a rule reads forward no further than a window. Only a secret is
//! read beyond the window, and a secret is read once.

use core::ops::Range;
use std::collections::BTreeMap;

use regex::Regex;

use super::plain::Plain;

/// One row of a table of rules.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) kind: &'static str,
    /// The signs of the rule: each secret has one of them, and the pattern is tried there.
    pub(super) signs: &'static [&'static str],
    /// Number of bytes from the beginning of the pattern to its sign.
    pub(super) back: usize,
    /// The group `secret` of the pattern is the secret; without that group, the whole match is.
    pub(super) pattern: &'static str,
    pub(super) accepts: fn(&Hit<'_>) -> bool,
}

/// A match of a pattern, and the text around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit<'t> {
    /// The text before the match, at most [`BEFORE_BYTES`].
    pub(super) before: &'t str,
    /// The match up to the secret.
    pub(super) lead: &'t str,
    pub(super) secret: &'t str,
    /// The text after the secret; empty if invisible characters follow.
    pub(super) after: &'t str,
}

/// The rules of a table, ready for searching.
#[derive(Debug)]
pub(super) struct Rules {
    finder: Option<Regex>,
    /// Each sign, and its rules as the bits of a number.
    signs: Vec<(&'static str, u128)>,
    rules: Vec<Rule>,
    is_bounded: bool,
    window_bytes: usize,
}

#[derive(Debug)]
struct Rule {
    row: &'static Row,
    pattern: Regex,
}

/// A secret: its place and its kind.
pub(super) type Secret = (Range<usize>, &'static str);

impl Rules {
    /// Prepares the rules of a table. `is_bounded` is for keys: they begin at the beginning of a word, and their signs
    /// have one case. Other rules check the text before the match.
    pub(super) fn new(rows: &'static [Row], is_bounded: bool) -> Self {
        let rules = rows.iter().filter_map(|row| {
            let pattern = Regex::new(&format!(r"\A(?:{})", row.pattern)).ok()?;
            Some(Rule { row, pattern })
        });
        let rules: Vec<Rule> = rules.collect();
        let mut signs = BTreeMap::new();
        for (rule, bit) in rules.iter().zip((0..u128::BITS).map(|bit| 1_u128 << bit)) {
            rule.row.signs.iter().for_each(|sign| *signs.entry(*sign).or_default() |= bit);
        }
        let (case, window_bytes) = if is_bounded { ("-u", KEY_BYTES_MAX) } else { ("i-u", VALUE_BYTES_MAX) };
        let escaped: Vec<String> = signs.keys().map(|sign| regex::escape(sign)).collect();
        Self {
            finder: Regex::new(&format!("(?{case}:{})", escaped.join("|"))).ok(),
            signs: signs.into_iter().collect(),
            rules,
            is_bounded,
            window_bytes,
        }
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.rules.len()
    }

    /// The secrets in the part `within` of a text, in order. `work` grows by the number of bytes that could be read.
    pub(super) fn search(&self, plain: &Plain<'_>, within: Range<usize>, work: &mut u64) -> Vec<Secret> {
        let text = plain.text().get(..within.end).unwrap_or_default();
        let (mut secrets, mut begin, mut at) = (Vec::new(), within.start, within.start);
        while let Some(sign) = self.finder.as_ref().and_then(|finder| finder.find_at(text, at)) {
            *work += (sign.end() - at) as u64;
            match self.secret(plain, begin..within.end, sign.start(), work) {
                Some(secret) => {
                    begin = secret.0.end;
                    at = begin;
                    secrets.push(secret);
                }
                // Signs are ASCII.
                None => at = sign.start() + 1,
            }
        }
        *work += text.len().saturating_sub(at) as u64;
        secrets
    }

    /// Whether `text` begins with a secret.
    pub(super) fn begins(&self, text: &str) -> bool {
        let secret = self.secret(&Plain::visible(text), 0..text.len(), 0, &mut 0);
        secret.is_some_and(|(place, _)| place.start == 0)
    }

    /// The secret whose sign is at `sign`.
    fn secret(&self, plain: &Plain<'_>, within: Range<usize>, sign: usize, work: &mut u64) -> Option<Secret> {
        let text = plain.text().get(..within.end)?;
        let rest = text.get(sign..)?;
        let has = |sign: &str| match self.is_bounded {
            true => rest.starts_with(sign),
            false => rest.get(..sign.len()).is_some_and(|start| start.eq_ignore_ascii_case(sign)),
        };
        let bits = self.signs.iter().filter(|(sign, _)| has(sign)).fold(0, |bits, (_, more)| bits | more);
        let mut rules = self.rules.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
        rules.find_map(|(_, rule)| {
            let start = sign.checked_sub(rule.row.back).filter(|start| *start >= within.start)?;
            let before =
                text.get(floor(text, start.saturating_sub(BEFORE_BYTES).max(within.start))..start)?;
            if self.is_bounded && !plain.is_seam(start) && !ends_word(before) {
                return None;
            }
            let place = rule.place(text, start, self.window_bytes, work)?;
            let hit = Hit {
                before,
                lead: text.get(start..place.start)?,
                secret: text.get(place.clone())?,
                after: if plain.is_seam(place.end) { "" } else { text.get(place.end..)? },
            };
            if !(rule.row.accepts)(&hit) {
                return None;
            }
            // The text of a secret is taken out, and so is read only once.
            let end = self.whole(plain, text, place.end, floor(text, start + self.window_bytes));
            *work += (end - place.end) as u64;
            Some((place.start..end, rule.row.kind))
        })
    }

    /// End of the secret that a pattern has read up to `end`: the secret may be longer than the match.
    fn whole(&self, plain: &Plain<'_>, text: &str, end: usize, window: usize) -> usize {
        let rest = text.get(end..).unwrap_or_default();
        let more: fn(char) -> bool = match (end >= window, self.is_bounded) {
            (true, _) => |one| !one.is_whitespace() && !matches!(one, '"' | '\'' | '`' | '<' | '\\'),
            (false, true) if !plain.is_seam(end) => |one| one.is_ascii_alphanumeric(),
            _ => return end,
        };
        end + rest.find(|one| !more(one)).unwrap_or(rest.len())
    }
}

impl Rule {
    /// The place of the secret that the pattern finds at `start`.
    fn place(&self, text: &str, start: usize, window_bytes: usize, work: &mut u64) -> Option<Range<usize>> {
        let rest = text.get(start..)?;
        let is_open = self.row.pattern.ends_with(OPEN);
        let window = if is_open { rest } else { rest.get(..floor(rest, window_bytes))? };
        let found = self.pattern.find(window);
        // An open pattern that matches takes out all that it has read.
        *work += found.filter(|_| is_open).map_or_else(|| window.len().min(window_bytes), |found| found.len())
            as u64;
        let found = found?;
        let secret = match self.pattern.captures_len() {
            1 => found,
            _ => self.pattern.captures(window.get(..found.end())?)?.name("secret")?,
        };
        Some(start + secret.start()..start + secret.end())
    }
}

/// Number of bytes that the rule of a key reads: a token in three parts may be long.
const KEY_BYTES_MAX: usize = 4_096;
/// Number of bytes that another rule reads.
const VALUE_BYTES_MAX: usize = 512;
/// Number of bytes of the text before itself that a rule sees.
const BEFORE_BYTES: usize = 512;
/// The end of an open pattern, which matches up to the end of the text in any case.
const OPEN: &str = r"|\z)";

/// Whether a word ends after `before`. In a text within a text, a line break is a letter after a backslash. In an
/// address, a character may be two digits after a percent sign.
fn ends_word(before: &str) -> bool {
    match before.as_bytes() {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., b'%', high, low] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        [.., b'\\', b'u', b'0', b'0', _, low] => low.is_ascii_hexdigit(),
        [.., last] => !last.is_ascii_alphanumeric(),
        [] => true,
    }
}

/// The end of the last character of `text` that ends at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}
