//! For each profile: small conversations, and their repaired form.
#![expect(clippy::arithmetic_side_effects, reason = "positions in short lists")]

mod naive;
mod properties;

use std::format;
use std::string::String;
use std::vec::Vec;

use super::{Pending, Repair, Repairer};
use crate::message::Role;
use crate::profile::{Neighbours, Profile, Reasoning};
use crate::test_message::{TestMessage, TestPart};
use crate::{OpenCallTree, Validator, Violation};

/// The messages that a writer produces from `steps`.
fn apply(messages: &[TestMessage], steps: &[Repair]) -> Vec<TestMessage> {
    let mut out: Vec<TestMessage> = Vec::new();
    for step in steps {
        match *step {
            Repair::Keep(position) => out.push(messages[position as usize].clone()),
            Repair::Abort { position, call } | Repair::Unrecorded { position, call } => {
                let id = messages[position as usize].calls()[call as usize];
                out.push(TestMessage::new(Role::Tool, [TestPart::Result(id.into())]));
            }
            Repair::Merge { position } => {
                let message = messages[position as usize].clone();
                out.last_mut().expect("a message before").parts.extend(message.parts);
            }
            Repair::DropReasoning { position } => {
                let mut message = messages[position as usize].clone();
                message.parts.retain(|part| !TestMessage::is_reasoning(part));
                assert!(!message.parts.is_empty(), "nothing is left of message {position}");
                out.push(message);
            }
            Repair::BridgeUser => out.push(TestMessage::new(Role::User, [TestPart::Text])),
            Repair::BridgeAssistant => out.push(TestMessage::new(Role::Assistant, [TestPart::Text])),
        }
    }
    out
}

fn validate(profile: Profile, edit: Option<u32>, messages: &[TestMessage]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut validator = Validator::<OpenCallTree>::new(profile);
    if let Some(edit) = edit {
        validator = validator.with_edit(edit);
    }
    for message in messages {
        validator.push(message, &mut |violation| found.push(violation)).expect("a tree has room");
    }
    validator.finish(&mut |violation| found.push(violation));
    found.sort_unstable();
    found
}

fn repair(profile: Profile, edit: Option<u32>, messages: &[TestMessage], pending: Pending) -> Vec<Repair> {
    let mut repairer = Repairer::default();
    if let Some(edit) = edit {
        repairer = repairer.with_edit(edit);
    }
    messages.iter().for_each(|message| repairer.push(message));
    repairer.finish(profile, pending)
}

/// Steps as a few letters: `1` kept, `+1` merged, `-1` without reasoning, `!1.0` aborted, `?1.0` not recorded, `U` and `A` bridges.
fn written(steps: &[Repair]) -> String {
    let step = |step: &Repair| match step {
        Repair::Keep(position) => format!("{position}"),
        Repair::Abort { position, call } => format!("!{position}.{call}"),
        Repair::Unrecorded { position, call } => format!("?{position}.{call}"),
        Repair::Merge { position } => format!("+{position}"),
        Repair::DropReasoning { position } => format!("-{position}"),
        Repair::BridgeUser => "U".into(),
        Repair::BridgeAssistant => "A".into(),
    };
    steps.iter().map(step).collect::<Vec<_>>().join(" ")
}

fn check(profile: Profile, edit: Option<u32>, cases: &[(&str, &str)]) {
    for (conversation, expected) in cases {
        let messages = TestMessage::parse_all(conversation);
        let steps = repair(profile, edit, &messages, Pending::Over);
        assert_eq!(written(&steps), *expected, "{conversation} on {}", profile.as_str());
    }
}

#[test]
fn results_next_to_their_calls() {
    let cases = [
        ("u ac1c2 u t2", "0 1 3 ?1.0 2"),
        ("u ac1 ac2 t1 t2", "0 1 3 2 4"),
        // One group: calls of the same id are answered in their order.
        ("u ac1 ac1 t1 t1", "0 1 3 2 4"),
        ("u ac1 ac1 t1 u", "0 1 3 2 ?2.0 4"),
        // The next message may hold the result of the call: a text of the user, or a result without a call.
        ("u ac1 u", "0 1 ?1.0 2"),
        ("u ac1 t2 a", "0 1 ?1.0 3"),
        ("u ac1c2 t1 t1 a", "0 1 2 ?1.1 4"),
        ("u ac1 ac2 u", "0 1 ?1.0 2 ?2.0 3"),
        ("u ac1 a u", "0 1 ?1.0 2 3"),
        ("u ac1 ac2 t2 a u", "0 1 !1.0 2 3 4 5"),
        ("u ac1 uy", "0 1 !1.0 2"),
        ("u ac1", "0 1 !1.0"),
        ("t1 ac1 t1 t1", "1 2"),
        ("a s u u", "0 1 2 3"),
    ];
    check(Profile::OpenaiChat, None, &cases);
    check(Profile::Deepseek, None, &cases);
}

