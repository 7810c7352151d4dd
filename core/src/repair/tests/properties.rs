//! Properties of repairs on generated conversations, with every profile.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;
use std::{format, println, vec};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::{apply, naive, repair, validate, written};
use crate::message::Role;
use crate::profile::Results;
use crate::repair::{Pending, Repair};
use crate::test_message::{TestMessage, TestPart};
use crate::{Profile, ViolationKind};

const CASES: u32 = if cfg!(miri) { 20 } else { 2_000 };

/// Least number of conversations, of 1,000, in which each kind of violation must occur.
const KINDS_MIN: u32 = 2;

fn call_id() -> impl Strategy<Value = String> {
    select(vec!["1", "2", "3"]).prop_map(String::from)
}

fn model_part() -> impl Strategy<Value = TestPart> {
    prop_oneof![
        4 => Just(TestPart::Text),
        4 => call_id().prop_map(TestPart::Call),
        1 => call_id().prop_map(TestPart::Hosted),
        1 => Just(TestPart::Reasoning),
        2 => Just(TestPart::Item),
        1 => Just(TestPart::Opaque),
        1 => Just(TestPart::Compaction),
    ]
}

/// Any message that a reader may produce; the order of messages is free.
fn message() -> impl Strategy<Value = TestMessage> {
    let response = proptest::option::of(select(vec!["A", "B"]).prop_map(String::from));
    let model = (vec(model_part(), 0..4), response).prop_map(|(parts, response)| {
        let message = TestMessage::new(Role::Assistant, parts);
        TestMessage { response, ..message }
    });
    let result = (select(vec![Role::Tool, Role::Tool, Role::Tool, Role::User]), call_id())
        .prop_map(|(role, id)| TestMessage::new(role, [TestPart::Result(id)]));
    prop_oneof![
        6 => model,
        4 => result,
        4 => Just(TestMessage::parse("u")),
        2 => Just(TestMessage::parse("a")),
        1 => select(vec!["uy", "uk", "t", "ak", "s", "d", "s"]).prop_map(TestMessage::parse),
    ]
}

/// Messages in a usual order: a user message, steps of calls and results in some order, a text.
fn turn() -> impl Strategy<Value = Vec<TestMessage>> {
    let step = select(vec![
        "a",
        "ac1 t1",
        "atc1c2 t2 t1",
        "aic1 t1",
        "arc1 t1",
        "ac1 ac2 t1 t2",
        "aoc1 t1 t1",
        "ai at",
    ]);
    (
        select(vec!["u", "u", "s u", "s d u", "uk", "", "u u"]),
        vec(step, 0..4),
        select(vec!["a", "aot", "", "ai"]),
    )
        .prop_map(|(user, steps, text)| TestMessage::parse_all(&format!("{user} {} {text}", steps.join(" "))))
}

fn conversation() -> impl Strategy<Value = Vec<TestMessage>> {
    let turns = vec(turn(), 0..4).prop_map(|turns| turns.concat());
    let mixed = (vec(turn(), 0..3), vec(message(), 0..4)).prop_map(|(turns, others)| {
        let mut all = turns.concat();
        for (at, other) in others.into_iter().enumerate() {
            all.insert((at * 7 + 1) % (all.len() + 1), other);
        }
        all
    });
    // Calls of several steps without results.
    let running = (vec(turn(), 0..3), select(vec!["u ac1 ac2", "s u ac1 t1 ac2 ac3", "u aoc1 ac2c3 t2"]));
    let running = running.prop_map(|(turns, last)| [turns.concat(), TestMessage::parse_all(last)].concat());
    prop_oneof![4 => vec(message(), 0..12), 4 => turns, 4 => mixed, 1 => running]
}

fn edit() -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(0..8_u32)
}

