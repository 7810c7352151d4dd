//! Tests of the repaired messages against a twin that makes one message after the other, and of the number of reads of
//! each message.

use core::convert::Infallible;
use std::format;
use std::vec;

use epitome_core::{Pending, Profile, repair};
use proptest::prelude::*;

use super::*;
use crate::message::{Reasoning, WireText};

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Part::Text("text".into())),
        Just(Part::Reasoning(Reasoning::new("hm"))),
        (0..3_u8).prop_map(|id| Part::ToolCall(ToolCall::new(format!("c{id}"), format!("tool{id}"), "{}"))),
        Just(Part::ToolCall(ToolCall { kind: CallKind::Hosted, ..ToolCall::new("h", "search", "{}") })),
    ]
}

/// Messages of any parts, some of them read from a text, some with less authority than their role has.
fn message() -> impl Strategy<Value = Message> {
    let roles = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::System)];
    let parts = prop::collection::vec(part(), 1..4);
    (roles, parts, 0..3_u8, any::<bool>(), 0..9_u8).prop_map(|(role, parts, form, retrieved, number)| {
        let mut message = Message::new(role, parts).with_name(format!("n{number}"));
        if retrieved {
            let attribution = Attribution::caller(Authority::Retrieved);
            message = message.with_attribution(attribution);
        }
        match form {
            0 => message,
            form => message.with_wire(WireText::new(format!("f{form}").into(), format!("{number}").into())),
        }
    })
}

/// Steps in any order, some with positions that no message has. No repair makes such steps.
fn step() -> impl Strategy<Value = Repair> {
    let positions = 0..12_u32;
    prop_oneof![
        3 => positions.clone().prop_map(Repair::Keep),
        3 => positions.clone().prop_map(|position| Repair::Merge { position }),
        2 => positions.clone().prop_map(|position| Repair::DropReasoning { position }),
        2 => (positions.clone(), 0..3_u32).prop_map(|(position, call)| Repair::Abort { position, call }),
        1 => (positions, 0..3_u32).prop_map(|(position, call)| Repair::Unrecorded { position, call }),
        1 => Just(Repair::BridgeUser),
        1 => Just(Repair::BridgeAssistant),
    ]
}

fn applied(steps: &[Repair], named: bool, messages: &[Message]) -> (Vec<Repaired>, Vec<u32>) {
    let (mut repaired, mut reads) = (Vec::new(), Vec::new());
    let read = |position: u32| {
        reads.push(position);
        Ok::<_, Infallible>(messages.get(position as usize).map(Cow::Borrowed))
    };
    let Ok(()) = apply_repairs(steps.iter().copied(), named, read, |message| {
        repaired.push(message);
        Ok(())
    });
    (repaired, reads)
}

/// One message after the other: each step makes a message, or replaces the last one.
fn twin(steps: &[Repair], named: bool, messages: &[Message]) -> Vec<(Option<u32>, Message)> {
    let mut made: Vec<(Option<u32>, Option<Message>)> = Vec::new();
    for step in steps {
        match *step {
            Repair::Keep(at) => made.push((Some(at), messages.get(at as usize).cloned())),
            Repair::DropReasoning { position } => made.extend(messages.get(position as usize).map(|it| {
                let mut parts = it.parts().to_vec();
                parts.retain(|part| !matches!(part, Part::Reasoning(_)));
                (Some(position), Some(it.clone().with_parts(parts)))
            })),
            Repair::Abort { position, call } | Repair::Unrecorded { position, call } => {
                let caller = messages.get(position as usize).filter(|it| it.role() == Role::Assistant);
                let calls = caller.into_iter().flat_map(Message::parts).filter_map(|part| match part {
                    Part::ToolCall(call) if call.kind == CallKind::Function => Some(call),
                    _ => None,
                });
                made.extend(calls.skip(call as usize).take(1).map(|call| {
                    let result = Message::tool(call.id.clone(), step.invented().unwrap());
                    (None, Some(if named { result.with_name(call.name.clone()) } else { result }))
                }));
            }
            Repair::Merge { position } => {
                let more = messages.get(position as usize);
                let Some((at, first)) = made.pop() else {
                    made.push((Some(position), more.cloned()));
                    continue;
                };
                let (Some(first), Some(more)) = (first.clone(), more) else {
                    made.push(if more.is_some() { (Some(position), more.cloned()) } else { (at, first) });
                    continue;
                };
                let parts = [first.parts(), more.parts()].concat();
                let mut attribution = first.attribution().clone();
                attribution.authority = attribution.authority.min(more.attribution().authority);
                let form = if first.wire().is_none() && more.wire().is_some() { more.clone() } else { first };
                made.push((at, Some(form.with_parts(parts).with_attribution(attribution))));
            }
            Repair::BridgeUser => made.push((None, Some(Message::user(BRIDGE_USER)))),
            Repair::BridgeAssistant => made.push((None, Some(Message::assistant(BRIDGE)))),
            _ => unreachable!("a step of a new kind"),
        }
    }
    made.into_iter().filter_map(|(at, message)| Some((at, message?))).collect()
}

proptest! {
    #[test]
    fn the_steps_make_what_the_twin_makes(
        messages in prop::collection::vec(message(), 9),
        steps in prop::collection::vec(step(), 0..12),
        named in any::<bool>(),
    ) {
        let (repaired, _) = applied(&steps, named, &messages);
        let mut made = Vec::new();
        for message in repaired {
            made.extend(match message {
                Repaired::Kept(at) => messages.get(at as usize).map(|it| (Some(at), it.clone())),
                Repaired::Changed(at, message) => Some((Some(at), message)),
                Repaired::Invented(message) => Some((None, message)),
            });
        }
        prop_assert_eq!(made, twin(&steps, named, &messages));
    }
}

#[test]
fn a_message_is_read_once_however_many_of_its_calls_have_no_result() {
    for count in [1, 2, 50] {
        let calls = (0..count).map(|at| Part::ToolCall(ToolCall::new(format!("c{at}"), "f", "{}")));
        let messages =
            [Message::user("go"), Message::new(Role::Assistant, calls.collect()), Message::user("go")];
        for profile in [Profile::OpenaiChat, Profile::Gemini] {
            let steps = repair(profile, &messages, Pending::Over);
            let (repaired, reads) = applied(&steps, profile.names_results(), &messages);
            let named =
                repaired.iter().filter(|it| matches!(it, Repaired::Invented(it) if it.name() == Some("f")));
            assert_eq!(named.count(), if profile == Profile::Gemini { count } else { 0 });
            assert_eq!((reads, repaired.len()), (vec![1], 3 + count));
        }
    }
}

#[test]
fn a_message_that_others_are_merged_into_is_read_once() {
    for count in [1, 2, 50] {
        let messages = vec![Message::user("go"); count + 1];
        let steps = repair(Profile::BedrockConverse, &messages, Pending::Over);
        let (repaired, mut reads) = applied(&steps, false, &messages);
        reads.sort_unstable();
        assert_eq!((repaired.len(), reads), (1, (0..=u32::try_from(count).unwrap()).collect()));
    }
}
