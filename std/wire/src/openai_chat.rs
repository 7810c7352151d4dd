//! Messages of OpenAI's Chat Completions API, and of the many programs that use or store the same format.
//!
//! [`ChatView`] reads one message and borrows from its text. [`read`] returns an owned [`Message`] that shares its
//! source text. [`write()`] returns that text for an unchanged message. Otherwise it changes only the necessary values.
//!
//! This module sends nothing, and it does not trust the fields of a message: a message from a file comes from the
//! caller, with its role's authority, even if unknown fields claim more.
//!
//! ```
//! use epitome_message::Part;
//! use epitome_wire::openai_chat::{read, write};
//!
//! let text = r#"{"role": "user", "cost": 1.50, "content": "Hi"}"#;
//! let message = read(text)?;
//! assert_eq!(write(&message)?, text);
//!
//! let shorter = message.with_parts(vec![Part::Text("H".into())]);
//! assert_eq!(write(&shorter)?, r#"{"role": "user", "cost": 1.50, "content": "H"}"#);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! Differences between programs that use the format:
//!
//! - `function_call` and the role `function`, the older form, are a call and a result with an empty id.
//! - A tool message may name its call in `tool_call_ids`, a list of one.
//! - `arguments` may be an object: its JSON is then the text of the arguments.
//! - `reasoning_content` and `reasoning` of an assistant are reasoning, before the text. If both have text, the first
//!   is used.
//! - `refusal` of an assistant is a text after the content.
//! - Empty texts and null are no parts.

mod content;
mod encode;
mod fields;
mod owned;
mod spec;
mod write;

use std::borrow::Cow;

use epitome_core::attribution::{AttributionView, Authority, SourceKind};
use epitome_core::is_ledger;
use epitome_core::message::{
    MessageView, PartView, Parts, ReasoningView, Role, ToolCallView, ToolResultView,
};
use epitome_message::Message;

use self::content::{ChatPart, Content};
use self::fields::{ChatCall, Fields, NAMES, call_id, calls};
use super::WireError;
use super::document;
use super::expect::{optional_text, present};
use super::injected::LEDGER_SOURCE;
use super::json::known::Value;
use super::json::{self, ValueKind};

pub(crate) use content::split_data_url;
pub use owned::read;

pub(crate) use spec::{SPEC, read_element};
pub use write::write;

/// The format's name in [`WireText`](epitome_message::WireText).
pub const FORMAT: &str = super::Format::OpenaiChat.as_str();

/// One message, borrowed from its text: only texts with escapes are copied.
///
/// ```
/// use epitome_core::message::{MessageView, PartView, Parts, Role};
/// use epitome_wire::openai_chat::ChatView;
///
/// let view = ChatView::parse(r#"{"role": "tool", "tool_call_id": "c1", "content": "42"}"#)?;
/// assert_eq!(view.role(), Role::Tool);
/// view.for_each_part(&mut |part| {
///     assert!(matches!(part, PartView::ToolResult(result) if result.call_id == "c1"));
/// });
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
#[derive(Clone)]
pub struct ChatView<'a> {
    text: &'a str,
    role: Role,
    name: Option<Cow<'a, str>>,
    reasoning: Option<Cow<'a, str>>,
    content: Content<'a>,
    refusal: Option<Cow<'a, str>>,
    calls: Vec<ChatCall<'a>>,
    call_id: Cow<'a, str>,
}

impl<'a> ChatView<'a> {
    /// Parses `text`, one JSON object, as a message.
    ///
    /// # Errors
    /// `Empty`, `Truncated` or `NotJson` for a text that is no JSON; `Shape` for a missing role or a field of the wrong
    /// type, `UnknownRole`, and `DuplicateKey`. Path and offset are those in this text: see [`WireError::inside`].
    pub fn parse(text: &'a str) -> Result<Self, WireError> {
        if ValueKind::of(text) != ValueKind::Object {
            json::check(text)?;
            let what = format!("expected a message (an object with `role`), found {}", json::describe(text));
            return Err(WireError::shape(what));
        }
        Self::of_fields(text, Fields::of(text)?)
    }

