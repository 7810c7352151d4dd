//! Messages in the order that the target's profile accepts.

use epitome_core::message::CallKind;
use epitome_core::{Pending, Repair, repair};

use super::loss::{Loss, LossKind};
use super::parts::{Prepared, Told};
use super::target::Target;
use crate::message::{Message, Part, ToolCall};

/// The messages that the target accepts: what was left out, moved or invented goes to `losses`.
pub(super) fn repaired<'m>(
    prepared: Vec<Prepared<'m>>,
    target: &Target,
    losses: &mut Vec<Loss>,
) -> Vec<Told<'m>> {
    // A file is at rest: nothing of it is still running.
    let steps = repair(target.profile, prepared.iter().map(|prepared| &*prepared.message), Pending::Over);
    let mut made: Vec<Told<'_>> = Vec::with_capacity(steps.len());
    let mut kept = vec![false; prepared.len()];
    let (mut newest, mut last) = (0, 0);
    // The calls of the message whose calls are being answered.
    let mut calls: Option<(u32, Vec<&ToolCall>)> = None;
    let mut lose = |kind, message: usize| losses.push(Loss { message, kind, what: String::new() });
    for step in steps {
        let position = match step {
            Repair::Keep(position) | Repair::Merge { position } | Repair::DropReasoning { position } => {
                Some(position as usize)
            }
            _ => None,
        };
        if let Some(position) = position {
            last = prepared.get(position).map_or(last, |prepared| prepared.at);
            if let Some(kept) = kept.get_mut(position) {
                *kept = true;
            }
            let apart = target.hoists() && prepared.get(position).is_some_and(Prepared::is_instruction);
            if !apart {
                if position < newest {
                    lose(LossKind::Moved, last);
                }
                newest = newest.max(position);
            }
        }
        let message = position.and_then(|position| prepared.get(position)).map(|prepared| &prepared.message);
        match (step, message) {
            (Repair::Keep(_), Some(message)) => made.push(message.clone()),
            (Repair::DropReasoning { .. }, Some(message)) => {
                lose(LossKind::Reasoning, last);
                made.push(without_reasoning(message).into());
            }
            (Repair::Merge { .. }, Some(message)) => join(&mut made, message),
            (Repair::Abort { position, call } | Repair::Unrecorded { position, call }, _) => {
                let called = prepared.get(position as usize);
                lose(LossKind::Invented, called.map_or(last, |called| called.at));
                if calls.as_ref().is_none_or(|(of, _)| *of != position) {
                    let found = called.map(|called| functions(&called.message)).unwrap_or_default();
                    calls = Some((position, found));
                }
                let found = calls.as_ref().and_then(|(_, found)| found.get(call as usize).copied());
                let result = found.and_then(|call| invented(call, step, target));
                made.extend(result.map(Told::from));
            }
            (Repair::BridgeUser | Repair::BridgeAssistant, _) => {
                lose(LossKind::Invented, last);
                made.extend(bridge(step).map(Told::from));
            }
            _ => {}
        }
    }
    if target.hoists() {
        let late = prepared.iter().skip_while(|prepared| prepared.is_instruction());
        late.filter(|prepared| prepared.is_instruction())
            .for_each(|prepared| lose(LossKind::Moved, prepared.at));
    }
    for (_, prepared) in kept.iter().zip(&prepared).filter(|(kept, _)| !**kept) {
        lose(LossKind::Message, prepared.at);
    }
    made
}

fn without_reasoning(message: &Message) -> Message {
    let rest = message.parts().iter().filter(|part| !matches!(part, Part::Reasoning(_)));
    message.clone().with_parts(rest.cloned().collect())
}

fn join(made: &mut [Told<'_>], message: &Message) {
    if let Some(last) = made.last_mut() {
        let parts = last.parts().iter().chain(message.parts()).cloned().collect();
        *last = Message::clone(last).with_parts(parts).into();
    }
}

/// The message that a step puts between two others.
fn bridge(step: Repair) -> Option<Message> {
    let text = step.invented()?;
    Some(if step == Repair::BridgeUser { Message::user(text) } else { Message::assistant(text) })
}

/// The calls of functions that a message makes.
fn functions(message: &Message) -> Vec<&ToolCall> {
    let calls = message.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) if call.kind == CallKind::Function => Some(call),
        _ => None,
    });
    calls.collect()
}

/// The result that a step invents for a call of a message; with the name of its tool where the target asks for it.
fn invented(call: &ToolCall, step: Repair, target: &Target) -> Option<Message> {
    let result = Message::tool(call.id.clone(), step.invented()?);
    Some(if target.names_results() { result.with_name(call.name.clone()) } else { result })
}
