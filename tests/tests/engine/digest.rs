//! Every digest of a plan can be written within its allowance: for generated conversations in which calls share ids,
//! and with each token counter.

use super::*;

use epitome::compactors::{SummaryWriter, ToolExchangeDigest};
use epitome::core::attribution::SourceKind;
use epitome::core::{
    Basis, ClassEstimator, GroupKind, IndexBuf, OpenCallTree, Outcome, Planner, Span, TokenCounter,
    count_message, measure_message,
};
use epitome::message::{Attribution, ToolResult};
use epitome_tests::cases::{self, Census};
use epitome_tests::generate::{self, Scale};
use epitome_tests::message as small;
use proptest::prelude::*;

/// A token counter that counts one token a byte: no tokenizer counts more.
struct Bytes;

impl TokenCounter for Bytes {
    fn name(&self) -> &str {
        "bytes"
    }

    fn basis(&self) -> Basis {
        Basis::Estimated
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(u32::try_from(text.len()).unwrap())
    }
}

/// The generated message as a full message, with texts of about its size.
fn whole(message: &small::Message) -> Message {
    let said = |id: &str| {
        let words =
            ["src/main.rs", "alpha", "<call>", "<tool_call>", "\n", "PROJ-4711", "日本", "[Identifiers]"];
        let from = id.len() + message.tokens as usize;
        let count = message.tokens.min(400) as usize / 2;
        (0..count).map(|at| words[(from + at * 7) % words.len()]).collect::<Vec<_>>().join(" ")
    };
    let parts = message.parts.iter().filter_map(|part| match part {
        small::Part::Text(text) => Some(Part::Text(text.as_str().into())),
        small::Part::Call(id) => {
            let arguments = serde_json::json!({"path": said(id)}).to_string();
            Some(Part::ToolCall(ToolCall::new(id.as_str(), "look", arguments)))
        }
        small::Part::Result(id) => {
            Some(Part::ToolResult(ToolResult::new(id.as_str(), [Part::Text(said(id).into())].into())))
        }
        _ => None,
    });
    let whole = Message::new(message.role, parts.collect());
    match message.source {
        SourceKind::Compaction => whole.with_attribution(Attribution::new(
            "",
            SourceKind::Compaction,
            epitome::core::attribution::Authority::Assistant,
        )),
        _ => whole,
    }
}

/// Makes a plan, writes every digest of the plan, and checks them.
fn digests(
    messages: &[Message],
    keep: u32,
    percent: u64,
    counter: &(dyn TokenCounter + Send + Sync),
    census: &Census,
) {
    let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    for message in messages {
        index.push(message, count_message(message, &counter)).unwrap();
    }
    let view = index.view();
    let mut planner = Planner::new();
    let budget = Budget::builder().window(1 << 40).trigger(1 << 39).min_reclaim(0);
    let budget = match percent {
        0 => budget.without_goal(),
        percent => budget.goal(view.tokens() * percent / 100),
    };
    let strategy = ToolExchangeDigest::new().keep(keep);
    let budget = budget.build().unwrap();
    let Ok(Outcome::Planned(plan)) = planner.plan(view, &budget, Pass::Manual, &strategy) else {
        return;
    };
    let all: Vec<&Message> = messages.iter().collect();
    for gap in plan.summaries() {
        let (text, tokens) = block_on(SummaryWriter::new(&counter).write(&gap, &all))
            .unwrap_or_else(|error| panic!("{}: {error}", counter.name()));
        assert_eq!(tokens, measure_message(&Message::assistant(text.as_str()), &counter).tokens);
        assert!(tokens <= gap.allowance, "{} of {}: {text}", tokens.0, gap.allowance.0);
        let groups = gap.groups().filter(|group| group.kind() != GroupKind::Summary);
        let shared = groups.filter(|group| group.positions().flatten().count() > 3).count() > 0;
        census.count("written", true);
        census.count("of a large group", shared);
        census.count("small", gap.allowance.0 < 100);
        // Every digest of this size shows a call or a result.
        if gap.allowance.0 >= 200 && counter.name() != "bytes" {
            assert!(text.contains("<call") || text.contains("<result"), "of {}: {text}", gap.allowance.0);
        }
    }
}

#[test]
fn every_digest_of_a_plan_can_be_written() {
    let scale = prop_oneof![3 => Just(Scale::Small), 3 => Just(Scale::Mixed)];
    let strategy = (generate::scaled_conversation(60, scale), 0..3_u32, 0..100_u64);
    let minimums = [("written", 300), ("of a large group", 60), ("small", 60)];
    cases::check("digests", strategy, &minimums, |(messages, keep, percent), census| {
        census.conversation(&messages);
        let whole: Vec<Message> = messages.iter().map(whole).collect();
        let counters: [&(dyn TokenCounter + Send + Sync); 2] = [&ClassEstimator::new(), &Bytes];
        counters.into_iter().for_each(|counter| digests(&whole, keep, percent, counter, census));
        Ok(())
    });
}

/// A text that is too large for a digest is shortened, and not left out as a whole. All calls have the same id, and are
/// made at once or one after another.
#[test]
fn calls_that_share_an_id_are_shortened() {
    let call = |at: usize, size: usize| {
        let arguments = format!("{{\"p\":\"{at} {}\"}}", "alpha ".repeat(size / 6));
        Part::ToolCall(ToolCall::new("same", "look", arguments))
    };
    let result = |at: usize, size: usize| Message::tool("same", format!("{at} {}", "beta ".repeat(size / 5)));
    for (size, calls) in [(40, 4), (400, 40), (2_000, 40), (40, 400), (400, 800)] {
        let mut at_once = vec![Message::new(Role::Assistant, (0..calls).map(|at| call(at, size)).collect())];
        at_once.extend((0..calls).map(|at| result(at, size)));
        let each = |at| [Message::new(Role::Assistant, [call(at, size)].into()), result(at, size)];
        let in_turn: Vec<Message> = (0..calls).flat_map(each).collect();
        for work in [at_once, in_turn] {
            let mut messages = vec![Message::user("Look.")];
            messages.extend(work);
            let end = [Message::assistant("Seen."), Message::user("And now?"), Message::assistant("Yes.")];
            messages.extend(end);
            for percent in [0, 10, 50, 90] {
                digests(&messages, 0, percent, &ClassEstimator::new(), &Census::default());
            }
        }
    }
}
