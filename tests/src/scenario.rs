//! A conversation, a tight budget, and a strategy.

use epitome_compactors::{Strength, Window};
use epitome_core::attribution::Retention;
use epitome_core::message::Role;
use epitome_core::{Budget, Pass, Profile};
use proptest::prelude::*;

use crate::generate;
use crate::message::{Message, Part};
use crate::naive::Request;
use crate::strategy::TestStrategy;
use crate::summarize::Summarize;

/// A conversation and a request for a plan of it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Budget, pass and strategy.
    pub request: Request,
}

/// Scenarios with conversations of up to `messages_max` operations.
pub fn scenario(messages_max: usize) -> impl Strategy<Value = Scenario> {
    (generate::conversation(messages_max), any::<[u8; 5]>(), strategy())
        .prop_map(|(messages, figures, strategy)| Scenario::new(messages, figures, strategy))
}

/// Scenarios that clear tool results and then truncate, with many late answers. Half of them first clear the reasoning
/// of a target that binds it.
pub fn late_scenario(messages_max: usize) -> impl Strategy<Value = Scenario> {
    let bound = (0..3_u32).prop_map(|keep| TestStrategy::Reasoning { target: Profile::Anthropic, keep });
    let stages = (bound, any::<bool>(), clear(), truncate()).prop_map(|(bound, reasons, clear, truncate)| {
        if reasons { vec![bound, clear, truncate] } else { vec![clear, truncate] }
    });
    (generate::late_conversation(messages_max), any::<[u8; 5]>(), stages).prop_map(
        |(messages, mut figures, stages)| {
            // Always with a goal: without one, truncation drops its share in each pass.
            figures[2] ^= u8::from(figures[2].is_multiple_of(5));
            Scenario::new(messages, figures, TestStrategy::Pipeline(stages))
        },
    )
}

/// Scenarios with the strategy that summarizes spans that are large enough, at times after tool results were cleared.
pub fn summarizing_scenario(messages_max: usize) -> impl Strategy<Value = Scenario> {
    let max = prop_oneof![3 => Just(4_000), 1 => 30..200_u32];
    let users = prop_oneof![1 => Just(0_u32), 2 => Just(20), 1 => 1..60_u32];
    let stages = (prop::option::weighted(0.3, clear()), 0..4_u32, (max, users));
    (generate::conversation(messages_max), any::<[u8; 5]>(), stages).prop_map(
        |(messages, figures, (before, recent, (max, users)))| {
            let last = TestStrategy::Summarization { recent, max, users };
            let strategy = match before {
                Some(before) => TestStrategy::Pipeline(vec![before, last]),
                None => last,
            };
            Scenario::new(messages, figures, strategy)
        },
    )
}

/// Scenarios with a ledger after a stage that drops or clears, and scenarios that only clear media. Some of the
/// conversations were compacted before.
pub fn ledger_scenario(messages_max: usize) -> impl Strategy<Value = Scenario> {
    let media = || (0..4_u32).prop_map(|keep| TestStrategy::Media { keep });
    let first = prop_oneof![3 => Just(TestStrategy::Newest), 1 => truncate(), 1 => clear(), 1 => media()];
    let stages = prop_oneof![
        4 => (first, ledger()).prop_map(|(first, last)| TestStrategy::Pipeline(vec![first, last])),
        1 => media(),
    ];
    (generate::conversation(messages_max), any::<[u8; 5]>(), stages)
        .prop_map(|(messages, figures, strategy)| Scenario::new(messages, figures, strategy))
}

