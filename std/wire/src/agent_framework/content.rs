//! Converts between the framework's `Content` and parts.

use std::sync::Arc;

use epitome_core::message::CallKind;
use epitome_message::{
    Approval, ApprovalAnswer, Media, MediaSource, NESTING_MAX, Part, Reasoning, Str, ToolCall, ToolResult,
    UnknownPart,
};
use serde_json::Value;

use super::{FORMAT, hosted};
use crate::WireError;
use crate::expect::{kind_of_mime, new_media, share};
use crate::json::{self, ValueKind};
use crate::openai_chat::split_data_url;

/// Finds a call by its id.
pub(super) type Calls<'a> = &'a dyn Fn(&str) -> Option<&'a ToolCall>;

/// Reads a part from a content of `whole` whose members under [`NAMES`] are known.
pub(super) fn read(whole: &Arc<str>, found: &Found<'_>) -> Result<Part, WireError> {
    read_within(whole, found, NESTING_MAX)
}

/// Reads a content with results up to `levels` deep. A deeper result stays unchanged.
fn read_within(whole: &Arc<str>, found: &Found<'_>, levels: usize) -> Result<Part, WireError> {
    let raw = found.object();
    // The framework's constructor accepts a bare text as a text content.
    if ValueKind::of(raw) == ValueKind::Text {
        return Ok(Part::Text(share(whole, &json::decode(raw))));
    }
    if ValueKind::of(raw) != ValueKind::Object {
        return Err(WireError::shape("a content is an object or a text"));
    }
    let content = Content { whole, found };
    let Some(kind) = content.optional("type")? else {
        return Err(WireError::shape("a content has a `type`").inside("/type", 0));
    };
    Ok(match &*kind {
        "text" => Part::Text(content.text("text")?),
        "text_reasoning" => Part::Reasoning(content.reasoning()?),
        "function_call" => Part::ToolCall(content.call()?),
        "function_result" if levels > 0 => Part::ToolResult(content.result(levels.saturating_sub(1))?),
        "data" | "uri" if content.optional("uri")?.is_some() => Part::Media(content.media()?),
        "function_approval_request" => Part::ApprovalRequest(content.approval()?),
        "function_approval_response" => {
            let approved = content.found.get("approved")? == Some("true");
            Part::ApprovalResponse(ApprovalAnswer::new(content.approval()?, approved))
        }
        _ => {
            let known = if levels > 0 { hosted::part(whole, raw, &kind)? } else { None };
            known.unwrap_or_else(|| Part::Unknown(UnknownPart::new(FORMAT, kind, share(whole, raw))))
        }
    })
}

/// The parts of a list of contents within a result. Nested results stay unchanged.
pub(super) fn read_list(whole: &Arc<str>, list: &str) -> Result<Vec<Part>, WireError> {
    let mut parts = Vec::new();
    json::known::items_and_members(list, &NAMES, |item| {
        parts.push(read_within(whole, &item, 0)?);
        Ok(())
    })?;
    Ok(parts)
}

/// The known members of a content.
pub(super) type Found<'a> = json::known::Members<'a, { NAMES.len() }>;

/// The keys of a content that are read, in a single scan, because a content may be long.
pub(super) const NAMES: [&str; 15] = [
    "type",
    "text",
    "protected_data",
    "id",
    "call_id",
    "name",
    "arguments",
    "hosted",
    "items",
    "exception",
    "result",
    "uri",
    "media_type",
    "approved",
    "function_call",
];

/// A content that is an object.
struct Content<'a> {
    whole: &'a Arc<str>,
    found: &'a Found<'a>,
}

impl Content<'_> {
    /// The text of a member, if it is a text.
    fn optional(&self, key: &'static str) -> Result<Option<Str>, WireError> {
        let value = self.found.get(key)?.filter(|value| ValueKind::of(value) == ValueKind::Text);
        Ok(value.map(|value| share(self.whole, &json::decode(value))))
    }

    fn text(&self, key: &'static str) -> Result<Str, WireError> {
        Ok(self.optional(key)?.unwrap_or_default())
    }

    fn reasoning(&self) -> Result<Reasoning, WireError> {
        let mut reasoning = Reasoning::new(self.text("text")?);
        reasoning.opaque = self.optional("protected_data")?;
        reasoning.id = self.optional("id")?;
        Ok(reasoning)
    }

    /// The text of a member with any value; none for null.
    fn any(&self, key: &'static str) -> Result<Option<Str>, WireError> {
        let value = self.found.get(key)?.filter(|value| *value != "null");
        Ok(value.map(|value| match ValueKind::of(value) {
            ValueKind::Text => share(self.whole, &json::decode(value)),
            _ => share(self.whole, value),
        }))
    }

    fn call(&self) -> Result<ToolCall, WireError> {
        let arguments = self.any("arguments")?.unwrap_or_default();
        let mut call = ToolCall::new(self.text("call_id")?, self.text("name")?, arguments);
        if self.found.get("hosted")? == Some("true") {
            call.kind = CallKind::Hosted;
        }
        Ok(call)
    }

    fn result(&self, levels: usize) -> Result<ToolResult, WireError> {
        let failed = self.found.get("exception")?;
        let parts = match self.found.get("items")?.filter(|items| ValueKind::of(items) == ValueKind::Array) {
            Some(items) => json::nested(self.found.object(), items, "/items", |items| {
                let mut parts = Vec::new();
                json::known::items_and_members(self.found.within(items), &NAMES, |item| {
                    let path = format_args!("/{}", parts.len());
                    let read = |_| read_within(self.whole, &item, levels);
                    parts.push(json::nested(items, item.object(), path, read)?);
                    Ok(())
                })?;
                Ok(parts)
            })?,
            None => self.any("result")?.map(Part::Text).into_iter().collect(),
        };
        let mut result = ToolResult::new(self.text("call_id")?, parts);
        result.is_error = failed.is_some_and(|failed| failed != "null");
        Ok(result)
    }

    fn media(&self) -> Result<Media, WireError> {
        let uri = self.text("uri")?;
        let (written, source) = match split_data_url(&uri) {
            Some((mime, bytes)) => (share(self.whole, mime), MediaSource::Base64(share(self.whole, bytes))),
            None => (Str::default(), MediaSource::Uri(uri.clone())),
        };
        let mime = self.optional("media_type")?.unwrap_or(written);
        let kind = kind_of_mime(&mime);
        Ok(new_media(kind, mime, source))
    }

    fn approval(&self) -> Result<Approval, WireError> {
        let call = self.found.get("function_call")?.filter(|call| ValueKind::of(call) == ValueKind::Object);
        let call_id = match call {
            Some(call) => {
                json::known::field(call, "call_id")?.filter(|id| ValueKind::of(id) == ValueKind::Text)
            }
            None => None,
        };
        let call_id = call_id.map(|id| share(self.whole, &json::decode(id))).unwrap_or_default();
        Ok(Approval::new(self.text("id")?, call_id))
    }
}

