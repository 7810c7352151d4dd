//! Which messages of a list are sent, and which of them a person has written.

use std::collections::HashSet;
use std::sync::Arc;

use crate::message::Str;
use crate::wire::WireError;
use crate::wire::json::known::Members;
use crate::wire::json::{self, Kind};
use crate::wire::spec::Body;

/// Why `body` is a session of Cline, or a history of Cline or Roo Code, if it is one.
pub(crate) fn sign_of(body: &Body<'_>) -> Option<&'static str> {
    if ["sessionId", "updated_at", "version", "messages"].iter().all(|key| body.field(key).is_some()) {
        return Some("it has `sessionId`, `updated_at` and `version` beside `messages`");
    }
    let has_time = |message: &&str| {
        Kind::of(message) == Kind::Object
            && matches!(json::fields(message, &["role", "ts"]), Ok([Some(_), Some(_)]))
    };
    let sample = body.sample("messages")?;
    let is_one = sample.first().is_some_and(has_time) && sample.iter().any(|message| is_own(message));
    is_one.then_some("its messages have `ts`, and tags or marks of Cline or Roo Code")
}

fn is_own(message: &str) -> bool {
    let names = &["content", "condenseParent", "isSummary", "truncationParent", "isTruncationMarker"];
    let Ok([content, marks @ ..]) = json::fields(message, names) else { return false };
    let content = content.unwrap_or_default();
    marks.iter().any(Option::is_some) || SIGNS.iter().any(|sign| content.contains(sign))
}

/// What only these programs write, as it stands in JSON.
const SIGNS: [&str; 3] = ["<environment_details>", "\"<task>", "\"<user_message>"];

/// Which of the messages of a list are sent, and how many a compaction hides.
pub(super) struct Effective {
    hidden: Vec<bool>,
    /// The place of the summary or the marker that stands for the hidden ones.
    pub(super) stand_in: Option<usize>,
    /// Whether nothing before it is sent: it is a summary.
    pub(super) is_fresh_start: bool,
}

impl Effective {
    /// Of the messages `records`, as Roo Code chooses them.
    pub(super) fn of<'a>(
        whole: &Arc<str>,
        records: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WireError> {
        let mut marks = Vec::new();
        for record in records {
            marks.push(Marks::of(whole, record)?);
        }
        let summary = marks.iter().rposition(|mark| mark.is_summary);
        let begin = summary.unwrap_or(0);
        let sent = || marks.iter().skip(begin);
        let markers: HashSet<&Str> =
            sent().filter(|mark| mark.is_marker).map(|mark| &mark.truncation).collect();
        let summaries: HashSet<&Str> =
            sent().filter(|mark| mark.is_summary).map(|mark| &mark.condense).collect();
        let is_hidden = |(at, mark): (usize, &Marks)| {
            let is_truncated = markers.contains(&mark.truncation_parent);
            let is_condensed = summary.is_none() && summaries.contains(&mark.condense_parent);
            at < begin || (!mark.truncation_parent.is_empty() && is_truncated) || is_condensed
        };
        let hidden = marks.iter().enumerate().map(is_hidden).collect();
        let stand_in = summary.or_else(|| marks.iter().rposition(|mark| mark.is_marker));
        Ok(Self { hidden, stand_in, is_fresh_start: summary.is_some() })
    }

    pub(super) fn is_hidden(&self, at: usize) -> bool {
        self.hidden.get(at).copied().unwrap_or(false)
    }
}

/// How Roo Code marks a message.
#[derive(Debug, Default)]
struct Marks {
    is_summary: bool,
    condense: Str,
    condense_parent: Str,
    is_marker: bool,
    truncation: Str,
    truncation_parent: Str,
}

impl Marks {
    fn of(whole: &Arc<str>, record: &str) -> Result<Self, WireError> {
        if Kind::of(record) != Kind::Object {
            return Ok(Self::default());
        }
        let found = Members::of(record, &NAMES);
        Ok(Self {
            is_summary: found.get("isSummary")? == Some("true"),
            condense: found.text(whole, "condenseId")?,
            condense_parent: found.text(whole, "condenseParent")?,
            is_marker: found.get("isTruncationMarker")? == Some("true"),
            truncation: found.text(whole, "truncationId")?,
            truncation_parent: found.text(whole, "truncationParent")?,
        })
    }
}

const NAMES: [&str; 6] =
    ["isSummary", "condenseId", "condenseParent", "isTruncationMarker", "truncationId", "truncationParent"];
