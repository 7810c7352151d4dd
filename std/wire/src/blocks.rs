//! Blocks with the names of Anthropic's blocks, in the files of agents that extend them. The blocks are read with
//! slots.

use std::sync::Arc;

use epitome_core::message::MediaKind;
use epitome_message::{MediaSource, Part, Reasoning, Str, ToolCall, ToolResult};

use super::WireError;
use super::expect::{expect_object, kind_of_mime, linked_media, new_media, share};
use super::json::known::Members;
use super::json::{self, ValueKind};
use super::slots::{RecordPart, SlotForm, blocks};

/// Reads the block `raw` as a part. An empty text is no part. For an unknown block the result is its type.
pub(crate) fn block<'a>(
    whole: &Arc<str>,
    raw: &'a str,
) -> Result<Result<Option<RecordPart<'a>>, Str>, WireError> {
    expect_object(raw, "a block")?;
    let found = Members::of(raw, &NAMES);
    let kind = found.text(whole, "type")?;
    Ok(Ok(Some(match &*kind {
        "text" => return Ok(Ok(RecordPart::text(whole, found.get("text")?))),
        "thinking" | "reasoning" => {
            let said = found.get("thinking")?.or(found.get("text")?);
            let said = said.filter(|said| ValueKind::of(said) == ValueKind::Text);
            let mut reasoning =
                Reasoning::new(said.map(|said| share(whole, &json::decode(said))).unwrap_or_default());
            reasoning.opaque = Some(found.text(whole, "signature")?).filter(|sealed| !sealed.is_empty());
            if reasoning == Reasoning::new("") {
                return Ok(Ok(None));
            }
            let slot = said.filter(|_| reasoning.opaque.is_none());
            RecordPart::new(Part::Reasoning(reasoning)).with_slot(slot, SlotForm::Text)
        }
        "redacted_thinking" => {
            let mut sealed = Reasoning::new("");
            sealed.opaque = Some(found.text(whole, "data")?);
            RecordPart::new(Part::Reasoning(sealed))
        }
        "tool_use" => {
            let input = found.get("input")?;
            let arguments = share(whole, input.unwrap_or("{}"));
            let call = ToolCall::new(found.text(whole, "id")?, found.text(whole, "name")?, arguments);
            RecordPart::new(Part::ToolCall(call)).with_slot(input, SlotForm::Arguments)
        }
        "tool_result" => result(whole, raw, &found)?,
        "image" => match image(whole, raw, &found)? {
            Some(image) => image,
            None => return Ok(Err(kind)),
        },
        // A file that the user named: the model was sent its text.
        "file" if found.get("content")?.is_some_and(|content| ValueKind::of(content) == ValueKind::Text) => {
            return Ok(Ok(RecordPart::text(whole, found.get("content")?)));
        }
        _ => return Ok(Err(kind)),
    })))
}

/// Reads a result: a text, a list of blocks, or any other value as its JSON.
fn result<'a, const N: usize>(
    whole: &Arc<str>,
    raw: &'a str,
    found: &Members<'a, N>,
) -> Result<RecordPart<'a>, WireError> {
    let (id, content) = (found.text(whole, "tool_use_id")?, found.get("content")?);
    let list = content.filter(|content| ValueKind::of(content) == ValueKind::Array);
    let inner = match list {
        Some(list) => json::nested(raw, list, "/content", |list| items(whole, list))?,
        None => None,
    };
    let mut noted = match inner {
        Some(inner) => RecordPart::result(ToolResult::new(id, Vec::new()), inner)
            .with_slot(list, SlotForm::Around(r#"[{"type":"text","text":"#, "}]")),
        None => RecordPart::tool_result(whole, id, content),
    };
    if let Part::ToolResult(result) = &mut noted.part {
        result.is_error = found.get("is_error")? == Some("true");
    }
    Ok(noted)
}

/// Reads the blocks of a result. `None` if one of them has another type or is no block.
fn items<'a>(whole: &Arc<str>, list: &'a str) -> Result<Option<Vec<RecordPart<'a>>>, WireError> {
    let mut inner = Some(Vec::new());
    blocks(list, |raw| {
        let is_block = ValueKind::of(raw) == ValueKind::Object
            && matches!(json::known::field(raw, "type")?, Some("\"text\"" | "\"image\"" | "\"file\""));
        match (is_block.then(|| block(whole, raw)).transpose()?, &mut inner) {
            (Some(Ok(noted)), Some(inner)) => inner.extend(noted),
            _ => inner = None,
        }
        Ok(())
    })?;
    Ok(inner)
}

/// Reads an image: by Anthropic's `source`, or with the data as members of the block.
fn image<'a, const N: usize>(
    whole: &Arc<str>,
    raw: &'a str,
    found: &Members<'a, N>,
) -> Result<Option<RecordPart<'a>>, WireError> {
    let note = SlotForm::Around(r#"{"type":"text","text":"#, "}");
    let media = match found.get("source")?.filter(|source| ValueKind::of(source) == ValueKind::Object) {
        Some(source) => {
            let source = Members::of(source, &["media_type", "data", "url"]);
            let (mime, data) = (source.text(whole, "media_type")?, source.text(whole, "data")?);
            let url = source.text(whole, "url")?;
            match (data.is_empty(), url.is_empty()) {
                (false, _) => new_media(MediaKind::Image, mime, MediaSource::Base64(data)),
                (true, false) => linked_media(whole, mime, &url),
                (true, true) => return Ok(None),
            }
        }
        None => {
            let (mime, data) = (found.text(whole, "mediaType")?, found.text(whole, "data")?);
            if data.is_empty() {
                return Ok(None);
            }
            new_media(kind_of_mime(&mime), mime, MediaSource::Base64(data))
        }
    };
    Ok(Some(RecordPart::new(Part::Media(media)).with_slot(Some(raw), note)))
}

/// The keys of a block.
const NAMES: [&str; 13] = [
    "type",
    "text",
    "thinking",
    "signature",
    "data",
    "id",
    "name",
    "input",
    "tool_use_id",
    "content",
    "is_error",
    "source",
    "mediaType",
];