    /// Works like [`parse`](Self::parse), for a text that is known to be JSON.
    fn of_known(value: Value<'a>) -> Result<Self, WireError> {
        match ValueKind::of(value.text()) {
            ValueKind::Object => {
                Self::of_fields(value.text(), Fields::new(json::known::fields(value, &NAMES)?))
            }
            _ => Self::parse(value.text()),
        }
    }

    fn of_fields(text: &'a str, fields: Fields<'a>) -> Result<Self, WireError> {
        let role = fields.role(text)?;
        let mut view = Self {
            text,
            role,
            name: optional_text(text, fields.name, "name")?,
            reasoning: None,
            content: present(text, fields.content, "content", Content::parse)?.unwrap_or_default(),
            refusal: None,
            calls: Vec::new(),
            call_id: Cow::Borrowed(""),
        };
        match role {
            Role::Assistant => {
                view.reasoning = fields.reasoning().map(|(_, text)| text);
                view.refusal =
                    optional_text(text, fields.refusal, "refusal")?.filter(|text| !text.is_empty());
                view.calls = calls(text, &fields)?;
            }
            Role::Tool => view.call_id = call_id(text, &fields)?,
            _ => {}
        }
        if role != Role::Assistant {
            fields.no_calls(text, role)?;
        }
        Ok(view)
    }

    /// Whether the message is a ledger of Epitome, and nothing else.
    fn is_ledger(&self) -> bool {
        let text = match &self.content {
            Content::Text(text) => text,
            Content::Parts(parts) => match parts.as_slice() {
                [ChatPart::Text(text)] => text,
                _ => return false,
            },
            Content::None => return false,
        };
        let is_alone = self.calls.is_empty() && self.reasoning.is_none() && self.refusal.is_none();
        self.role == Role::Assistant && is_alone && is_ledger(text)
    }

    /// The text that the message was read from.
    #[must_use]
    pub const fn text(&self) -> &'a str {
        self.text
    }
}

impl Parts for ChatView<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        if self.role == Role::Tool {
            return visit(PartView::ToolResult(ToolResultView::new(&self.call_id, &self.content)));
        }
        if let Some(reasoning) = &self.reasoning {
            visit(PartView::Reasoning(ReasoningView::new(reasoning)));
        }
        self.content.for_each_part(visit);
        if let Some(refusal) = &self.refusal {
            visit(PartView::Text(refusal));
        }
        for call in &self.calls {
            visit(PartView::ToolCall(ToolCallView::new(&call.id, &call.name, &call.arguments)));
        }
    }
}

impl MessageView for ChatView<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        let mut attribution = AttributionView::caller(self.role.authority());
        if self.is_ledger() {
            attribution.source_id = LEDGER_SOURCE;
            (attribution.source, attribution.authority) = (SourceKind::Compaction, Authority::Retrieved);
        }
        attribution
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl core::fmt::Debug for ChatView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ChatView")
            .field("role", &self.role)
            .field("bytes", &self.text.len())
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

/// The messages of the conversation in `text`: JSON, or JSONL with one message per line. Use it for small texts.
///
/// ```
/// use epitome_wire::openai_chat::read_all;
///
/// let messages = read_all(r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}"#)?;
/// assert_eq!((messages.len(), messages[0].text().into_owned()), (1, "Hi".into()));
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// As [`document::conversation`] and [`ChatView::parse`], with line, column and path of the message.
pub fn read_all(text: &str) -> Result<Vec<Message>, WireError> {
    let conversation = document::conversation(text)?;
    let messages = conversation.iter().enumerate();
    messages.map(|(index, text)| read(text).map_err(|error| conversation.place(index, error))).collect()
}

#[cfg(test)]
pub(crate) mod tests;
