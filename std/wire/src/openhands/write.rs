//! Patches events, and writes new ones.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolCall};

use super::event::{Event, Fields};
use super::v1;
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::rewrite::{changes, form, only_text, text, with_items, with_quoted_arguments, within};
use crate::slots;

/// Writes the event `source` with its present message, or a new event with a text.
pub(super) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    if v1::is_event(source) {
        return slots::write(Some(source), messages, v1::pieces);
    }
    let whole: Arc<str> = Arc::from(source);
    let [now] = messages else { return Err(form("several messages in one event")) };
    let was = match Fields::of(&*whole)?.read(&whole)? {
        Event::Message(was) => was,
        // The role of the message shows how the event was read.
        Event::Caused { result, .. } if now.role() == Role::Tool => result,
        Event::Caused { said: Some(was), .. } => was,
        Event::Condensation { summary: Some(was), .. } => was,
        Event::Call { call, said, causes, .. } => {
            let words = said.map(Part::Text);
            return match (now.parts(), call.parts()) {
                ([before @ .., Part::ToolCall(new)], [Part::ToolCall(was)])
                    if before.is_empty() || before.iter().eq(&words) =>
                {
                    with_call(source, was, new, causes.is_none()).map(Some)
                }
                _ => Err(form("a changed call")),
            };
        }
        _ => return Err(form("this change")),
    };
    let mut written = source.to_owned();
    for change in changes(core::slice::from_ref(&was), messages)? {
        let new = Some(quote(text(change.new)?));
        let args = json::field(&written, "args")?.filter(|args| ValueKind::of(args) == ValueKind::Object);
        written = match args {
            None => patch(&written, &[("content", new)])?,
            Some(args) => {
                let old = was.parts().get(change.part).map(text).transpose()?.unwrap_or_default().to_owned();
                let key = said_under(args, &old)?;
                let args = patch(args, &[(key, new)])?;
                patch(&written, &[("args", Some(args))])?
            }
        };
    }
    Ok(Some(written))
}

/// Writes the event with another call. OpenHands makes a request to the model from the recorded response of the event,
/// if there is one.
fn with_call(source: &str, was: &ToolCall, new: &ToolCall, is_recorded: bool) -> Result<String, WireError> {
    if was == new {
        return Ok(source.to_owned());
    }
    let is_it = was.id == new.id && was.name == new.name;
    if !is_it || !is_recorded {
        return Err(form("a changed call"));
    }
    let is_own = |call: &str| Ok(json::field(call, "id")?.is_some_and(|id| json::decode(id) == *new.id));
    within(source, &["tool_call_metadata", "model_response"], |response| {
        with_items(response, "choices", |_, choice| {
            within(choice, &["message"], |message| {
                with_items(message, "tool_calls", |_, call| match is_own(call)? {
                    true => within(call, &["function"], |function| {
                        with_quoted_arguments(function, "arguments", new)
                    }),
                    false => Ok(call.to_owned()),
                })
            })
        })
    })
}

/// The member of `args` with the text `old`.
fn said_under(args: &str, old: &str) -> Result<&'static str, WireError> {
    for key in ["content", "final_thought", "thought", "summary"] {
        if json::field(args, key)?
            .is_some_and(|raw| ValueKind::of(raw) == ValueKind::Text && json::decode(raw) == old)
        {
            return Ok(key);
        }
    }
    Err(form("this change"))
}

fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let (message, text) = only_text(messages)?;
    let source = match message.role() {
        Role::User => "user",
        Role::Assistant => "agent",
        _ => return Err(form("a new message of this role")),
    };
    Ok(format!(r#"{{"source":"{source}","action":"message","args":{{"content":{}}}}}"#, quote(text)))
}
