//! Content blocks as parts.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use epitome_core::message::{CallKind, MediaKind};
use epitome_message::{
    CompactionPart, Media, MediaSource, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart,
};

use super::{FORMAT, PROVIDER, hosted};
use crate::WireError;
use crate::expect::{expect_object, expect_text, new_media, optional_text, present, share};
use crate::json::known::Value;
use crate::json::{self, ValueKind};

/// The parts of `content`, a text or a list of blocks, each with the text of its block. Empty texts are no parts.
pub(super) fn parts<'a>(
    whole: &Arc<str>,
    content: impl Into<Value<'a>>,
) -> Result<Vec<(Option<Part>, &'a str)>, WireError> {
    parts_in(whole, content.into(), Where::Message)
}

/// The place of a block. A result within a result is no block of the format: it stays unchanged, so that no text makes
/// the reader recurse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Message,
    Result,
}

fn parts_in<'a>(
    whole: &Arc<str>,
    value: Value<'a>,
    place: Where,
) -> Result<Vec<(Option<Part>, &'a str)>, WireError> {
    let content = value.text();
    match ValueKind::of(content) {
        ValueKind::Text => Ok(vec![(text_part(whole, json::decode(content)), content)]),
        ValueKind::Array => {
            let mut blocks = Vec::new();
            json::known::items_and_fields(value, &FIELDS, |item, fields| {
                let path = format_args!("/{}", blocks.len());
                let fields = fields.map(Fields::new);
                let read = |item| part(whole, value.within(item), fields, place);
                blocks.push((json::nested(content, item, path, read)?, item));
                Ok(())
            })?;
            Ok(blocks)
        }
        _ => {
            let found = json::describe(content);
            Err(WireError::shape(format!("expected a text or a list of blocks, found {found}")))
        }
    }
}

/// The members of a block that are read, unchanged, in a single scan, because a block may be long.
struct Fields<'a> {
    kind: Option<&'a str>,
    text: Option<&'a str>,
    thinking: Option<&'a str>,
    signature: Option<&'a str>,
    data: Option<&'a str>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    input: Option<&'a str>,
    answers: Option<&'a str>,
    content: Option<&'a str>,
    is_error: Option<&'a str>,
    source: Option<&'a str>,
}

impl<'a> Fields<'a> {
    const fn new(values: [Option<&'a str>; 12]) -> Self {
        let [kind, text, thinking, signature, data, id, name, input, answers, content, is_error, source] =
            values;
        Self { kind, text, thinking, signature, data, id, name, input, answers, content, is_error, source }
    }
}

/// The keys of [`Fields`], in their order.
const FIELDS: [&str; 12] = [
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
];

/// Reads the block `raw` as a part; none for an empty text.
fn part<'a>(
    whole: &Arc<str>,
    block: Value<'a>,
    fields: Result<Fields<'a>, WireError>,
    place: Where,
) -> Result<Option<Part>, WireError> {
    let raw = block.text();
    expect_object(raw, "a block")?;
    let fields = fields?;
    let Some(kind) = optional_text(raw, fields.kind, "type")? else {
        return Err(WireError::shape(format!("expected a block with `type`, found {}", json::describe(raw))));
    };
    let unknown = || Part::Unknown(UnknownPart::new(NAME.clone(), share(whole, &kind), share(whole, raw)));
    Ok(Some(match &*kind {
        "text" => return Ok(text_part(whole, needed(raw, fields.text, "text")?)),
        "thinking" => reasoning(whole, raw, &fields)?,
        "redacted_thinking" => {
            let mut sealed = Reasoning::new(Str::default());
            sealed.opaque = Some(share(whole, &needed(raw, fields.data, "data")?));
            sealed.id = Some(REDACTED.clone());
            Part::Reasoning(sealed)
        }
        "tool_use" => call(whole, raw, &fields, CallKind::Function)?,
        "server_tool_use" | "mcp_tool_use" => call(whole, raw, &fields, CallKind::Hosted)?,
        // A type that is not known yet.
        other if other.ends_with("_tool_use") && fields.name.is_some() => {
            call(whole, raw, &fields, CallKind::Hosted)?
        }
        "image" => media(whole, raw, &fields, MediaKind::Image)?.map_or_else(unknown, Part::Media),
        "document" => media(whole, raw, &fields, MediaKind::Document)?.map_or_else(unknown, Part::Media),
        "compaction" => compaction(whole, raw)?,
        other if other.ends_with("tool_result") && place == Where::Message => result(whole, block, &fields)?,
        _ => unknown(),
    }))
}

fn text_part(whole: &Arc<str>, text: Cow<'_, str>) -> Option<Part> {
    if text.is_empty() { None } else { Some(Part::Text(share(whole, &text))) }
}

fn reasoning(whole: &Arc<str>, raw: &str, fields: &Fields<'_>) -> Result<Part, WireError> {
    let text = optional_text(raw, fields.thinking, "thinking")?.unwrap_or_default();
    let mut reasoning = Reasoning::new(share(whole, &text));
    let signature =
        optional_text(raw, fields.signature, "signature")?.filter(|signature| !signature.is_empty());
    reasoning.opaque = signature.map(|signature| share(whole, &signature));
    Ok(Part::Reasoning(reasoning))
}

