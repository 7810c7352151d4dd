//! Finds the messages of a list that are sent, and recognises the format.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_message::Str;

use crate::WireError;
use crate::body::Body;
use crate::json::known::Members;
use crate::json::{self, ValueKind};

/// The reason why `body` is a session of Cline, or a history of Cline or Roo Code, if it is one.
pub(crate) fn sign_of(body: &Body<'_>) -> Option<&'static str> {
    let sample = body.sample("messages")?;
    let [Some(_), time, ..] = sample.first().copied().and_then(fields)? else { return None };
    let mut fields = sample.iter().copied().filter_map(fields);
    if fields.any(|[.., calls, answers]| calls.is_some() || answers.is_some()) {
        return None;
    }
    let has_keys = ["sessionId", "updated_at", "version"].iter().all(|key| body.field(key).is_some());
    if has_keys && time.is_some() {
        return Some("it has `sessionId`, `updated_at` and `version` beside `messages` with `ts`");
    }
    if time.is_some() && sample.iter().any(|message| is_own(message)) {
        return Some("its messages have `ts`, and tags or marks of Cline or Roo Code");
    }
    // Earlier versions of Cline wrote no times.
    let is_task = |message: &&str| {
        message.contains(SIGNS[0]) && SIGNS.iter().skip(1).any(|sign| message.contains(sign))
    };
    sample
        .first()
        .is_some_and(is_task)
        .then_some("its first message has a `<task>` and `<environment_details>`")
}

/// Role and time, and the calls and the answered call of Chat Completions.
fn fields(message: &str) -> Option<[Option<&str>; 4]> {
    let is_object = ValueKind::of(message) == ValueKind::Object;
    is_object.then(|| json::fields(message, &["role", "ts", "tool_calls", "tool_call_id"]).ok()).flatten()
}

fn is_own(message: &str) -> bool {
    let names = &["content", "condenseParent", "isSummary", "truncationParent", "isTruncationMarker"];
    let Ok([content, marks @ ..]) = json::fields(message, names) else { return false };
    let content = content.unwrap_or_default();
    marks.iter().any(Option::is_some) || SIGNS.iter().any(|sign| content.contains(sign))
}

/// Signs that only these programs write, in their JSON form.
const SIGNS: [&str; 3] = ["<environment_details>", "\"<task>", "\"<user_message>"];

/// The messages of a list that are sent.
pub(super) struct Effective {
    /// For each message, the message that hides it, if there is one.
    hidden_by: Vec<Option<usize>>,
    /// The summary with which the conversation begins.
    pub(super) summary: Option<usize>,
}

impl Effective {
    /// The effective history of the messages `records`, by the rules of Roo Code: from the last summary on, without
    /// messages that a truncation marker hides.
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
        let sent = marks.iter().enumerate().skip(begin);
        let markers: HashMap<&Str, usize> =
            sent.filter(|(_, mark)| mark.is_marker).map(|(at, mark)| (&mark.truncation, at)).collect();
        let hidden_by = |(at, mark): (usize, &Marks)| match at < begin {
            true => summary,
            false if mark.truncation_parent.is_empty() => None,
            false => markers.get(&mark.truncation_parent).copied(),
        };
        Ok(Self { hidden_by: marks.iter().enumerate().map(hidden_by).collect(), summary })
    }

    /// The message that hides this one.
    pub(super) fn hidden_by(&self, at: usize) -> Option<usize> {
        self.hidden_by.get(at).copied().flatten()
    }
}

/// The marks of Roo Code on a message.
#[derive(Debug, Default)]
struct Marks {
    is_summary: bool,
    is_marker: bool,
    truncation: Str,
    truncation_parent: Str,
}

impl Marks {
    fn of(whole: &Arc<str>, record: &str) -> Result<Self, WireError> {
        if ValueKind::of(record) != ValueKind::Object {
            return Ok(Self::default());
        }
        let found = Members::of(record, &NAMES);
        Ok(Self {
            is_summary: found.get("isSummary")? == Some("true"),
            is_marker: found.get("isTruncationMarker")? == Some("true"),
            truncation: found.text(whole, "truncationId")?,
            truncation_parent: found.text(whole, "truncationParent")?,
        })
    }
}

const NAMES: [&str; 4] = ["isSummary", "isTruncationMarker", "truncationId", "truncationParent"];
