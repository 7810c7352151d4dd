//! Reads one message of the wire as one or more messages.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, WireText};

use super::block::{self, NAME};
use crate::answers::AnsweredCalls;
use crate::error::quoted;
use crate::expect::{expect_object, expect_text, optional_text, share};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::{WireError, WireErrorKind};

/// The messages in the object `text`, a slice of `whole`: one, or several if it mixes results with other blocks.
pub(crate) fn messages<'a>(whole: &Arc<str>, text: impl Into<Value<'a>>) -> Result<Vec<Message>, WireError> {
    messages_and_usage(whole, text.into()).map(|(messages, _)| messages)
}

/// The messages in the object, and its report of usage as JSON, from a single scan, because a message may be long.
pub(crate) fn messages_and_usage<'a>(
    whole: &Arc<str>,
    text: Value<'a>,
) -> Result<(Vec<Message>, Option<&'a str>), WireError> {
    expect_object(text.text(), "a message")?;
    let [role, content, id, usage] = json::known::fields(text, &["role", "content", "id", "usage"])?;
    Ok((of_fields(whole, text, [role, content, id])?, usage.filter(|usage| *usage != "null")))
}

fn of_fields<'a>(
    whole: &Arc<str>,
    value: Value<'a>,
    [role, content, id]: [Option<&'a str>; 3],
) -> Result<Vec<Message>, WireError> {
    let text = value.text();
    let Some(role) = role else {
        let found = json::describe(text);
        return Err(WireError::shape(format!("expected a message (an object with `role`), found {found}")));
    };
    let role = json::nested(text, role, "/role", self::role)?;
    let Some(content) = content else {
        let found = json::describe(text);
        return Err(WireError::shape(format!("expected a message with `content`, found {found}")));
    };
    let blocks =
        json::nested(text, content, "/content", |content| block::parts(whole, value.within(content)))?;
    let runs = runs(role, &blocks);
    if runs.len() > 1 {
        return Ok(split(whole, text, role, blocks, &runs));
    }
    let role = runs.first().map_or(role, |run| run.role);
    let parts = blocks.into_iter().filter_map(|(part, _)| part).collect();
    let mut message = Message::new(role, parts);
    // A response and its message have the same id.
    if let Some(id) = optional_text(text, id, "id")?.filter(|_| role == Role::Assistant) {
        let id = share(whole, &id);
        message = message.with_id(id.clone()).with_response_id(id);
    }
    Ok(vec![message.with_wire(WireText::new(NAME.clone(), share(whole, text)))])
}

/// The system message in `system`, a text or a list of blocks.
pub(super) fn instructions(whole: &Arc<str>, system: &str) -> Result<Message, WireError> {
    let parts = block::parts(whole, system)?.into_iter().filter_map(|(part, _)| part).collect();
    Ok(Message::new(Role::System, parts).with_wire(WireText::new(NAME.clone(), share(whole, system))))
}

/// Blocks of a message that become one message.
pub(super) struct Run {
    pub(super) role: Role,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The runs of blocks of a message of this role: each result of a function call alone, and the blocks between results
/// together.
pub(super) fn runs(role: Role, blocks: &[(Option<Part>, &str)]) -> Vec<Run> {
    let answered = AnsweredCalls::of(role, blocks.iter().filter_map(|(part, _)| part.as_ref()));
    let is_result = |at: usize| match blocks.get(at) {
        Some((Some(part @ Part::ToolResult(_)), _)) => role == Role::User || answered.has_result(part),
        _ => false,
    };
    let mut runs: Vec<Run> = Vec::new();
    for at in 0..blocks.len() {
        match runs.last_mut() {
            Some(run) if run.role == role && !is_result(at) => run.end = at.saturating_add(1),
            _ => {
                let role = if is_result(at) { Role::Tool } else { role };
                runs.push(Run { role, start: at, end: at.saturating_add(1) });
            }
        }
    }
    runs
}

/// The messages of several runs. The text of each is the range of its blocks in the list.
fn split(
    whole: &Arc<str>,
    text: &str,
    role: Role,
    blocks: Vec<(Option<Part>, &str)>,
    runs: &[Run],
) -> Vec<Message> {
    let raws: Vec<&str> = blocks.iter().map(|(_, raw)| *raw).collect();
    let mut parts = blocks.into_iter().map(|(part, _)| part);
    let mut messages = Vec::with_capacity(runs.len());
    for run in runs {
        let own = parts.by_ref().take(run.end.saturating_sub(run.start)).flatten().collect();
        let (first, last) = (raws.get(run.start), raws.get(run.end.saturating_sub(1)));
        let range = match (first, last) {
            (Some(first), Some(last)) => json::offset_of(text, first)..json::range_of(text, last).end,
            _ => 0..0,
        };
        let slice = text.get(range).unwrap_or_default();
        let wire = WireText::new(NAME.clone(), share(whole, slice)).with_rejoin(!messages.is_empty());
        let role = if run.role == Role::Tool { Role::Tool } else { role };
        messages.push(Message::new(role, own).with_wire(wire));
    }
    messages
}

fn role(raw: &str) -> Result<Role, WireError> {
    match &*expect_text(raw)? {
        "system" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        other => Err(WireError::new(
            WireErrorKind::UnknownRole,
            format!("unknown role {}: expected user, assistant or system", quoted(other)),
        )),
    }
}

/// The content of a record: that of a message, or the instructions themselves.
pub(super) fn content(record: &str) -> Result<&str, WireError> {
    match ValueKind::of(record) {
        ValueKind::Object => Ok(json::known::field(record, "content")?.unwrap_or("[]")),
        _ => Ok(record),
    }
}
