//! Blocks of content as parts.

use std::sync::Arc;

use epitome_core::message::{CallKind, MediaKind};
use epitome_message::{MediaSource, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, kind_of_mime, new_media, share};
use crate::json::known::Members;
use crate::json::{self, ValueKind};
use crate::slots::{RecordPart, SlotForm, blocks};

/// The part of a block, and whether it belongs to a tool that the service ran.
pub(super) fn part<'a>(
    whole: &Arc<str>,
    block: &'a str,
) -> Result<(Option<RecordPart<'a>>, bool), WireError> {
    expect_object(block, "a block")?;
    let found = Members::of(block, &NAMES);
    let under =
        |key| Ok::<_, WireError>(found.get(key)?.filter(|value| ValueKind::of(value) == ValueKind::Object));
    if let Some(said) = found.get("text")? {
        return Ok((RecordPart::text(whole, Some(said)), false));
    }
    if let Some(call) = under("toolUse")? {
        return json::nested(block, call, "/toolUse", |call| self::call(whole, call));
    }
    if let Some(outcome) = under("toolResult")? {
        return json::nested(block, outcome, "/toolResult", |outcome| result(whole, outcome));
    }
    if let Some(thought) = under("reasoningContent")? {
        let noted = json::nested(block, thought, "/reasoningContent", |thought| reasoning(whole, thought))?;
        return Ok((noted, false));
    }
    if let Some(guarded) = under("guardContent")? {
        let inner =
            json::known::field(guarded, "text")?.filter(|inner| ValueKind::of(inner) == ValueKind::Object);
        let said = inner.map(|inner| json::known::field(inner, "text")).transpose()?.flatten();
        return Ok((RecordPart::text(whole, said), false));
    }
    if found.get("cachePoint")?.is_some() {
        return Ok((None, false));
    }
    Ok((Some(media(whole, block, &found)?.unwrap_or_else(|| unknown(whole, block))), false))
}

/// A part of an unknown kind. Its kind is its first key.
fn unknown<'a>(whole: &Arc<str>, block: &'a str) -> RecordPart<'a> {
    let mut kind = Str::default();
    let _ = json::members(block, |key, _| {
        if kind.is_empty() {
            kind = Str::from(&*key);
        }
        Ok(())
    });
    RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, kind, share(whole, block))))
}

fn call<'a>(whole: &Arc<str>, raw: &'a str) -> Result<(Option<RecordPart<'a>>, bool), WireError> {
    let found = Members::of(raw, &["toolUseId", "name", "input", "type"]);
    let input = found.get("input")?;
    let arguments = share(whole, input.unwrap_or("{}"));
    let mut call = ToolCall::new(found.text(whole, "toolUseId")?, found.text(whole, "name")?, arguments);
    let is_hosted = !found.text(whole, "type")?.is_empty();
    if is_hosted {
        call.kind = CallKind::Hosted;
    }
    Ok((Some(RecordPart::new(Part::ToolCall(call)).with_slot(input, SlotForm::Arguments)), is_hosted))
}

