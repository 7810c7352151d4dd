//! Reads one element of a history as one or more messages.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_message::{MediaSource, Message, Part, Str, ToolCall, ToolResult, UnknownPart, WireText};

use super::FORMAT;
use crate::answers::mark_answered;
use crate::error::quoted;
use crate::expect::{expect_object, member_text, new_media, optional_text, share};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::openai_chat::split_data_url;
use crate::{Format, WireError, WireErrorKind};

/// The members of an element that are read, unchanged, in a single scan, because an element may be long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    role: Option<&'a str>,
    items: Option<&'a str>,
    author: Option<&'a str>,
    pub(super) metadata: Option<&'a str>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: impl Into<Value<'a>>) -> Result<Self, WireError> {
        let message = message.into();
        expect_object(message.text(), "a message")?;
        let [role, items, author, metadata] =
            json::known::fields(message, &["Role", "Items", "AuthorName", "Metadata"])?;
        Ok(Self { role, items: items.filter(|list| *list != "null"), author, metadata })
    }
}

/// The role of the element `raw`.
pub(super) fn role(raw: &str) -> Result<Role, WireError> {
    role_of(raw, &Fields::of(raw)?)
}

/// The role of the element `raw`: a text, or an object with `Label`.
fn role_of(raw: &str, fields: &Fields<'_>) -> Result<Role, WireError> {
    let role = match fields.role {
        Some(role) if ValueKind::of(role) == ValueKind::Object => json::known::field(role, "Label")?,
        role => role,
    };
    let Some(role) = role.filter(|role| ValueKind::of(role) == ValueKind::Text) else {
        let found = json::describe(raw);
        return Err(WireError::shape(format!("expected a message with `Role`, found {found}")));
    };
    match json::decode(role).to_ascii_lowercase().as_str() {
        "system" => Ok(Role::System),
        "developer" => Ok(Role::Developer),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        other => Err(WireError::new(
            WireErrorKind::UnknownRole,
            format!("unknown role {}: expected system, developer, user, assistant or tool", quoted(other)),
        )),
    }
}

/// An item, and its own text.
pub(super) type Item<'a> = (Option<Part>, &'a str);

/// The items of the element `raw`.
pub(super) fn items<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<Item<'a>>, WireError> {
    items_of(whole, raw.into(), &Fields::of(raw)?)
}

fn items_of<'a>(
    whole: &Arc<str>,
    message: Value<'a>,
    fields: &Fields<'a>,
) -> Result<Vec<Item<'a>>, WireError> {
    let Some(list) = fields.items else { return Ok(Vec::new()) };
    json::nested(message.text(), list, "/Items", |list| {
        let mut found = Vec::new();
        json::known::items_and_fields(message.within(list), &NAMES, |item, fields| {
            let path = format_args!("/{}", found.len());
            found.push((json::nested(list, item, path, |item| part(whole, item, fields))?, item));
            Ok(())
        })?;
        Ok(found)
    })
}

/// The messages of the element `raw`, a slice of `whole`: several, if it has several results.
pub(super) fn messages<'a>(
    whole: &Arc<str>,
    message: impl Into<Value<'a>>,
    fields: &Fields<'a>,
) -> Result<Vec<Message>, WireError> {
    let message = message.into();
    let raw = message.text();
    let role = role_of(raw, fields)?;
    let items = items_of(whole, message, fields)?;
    let wire = |rejoin: bool| {
        WireText::new(Format::SemanticKernel.shared_name(), share(whole, raw)).with_rejoin(rejoin)
    };
    if role != Role::Tool {
        let mut parts: Vec<Part> = items.into_iter().filter_map(|(part, _)| part).collect();
        mark_answered(&mut parts);
        let mut message = Message::new(role, parts);
        if let Some(name) = optional_text(raw, fields.author, "AuthorName")? {
            message = message.with_name(share(whole, &name));
        }
        return Ok(vec![message.with_wire(wire(false))]);
    }
    let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
    let parts = items.into_iter().filter_map(|(part, raw)| Some((part?, raw)));
    let (results, said): (Vec<_>, Vec<_>) = parts.partition(|(part, _)| is_result(part));
    if results.is_empty() {
        let said = said.into_iter().map(|(part, _)| part).collect();
        let result = Part::ToolResult(ToolResult::new(called(whole, fields)?, said));
        return Ok(vec![Message::new(Role::Tool, vec![result]).with_wire(wire(false))]);
    }
    let of = |(at, (result, item)): (usize, (Part, &str))| {
        let message = Message::new(Role::Tool, vec![result]);
        let name = function(whole, item)?;
        let message = if name.is_empty() { message } else { message.with_name(name) };
        Ok(message.with_wire(wire(at > 0)))
    };
    results.into_iter().enumerate().map(of).collect()
}

