//! One message, in any of the three forms.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};

use super::FORMAT;
use crate::message::{
    MediaSource, Message, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart, WireText,
};
use crate::wire::error::quoted;
use crate::wire::expect::{expect_object, member_text, new_media, optional_text, present, share};
use crate::wire::json::{self, Kind};
use crate::wire::openai_chat::split_data_url;
use crate::wire::{WireError, WireErrorKind};

/// The object of a message that says what it is, and the key that it stands under.
pub(super) fn inner(raw: &str) -> Result<(&str, &'static str), WireError> {
    expect_object(raw, "a message")?;
    let [data, lc, kwargs] = json::fields(raw, &["data", "lc", "kwargs"])?;
    let is_object = |value: &&str| Kind::of(value) == Kind::Object;
    Ok(match (data.filter(is_object), lc.and(kwargs).filter(is_object)) {
        (Some(data), _) => (data, "data"),
        (None, Some(kwargs)) => (kwargs, "kwargs"),
        (None, None) => (raw, ""),
    })
}

/// The role that a message has.
pub(super) fn role(raw: &str) -> Result<Role, WireError> {
    let (own, _) = inner(raw)?;
    let (outer, inner) = (json::field(raw, "type")?, json::field(own, "type")?);
    let kind = inner.or(outer.filter(|kind| *kind != "\"constructor\""));
    let kind = match kind {
        Some(kind) => json::decode(kind).into_owned(),
        None => class(raw)?,
    };
    Ok(match kind.trim_end_matches("Chunk").trim_end_matches("Message").to_lowercase().as_str() {
        "human" | "user" => Role::User,
        "ai" | "assistant" => Role::Assistant,
        "system" => Role::System,
        "developer" => Role::Developer,
        "tool" | "function" => Role::Tool,
        _ => {
            let what = format!("unknown type {}: expected human, ai, system or tool", quoted(&kind));
            return Err(WireError::new(WireErrorKind::UnknownRole, what));
        }
    })
}

/// The last name of `id`, which `dumpd` writes: the class of the message.
fn class(raw: &str) -> Result<String, WireError> {
    let mut class = String::new();
    if let Some(id) = json::field(raw, "id")?.filter(|id| Kind::of(id) == Kind::Array) {
        json::items(id, |name| {
            class = json::decode(name).into_owned();
            Ok(())
        })?;
    }
    Ok(class)
}

/// The message that `raw`, a slice of `whole`, is.
pub(super) fn message(whole: &Arc<str>, raw: &str) -> Result<Message, WireError> {
    let role = role(raw)?;
    let (own, key) = inner(raw)?;
    let path = if key.is_empty() { String::new() } else { format!("/{key}") };
    let mut message = json::nested(raw, own, path, |own| {
        let parts = parts(whole, own, role)?;
        let mut message = Message::new(role, parts);
        if let Some(name) = member_text(whole, own, "name")? {
            message = message.with_name(name);
        }
        if let Some(id) = json::field(own, "id")?.filter(|id| Kind::of(id) == Kind::Text) {
            message = message.with_id(share(whole, &json::decode(id)));
        }
        Ok(message)
    })?;
    message = message.with_wire(WireText::new(Str::from(FORMAT), share(whole, raw)));
    Ok(message)
}

fn parts(whole: &Arc<str>, own: &str, role: Role) -> Result<Vec<Part>, WireError> {
    let names = &["content", "tool_calls", "tool_call_id", "status", "additional_kwargs"];
    let [content, calls, call_id, status, more] = json::fields(own, names)?;
    let content =
        present(own, content, "content", |content| self::content(whole, content))?.unwrap_or_default();
    if role == Role::Tool {
        let id = optional_text(own, call_id, "tool_call_id")?.unwrap_or_default();
        let mut result = ToolResult::new(share(whole, &id), content);
        result.is_error = status == Some("\"error\"");
        return Ok(vec![Part::ToolResult(result)]);
    }
    let mut parts = Vec::new();
    if let Some(more) = more.filter(|more| Kind::of(more) == Kind::Object)
        && let Some(text) = member_text(whole, more, "reasoning_content")?.filter(|text| !text.is_empty())
    {
        parts.push(Part::Reasoning(Reasoning::new(text)));
    }
    parts.extend(content);
    if let Some(calls) = calls.filter(|calls| Kind::of(calls) == Kind::Array) {
        json::nested(own, calls, "/tool_calls", |calls| {
            json::items(calls, |call| {
                parts.push(self::call(whole, call)?);
                Ok(())
            })
        })?;
    }
    Ok(parts)
}

