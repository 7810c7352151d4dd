//! Survival of the canaries, on conversations with results known by hand.

use std::sync::Arc;

use epitome::core::message::Role;
use epitome::message::{Message, Part, ToolCall};
use epitome::tokens::counter_by_name;

use super::*;
use crate::commands::eval::prompt::CountedMessage;
use crate::strategy::Strategies;

/// A task, and the work of an agent on it: calls of a tool, with results of several lines.
fn agent(steps: usize) -> Vec<CountedMessage> {
    let counter = counter_by_name("estimate").unwrap();
    let steps = (0..steps).flat_map(|step| {
        let id = format!("c{step}");
        let call = Part::ToolCall(ToolCall::new(&*id, "look", format!("{{\"at\":{step}}}")));
        let lines: String = (0..12).map(|line| format!("line {line} of the result {step}\n")).collect();
        [Message::new(Role::Assistant, vec![call]), Message::tool(&*id, lines)]
    });
    let all = [Message::system("Be brief."), Message::user("Find it.")].into_iter().chain(steps);
    all.map(|message| CountedMessage::of(message, &*counter)).collect()
}

fn measured(messages: &[CountedMessage], strategy: &str, keep: &str) -> Canaries {
    let measure = Measure {
        strategies: vec![Strategies::parse(strategy).unwrap()],
        commands: Vec::new(),
        keep: vec![keep.parse().unwrap()],
        lost_max: 3,
        counter: Arc::from(counter_by_name("estimate").unwrap()),
        pricing: None,
    };
    Canaries::of(&[messages], &measure).unwrap().unwrap()
}

fn survival(canaries: &Canaries, row: usize) -> [&Survival; 2] {
    let [first, fifth] = canaries.shares[0].rows[row].after.as_slice() else { panic!("{canaries:?}") };
    assert_eq!((first.compactions, fifth.compactions), (1, 5));
    [first, fifth]
}

#[test]
fn everything_survives_where_everything_stays() {
    let canaries = measured(&agent(40), "truncate", "100%");
    assert_eq!((canaries.conversations, canaries.too_short, canaries.planted), (1, 0, 15));
    let [first, _] = survival(&canaries, 0);
    assert_eq!((first.all, first.stale, first.missed), (Some(100.0), Some(0.0), 0), "{first:?}");
    assert_eq!(first.by_kind.len(), 5);
    assert!(first.by_kind.values().all(|percent| *percent == Some(100.0)), "{first:?}");
    assert_eq!(first.tokens_left, Some(100.0));
}

#[test]
fn the_ceiling_keeps_all_and_the_newest_messages_lose_what_is_old() {
    let canaries = measured(&agent(80), "truncate", "40%");
    let names: Vec<_> = canaries.shares[0].rows.iter().map(|row| &*row.strategy).collect();
    assert_eq!(names, ["truncate", "(newest)", "(newest that fit)", "(random)", ORACLE]);
    for survival in survival(&canaries, 4) {
        assert_eq!((survival.all, survival.stale), (Some(100.0), Some(0.0)), "{survival:?}");
    }
    for survival in survival(&canaries, 1) {
        assert!(survival.all.unwrap() < 50.0, "{survival:?}");
    }
    // Of three sentences of each kind, the operator and the task hold two. The sentences in tool results are old by
    // then.
    let [_, fifth] = survival(&canaries, 0);
    assert!(fifth.tokens_left.unwrap() < 25.0 && fifth.missed == 0, "{fifth:?}");
    assert!(fifth.by_kind.values().all(|percent| *percent <= Some(66.7)), "{fifth:?}");
}

#[test]
fn an_old_value_without_the_newer_one_is_stale() {
    // The user has only one message, so tool results hold the newer values; these results are cleared.
    let canaries = measured(&agent(80), "tool-results:keep=1", "30%");
    let [first, fifth] = survival(&canaries, 0);
    // The user's message holds two of the three sentences that are replaced early, and both that are replaced late.
    assert_eq!((first.stale, fifth.stale), (Some(66.7), Some(80.0)), "{canaries:?}");
    // The five sentences of the system message survive, and the user's sentences without a replacement.
    assert_eq!((first.all, fifth.all), (Some(53.3), Some(40.0)));
}

#[test]
fn short_conversations_and_those_of_one_giant_message_are_left_out() {
    let counter = counter_by_name("estimate").unwrap();
    let measure = |messages: &[&[CountedMessage]]| {
        let measure = Measure {
            strategies: Vec::new(),
            commands: Vec::new(),
            keep: vec!["10%".parse().unwrap()],
            lost_max: 0,
            counter: Arc::from(counter_by_name("estimate").unwrap()),
            pricing: None,
        };
        Canaries::of(messages, &measure).unwrap()
    };
    assert!(measure(&[]).is_none() && measure(&[&agent(2)]).is_none());
    let mut giant = agent(40);
    giant[1] = CountedMessage::of(Message::user("a task of many words ".repeat(10_000)), &*counter);
    let canaries = measure(&[&giant, &agent(2)]).unwrap();
    assert_eq!((canaries.too_short, canaries.shares[0].left_out), (1, 1));
    assert_eq!(canaries.shares[0].rows[0].after[0].all, None);
}
