//! Finds fields of messages that the service of a provider refuses, in any order of the messages.
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
use epitome_core::message::{CallKind, MessageView, PartView, Role};
use serde::Serialize;

/// A field that the service of a provider refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FieldViolation {
    /// The position of the message, from 0.
    pub position: u32,
    /// The kind of the field.
    pub kind: FieldViolationKind,
}

/// Kinds of refused fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FieldViolationKind {
    /// The id of a call is too long, or has characters that are refused.
    CallId,
    /// Another call has the same id.
    RepeatedCallId,
    /// The name of a tool is too long, or has characters that are refused.
    ToolName,
    /// All messages of a turn are white space alone.
    BlankText,
}

impl FieldViolationKind {
    /// The name of the kind.
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
            Self::BlankText => "a turn of white space alone",
        }
    }
}

impl fmt::Display for FieldViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: {} ({})", self.position, self.kind.explanation(), self.kind.as_str())
    }
}

/// The scope in which the id of a call is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unique {
    Request,
    Message,
    Nowhere,
}

/// Limits of an id of a call, or of the name of a tool.
#[derive(Debug, Clone, Copy)]
struct NameLimits {
    chars_max: usize,
    /// Whether only ASCII letters, ASCII digits, `_` and `-` are allowed.
    is_plain: bool,
}

impl NameLimits {
    const ANY: Self = Self { chars_max: usize::MAX, is_plain: false };

    fn takes(self, name: &str) -> bool {
        let fits = name.len() <= self.chars_max || name.chars().count() <= self.chars_max;
        fits && (!self.is_plain || !name.is_empty() && name.chars().all(is_plain))
    }
}

/// The limits of a provider, according to the refusals of its service. Without a known refusal, every value is allowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldLimits {
    ids: NameLimits,
    unique_ids: Unique,
    tools: NameLimits,
    takes_blank: bool,
}

impl FieldLimits {
    /// Any name and any text.
    pub(crate) const NONE: Self =
        Self { ids: NameLimits::ANY, unique_ids: Unique::Nowhere, tools: NameLimits::ANY, takes_blank: true };

    pub(crate) const fn of(profile: Profile) -> Self {
        match profile {
            // `messages[..].tool_calls[..].id`: "string too long. Expected a string with maximum length 40"
            // (<https://github.com/vercel/ai/issues/5171>); two calls with one id:
            // <https://github.com/openclaw/openclaw/pull/40996>; `function.name`: "Expected a string that matches the
            // pattern '^[a-zA-Z0-9_-]+$'" (<https://github.com/mcp-use/mcp-use/issues/90>),
            // "maximum length 64" (<https://github.com/mrexodia/ida-pro-mcp/issues/129>).
            Profile::OpenaiChat => Self {
                ids: NameLimits { chars_max: 40, is_plain: false },
                unique_ids: Unique::Message,
                tools: NameLimits { chars_max: 64, is_plain: true },
                takes_blank: true,
            },
            // The published schema of `call_id` and of the name of a function.
            Profile::OpenaiResponses => Self {
                ids: NameLimits { chars_max: 64, is_plain: false },
                unique_ids: Unique::Nowhere,
                tools: NameLimits { chars_max: 128, is_plain: true },
                takes_blank: true,
            },
            // "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'" and "`tool_use` ids must be unique"
            // (<https://github.com/anomalyco/opencode/issues/1279>); `tool_use.name`: at most 200 characters
            // (<https://github.com/anthropics/claude-code/issues/2673>); "text content blocks must contain non-whitespace text"
            // (<https://github.com/anthropics/claude-code/issues/23440>).
            Profile::Anthropic => Self {
                ids: NameLimits { chars_max: usize::MAX, is_plain: true },
                unique_ids: Unique::Request,
                tools: NameLimits { chars_max: 200, is_plain: false },
                takes_blank: false,
            },
            _ => Self::NONE,
        }
    }

