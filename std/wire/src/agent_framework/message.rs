//! Reads one message as one or more messages, each of which answers at most one call.

use std::borrow::Cow;
use std::sync::Arc;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::Role;
use epitome_message::{Attribution, Message, Part, Str};

use super::content;
use crate::answers::AnsweredCalls;
use crate::error::quoted;
use crate::expect::{expect_object, share};
use crate::injected::own_ledger;
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::{WireError, WireErrorKind};

/// A part of a content, and the text of the content.
pub(super) type Item<'a> = (Part, &'a str);

/// The messages of `raw`, a slice of `whole`.
pub(super) fn pieces<'a>(whole: &Arc<str>, message: impl Into<Value<'a>>) -> Result<Vec<Message>, WireError> {
    let message = message.into();
    expect_object(message.text(), "a message")?;
    let names = &["role", "author_name", "message_id", "additional_properties", "contents"];
    let [role, name, id, properties, contents] = json::known::fields(message, names)?;
    let role = self::role(role)?;
    let attribution = attribution(role, properties)?;
    let text = |value: Option<&str>| {
        let value = value.filter(|value| ValueKind::of(value) == ValueKind::Text);
        value.map(|value| share(whole, &json::decode(value)))
    };
    let (name, id) = (text(name), text(id));
    let mut parts = Vec::new();
    for_each_item(whole, message, contents, |part, _| parts.push(part))?;
    let lengths = lengths(role, &parts);
    let mut messages = Vec::with_capacity(lengths.len());
    for (at, (length, role)) in lengths.iter().enumerate() {
        let is_last = at.saturating_add(1) == lengths.len();
        let rest = if is_last { Vec::new() } else { parts.split_off(*length) };
        let mut message = own_ledger(Message::new(*role, parts).with_attribution(attribution.clone()));
        parts = rest;
        if let Some(name) = &name {
            message = message.with_name(name.clone());
        }
        if let Some(id) = &id {
            message = message.with_id(id.clone());
        }
        messages.push(message);
    }
    Ok(messages)
}

/// The contents of the message `raw`.
pub(super) fn items<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<Item<'a>>, WireError> {
    let mut found = Vec::new();
    let contents = json::known::field(raw, "contents")?;
    for_each_item(whole, raw.into(), contents, |part, item| found.push((part, item)))?;
    Ok(found)
}

/// Visits the contents of a message, from the list `contents`.
fn for_each_item<'a>(
    whole: &Arc<str>,
    message: Value<'a>,
    contents: Option<&'a str>,
    mut visit: impl FnMut(Part, &'a str),
) -> Result<(), WireError> {
    let Some(list) = contents.filter(|list| *list != "null") else { return Ok(()) };
    json::nested(message.text(), list, "/contents", |list| {
        if ValueKind::of(list) != ValueKind::Array {
            return Err(WireError::shape("`contents` is a list"));
        }
        let mut at = 0_usize;
        json::known::items_and_members(message.within(list), &content::NAMES, |found| {
            let (item, path) = (found.object(), format_args!("/{at}"));
            visit(json::nested(list, item, path, |_| content::read(whole, &found))?, item);
            at = at.saturating_add(1);
            Ok(())
        })
    })
}

/// The role: a text, or, in older releases of the framework, an object.
pub(super) fn role(raw: Option<&str>) -> Result<Role, WireError> {
    let value = match raw {
        Some(role) if ValueKind::of(role) == ValueKind::Object => json::known::field(role, "value")?,
        role => role,
    };
    let Some(name) = value.filter(|name| ValueKind::of(name) == ValueKind::Text) else {
        return Err(WireError::shape("`role` is a text").inside("/role", 0));
    };
    Ok(match &*json::decode(name) {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        name => {
            let what = format!(
                "no role is named {}; known are system, developer, user, assistant and tool",
                quoted(name)
            );
            return Err(WireError::new(WireErrorKind::UnknownRole, what).inside("/role", 0));
        }
    })
}

/// The decoded JSON string, if the value is one.
fn text_of(value: Option<&str>) -> Option<Cow<'_, str>> {
    value.filter(|value| ValueKind::of(value) == ValueKind::Text).map(json::decode)
}

/// The origin of a message. A provider of the framework marks each message that it adds with its source. The messages of
/// a history are what the user and the model said in earlier runs; those of another provider are context.
fn attribution(role: Role, properties: Option<&str>) -> Result<Attribution, WireError> {
    let object = |value: &&str| ValueKind::of(value) == ValueKind::Object;
    let caller = Attribution::caller(role.authority());
    let Some(properties) = properties.filter(object) else { return Ok(caller) };
    let Some(marks) = json::known::field(properties, "_attribution")?.filter(object) else {
        return Ok(caller);
    };
    let [source, class] = json::known::fields(marks, &["source_id", "source_type"])?;
    let is_history = text_of(class).is_some_and(|class| class.ends_with("HistoryProvider"));
    Ok(match text_of(source).filter(|source| !source.is_empty() && !is_history) {
        Some(source) => {
            let authority = role.authority().min(Authority::Retrieved);
            Attribution::new(Str::from(&*source), SourceKind::Context, authority)
        }
        None => caller,
    })
}

/// Number of parts of each piece of a message, and its role. A piece answers at most one call. Other contents of a tool
/// stay with the answer before them. Contents of a person or of the model are a piece of their own. The answer to a
/// call in the model's own message is a tool's.
fn lengths(role: Role, parts: &[Part]) -> Vec<(usize, Role)> {
    let own = AnsweredCalls::of(role, parts.iter());
    let mut lengths = vec![(0_usize, role)];
    let mut answered = false;
    for part in parts {
        let answers = match role {
            Role::User | Role::Tool => matches!(part, Part::ToolResult(_) | Part::ApprovalResponse(_)),
            _ => own.has_result(part),
        };
        let piece = if answers && role == Role::Assistant { Role::Tool } else { role };
        if answers || (answered && role != Role::Tool) {
            if lengths.last().is_some_and(|(length, _)| *length > 0) {
                lengths.push((0, piece));
            }
            answered = false;
        }
        answered |= answers;
        if let Some((length, role)) = lengths.last_mut() {
            (*length, *role) = (length.saturating_add(1), piece);
        }
    }
    lengths
}
