//! From what is visible to what is sent.

use std::borrow::Cow;

use epitome_core::attribution::Authority;
use epitome_core::message::{CallKind, Role};
use epitome_core::{BRIDGE, BRIDGE_USER, Pending, Profile, Repair, repair};

use crate::message::{Message, Part};
use crate::wire::openai_responses::OwnCalls;

/// `messages`, legal for `profile`, and what had to be changed. What a provider left for another model than `model` is not
/// for this one.
pub(super) fn legal(profile: Profile, model: &str, messages: &[&Message]) -> (Vec<Message>, Vec<Repair>) {
    let (mut written, repairs) = repaired(profile, messages);
    for message in &mut written {
        if let Cow::Owned(sent) = message.for_model(model) {
            *message = sent;
        }
    }
    (written, repairs)
}

/// `messages` as they go on from what a service keeps, which are `all` that were said before: results in the form that answers
/// their calls.
pub(super) fn continued(all: &[&Message], messages: &[&Message]) -> Vec<Message> {
    let mut calls = OwnCalls::default();
    all.iter().for_each(|message| calls.push(message));
    let answered = |message: &&Message| calls.answered(message).unwrap_or_else(|| (*message).clone());
    messages.iter().map(answered).collect()
}

fn repaired(profile: Profile, messages: &[&Message]) -> (Vec<Message>, Vec<Repair>) {
    let steps = repair(profile, messages.iter().copied(), Pending::Over);
    let untouched = (0_u32..).map(Repair::Keep);
    let changed = steps.len() != messages.len() || !steps.iter().copied().eq(untouched.take(steps.len()));
    let written = write(messages, &steps);
    (written, if changed { steps } else { Vec::new() })
}

fn write(messages: &[&Message], steps: &[Repair]) -> Vec<Message> {
    let at = |position: u32| messages.get(position as usize).copied();
    let mut written: Vec<Message> = Vec::with_capacity(steps.len());
    for step in steps {
        let message = match *step {
            Repair::Keep(position) => at(position).cloned(),
            Repair::Abort { position, call } | Repair::Unrecorded { position, call } => {
                at(position).and_then(|message| invented(message, call, step.invented()?))
            }
            Repair::DropReasoning { position } => at(position).map(without_reasoning),
            Repair::BridgeUser => Some(Message::user(BRIDGE_USER)),
            Repair::BridgeAssistant => Some(Message::assistant(BRIDGE)),
            Repair::Merge { position } => match (written.pop(), at(position)) {
                (Some(last), Some(more)) => Some(merged(last, more)),
                (last, more) => last.or_else(|| more.cloned()),
            },
            // A step of a later release of the core.
            _ => None,
        };
        written.extend(message);
    }
    written
}

/// A result of this text for the `call`th call of `message`.
fn invented(message: &Message, call: u32, text: &'static str) -> Option<Message> {
    let calls = message.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) if call.kind == CallKind::Function => Some(call),
        _ => None,
    });
    let mut calls = calls.skip(call as usize);
    calls
        .next()
        .filter(|_| message.role() == Role::Assistant)
        .map(|call| Message::tool(call.id.clone(), text))
}

fn without_reasoning(message: &Message) -> Message {
    let parts = message.parts().iter().filter(|part| !matches!(part, Part::Reasoning(_)));
    message.clone().with_parts(parts.cloned().collect())
}

/// Both as one message; its authority is the lower one.
fn merged(first: Message, more: &Message) -> Message {
    let mut attribution = first.attribution().clone();
    attribution.authority = Authority::min_of([attribution.authority, more.attribution().authority]);
    let parts = first.parts().iter().chain(more.parts()).cloned().collect();
    first.with_parts(parts).with_attribution(attribution)
}