fn result<'a>(whole: &Arc<str>, raw: &'a str) -> Result<(Option<RecordPart<'a>>, bool), WireError> {
    let found = Members::of(raw, &["toolUseId", "content", "status", "type"]);
    let list = found.get("content")?.filter(|list| ValueKind::of(list) == ValueKind::Array);
    let mut inner = Vec::new();
    if let Some(list) = list {
        json::nested(raw, list, "/content", |list| {
            blocks(list, |block| {
                inner.extend(item(whole, block)?);
                Ok(())
            })
        })?;
    }
    let mut noted = RecordPart::result(ToolResult::new(found.text(whole, "toolUseId")?, Vec::new()), inner);
    if let Part::ToolResult(result) = &mut noted.part {
        result.is_error = found.text(whole, "status")? == "error";
    }
    let noted = noted.with_slot(list, SlotForm::Around(r#"[{"text":"#, "}]"));
    Ok((Some(noted), !found.text(whole, "type")?.is_empty()))
}

/// A block of a result.
fn item<'a>(whole: &Arc<str>, block: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
    expect_object(block, "a block of a result")?;
    let found = Members::of(block, &["text", "json", "image", "document", "video", "audio"]);
    if let Some(said) = found.get("text")? {
        return Ok(RecordPart::text(whole, Some(said)));
    }
    if let Some(tree) = found.get("json")? {
        return Ok(Some(RecordPart::new(Part::Text(share(whole, tree))).with_slot(Some(block), TEXT_BLOCK)));
    }
    Ok(Some(media(whole, block, &found)?.unwrap_or_else(|| unknown(whole, block))))
}

fn reasoning<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
    let found = Members::of(raw, &["reasoningText", "redactedContent"]);
    let Some(said) = found.get("reasoningText")?.filter(|said| ValueKind::of(said) == ValueKind::Object)
    else {
        // Bytes are a text in base64. Another form, from a program that serializes them differently, stays unchanged.
        let mut sealed = Reasoning::new("");
        sealed.opaque = found.get("redactedContent")?.map(|raw| match ValueKind::of(raw) {
            ValueKind::Text => share(whole, &json::decode(raw)),
            _ => share(whole, raw),
        });
        return Ok(Some(RecordPart::new(Part::Reasoning(sealed))));
    };
    let said = Members::of(said, &["text", "signature"]);
    let mut reasoning = Reasoning::new(said.text(whole, "text")?);
    reasoning.opaque = Some(said.text(whole, "signature")?).filter(|signature| !signature.is_empty());
    if reasoning == Reasoning::new("") {
        return Ok(None);
    }
    let slot = said.get("text")?.filter(|_| reasoning.opaque.is_none());
    Ok(Some(RecordPart::new(Part::Reasoning(reasoning)).with_slot(slot, SlotForm::Text)))
}

/// An image, a document, a video or a sound, with its bytes or its location.
fn media<'a, const N: usize>(
    whole: &Arc<str>,
    block: &'a str,
    found: &Members<'a, N>,
) -> Result<Option<RecordPart<'a>>, WireError> {
    for (key, mime) in MEDIA {
        let Some(raw) = found.get(key)?.filter(|raw| ValueKind::of(raw) == ValueKind::Object) else {
            continue;
        };
        let media = Members::of(raw, &["format", "source"]);
        let Some(source) = media.get("source")?.filter(|source| ValueKind::of(source) == ValueKind::Object)
        else {
            return Ok(None);
        };
        let source = Members::of(source, &["bytes", "s3Location"]);
        let bytes = source.get("bytes")?.filter(|bytes| ValueKind::of(bytes) == ValueKind::Text);
        let place = source.get("s3Location")?.filter(|place| ValueKind::of(place) == ValueKind::Object);
        let source = match (bytes, place) {
            (Some(bytes), _) => MediaSource::Base64(share(whole, &json::decode(bytes))),
            (None, Some(place)) => MediaSource::Uri(Members::of(place, &["uri"]).text(whole, "uri")?),
            (None, None) => return Ok(None),
        };
        let mime = Str::from(format!("{mime}/{}", &*media.text(whole, "format")?));
        let kind = if key == "document" { MediaKind::Document } else { kind_of_mime(&mime) };
        let media = Part::Media(new_media(kind, mime, source));
        return Ok(Some(RecordPart::new(media).with_slot(Some(block), TEXT_BLOCK)));
    }
    Ok(None)
}

/// A note in the place of a block.
const TEXT_BLOCK: SlotForm = SlotForm::Around(r#"{"text":"#, "}");

/// The keys of media, and the beginning of their MIME type.
const MEDIA: [(&str, &str); 4] =
    [("image", "image"), ("document", "application"), ("video", "video"), ("audio", "audio")];

/// The keys of a block.
const NAMES: [&str; 10] = [
    "text",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "guardContent",
    "cachePoint",
    "image",
    "document",
    "video",
    "audio",
];
