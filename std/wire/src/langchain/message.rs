//! Reads one message in any of the three forms.

use std::borrow::Cow;
use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_message::{
    MediaSource, Message, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart, WireText,
};

use crate::error::quoted;
use crate::expect::{
    expect_object, kind_of_mime, linked_media, member_text, new_media, optional_text, present, share,
};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::openai_chat::split_data_url;
use crate::{Format, WireError, WireErrorKind};

/// The members of a message that are read, unchanged, in a single scan, because a message may be long.
pub(super) struct Fields<'a> {
    /// The object with the content of the message, and its key.
    pub(super) own: &'a str,
    pub(super) key: &'static str,
    /// The kind of the message: a word, or the name of a class.
    kind: Cow<'a, str>,
    name: Option<&'a str>,
    id: Option<&'a str>,
    pub(super) content: Option<&'a str>,
    calls: Option<&'a str>,
    call_id: Option<&'a str>,
    status: Option<&'a str>,
    more: Option<&'a str>,
    pub(super) usage: Option<&'a str>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: impl Into<Value<'a>>) -> Result<Self, WireError> {
        let message = message.into();
        let raw = message.text();
        expect_object(raw, "a message")?;
        let names = &[
            "data",
            "lc",
            "kwargs",
            "type",
            "id",
            "name",
            "content",
            "tool_calls",
            "tool_call_id",
            "status",
            "additional_kwargs",
            "usage_metadata",
        ];
        // The shortest form has all members in one object, and a message may be long.
        let [data, lc, kwargs, outer, class, flat @ ..] = json::known::fields(message, names)?;
        let is_object = |value: &&str| ValueKind::of(value) == ValueKind::Object;
        let (own, key, path) = match (data.filter(is_object), lc.and(kwargs).filter(is_object)) {
            (Some(data), _) => (data, "data", "/data"),
            (None, Some(kwargs)) => (kwargs, "kwargs", "/kwargs"),
            (None, None) => (raw, "", ""),
        };
        let own_names = &[
            "type",
            "id",
            "name",
            "content",
            "tool_calls",
            "tool_call_id",
            "status",
            "additional_kwargs",
            "usage_metadata",
        ];
        let [inner, id, name, content, calls, call_id, status, more, usage] = match key {
            "" => {
                let [name, content, calls, call_id, status, more, usage] = flat;
                [outer, class, name, content, calls, call_id, status, more, usage]
            }
            _ => json::nested(raw, own, path, |own| json::known::fields(message.within(own), own_names))?,
        };
        let kind = match inner.or(outer.filter(|kind| *kind != "\"constructor\"")) {
            Some(kind) => json::decode(kind),
            None => last_name(class)?,
        };
        Ok(Self { own, key, kind, name, id, content, calls, call_id, status, more, usage })
    }

    /// The word for the kind: `ai` for `AIMessageChunk`.
    fn word(&self) -> String {
        self.kind.trim_end_matches("Chunk").trim_end_matches("Message").to_lowercase()
    }

    /// Whether only this format uses the word of its type.
    pub(super) fn is_own_word(&self) -> bool {
        matches!(self.word().as_str(), "human" | "ai")
    }

    /// The role that the message has.
    pub(super) fn role(&self) -> Result<Role, WireError> {
        Ok(match self.word().as_str() {
            "human" | "user" => Role::User,
            "ai" | "assistant" => Role::Assistant,
            "system" if self.is_of_developer()? => Role::Developer,
            "system" => Role::System,
            "developer" => Role::Developer,
            "tool" | "function" => Role::Tool,
            _ => {
                let what = format!("unknown type {}: expected human, ai, system or tool", quoted(&self.kind));
                return Err(WireError::new(WireErrorKind::UnknownRole, what));
            }
        })
    }

    /// Whether the package for OpenAI marks a system message as the developer's.
    fn is_of_developer(&self) -> Result<bool, WireError> {
        match self.more.filter(|more| ValueKind::of(more) == ValueKind::Object) {
            Some(more) => Ok(json::known::field(more, "__openai_role__")? == Some("\"developer\"")),
            None => Ok(false),
        }
    }
}

