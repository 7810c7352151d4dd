//! Writes parts of messages as parts of the wire, in the shortest form of the format.

use epitome_core::message::{CallKind, Role};
use epitome_message::{Media, MediaSource, Message, Part, Str, ToolCall, ToolResult, UnknownPart};

use super::part::{self, CODE_RESULT, Unit};
use super::{ASSIGNED, FORMAT};
use crate::WireError;
use crate::json::{self, ValueKind, quote};

/// The parts of a message as units. Sealed reasoning without a text belongs to the part that follows it, except a part
/// of unknown kind, which contains its own signature.
pub(super) fn units(message: &Message) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let (mut open, mut ran_code) = (false, false);
    for part in message.parts() {
        let part = without_assigned(part);
        let is_sealed = matches!(&part, Part::Reasoning(sealed) if sealed.text.is_empty());
        let stands_alone = matches!(part, Part::Reasoning(_) | Part::Unknown(_));
        match units.last_mut() {
            Some(unit) if open && !stands_alone => unit.parts.push(part),
            _ => units.push(Unit { parts: vec![part], name: None }),
        }
        open = is_sealed;
        let Some(unit) = units.last_mut() else { continue };
        match unit.parts.last() {
            Some(Part::ToolCall(call)) => {
                ran_code = call.kind == CallKind::Hosted && *call.name == *"executableCode";
            }
            Some(Part::ToolResult(result)) => {
                let is_code = message.role() == Role::Assistant && (ran_code || result.call_id.is_empty());
                unit.name = if is_code { Some(CODE_RESULT.into()) } else { message.name().map(Str::from) };
            }
            _ => {}
        }
    }
    units
}

/// The part without an id that the reader assigned.
fn without_assigned(part: &Part) -> Part {
    match part {
        Part::ToolCall(call) if call.id.starts_with(ASSIGNED) => {
            let mut call = call.clone();
            call.id = Str::default();
            Part::ToolCall(call)
        }
        Part::ToolResult(result) if result.call_id.starts_with(ASSIGNED) => {
            let mut result = result.clone();
            result.call_id = Str::default();
            Part::ToolResult(result)
        }
        other => other.clone(),
    }
}