fn check(property: impl Fn(Profile, Option<u32>, &[TestMessage])) {
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let case = (select(&Profile::ALL[..]), edit(), conversation());
    let checked = runner.run(&case, |(profile, edit, messages)| {
        property(profile, edit, &messages);
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{error}"));
}

/// The first position in the written messages at which they differ from the messages that the provider has seen.
fn edit_after(steps: &[Repair], edit: Option<u32>) -> Option<u32> {
    let edit = edit?;
    let behind = |step: &Repair| matches!(step, Repair::Keep(at) | Repair::DropReasoning { position: at } if *at >= edit);
    let apart = steps.iter().position(behind).unwrap_or(steps.len());
    u32::try_from(apart).ok()
}

#[test]
fn a_repaired_request_is_legal() {
    check(|profile, edit, messages| {
        let steps = repair(profile, edit, messages, Pending::Over);
        let left = validate(profile, edit_after(&steps, edit), &apply(messages, &steps));
        assert!(left.is_empty(), "{left:?} after {}", written(&steps));
    });
}

/// With [`Pending::Running`], one violation is left for each call of the current turn that [`Pending::Over`] would give
/// up. The calls of earlier turns are given up all the same.
#[test]
fn only_running_calls_are_left() {
    let several = RefCell::new(0_u32);
    check(|profile, edit, messages| {
        let begins = |message: &TestMessage| {
            message.role == Role::User
                && message.result().is_none()
                && message.parts.contains(&TestPart::Text)
        };
        let turn = messages.iter().rposition(begins).unwrap_or(0);
        let aborts = |pending| {
            let steps = repair(profile, edit, messages, pending);
            let mut aborted: Vec<(u32, u32)> = Vec::new();
            for step in &steps {
                if let Repair::Abort { position, call } | Repair::Unrecorded { position, call } = step {
                    aborted.push((*position, *call));
                }
            }
            aborted.sort_unstable();
            (steps, aborted)
        };
        let (_, over) = aborts(Pending::Over);
        let (steps, aborted) = aborts(Pending::Running);
        let (earlier, running): (Vec<_>, Vec<_>) =
            over.into_iter().partition(|call| (call.0 as usize) < turn);
        assert_eq!(aborted, earlier, "{}", written(&steps));
        let left = validate(profile, edit_after(&steps, edit), &apply(messages, &steps));
        let waits = [ViolationKind::PendingCall, ViolationKind::UnansweredCall];
        assert!(left.iter().all(|found| waits.contains(&found.kind)), "{left:?} after {}", written(&steps));
        assert_eq!(left.len(), running.len(), "{left:?} after {}", written(&steps));
        let steps_of = running.iter().map(|call| call.0).collect::<std::collections::BTreeSet<_>>();
        *several.borrow_mut() += u32::from(steps_of.len() > 1);
    });
    println!("calls of several steps run in {} of {CASES}", several.borrow());
    assert!(cfg!(miri) || several.into_inner() >= CASES / 25);
}

/// An aborted call is reported only where no result can be. From the call to the next message of the model there is no
/// text of the user, and no result that the repair leaves out because it has no call. The provider's own calls get no
/// report.
#[test]
fn no_failure_is_invented_where_a_result_may_be() {
    let counts = RefCell::new((0_u32, 0_u32));
    check(|profile, edit, messages| {
        let steps = repair(profile, edit, messages, Pending::Over);
        let kept = |at: usize| steps.contains(&Repair::Keep(u32::try_from(at).unwrap()));
        let may_hold = |at: usize| match messages[at].result() {
            Some(_) => !kept(at),
            None => messages[at].role == Role::User && messages[at].parts.contains(&TestPart::Text),
        };
        let holds = |position: u32| {
            let is_model = |at: &usize| messages[*at].role == Role::Assistant;
            let run = (position as usize..messages.len()).take_while(is_model).count();
            let behind = position as usize + run..messages.len();
            behind.take_while(|at| !is_model(at)).any(may_hold)
        };
        for step in &steps {
            match step {
                Repair::Abort { position, call } => {
                    counts.borrow_mut().0 += 1;
                    assert!(!holds(*position), "{} in {}", written(&steps), profile.as_str());
                    assert!(messages[*position as usize].calls().len() > *call as usize);
                }
                Repair::Unrecorded { position, .. } => {
                    counts.borrow_mut().1 += 1;
                    assert!(holds(*position), "{} in {}", written(&steps), profile.as_str());
                }
                _ => {}
            }
        }
    });
    let (aborted, unrecorded) = counts.into_inner();
    println!("{aborted} calls given up, {unrecorded} not recorded");
    assert!(cfg!(miri) || aborted.min(unrecorded) >= CASES / 20);
}

/// True if a result could belong to several calls. If these are calls of several earlier turns, none of them gets it.
fn repeats_an_id(messages: &[TestMessage]) -> bool {
    let mut ids: Vec<&str> = messages.iter().flat_map(TestMessage::calls).collect();
    ids.sort_unstable();
    ids.windows(2).any(|pair| pair[0] == pair[1])
}

#[test]
fn what_is_legal_stays_as_it_is() {
    let legal = RefCell::new(0_u32);
    check(|profile, edit, messages| {
        let ambiguous = profile.rules().results == Results::Later && repeats_an_id(messages);
        if !ambiguous && validate(profile, edit, messages).is_empty() {
            *legal.borrow_mut() += 1;
            let steps = repair(profile, edit, messages, Pending::Over);
            let all = (0..u32::try_from(messages.len()).unwrap()).map(Repair::Keep).collect::<Vec<_>>();
            assert_eq!(steps, all);
        }
    });
    println!("legal: {} of {CASES}", legal.borrow());
    assert!(cfg!(miri) || legal.into_inner() >= CASES / 10);
}

/// User messages, instructions, and the content of model messages except reasoning are written exactly once. The first
/// two keep their order.
#[test]
fn nothing_said_is_lost() {
    check(|profile, edit, messages| {
        let steps = repair(profile, edit, messages, Pending::Over);
        let mut all = Vec::new();
        for step in &steps {
            match step {
                Repair::Keep(at)
                | Repair::Merge { position: at }
                | Repair::DropReasoning { position: at } => {
                    all.push(*at);
                }
                _ => {}
            }
        }
        let of = |wanted: &dyn Fn(&TestMessage) -> bool| {
            all.iter().copied().filter(|at| wanted(&messages[*at as usize])).collect::<Vec<_>>()
        };
        let expected = |wanted: &dyn Fn(&TestMessage) -> bool| {
            let positions = 0..u32::try_from(messages.len()).unwrap();
            positions.filter(|at| wanted(&messages[*at as usize])).collect::<Vec<_>>()
        };
        let says = |message: &TestMessage| {
            let reasons = !message.parts.is_empty() && message.parts.iter().all(TestMessage::is_reasoning);
            matches!(message.role, Role::User | Role::Assistant) && message.result().is_none() && !reasons
        };
        let instructs = |message: &TestMessage| matches!(message.role, Role::System | Role::Developer);
        assert_eq!(of(&says), expected(&says));
        assert_eq!(of(&instructs), expected(&instructs));
        let mut once = all.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), all.len());
    });
}

#[test]
fn the_naive_twins_agree() {
    let counts = RefCell::new(BTreeMap::<&str, u32>::new());
    check(|profile, edit, messages| {
        let found = validate(profile, edit, messages);
        for violation in &found {
            *counts.borrow_mut().entry(violation.kind.as_str()).or_default() += 1;
        }
        for (profile, twin) in naive::TWINS {
            assert_eq!(validate(profile, None, messages), twin(messages), "{}", profile.as_str());
        }
    });
    let counts = counts.into_inner();
    println!("violations in {CASES} conversations: {counts:?}");
    for kind in ViolationKind::ALL.into_iter().filter(|_| !cfg!(miri)) {
        let count = counts.get(kind.as_str()).copied().unwrap_or(0);
        assert!(count >= CASES / 1_000 * KINDS_MIN, "only {count} of {}", kind.as_str());
    }
}