/// Scenarios with calls of any size, mostly larger than an excerpt, and truncation from the newest group on to a goal.
pub fn writing_scenario(messages_max: usize) -> impl Strategy<Value = Scenario> {
    let sizes = prop::collection::vec(prop_oneof![0..300_u32, 300..6_000_u32], messages_max);
    let strategy = prop_oneof![
        2 => Just(TestStrategy::Newest),
        1 => ledger().prop_map(|last| TestStrategy::Pipeline(vec![TestStrategy::Newest, last])),
    ];
    (generate::conversation(messages_max), sizes, any::<[u8; 5]>(), strategy).prop_map(
        |(mut messages, sizes, mut figures, strategy)| {
            for (message, size) in messages.iter_mut().zip(sizes) {
                if message.parts.iter().any(|part| matches!(part, Part::Call(_))) {
                    message.tokens = size;
                }
            }
            figures[2] ^= u8::from(figures[2].is_multiple_of(5));
            Scenario::new(messages, figures, strategy)
        },
    )
}

/// Scenarios whose last step has results of any size, mostly larger than the window: only a cut makes them fit. At
/// times one call of the step has no answer, or the step is pinned.
pub fn crowded_scenario(messages_max: usize) -> impl Strategy<Value = Scenario> {
    let results = prop::collection::vec(prop_oneof![0..2_000_u32, 0..60_000_u32], 1..5);
    let last = (results, 0..8_u8, 0..8_u8);
    (generate::conversation(messages_max), any::<[u8; 5]>(), last, strategy()).prop_map(
        |(mut messages, mut figures, (results, open, pin), strategy)| {
            let ids: Vec<String> = (0..results.len()).map(|at| format!("crowd_{at}")).collect();
            let calls = ids.iter().cloned().map(Part::Call).collect();
            let mut asks = Message::new(Role::Assistant, calls, 30);
            if pin == 0 {
                asks.retention = Retention::Pinned;
            }
            messages.push(asks);
            let answered = ids.len() - usize::from(open == 0);
            messages.extend(
                ids.into_iter()
                    .zip(results)
                    .take(answered)
                    .map(|(id, tokens)| Message::new(Role::Tool, vec![Part::Result(id)], tokens)),
            );
            // The limit is a share of the size of the conversation.
            figures[0] &= !3;
            Scenario::new(messages, figures, strategy)
        },
    )
}

/// Scenarios with two stages and a goal that is seldom met, and the numbers of the kinds of the stages (below
/// [`KINDS`]). A pipeline accepts each pair in its order.
pub fn pair_scenario(messages_max: usize) -> impl Strategy<Value = (Scenario, [usize; 2])> {
    (0..KINDS, 0..KINDS)
        .prop_flat_map(|(first, second)| (kind(first), kind(second), Just([first, second])))
        .prop_filter("what replaces comes last", |(first, second, _)| {
            TestStrategy::is_in_order(&[first.clone(), second.clone()])
        })
        .prop_flat_map(move |(first, second, kinds)| {
            (generate::conversation(messages_max), any::<[u8; 5]>()).prop_map(
                move |(messages, mut figures)| {
                    // Always with a goal, and a low one.
                    figures[2] /= 3;
                    figures[2] ^= u8::from(figures[2].is_multiple_of(5));
                    let stages = vec![first.clone(), second.clone()];
                    (Scenario::new(messages, figures, TestStrategy::Pipeline(stages)), kinds)
                },
            )
        })
}

/// Number of kinds of stages.
pub const KINDS: usize = 13;

/// The kinds of stages that replace groups.
pub const REPLACING: core::ops::Range<usize> = 10..KINDS;

/// A stage of this kind with any parameters.
fn kind(kind: usize) -> BoxedStrategy<TestStrategy> {
    match kind {
        0 => clear().boxed(),
        1 => (0..600_u32).prop_map(|max| TestStrategy::Clamp { max }).boxed(),
        2 => supersede().boxed(),
        3 => truncate().boxed(),
        4 => window().boxed(),
        5 => reasoning().boxed(),
        6 => Just(TestStrategy::Ephemeral).boxed(),
        7 => exchanges().boxed(),
        8 => prop_oneof![Just(TestStrategy::Newest), salience()].boxed(),
        9 => (0..3_u32).prop_map(|keep| TestStrategy::Media { keep }).boxed(),
        10 => digest().boxed(),
        11 => ledger().boxed(),
        _ => summarize().boxed(),
    }
}

