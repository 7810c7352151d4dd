//! A list of messages without a session is compacted exactly like a session in memory.

use core::cell::Cell;

use epitome::compactors::{AnyStrategy, CompactedMessages, StrategySpec, SummaryWriter, compact_messages};
use epitome::core::attribution::{Authority, Retention, SourceKind};
use epitome::core::{ClassEstimator, Draft, Strategy};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::support::{said, said_all};
use super::*;

const SPECS: [&str; 9] = [
    "truncate",
    "agent",
    "chat",
    "salience",
    "tool-results:keep=1 | truncate",
    "tool-results:keep=1:inputs",
    "window:turns=2",
    "tool-results | tool-digest",
    "supersede | truncate | ledger",
];

fn in_place(
    messages: &mut Vec<Message>,
    spec: &str,
    budget: &Budget,
) -> Result<CompactedMessages, SessionError> {
    let counter = ClassEstimator::new();
    block_on(compact_messages(messages, &spec.parse().unwrap(), budget, &SummaryWriter::new(&counter)))
}

/// Content of messages as a model sees it, with their sources and authorities.
fn seen(messages: &[Message]) -> Vec<(Role, Vec<Part>, SourceKind, Authority)> {
    let seen = |message: &Message| {
        let by = message.attribution();
        (message.role(), message.parts().to_vec(), by.source, by.authority)
    };
    messages.iter().map(seen).collect()
}

#[test]
fn messages_are_compacted_as_a_session_is() {
    let (mut changed, shortened) = (0, Cell::new(0));
    for spec in SPECS {
        let mut runner = TestRunner::new(ProptestConfig {
            cases: epitome_tests::cases::count() / 4,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let of_spec = Cell::new(0);
        let compared = runner.run(&(prop::collection::vec(said(), 1..40), 5..95_u64), |(all, percent)| {
            let messages = said_all(&all, 0);
            let store = store(false);
            let mut history = history(&store);
            append(&mut history, messages.clone());
            let budget = budget(&history, percent);
            let rule: StrategySpec = spec.parse().unwrap();
            let by_session = compact(&mut history, &Engine::new(rule), budget, Pass::Manual);
            let mut own = messages.clone();
            let done = in_place(&mut own, spec, &budget);
            match (by_session, done) {
                (Ok(CompactionOutcome::Compacted(_)), Ok(done)) => {
                    prop_assert_eq!(done.unchanged, None);
                    prop_assert_eq!(done.tokens_after, history.index().tokens());
                    prop_assert_eq!(seen(&own), seen(&shown(&history).1));
                    of_spec.set(of_spec.get() + 1);
                    let is_new = |message: &&Message| !messages.contains(message);
                    shortened.set(shortened.get() + own.iter().filter(is_new).count());
                }
                (Ok(CompactionOutcome::Unchanged(why)), Ok(done)) => {
                    prop_assert_eq!(Some(why.as_str()), done.unchanged.map(|why| why.as_str()));
                    prop_assert_eq!(own, messages);
                    prop_assert_eq!(done.tokens_before, done.tokens_after);
                }
                (by_session, done) => {
                    prop_assert!(by_session.is_err() && done.is_err(), "{:?} {:?}", by_session, done);
                    prop_assert_eq!(own, messages);
                }
            }
            Ok(())
        });
        assert!(compared.is_ok(), "{spec}: {compared:?}");
        assert!(of_spec.get() > 0, "{spec} changed nothing");
        changed += of_spec.get();
    }
    assert!(changed > 200 && shortened.get() > 200, "{changed}, {}", shortened.get());
}

/// An error leaves the messages unchanged: if no plan is possible, or if there is no summarizer.
#[test]
fn messages_are_as_they_were_after_an_error() {
    let mut messages: Vec<_> =
        (0..30).map(|turn| Message::user(format!("Question {turn}, and more words."))).collect();
    let before = messages.clone();
    let small = Budget::builder().window(20).reserve(0).trigger(10).build().unwrap();
    let error = in_place(&mut messages, "truncate", &small).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Infeasible);
    let large = Budget::builder().window(10_000).goal(100).build().unwrap();
    let mut talk: Vec<_> = (0..40)
        .map(|turn| match turn % 2 {
            0 => Message::user(format!(
                "Question {turn}: and what of this part, which is not like the others?"
            )),
            _ => Message::assistant(format!(
                "Answer {turn}: it is as it should be, in all that can be said of it."
            )),
        })
        .collect();
    let all = talk.clone();
    let error = in_place(&mut talk, "summarize", &large).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Unavailable);
    assert!(error.to_string().contains("summarize"), "{error}");
    assert!(messages == before && talk == all);
    assert_eq!(in_place(&mut Vec::new(), "agent", &large).unwrap().tokens_after, 0);
}

