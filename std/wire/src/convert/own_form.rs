//! Calls and results in a form that only their own format has: custom tools, shells, computers, and tools that the
//! provider ran.

use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part, WireText};

use super::parts::is_object;
use crate::json::{self, ValueKind};
use crate::{Format, WireError, openai_responses};

/// Whether the message has calls or results in such a form, and its other calls can stay as they are.
pub(super) fn is_own(message: &Message) -> bool {
    let Some(wire) = message.wire() else { return false };
    match Format::by_name(&wire.format) {
        Some(Format::OpenaiResponses) => openai_responses::special_call(&wire.text).is_some(),
        // The text of a piece of a record is the text of its blocks.
        Some(Format::Anthropic) => is_hosted(message) && has_content(&wire.text),
        Some(Format::OpenaiChat) => has_custom_calls(&wire.text).unwrap_or(false),
        _ => false,
    }
}

/// The text of a message that is an item of Responses, as a later request may have it. `None` for other messages, and for
/// a message that has changed since it was read.
pub(super) fn item(message: &Message) -> Option<WireText> {
    let is_item = |text: &str| ValueKind::of(text) == ValueKind::Object;
    let own = |wire: &&WireText| wire.format == Format::OpenaiResponses.as_str() && is_item(&wire.text);
    let wire = message.wire().filter(|wire| !wire.touched).filter(own)?;
    let text = openai_responses::sendable(&wire.text)?;
    Some(WireText::new(wire.format.clone(), text.into()))
}

/// Whether the provider ran a tool for the message. The call and its result have fields that the message does not
/// represent.
fn is_hosted(message: &Message) -> bool {
    let is_hosted = |part: &Part| match part {
        Part::ToolCall(call) => call.kind == CallKind::Hosted,
        Part::ToolResult(_) => true,
        _ => false,
    };
    message.role() == Role::Assistant && message.parts().iter().any(is_hosted)
}

/// Whether the text is a message and not a block.
fn has_content(text: &str) -> bool {
    ValueKind::of(text) == ValueKind::Object
        && json::fields(text, &["role", "content"])
            .is_ok_and(|[role, content]| role.is_some() && content.is_some())
}

/// Whether some calls of a Chat Completions message are of custom tools, and the arguments of the others can stay.
fn has_custom_calls(text: &str) -> Result<bool, WireError> {
    let calls = json::field(text, "tool_calls")?.filter(|calls| ValueKind::of(calls) == ValueKind::Array);
    let (mut custom, mut others) = (false, true);
    json::items(calls.unwrap_or("[]"), |call| {
        let [function, own] = json::fields(call, &["function", "custom"])?;
        match function.filter(|function| *function != "null") {
            Some(function) => {
                let arguments = json::field(function, "arguments")?.unwrap_or_default();
                others &= is_object(&json::decode(arguments));
            }
            None => custom |= own.is_some(),
        }
        Ok(())
    })?;
    Ok(custom && others)
}
