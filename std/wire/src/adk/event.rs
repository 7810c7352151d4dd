//! The kind of an event, and the events that the model sees.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use epitome_core::Usage;
use epitome_message::Str;

use crate::expect::{expect_object, member_text};
use crate::json::{self, ValueKind};
use crate::{WireError, usage};

/// The members of an event that decide whether the model sees it.
#[derive(Debug, Default)]
pub(super) struct Head {
    invocation: Str,
    /// The time of the event, in nanoseconds.
    at: Option<u64>,
    /// The range of time that the event summarizes.
    pub(super) compacts: Option<(u64, u64)>,
    /// The invocation before which the event rewinds.
    rewinds: Option<Str>,
}

/// The value of the first of these keys, or else of the second, which is the older spelling.
fn either<'a>(object: &'a str, names: &[&'static str; 2]) -> Result<Option<&'a str>, WireError> {
    let [camel, snake] = json::fields(object, names)?;
    Ok(camel.or(snake).filter(|value| *value != "null"))
}

fn object(value: Option<&str>) -> Option<&str> {
    value.filter(|value| ValueKind::of(value) == ValueKind::Object)
}

impl Head {
    pub(super) fn of(whole: &Arc<str>, raw: &str) -> Result<Self, WireError> {
        expect_object(raw, "an event")?;
        let mut head = Self::default();
        for key in ["invocationId", "invocation_id"] {
            if let Some(invocation) = member_text(whole, raw, key)? {
                head.invocation = invocation;
            }
        }
        let [at, actions] = json::fields(raw, &["timestamp", "actions"])?;
        head.at = at.and_then(nanoseconds);
        let Some(actions) = object(actions) else { return Ok(head) };
        json::nested(raw, actions, "/actions", |actions| {
            for key in ["rewindBeforeInvocationId", "rewind_before_invocation_id"] {
                if let Some(invocation) = member_text(whole, actions, key)? {
                    head.rewinds = Some(invocation);
                }
            }
            if let Some(compaction) = object(json::field(actions, "compaction")?) {
                let from = either(compaction, &["startTimestamp", "start_timestamp"])?;
                let until = either(compaction, &["endTimestamp", "end_timestamp"])?;
                head.compacts = from.and_then(nanoseconds).zip(until.and_then(nanoseconds));
            }
            Ok(())
        })?;
        Ok(head)
    }
}

/// Converts written seconds to nanoseconds. Further digits are cut.
fn nanoseconds(raw: &str) -> Option<u64> {
    let (seconds, fraction) = raw.split_once('.').unwrap_or((raw, ""));
    let fraction = fraction.get(..fraction.len().min(9))?;
    let digits = format!("{fraction:0<9}");
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(digits.parse().ok()?)
}

/// The reason why the model sees an event or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Seen,
    /// In the range of a later compaction.
    Compacted,
    /// Taken out by a rewind, or the rewind itself.
    Rewound,
}

/// The fate of each event.
pub(super) fn fates(heads: &[Head]) -> Vec<Fate> {
    let mut first_of: HashMap<&str, usize> = HashMap::new();
    for (at, head) in heads.iter().enumerate().filter(|(_, head)| !head.invocation.is_empty()) {
        first_of.entry(&*head.invocation).or_insert(at);
    }
    let mut fates = vec![Fate::Seen; heads.len()];
    let (mut ranges, mut rewound) = (Ranges::default(), None);
    for (at, head) in heads.iter().enumerate().rev() {
        let Some(fate) = fates.get_mut(at) else { continue };
        if rewound.is_some_and(|first| at >= first) {
            *fate = Fate::Rewound;
            continue;
        }
        rewound = None;
        if let Some(invocation) = &head.rewinds {
            // A rewind to an unknown invocation removes nothing.
            rewound = first_of.get(&**invocation).copied().filter(|first| *first < at);
            *fate = Fate::Rewound;
            continue;
        }
        let covered = match (head.compacts, head.at) {
            (Some(range), _) => ranges.cover(range),
            (None, Some(at)) => ranges.cover((at, at)),
            (None, None) => false,
        };
        if covered {
            *fate = Fate::Compacted;
        } else if let Some(range) = head.compacts {
            ranges.add(range);
        }
    }
    fates
}

