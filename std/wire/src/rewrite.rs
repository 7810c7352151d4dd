//! Changes the content of records without changing their form.
//!
//! A planner clears results and arguments, shortens texts and leaves out messages. It never makes a call from a text.
//! Formats that repeat content in several places can be written back for these changes without a guess.

use epitome_core::attribution::Retention;
use epitome_message::{Message, Part, ToolCall, ToolResult};

use super::WireError;
use super::json::{self, ValueKind, patch, quote};

/// A part with changed content.
#[derive(Debug)]
pub(crate) struct Change<'m> {
    /// The index of the message in the record.
    pub(crate) piece: usize,
    /// The index of the part in the message.
    pub(crate) part: usize,
    pub(crate) new: &'m Part,
}

/// The changes of a record from the messages `was` to the messages `now`.
pub(crate) fn changes<'m>(was: &[Message], now: &[&'m Message]) -> Result<Vec<Change<'m>>, WireError> {
    let mut found = Vec::new();
    if was.len() != now.len() {
        return Err(form("part of a record that is several messages"));
    }
    for (piece, (was, now)) in was.iter().zip(now).enumerate() {
        if was.role() != now.role() || was.parts().len() != now.parts().len() {
            return Err(form("a message with other parts than it had"));
        }
        let pairs = was.parts().iter().zip(now.parts()).enumerate();
        for (part, (was, new)) in pairs.filter(|(_, (was, new))| was != new) {
            if !is_same_call(was, new) {
                return Err(form("a changed call"));
            }
            found.push(Change { piece, part, new });
        }
    }
    Ok(found)
}

/// Whether these messages have lost all their thoughts, and no other part. Then the writer first removes the thoughts
/// from their record.
pub(crate) fn loses_thoughts(was: &[Message], now: &[&Message]) -> bool {
    let thoughts =
        |message: &Message| message.parts().iter().filter(|part| matches!(part, Part::Reasoning(_))).count();
    let loses = |(was, now): (&Message, &&Message)| {
        thoughts(now) == 0 && was.parts().len() == now.parts().len().saturating_add(thoughts(was))
    };
    was.len() == now.len() && was.iter().any(|was| thoughts(was) > 0) && was.iter().zip(now).all(loses)
}

/// The object `raw`, with all elements of the array under `key` except thoughts.
pub(crate) fn without_thoughts(
    raw: &str,
    key: &str,
    is_thought: impl Fn(&str) -> Result<bool, WireError>,
) -> Result<String, WireError> {
    match json::field(raw, key)?.filter(|value| ValueKind::of(value) == ValueKind::Array) {
        Some(list) => {
            let others = json::retain_items(list, |element| Ok(!is_thought(element)?))?;
            patch(raw, &[(key, Some(others))])
        }
        None => Ok(raw.to_owned()),
    }
}

/// The text of a changed part: its own text, or that of a tool result.
pub(crate) fn text(part: &Part) -> Result<&str, WireError> {
    match part {
        Part::Text(text) => Ok(text),
        Part::ToolResult(ToolResult { parts, .. }) => match parts.as_slice() {
            [] => Ok(""),
            [Part::Text(text)] => Ok(text),
            _ => Err(form("a result that is no text")),
        },
        Part::ToolCall(_) => Err(form("changed arguments of a call")),
        _ => Err(form("a changed part that is no text")),
    }
}

/// Whether neither part is a call, or both are the same call with any arguments.
fn is_same_call(was: &Part, new: &Part) -> bool {
    match (was, new) {
        (Part::ToolCall(was), Part::ToolCall(new)) => {
            (&was.id, &was.name, was.kind) == (&new.id, &new.name, new.kind)
        }
        (was, new) => !matches!(was, Part::ToolCall(_)) && !matches!(new, Part::ToolCall(_)),
    }
}

/// The object `raw` with the arguments of `call` under `key`, as JSON, if it has that key.
pub(crate) fn with_arguments(raw: &str, key: &str, call: &ToolCall) -> Result<String, WireError> {
    json::check(&call.arguments).map_err(|_| form("a call whose arguments are no JSON"))?;
    match json::field(raw, key)? {
        Some(_) => patch(raw, &[(key, Some(call.arguments.to_string()))]),
        None => Ok(raw.to_owned()),
    }
}

/// Works like [`with_arguments`], for a format whose arguments may be a JSON string: such a string stays a string.
pub(crate) fn with_quoted_arguments(raw: &str, key: &str, call: &ToolCall) -> Result<String, WireError> {
    match json::field(raw, key)?.map(ValueKind::of) {
        Some(ValueKind::Text) => patch(raw, &[(key, Some(quote(&call.arguments)))]),
        _ => with_arguments(raw, key, call),
    }
}

/// Rewrites the element of the array `list` that is the part with the number `wanted`. `is_part` returns whether an
/// element is a part.
pub(crate) fn with_nth_part(
    list: &str,
    wanted: usize,
    is_part: impl Fn(&str) -> Result<bool, WireError>,
    written: impl Fn(&str) -> Result<String, WireError>,
) -> Result<String, WireError> {
    let mut part = 0_usize;
    json::map_items(list, |_, raw| {
        let is_part = is_part(raw)?;
        let is_wanted = is_part && part == wanted;
        part = part.saturating_add(usize::from(is_part));
        if is_wanted { written(raw) } else { Ok(raw.to_owned()) }
    })
}

/// Rewrites each element of the array under `key`. Without such an array the object `raw` stays unchanged.
pub(crate) fn with_items(
    raw: &str,
    key: &str,
    written: impl FnMut(usize, &str) -> Result<String, WireError>,
) -> Result<String, WireError> {
    match json::field(raw, key)?.filter(|value| ValueKind::of(value) == ValueKind::Array) {
        Some(list) => patch(raw, &[(key, Some(json::map_items(list, written)?))]),
        None => Ok(raw.to_owned()),
    }
}

/// Rewrites the object at the path `keys`. Without that object `raw` stays unchanged.
pub(crate) fn within(
    raw: &str,
    keys: &[&str],
    written: impl FnOnce(&str) -> Result<String, WireError>,
) -> Result<String, WireError> {
    if ValueKind::of(raw) != ValueKind::Object {
        return Ok(raw.to_owned());
    }
    let Some((key, keys)) = keys.split_first() else { return written(raw) };
    match json::field(raw, key)? {
        Some(value) => patch(raw, &[(key, Some(within(value, keys, written)?))]),
        None => Ok(raw.to_owned()),
    }
}

/// The message and its text, if the messages are one new message with a text.
pub(crate) fn only_text<'m>(messages: &[&'m Message]) -> Result<(&'m Message, &'m str), WireError> {
    match messages {
        [message] => match message.parts() {
            [Part::Text(text)] if !text.is_empty() => Ok((message, text)),
            _ => Err(form("a new message that is no text")),
        },
        _ => Err(form("several messages in one record")),
    }
}

/// Pins the messages of a record that must stay in its file, so that no strategy leaves them out.
pub(crate) fn pinned(messages: Vec<Message>) -> Vec<Message> {
    let pinned = |message: Message| {
        let attribution = message.attribution().clone().with_retention(Retention::Pinned);
        message.with_attribution(attribution)
    };
    messages.into_iter().map(pinned).collect()
}

/// The error for content that the format cannot represent.
pub(crate) fn form(what: &str) -> WireError {
    WireError::unsupported(format!("the file has no form for {what}"))
}