/// The given summarizer is called once for the one summary, and the instructions stay before it.
#[test]
fn a_summary_is_written_by_a_summarizer() {
    let mut talk = vec![Message::system("Be brief.")];
    for turn in 0..40 {
        talk.push(Message::user(format!(
            "Question {turn}: and what of this part, which is not like the others?"
        )));
        talk.push(Message::assistant(format!(
            "Answer {turn}: it is as it should be, in all that can be said."
        )));
    }
    let store = store(false);
    let summarizer = Scripted::new(Answer::Good, Meanwhile::Nothing, &store);
    let counter = ClassEstimator::new();
    let writer = SummaryWriter::new(&counter).with_summarizer(Some(&summarizer));
    let budget = Budget::builder().window(10_000).goal(500).build().unwrap();
    let done =
        block_on(compact_messages(&mut talk, &"summarize".parse().unwrap(), &budget, &writer)).unwrap();
    assert!(done.tokens_after <= 500 && done.unchanged.is_none(), "{done:?}");
    let summaries = talk.iter().filter(|it| it.text().starts_with("[Conversation Summary]")).count();
    assert_eq!((summaries, talk[0].role(), summarizer.calls.load(Ordering::Relaxed)), (1, Role::System, 1));
}

/// A strategy of the caller's own compacts a list, and a pinned message stays.
#[test]
fn a_strategy_of_ones_own_compacts_a_list() {
    let mut talk: Vec<_> =
        (0..40).map(|turn| Message::user(format!("Question {turn}: and what of this part?"))).collect();
    let key = Message::user("Keep this: the key is 4711.");
    let pinned = key.attribution().clone().with_retention(Retention::Pinned);
    talk.insert(10, key.with_attribution(pinned));
    talk.push(Message::assistant("It is as it should be."));
    let (counter, budget) =
        (ClassEstimator::new(), Budget::builder().window(10_000).goal(100).build().unwrap());
    let strategy = AnyStrategy::from(Oldest);
    let done =
        block_on(compact_messages(&mut talk, &strategy, &budget, &SummaryWriter::new(&counter))).unwrap();
    assert!(done.unchanged.is_none() && done.tokens_after <= 100 && !done.goal_missed, "{done:?}");
    assert!(talk.iter().any(|message| message.text().contains("4711")) && talk.len() < 12, "{talk:?}");

    // The pinned message and the newest step are larger than a goal of ten tokens, before and after a pass.
    let low = Budget::builder().window(10_000).goal(10).build().unwrap();
    for _ in 0..2 {
        let done =
            block_on(compact_messages(&mut talk, &strategy, &low, &SummaryWriter::new(&counter))).unwrap();
        assert!(done.goal_missed && done.tokens_after > 10, "{done:?}");
    }

    // The error begins with the name of the strategy.
    let small = Budget::builder().window(20).build().unwrap();
    let error =
        block_on(compact_messages(&mut talk, &strategy, &small, &SummaryWriter::new(&counter))).unwrap_err();
    assert!(error.to_string().starts_with("oldest: "), "{error}");
}

#[derive(Debug)]
struct Oldest;

impl Strategy for Oldest {
    fn name(&self) -> &'static str {
        "oldest"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        draft.drop_oldest();
    }
}