/// Scenarios, and the messages that follow after the plan.
pub fn continued(messages_max: usize) -> impl Strategy<Value = (Scenario, Vec<Message>)> {
    (generate::conversation(messages_max), any::<u8>(), any::<[u8; 5]>(), strategy()).prop_map(
        |(mut messages, cut, figures, strategy)| {
            let more = messages.split_off(messages.len() * usize::from(cut) / 256);
            (Scenario::new(messages, figures, strategy), more)
        },
    )
}

impl Scenario {
    /// Creates a scenario from figures: they give the budget as shares of the size of the conversation.
    #[must_use]
    pub fn new(
        messages: Vec<Message>,
        [limit, trigger, goal, reclaim, pass]: [u8; 5],
        strategy: TestStrategy,
    ) -> Self {
        let total: u64 = messages.iter().map(|message| u64::from(message.tokens)).sum();
        let share = |amount: u64, share: u8| amount * u64::from(share) / 256;
        // One conversation in four may be too large for its window; the others have room for all protected messages.
        let limit = (share(total, limit) + if limit.is_multiple_of(4) { 0 } else { total }).max(1);
        let trigger = (limit - share(limit, trigger) / 2).max(1);
        let goal = (!goal.is_multiple_of(5)).then_some(share(trigger, goal));
        let room = trigger - goal.unwrap_or(0);
        let budget = Budget::builder()
            .window(limit + limit / 4)
            .reserve(limit / 4)
            .trigger(trigger)
            .min_reclaim(share(room, reclaim));
        let budget = match goal {
            Some(goal) => budget.goal(goal),
            None => budget.without_goal(),
        };
        let pass = Pass::ALL[usize::from(pass) % Pass::ALL.len()];
        let budget = budget.build().expect("the figures fit together");
        Self { messages, request: Request { budget, pass, strategy } }
    }
}

/// Strategies with all their parameters.
pub fn strategy() -> impl Strategy<Value = TestStrategy> {
    prop_oneof![
        6 => truncate(),
        3 => Just(TestStrategy::Newest),
        3 => salience(),
        1 => (salience(), ledger()).prop_map(|(first, last)| TestStrategy::Pipeline(vec![first, last])),
        3 => ledger().prop_map(|last| TestStrategy::Pipeline(vec![TestStrategy::Newest, last])),
        1 => (truncate(), ledger()).prop_map(|(first, last)| TestStrategy::Pipeline(vec![first, last])),
        1 => (clear(), ledger()).prop_map(|(first, last)| TestStrategy::Pipeline(vec![first, last])),
        1 => ledger(),
        6 => window(),
        5 => clear(),
        3 => reasoning(),
        1 => Just(TestStrategy::Ephemeral),
        3 => summarize(),
        1 => exchanges(),
        2 => digest(),
        1 => supersede(),
        1 => context_window(),
        1 => (supersede(), digest()).prop_map(|(first, second)| TestStrategy::Pipeline(vec![first, second])),
        1 => (reasoning(), digest()).prop_map(|(first, second)| TestStrategy::Pipeline(vec![first, second])),
        1 => (supersede(), exchanges(), window()).prop_map(|(first, second, third)| {
            TestStrategy::Pipeline(vec![first, second, third])
        }),
        1 => (clear(), summarize()).prop_map(|(first, second)| TestStrategy::Pipeline(vec![first, second])),
        1 => summarize().prop_map(|second| TestStrategy::Pipeline(vec![TestStrategy::Ephemeral, second])),
        2 => (0..600_u32).prop_map(|max| TestStrategy::Clamp { max }),
        2 => (clear(), truncate()).prop_map(|(first, second)| TestStrategy::Pipeline(vec![first, second])),
        2 => (clear(), 0..600_u32).prop_map(|(first, max)| TestStrategy::Pipeline(vec![first, TestStrategy::Clamp { max }])),
        1 => (reasoning(), clear(), window()).prop_map(|(first, second, third)| {
            TestStrategy::Pipeline(vec![TestStrategy::Ephemeral, first, second, third])
        }),
        2 => (window(), truncate()).prop_map(|(first, second)| TestStrategy::Pipeline(vec![first, second])),
        1 => (truncate(), window()).prop_map(|(first, second)| TestStrategy::Pipeline(vec![first, second])),
        1 => truncate().prop_map(|only| TestStrategy::Pipeline(vec![only])),
    ]
}

