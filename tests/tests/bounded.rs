//! Compares a history of fixed capacity with a list of the same messages, through any series of operations.

use core::cell::Cell;
use std::collections::BTreeSet;

use epitome_compactors::Truncation;
use epitome_core::identifiers::for_each_identifier;
use epitome_core::message::{PartView, Parts, Role};
use epitome_core::{BoundedHistory, Budget, ClassEstimator, Outcome, Pass};
use epitome_std::message::Message;
use epitome_std::wire::openai_chat;
use epitome_tests::bounded::{
    Op, Owned, Pair, Seen, Then, answer_to_a_dropped_call, cleared_result, operations,
};
use epitome_tests::cases;
use proptest::prelude::*;
use proptest::sample::select;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z ä€𝄞\"]{0,24}", 1 => "[a-z\n]{40,200}"]
}

fn message() -> impl Strategy<Value = Owned> {
    let id = || select(vec!["a", "b", "c", ""]).prop_map(String::from);
    let role =
        select(vec![Role::System, Role::User, Role::User, Role::Assistant, Role::Assistant, Role::Tool]);
    let response = proptest::option::weighted(0.4, select(vec!["r1", "r2"]).prop_map(String::from));
    let calls = prop_oneof![2 => Just(Vec::new()), 3 => proptest::collection::vec(id(), 1..3)];
    (role, text(), calls, id(), response, proptest::bool::weighted(0.05)).prop_map(
        |(role, text, calls, id, response, pinned)| Owned {
            role,
            text,
            calls: if role == Role::Assistant { calls } else { Vec::new() },
            answers: (role == Role::Tool).then_some(id),
            response: response.filter(|_| role == Role::Assistant),
            pinned,
        },
    )
}

fn note() -> impl Strategy<Value = String> {
    prop_oneof![6 => "[a-z\\[]{1,9}", 1 => "[a-z ]{20,40}", 1 => "[ \n]{0,2}"]
}

/// An operation, or a few that belong together.
fn scene() -> impl Strategy<Value = Vec<Op>> {
    let id = || select(vec!["a", "b", "c", ""]);
    prop_oneof![
        36 => operation().prop_map(|op| vec![op]),
        1 => id().prop_map(answer_to_a_dropped_call),
        1 => (id(), text(), note()).prop_map(|(id, text, note)| cleared_result(id, &text, &note)),
    ]
}

fn operation() -> impl Strategy<Value = Op> {
    let then = select(vec![Then::Compact, Then::Compact, Then::Summarize, Then::Nothing]);
    prop_oneof![
        12 => message().prop_map(Op::Push),
        1 => (message(), 0..400_usize).prop_map(|(message, max)| Op::Clamp(message, max)),
        2 => (proptest::collection::vec(text(), 0..4), any::<bool>())
            .prop_map(|(pieces, finish)| Op::Stream { pieces, finish }),
        3 => (any::<u32>(), any::<u32>(), note(), then)
            .prop_map(|(mask, elide, note, then)| Op::Plan { mask, elide, note, then }),
        3 => note().prop_map(|note| Op::Plan { mask: 0, elide: u32::MAX, note, then: Then::Compact }),
        1 => (0..40_u64, 0..6_u64, "[a-z]{0,12}").prop_map(|(first, len, text)| Op::Summarize { first, len, text }),
        1 => Just(Op::Reset),
        1 => (any::<u16>(), any::<[u16; 2]>()).prop_map(|(torn, bits)| Op::Damage { torn, bits }),
        1 => proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4).prop_map(Op::Forge),
    ]
}

/// Runs the operations, and adds the nasty cases that occurred to `sum`.
fn run(operations: &[Op], sum: &Cell<Seen>) {
    let mut pair = Pair::default();
    pair.seen = sum.get();
    operations.iter().for_each(|op| pair.apply(op));
    sum.set(pair.seen);
}

