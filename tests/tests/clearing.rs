//! The parts that each shortening strategy clears, as a table written by hand.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use epitome_compactors::{EphemeralFirst, Pipeline, ReasoningClearing, ToolResultClearing};
use epitome_core::{Budget, Cell, Draft, Outcome, Pass, Profile, Strategy, Tokens, ToolName, plan};
use epitome_tests::live;
use epitome_tests::notation;

const SEARCH: &[ToolName] = &[ToolName::new("search")];
const CLEAR: ToolResultClearing<'_> = ToolResultClearing::new();

/// Three tool uses one after the other, each in a step of its own, and a last step.
const THREE: &str = "u 10\na 20 c1\nt 100 c1\na 20 c2\nt 100 c2\na 20 c3\nt 100 c3\na 10\n";
/// Five parallel uses in one group, and a last step.
const FIVE: &str = "u 10\na 100 c1 c2 c3 c4 c5\nt 50 c1\nt 50 c2\nt 50 c3\nt 50 c4\nt 50 c5\na 10\n";
/// A use of a tool that is never cleared, between two others.
const SEARCHED: &str = "u 10\na 20 c1\nt 100 c1\na 20 s1\nt 100 s1\na 20 c2\nt 100 c2\na 10\n";
/// Two uses of hosted tools, each in a step of its own.
const HOSTED: &str = "u 10\na 200 hosted=h text\na 200 hosted=s1 text\na 10\n";
/// Reasoning in two turns, and in the current one, whose last message belongs to it.
const THOUGHTS: &str =
    "u 10\na 40 reasoning text\nu 10\na 40 reasoning text\nu 10\na 40 reasoning text\na 10\n";
const PINNED_THOUGHT: &str = "u 10\na 40 reasoning text pin\nu 10\na 40 reasoning text\nu 10\na 10\n";

/// The rule, the conversation, the strategy, one letter a group (or the reason for no plan), and the shortened parts as
/// message and place in it.
type Case<'a> = (&'a str, &'a str, &'a dyn Strategy, &'a str, &'a str);