#[test]
fn reasoning_with_what_it_led_to() {
    let cases = [
        ("u ai u ai at", "0 2 3 4"),
        ("u ati u", "0 -1 2"),
        ("u ac1i a", "0 -1 !1.0 2"),
        ("u ai@A ai a@B", "0 3"),
        ("u ai@A a@A ai a@B", "0 1 2 3 4"),
        ("u ai t1 a", "0 1 3"),
        ("u ac1 ac2 u t1", "0 1 2 ?2.0 3 4"),
    ];
    check(Profile::OpenaiResponses, None, &cases);
    let cases = [("u arc1 t1 u arc1 t1 ac2 t2 ar", "0 1 2 3 -4 5 6 7 8")];
    check(Profile::Deepseek, None, &cases);
}

#[test]
fn joined_neighbours_are_one_turn() {
    let cases = [
        ("u ac1 ac2 t2 t1", "0 1 2 3 4"),
        ("u ac1 ac2 t2 a t1", "0 1 2 3 5 4"),
        ("u s ac1 t1 d", "1 4 0 2 3"),
        ("s a", "0 U 1"),
        ("s", "0 U"),
        ("t1", "U"),
    ];
    check(Profile::Anthropic, None, &cases);
    check(Profile::Gemini, None, &cases);
    check(Profile::Anthropic, None, &[("s ak a", "0 1 2")]);
    check(Profile::Gemini, None, &[("s ak a", "0 U 1 2")]);
}

#[test]
fn signed_reasoning_behind_an_edit() {
    let cases = [("u aot u ao aoc1 t1", "0 1 2 -4 5"), ("u ac1 ao ac2 t2 t1", "0 1 3 4 5")];
    check(Profile::Anthropic, Some(2), &cases);
    check(Profile::Anthropic, Some(0), &[("aok u", "-0 1")]);
    // A message that arrives late and is moved forward was absent when the reasoning before it was signed.
    let cases = [("u aot s aot", "2 0 -1 3"), ("u ac1 u aot t1 aot", "0 1 4 2 -3 5")];
    check(Profile::Anthropic, None, &cases);
    check(Profile::Anthropic, None, &[("u aot u ao aoc1 t1", "0 1 2 3 4 5")]);
}

#[test]
fn alternation() {
    let cases = [
        ("u u a a u", "0 +1 2 +3 4"),
        ("u a ac1 t1 u u", "0 1 +2 3 4 +5"),
        ("u t1 u", "0 +2"),
        ("u s u", "1 0 +2"),
        ("u ac1 ac2 t1 t2", "0 1 3 2 4"),
    ];
    check(Profile::BedrockConverse, None, &cases);
}

#[test]
fn alternation_beside_tools() {
    let cases = [
        ("u ac1 t1 u", "0 1 2 A 3"),
        ("u a ac1 t1 u", "0 1 +2 3 A 4"),
        ("u a ac1 t1", "0 1 2 3"),
        ("u a ac1 t1 a", "0 1 +2 3 4"),
        ("u u a a u", "0 +1 2 +3 4"),
        ("s u d a s", "0 +2 +4 1 3"),
        ("a ac1", "U 0 1 !1.0"),
        ("ac1 t1 u", "U 0 1 A 2"),
    ];
    check(Profile::Mistral, None, &cases);
    check(Profile::Qwen, None, &cases);
}

#[test]
fn running_calls_stay_open() {
    for profile in Profile::ALL {
        let messages = TestMessage::parse_all("u ac1 u ac1c2 t2");
        let steps = repair(profile, None, &messages, Pending::Running);
        let left = validate(profile, None, &apply(&messages, &steps));
        let kinds: Vec<_> = left.iter().map(|violation| violation.kind.as_str()).collect();
        assert_eq!(kinds, ["pending_call"], "{}", profile.as_str());
    }
}

/// Several steps of one turn have parallel calls that run. None of these calls is given up, and each result that has
/// arrived is moved to its call. The call of the earlier turn is given up.
#[test]
fn running_calls_of_all_steps_stay_open() {
    let cases = [
        ("u ac1 u ac1c2 t2 ac3 ac4c5 t5 a", "0 1 ?1.0 2 3 4 5 6 7 8"),
        ("u ac1c2 t1 a ac2 u1", "0 1 2 3 4"),
        ("u ac1 s ac2 d t1", "0 1 5 2 3 4"),
        // An answer to a request for approval begins no turn.
        ("u ac1 uy ac2", "0 1 2 3"),
        ("ac1 ac2", "0 1"),
        ("u ac1 ac2 t2 u", "0 1 ?1.0 2 3 4"),
    ];
    for (conversation, expected) in cases {
        let messages = TestMessage::parse_all(conversation);
        let steps = repair(Profile::OpenaiChat, None, &messages, Pending::Running);
        assert_eq!(written(&steps), expected, "{conversation}");
        // After the end of the run, every call has a result.
        let over = repair(Profile::OpenaiChat, None, &messages, Pending::Over);
        assert_eq!(validate(Profile::OpenaiChat, None, &apply(&messages, &over)), []);
    }
}

/// A merge does not change a message, so no profile both merges messages and drops reasoning.
#[test]
fn no_profile_both_merges_and_drops_reasoning() {
    for rules in Profile::ALL.map(Profile::rules) {
        let merges = matches!(rules.neighbours, Neighbours::Alternate | Neighbours::AlternateBesideTools);
        assert!(!merges || rules.reasoning == Reasoning::Free, "{rules:?}");
    }
}
