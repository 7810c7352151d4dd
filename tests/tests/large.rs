//! Large histories: a test that takes a second would take hours if a plan scanned the history once for each group.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use epitome_compactors::Strength;
use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_core::{Budget, Pass};
use epitome_tests::generate::{Scale, seeded};
use epitome_tests::live;
use epitome_tests::message::{Message, Part};
use epitome_tests::naive::{Outcome, Request};
use epitome_tests::strategy::TestStrategy;

fn aggressive(limit: u64) -> Request {
    let budget = Budget::builder().window(limit).reserve(0).without_goal().min_reclaim(0).build().unwrap();
    let strategy =
        TestStrategy::Truncate { recent: 0, system: true, first_user: true, strength: Strength::Aggressive };
    Request { budget, pass: Pass::Manual, strategy }
}

#[test]
fn a_hundred_thousand_nasty_messages() {
    let messages = seeded(7, 100_000, Scale::Small);
    let (index, _) = live::index_of(&messages);
    assert_eq!(live::groups(index.view()).iter().map(|group| group.positions.len()).sum::<usize>(), 100_000);
    let Outcome::Planned(plan) = live::plan(index.view(), &aggressive(2_500_000)) else {
        panic!("three quarters may go")
    };
    assert!(plan.tokens_after < index.view().tokens() * 3 / 4);
}

/// One turn that never ends, in which context splits every response of the model: each group of the model has two runs.
#[test]
fn a_turn_of_split_groups() {
    let model = |nth: usize| {
        let mut message = Message::new(Role::Assistant, vec![Part::Text("Fine.".into())], 1);
        message.response = Some(format!("resp_{nth}"));
        message
    };
    let context = Message::new(Role::User, vec![Part::Text("By the way.".into())], 1);
    let context = context.with_source(SourceKind::Context);
    let steps = (0..33_000).flat_map(|nth| [model(nth), context.clone(), model(nth)]);
    let messages: Vec<Message> = steps.collect();
    let (index, _) = live::index_of(&messages);
    assert!(live::groups(index.view()).iter().step_by(2).all(|group| group.positions.len() == 2));
    let Outcome::Planned(plan) = live::plan(index.view(), &aggressive(99_000)) else {
        panic!("three quarters may go")
    };
    assert_eq!(plan.tokens_after, 24_754);
}