fn call(whole: &Arc<str>, raw: &str) -> Result<Part, WireError> {
    expect_object(raw, "a call")?;
    let text = |key| Ok::<_, WireError>(member_text(whole, raw, key)?.unwrap_or_default());
    let arguments = match json::field(raw, "args")? {
        Some(args) if Kind::of(args) == Kind::Text => share(whole, &json::decode(args)),
        args => share(whole, args.unwrap_or("{}")),
    };
    Ok(Part::ToolCall(ToolCall::new(text("id")?, text("name")?, arguments)))
}

/// The parts that `content`, a text or a list of blocks, is. Empty texts are none.
fn content(whole: &Arc<str>, content: &str) -> Result<Vec<Part>, WireError> {
    let mut parts = Vec::new();
    match Kind::of(content) {
        Kind::Array => json::items(content, |block| {
            parts.extend(self::block(whole, block)?);
            Ok(())
        })?,
        Kind::Text => parts.extend(said(share(whole, &json::decode(content)))),
        _ => {
            let found = json::describe(content);
            return Err(WireError::shape(format!("expected a text or a list of blocks, found {found}")));
        }
    }
    Ok(parts)
}

fn said(text: Str) -> Option<Part> {
    if text.is_empty() { None } else { Some(Part::Text(text)) }
}

fn block(whole: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    if Kind::of(raw) == Kind::Text {
        return Ok(said(share(whole, &json::decode(raw))));
    }
    expect_object(raw, "a block")?;
    let text = |key| Ok::<_, WireError>(member_text(whole, raw, key)?.unwrap_or_default());
    let kind = text("type")?;
    Ok(match &*kind {
        "text" => said(text("text")?),
        // The calls stand under `tool_calls`.
        "tool_use" | "tool_call" => None,
        "thinking" => {
            let mut reasoning = Reasoning::new(text("thinking")?);
            reasoning.opaque =
                member_text(whole, raw, "signature")?.filter(|signature| !signature.is_empty());
            Some(Part::Reasoning(reasoning))
        }
        "reasoning" if json::field(raw, "reasoning")?.is_some() => {
            Some(Part::Reasoning(Reasoning::new(text("reasoning")?)))
        }
        "image_url" => image_url(whole, raw)?.or_else(|| Some(unknown(whole, &kind, raw))),
        "image" | "audio" | "file" | "video" => {
            media(whole, raw, &kind)?.or_else(|| Some(unknown(whole, &kind, raw)))
        }
        _ => Some(unknown(whole, &kind, raw)),
    })
}

fn unknown(whole: &Arc<str>, kind: &Str, raw: &str) -> Part {
    Part::Unknown(UnknownPart::new(FORMAT, kind.clone(), share(whole, raw)))
}

/// An image as Chat Completions writes it: an object with `url`, or the address itself.
fn image_url(whole: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    let Some(image) = json::field(raw, "image_url")? else { return Ok(None) };
    let url = match Kind::of(image) {
        Kind::Object => member_text(whole, image, "url")?,
        Kind::Text => Some(share(whole, &json::decode(image))),
        _ => None,
    };
    Ok(url.map(|url| {
        Part::Media(match split_data_url(&url) {
            Some((mime, data)) => {
                new_media(MediaKind::Image, share(whole, mime), MediaSource::Base64(share(whole, data)))
            }
            None => new_media(MediaKind::Image, Str::default(), MediaSource::Uri(url.clone())),
        })
    }))
}

/// Media as the standard blocks write them: `base64` (or `data`) or `url`, with `mime_type`.
fn media(whole: &Arc<str>, raw: &str, kind: &str) -> Result<Option<Part>, WireError> {
    let kind = match kind {
        "image" => MediaKind::Image,
        "audio" => MediaKind::Audio,
        "video" => MediaKind::Video,
        _ => MediaKind::Document,
    };
    let mime = member_text(whole, raw, "mime_type")?.unwrap_or_default();
    let data = match member_text(whole, raw, "base64")? {
        Some(data) => Some(data),
        None => member_text(whole, raw, "data")?,
    };
    let source = match data {
        Some(data) => Some(MediaSource::Base64(data)),
        None => member_text(whole, raw, "url")?.map(MediaSource::Uri),
    };
    Ok(source.map(|source| Part::Media(new_media(kind, mime, source))))
}
