//! Rounds of compactions on a conversation with results known by hand.

use std::sync::Arc;

use epitome::message::Message;
use epitome::tokens::counter_by_name;

use super::*;
use crate::commands::eval::prompt::CountedMessage;
use crate::strategy::Strategies;

/// Turns with long answers, in each of which the model names the file of the turn `back` turns before.
fn case(turns: usize, back: usize) -> Case {
    let counter = counter_by_name("estimate").unwrap();
    let turns = (0..turns).flat_map(|turn| {
        let old = turn.saturating_sub(back);
        [
            Message::user(format!("Read src/file_{turn}.rs. {}", "It is long. ".repeat(30))),
            Message::assistant(format!("I look at src/file_{old}.rs again. {}", "Well. ".repeat(60))),
        ]
    });
    Case::of_messages(
        "made up".to_owned(),
        turns.map(|message| CountedMessage::of(message, &*counter)).collect(),
    )
}

fn measured(cases: &[Case], rounds: usize, strategy: &str, keep: &str) -> Option<Degradation> {
    let measure = Measure {
        strategies: vec![Strategies::parse(strategy).unwrap()],
        commands: Vec::new(),
        keep: vec![keep.parse().unwrap()],
        lost_max: 0,
        counter: Arc::from(counter_by_name("estimate").unwrap()),
        pricing: None,
    };
    Degradation::of(cases, rounds, &measure).unwrap()
}

fn row(degradation: &Degradation, row: usize) -> &[After] {
    &degradation.shares[0].rows[row].after
}

#[test]
fn what_is_needed_soon_stays_and_what_is_needed_late_is_lost_from_round_to_round() {
    let near = measured(&[case(60, 1)], 3, "truncate", "40%").unwrap();
    assert!(row(&near, 0).iter().all(|after| after.identifiers == Some(100.0)), "{near:?}");
    // The model names files from twenty turns back. The first compaction keeps about ten turns; later compactions keep
    // no more of the turns before them.
    let far = measured(&[case(60, 20)], 3, "truncate", "60%").unwrap();
    let [first, .., last] = row(&far, 0) else { panic!("{far:?}") };
    assert_eq!((first.compactions, last.compactions), (1, 3));
    assert!(first.identifiers > last.identifiers, "{far:?}");
    // No compaction precedes the first one. A baseline (floor) selects its messages anew in each round.
    assert_eq!(first.identifiers, first.identifiers_once);
    for floor in 1..4 {
        assert!(row(&far, floor).iter().all(|after| after.identifiers == after.identifiers_once), "{far:?}");
    }
}

#[test]
fn a_ledger_takes_no_more_from_round_to_round_and_truncation_writes_nothing() {
    let rounds = measured(&[case(80, 25)], 5, "agent", "30%").unwrap();
    assert_eq!((rounds.conversations, rounds.too_short, rounds.rounds), (1, 0, 5));
    for after in row(&rounds, 0) {
        assert!(after.tokens_left <= Some(100.0) && after.missed == 0, "{after:?}");
        // The giant message is the open request of the last of the two rounds.
        assert!(after.written > Some(0.0) && after.written <= Some(15.0), "{after:?}");
    }
    let truncated = measured(&[case(80, 25)], 5, "truncate", "30%").unwrap();
    assert!(row(&truncated, 0).iter().all(|after| after.written == Some(0.0)), "{truncated:?}");
}

#[test]
fn the_goal_is_that_of_the_first_round() {
    let rounds = measured(&[case(60, 1)], 2, "truncate", "50%").unwrap();
    let [first, second] = row(&rounds, 0) else { panic!("{rounds:?}") };
    // Before the second compaction the conversation is twice as long, and no more of it is left.
    assert!(first.tokens_left > Some(80.0) && second.tokens_left > Some(80.0), "{rounds:?}");
    assert!(second.tokens_left <= Some(100.0), "{rounds:?}");
}

#[test]
fn short_conversations_and_those_of_one_giant_message_are_left_out() {
    assert!(measured(&[], 2, "truncate", "50%").is_none());
    assert!(measured(&[case(2, 1)], 2, "truncate", "50%").is_none());
    let counter = counter_by_name("estimate").unwrap();
    let mut giant: Vec<_> = case(60, 1).messages;
    // It is the open request of the last of the two rounds.
    giant[96] = CountedMessage::of(Message::user("many words ".repeat(20_000)), &*counter);
    let giant = Case::of_messages("giant".to_owned(), giant);
    let rounds = measured(&[giant, case(2, 1), case(60, 1)], 2, "truncate", "50%").unwrap();
    assert_eq!((rounds.conversations, rounds.too_short, rounds.shares[0].left_out), (2, 1, 1));
}
