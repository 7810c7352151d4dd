//! Results of the strategies as a table under review: `tests/snapshots/grid.txt`. A tuning shows as a changed row.
//!
//! `EPITOME_BLESS=1 cargo test -p epitome-tests --test all grid::` writes the table anew.
#![expect(clippy::expect_used, reason = "a panic is how a test reports")]

use core::fmt::Write as _;
use std::fs;
use std::path::Path;

use epitome_core::{Budget, GroupKind, Pass};
use epitome_tests::generate::{Scale, seeded};
use epitome_tests::live::{self, GroupFacts};
use epitome_tests::message::Message;
use epitome_tests::naive::{Outcome, Request, begins_turn};
use epitome_tests::strategy::TestStrategy;

const STRATEGIES: &[&str] = &[
    "truncate",
    "truncate:preserve-recent=0",
    "truncate:preserve-system=false:preserve-first-user=false",
    "truncate:strength=light",
    "truncate:strength=aggressive",
    "window:keep-turns=4",
    "window:keep-groups=20",
    "window:keep-tokens=1000",
    "window",
    "window:keep-turns=8 | truncate",
    "tool-results",
    "tool-results:keep=0:clear-inputs=true",
    "tool-results:clear-at-least=100",
    "reasoning:profile=gemini",
    "reasoning:profile=anthropic",
    "reasoning:profile=deepseek",
    "ephemeral",
    "clamp:max-part-tokens=100",
    "tool-results | truncate",
    "tool-drop",
    "tool-digest",
    "tool-digest:keep=4:chars-max=1000",
    "supersede",
    "supersede | tool-results | truncate",
    "context-window:window=4000:max-output=500",
    "fixed-summary:preserve-recent=3:tokens=200",
    "tool-results | fixed-summary:preserve-recent=3:tokens=200",
];

/// Limit and goal, in percent of the size of the conversation; without a goal the strategy's own measure decides.
const BUDGETS: &[(u64, Option<u64>)] =
    &[(90, Some(75)), (90, Some(50)), (60, Some(25)), (60, Some(10)), (60, Some(5)), (100, None)];

/// Seed, number of messages, and their scale.
const CONVERSATIONS: &[(u64, usize, Scale)] = &[
    (1, 12, Scale::Small),
    (2, 60, Scale::Small),
    (3, 60, Scale::Mixed),
    (4, 250, Scale::Small),
    (5, 250, Scale::Mixed),
    (6, 1_000, Scale::Mixed),
];

#[test]
fn the_grid_is_as_it_was() {
    let grid = grid();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/grid.txt");
    #[expect(clippy::disallowed_methods, reason = "whether to write the table is not a matter of behaviour")]
    let bless = std::env::var("EPITOME_BLESS").is_ok();
    if bless {
        fs::write(&file, &grid).expect("the snapshot can be written");
    }
    let was = fs::read_to_string(&file).unwrap_or_default();
    let changed: Vec<String> = grid
        .lines()
        .zip(was.lines().chain(core::iter::repeat("")))
        .filter(|(is, was)| is != was)
        .map(|(is, was)| format!("- {was}\n+ {is}"))
        .collect();
    if grid != was {
        panic!("{} rows changed; EPITOME_BLESS=1 accepts them\n{}", changed.len(), changed.join("\n"));
    }
}

fn grid() -> String {
    let mut grid = String::from(
        "strategy, limit and goal in percent of the size: tokens after, groups kept, user messages kept, exchanges with tools kept, messages that stand as they stood\n",
    );
    for (seed, count, scale) in CONVERSATIONS {
        let messages = seeded(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), *count, *scale);
        let (index, _) = live::index_of(&messages);
        let view = index.view();
        let (tokens, groups, turns) = (view.tokens(), view.group_count(), view.turn());
        writeln!(grid, "\n{count} messages, {groups} groups, {turns} turns, {tokens} tokens")
            .expect("a string grows");
        for strategy in STRATEGIES {
            for (limit, goal) in BUDGETS {
                let parsed: TestStrategy = strategy.parse().expect("a strategy");
                let limit_tokens = tokens * limit / 100;
                let budget =
                    Budget::builder().window(limit_tokens).reserve(0).trigger(limit_tokens).min_reclaim(0);
                let budget = match goal {
                    Some(goal) => budget.goal(tokens * goal / 100),
                    None => budget.without_goal(),
                };
                let budget = budget.build().expect("a goal under the limit");
                let outcome = live::plan(view, &Request { budget, pass: Pass::Manual, strategy: parsed });
                let goal = goal.map_or("-".to_owned(), |goal| goal.to_string());
                let row = row(&messages, &live::groups(view), &outcome);
                writeln!(grid, "{strategy:<57} {limit:>3} {goal:>3}  {row}").expect("a string grows");
            }
        }
    }
    grid
}

fn row(messages: &[Message], groups: &[GroupFacts], outcome: &Outcome) -> String {
    match outcome {
        Outcome::Planned(plan) => {
            let kept =
                groups.iter().zip(plan.verdicts.chars()).filter(|(_, letter)| matches!(letter, 'K' | 'E'));
            let exchanges = kept.clone().filter(|(group, _)| group.kind == GroupKind::Exchange).count();
            let users = plan
                .projection
                .iter()
                .filter_map(|at| messages.get(*at))
                .filter(|message| begins_turn(message));
            let (tokens, kept, users) = (plan.tokens_after, kept.count(), users.count());
            format!("{tokens:>7} {kept:>5} {users:>4} {exchanges:>4} {:>5}", plan.stable)
        }
        Outcome::Unchanged(why) => format!("unchanged: {why}"),
        Outcome::Infeasible { floor, .. } => format!("infeasible: {floor}"),
    }
}