const CASES: &[Case<'_>] = &[
    ("three uses are kept by default", THREE, &CLEAR, "nothing_to_drop", ""),
    ("all but the newest two", THREE, &CLEAR.keep(2), "KEKKK", "2.0"),
    ("none is kept, each group stays", THREE, &CLEAR.keep(0), "KEEEK", "2.0 4.0 6.0"),
    ("of five parallel uses the two oldest go, and the group stays", FIVE, &CLEAR, "KEK", "2.0 3.0"),
    ("four of five", FIVE, &CLEAR.keep(1), "KEK", "2.0 3.0 4.0 5.0"),
    (
        "a use is as old as its result, in whatever order results come",
        "u 10\na 40 c1 c2\nt 50 c2\nt 50 c1\na 10\n",
        &CLEAR.keep(1),
        "KEK",
        "2.0",
    ),
    (
        "too little to be worth it: nothing is cleared",
        THREE,
        &CLEAR.keep(1).clear_at_least(183),
        "nothing_to_drop",
        "",
    ),
    ("just enough", THREE, &CLEAR.keep(1).clear_at_least(182), "KEEKK", "2.0 4.0"),
    ("an excluded tool is never cleared", SEARCHED, &CLEAR.keep(0).exclude_tools(SEARCH), "KEKEK", "2.0 6.0"),
    ("but its use counts among the newest", SEARCHED, &CLEAR.keep(2).exclude_tools(SEARCH), "KEKKK", "2.0"),
    (
        "what is excluded frees nothing",
        SEARCHED,
        &CLEAR.keep(0).exclude_tools(SEARCH).clear_at_least(183),
        "nothing_to_drop",
        "",
    ),
    ("arguments too", THREE, &CLEAR.keep(1).clear_inputs(true), "KEEKK", "1.0 2.0 3.0 4.0"),
    ("no arguments of a group with a newer result", FIVE, &CLEAR.clear_inputs(true), "KEK", "2.0 3.0"),
    (
        "a result no larger than the note stays",
        THREE,
        &CLEAR.keep(0).placeholder(Tokens(100)),
        "nothing_to_drop",
        "",
    ),
    ("the newest step is not touched", "u 10\na 20 c1\nt 100 c1\n", &CLEAR.keep(0), "nothing_to_drop", ""),
    ("nor is a pin", "u 10\na 20 c1 pin\nt 100 c1\na 10\n", &CLEAR.keep(0), "nothing_to_drop", ""),
    ("nor is open work", "u 10\na 20 c1 c2\nt 100 c1\na 10\n", &CLEAR.keep(0), "nothing_to_drop", ""),
    (
        "an abandoned call does not save the other's result",
        "u 10\na 20 c1 c2\nt 100 c1\nu 10\na 10\n",
        &CLEAR.keep(0),
        "KEKK",
        "2.0",
    ),
    ("a hosted tool's result is cleared where it stands", HOSTED, &CLEAR.keep(0), "KEEK", "1.1 2.1"),
    ("and is as old as any other", HOSTED, &CLEAR.keep(1), "KEKK", "1.1"),
    ("an excluded hosted tool is not cleared", HOSTED, &CLEAR.keep(0).exclude_tools(SEARCH), "KEKK", "1.1"),
    ("its arguments stay", HOSTED, &CLEAR.keep(0).clear_inputs(true), "KEEK", "1.1 2.1"),
    (
        "what only the provider reads stays",
        "u 10\na 200 ran=h sealed=h text\na 10\n",
        &CLEAR.keep(0),
        "nothing_to_drop",
        "",
    ),
    (
        "a result without its call in the message stays",
        "u 10\na 100 ran=h\na 200 gave=h text\na 10\n",
        &CLEAR.keep(0),
        "nothing_to_drop",
        "",
    ),
    (
        "of calls that ran at once each has its result and its tool",
        "u 10\na 400 ran=h ran=s1 gave=s1 gave=h\na 10\n",
        &CLEAR.keep(0).exclude_tools(SEARCH),
        "KEK",
        "1.3",
    ),
    (
        "a result of no call is no use",
        "u 10\nt 100 c9\na 20 c1\nt 100 c1\na 10\n",
        &CLEAR.keep(1),
        "nothing_to_drop",
        "",
    ),
    (
        "a late result is the newest",
        "u 10\na 20 c1\na 20 c2\nt 50 c2\nu 10\nt 50 c1\na 10\n",
        &CLEAR.keep(1),
        "KEKK",
        "3.0",
    ),
    (
        "older turns lose their reasoning",
        THOUGHTS,
        &ReasoningClearing::new(Profile::Gemini),
        "KEKEKK",
        "1.0 3.0",
    ),
    (
        "two turns keep theirs",
        THOUGHTS,
        &ReasoningClearing::new(Profile::Gemini).keep_turns(2),
        "KEKKKK",
        "1.0",
    ),
    (
        "the current turn keeps it whatever is asked",
        THOUGHTS,
        &ReasoningClearing::new(Profile::Anthropic).keep_turns(0),
        "KEKEKK",
        "1.0 3.0",
    ),
    (
        "an item that follows reasoning needs it",
        THOUGHTS,
        &ReasoningClearing::new(Profile::OpenaiResponses),
        "nothing_to_drop",
        "",
    ),
    (
        "a call wants its reasoning back",
        "u 10\na 40 reasoning c1\nt 10 c1\na 40 reasoning text\nu 10\na 10\n",
        &ReasoningClearing::new(Profile::Deepseek),
        "KKEKK",
        "3.0",
    ),
    (
        "a pin holds all of the bound reasoning",
        PINNED_THOUGHT,
        &ReasoningClearing::new(Profile::Anthropic),
        "nothing_to_drop",
        "",
    ),
    (
        "but only its own of what is free",
        PINNED_THOUGHT,
        &ReasoningClearing::new(Profile::Gemini),
        "KKKEKK",
        "3.0",
    ),
    (
        "what is meant for one run goes",
        "u 10\nu 50 context ephemeral\na 10\nu 10\nu 50 context ephemeral\na 10\n",
        &EphemeralFirst,
        "KDKKDK",
        "",
    ),
    (
        "stages add up",
        "u 10\nu 50 context ephemeral\na 20 c1\nt 100 c1\na 10\n",
        &Stages(&[&EphemeralFirst, &CLEAR.keep(0)]),
        "KDEK",
        "3.0",
    ),
];

