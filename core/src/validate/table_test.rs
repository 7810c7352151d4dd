//! For each profile: small conversations, and their violations.

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use super::{Validator, ViolationKind};
use crate::test_message::TestMessage;
use crate::{OpenCallSlots, Profile};

/// A conversation, and the violations in it as `position kind`, in order.
type Case = (&'static str, &'static [&'static str]);

fn found(profile: Profile, edit: Option<u32>, conversation: &str) -> Vec<String> {
    found_in::<8>(profile, edit, conversation)
}

fn found_in<const SLOTS: usize>(profile: Profile, edit: Option<u32>, conversation: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut validator = Validator::<OpenCallSlots<SLOTS>>::new(profile);
    if let Some(edit) = edit {
        validator = validator.with_edit(edit);
    }
    for message in TestMessage::parse_all(conversation) {
        validator.push(&message, &mut |violation| found.push(violation)).unwrap();
    }
    validator.finish(&mut |violation| found.push(violation));
    found.sort_unstable();
    found.iter().map(|found| format!("{} {}", found.position, found.kind.as_str())).collect()
}

fn check(profile: Profile, cases: &[Case]) {
    for (conversation, expected) in cases {
        assert_eq!(found(profile, None, conversation), *expected, "{conversation} on {}", profile.as_str());
    }
}

/// With too few slots, only the kind of the violation for a second result differs.
#[test]
fn answered_calls_take_no_room_from_others() {
    let conversation = "u ac1 t1 ac2 t2 ac3 t3 t3";
    assert_eq!(found_in::<3>(Profile::OpenaiResponses, None, conversation), ["7 duplicate_result"]);
    assert_eq!(found_in::<1>(Profile::OpenaiResponses, None, conversation), ["7 orphan_result"]);
}

#[test]
fn openai_chat() {
    let cases: &[Case] = &[
        ("s u ac1c2 t2 t1 a u", &[]),
        ("a u u s a a", &[]),
        ("", &[]),
        ("u ah1 u", &[]),
        ("u ac1 u", &["1 unanswered_call"]),
        ("u ac1", &["1 pending_call"]),
        ("u ac1c2 t1", &["1 pending_call"]),
        ("u ac1 u t1", &["1 unanswered_call", "3 orphan_result"]),
        ("u ac1 s t1", &["1 unanswered_call", "3 orphan_result"]),
        ("u ac1 ac2 t1 t2", &["1 unanswered_call", "3 orphan_result"]),
        ("u ac1 t1 t1", &["3 duplicate_result"]),
        ("u ac1c1 t1 t1 a", &[]),
        ("u ac1 u1 a", &[]),
        ("t1 u t", &["0 orphan_result", "2 orphan_result"]),
    ];
    check(Profile::OpenaiChat, cases);
}

#[test]
fn openai_responses() {
    let cases: &[Case] = &[
        ("u ac1 ac2 t2 u t1 a", &[]),
        ("a s u u", &[]),
        ("t1 ac1", &["0 orphan_result", "1 pending_call"]),
        ("u ai at", &[]),
        ("u ai ai ac1 t1", &[]),
        ("u ait u", &[]),
        ("u ai@A ac1@A t1", &[]),
        ("u ai@A a@B", &["1 lone_reasoning"]),
        ("u ai@A ai a@B", &["1 lone_reasoning", "2 lone_reasoning"]),
        ("u ai", &["1 lone_reasoning"]),
        ("u ati u a", &["1 lone_reasoning"]),
        ("u ac1 ai t1 a", &["2 lone_reasoning"]),
        ("u ar u ao", &[]),
    ];
    check(Profile::OpenaiResponses, cases);
}

#[test]
fn anthropic() {
    let cases: &[Case] = &[
        ("s d u u a a ac1 ac2 t2 t1 u a", &[]),
        ("s ak a u", &[]),
        ("uk a", &[]),
        ("u ac1 s t1", &["2 late_instruction"]),
        ("a u", &["0 first_not_user"]),
        ("a ak", &["0 first_not_user", "1 no_user"]),
        ("s", &["0 no_user"]),
        ("", &["0 no_user"]),
        ("u ac1 t1 ac2 t2 u", &[]),
        ("u ac1c2 t1 u t2", &["1 unanswered_call", "4 orphan_result"]),
        ("u ac1 ac2 t2 a t1", &["1 unanswered_call", "5 orphan_result"]),
        ("u ac1 ac2", &["1 pending_call", "2 pending_call"]),
        ("u aot", &[]),
    ];
    check(Profile::Anthropic, cases);
}

#[test]
fn signed_reasoning_behind_an_edit() {
    let conversation = "s u aot u aoc1 t1 aot art";
    let expected = ["4 bound_thinking", "6 bound_thinking"];
    assert_eq!(found(Profile::Anthropic, Some(4), conversation), expected);
    assert_eq!(found(Profile::Anthropic, Some(3), conversation), expected);
    assert_eq!(found(Profile::Anthropic, Some(7), conversation), [""; 0]);
    assert_eq!(found(Profile::OpenaiChat, Some(0), conversation), [""; 0]);
}

#[test]
fn gemini() {
    let cases: &[Case] = &[
        ("s u a ac1 ac2 t1 t2 u u a", &[]),
        ("ac1 t1 u", &["0 first_not_user"]),
        ("ak u", &["0 first_not_user"]),
        ("u ac1c2 t1 a", &["1 unanswered_call"]),
        ("u ac1 t1 t1 a", &["3 duplicate_result"]),
        ("u ac1 t1 t2 a", &["3 orphan_result"]),
        ("u ac1 u t1", &["1 unanswered_call", "3 orphan_result"]),
        ("u d a", &["1 late_instruction"]),
    ];
    check(Profile::Gemini, cases);
}

#[test]
fn mistral_and_qwen() {
    let cases: &[Case] = &[
        ("s u a u ac1 t1 ac2 t2 a u", &[]),
        ("u a ac1 t1 ac2 t2", &[]),
        ("u ac1 t1 u", &["3 same_role", "3 user_after_result"]),
        ("u a ac1 t1 u", &["4 user_after_result"]),
        ("u a ac1 t1 a", &["4 same_role"]),
        ("u u a a u", &["1 same_role", "3 same_role"]),
        ("s d u", &["1 second_instruction"]),
        ("u s a", &["1 late_instruction"]),
        ("s a", &["1 first_not_user", "1 no_user"]),
        ("ac1 t1", &["0 first_not_user", "1 no_user"]),
        ("u ac1c2 t1 a", &["1 unanswered_call"]),
        ("u ah1 a", &["2 same_role"]),
        ("u ac1 u1 a u", &[]),
    ];
    check(Profile::Mistral, cases);
    check(Profile::Qwen, cases);
}

#[test]
fn deepseek() {
    let cases: &[Case] = &[
        ("u arc1 t1 arc2 t2 a", &[]),
        ("u ac1 t1 ac2 t2 ar", &[]),
        ("u arc1 t1 ac2 t2 ac3 t3", &["3 missing_reasoning"]),
        ("u ac1 t1 ac2 t2 arc3 t3", &["1 missing_reasoning"]),
        ("u arc1 t1 ac2 t2 u a", &[]),
        ("u arc1 t1 u ac2 t2", &[]),
        ("u arc1 u", &["1 unanswered_call"]),
    ];
    check(Profile::Deepseek, cases);
}

#[test]
fn bedrock_converse() {
    let cases: &[Case] = &[
        ("s s u a u ac1c2 t2 t1 u a", &[]),
        ("u u", &["1 same_role"]),
        ("u a ac1 t1", &["2 same_role"]),
        ("u ac1 t1 u u", &["4 same_role"]),
        ("a u", &["0 first_not_user"]),
        ("u ac1 u t1", &["1 unanswered_call", "3 orphan_result"]),
        ("u s a", &["1 late_instruction"]),
    ];
    check(Profile::BedrockConverse, cases);
}

#[test]
fn permissive() {
    let cases: &[Case] = &[
        ("a s ac1 u ac2 t2 t1 u u", &[]),
        ("ac1 u", &["0 pending_call"]),
        ("t1 ac1 t1 t1", &["0 orphan_result", "3 duplicate_result"]),
    ];
    check(Profile::Permissive, cases);
}

#[test]
fn names() {
    for profile in Profile::ALL {
        assert_eq!(Profile::by_name(profile.as_str()), Some(profile));
    }
    assert_eq!(Profile::by_name("chatml"), None);
    let mut names = vec![""; 0];
    for kind in ViolationKind::ALL {
        let text = super::Violation::new(7, kind).to_string();
        assert!(text.starts_with("message 7: ") && text.ends_with(&format!("({})", kind.as_str())), "{text}");
        assert!(!names.contains(&kind.as_str()));
        names.push(kind.as_str());
    }
}
