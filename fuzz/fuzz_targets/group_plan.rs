//! Any conversation, budget and strategy: a plan holds its invariants, is final, and survives a reload.
#![no_main]

use epitome_tests::applied::applied;
use epitome_tests::invariants::Subject;
use epitome_tests::live::{self, Heap};
use epitome_tests::naive::Outcome;
use epitome_tests::scenario::Scenario;
use epitome_tests::spec::Spec;
use libfuzzer_sys::fuzz_target;

const STRATEGIES: &[&str] = &[
    "truncate",
    "truncate recent=0 system=leading first_user=free",
    "truncate recent=1 strength=aggressive",
    "window turns=1",
    "window turns=3 first_user=free",
    "window groups=5",
    "window tokens=300",
    "window goal first_user=free",
    "window turns=2 | truncate",
    "truncate | window goal",
    "clear keep=1 inputs=cleared",
    "reasoning target=anthropic | clear | truncate",
    "summarize recent=1 tokens=5",
    "clear keep=1 | summarize recent=0 tokens=9",
    "newest | ledger share=60",
    "media keep=1 | salience recent=1 | ledger share=90",
];

fuzz_target!(|bytes: &[u8]| {
    // A longer input finds nothing that this does not, and the checks are quadratic.
    let Some((head, rest)) = bytes.split_first_chunk::<6>().filter(|_| bytes.len() <= 6 + 4 * 80) else {
        return;
    };
    let [limit, trigger, goal, reclaim, pass, strategy] = *head;
    let spec: Spec = STRATEGIES[usize::from(strategy) % STRATEGIES.len()].parse().unwrap();
    let messages = epitome_tests::generate::from_bytes(rest);
    let scenario = Scenario::new(messages, [limit, trigger, goal, reclaim, pass], spec);
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
