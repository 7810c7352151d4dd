//! Any conversation, budget and strategy: a plan holds its invariants, is final, and survives a reload.
#![no_main]

use epitome_tests::applied::applied;
use epitome_tests::invariants::Subject;
use epitome_tests::live::{self, Heap};
use epitome_tests::naive::Outcome;
use epitome_tests::scenario::Scenario;
use epitome_tests::strategy::TestStrategy;
use libfuzzer_sys::fuzz_target;

const STRATEGIES: &[&str] = &[
    "truncate",
    "truncate:preserve-recent=0:preserve-system=false:preserve-first-user=false",
    "truncate:preserve-recent=1:strength=aggressive",
    "window:keep-turns=1",
    "window:keep-turns=3:preserve-first-user=false",
    "window:keep-groups=5",
    "window:keep-tokens=300",
    "window:preserve-first-user=false",
    "window:keep-turns=2 | truncate",
    "truncate | window",
    "tool-results:keep=1:clear-inputs=true",
    "reasoning:profile=anthropic | tool-results | truncate",
    "fixed-summary:preserve-recent=1:tokens=5",
    "tool-results:keep=1 | fixed-summary:preserve-recent=0:tokens=9",
    "truncate:walk=newest-first | ledger:share=60",
    "media:keep-turns=1 | salience:preserve-recent=1 | ledger:share=90",
];

fuzz_target!(|bytes: &[u8]| {
    // A longer input finds nothing that this does not, and the checks are quadratic.
    let Some((head, rest)) = bytes.split_first_chunk::<6>().filter(|_| bytes.len() <= 6 + 4 * 80) else {
        return;
    };
    let [limit, trigger, goal, reclaim, pass, strategy] = *head;
    let strategy: TestStrategy = STRATEGIES[usize::from(strategy) % STRATEGIES.len()].parse().unwrap();
    let messages = epitome_tests::generate::from_bytes(rest);
    let scenario = Scenario::new(messages, [limit, trigger, goal, reclaim, pass], strategy);
    let (index, placed) = live::index_of(&scenario.messages);
    let all: Vec<usize> = (0..placed.len()).collect();
    let reloaded: Heap = live::restored(&scenario.messages, index.open_calls(), &placed, &all).unwrap();
    assert_eq!(live::everything(&reloaded), live::everything(&index));
    let Outcome::Planned(plan) = live::plan(index.view(), &scenario.request) else { return };
    let stored = applied(&scenario.messages, index.view(), &scenario.request, false).unwrap();
    let visible = &stored.visible;
    let reloaded: Heap = live::restored(&stored.messages, index.open_calls(), &placed, visible).unwrap();
    assert_eq!(reloaded.view().tokens(), stored.tokens);
    let projection = live::flat(reloaded.view().projection()).into_iter().map(|at| visible[at]);
    assert!(projection.eq(plan.shown(&live::flat(index.view().projection()))));
    if scenario.request.budget.goal().is_some() {
        let again = live::plan(reloaded.view(), &scenario.request);
        assert!(matches!(again, Outcome::Unchanged(_)), "{again:?}");
    }
    if let Err(why) = Subject::new(&scenario, plan).check() {
        panic!("{why}\n{scenario:#?}");
    }
});