/// The id of the call of a tool message, from `Metadata`.
fn called(whole: &Arc<str>, fields: &Fields<'_>) -> Result<Str, WireError> {
    let metadata = fields.metadata.filter(|metadata| ValueKind::of(metadata) == ValueKind::Object);
    let id = metadata.map(|metadata| member_text(whole, metadata, "ChatCompletionsToolCall.Id"));
    Ok(id.transpose()?.flatten().unwrap_or_default())
}

/// The name of a function for a model: the plugin's name, a hyphen and the function's name.
fn function(whole: &Arc<str>, raw: &str) -> Result<Str, WireError> {
    let [plugin, function] = json::known::fields(raw, &["PluginName", "FunctionName"])?;
    name_of(whole, raw, (plugin, function))
}

fn name_of(
    whole: &Arc<str>,
    raw: &str,
    (plugin, function): (Option<&str>, Option<&str>),
) -> Result<Str, WireError> {
    let (plugin, function) =
        (text(whole, raw, plugin, "PluginName")?, text(whole, raw, function, "FunctionName")?);
    Ok(match plugin.is_empty() {
        true => function,
        false => Str::from([plugin.as_str(), function.as_str()].join("-")),
    })
}

/// The text of a member; empty if there is none.
fn text(whole: &Arc<str>, raw: &str, value: Option<&str>, key: &str) -> Result<Str, WireError> {
    Ok(optional_text(raw, value, key)?.map(|text| share(whole, &text)).unwrap_or_default())
}

/// The keys of an item that are read, in a single scan, because an item may be long.
const NAMES: [&str; 9] =
    ["$type", "Text", "Arguments", "PluginName", "FunctionName", "Id", "Result", "CallId", "FileId"];

/// The part of the item `raw`, whose members under [`NAMES`] are known.
fn part(
    whole: &Arc<str>,
    raw: &str,
    fields: Result<[Option<&str>; NAMES.len()], WireError>,
) -> Result<Option<Part>, WireError> {
    expect_object(raw, "an item")?;
    let [kind, said, arguments, plugin, function, id, result, call_id, file] = fields?;
    let text = |value, key| text(whole, raw, value, key);
    let kind = text(kind, "$type")?;
    Ok(Some(match &*kind {
        "TextContent" => match text(said, "Text")? {
            none if none.is_empty() => return Ok(None),
            said => Part::Text(said),
        },
        "FunctionCallContent" => {
            let arguments = arguments.filter(|arguments| *arguments != "null").unwrap_or("{}");
            let name = name_of(whole, raw, (plugin, function))?;
            Part::ToolCall(ToolCall::new(text(id, "Id")?, name, share(whole, arguments)))
        }
        "FunctionResultContent" => {
            let result = match result {
                Some(result) if ValueKind::of(result) == ValueKind::Text => {
                    share(whole, &json::decode(result))
                }
                Some(result) if result != "null" => share(whole, result),
                _ => Str::default(),
            };
            let parts = if result.is_empty() { Vec::new() } else { vec![Part::Text(result)] };
            Part::ToolResult(ToolResult::new(text(call_id, "CallId")?, parts))
        }
        "ImageContent" => media(whole, raw, MediaKind::Image, &kind)?,
        "AudioContent" => media(whole, raw, MediaKind::Audio, &kind)?,
        "FileReferenceContent" => Part::Media(new_media(
            MediaKind::Document,
            Str::default(),
            MediaSource::Uri(text(file, "FileId")?),
        )),
        _ => Part::Unknown(UnknownPart::new(FORMAT, kind.clone(), share(whole, raw))),
    }))
}

fn media(whole: &Arc<str>, raw: &str, kind: MediaKind, name: &Str) -> Result<Part, WireError> {
    let mime = member_text(whole, raw, "MimeType")?.unwrap_or_default();
    let place = match member_text(whole, raw, "DataUri")? {
        Some(uri) => Some(uri),
        None => member_text(whole, raw, "Uri")?,
    };
    let data = member_text(whole, raw, "Data")?;
    let media = match (place, data) {
        (Some(uri), _) => match split_data_url(&uri) {
            Some((mime, data)) => {
                new_media(kind, share(whole, mime), MediaSource::Base64(share(whole, data)))
            }
            None => new_media(kind, mime, MediaSource::Uri(uri)),
        },
        (None, Some(data)) => new_media(kind, mime, MediaSource::Base64(data)),
        (None, None) => return Ok(Part::Unknown(UnknownPart::new(FORMAT, name.clone(), share(whole, raw)))),
    };
    Ok(Part::Media(media))
}
