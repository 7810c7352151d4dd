//! Messages in the output: one line for people, Chat Completions for programs.

use std::borrow::Cow;

use epitome::core::Seq;
use epitome::core::attribution::Retention;
use epitome::core::message::{PartView, Parts as _};
use epitome::message::{Message, Part, Reasoning};
use epitome::wire::{self, Format, ReadOptions, WireError, convert_continued, openai_chat};
use serde_json::json;
use serde_json::value::RawValue;

use crate::amount::grouped;
use crate::failure::{Failure, Result};
use crate::redact::Redactor;

/// Number of characters of a message's text that a line shows.
const PREVIEW_CHARS: usize = 60;

/// A message on one line.
pub(super) fn line(seq: Seq, message: &Message, tokens: u32, note: &str) -> String {
    let mut preview = String::new();
    message.for_each_part(&mut |part| match part {
        PartView::Text(text) => preview.push_str(text),
        PartView::ToolCall(call) => preview += &format!("{}({}) ", call.name, call.arguments),
        PartView::ToolResult(result) => result.content.for_each_part(&mut |part| {
            if let PartView::Text(text) = part {
                preview.push_str(text);
            }
        }),
        _ => {}
    });
    let short: String = preview
        .chars()
        .map(|shown| if shown.is_control() { ' ' } else { shown })
        .take(PREVIEW_CHARS)
        .collect();
    let pinned = if message.attribution().retention == Retention::Pinned { " pinned" } else { "" };
    let role = message.role().as_str();
    format!("{seq:>6}  {role:<10}{:>9}  {note:<14}{short}{pinned}", grouped(u64::from(tokens)))
}

/// The message, without secrets if there is a redactor.
pub(super) fn redact_message<'a>(message: &'a Message, redactor: Option<&mut Redactor>) -> Cow<'a, Message> {
    match redactor {
        Some(redactor) => Cow::Owned(redactor.message(message.clone())),
        None => Cow::Borrowed(message),
    }
}

/// A message in Chat Completions. Sealed reasoning is in `reasoning_details`. The field `lost` has the kinds of other
/// parts without a form there.
pub(in crate::commands) fn raw(message: &Message) -> Result<Box<RawValue>> {
    let text = match openai_chat::write(message) {
        Ok(text) => text.into_owned(),
        Err(_) => with_sealed_reasoning(message)?,
    };
    RawValue::from_string(text).map_err(|error| Failure::input(error.to_string()))
}

fn with_sealed_reasoning(message: &Message) -> Result<String> {
    let mut sealed = Vec::new();
    let parts = message.parts().iter().filter_map(|part| match part {
        Part::Reasoning(Reasoning { text, opaque: Some(opaque), .. }) => {
            sealed.push(json!({"type": "reasoning.encrypted", "data": &**opaque}));
            (!text.is_empty()).then(|| Part::Reasoning(Reasoning::new(text.clone())))
        }
        other => Some(other.clone()),
    });
    let parts = parts.collect();
    let message = message.clone().with_parts(parts);
    let (mut text, lost) = match openai_chat::write(&message) {
        Ok(text) => (text.into_owned(), Vec::new()),
        Err(_) => without_what_is_lost(&message)?,
    };
    let more = [("reasoning_details", json!(sealed)), ("lost", json!(lost))];
    for (key, list) in more.into_iter().filter(|(_, list)| *list != json!([])) {
        // The object is not empty: a message has at least its role.
        text.truncate(text.len().saturating_sub(1));
        text += &format!(",\"{key}\":{list}}}");
    }
    Ok(text)
}

/// The message without the parts that Chat Completions cannot represent, and the kinds of these parts.
fn without_what_is_lost(message: &Message) -> Result<(String, Vec<&'static str>)> {
    let refused = |error: WireError| Failure::input(error.to_string());
    let converted = convert_continued([message], Format::OpenaiChat).map_err(refused)?;
    let lost = converted.losses.iter().map(|loss| loss.kind.as_str()).collect();
    let transcript = wire::read(converted.text, &ReadOptions::default().with_from(Format::OpenaiChat));
    let transcript = transcript.map_err(refused)?;
    let left = transcript.active().and_then(|conversation| conversation.messages().next());
    let text = match left {
        Some(left) => openai_chat::write(left).map_err(refused)?.into_owned(),
        None => json!({"role": message.role().as_str(), "content": null}).to_string(),
    };
    Ok((text, lost))
}
