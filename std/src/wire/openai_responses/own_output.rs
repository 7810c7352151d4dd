//! Results in the form that answers their calls: the output of a custom tool, of a shell or of a computer is not that of a function.

use std::collections::HashMap;

use epitome_core::message::Role;

use super::FORMAT;
use super::item::special_call;
use crate::message::{Message, Part, Str, WireText};
use crate::wire::json::quote;

/// The calls so far that no output of a function answers.
#[derive(Debug, Default)]
pub(crate) struct OwnCalls {
    /// The type of the item that answers each, by the id of the call.
    outputs: HashMap<Str, String>,
}

impl OwnCalls {
    /// Takes note of the calls of the next message.
    pub(crate) fn push(&mut self, message: &Message) {
        let mut calls = message.parts().iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        });
        let Some(first) = calls.next() else { return };
        let wire = message.wire().filter(|wire| wire.format == FORMAT);
        // An item is one call.
        if let Some(kind) = wire.and_then(|wire| special_call(&wire.text)) {
            self.outputs.insert(first.id.clone(), format!("{}_output", kind.as_str()));
        } else if !self.outputs.is_empty() {
            // The id is that of another call now.
            core::iter::once(first).chain(calls).for_each(|call| {
                self.outputs.remove(&call.id);
            });
        }
    }

    /// A result that was read from no item, in the form that answers its call; `None` for any other message.
    pub(crate) fn answered(&self, message: &Message) -> Option<Message> {
        let [Part::ToolResult(result)] = message.parts() else { return None };
        let is_read = message.wire().is_some_and(|wire| wire.format == FORMAT);
        let kind = self.outputs.get(&result.call_id).filter(|_| !is_read)?;
        let item = format!(r#"{{"type":{},"call_id":{}}}"#, quote(kind), quote(&result.call_id));
        let mut form = WireText::new(FORMAT.into(), item.into());
        form.touched = true;
        Some(message.clone().with_wire(form))
    }
}

/// The form that [`OwnCalls::answered`] has given to a message.
pub(super) fn form(message: &Message) -> Option<&str> {
    let wire = message.wire().filter(|wire| wire.format == FORMAT && wire.touched)?;
    Some(wire.text.as_str()).filter(|_| message.role() == Role::Tool)
}