/// The last name of `id`, in the form of `dumpd`: the class of the message.
fn last_name(id: Option<&str>) -> Result<Cow<'_, str>, WireError> {
    let mut class = Cow::Borrowed("");
    if let Some(id) = id.filter(|id| ValueKind::of(id) == ValueKind::Array) {
        json::known::items(id, |name| {
            class = json::decode(name);
            Ok(())
        })?;
    }
    Ok(class)
}

/// The message of `raw`, a slice of `whole`, with these fields.
pub(super) fn message(whole: &Arc<str>, raw: &str, fields: &Fields<'_>) -> Result<Message, WireError> {
    let role = fields.role()?;
    let path = if fields.key.is_empty() { String::new() } else { format!("/{}", fields.key) };
    let message = json::nested(raw, fields.own, path, |own| {
        let mut message = Message::new(role, parts(whole, own, role, fields)?);
        if let Some(name) = optional_text(own, fields.name, "name")? {
            message = message.with_name(share(whole, &name));
        }
        if let Some(id) = fields.id.filter(|id| ValueKind::of(id) == ValueKind::Text) {
            message = message.with_id(share(whole, &json::decode(id)));
        }
        Ok(message)
    })?;
    Ok(message.with_wire(WireText::new(Format::LangChain.shared_name(), share(whole, raw))))
}

fn parts(whole: &Arc<str>, own: &str, role: Role, fields: &Fields<'_>) -> Result<Vec<Part>, WireError> {
    let content = present(own, fields.content, "content", |content| self::content(whole, content))?;
    let content = content.unwrap_or_default();
    if role == Role::Tool {
        let id = optional_text(own, fields.call_id, "tool_call_id")?.unwrap_or_default();
        let mut result = ToolResult::new(share(whole, &id), content);
        result.is_error = fields.status == Some("\"error\"");
        return Ok(vec![Part::ToolResult(result)]);
    }
    let mut parts = Vec::new();
    if let Some(more) = fields.more.filter(|more| ValueKind::of(more) == ValueKind::Object)
        && let Some(text) = member_text(whole, more, "reasoning_content")?.filter(|text| !text.is_empty())
    {
        parts.push(Part::Reasoning(Reasoning::new(text)));
    }
    parts.extend(content);
    if let Some(calls) = fields.calls.filter(|calls| ValueKind::of(calls) == ValueKind::Array) {
        json::nested(own, calls, "/tool_calls", |calls| {
            json::known::items(calls, |call| {
                parts.push(self::call(whole, call)?);
                Ok(())
            })
        })?;
    }
    Ok(parts)
}

fn call(whole: &Arc<str>, raw: &str) -> Result<Part, WireError> {
    expect_object(raw, "a call")?;
    let [id, name, args] = json::known::fields(raw, &["id", "name", "args"])?;
    let text = |value, key| {
        Ok::<_, WireError>(
            optional_text(raw, value, key)?.map(|text| share(whole, &text)).unwrap_or_default(),
        )
    };
    let arguments = match args {
        Some(args) if ValueKind::of(args) == ValueKind::Text => share(whole, &json::decode(args)),
        args => share(whole, args.unwrap_or("{}")),
    };
    Ok(Part::ToolCall(ToolCall::new(text(id, "id")?, text(name, "name")?, arguments)))
}

