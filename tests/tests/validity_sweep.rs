//! Sixty turns with two parallel calls each, under 57 limits: a plan always leaves a legal request that fits.
#![expect(clippy::expect_used, reason = "a panic is how a test reports")]

use epitome_compactors::Window;
use epitome_core::message::Role;
use epitome_core::{Budget, GroupKind, Pass};
use epitome_tests::live;
use epitome_tests::message::{Message, Part};
use epitome_tests::naive::{Outcome, Request};
use epitome_tests::strategy::TestStrategy;

const TURNS: usize = 60;
const LIMITS: core::ops::Range<u64> = 0..57;

/// Instructions, and in each turn a request, two parallel calls, their results and an answer: 16,250 tokens.
fn conversation() -> Vec<Message> {
    let text = |role: Role, tokens: u32| Message::new(role, vec![Part::Text("Fine.".into())], tokens);
    let mut messages = vec![text(Role::System, 50)];
    for turn in 0..TURNS {
        let ids = [format!("a{turn}"), format!("b{turn}")];
        messages.push(text(Role::User, 20));
        messages.push(Message::new(Role::Assistant, ids.clone().map(Part::Call).into(), 30));
        messages.extend(ids.map(|id| Message::new(Role::Tool, vec![Part::Result(id)], 90)));
        messages.push(text(Role::Assistant, 40));
    }
    messages
}

fn request(limit: u64, strategy: TestStrategy) -> Request {
    let budget = Budget::builder().window(limit).reserve(0).trigger(limit).goal(limit / 2).min_reclaim(0);
    Request { budget: budget.build().expect("half of it is less"), pass: Pass::Manual, strategy }
}

#[test]
fn every_limit_leaves_a_legal_request() {
    let messages = conversation();
    let (index, _) = live::index_of(&messages);
    let groups = live::groups(index.view());
    assert_eq!(index.view().tokens(), 16_250);
    println!("  limit  strategy             tokens  groups  turns  stable");
    for limit in LIMITS.map(|nth| 400 + 285 * nth) {
        for (name, strategy) in [
            ("truncate", TestStrategy::truncate()),
            ("window:keep-turns=8", TestStrategy::window(Window::Turns(8))),
            ("window", TestStrategy::window(Window::Goal)),
        ] {
            let Outcome::Planned(plan) = live::plan(index.view(), &request(limit, strategy)) else {
                panic!("{name} at {limit}: {} tokens are more than half of it", index.view().tokens())
            };
            let left: Vec<Message> = plan.projection.iter().map(|at| messages[*at].clone()).collect();
            for profile in epitome_tests::naive::PROFILES {
                assert_eq!(live::violations(profile, &left), [], "{name} at {limit}");
            }
            assert!(plan.tokens_after <= limit, "{name} at {limit}: {}", plan.tokens_after);
            let counted: u64 = left.iter().map(|message| u64::from(message.tokens)).sum();
            assert_eq!(plan.tokens_after, counted);
            for at in plan.projection.iter().filter(|at| messages[**at].role == Role::Assistant) {
                let request = messages[..*at].iter().rposition(|message| message.role == Role::User);
                let request = request.expect("each turn begins with one");
                assert!(plan.projection.contains(&request), "{name} at {limit}: {at} without {request}");
            }
            assert_eq!((left[0].role, left[1].role), (Role::System, Role::User), "{name} at {limit}");
            let kept = groups.iter().zip(plan.verdicts.chars()).filter(|(_, letter)| *letter == 'K');
            let kept: Vec<_> = kept.map(|(group, _)| group).collect();
            let turns = kept.iter().filter(|group| group.kind == GroupKind::User).count();
            let (tokens, count, stable) = (plan.tokens_after, kept.len(), plan.stable);
            println!("{limit:>7}  {name:<19} {tokens:>7} {count:>7} {turns:>6} {stable:>7}");
        }
    }
}
