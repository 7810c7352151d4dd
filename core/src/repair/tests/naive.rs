//! The rules of three profiles in a second form, over the whole conversation at once: slow and obvious.

use std::string::{String, ToString};
use std::vec::Vec;

use crate::message::Role;
use crate::test_message::TestMessage;
use crate::{Profile, Violation, ViolationKind as Kind};

type Twin = fn(&[TestMessage]) -> Vec<Violation>;

pub(super) const TWINS: [(Profile, Twin); 3] =
    [(Profile::OpenaiChat, openai_chat), (Profile::Gemini, gemini), (Profile::Mistral, mistral)];

fn openai_chat(messages: &[TestMessage]) -> Vec<Violation> {
    let messages: Vec<_> = messages.iter().enumerate().collect();
    let mut found = Vec::new();
    results_follow(&messages, false, &mut found);
    sorted(found)
}

fn gemini(messages: &[TestMessage]) -> Vec<Violation> {
    let mut found = Vec::new();
    let rest = without_instructions(messages, usize::MAX, &mut found);
    user_first(&rest, messages.len(), &mut found);
    results_follow(&rest, true, &mut found);
    sorted(found)
}

fn mistral(messages: &[TestMessage]) -> Vec<Violation> {
    let mut found = Vec::new();
    let rest = without_instructions(messages, 1, &mut found);
    user_first(&rest, messages.len(), &mut found);
    results_follow(&rest, false, &mut found);
    for pair in rest.windows(2) {
        if pair[0].1.result().is_some() && is_user(pair[1].1) {
            found.push((pair[1].0, Kind::UserAfterResult));
        }
    }
    let counting: Vec<_> = rest
        .iter()
        .filter(|(_, message)| is_user(message) || is_model(message) && message.calls().is_empty())
        .collect();
    for pair in counting.windows(2) {
        if pair[0].1.role == pair[1].1.role {
            found.push((pair[1].0, Kind::SameRole));
        }
    }
    sorted(found)
}

type Placed<'a> = (usize, &'a TestMessage);

fn is_model(message: &TestMessage) -> bool {
    message.role == Role::Assistant
}

fn is_user(message: &TestMessage) -> bool {
    message.role == Role::User && message.result().is_none()
}

fn without_instructions<'a>(
    messages: &'a [TestMessage],
    leading_max: usize,
    found: &mut Vec<(usize, Kind)>,
) -> Vec<Placed<'a>> {
    let is = |message: &TestMessage| matches!(message.role, Role::System | Role::Developer);
    let leading = messages.iter().take_while(|message| is(message)).count();
    found.extend((leading_max.min(leading)..leading).map(|at| (at, Kind::SecondInstruction)));
    let late = (leading..messages.len()).filter(|at| is(&messages[*at]));
    found.extend(late.map(|at| (at, Kind::LateInstruction)));
    messages.iter().enumerate().filter(|(_, message)| !is(message)).collect()
}

fn user_first(rest: &[Placed<'_>], len: usize, found: &mut Vec<(usize, Kind)>) {
    if let Some((at, first)) = rest.first()
        && !is_user(first)
    {
        found.push((*at, Kind::FirstNotUser));
    }
    if !rest.iter().any(|(_, message)| is_user(message)) {
        found.push((len.saturating_sub(1), Kind::NoUser));
    }
}

/// Cuts the conversation into turns of the model, each with the results directly after it. A turn is one message, or
/// with `joined` all adjacent messages. Each result belongs to the last call of its id without a result.
fn results_follow(messages: &[Placed<'_>], joined: bool, found: &mut Vec<(usize, Kind)>) {
    let mut at = 0;
    while at < messages.len() {
        let mut calls: Vec<(usize, String)> = Vec::new();
        let mut answered: Vec<String> = Vec::new();
        while at < messages.len() && messages[at].1.result().is_none() {
            let (position, message) = messages[at];
            let turn_goes_on = joined && is_model(message) && at > 0 && is_model(messages[at - 1].1);
            if !turn_goes_on {
                found.extend(calls.drain(..).map(|(caller, _)| (caller, Kind::UnansweredCall)));
            }
            calls.extend(message.calls().iter().map(|id| (position, id.to_string())));
            at += 1;
        }
        while at < messages.len()
            && let Some(id) = messages[at].1.result()
        {
            let caller = calls.iter().filter(|call| call.1 == id).map(|call| call.0).max();
            match caller.and_then(|caller| calls.iter().position(|call| *call == (caller, id.into()))) {
                Some(call) => answered.push(calls.remove(call).1),
                None if answered.iter().any(|other| other == id) => {
                    found.push((messages[at].0, Kind::DuplicateResult));
                }
                None => found.push((messages[at].0, Kind::OrphanResult)),
            }
            at += 1;
        }
        let kind = if at == messages.len() { Kind::PendingCall } else { Kind::UnansweredCall };
        found.extend(calls.into_iter().map(|(caller, _)| (caller, kind)));
    }
}

fn sorted(found: Vec<(usize, Kind)>) -> Vec<Violation> {
    let violation = |(at, kind)| Violation::new(u32::try_from(at).unwrap(), kind);
    let mut found: Vec<_> = found.into_iter().map(violation).collect();
    found.sort_unstable();
    found
}
