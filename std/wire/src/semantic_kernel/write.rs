//! Patches elements, and writes new ones.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_message::{Media, MediaSource, Message, Part};

use super::message::{Fields, items, messages as read};
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::rewrite::{changes, form, text, with_arguments};

/// Writes the element `source` with its present messages, or a new element.
pub(super) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    let whole: Arc<str> = Arc::from(source);
    let was = read(&whole, &whole, &Fields::of(&whole)?)?;
    let changes = changes(&was, messages)?;
    if changes.is_empty() {
        return Ok(Some(source.to_owned()));
    }
    let list = json::field(source, "Items")?.unwrap_or("[]");
    let known = items(&whole, source)?;
    let mut texts: Vec<String> = known.iter().map(|(_, raw)| (*raw).to_owned()).collect();
    for change in changes {
        let old = was.get(change.piece).and_then(|message| message.parts().get(change.part));
        let is_old = |part: &Option<Part>| match (part, old) {
            // The message determines the kind of a call.
            (Some(Part::ToolCall(call)), Some(Part::ToolCall(old))) => {
                (&call.id, &call.name, &call.arguments) == (&old.id, &old.name, &old.arguments)
            }
            (part, old) => part.as_ref() == old,
        };
        let repeats = |part: &Option<Part>| match (part, old) {
            (Some(Part::Text(said)), Some(Part::ToolResult(result))) => {
                result.parts.iter().any(|part| matches!(part, Part::Text(text) if text == said))
            }
            _ => false,
        };
        let mut found = false;
        for ((part, _), written) in known.iter().zip(&mut texts) {
            *written = match (part, change.new) {
                (Some(Part::ToolCall(_)), Part::ToolCall(call)) if is_old(part) => {
                    with_arguments(written, "Arguments", call)?
                }
                (Some(Part::Text(_)), new) if is_old(part) || repeats(part) => {
                    patch(written, &[("Text", Some(quote(text(new)?)))])?
                }
                (Some(Part::Media(_)), Part::Text(new)) if is_old(part) => {
                    format!(r#"{{"$type":"TextContent","Text":{}}}"#, quote(new))
                }
                (Some(Part::ToolResult(_)), new) if is_old(part) => {
                    patch(written, &[("Result", Some(quote(text(new)?)))])?
                }
                _ => continue,
            };
            found = true;
        }
        if !found {
            return Err(form("this change"));
        }
    }
    let ranges: Vec<_> = known.iter().map(|(_, raw)| json::range_of(list, raw)).collect();
    let pieces = texts.iter().enumerate().map(|(at, text)| (Some(at), text.as_str()));
    patch(source, &[("Items", Some(json::rebuild(list, &ranges, pieces)))]).map(Some)
}

fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let [message] = messages else { return Err(form("several messages in one record")) };
    let role = message.role().as_str();
    let items = message.parts().iter().map(|part| item(message, part)).collect::<Result<Vec<_>, _>>()?;
    let name = match message.name().filter(|_| message.role() != Role::Tool) {
        Some(name) => format!(r#""AuthorName":{},"#, quote(name)),
        None => String::new(),
    };
    Ok(format!(r#"{{"Role":{{"Label":"{role}"}},{name}"Items":[{}]}}"#, items.join(",")))
}

fn item(message: &Message, part: &Part) -> Result<String, WireError> {
    match (part, message.role()) {
        (Part::Text(text), role) if role != Role::Tool => {
            Ok(format!(r#"{{"$type":"TextContent","Text":{}}}"#, quote(text)))
        }
        (Part::ToolCall(call), Role::Assistant) => {
            let arguments = match json::trim(&call.arguments) {
                "" => "{}",
                text if ValueKind::of(text) == ValueKind::Object && json::check(text).is_ok() => text,
                _ => return Err(form("a call whose arguments are no JSON object")),
            };
            let (id, name) = (quote(&call.id), function(&call.name));
            Ok(format!(r#"{{"$type":"FunctionCallContent","Id":{id},{name},"Arguments":{arguments}}}"#))
        }
        (Part::ToolResult(result), Role::Tool) => {
            let said = result.parts.iter().map(|part| match part {
                Part::Text(text) => Ok(text.as_str()),
                _ => Err(form("a result that is no text")),
            });
            let said = quote(&said.collect::<Result<Vec<_>, _>>()?.join("\n\n"));
            let (id, name) = (quote(&result.call_id), function(message.name().unwrap_or_default()));
            Ok(format!(r#"{{"$type":"FunctionResultContent","CallId":{id},{name},"Result":{said}}}"#))
        }
        (Part::Media(media), _) => media_item(media),
        (Part::Unknown(unknown), _) if unknown.format == super::FORMAT => Ok(unknown.raw.to_string()),
        _ => Err(form("this part")),
    }
}

/// The members with the name of a function. Models see the plugin's name, a hyphen and the function's name.
fn function(name: &str) -> String {
    match name.split_once('-').filter(|(plugin, _)| !plugin.is_empty()) {
        Some((plugin, function)) => {
            format!(r#""PluginName":{},"FunctionName":{}"#, quote(plugin), quote(function))
        }
        None => format!(r#""FunctionName":{}"#, quote(name)),
    }
}

fn media_item(media: &Media) -> Result<String, WireError> {
    let kind = match media.kind {
        MediaKind::Image => "ImageContent",
        MediaKind::Audio => "AudioContent",
        _ => return Err(form("media of this kind")),
    };
    Ok(match &media.source {
        MediaSource::Base64(data) => {
            let uri = quote(&format!("data:{};base64,{}", media.mime.as_str(), data.as_str()));
            format!(r#"{{"$type":"{kind}","DataUri":{uri}}}"#)
        }
        MediaSource::Uri(uri) if media.mime.is_empty() => {
            format!(r#"{{"$type":"{kind}","Uri":{}}}"#, quote(uri))
        }
        MediaSource::Uri(uri) => {
            format!(r#"{{"$type":"{kind}","Uri":{},"MimeType":{}}}"#, quote(uri), quote(&media.mime))
        }
    })
}
