//! Writes results in the form that answers their calls: the output of a custom tool differs from the output of a
//! function.
//!
//! Other calls have the output of a function: Codex answers its local shell with it, and the output of a computer or a
//! hosted shell is more than a text.

use std::collections::HashSet;

use epitome_message::{Message, Part, Str, WireText};

use super::FORMAT;
use super::item::special_call;
use crate::json::quote;

/// The type of the item that answers the call of a custom tool.
const OUTPUT: &str = "custom_tool_call_output";

/// The calls of custom tools so far, by their ids.
#[derive(Debug, Default)]
pub struct CustomCalls(HashSet<Str>);

impl CustomCalls {
    /// Adds the calls of the next message.
    pub fn push(&mut self, message: &Message) {
        let is_custom = item(message, "custom_tool_call").is_some();
        for part in message.parts() {
            match part {
                Part::ToolCall(call) if is_custom => drop(self.0.insert(call.id.clone())),
                // The id belongs to another call now.
                Part::ToolCall(call) => drop(self.0.remove(&call.id)),
                _ => {}
            }
        }
    }

    /// A result without an item, in the form that answers its call; `None` for any other message.
    pub fn answered(&self, message: &Message) -> Option<Message> {
        let [Part::ToolResult(result)] = message.parts() else { return None };
        let is_item = message.wire().is_some_and(|wire| wire.format == FORMAT);
        if is_item || !self.0.contains(&result.call_id) {
            return None;
        }
        let text = format!(r#"{{"type":{},"call_id":{}}}"#, quote(OUTPUT), quote(&result.call_id));
        let mut form = WireText::new(FORMAT.into(), text.into());
        form.touched = true;
        Some(message.clone().with_wire(form))
    }
}

/// The form of a message that is the output of a custom tool.
pub(super) fn form(message: &Message) -> Option<&str> {
    item(message, OUTPUT)
}

/// The item of a message, if it is of this type.
fn item<'m>(message: &'m Message, kind: &str) -> Option<&'m str> {
    let wire = message.wire().filter(|wire| wire.format == FORMAT)?;
    special_call(&wire.text).is_some_and(|found| found == kind).then_some(wire.text.as_str())
}
