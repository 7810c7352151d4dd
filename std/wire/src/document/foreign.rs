//! Messages with a `role` that only look like messages of Chat Completions.

use super::lines::lines;
use crate::WireError;
use crate::json::{self, ValueKind};

/// The form of a message that is not a message of Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign {
    Converse,
    OpenTelemetry,
    AiSdk,
    Cursor,
    /// Gemini's form, in a text that Gemini does not define: one message per line.
    Parts,
    /// A `text` in the place of `content`.
    TextAlone,
    /// A block of content without a type.
    Untyped,
}

impl Foreign {
    /// The form of `message`, if it is one of these.
    pub(crate) fn of(message: &str) -> Option<Self> {
        if ValueKind::of(message) != ValueKind::Object {
            return None;
        }
        let names =
            &["role", "content", "parts", "message", "text", "tool_calls", "tool_call_id", "toolInvocations"];
        let Ok([Some(_), content, parts, said, text, calls, answers, invocations]) =
            json::fields(message, names)
        else {
            return None;
        };
        if calls.is_some() || answers.is_some() {
            return None;
        }
        if invocations.is_some_and(|list| ValueKind::of(list) == ValueKind::Array) {
            return Some(Self::AiSdk);
        }
        let nothing = content.is_none();
        let is = |value: Option<&str>, kind| value.is_some_and(|value| ValueKind::of(value) == kind);
        content.and_then(of_content).or_else(|| parts.and_then(|parts| of_parts(parts, nothing))).or_else(
            || match () {
                () if nothing && said.and_then(|said| member(said, "content")).is_some() => {
                    Some(Self::Cursor)
                }
                () if nothing && is(text, ValueKind::Text) => Some(Self::TextAlone),
                () => None,
            },
        )
    }

    /// Whether some of these messages have this form, and none has the calls or the results of Chat Completions.
    pub(crate) fn is_of(self, sample: &[&str]) -> bool {
        let is_chat = |message: &&&str| {
            let found = json::fields(message, &["tool_calls", "tool_call_id"]);
            matches!(found, Ok([calls, answers]) if calls.is_some() || answers.is_some())
        };
        let is_object = |message: &&&str| ValueKind::of(message) == ValueKind::Object;
        sample.iter().any(|message| Self::of(message) == Some(self))
            && !sample.iter().filter(is_object).any(|message| is_chat(&message))
    }

    /// The error for a message that no format reads.
    fn error(self) -> Option<WireError> {
        let words = match self {
            Self::Converse | Self::OpenTelemetry | Self::AiSdk | Self::Cursor => return None,
            Self::Parts => "this has `parts` in the place of `content`",
            Self::TextAlone => "this has `text` in the place of `content`",
            Self::Untyped => "this has a block of content without a `type`",
        };
        let remedy = "convert it to a format that is, such as Chat Completions";
        Some(WireError::shape(format!("{words}, which is not read: {remedy}")))
    }
}

/// The error for the first message of `value` in a form that no format reads. `value` is a list of messages, or an
/// object with a list under `messages`. Path and offset are within `value`.
pub(crate) fn foreign_in_value(value: &str) -> Option<WireError> {
    let (list, path) = match ValueKind::of(value) {
        ValueKind::Object => (member(value, super::conversation::MESSAGES)?, "/messages"),
        _ => (value, ""),
    };
    if ValueKind::of(list) != ValueKind::Array {
        return None;
    }
    let (mut at, mut found) = (0_usize, None);
    let _ = json::items(list, |message| {
        if found.is_none() {
            let place = || (format!("{path}/{at}"), json::offset_of(value, message));
            found = Foreign::of(message).and_then(Foreign::error).map(|error| (error, place()));
        }
        at = at.saturating_add(1);
        Ok(())
    });
    found.map(|(error, (path, offset))| error.inside(path, offset))
}

/// Works like [`foreign_in_value`], for one message per line.
pub(crate) fn foreign_in_lines(text: &str) -> Option<WireError> {
    lines(text).find_map(|line| Some(Foreign::of(line.text())?.error()?.inside("", line.offset())))
}

/// The foreign format of a list of blocks under `content`.
fn of_content(content: &str) -> Option<Foreign> {
    let mut found = None;
    each_block(content, |block, kind| {
        found = found.or(match kind {
            Some("\"tool-call\"" | "\"tool-result\"") => Some(Foreign::AiSdk),
            Some("\"file\"") if member(block, "mediaType").is_some() => Some(Foreign::AiSdk),
            Some("\"image\"") if ["image", "mediaType"].iter().all(|key| member(block, key).is_some()) => {
                Some(Foreign::AiSdk)
            }
            Some("\"reasoning\"") if member(block, "text").is_some() => Some(Foreign::AiSdk),
            Some(_) => None,
            None if CONVERSE.iter().any(|key| member(block, key).is_some()) => Some(Foreign::Converse),
            None => Some(Foreign::Untyped),
        });
    });
    found
}

/// The foreign format of a list under `parts`, alone or in addition to a `content`.
fn of_parts(parts: &str, is_alone: bool) -> Option<Foreign> {
    let mut found = None;
    each_block(parts, |block, kind| {
        let kind = kind.map(|kind| kind.trim_matches('"'));
        let has = |key| member(block, key).is_some();
        found = found.or(match kind {
            Some("step-start" | "dynamic-tool") => Some(Foreign::AiSdk),
            Some(kind) if kind.starts_with("tool-") => Some(Foreign::AiSdk),
            _ if !is_alone => None,
            Some("tool_call" | "tool_call_response") => Some(Foreign::OpenTelemetry),
            Some(_) if has("content") => Some(Foreign::OpenTelemetry),
            Some(_) if has("text") => Some(Foreign::AiSdk),
            _ => None,
        });
    });
    found.or_else(|| Some(Foreign::Parts).filter(|_| is_alone))
}

/// Calls `visit` with each object of the array `list` and its type as JSON.
fn each_block<'a>(list: &'a str, mut visit: impl FnMut(&'a str, Option<&'a str>)) {
    if ValueKind::of(list) == ValueKind::Array {
        let _ = json::items(list, |block| {
            if ValueKind::of(block) == ValueKind::Object {
                visit(block, json::field(block, "type")?);
            }
            Ok(())
        });
    }
}

fn member<'a>(text: &'a str, key: &'static str) -> Option<&'a str> {
    if ValueKind::of(text) == ValueKind::Object { json::field(text, key).ok().flatten() } else { None }
}

/// The members of a block of Converse, which has one of them.
const CONVERSE: &[&str] =
    &["text", "toolUse", "toolResult", "reasoningContent", "image", "document", "cachePoint"];