/// Writes one part of the wire.
pub(super) fn unit(unit: &Unit) -> Result<String, WireError> {
    let (mut members, mut signature) = (String::new(), None);
    for part in &unit.parts {
        match part {
            Part::Reasoning(reasoning) => {
                signature = reasoning.opaque.as_deref();
                if !reasoning.text.is_empty() {
                    members = format!(r#""text":{},"thought":true"#, quote(&reasoning.text));
                }
            }
            other => members = self::members(other, unit.name.as_deref())?,
        }
    }
    let signature = signature.map(|signature| format!(r#""thoughtSignature":{}"#, quote(signature)));
    match (members.as_str(), signature) {
        ("", None) => Ok(r#"{"text":""}"#.to_owned()),
        ("", Some(signature)) => Ok(format!(r#"{{"text":"",{signature}}}"#)),
        (members, None) => Ok(format!("{{{members}}}")),
        (members, Some(signature)) => Ok(format!("{{{members},{signature}}}")),
    }
}

fn members(part: &Part, name: Option<&str>) -> Result<String, WireError> {
    match part {
        Part::Text(text) => Ok(format!(r#""text":{}"#, quote(text))),
        Part::ToolCall(call) if call.kind == CallKind::Hosted => hosted(&call.name, &call.arguments),
        Part::ToolCall(call) => {
            let (id, name, args) = (id(&call.id), quote(&call.name), args(call)?);
            Ok(format!(r#""functionCall":{{{id}"name":{name},"args":{args}}}"#))
        }
        Part::ToolResult(result) => response(result, name),
        Part::Media(media) => Ok(self::media(media)),
        Part::Unknown(UnknownPart { format, raw, .. }) if *format == FORMAT => {
            let inner = json::trim(raw).strip_prefix('{').and_then(|raw| raw.strip_suffix('}'));
            inner
                .filter(|_| json::check(raw).is_ok())
                .map(str::to_owned)
                .ok_or_else(|| unsupported("this part"))
        }
        Part::Unknown(_) => Err(unsupported("a part of unknown kind")),
        Part::Compaction(_) => Err(unsupported("a provider's compaction")),
        Part::ApprovalRequest(_) => Err(unsupported("an approval request")),
        Part::ApprovalResponse(_) => Err(unsupported("an approval response")),
        Part::Reasoning(_) => Err(unsupported("reasoning here")),
    }
}

fn id(id: &str) -> String {
    if id.is_empty() || id.starts_with(ASSIGNED) { String::new() } else { format!(r#""id":{},"#, quote(id)) }
}

/// The arguments as a JSON object, which the format requires. A call without arguments has `{}`.
pub(super) fn args(call: &ToolCall) -> Result<&str, WireError> {
    match json::trim(&call.arguments) {
        "" => Ok("{}"),
        text if ValueKind::of(text) == ValueKind::Object && json::check(text).is_ok() => Ok(text),
        _ => Err(unsupported("a call whose arguments are no JSON object")),
    }
}

/// The unchanged call of the provider's own tool.
fn hosted(name: &str, body: &str) -> Result<String, WireError> {
    match name {
        "executableCode" | "toolCall" if json::check(body).is_ok() => Ok(format!(r#""{name}":{body}"#)),
        _ => Err(unsupported("a call that another provider ran")),
    }
}

fn response(result: &ToolResult, name: Option<&str>) -> Result<String, WireError> {
    if let [Part::Unknown(UnknownPart { format, kind, raw, .. })] = result.parts.as_slice()
        && *format == FORMAT
        && matches!(&**kind, "codeExecutionResult" | "toolResponse")
    {
        return Ok(format!(r#""{}":{}"#, &**kind, &**raw));
    }
    if name == Some(CODE_RESULT) {
        let outcome = if result.is_error { "OUTCOME_FAILED" } else { "OUTCOME_OK" };
        let (id, output) = (id(&result.call_id), quote(&printed(result)?));
        return Ok(format!(r#""{CODE_RESULT}":{{{id}"outcome":"{outcome}","output":{output}}}"#));
    }
    let (id, name) = (id(&result.call_id), quote(name.unwrap_or_default()));
    let (response, media) = (response_of(result, None)?, media_of(result)?);
    let parts = if media.is_empty() { String::new() } else { format!(r#","parts":[{}]"#, media.join(",")) };
    Ok(format!(r#""functionResponse":{{{id}"name":{name},"response":{response}{parts}}}"#))
}

/// The printed text of the provider's own code.
pub(super) fn printed(result: &ToolResult) -> Result<String, WireError> {
    let texts = result.parts.iter().map(|part| match part {
        Part::Text(text) => Ok(text.as_str()),
        _ => Err(unsupported("this part of a result")),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// The result as an object. A text that is an object already stays unchanged.
pub(super) fn response_of(result: &ToolResult, key: Option<&str>) -> Result<String, WireError> {
    let mut texts = Vec::new();
    for part in &result.parts {
        match part {
            Part::Text(text) => texts.push(text.as_str()),
            Part::Media(_) => {}
            Part::Unknown(unknown) if unknown.format == FORMAT => {}
            _ => return Err(unsupported("this part of a result")),
        }
    }
    let text = texts.join("\n\n");
    if is_object(&text) && says(&text, result.is_error).unwrap_or(false) {
        return Ok(text);
    }
    let key = match (result.is_error, key) {
        (true, _) => "error",
        (false, Some(key)) if key != "error" => key,
        (false, _) => "output",
    };
    Ok(format!(r#"{{"{key}":{}}}"#, quote(&text)))
}

/// Whether the text is an object without surrounding white space, which the reader would not restore.
fn is_object(text: &str) -> bool {
    text.starts_with('{') && text.ends_with('}') && json::check(text).is_ok()
}

/// Whether the reader would read the object `text` as this text. An object with a repeated key of the reader is an
/// error.
fn says(text: &str, is_error: bool) -> Result<bool, WireError> {
    Ok(part::only_text(text)?.is_none() && part::said(text)?.1 == is_error)
}

/// The media of a result, as parts of the wire.
pub(super) fn media_of(result: &ToolResult) -> Result<Vec<String>, WireError> {
    let media = result.parts.iter().filter(|part| !matches!(part, Part::Text(_)));
    media.map(|part| Ok(format!("{{{}}}", members(part, None)?))).collect()
}

fn media(media: &Media) -> String {
    let mime = match media.likely_mime() {
        "" => String::new(),
        mime => format!(r#""mimeType":{},"#, quote(mime)),
    };
    match &media.source {
        MediaSource::Base64(data) => format!(r#""inlineData":{{{mime}"data":{}}}"#, quote(data)),
        MediaSource::Uri(uri) => format!(r#""fileData":{{{mime}"fileUri":{}}}"#, quote(uri)),
    }
}

/// The error for content that the format cannot represent.
pub(super) fn unsupported(what: &str) -> WireError {
    WireError::unsupported(format!("Gemini's contents have no form for {what}"))
}
