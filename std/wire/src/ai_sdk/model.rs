//! Messages in the form in which they are sent: calls in messages of the model, results in messages of role `tool`.

use std::collections::HashSet;
use std::sync::Arc;

use epitome_core::message::{CallKind, Role};
use epitome_message::{Approval, ApprovalAnswer, MediaSource, Part, Str, ToolCall, ToolResult, UnknownPart};

use super::FORMAT;
use super::ui::{TEXT_PART, reasoning};
use crate::WireError;
use crate::expect::{expect_object, kind_of_mime, linked_media, new_media, share};
use crate::json::known::Members;
use crate::json::{self, ValueKind};
use crate::slots::{RecordMessage, RecordMessages, RecordPart, SlotForm, blocks};

/// The messages from a message with a list of parts under `content`.
pub(super) fn pieces<'a>(
    whole: &Arc<str>,
    raw: &'a str,
    role: Role,
    content: &'a str,
) -> Result<Vec<RecordMessage<'a>>, WireError> {
    // A message of role `tool` may have answers of a person next to the results.
    let mut pieces = RecordMessages::new(if role == Role::Tool { Role::User } else { role });
    let mut hosted = HashSet::new();
    json::nested(raw, content, "/content", |list| {
        blocks(list, |block| {
            let noted = part(whole, block)?.map(|noted| noted.with_element(list, block));
            let is_hosted = match noted.as_ref().map(|noted| &noted.part) {
                Some(Part::ToolCall(call)) if call.kind == CallKind::Hosted => hosted.insert(call.id.clone()),
                Some(Part::ToolResult(result)) => hosted.contains(&result.call_id),
                _ => false,
            };
            match is_hosted {
                true => pieces.extend_own(block, noted),
                false => pieces.extend(block, noted),
            }
            Ok(())
        })
    })?;
    Ok(pieces.into_list())
}

fn part<'a>(whole: &Arc<str>, block: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
    expect_object(block, "a part")?;
    let found = Members::of(block, &NAMES);
    let kind = found.text(whole, "type")?;
    Ok(Some(match &*kind {
        "text" => return Ok(RecordPart::text(whole, found.get("text")?)),
        "reasoning" => return reasoning(whole, block, found.get("text")?),
        "tool-call" => {
            let input = found.get("input")?.or(found.get("args")?);
            let (id, name) = (found.text(whole, "toolCallId")?, found.text(whole, "toolName")?);
            let mut call = ToolCall::new(id, name, share(whole, input.unwrap_or("{}")));
            if found.get("providerExecuted")? == Some("true") {
                call.kind = CallKind::Hosted;
            }
            RecordPart::new(Part::ToolCall(call)).with_slot(input, SlotForm::Arguments)
        }
        "tool-result" => result(whole, &found)?,
        "tool-approval-request" => RecordPart::new(Part::ApprovalRequest(approval(whole, &found)?)),
        "tool-approval-response" => {
            let approved = found.get("approved")? == Some("true");
            RecordPart::new(Part::ApprovalResponse(ApprovalAnswer::new(approval(whole, &found)?, approved)))
        }
        "image" | "file" => match media(whole, block)? {
            Some(media) => media,
            None => unknown(whole, kind, block),
        },
        _ => unknown(whole, kind, block),
    }))
}

fn unknown<'a>(whole: &Arc<str>, kind: Str, block: &'a str) -> RecordPart<'a> {
    RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, kind, share(whole, block))))
}

fn approval<const N: usize>(whole: &Arc<str>, found: &Members<'_, N>) -> Result<Approval, WireError> {
    Ok(Approval::new(found.text(whole, "approvalId")?, found.text(whole, "toolCallId")?))
}

/// Reads a result. Version 5 and later have `output` with the name of its form, earlier versions `result` with any
/// value.
fn result<'a, const N: usize>(whole: &Arc<str>, found: &Members<'a, N>) -> Result<RecordPart<'a>, WireError> {
    let id = found.text(whole, "toolCallId")?;
    let Some(outcome) = found.get("output")?.filter(|outcome| ValueKind::of(outcome) == ValueKind::Object)
    else {
        let mut noted = RecordPart::tool_result(whole, id, found.get("result")?);
        mark(&mut noted, found.get("isError")? == Some("true"));
        return Ok(noted);
    };
    let form = Members::of(outcome, &["type", "value", "reason"]);
    let kind = form.text(whole, "type")?;
    let mut noted = match (&*kind, form.get("value")?) {
        ("content", Some(list)) if ValueKind::of(list) == ValueKind::Array => {
            let mut inner = Vec::new();
            json::nested(outcome, list, "/value", |list| {
                blocks(list, |block| {
                    inner.extend(content(whole, block)?);
                    Ok(())
                })
            })?;
            let whole_output = SlotForm::Around(r#"{"type":"text","value":"#, "}");
            RecordPart::result(ToolResult::new(id, Vec::new()), inner).with_slot(Some(outcome), whole_output)
        }
        ("execution-denied", _) => RecordPart::tool_result(whole, id, form.get("reason")?),
        (_, value) => RecordPart::tool_result(whole, id, value),
    };
    mark(&mut noted, kind.starts_with("error") || kind == "execution-denied");
    Ok(noted)
}

fn mark(noted: &mut RecordPart<'_>, is_error: bool) {
    if let Part::ToolResult(result) = &mut noted.part {
        result.is_error = is_error;
    }
}

/// A part of a result.
fn content<'a>(whole: &Arc<str>, block: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
    expect_object(block, "a part of a result")?;
    let found = Members::of(block, &["type", "text"]);
    let kind = found.text(whole, "type")?;
    if kind == "text" {
        return Ok(RecordPart::text(whole, found.get("text")?));
    }
    Ok(Some(media(whole, block)?.unwrap_or_else(|| unknown(whole, kind, block))))
}

/// Media in any of the forms of the SDK. `None` if only one provider knows their name, or if the value is no text.
fn media<'a>(whole: &Arc<str>, block: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
    let found = Members::of(block, &["type", "image", "data", "url", "mediaType", "mimeType"]);
    let is_image = found.text(whole, "type")?.starts_with("image");
    let mime = found.text(whole, "mediaType")?;
    let mut mime = if mime.is_empty() { found.text(whole, "mimeType")? } else { mime };
    if mime.is_empty() && is_image {
        mime = Str::from("image/*");
    }
    let place = found.get("image")?.or(found.get("data")?).or(found.get("url")?);
    let Some(place) = place.filter(|place| ValueKind::of(place) == ValueKind::Text) else { return Ok(None) };
    let place = share(whole, &json::decode(place));
    let media = match place.starts_with("data:") || place.contains("://") {
        true => linked_media(whole, mime, &place),
        false => new_media(kind_of_mime(&mime), mime, MediaSource::Base64(place)),
    };
    Ok(Some(RecordPart::new(Part::Media(media)).with_slot(Some(block), TEXT_PART)))
}

/// The keys of a part.
const NAMES: [&str; 12] = [
    "type",
    "text",
    "toolCallId",
    "toolName",
    "input",
    "args",
    "output",
    "result",
    "isError",
    "providerExecuted",
    "approvalId",
    "approved",
];