/// The parts of `content`, a text or a list of blocks. Empty texts are no parts.
fn content(whole: &Arc<str>, content: &str) -> Result<Vec<Part>, WireError> {
    let mut parts = Vec::new();
    match ValueKind::of(content) {
        ValueKind::Array => json::known::items(content, |block| {
            parts.extend(self::block(whole, block)?);
            Ok(())
        })?,
        ValueKind::Text => parts.extend(said(share(whole, &json::decode(content)))),
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

pub(super) fn block(whole: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    if ValueKind::of(raw) == ValueKind::Text {
        return Ok(said(share(whole, &json::decode(raw))));
    }
    expect_object(raw, "a block")?;
    let text = |key| Ok::<_, WireError>(member_text(whole, raw, key)?.unwrap_or_default());
    let kind = text("type")?;
    Ok(match &*kind {
        "text" => said(text("text")?),
        // The calls are in `tool_calls`.
        kind if COPIES.contains(&kind) => None,
        "thinking" => {
            let mut reasoning = Reasoning::new(text("thinking")?);
            reasoning.opaque =
                member_text(whole, raw, "signature")?.filter(|signature| !signature.is_empty());
            Some(Part::Reasoning(reasoning))
        }
        "reasoning" if json::known::field(raw, "reasoning")?.is_some() => {
            Some(Part::Reasoning(Reasoning::new(text("reasoning")?)))
        }
        "image_url" => image_url(whole, raw)?.or_else(|| Some(unknown(whole, &kind, raw))),
        "image" | "audio" | "file" | "video" | "document" | "media" | "input_audio" => {
            media(whole, raw, &kind)?.or_else(|| Some(unknown(whole, &kind, raw)))
        }
        _ => Some(unknown(whole, &kind, raw)),
    })
}

fn unknown(whole: &Arc<str>, kind: &Str, raw: &str) -> Part {
    Part::Unknown(UnknownPart::new(Format::LangChain.shared_name(), kind.clone(), share(whole, raw)))
}

/// An image in the form of Chat Completions: an object with `url`, or the URL alone.
fn image_url(whole: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    let Some(image) = json::known::field(raw, "image_url")? else { return Ok(None) };
    let url = match ValueKind::of(image) {
        ValueKind::Object => member_text(whole, image, "url")?,
        ValueKind::Text => Some(share(whole, &json::decode(image))),
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

/// Media in the form of the standard blocks: `base64` (or `data`) or `url`, with `mime_type`. In Anthropic's form they
/// are in a `source`, in the form of Chat Completions in an `input_audio` or a `file`.
fn media(whole: &Arc<str>, raw: &str, kind: &str) -> Result<Option<Part>, WireError> {
    let is_object = |value: &&str| ValueKind::of(value) == ValueKind::Object;
    let [source, audio, file] = json::known::fields(raw, &["source", "input_audio", "file"])?;
    let inner = source.or(audio).or(file).filter(is_object).unwrap_or(raw);
    let text = |key| member_text(whole, inner, key);
    // A source of Anthropic may hold a text, or name a file.
    if source.is_some() && !matches!(text("type")?.as_deref(), Some("base64" | "url")) {
        return Ok(None);
    }
    if let Some(url) = text("file_data")? {
        return Ok(Some(Part::Media(linked_media(whole, Str::default(), &url))));
    }
    let mime = match (text("mime_type")?, text("media_type")?, text("format")?) {
        (Some(mime), ..) | (None, Some(mime), _) => mime,
        (None, None, Some(format)) if kind == "input_audio" => Str::from(format!("audio/{format}")),
        _ => Str::default(),
    };
    let kind = match kind {
        "image" => MediaKind::Image,
        "audio" | "input_audio" => MediaKind::Audio,
        "video" => MediaKind::Video,
        "media" => kind_of_mime(&mime),
        _ => MediaKind::Document,
    };
    let data = match text("base64")? {
        Some(data) => Some(data),
        None => text("data")?,
    };
    let source = match data {
        Some(data) => Some(MediaSource::Base64(data)),
        None => text("url")?.map(MediaSource::Uri),
    };
    Ok(source.map(|source| Part::Media(new_media(kind, mime, source))))
}

/// Types of blocks of provider packages that repeat a call of `tool_calls`.
pub(super) const COPIES: [&str; 4] = ["tool_use", "tool_call", "tool_call_chunk", "function_call"];
