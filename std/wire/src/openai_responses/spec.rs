//! Requests, responses and arrays of items.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, WireText};

use super::content::NAME;
use super::item;
use super::write::write_record;
use crate::body::Body;
use crate::expect::{expect_text, optional_text, share};
use crate::json::{self, ValueKind};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of Responses in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::OpenaiResponses,
    &["input", "output", "instructions", "id"],
    (sign, read),
    Writer::Own(write_record),
);

fn sign(body: &Body<'_>) -> Fit {
    let Some(value) = body.value() else { return Fit::No };
    if let Some(output) = body.field("output")
        && body.field("object").is_some_and(|kind| matches!(kind, "\"response\"" | "\"response.compaction\""))
        && ValueKind::of(output) == ValueKind::Array
    {
        return Fit::Certain("it is a `response` with `output`");
    }
    if let Some(input) = body.field("input") {
        let known = ValueKind::of(input) == ValueKind::Text || all_items(body);
        return if known { Fit::Certain("it has `input`") } else { Fit::No };
    }
    if ValueKind::of(value) != ValueKind::Array || !all_items(body) {
        return Fit::No;
    }
    let sample = body.sample("input").unwrap_or_default();
    match sample
        .iter()
        .any(|item| json::field(item, "type").is_ok_and(|kind| kind.is_some()) || has_input(item))
    {
        true => Fit::Certain("its items have a `type`, or parts of type `input_text` or `output_text`"),
        false => Fit::Possible("its items have `role` and `content`"),
    }
}

fn all_items(body: &Body<'_>) -> bool {
    body.sample("input").is_some_and(|sample| sample.iter().all(|item| is_item(item)))
}

/// Whether the value can be an item: an object with a known type, or a message whose content has no parts of another
/// format.
fn is_item(item: &str) -> bool {
    if ValueKind::of(item) != ValueKind::Object {
        return false;
    }
    let names = &["type", "role", "content", "tool_calls", "tool_call_id", "parts", "contents"];
    let Ok([kind, role, content, None, None, None, None]) = json::fields(item, names) else { return false };
    let text = kind.is_none_or(|kind| ValueKind::of(kind) == ValueKind::Text);
    match (kind, role, content) {
        (Some(kind), None, _) => text && KNOWN.iter().any(|end| kind.trim_matches('"').ends_with(end)),
        (_, Some(role), _) if !ROLES.contains(&role) => false,
        (_, Some(_), Some(content)) => {
            text && (ValueKind::of(content) == ValueKind::Text || of_parts(content))
        }
        (_, Some(_), None) => kind.is_some() && text,
        (None, None, _) => false,
    }
}

/// The roles of messages.
const ROLES: &[&str] = &["\"user\"", "\"assistant\"", "\"system\"", "\"developer\""];

/// Ends of the types of items that have no role.
const KNOWN: &[&str] = &[
    "_call",
    "_output",
    "reasoning",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "item_reference",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "program",
    "additional_tools",
    // Messages between the agents of Codex.
    "agent_message",
];

/// Whether a list of parts can be of this format.
fn of_parts(content: &str) -> bool {
    let done = json::items(content, |part| {
        let kind = if ValueKind::of(part) == ValueKind::Object { json::field(part, "type")? } else { None };
        let own = kind.is_some_and(|kind| kind.starts_with("\"input_") || kind.starts_with("\"output_"));
        match kind {
            _ if own => Ok(()),
            Some("\"refusal\"" | "\"summary_text\"" | "\"reasoning_text\"" | "\"computer_screenshot\"") => {
                Ok(())
            }
            _ => Err(WireError::shape("another format")),
        }
    });
    ValueKind::of(content) == ValueKind::Array && done.is_ok()
}

fn has_input(item: &str) -> bool {
    json::field(item, "content")
        .is_ok_and(|content| content.is_some_and(|content| ValueKind::of(content) == ValueKind::Array))
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let Some(whole) = body.value() else {
        return Err(WireError::shape("lines; expected a request, a response or an array of items"));
    };
    let (list, key) = match (body.field("input"), body.field("output")) {
        (Some(input), _) => (input, "/input"),
        (None, Some(output)) => (output, "/output"),
        (None, None) => (whole, ""),
    };
    let mut conversation = Conversation::new(Format::OpenaiResponses, format!("{}{key}", body.path()));
    if let Some(instructions) =
        body.field("instructions").filter(|text| ValueKind::of(text) == ValueKind::Text)
    {
        let record = transcript.field(&body.members, "instructions", 1);
        conversation.extend(record, [plain(body.source, Role::System, instructions)?]);
    }
    match ValueKind::of(list) {
        ValueKind::Text => {
            let message = json::nested(whole, list, key, |text| plain(body.source, Role::User, text))?;
            let record = transcript.value(list, 1);
            conversation.extend(record, [message]);
        }
        ValueKind::Array => {
            let id = optional_text(whole, body.field("id").filter(|_| key == "/output"), "id")?;
            let id = id.map(|id| share(body.source, &id));
            let list = transcript.array(list)?;
            transcript.extend(&mut conversation, list, (whole, key), |source, text| {
                let message = item::message(source, text)?;
                let message = message.map(|message| match &id {
                    Some(id) => message.with_response_id(id.clone()),
                    None => message,
                });
                Ok((message, None))
            })?;
        }
        _ => {
            let found = json::describe(list);
            return Err(WireError::shape(format!("expected a text or an array of items, found {found}")));
        }
    }
    transcript.push(conversation);
    Ok(())
}

/// The message of a single text.
fn plain(source: &Arc<str>, role: Role, text: &str) -> Result<Message, WireError> {
    let said = share(source, &expect_text(text)?);
    let parts = if said.is_empty() { Vec::new() } else { vec![Part::Text(said)] };
    Ok(Message::new(role, parts).with_wire(WireText::new(NAME.clone(), share(source, text))))
}
