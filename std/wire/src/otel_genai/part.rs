//! Parts of messages.

use std::sync::Arc;

use epitome_core::message::{CallKind, MediaKind};
use epitome_message::{MediaSource, Part, Reasoning, Str, ToolCall, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, kind_of_mime, new_media, share};
use crate::json::ValueKind;
use crate::json::known::Members;
use crate::slots::{RecordPart, SlotForm};

/// The part of `block`, and whether it belongs to a tool that a server ran.
pub(super) fn part<'a>(
    whole: &Arc<str>,
    block: &'a str,
) -> Result<(Option<RecordPart<'a>>, bool), WireError> {
    expect_object(block, "a part")?;
    let found = Members::of(block, &NAMES);
    let kind = found.text(whole, "type")?;
    let noted = match &*kind {
        "text" => RecordPart::text(whole, found.get("content")?),
        "reasoning" | "thinking" => {
            let reasoning = Reasoning::new(found.text(whole, "content")?);
            let noted = RecordPart::new(Part::Reasoning(reasoning.clone()));
            (!reasoning.text.is_empty()).then_some(noted.with_slot(found.get("content")?, SlotForm::Text))
        }
        "tool_call" => Some(call(whole, &found, "arguments", CallKind::Function)?),
        "server_tool_call" => {
            return Ok((Some(call(whole, &found, "server_tool_call", CallKind::Hosted)?), true));
        }
        "tool_call_response" => {
            let outcome = found.get("response")?.or(found.get("result")?);
            Some(RecordPart::tool_result(whole, found.text(whole, "id")?, outcome))
        }
        "server_tool_call_response" => {
            let outcome = found.get("server_tool_call_response")?;
            return Ok((Some(RecordPart::tool_result(whole, found.text(whole, "id")?, outcome)), true));
        }
        "blob" | "uri" | "file" => Some(media(whole, block, &found)?),
        _ => {
            Some(RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, kind.clone(), share(whole, block)))))
        }
    };
    Ok((noted, false))
}

/// A call with its arguments under `key`: a JSON value, or a text that the model has written.
fn call<'a, const N: usize>(
    whole: &Arc<str>,
    found: &Members<'a, N>,
    key: &'static str,
    kind: CallKind,
) -> Result<RecordPart<'a>, WireError> {
    let raw = found.get(key)?.filter(|raw| *raw != "null");
    let is_text = raw.is_some_and(|raw| ValueKind::of(raw) == ValueKind::Text);
    let arguments = if is_text { found.text(whole, key)? } else { share(whole, raw.unwrap_or("{}")) };
    let mut call = ToolCall::new(found.text(whole, "id")?, found.text(whole, "name")?, arguments);
    call.kind = kind;
    let form = if is_text { SlotForm::Text } else { SlotForm::Arguments };
    Ok(RecordPart::new(Part::ToolCall(call)).with_slot(raw, form))
}

fn media<'a, const N: usize>(
    whole: &Arc<str>,
    block: &'a str,
    found: &Members<'a, N>,
) -> Result<RecordPart<'a>, WireError> {
    let mime = found.text(whole, "mime_type")?;
    let kind = match &*found.text(whole, "modality")? {
        "image" => MediaKind::Image,
        "audio" => MediaKind::Audio,
        "video" => MediaKind::Video,
        _ => kind_of_mime(&mime),
    };
    let (data, uri, id) =
        (found.text(whole, "content")?, found.text(whole, "uri")?, found.text(whole, "file_id")?);
    let source = match data.is_empty() {
        false => MediaSource::Base64(data),
        true => MediaSource::Uri(
            [uri, id].into_iter().find(|place| !place.is_empty()).unwrap_or_else(Str::default),
        ),
    };
    let note = SlotForm::Around(r#"{"type":"text","content":"#, "}");
    Ok(RecordPart::new(Part::Media(new_media(kind, mime, source))).with_slot(Some(block), note))
}

/// The keys of a part.
const NAMES: [&str; 13] = [
    "type",
    "content",
    "id",
    "name",
    "arguments",
    "response",
    "result",
    "server_tool_call",
    "server_tool_call_response",
    "mime_type",
    "modality",
    "uri",
    "file_id",
];