/// Ranges of time that do not touch each other: the end of each by its beginning.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn add(&mut self, (mut from, mut until): (u64, u64)) {
        while let Some((first, last)) =
            self.0.range(..=until).next_back().map(|(first, last)| (*first, *last))
            && last >= from
        {
            self.0.remove(&first);
            (from, until) = (from.min(first), until.max(last));
        }
        self.0.insert(from, until);
    }

    /// Whether one of the ranges covers this range.
    fn cover(&self, (from, until): (u64, u64)) -> bool {
        self.0.range(..=from).next_back().is_some_and(|(_, last)| *last >= until)
    }
}

/// The content of an event that the model sees, and its path; none if it sees none.
pub(super) fn content(raw: &str) -> Result<Option<(&'static str, &str)>, WireError> {
    expect_object(raw, "an event")?;
    let [content, actions, partial] = json::fields(raw, &["content", "actions", "partial"])?;
    let compaction = match object(actions) {
        Some(actions) => object(json::field(actions, "compaction")?),
        None => None,
    };
    if let Some(compaction) = compaction {
        let content = object(either(compaction, &["compactedContent", "compacted_content"])?);
        return Ok(content.map(|content| ("/actions/compaction/compacted_content", content)));
    }
    let Some(content) = object(content).filter(|_| partial != Some("true")) else { return Ok(None) };
    let [role, parts] = json::fields(content, &["role", "parts"])?;
    let is_list = parts.is_some_and(|parts| ValueKind::of(parts) == ValueKind::Array);
    if role.is_none_or(|role| matches!(role, "null" | "\"\"")) || !is_list || !is_said(parts.unwrap_or("[]"))?
    {
        return Ok(None);
    }
    Ok(Some(("/content", content)))
}

/// Whether there are parts, the first one is not empty, and none is a question of ADK itself.
fn is_said(parts: &str) -> Result<bool, WireError> {
    let (mut count, mut said) = (0_usize, true);
    json::items(parts, |part| {
        count = count.saturating_add(1);
        if ValueKind::of(part) != ValueKind::Object {
            return Ok(());
        }
        let names = &["text", "functionCall", "function_call", "functionResponse", "function_response"];
        let [text, bodies @ ..] = json::fields(part, names)?;
        said &= count > 1 || text != Some("\"\"");
        for body in bodies.into_iter().filter_map(object) {
            let name = json::field(body, "name")?.unwrap_or_default();
            said &= !matches!(name, "\"adk_request_credential\"" | "\"adk_request_confirmation\"");
        }
        Ok(())
    })?;
    Ok(said && count > 0)
}

/// The usage that the provider reported with an event.
pub(super) fn reported(raw: &str) -> Result<Option<Usage>, WireError> {
    let report = object(either(raw, &["usageMetadata", "usage_metadata"])?);
    // An unreadable report is ignored: the messages are more important.
    Ok(report.and_then(|report| usage::of(report).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_compared_as_they_are_written() {
        assert_eq!(nanoseconds("1734292270.899412"), Some(1_734_292_270_899_412_000));
        assert_eq!(nanoseconds("3"), Some(3_000_000_000));
        assert_eq!(nanoseconds("1.0000000009"), Some(1_000_000_000));
        assert_eq!([nanoseconds("1e9"), nanoseconds("-1.0"), nanoseconds("\"1\"")], [None; 3]);
    }

    #[test]
    fn ranges_grow_together() {
        let mut ranges = Ranges::default();
        [(10, 12), (1, 3), (3, 5), (20, 22), (11, 20)].into_iter().for_each(|range| ranges.add(range));
        assert_eq!(ranges.0.into_iter().collect::<Vec<_>>(), [(1, 5), (10, 22)]);
    }
}