/// Checks that each nasty case occurred at least `least` times.
fn often(seen: Seen, least: u32) {
    println!("{seen:?}");
    let Seen { full, late, hidden, orphans, compactions, elided, notes_refused, .. } = seen;
    let Seen { summaries, clamped, forged, refused, .. } = seen;
    for (times, what) in [
        (full, "full"),
        (late, "late answers"),
        (hidden, "hidden answers"),
        (orphans, "orphans"),
        (compactions, "compactions"),
        (elided, "elided results"),
        (notes_refused, "refused notes"),
        (summaries, "summaries"),
        (clamped, "clamped"),
        (forged, "forged snapshots that were taken"),
        (refused, "forged snapshots that were refused"),
    ] {
        assert!(times >= least, "{what} came only {times} times");
    }
}

#[test]
fn it_holds_what_a_list_holds() {
    let (seen, cases) = (Cell::new(Seen::default()), cases::count());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&proptest::collection::vec(scene(), 0..80), |scenes| {
        run(&scenes.concat(), &seen);
        Ok(())
    });
    assert!(result.is_ok(), "{result:?}");
    often(seen.get(), cases / 10);
}

/// The operations that a fuzzer makes reach all of the nasty cases too.
#[test]
fn what_a_fuzzer_does_is_nasty_enough() {
    let (seen, cases) = (Cell::new(Seen::default()), cases::count());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&proptest::collection::vec(any::<u8>(), 100..400), |bytes| {
        run(&operations(&bytes), &seen);
        Ok(())
    });
    assert!(result.is_ok(), "{result:?}");
    often(seen.get(), cases / 10);
}

/// With the same number of tokens, a compaction with a ledger keeps more of the identifiers that the agent uses next.
#[test]
fn a_ledger_keeps_what_the_agent_names_next() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/coding-agent.json");
    let text = std::fs::read_to_string(file).unwrap();
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    let messages = openai_chat::read_all(&whole["messages"].to_string()).unwrap();
    let words = |messages: &[Message]| {
        let mut words = BTreeSet::new();
        for text in messages.iter().map(said) {
            for_each_identifier(&text, true, &mut |word| {
                words.insert(word.to_owned());
            });
        }
        words
    };
    let (mut needed, mut kept, mut by_ledger) = (0, 0, 0);
    for cut in [messages.len() / 2, messages.len() * 2 / 3, messages.len() * 4 / 5] {
        let (before, after) = messages.split_at(cut);
        let next: Vec<Message> =
            after.iter().filter(|message| message.role() == Role::Assistant).take(15).cloned().collect();
        let wanted: BTreeSet<_> = words(&next).intersection(&words(before)).cloned().collect();
        let shown = |has_ledger: bool| {
            let mut history = BoundedHistory::<96, 131_072>::new();
            for message in before {
                history.push(message, &ClassEstimator::new()).unwrap();
            }
            let goal = history.tokens() / 4;
            let window = history.tokens() * 2;
            let plan = |history: &mut BoundedHistory<96, 131_072>, goal: u64| {
                let budget = Budget::builder().window(window).goal(goal).build().unwrap();
                matches!(history.plan(&budget, Pass::Manual, &Truncation::new()), Ok(Outcome::Planned(_)))
            };
            // The first plan leaves room for the ledger.
            assert!(plan(&mut history, if has_ledger { goal * 17 / 20 } else { goal }));
            if has_ledger {
                let (span, mut room) =
                    (history.span_to_summarize().unwrap(), vec![0; goal as usize * 15 / 100 * 3]);
                let ledger = history.ledger(span, &mut room).unwrap();
                history.summarize(span, ledger, &ClassEstimator::new()).unwrap();
                if plan(&mut history, goal) {
                    history.compact().unwrap();
                }
            } else {
                history.compact().unwrap();
            }
            assert!(history.tokens() <= goal);
            let left: Vec<String> = history.messages().map(|message| said(&message)).collect();
            wanted.iter().filter(|word| left.iter().any(|text| text.contains(word.as_str()))).count()
        };
        needed += wanted.len();
        kept += shown(false);
        by_ledger += shown(true);
    }
    println!("of {needed} identifiers that are needed, {kept} without a ledger and {by_ledger} with one");
    assert!(needed > 30 && by_ledger * 10 >= needed * 8 && kept * 10 < needed * 7, "{kept}, {by_ledger}");
}