/// Writes `part` as a content; `None` if no content type of the framework represents it. `calls` finds a call by its
/// id.
pub(super) fn write(part: &Part, calls: Calls<'_>) -> Option<Value> {
    let mut content = match part {
        Part::Text(text) => serde_json::json!({"type": "text", "text": text.as_str()}),
        Part::Reasoning(reasoning) => write_reasoning(reasoning),
        Part::ToolCall(call) => write_call(call),
        Part::ToolResult(result) => write_result(result, calls),
        Part::Media(media) => write_media(media),
        Part::ApprovalRequest(approval) => serde_json::json!({
            "type": "function_approval_request", "id": approval.id.as_str(), "user_input_request": true,
            "function_call": called(approval, calls),
        }),
        Part::ApprovalResponse(answer) => serde_json::json!({
            "type": "function_approval_response", "id": answer.approval.id.as_str(), "approved": answer.approved,
            "function_call": called(&answer.approval, calls),
        }),
        Part::Compaction(compaction) if !compaction.text.is_empty() => {
            serde_json::json!({"type": "text", "text": compaction.text.as_str()})
        }
        Part::Unknown(unknown) if unknown.format == FORMAT => return serde_json::from_str(&unknown.raw).ok(),
        Part::Compaction(_) | Part::Unknown(_) => return None,
    };
    if let Value::Object(content) = &mut content {
        content.insert("additional_properties".to_owned(), serde_json::json!({}));
    }
    Some(content)
}

fn write_reasoning(reasoning: &Reasoning) -> Value {
    let mut content = serde_json::json!({"type": "text_reasoning", "text": reasoning.text.as_str()});
    let texts = [("protected_data", &reasoning.opaque), ("id", &reasoning.id)];
    for (key, text) in texts {
        if let (Some(text), Value::Object(content)) = (text, &mut content) {
            content.insert(key.to_owned(), Value::from(text.as_str()));
        }
    }
    content
}

fn write_call(call: &ToolCall) -> Value {
    serde_json::json!({
        "type": "function_call", "call_id": call.id.as_str(), "name": call.name.as_str(),
        "arguments": call.arguments.as_str(), "hosted": call.kind == CallKind::Hosted,
    })
}

fn write_result(result: &ToolResult, calls: Calls<'_>) -> Value {
    let items: Vec<Value> = result.parts.iter().filter_map(|part| write(part, calls)).collect();
    let texts = result.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let mut content = serde_json::json!({
        "type": "function_result", "call_id": result.call_id.as_str(), "result": text, "items": items,
    });
    if let (true, Value::Object(content)) = (result.is_error, &mut content) {
        // The framework's own `to_dict` replaces the text of every failure by this one.
        content.insert("exception".to_owned(), Value::from("FunctionInvocationError"));
    }
    content
}

fn write_media(media: &Media) -> Value {
    // The framework requires a type. RFC 2046 defines `application/octet-stream` for bytes of unknown kind.
    let mime = match media.likely_mime() {
        "" => "application/octet-stream",
        mime => mime,
    };
    match &media.source {
        MediaSource::Base64(bytes) => {
            serde_json::json!({"type": "data", "uri": format!("data:{mime};base64,{}", bytes.as_str()), "media_type": mime})
        }
        MediaSource::Uri(uri) => serde_json::json!({"type": "uri", "uri": uri.as_str(), "media_type": mime}),
    }
}

/// The call of an approval. Our approval has only the id of the call, the framework's has the whole call.
fn called(approval: &Approval, calls: Calls<'_>) -> Value {
    let call = calls(&approval.call_id);
    let mut call =
        call.map_or_else(|| write_call(&ToolCall::new(approval.call_id.clone(), "", "")), write_call);
    if let Value::Object(call) = &mut call {
        call.insert("additional_properties".to_owned(), serde_json::json!({}));
    }
    call
}
