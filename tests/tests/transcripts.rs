//! Transcripts of real agents: the examples of this repository and, if the folder exists, those of `../shared/data`.
//! Each plan equals the plan of the naive twin, and meets the goal if the floor is below it. It adds no violation, and
//! a repair leaves none.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test reports"
)]

use core::cell::RefCell;
use std::fs;
use std::path::Path;

use epitome::core::message::{MessageView as _, PartView, Parts as _, Role};
use epitome::core::{Budget, ClassEstimator, Pass, Pending, count_message, repair};
use epitome::wire::document::{Pointer, conversation, each, utf8};
use epitome::wire::openai_chat::ChatView;
use epitome_tests::message::{Message, Part, repaired};
use epitome_tests::naive::{Naive, Outcome, Request, plan};
use epitome_tests::strategy::TestStrategy;
use epitome_tests::{live, naive};

/// Counts of the conversations and plans so far.
#[derive(Debug, Default)]
struct Seen {
    conversations: usize,
    compacted: usize,
    goal_missed: usize,
    infeasible: usize,
    violations: usize,
}

#[test]
fn examples_are_compacted_as_the_naive_twin_does() {
    let seen = run(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples")),
        &[("coding-agent.json", None), ("support-chat.jsonl", None)],
    );
    assert_eq!((seen.conversations, seen.compacted), (2, 5), "{seen:?}");
}

#[test]
fn recorded_transcripts_are_compacted_as_the_naive_twin_does() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/openai_chat"));
    if !folder.exists() {
        println!("skipped: there are no recorded transcripts beside this repository");
        return;
    }
    let seen = run(
        folder,
        &[
            ("tau-bench__gpt-4o-airline.json", Some("/traj")),
            ("pydantic-ai__recorded_requests.jsonl", Some("/body/messages")),
            ("swe-agent__marshmallow-1867_function_calling.traj", Some("")),
            ("swe-agent__ctf_web_i_got_id_demo.traj", Some("")),
        ],
    );
    println!("{seen:?}");
    assert_eq!(seen.conversations, 168);
    assert!(seen.compacted >= 160, "{seen:?}");
}

/// Plans every conversation of some files with up to three budgets. A file is one conversation (`None`), has one at
/// `/history` (an empty place), or has one at the given place in each of its elements.
fn run(folder: &Path, files: &[(&str, Option<&str>)]) -> Seen {
    let seen = RefCell::new(Seen::default());
    for (file, place) in files {
        let bytes = fs::read(folder.join(file)).unwrap();
        let text = utf8(&bytes).unwrap();
        match place {
            None => check(&conversation(text).unwrap().iter().map(message).collect::<Vec<_>>(), &seen),
            Some("") => {
                let document = epitome::wire::document::Document::parse(text).unwrap();
                let history = document.at(&Pointer::parse("/history").unwrap()).unwrap();
                check(&history.conversation().unwrap().iter().map(message).collect::<Vec<_>>(), &seen);
            }
            Some(place) => {
                for element in each(text).unwrap() {
                    let there = element.unwrap().at(&Pointer::parse(place).unwrap()).unwrap();
                    check(&there.conversation().unwrap().iter().map(message).collect::<Vec<_>>(), &seen);
                }
            }
        }
    }
    seen.into_inner()
}

fn check(messages: &[Message], seen: &RefCell<Seen>) {
    seen.borrow_mut().conversations += 1;
    let own: u64 = messages.iter().map(|message| u64::from(message.tokens)).sum();
    let keep = |percent: u64| {
        let goal = own * percent / 100;
        Budget::builder().window(own + 10_000).trigger(own + 1).goal(goal).min_reclaim(0).build().unwrap()
    };
    check_plan(messages, keep(25), Pass::Manual, seen);
    check_plan(messages, keep(50), Pass::Manual, seen);
    let small = Budget::builder().window(8_000).build().unwrap();
    if own > small.trigger() {
        check_plan(messages, small, Pass::Proactive, seen);
    }
}

fn check_plan(messages: &[Message], budget: Budget, pass: Pass, seen: &RefCell<Seen>) {
    let (index, _) = live::index_of(messages);
    let request = Request { budget, pass, strategy: TestStrategy::truncate() };
    let found = live::plan(index.view(), &request);
    assert_eq!(found, plan(&Naive::new(messages), &request));
    let mut seen = seen.borrow_mut();
    match found {
        Outcome::Planned(plan) => {
            let goal = budget.goal().unwrap();
            assert!(plan.tokens_after <= goal || plan.floors.1 >= goal, "{} over {goal}", plan.tokens_after);
            assert!(plan.tokens_after <= budget.limit());
            seen.compacted += 1;
            seen.goal_missed += usize::from(plan.tokens_after > goal);
            let kept: Vec<_> = plan.projection.iter().map(|at| messages[*at].clone()).collect();
            for profile in naive::PROFILES {
                let (before, after) =
                    (naive::violations(profile, messages), naive::violations(profile, &kept));
                assert!(after.len() <= before.len(), "{before:?} became {after:?}");
                seen.violations += before.len();
                let steps = repair(profile, &kept, Pending::Over);
                assert_eq!(naive::violations(profile, &repaired(&kept, &steps)), []);
            }
        }
        Outcome::Infeasible { floor, .. } => {
            assert!(floor > budget.limit());
            seen.infeasible += 1;
        }
        Outcome::Unchanged(_) => {}
    }
}

/// A recorded message, as the tests' own type.
fn message(text: &str) -> Message {
    let view = ChatView::parse(text).unwrap();
    let mut parts = Vec::new();
    view.for_each_part(&mut |part| {
        parts.push(match part {
            PartView::Text(text) => Part::Text(text.to_owned()),
            PartView::Reasoning(reasoning) => Part::Reasoning(reasoning.text.to_owned()),
            PartView::ToolCall(call) => Part::Call(call.id.to_owned()),
            PartView::ToolResult(result) => Part::Result(result.call_id.to_owned()),
            PartView::Media(_) => Part::Image,
            PartView::Unknown(unknown) => Part::Text(unknown.kind.to_owned()),
            other => panic!("a recorded message has {other:?}"),
        });
    });
    let role: Role = view.role();
    Message::new(role, parts, count_message(&view, &ClassEstimator::new()).0)
}
