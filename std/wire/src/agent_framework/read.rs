//! Reads messages.

use std::sync::Arc;

use epitome_message::{Message, WireText};
use serde_json::{Map, Value, json};

use super::PIECE;
use super::write::write_alone;
use crate::{Format, WireError};

/// Reads messages. A message that answers several calls is split into one message for each answer, and the writer joins
/// them again.
///
/// A message from a context provider of the framework has its source in `_attribution`: it is read as context of that
/// source, with retrieved authority. A message from a history provider, whose class ends in `HistoryProvider`
/// (`source_type`), is read as one of the user or the model, who said it in an earlier run. Other members of
/// `additional_properties` are data, including an `attribution`: [`trust_marker`] gives it a meaning.
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

/// Applies the label of a message: the text under `attribution` in its `additional_properties`.
///
/// The label `important` pins the message, and `ephemeral` makes it ephemeral. Use it for messages whose author the
/// caller trusts to set labels. Without this function a label is data.
///
/// ```
/// use epitome_core::attribution::Retention;
/// use epitome_wire::agent_framework::{read_messages, trust_marker};
/// use serde_json::json;
///
/// let theirs = json!({
///     "role": "user", "contents": ["Never deploy on Fridays."], "additional_properties": {"attribution": "important"},
/// });
/// let read = read_messages(&[theirs])?.remove(0);
/// assert_eq!(read.attribution().retention, Retention::Normal);
/// assert_eq!(trust_marker(read).attribution().retention, Retention::Pinned);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
#[must_use]
pub fn trust_marker(message: Message) -> Message {
    let wire = message.wire().filter(|wire| wire.format == super::FORMAT);
    let value = wire.and_then(|wire| serde_json::from_str::<Value>(&wire.text).ok());
    let label =
        value.as_ref().and_then(|value| value.pointer("/additional_properties/attribution")?.as_str());
    let Some(label) = label else { return message };
    let attribution = message.attribution().clone().with_label(label);
    message.with_attribution(attribution)
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
        // A text that the writer would produce anyway is not stored twice.
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
