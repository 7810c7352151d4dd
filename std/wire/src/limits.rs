//! What the service of a provider refuses in the fields of a message, whatever the order of the messages.
//!
//! ```
//! use epitome_core::Profile;
//! use epitome_core::message::Role;
//! use epitome_message::{Message, Part, ToolCall};
//! use epitome_wire::{FieldValidator, FieldViolationKind};
//!
//! let call = Part::ToolCall(ToolCall::new("functions.read:0", "read", "{}"));
//! let mut validator = FieldValidator::new(Profile::Anthropic);
//! let mut found = Vec::new();
//! validator.push(&Message::user("Read it."), &mut |violation| found.push(violation));
//! validator.push(&Message::new(Role::Assistant, vec![call]), &mut |violation| found.push(violation));
//! assert_eq!((found[0].position, found[0].kind), (1, FieldViolationKind::CallId));
//! ```

use core::fmt;
use std::collections::HashSet;

use epitome_core::Profile;
use epitome_core::message::{CallKind, MessageView, PartView};
use serde::Serialize;

/// A field that the service of a provider refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct FieldViolation {
    /// The position of the message, from 0.
    pub position: u32,
    /// The kind of the field.
    pub kind: FieldViolationKind,
}

/// Kinds of refused fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FieldViolationKind {
    /// The id of a call is too long, or has characters that are refused.
    CallId,
    /// Another call has the same id.
    RepeatedCallId,
    /// The name of a tool is too long, or has characters that are refused.
    ToolName,
    /// A text is empty or white space alone.
    BlankText,
}

impl FieldViolationKind {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallId => "call_id",
            Self::RepeatedCallId => "repeated_call_id",
            Self::ToolName => "tool_name",
            Self::BlankText => "blank_text",
        }
    }

    const fn explanation(self) -> &'static str {
        match self {
            Self::CallId => "the id of a tool call is too long, or has a character that is refused",
            Self::RepeatedCallId => "two tool calls with one id",
            Self::ToolName => "the name of a tool is too long, or has a character that is refused",
            Self::BlankText => "a text without any character but white space",
        }
    }
}

impl fmt::Display for FieldViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: {} ({})", self.position, self.kind.explanation(), self.kind.as_str())
    }
}

/// The calls among which an id is used once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unique {
    Request,
    Message,
    Nowhere,
}

/// The limits of a provider, by what its service says when it refuses a request. Where no refusal is known, everything is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldLimits {
    /// Maximum number of characters in the id of a call.
    id_chars_max: usize,
    /// Whether an id has letters and digits of ASCII, `_` and `-` alone.
    has_plain_ids: bool,
    ids: Unique,
    /// Maximum number of characters in the name of a tool: letters and digits of ASCII, `_` and `-`. None: any name is taken.
    name_chars_max: Option<usize>,
    takes_blank: bool,
}

impl FieldLimits {
    /// No limit.
    pub(crate) const NONE: Self = Self {
        id_chars_max: usize::MAX,
        has_plain_ids: false,
        ids: Unique::Nowhere,
        name_chars_max: None,
        takes_blank: true,
    };

    pub(crate) const fn of(profile: Profile) -> Self {
        let any = Self::NONE;
        match profile {
            // `messages[..].tool_calls[..].id`: "string too long. Expected a string with maximum length 40"; `function.name`: "string does not
            // match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'", "maximum length 64"; "Duplicate value for
            // 'tool_call_id'".
            Profile::OpenaiChat => {
                Self { id_chars_max: 40, ids: Unique::Message, name_chars_max: Some(64), ..any }
            }
            // The published schema of `call_id` and of the name of a function.
            Profile::OpenaiResponses => {
                Self { id_chars_max: 64, ids: Unique::Message, name_chars_max: Some(128), ..any }
            }
            // "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"; "`tool_use` ids must be unique"; "text content blocks must contain
            // non-whitespace text"; names: '^[a-zA-Z0-9_-]{1,128}$'.
            Profile::Anthropic => Self {
                has_plain_ids: true,
                ids: Unique::Request,
                name_chars_max: Some(128),
                takes_blank: false,
                ..any
            },
            _ => any,
        }
    }

    /// Whether the id of a call is taken.
    pub(crate) fn takes_id(&self, id: &str) -> bool {
        !id.is_empty() && has_at_most(id, self.id_chars_max) && (!self.has_plain_ids || is_plain(id))
    }

    /// Whether the name of a tool is taken.
    pub(crate) fn takes_name(&self, name: &str) -> bool {
        self.name_chars_max.is_none_or(|most| !name.is_empty() && has_at_most(name, most) && is_plain(name))
    }

    /// The name that a tool has instead of `name`, which is not taken.
    pub(crate) fn name_instead(&self, name: &str) -> String {
        let most = self.name_chars_max.unwrap_or(usize::MAX);
        let taken = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        let name: String = name.chars().map(taken).take(most).collect();
        if name.is_empty() { "_".to_owned() } else { name }
    }

    /// Whether a text is taken.
    pub(crate) fn takes_text(&self, text: &str) -> bool {
        self.takes_blank || !text.trim().is_empty()
    }
}

