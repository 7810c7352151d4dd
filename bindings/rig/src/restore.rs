//! Converts stored messages to messages of rig. A message that no compaction has shortened is equal to the one that was
//! appended.

use std::collections::HashMap;

use epitome::core::message::Role;
use epitome::message::{Message, Part, ToolResult, WireText};
use rig_core::completion::message::{
    AssistantMessage, CallId, Reasoning, Text, ToolCall, ToolFunction, ToolName, ToolResult as RigResult,
    ToolResultContent, UserContent,
};
use rig_core::completion::{AssistantContent, Message as RigMessage};
use rig_core::memory::MemoryError;

use crate::convert::{FORMAT, assistant_part, user_part};

/// The messages of the next request.
pub(crate) fn messages<'m>(
    stored: impl Iterator<Item = &'m Message>,
) -> Result<Vec<RigMessage>, MemoryError> {
    let mut restored: Vec<RigMessage> = Vec::new();
    let mut names = HashMap::new();
    for message in stored {
        for part in message.parts() {
            if let Part::ToolCall(call) = part {
                names.insert(call.id.to_string(), call.name.to_string());
            }
        }
        let own = message.wire().filter(|wire| &*wire.format == FORMAT);
        let next = restored_message(message, own, &names)?;
        // Tool results and the user's content between them were one message of rig.
        match (restored.last_mut(), next) {
            (Some(RigMessage::User { content }), RigMessage::User { content: more })
                if own.is_some_and(|wire| wire.rejoin) =>
            {
                content.extend(more);
            }
            (_, next) => restored.push(next),
        }
    }
    Ok(restored)
}

fn restored_message(
    message: &Message,
    own: Option<&WireText>,
    names: &HashMap<String, String>,
) -> Result<RigMessage, MemoryError> {
    let original: Option<RigMessage> =
        own.map(|wire| serde_json::from_str(&wire.text)).transpose().map_err(MemoryError::backend)?;
    if let (Some(original), false) = (&original, own.is_none_or(|wire| wire.touched)) {
        return Ok(original.clone());
    }
    Ok(match (message.role(), original) {
        (Role::System | Role::Developer, _) => RigMessage::system(&*message.text()),
        (Role::Assistant, original) => {
            let said = match original {
                Some(RigMessage::Assistant(said)) => said,
                _ => AssistantMessage::default(),
            };
            let mut known = said.content.clone();
            let parts = message.parts().iter();
            let content = parts.filter_map(|part| assistant_content(part, &mut known).transpose());
            RigMessage::Assistant(said.with_content(content.collect::<Result<_, _>>()?))
        }
        (_, original) => {
            let mut known = match original {
                Some(RigMessage::User { content }) => content,
                _ => Vec::new(),
            };
            let parts = message.parts().iter();
            let content = parts.filter_map(|part| user_content(part, &mut known, names).transpose());
            RigMessage::User { content: content.collect::<Result<_, _>>()? }
        }
    })
}

/// Takes the content with this part out of `known`, or makes content of the part. A part without a form in rig is left
/// out.
fn assistant_content(
    part: &Part,
    known: &mut Vec<AssistantContent>,
) -> Result<Option<AssistantContent>, MemoryError> {
    if let Some(at) = known.iter().position(|content| assistant_part(content).is_ok_and(|own| own == *part)) {
        return Ok(Some(known.remove(at)));
    }
    Ok(match part {
        Part::Text(text) => Some(AssistantContent::text(text.as_str())),
        Part::ToolCall(call) => {
            let function = ToolFunction::parse(tool_name(&call.name)?, &call.arguments);
            Some(AssistantContent::ToolCall(ToolCall::from_wire(call.id.as_str(), function)))
        }
        Part::Reasoning(reasoning) => {
            Some(AssistantContent::Reasoning(Reasoning::new(reasoning.text.as_str())))
        }
        _ => None,
    })
}

fn user_content(
    part: &Part,
    known: &mut Vec<UserContent>,
    names: &HashMap<String, String>,
) -> Result<Option<UserContent>, MemoryError> {
    if let Some(at) = known.iter().position(|content| user_part(content).is_ok_and(|own| own == *part)) {
        return Ok(Some(known.remove(at)));
    }
    Ok(match part {
        Part::Text(text) => Some(UserContent::Text(Text::new(text.as_str()))),
        Part::ToolResult(result) => Some(UserContent::ToolResult(shortened_result(result, known, names)?)),
        _ => None,
    })
}

/// A tool result with shortened content, with the call and the tool name of the original.
fn shortened_result(
    result: &ToolResult,
    known: &[UserContent],
    names: &HashMap<String, String>,
) -> Result<RigResult, MemoryError> {
    let own = known.iter().find_map(|content| match content {
        UserContent::ToolResult(own) if *own.call.wire() == *result.call_id => Some(own),
        _ => None,
    });
    let texts = result.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(ToolResultContent::Text(Text::new(text.as_str()))),
        _ => None,
    });
    let (call, name) = match own {
        Some(own) => (own.call.clone(), own.name.clone()),
        None => {
            let name = names.get(result.call_id.as_str()).map_or("tool", String::as_str);
            (CallId::from_wire(result.call_id.as_str()), tool_name(name)?)
        }
    };
    Ok(RigResult { call, name, content: texts.collect(), is_error: result.is_error })
}

fn tool_name(name: &str) -> Result<ToolName, MemoryError> {
    ToolName::new(name).map_err(MemoryError::backend)
}