    /// Whether the id of a call is allowed.
    pub(crate) fn takes_id(&self, id: &str) -> bool {
        !id.is_empty() && self.ids.takes(id)
    }

    /// Whether the name of a tool is allowed.
    pub(crate) fn takes_name(&self, name: &str) -> bool {
        self.tools.takes(name)
    }

    /// An allowed name for the tool `name`: each refused character becomes `_`, and the rest is cut.
    pub(crate) fn name_instead(&self, name: &str) -> String {
        let taken = |c: char| if !self.tools.is_plain || is_plain(c) { c } else { '_' };
        let name: String = name.chars().map(taken).take(self.tools.chars_max).collect();
        if name.is_empty() { "_".to_owned() } else { name }
    }

    /// Whether a turn with only this text is allowed.
    pub(crate) fn takes_text(&self, text: &str) -> bool {
        self.takes_blank || !text.trim().is_empty()
    }
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Finds fields that the service of a provider refuses, message by message. A call without an id is allowed: not every
/// format has ids, and [`convert`](super::convert()) assigns one to each call.
#[derive(Debug)]
pub struct FieldValidator {
    limits: FieldLimits,
    position: u32,
    /// The ids of the calls of the message, or of all messages if an id is unique in a request.
    ids: HashSet<String>,
    /// The side of the current turn, and the turn's first message if all its texts are white space.
    turn: Option<(Side, Option<u32>)>,
}

/// The side of a conversation. Successive messages of one side are one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Instructions,
    Model,
    User,
}

impl Side {
    pub(crate) const fn of(role: Role) -> Self {
        match role {
            Role::System | Role::Developer => Self::Instructions,
            Role::Assistant => Self::Model,
            _ => Self::User,
        }
    }
}

