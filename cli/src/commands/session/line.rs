//! Messages on the way out: on one line for people, as Chat Completions for programs.

use std::borrow::Cow;

use epitome::core::Seq;
use epitome::core::attribution::Retention;
use epitome::core::message::{PartView, Parts as _};
use epitome::std::message::Message;
use epitome::std::wire::openai_chat;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::amount::grouped;
use crate::failure::{Failure, Result, code};
use crate::redact::Redactor;

/// How much of a message's text a line shows.
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

/// The message, without secrets if that is asked for.
pub(super) fn redact_message<'a>(message: &'a Message, redactor: Option<&mut Redactor>) -> Cow<'a, Message> {
    match redactor {
        Some(redactor) => Cow::Owned(redactor.message(message.clone())),
        None => Cow::Borrowed(message),
    }
}

/// A message as Chat Completions writes it.
pub(super) fn raw(message: &Message) -> Result<Box<RawValue>> {
    let text = openai_chat::write(message).map_err(|error| Failure::input(error.to_string()))?;
    RawValue::from_string(text.into_owned()).map_err(|error| Failure::input(error.to_string()))
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Failure::new(code::IO, error.to_string()))
}
