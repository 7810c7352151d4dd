//! Records whose form stays as it is when what they say is changed.
//!
//! A planner clears results, shortens texts and leaves messages out; it never makes a call of a text. Formats that repeat
//! one thing in several places can be written back that far without a guess.

use epitome_core::attribution::Retention;
use epitome_message::{Message, Part, ToolResult};

use super::WireError;

/// A part that says something else than it did.
#[derive(Debug)]
pub(crate) struct Change<'m> {
    /// Which message of the record it is part of.
    pub(crate) piece: usize,
    /// Which part of the message it is.
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
        for (part, (_, new)) in pairs.filter(|(_, (was, new))| was != new) {
            found.push(Change { piece, part, new });
        }
    }
    Ok(found)
}

/// The text that a changed part says: its own, or what a tool returned.
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

/// The text that a new message is.
pub(crate) fn only_text<'m>(messages: &[&'m Message]) -> Result<(&'m Message, &'m str), WireError> {
    match messages {
        [message] => match message.parts() {
            [Part::Text(text)] if !text.is_empty() => Ok((message, text)),
            _ => Err(form("a new message that is no text")),
        },
        _ => Err(form("several messages in one record")),
    }
}

/// The messages of a record that must stay in its file: pinned, so that no strategy leaves them out.
pub(crate) fn pinned(messages: Vec<Message>) -> Vec<Message> {
    let pinned = |message: Message| {
        let attribution = message.attribution().clone().with_retention(Retention::Pinned);
        message.with_attribution(attribution)
    };
    messages.into_iter().map(pinned).collect()
}

/// The error for what the format cannot say.
pub(crate) fn form(what: &str) -> WireError {
    WireError::unsupported(format!("the file has no form for {what}"))
}
