//! Remedies for bound thinking, on plans of real strategies.

use std::format;
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{
    Budget, ClassEstimator, Draft, IndexBuf, OpenCallTree, Outcome, Pass, Planner, Profile, Span, Strategy,
    count_message,
};
use epitome_std::message::{Message, Part, ToolCall};

use super::thought;
use crate::managed::anthropic::{BoundThinking, Remedy};
use crate::summarization::Demands;
use crate::{Summarization, Truncation};

/// Turns with signed thinking. If `open` is true, the newest turn stops in the middle of its calls.
fn conversation(open: bool) -> Vec<Message> {
    let mut messages = Vec::new();
    for turn in 0..8 {
        messages.push(Message::user(format!("question {turn} {}", "words ".repeat(100))));
        messages.push(thought(&"answer ".repeat(100)));
    }
    if open {
        let call = Part::ToolCall(ToolCall::new("c", "f", "{}"));
        messages.push(Message::user("and now?"));
        let mut parts = thought("").parts().to_vec();
        parts[1] = call;
        messages.push(Message::new(Role::Assistant, parts));
        messages.push(Message::tool("c", "done"));
    }
    messages
}

/// The remedy for the plan that `strategy` makes.
fn remedy(strategy: &dyn Strategy, messages: &[Message], thinking: BoundThinking) -> Remedy {
    let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    for message in messages {
        index.push(message, count_message(message, &ClassEstimator::new())).unwrap();
    }
    let budget = Budget::builder().window(8_000).trigger(1_200).goal(1_000).build().unwrap();
    let mut planner = Planner::new();
    match planner.plan(index.view(), &budget, Pass::Manual, strategy).unwrap() {
        Outcome::Planned(plan) => thinking.remedy(&plan, messages),
        Outcome::Unchanged(why) => panic!("{why:?}"),
    }
}

#[test]
fn the_remedy_follows_from_plan_and_profile() {
    let bound = BoundThinking::of("claude-opus-5-5", Profile::Anthropic);
    let free = BoundThinking::of("claude-opus-4-6", Profile::Anthropic);
    let (closed, open) = (conversation(false), conversation(true));
    let truncation = Truncation::new().preserve_first_user(false);
    assert_eq!(remedy(&truncation, &closed, free), Remedy::Nothing);
    assert_eq!(remedy(&truncation, &closed, bound), Remedy::StripThinking);
    assert_eq!(remedy(&truncation, &open, bound), Remedy::AppendOnly);
    assert_eq!(remedy(&truncation, &open, bound.with_drop_block(true)), Remedy::DropBlock);
    // The provider writes summaries, and removes no messages without one.
    let provider = bound.with_provider_summary(true);
    assert_eq!(remedy(&truncation, &closed, provider), Remedy::StripThinking);
    let unsigned = |message: &Message| match message.parts() {
        [Part::Reasoning(_), rest @ ..] => message.clone().with_parts(rest.to_vec()),
        _ => message.clone(),
    };
    let plain: Vec<Message> = closed.iter().map(unsigned).collect();
    assert_eq!(remedy(&truncation, &plain, bound), Remedy::Nothing);
    let whole = Summarization::new().preserve_recent(1);
    assert_eq!(
        remedy(&whole, &closed, provider),
        Remedy::StripThinking,
        "the first request of the user stays"
    );
    let first = Demands { from_first: true, whole_turns: true, users_stay: false };
    assert_eq!(remedy(&whole.demanding(first), &closed, provider), Remedy::ProviderSummary);
    assert_eq!(remedy(&whole.demanding(first), &open, provider), Remedy::ProviderSummary);
    assert_eq!(remedy(&whole.demanding(first), &closed, bound), Remedy::StripThinking);
}

/// Drops the answers of two turns in the middle.
#[derive(Debug)]
struct Middle;

impl Strategy for Middle {
    fn name(&self) -> &'static str {
        "middle"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        for leader in [5, 7] {
            draft.drop_group(leader).unwrap();
        }
    }
}

#[test]
fn thinking_before_the_first_change_stays_as_it_is() {
    let bound = BoundThinking::of("claude-opus-5-5", Profile::Anthropic);
    let signed_in = |turns: &[usize]| -> Vec<Message> {
        let keep = |(at, message): (usize, &Message)| match message.parts() {
            [Part::Reasoning(_), rest @ ..] if !turns.contains(&(at / 2)) => {
                message.clone().with_parts(rest.to_vec())
            }
            _ => message.clone(),
        };
        conversation(false).iter().enumerate().map(keep).collect()
    };
    // The answers of the turns 2 and 3 are dropped: the thinking in the turns 0 and 1 has the same messages before it
    // as before.
    assert_eq!(remedy(&Middle, &signed_in(&[0, 1]), bound), Remedy::Nothing);
    assert_eq!(remedy(&Middle, &signed_in(&[0, 2]), bound), Remedy::Nothing, "what is dropped goes whole");
    assert_eq!(remedy(&Middle, &signed_in(&[4]), bound), Remedy::StripThinking);
    assert_eq!(remedy(&Middle, &signed_in(&[0, 4]), bound), Remedy::StripThinking);
}
