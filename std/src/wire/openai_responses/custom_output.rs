//! Results in the form that answers their calls: the output of a custom tool is not that of a function.
//!
//! Other calls stay with the output of a function: Codex answers its local shell so, and what a computer or a hosted shell returns is
//! more than a text.

use std::collections::HashSet;

use epitome_core::message::Role;

use super::FORMAT;
use super::item::special_call;
use crate::message::{Message, Part, Str, WireText};
use crate::wire::json::quote;

/// The calls of custom tools so far, by their ids.
#[derive(Debug, Default)]
pub(crate) struct CustomCalls(HashSet<Str>);

impl CustomCalls {
    /// Takes note of the calls of the next message.
    pub(crate) fn push(&mut self, message: &Message) {
        for part in message.parts() {
            let Part::ToolCall(call) = part else { continue };
            let wire = message.wire().filter(|wire| wire.format == FORMAT);
            if wire
                .is_some_and(|wire| special_call(&wire.text).is_some_and(|kind| kind == "custom_tool_call"))
            {
                self.0.insert(call.id.clone());
            } else {
                // The id is that of another call now.
                self.0.remove(&call.id);
            }
        }
    }

    /// A result that is no item yet, in the form that answers its call; `None` for any other message.
    pub(crate) fn answered(&self, message: &Message) -> Option<Message> {
        let [Part::ToolResult(result)] = message.parts() else { return None };
        let is_item = message.wire().is_some_and(|wire| wire.format == FORMAT);
        if is_item || !self.0.contains(&result.call_id) {
            return None;
        }
        let item = format!(r#"{{"type":"custom_tool_call_output","call_id":{}}}"#, quote(&result.call_id));
        let mut form = WireText::new(FORMAT.into(), item.into());
        form.touched = true;
        Some(message.clone().with_wire(form))
    }
}

/// The form that [`CustomCalls::answered`] has given to a message.
pub(super) fn form(message: &Message) -> Option<&str> {
    let wire = message.wire().filter(|wire| wire.format == FORMAT && wire.touched)?;
    Some(wire.text.as_str()).filter(|_| message.role() == Role::Tool)
}
