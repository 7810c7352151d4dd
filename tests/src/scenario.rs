//! A conversation, a budget that bites, and a strategy.

use epitome_compactors::{Strength, Window};
use epitome_core::{Budget, Pass};
use proptest::prelude::*;

use crate::generate;
use crate::message::Message;
use crate::naive::Request;
use crate::spec::Spec;

/// What a plan is asked of.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Budget, pass and strategy.
    pub request: Request,
}

/// Scenarios with conversations of up to `messages_max` operations.
pub fn scenario(messages_max: usize) -> impl Strategy<Value = Scenario> {
    (generate::conversation(messages_max), any::<[u8; 5]>(), spec())
        .prop_map(|(messages, figures, spec)| Scenario::new(messages, figures, spec))
}

/// Scenarios, and what is said after the plan.
pub fn continued(messages_max: usize) -> impl Strategy<Value = (Scenario, Vec<Message>)> {
    (generate::conversation(messages_max), any::<u8>(), any::<[u8; 5]>(), spec()).prop_map(
        |(mut messages, cut, figures, spec)| {
            let more = messages.split_off(messages.len() * usize::from(cut) / 256);
            (Scenario::new(messages, figures, spec), more)
        },
    )
}

impl Scenario {
    /// A budget whose figures are shares of the size of the conversation: mostly under it.
    #[must_use]
    pub fn new(messages: Vec<Message>, [limit, trigger, goal, reclaim, pass]: [u8; 5], spec: Spec) -> Self {
        let total: u64 = messages.iter().map(|message| u64::from(message.tokens)).sum();
        let share = |amount: u64, share: u8| amount * u64::from(share) / 256;
        // One conversation in four may be a little too large for its window; the others have room for what is protected.
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
        let pass = if pass % 2 == 0 { Pass::Manual } else { Pass::Proactive };
        let budget = budget.build().expect("the figures fit together");
        Self { messages, request: Request { budget, pass, spec } }
    }
}

/// Strategies with all their parameters.
pub fn spec() -> impl Strategy<Value = Spec> {
    prop_oneof![
        8 => truncate(),
        8 => window(),
        2 => (window(), truncate()).prop_map(|(first, second)| Spec::Pipeline(vec![first, second])),
        1 => (truncate(), window()).prop_map(|(first, second)| Spec::Pipeline(vec![first, second])),
        1 => truncate().prop_map(|only| Spec::Pipeline(vec![only])),
    ]
}

fn truncate() -> impl Strategy<Value = Spec> {
    let strength = prop_oneof![Just(Strength::Light), Just(Strength::Moderate), Just(Strength::Aggressive)];
    (0..4_u32, prop::bool::weighted(0.7), prop::bool::weighted(0.7), strength).prop_map(
        |(recent, system, first_user, strength)| Spec::Truncate { recent, system, first_user, strength },
    )
}

fn window() -> impl Strategy<Value = Spec> {
    let window = prop_oneof![
        (0..5_u32).prop_map(Window::Turns),
        (0..12_u32).prop_map(Window::Groups),
        (0..400_u64).prop_map(Window::Tokens),
        Just(Window::Goal),
    ];
    (window, prop::bool::weighted(0.7)).prop_map(|(window, first_user)| Spec::Window { window, first_user })
}