fn has_at_most(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max || text.chars().count() <= chars_max
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Looks for fields that the service of a provider refuses, message by message. It holds the ids of calls where they are unique
/// in a request. A call without an id passes: not every format has ids, and [`convert`](super::convert()) gives one to each call.
#[derive(Debug)]
pub struct FieldValidator {
    limits: FieldLimits,
    position: u32,
    ids: HashSet<String>,
}

impl FieldValidator {
    /// A validator by the limits of a profile, before the first message.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self { limits: FieldLimits::of(profile), position: 0, ids: HashSet::new() }
    }

    /// Looks at the next message; each kind of violation is reported once for it.
    pub fn push(&mut self, message: &(impl MessageView + ?Sized), found: &mut dyn FnMut(FieldViolation)) {
        let Self { limits, position, ids } = self;
        if limits.ids == Unique::Message {
            ids.clear();
        }
        let mut kinds = Vec::new();
        message.for_each_part(&mut |part| {
            let mut report = |kind| {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            };
            match part {
                PartView::Text(text) if !limits.takes_text(text) => report(FieldViolationKind::BlankText),
                // The provider itself has made the fields of a call that it ran.
                PartView::ToolCall(call) if call.kind != CallKind::Hosted => {
                    let has_id = !call.id.is_empty();
                    if has_id && !limits.takes_id(call.id) {
                        report(FieldViolationKind::CallId);
                    } else if has_id && limits.ids != Unique::Nowhere && !ids.insert(call.id.to_owned()) {
                        report(FieldViolationKind::RepeatedCallId);
                    }
                    if !limits.takes_name(call.name) {
                        report(FieldViolationKind::ToolName);
                    }
                }
                _ => {}
            }
        });
        for kind in kinds {
            found(FieldViolation { position: *position, kind });
        }
        *position = position.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::message::Role;
    use epitome_message::{Message, Part, ToolCall};

    use super::*;

    fn found(profile: Profile, messages: &[Message]) -> Vec<(u32, &'static str)> {
        let (mut validator, mut found) = (FieldValidator::new(profile), Vec::new());
        for message in messages {
            validator
                .push(message, &mut |violation| found.push((violation.position, violation.kind.as_str())));
        }
        found
    }

    fn calls(calls: &[(&str, &str)]) -> Message {
        let calls = calls.iter().map(|(id, name)| Part::ToolCall(ToolCall::new(*id, *name, "{}")));
        Message::new(Role::Assistant, calls.collect())
    }

    #[test]
    fn each_provider_has_its_limits() {
        use Profile::{Anthropic, Gemini, OpenaiChat, OpenaiResponses};
        let long = |length| "x".repeat(length);
        for (id, name, refused_by) in [
            ("c-1_A", "read_file-2", &[][..]),
            ("functions.read:0", "read", &[(Anthropic, "call_id")]),
            ("\u{51fd}\u{6570}", "read", &[(Anthropic, "call_id")]),
            (&long(40), "read", &[]),
            (&long(41), "read", &[(OpenaiChat, "call_id")]),
            // Characters, not bytes.
            (&"\u{e9}".repeat(40), "read", &[(Anthropic, "call_id")]),
            (&long(65), "read", &[(OpenaiChat, "call_id"), (OpenaiResponses, "call_id")]),
            (
                "c",
                "fs.read",
                &[(OpenaiChat, "tool_name"), (OpenaiResponses, "tool_name"), (Anthropic, "tool_name")],
            ),
            ("c", &long(65), &[(OpenaiChat, "tool_name")]),
            (
                "c",
                &long(129),
                &[(OpenaiChat, "tool_name"), (OpenaiResponses, "tool_name"), (Anthropic, "tool_name")],
            ),
        ] {
            for profile in [OpenaiChat, OpenaiResponses, Anthropic, Gemini] {
                let expected = refused_by.iter().filter(|(by, _)| *by == profile).map(|(_, kind)| (0, *kind));
                let found = found(profile, &[calls(&[(id, name)])]);
                assert_eq!(found, expected.collect::<Vec<_>>(), "{profile:?} {id} {name}");
                let limits = FieldLimits::of(profile);
                let instead = limits.name_instead(name);
                assert!(limits.takes_name(&instead), "{instead}");
                assert!(!limits.takes_name(name) || profile == Gemini || instead == name, "{instead}");
            }
        }
    }

    #[test]
    fn an_id_is_unique_in_a_message_or_in_a_request() {
        let again = [
            calls(&[("a", "f"), ("b", "f")]),
            calls(&[("a", "f")]),
            calls(&[("b", "f"), ("b", "g"), ("b", "h")]),
        ];
        assert_eq!(found(Profile::OpenaiChat, &again), [(2, "repeated_call_id")]);
        assert_eq!(found(Profile::Anthropic, &again), [(1, "repeated_call_id"), (2, "repeated_call_id")]);
        assert_eq!(found(Profile::Gemini, &again), []);
    }

    #[test]
    fn white_space_alone_is_no_text_for_one_provider() {
        let messages = ["", " \n\t", "\u{3000}", "a "].map(Message::user);
        assert_eq!(found(Profile::Anthropic, &messages), [0, 1, 2].map(|at| (at, "blank_text")));
        assert_eq!(found(Profile::OpenaiChat, &messages), []);
    }
}
