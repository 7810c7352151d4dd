//! Writes parts as JSON, in the shortest form of the format.

use epitome_core::message::{CallKind, MediaKind};
use epitome_message::{Media, MediaSource, Part, ToolCall, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::json::{self, ValueKind, quote};

/// Writes `content` with these parts: a single text as a JSON string, otherwise a list.
pub(super) fn content(parts: &[&Part]) -> Result<String, WireError> {
    match parts {
        [] => Ok(quote("")),
        [Part::Text(text)] => Ok(quote(text)),
        parts => {
            let parts = parts.iter().map(|part| self::part(part)).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", parts.join(",")))
        }
    }
}

/// One element of a content list.
pub(super) fn part(part: &Part) -> Result<String, WireError> {
    match part {
        Part::Text(text) => Ok(format!(r#"{{"type":"text","text":{}}}"#, quote(text))),
        Part::Media(media) => self::media(media),
        Part::Unknown(UnknownPart { format, raw, .. })
            if *format == FORMAT && ValueKind::of(raw) == ValueKind::Object && json::check(raw).is_ok() =>
        {
            Ok(raw.as_str().to_owned())
        }
        other => Err(unsupported(kind_of(other))),
    }
}

fn media(media: &Media) -> Result<String, WireError> {
    match (media.kind, &media.source) {
        (MediaKind::Image, source) => {
            let url = match source {
                MediaSource::Base64(data) => data_url(&media.mime, data),
                MediaSource::Uri(url) => url.as_str().to_owned(),
            };
            let detail = if media.extent.low_detail { r#","detail":"low""# } else { "" };
            Ok(format!(r#"{{"type":"image_url","image_url":{{"url":{}{detail}}}}}"#, quote(&url)))
        }
        (MediaKind::Audio, MediaSource::Base64(data)) => {
            let format = match media.mime.strip_prefix("audio/") {
                Some("mpeg") => "mp3",
                Some(format) => format,
                None => "",
            };
            let (data, format) = (quote(data), quote(format));
            Ok(format!(r#"{{"type":"input_audio","input_audio":{{"data":{data},"format":{format}}}}}"#))
        }
        (MediaKind::Document, MediaSource::Base64(data)) => {
            let url =
                if media.mime.is_empty() { data.as_str().to_owned() } else { data_url(&media.mime, data) };
            Ok(format!(r#"{{"type":"file","file":{{"file_data":{}}}}}"#, quote(&url)))
        }
        (MediaKind::Document, MediaSource::Uri(url)) if url.starts_with("data:") => {
            Ok(format!(r#"{{"type":"file","file":{{"file_data":{}}}}}"#, quote(url)))
        }
        (MediaKind::Document, MediaSource::Uri(id)) if !id.contains("://") => {
            Ok(format!(r#"{{"type":"file","file":{{"file_id":{}}}}}"#, quote(id)))
        }
        (MediaKind::Document, _) => Err(unsupported("a document at a URL")),
        (MediaKind::Audio, _) => Err(unsupported("a sound at a URL")),
        _ => Err(unsupported("a video")),
    }
}

fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

/// One element of `tool_calls`.
pub(super) fn call(call: &ToolCall) -> Result<String, WireError> {
    let function = function(call)?;
    Ok(format!(r#"{{"id":{},"type":"function","function":{function}}}"#, quote(&call.id)))
}

/// The value of `function`, or of `function_call` in the older form.
pub(super) fn function(call: &ToolCall) -> Result<String, WireError> {
    if call.kind != CallKind::Function {
        return Err(unsupported("a call that the provider runs"));
    }
    Ok(format!(r#"{{"name":{},"arguments":{}}}"#, quote(&call.name), quote(&call.arguments)))
}

/// The error for content that the format cannot represent.
pub(super) fn unsupported(what: &str) -> WireError {
    WireError::unsupported(format!("Chat Completions has no form for {what}"))
}

/// The name of a part's kind, for that error.
pub(super) const fn kind_of(part: &Part) -> &'static str {
    match part {
        Part::Text(_) => "a text here",
        Part::Reasoning(_) => "reasoning here",
        Part::ToolCall(_) => "a call here",
        Part::ToolResult(_) => "a tool result here",
        Part::Media(_) => "media here",
        Part::ApprovalRequest(_) => "an approval request",
        Part::ApprovalResponse(_) => "an approval response",
        Part::Compaction(_) => "a provider's compaction",
        Part::Unknown(_) => "a part of unknown kind",
    }
}
