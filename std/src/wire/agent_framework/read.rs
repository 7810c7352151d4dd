//! Reading messages.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::PIECE;
use super::write::write_alone;
use crate::message::{Message, WireText};
use crate::wire::{Format, WireError};

/// Reads messages. One that answers several calls is split, so that each answers one; it is put together again when it is
/// written.
///
/// A message that a context provider of theirs has added says so in its `_attribution`: it is read as context of that
/// source, of retrieved authority. What else stands in `additional_properties` is data.
///
/// # Errors
/// [`WireError`] with the place, a JSON pointer into the list.
pub fn read_messages(values: &[Value]) -> Result<Vec<Message>, WireError> {
    let mut messages = Vec::with_capacity(values.len());
    for (at, value) in values.iter().enumerate() {
        let read = read_one(value).map_err(|error| error.inside(format_args!("/{at}"), 0))?;
        messages.extend(read);
    }
    Ok(messages)
}

fn read_one(value: &Value) -> Result<Vec<Message>, WireError> {
    let object = value.as_object().ok_or_else(|| WireError::shape("a message is an object"))?;
    let text: Arc<str> = Arc::from(value.to_string());
    let pieces = super::message::pieces(&text, &text)?;
    let count = pieces.len();
    let mut contents = object.get("contents").and_then(Value::as_array).into_iter().flatten();
    let piece = |(at, message): (usize, Message)| {
        let contents: Vec<Value> = contents.by_ref().take(message.parts().len()).cloned().collect();
        let wire = if count == 1 { value.clone() } else { piece_of(object, contents, at, count) };
        // What would be written anyhow need not be kept twice.
        if write_alone(&message) == wire {
            return message;
        }
        let text = if count == 1 { Arc::clone(&text) } else { Arc::from(wire.to_string()) };
        message.with_wire(WireText::new(Format::AgentFramework.shared_name(), text.into()))
    };
    Ok(pieces.into_iter().enumerate().map(piece).collect())
}

fn piece_of(object: &Map<String, Value>, contents: Vec<Value>, at: usize, count: usize) -> Value {
    let mut piece = object.clone();
    piece.insert("contents".to_owned(), Value::Array(contents));
    piece.insert(PIECE.to_owned(), json!([at, count]));
    Value::Object(piece)
}