fn truncate() -> impl Strategy<Value = TestStrategy> {
    let strength = prop_oneof![Just(Strength::Light), Just(Strength::Moderate), Just(Strength::Aggressive)];
    (0..4_u32, prop::bool::weighted(0.7), prop::bool::weighted(0.7), strength).prop_map(
        |(recent, system, first_user, strength)| TestStrategy::Truncate {
            recent,
            system,
            first_user,
            strength,
        },
    )
}

fn clear() -> impl Strategy<Value = TestStrategy> {
    let exclude = prop_oneof![2 => Just(None), 1 => Just(Some("search".to_owned()))];
    let at_least = prop_oneof![2 => Just(0), 1 => 0..100_u32];
    let placeholder = prop_oneof![3 => 1..10_u32, 1 => 0..260_u32];
    (0..4_u32, at_least, exclude, any::<bool>(), placeholder).prop_map(
        |(keep, at_least, exclude, inputs, placeholder)| TestStrategy::Clear {
            keep,
            at_least,
            exclude,
            inputs,
            placeholder,
        },
    )
}

fn salience() -> impl Strategy<Value = TestStrategy> {
    let updates = prop_oneof![1 => Just(0), 2 => 1..5_u32];
    (0..4_u32, updates).prop_map(|(recent, updates)| TestStrategy::Salience { recent, updates })
}

fn ledger() -> impl Strategy<Value = TestStrategy> {
    (0..110_u32).prop_map(|share| TestStrategy::Ledger { share })
}

fn summarize() -> impl Strategy<Value = TestStrategy> {
    (0..4_u32, prop_oneof![4 => 1..20_u32, 1 => 0..400_u32])
        .prop_map(|(recent, tokens)| TestStrategy::FixedSummary(Summarize { recent, tokens }))
}

fn exchanges() -> impl Strategy<Value = TestStrategy> {
    (0..4_u32).prop_map(|keep| TestStrategy::Exchanges { keep })
}

/// Mostly with room for a short digest: small conversations have small exchanges.
fn digest() -> impl Strategy<Value = TestStrategy> {
    (0..4_u32, 200..900_u32).prop_map(|(keep, chars)| TestStrategy::Digest { keep, chars })
}

fn supersede() -> impl Strategy<Value = TestStrategy> {
    (0..20_u32).prop_map(|placeholder| TestStrategy::Supersede { placeholder })
}

fn context_window() -> impl Strategy<Value = TestStrategy> {
    (0..4_000_u32, 0..400_u32).prop_map(|(window, output)| TestStrategy::ContextWindow { window, output })
}

fn reasoning() -> impl Strategy<Value = TestStrategy> {
    (0..Profile::ALL.len(), 0..4_u32)
        .prop_map(|(target, keep)| TestStrategy::Reasoning { target: Profile::ALL[target], keep })
}

fn window() -> impl Strategy<Value = TestStrategy> {
    let window = prop_oneof![
        (0..5_u32).prop_map(Window::Turns),
        (0..12_u32).prop_map(Window::Groups),
        (0..400_u64).prop_map(Window::Tokens),
        Just(Window::Goal),
    ];
    (window, prop::bool::weighted(0.7))
        .prop_map(|(window, first_user)| TestStrategy::Window { window, first_user })
}