/// The texts of a message.
fn said(message: &impl Parts) -> String {
    let mut said = String::new();
    message.for_each_part(&mut |part| match part {
        PartView::Text(text) => said.extend([text, "\n"]),
        PartView::ToolCall(call) => said.extend([call.arguments, "\n"]),
        PartView::ToolResult(result) => result.content.for_each_part(&mut |part| {
            if let PartView::Text(text) = part {
                said.extend([text, "\n"]);
            }
        }),
        _ => {}
    });
    said
}

/// The table in docs/without-a-heap.md has each strategy, with its effect on a history of fixed capacity.
#[test]
fn strategies_do_on_a_device_what_the_page_says() {
    use epitome_compactors::{
        AgentPreset, ContextWindow, EphemeralFirst, Ledger, MediaClearing, NewestFirst, OversizedClamp,
        ReasoningClearing, SlidingWindow, Summarization, Supersede, ToolExchangeDigest, ToolExchangeDrop,
        ToolResultClearing, Window,
    };
    use epitome_core::message::{SimpleMessage, ToolCallView};
    use epitome_core::{IndexedPart, Profile, Strategy, Tokens};

    fn said<const PARTS: usize>(strategy: &dyn Strategy) -> (usize, usize) {
        let mut history = BoundedHistory::<128, 32_768, PARTS>::new();
        let counter = ClassEstimator::new();
        history.push(&SimpleMessage::system("You watch a greenhouse."), &counter).unwrap();
        for turn in 0..16 {
            let id = format!("c{turn}");
            let call = [ToolCallView::new(&id, "read_sensor", r#"{"id":7}"#)];
            let asked = format!("What does sensor 7 say in hour {turn}?");
            let page = format!("hour {turn}: {}", "21.4 degrees, humidity 40 %. ".repeat(40));
            for message in [
                SimpleMessage::user(&asked),
                SimpleMessage::calls(&call),
                SimpleMessage::result(&id, &page),
                SimpleMessage::assistant("It is as it should be."),
            ] {
                history.push(&message, &counter).unwrap();
            }
        }
        let budget = Budget::builder().window(100_000).goal(history.tokens() / 3).build().unwrap();
        if matches!(history.plan(&budget, Pass::Manual, strategy).unwrap(), Outcome::Unchanged(_)) {
            return (0, 0);
        }
        let done = history.compact_with("[cleared]", &counter).unwrap();
        (done.messages, done.results)
    }
    let same = |part: &IndexedPart<'_>| Some(u64::from(part.tokens().0 > 50));
    let strategies: [(&str, Box<dyn Strategy>); 15] = [
        ("AgentPreset", Box::new(AgentPreset::new())),
        ("ContextWindow", Box::new(ContextWindow::new(100_000, 1_000))),
        ("EphemeralFirst", Box::new(EphemeralFirst)),
        ("Ledger", Box::new(Ledger::new())),
        ("MediaClearing", Box::new(MediaClearing::new())),
        ("NewestFirst", Box::new(NewestFirst::new())),
        ("OversizedClamp", Box::new(OversizedClamp::new(Tokens(50)))),
        ("ReasoningClearing", Box::new(ReasoningClearing::new(Profile::OpenaiChat))),
        ("SlidingWindow", Box::new(SlidingWindow::new(Window::Turns(3)))),
        ("Summarization", Box::new(Summarization::new())),
        ("Supersede", Box::new(Supersede::<_, 256>::new(same))),
        ("ToolExchangeDigest", Box::new(ToolExchangeDigest::new())),
        ("ToolExchangeDrop", Box::new(ToolExchangeDrop::new())),
        ("ToolResultClearing", Box::new(ToolResultClearing::new())),
        ("Truncation", Box::new(Truncation::new())),
    ];
    let page = include_str!("../../docs/without-a-heap.md");
    for (name, strategy) in &strategies {
        let done = [said::<0>(&**strategy), said::<64>(&**strategy)].map(|done| match done {
            (0, 0) => "nothing",
            (_, 0) => "deletes messages",
            (0, _) => "clears results",
            (_, _) => "deletes messages and clears results",
        });
        let row = format!("| `{name}` | {} | {} |", done[0], done[1]);
        assert!(page.contains(&row), "not in docs/without-a-heap.md: {row}");
    }
}