fn call(whole: &Arc<str>, raw: &str, fields: &Fields<'_>, kind: CallKind) -> Result<Part, WireError> {
    let id = optional_text(raw, fields.id, "id")?.unwrap_or_default();
    let Some(name) = optional_text(raw, fields.name, "name")? else {
        return Err(WireError::shape(format!("expected a call with `name`, found {}", json::describe(raw))));
    };
    let input = share(whole, fields.input.unwrap_or("{}"));
    let mut call = ToolCall::new(share(whole, &id), share(whole, &name), input);
    call.kind = kind;
    Ok(Part::ToolCall(call))
}

/// Reads a result. A result of the provider's own tools is read if it is text. Otherwise it stays unchanged, block by
/// block.
fn result<'a>(whole: &Arc<str>, block: Value<'a>, fields: &Fields<'a>) -> Result<Part, WireError> {
    let raw = block.text();
    let id = optional_text(raw, fields.answers, "tool_use_id")?.unwrap_or_default();
    let known = present(raw, fields.content, "content", |content| match ValueKind::of(content) {
        ValueKind::Object => hosted::texts(whole, content),
        _ => Ok(None),
    })?;
    if let Some(texts) = known.flatten() {
        return Ok(Part::ToolResult(ToolResult::new(share(whole, &id), texts)));
    }
    let blocks = present(raw, fields.content, "content", |content| match ValueKind::of(content) {
        ValueKind::Object => {
            let fields = json::known::fields(content, &FIELDS).map(Fields::new);
            Ok(vec![(part(whole, block.within(content), fields, Where::Result)?, content)])
        }
        _ => parts_in(whole, block.within(content), Where::Result),
    })?;
    let parts = blocks.unwrap_or_default().into_iter().filter_map(|(part, _)| part).collect();
    let mut result = ToolResult::new(share(whole, &id), parts);
    result.is_error = fields.is_error == Some("true");
    Ok(Part::ToolResult(result))
}

/// Media with a known source; `None` for another source, for example a document that is a list of blocks.
fn media(
    whole: &Arc<str>,
    raw: &str,
    fields: &Fields<'_>,
    kind: MediaKind,
) -> Result<Option<Media>, WireError> {
    let found = present(raw, fields.source, "source", |source| {
        expect_object(source, "a source")?;
        let [kind, mime, data, url, file] =
            json::known::fields(source, &["type", "media_type", "data", "url", "file_id"])?;
        let kind = optional_text(source, kind, "type")?.unwrap_or_default();
        let mime = optional_text(source, mime, "media_type")?.unwrap_or_default();
        Ok((match &*kind {
            "base64" => {
                optional_text(source, data, "data")?.map(|data| MediaSource::Base64(share(whole, &data)))
            }
            "url" => optional_text(source, url, "url")?.map(|url| MediaSource::Uri(share(whole, &url))),
            "file" => optional_text(source, file, "file_id")?.map(|id| MediaSource::Uri(share(whole, &id))),
            _ => None,
        })
        .map(|place| (share(whole, &mime), place)))
    })?;
    Ok(found.flatten().map(|(mime, place)| new_media(kind, mime, place)))
}

/// Reads a compaction block: its text is readable, and all other members (`encrypted_content`, `signature`,
/// `tool_changes`, `cache_control`) can only be sent back. If sealed content is the only other member, it is the opaque
/// part itself. Otherwise the opaque part is an object of these members, unchanged.
fn compaction(whole: &Arc<str>, raw: &str) -> Result<Part, WireError> {
    let [content] = json::known::fields(raw, &["content"])?;
    let text = optional_text(raw, content, "content")?.unwrap_or_default();
    let mut sealed: Vec<(&str, &str)> = Vec::new();
    json::raw_members(raw, |key, value| {
        if !matches!(&*json::decode(key), "type" | "content") && value != "null" {
            sealed.push((key, value));
        }
        Ok(())
    })?;
    let opaque = match &*sealed {
        [] => None,
        [("\"encrypted_content\"", value)] if !value.starts_with("\"{") => {
            Some(json::nested(raw, value, "/encrypted_content", |value| {
                Ok(share(whole, &expect_text(value)?))
            })?)
        }
        sealed => {
            let members: Vec<String> = sealed.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Some(Str::from(format!("{{{}}}", members.join(","))))
        }
    };
    Ok(Part::Compaction(CompactionPart::new(PROVIDER, share(whole, &text), opaque)))
}

fn needed<'a>(raw: &str, value: Option<&'a str>, key: &'static str) -> Result<Cow<'a, str>, WireError> {
    present(raw, value, key, expect_text)?.ok_or_else(|| {
        WireError::shape(format!("expected a block with `{key}`, found {}", json::describe(raw)))
    })
}

/// The id of redacted reasoning, as in Pydantic AI. Without it a signature belongs to a text that is not shown.
pub(super) static REDACTED: LazyLock<Str> = LazyLock::new(|| Str::from("redacted_thinking"));

/// The format's name, shared by all messages.
pub(super) static NAME: LazyLock<Str> = LazyLock::new(|| Str::from(FORMAT));
