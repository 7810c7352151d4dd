//! Results in a message of the model, and results of calls that look like hosted calls of the provider.

use std::collections::HashSet;

use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part, Str, ToolCall};

use super::transcript::TranscriptEntry;

/// The function calls of one message of the model whose results are in the same message.
///
/// The reader makes a tool message of each such result, so that the call and its result are one group.
#[derive(Debug, Default)]
pub(crate) struct AnsweredCalls<'p>(HashSet<&'p str>);

impl<'p> AnsweredCalls<'p> {
    /// Collects the answered calls among `parts`, the parts of a message of this role.
    pub(crate) fn of(role: Role, parts: impl Iterator<Item = &'p Part> + Clone) -> Self {
        let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
        if role != Role::Assistant || !parts.clone().any(is_result) {
            return Self::default();
        }
        Self(parts.filter_map(|part| called(part, CallKind::Function)).map(|call| call.id.as_str()).collect())
    }

    /// Whether `part` is the result of one of these calls.
    pub(crate) fn has_result(&self, part: &Part) -> bool {
        matches!(part, Part::ToolResult(result) if self.0.contains(result.call_id.as_str()))
    }
}

/// Splits a message of the model that answers its own function calls: the model's parts, and a tool message for each
/// result. `None` for any other message.
pub(crate) fn pieces(message: &Message) -> Option<Vec<Message>> {
    let answered = AnsweredCalls::of(message.role(), message.parts().iter());
    if !message.parts().iter().any(|part| answered.has_result(part)) {
        return None;
    }
    let mut pieces: Vec<Message> = Vec::new();
    let mut said: Vec<Part> = Vec::new();
    for part in message.parts() {
        if !answered.has_result(part) {
            said.push(part.clone());
            continue;
        }
        if !said.is_empty() {
            pieces.push(piece(message, core::mem::take(&mut said)));
        }
        pieces.push(Message::new(Role::Tool, vec![part.clone()]));
    }
    if !said.is_empty() {
        pieces.push(piece(message, said));
    }
    Some(pieces)
}

fn piece(whole: &Message, parts: Vec<Part>) -> Message {
    let piece = Message::new(whole.role(), parts).with_attribution(whole.attribution().clone());
    match whole.name() {
        Some(name) => piece.with_name(name),
        None => piece,
    }
}

/// Marks the answered calls of one message as hosted calls, which no result follows.
///
/// Use it for a format whose writer cannot split such a message.
pub(crate) fn mark_answered(parts: &mut [Part]) {
    let answered: HashSet<Str> = parts.iter().filter_map(result_of).cloned().collect();
    for part in parts {
        if let Part::ToolCall(call) = part
            && answered.contains(&call.id)
        {
            call.kind = CallKind::Hosted;
        }
    }
}

/// Finds hosted calls that a later tool message answers, and marks them as calls that the caller ran.
pub(crate) fn link(entries: &mut [TranscriptEntry]) {
    let is_hosted = |entry: &TranscriptEntry| calls_of(entry, CallKind::Hosted).next().is_some();
    if !entries.iter().any(is_hosted) {
        return;
    }
    let results = entries.iter().filter(|entry| entry.message().role() == Role::Tool);
    let answered: HashSet<Str> =
        results.flat_map(|entry| entry.message().parts()).filter_map(result_of).cloned().collect();
    for entry in entries {
        let own: HashSet<Str> = entry.message().parts().iter().filter_map(result_of).cloned().collect();
        for part in entry.parts_mut() {
            if let Part::ToolCall(call) = part
                && call.kind == CallKind::Hosted
                && answered.contains(&call.id)
                && !own.contains(&call.id)
            {
                call.kind = CallKind::Function;
            }
        }
    }
}

fn calls_of(entry: &TranscriptEntry, kind: CallKind) -> impl Iterator<Item = &ToolCall> {
    entry.message().parts().iter().filter_map(move |part| called(part, kind))
}

fn called(part: &Part, kind: CallKind) -> Option<&ToolCall> {
    if let Part::ToolCall(call) = part { Some(call).filter(|call| call.kind == kind) } else { None }
}

/// The id of the call that a result answers, if `part` is a result with an id.
fn result_of(part: &Part) -> Option<&Str> {
    if let Part::ToolResult(result) = part { Some(&result.call_id).filter(|id| !id.is_empty()) } else { None }
}