impl FieldValidator {
    /// Creates a validator with the limits of a profile, before the first message.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self { limits: FieldLimits::of(profile), position: 0, ids: HashSet::new(), turn: None }
    }

    /// Checks the next message. Each kind of violation is reported once for it; a blank turn is reported when the next
    /// turn begins.
    pub fn push(
        &mut self,
        message: &(impl MessageView + ?Sized),
        on_violation: &mut dyn FnMut(FieldViolation),
    ) {
        let side = Side::of(message.role());
        if self.turn.is_some_and(|(before, _)| before != side) {
            self.finish(on_violation);
        }
        let Self { limits, position, ids, turn } = self;
        if limits.unique_ids == Unique::Message {
            ids.clear();
        }
        let mut kinds = Vec::new();
        // A text of white space is allowed next to any other part.
        let (mut is_blank, mut says_more) = (false, false);
        message.for_each_part(&mut |part| {
            let mut report = |kind| {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            };
            match part {
                PartView::Text(text) if !limits.takes_text(text) => is_blank = true,
                // The provider itself made the fields of a hosted call.
                PartView::ToolCall(call) if call.kind != CallKind::Hosted => {
                    says_more = true;
                    let has_id = !call.id.is_empty();
                    if has_id && !limits.takes_id(call.id) {
                        report(FieldViolationKind::CallId);
                    } else if has_id
                        && limits.unique_ids != Unique::Nowhere
                        && !ids.insert(call.id.to_owned())
                    {
                        report(FieldViolationKind::RepeatedCallId);
                    }
                    if !limits.takes_name(call.name) {
                        report(FieldViolationKind::ToolName);
                    }
                }
                _ => says_more = true,
            }
        });
        *turn = match *turn {
            Some((side, None)) => Some((side, None)),
            _ if says_more => Some((side, None)),
            Some((side, first)) => Some((side, first)),
            None => is_blank.then_some((side, Some(*position))),
        };
        for kind in kinds {
            on_violation(FieldViolation { position: *position, kind });
        }
        *position = position.saturating_add(1);
    }

    /// Reports a blank turn at the end of the request.
    pub fn finish(&mut self, on_violation: &mut dyn FnMut(FieldViolation)) {
        if let Some((_, Some(position))) = self.turn.take() {
            on_violation(FieldViolation { position, kind: FieldViolationKind::BlankText });
        }
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::message::Role;
    use epitome_message::{Message, Part, ToolCall};

    use super::*;

    fn violations(profile: Profile, messages: &[Message]) -> Vec<(u32, &'static str)> {
        let (mut validator, mut violations) = (FieldValidator::new(profile), Vec::new());
        for message in messages {
            let mut note =
                |violation: FieldViolation| violations.push((violation.position, violation.kind.as_str()));
            validator.push(message, &mut note);
        }
        validator.finish(&mut |violation| violations.push((violation.position, violation.kind.as_str())));
        violations
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
            ("c", "fs.read", &[(OpenaiChat, "tool_name"), (OpenaiResponses, "tool_name")]),
            ("c", &long(65), &[(OpenaiChat, "tool_name")]),
            ("c", &long(129), &[(OpenaiChat, "tool_name"), (OpenaiResponses, "tool_name")]),
            (
                "c",
                &long(201),
                &[(OpenaiChat, "tool_name"), (OpenaiResponses, "tool_name"), (Anthropic, "tool_name")],
            ),
        ] {
            for profile in [OpenaiChat, OpenaiResponses, Anthropic, Gemini] {
                let expected = refused_by.iter().filter(|(by, _)| *by == profile).map(|(_, kind)| (0, *kind));
                let found = violations(profile, &[calls(&[(id, name)])]);
                assert_eq!(found, expected.collect::<Vec<_>>(), "{profile:?} {id} {name}");
                let limits = FieldLimits::of(profile);
                let instead = limits.name_instead(name);
                assert!(limits.takes_name(&instead), "{instead}");
                assert_eq!(limits.takes_name(name), instead == name, "{instead}");
            }
        }
        assert_eq!(violations(OpenaiChat, &[calls(&[("", "f"), ("", "f")])]), []);
        assert_eq!(FieldLimits::of(OpenaiChat).name_instead(""), "_");
    }

    #[test]
    fn an_id_is_unique_in_a_message_or_in_a_request() {
        let again = [
            calls(&[("a", "f"), ("b", "f")]),
            calls(&[("a", "f")]),
            calls(&[("b", "f"), ("b", "g"), ("b", "h")]),
        ];
        assert_eq!(violations(Profile::OpenaiChat, &again), [(2, "repeated_call_id")]);
        assert_eq!(
            violations(Profile::Anthropic, &again),
            [(1, "repeated_call_id"), (2, "repeated_call_id")]
        );
        assert_eq!(violations(Profile::OpenaiResponses, &again), []);
    }

    #[test]
    fn a_turn_of_white_space_is_refused_by_one_provider() {
        let texts = |texts: &[&str]| {
            Message::new(Role::Assistant, texts.iter().map(|text| Part::Text((*text).into())).collect())
        };
        let call = || calls(&[("a", "f")]).parts()[0].clone();
        let with_call = Message::new(Role::Assistant, vec![Part::Text("\n\n".into()), call()]);
        let (user, blank) = (|| Message::user("go"), || texts(&[" \n\t", "\u{3000}"]));
        let result = || Message::tool("a", "ok");
        for (messages, refused) in [
            (vec![user(), blank()], &[1][..]),
            (vec![user(), blank(), blank(), user(), blank()], &[1, 4]),
            (vec![user(), texts(&["a "]), user(), texts(&["a", " "])], &[]),
            // Neighbours of one side are one turn, as records of a session that has a line for each block.
            (vec![user(), blank(), with_call.clone(), result(), Message::user(" ")], &[]),
            (vec![user(), with_call.clone(), result(), blank(), Message::user(" ")], &[3, 4]),
        ] {
            let expected: Vec<_> = refused.iter().map(|at| (*at, "blank_text")).collect();
            assert_eq!(violations(Profile::Anthropic, &messages), expected, "{messages:?}");
            assert_eq!(violations(Profile::OpenaiChat, &messages), []);
        }
    }
}