/// A pipeline for the table of cases, which is a constant and cannot call `Pipeline::new`.
struct Stages(&'static [&'static dyn Strategy]);

impl Strategy for Stages {
    fn name(&self) -> &'static str {
        "stages"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        Pipeline::new(self.0).unwrap().plan(draft);
    }
}

#[test]
fn the_table_of_cases() {
    let mut failures = Vec::new();
    for (why, transcript, strategy, letters, parts) in CASES {
        let found = run(transcript, *strategy);
        if found != ((*letters).to_owned(), (*parts).to_owned()) {
            failures.push(format!("{why}: {found:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The verdicts and shortened parts of a plan.
fn run(transcript: &str, strategy: &dyn Strategy) -> (String, String) {
    let messages = notation::parse(transcript).unwrap();
    let index = live::index_of(&messages).0;
    let view = index.view();
    let budget = Budget::builder().window(10_000).reserve(0).trigger(10_000).without_goal().min_reclaim(0);
    let mut cells = vec![Cell::default(); view.cell_count()];
    match plan(view, &budget.build().unwrap(), Pass::Manual, strategy, &mut cells).unwrap() {
        Outcome::Unchanged(why) => (why.as_str().to_owned(), String::new()),
        Outcome::Planned(plan) => {
            let parts = plan.shortened().map(|(part, _)| format!("{}.{}", part.position(), part.ordinal()));
            (plan.verdicts().to_string(), parts.collect::<Vec<_>>().join(" "))
        }
    }
}

/// The loss report names the kinds and sizes of the removed content, and no text.
#[test]
fn a_loss_report_in_one_line() {
    let messages = notation::parse("u 10\nu 50 context ephemeral\na 20 c1\nt 100 c1\na 10\n").unwrap();
    let index = live::index_of(&messages).0;
    let view = index.view();
    let budget = Budget::builder().window(10_000).reserve(0).trigger(10_000).without_goal().min_reclaim(0);
    let mut cells = vec![Cell::default(); view.cell_count()];
    let clear = CLEAR.keep(0);
    let stages: [&dyn Strategy; 2] = [&EphemeralFirst, &clear];
    let outcome =
        plan(view, &budget.build().unwrap(), Pass::Manual, &Pipeline::new(&stages).unwrap(), &mut cells);
    let Outcome::Planned(plan) = outcome.unwrap() else { panic!("there is something to clear") };
    let loss = plan.loss();
    assert_eq!(loss.to_string(), "1 user of context (50 tokens), 1 tool_result (91 tokens)");
    assert_eq!((loss.rows().count(), loss.newest_steps()), (2, 0));
    assert_eq!(plan.tokens_before() - plan.tokens_after(), loss.rows().map(|row| row.tokens).sum::<u64>());
    assert_eq!((plan.groups_kept(), plan.messages_kept(), plan.lost_cache_tokens()), (3, 4, 180));
}

/// The floor of a goal counts the newest steps whole. Clearing in these steps can go below this floor, but never below
/// the hard floor.
#[test]
fn clearing_goes_below_the_floor_of_the_goal() {
    let messages = notation::parse("u 10\na 20 c1\nt 900 c1\na 5\n").unwrap();
    let index = live::index_of(&messages).0;
    let view = index.view();
    let budget = Budget::builder().window(10_000).reserve(0).trigger(900).goal(100).min_reclaim(0);
    let mut cells = vec![Cell::default(); view.cell_count()];
    let outcome = plan(view, &budget.build().unwrap(), Pass::Manual, &CLEAR.keep(0), &mut cells);
    let Outcome::Planned(plan) = outcome.unwrap() else { panic!("there is a result to clear") };
    assert_eq!((plan.floors().hard, plan.floors().goal, plan.tokens_after()), (15, 935, 44));
    assert!(!plan.is_goal_missed());
}
