//! A lazy index counts only the messages on which a plan depends. The plan equals the plan with all messages counted,
//! and few tokens are counted.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a panic is how a test reports")]

use core::cell::RefCell;
use core::convert::Infallible;

use epitome::tokens::LazyIndex;
use epitome_core::message::Role;
use epitome_core::{Budget, Pass, Strategy as _, TokenBounds, Tokens};
use epitome_tests::cases;
use epitome_tests::live;
use epitome_tests::message::{Message, Part};
use epitome_tests::naive::{Outcome, Request};
use epitome_tests::scenario::{Scenario, scenario};
use epitome_tests::strategy::TestStrategy;
use proptest::prelude::*;

/// The exact counts, and the positions whose counts were asked for.
struct Oracle<'a> {
    messages: &'a [Message],
    asked: RefCell<Vec<u32>>,
}

impl<'a> Oracle<'a> {
    fn new(messages: &'a [Message]) -> Self {
        Self { messages, asked: RefCell::default() }
    }

    fn count(&self, position: u32) -> Result<Tokens, Infallible> {
        self.asked.borrow_mut().push(position);
        Ok(Tokens(self.messages[position as usize].tokens))
    }

    /// Number of tokens that were counted; a message is never counted twice.
    fn counted(&self) -> u64 {
        let mut asked = self.asked.borrow().clone();
        asked.sort_unstable();
        assert!(asked.windows(2).all(|two| two[0] < two[1]), "counted twice");
        asked.iter().map(|at| u64::from(self.messages[*at as usize].tokens)).sum()
    }
}

/// A lazy index with loose bounds: `slack` / 256 of the size below it, and `slack` / 64 of the size above it.
fn lazily(messages: &[Message], slack: &[u8]) -> LazyIndex {
    let mut index = LazyIndex::new();
    for (message, slack) in messages.iter().zip(slack.iter().cycle()) {
        let (tokens, slack) = (u64::from(message.tokens), u64::from(*slack));
        let bounds = TokenBounds::new(
            Tokens::from_u64(tokens - tokens * slack / 256),
            Tokens::from_u64(tokens + tokens * slack / 64),
        );
        index.push(message, bounds).unwrap();
    }
    index
}

fn settled(lazy: &mut LazyIndex, request: &Request, oracle: &Oracle<'_>) {
    let count = |position| oracle.count(position);
    let Ok(()) = lazy.settle(&request.budget, request.pass, &request.strategy, count);
}

/// The part of an outcome that must be equal. It lacks the floor of the goal, because groups of this floor may be
/// dropped uncounted. It lacks the tokens of the stable prefix if a group has the highest amount: such a size can stay
/// uncounted, and these tokens are then unknown.
fn comparable(outcome: Outcome, messages: &[Message]) -> Outcome {
    match outcome {
        Outcome::Planned(mut plan) => {
            plan.floors.1 = 0;
            if live::is_any_full(live::index_of(messages).0.view()) {
                plan.stable_tokens = None;
            }
            Outcome::Planned(plan)
        }
        other => other,
    }
}

#[test]
fn plans_are_those_of_exact_sizes() {
    let minimums =
        [("planned", 150), ("at_goal", 50), ("infeasible", 25), ("too_little", 20), ("spared", 100)];
    let cases = (scenario(60), proptest::collection::vec(any::<u8>(), 1..80));
    cases::check("lazy plans", cases, &minimums, |(Scenario { messages, request }, slack), census| {
        // A strategy that shortens parts needs their exact sizes.
        let strategy =
            if request.strategy.is_monotone() { request.strategy } else { TestStrategy::truncate() };
        let request = Request { strategy, ..request };
        let exact = comparable(live::plan(live::index_of(&messages).0.view(), &request), &messages);
        let (mut lazy, oracle) = (lazily(&messages, &slack), Oracle::new(&messages));
        settled(&mut lazy, &request, &oracle);
        let total: u64 = messages.iter().map(|message| u64::from(message.tokens)).sum();
        census.count("spared", oracle.counted() < total / 2);
        // A lazy index has no parts. Therefore it cannot cut a result that does not fit.
        if matches!(&exact, Outcome::Planned(plan) if !plan.shortened.is_empty()) {
            let planned = live::plan(lazy.index(), &request);
            prop_assert!(matches!(planned, Outcome::Infeasible { .. }), "{planned:?}");
            prop_assert_eq!(lazy.tokens(), (total, total));
            return Ok(());
        }
        match &exact {
            Outcome::Planned(_) => census.count("planned", true),
            Outcome::Unchanged(why) => census.count(why, true),
            Outcome::Infeasible { .. } => census.count("infeasible", true),
        }
        prop_assert_eq!(&comparable(live::plan(lazy.index(), &request), &messages), &exact);
        // The plan is the same with any sizes within the bounds for the uncounted messages.
        let (estimated, sizes) = lazy.estimated(|at| Tokens(at * 7919 % 400));
        prop_assert_eq!(comparable(live::plan(estimated.view(), &request), &messages), exact);
        let bounds = lazy.sizes().iter().zip(sizes);
        prop_assert!(bounds.into_iter().all(|(bounds, size)| (bounds.lower..=bounds.upper).contains(&size)));
        Ok(())
    });
}

/// A lazy index exceeds a size exactly if the exact sizes exceed it.
#[test]
fn lines_are_passed_as_by_exact_sizes() {
    let minimums = [("exceeds", 300), ("does not", 300), ("without counting", 250)];
    let cases = (scenario(40), proptest::collection::vec(any::<u8>(), 1..80), 0..512_u64);
    cases::check("lazy lines", cases, &minimums, |(Scenario { messages, .. }, slack, share), census| {
        let exact = live::index_of(&messages).0.view().tokens();
        let line = exact * share / 256;
        let (mut lazy, oracle) = (lazily(&messages, &slack), Oracle::new(&messages));
        let Ok(exceeds) = lazy.exceeds(line, |position| oracle.count(position));
        prop_assert_eq!(exceeds, exact > line);
        census.count("exceeds", exceeds);
        census.count("does not", !exceeds);
        census.count("without counting", oracle.counted() == 0);
        Ok(())
    });
}

#[test]
fn a_long_conversation_is_hardly_counted() {
    let said = |at: usize| {
        let role = if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
        Message::new(role, vec![Part::Text(String::new())], (at * 7919 % 400) as u32)
    };
    let messages: Vec<_> = (0..20_000).map(said).collect();
    let total: u64 = messages.iter().map(|message| u64::from(message.tokens)).sum();
    let budget = Budget::builder().window(total / 20).reserve(0).trigger(total / 25).goal(total / 50).build();
    for strategy in ["truncate", "window", "window:keep-tokens=200"] {
        let strategy: TestStrategy = strategy.parse().unwrap();
        let request = Request { budget: budget.unwrap(), pass: Pass::Manual, strategy };
        let exact = comparable(live::plan(live::index_of(&messages).0.view(), &request), &messages);
        let (mut lazy, oracle) = (lazily(&messages, &[200]), Oracle::new(&messages));
        settled(&mut lazy, &request, &oracle);
        assert_eq!(comparable(live::plan(lazy.index(), &request), &messages), exact);
        assert!(matches!(exact, Outcome::Planned(_)));
        assert!(oracle.counted() < total / 10, "{} of {total}", oracle.counted());
    }
}
