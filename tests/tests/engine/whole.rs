//! In all histories of a session, and under all operations on it: no message is ever lost, the visible messages are
//! whole, and no summary is paid for twice.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use epitome::compaction::CompactionOutcome;
use epitome::compactors::{Engine, Pipeline, StrategySpec, Summarization, ToolResultClearing, Truncation};
use epitome::core::{Budget, Draft, Pass, Seq, Strategy as Rule};
use epitome::history::History;
use epitome::message::Message;
use epitome::session::SessionErrorKind;
use epitome_tests::cases::{self, Census};
use futures::executor::block_on;
use proptest::prelude::*;

use super::support::{
    self, Answer, Meanwhile, Said, Scripted, append, check, check_covered, history, said, said_all, shown,
};
use super::{budget, compact, store};

/// Strategy of the engine.
#[derive(Debug, Clone)]
pub(super) enum Which {
    Summarize,
    ClearThenSummarize,
    EphemeralThenSummarize,
    /// Some of [`KINDS`], by their numbers.
    Any(Vec<usize>),
}

/// A stage of each kind.
const KINDS: &[&str] = &[
    "truncate",
    "window:turns=3",
    "tool-results:keep=1",
    "supersede",
    "tool-drop",
    "tool-digest:keep=0",
    "reasoning:profile=gemini",
    "clamp:max=260",
    "ephemeral",
    "summarize:recent=1",
];

fn spec(text: &str) -> StrategySpec {
    text.parse().unwrap()
}

/// A pipeline of these stages, if a pipeline may have them in this order.
fn stages(kinds: &[usize]) -> Option<StrategySpec> {
    let said: Vec<_> = kinds.iter().map(|kind| KINDS[*kind]).collect();
    said.join(" | ").parse().ok()
}

/// A strategy that plans as a pipeline of these stages does.
#[derive(Debug)]
struct ClearThenSummarize;

impl Rule for ClearThenSummarize {
    fn name(&self) -> &'static str {
        "stages"
    }

    fn replaces(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let (clear, summarize) = (ToolResultClearing::new().keep(1), Summarization::new().preserve_recent(1));
        Pipeline::new(&[&clear, &summarize]).unwrap().plan(draft);
    }
}

pub(super) fn engine(which: &Which, summarizer: &Arc<Scripted>, falls_back: bool) -> Engine {
    let engine = match which {
        Which::Summarize => Engine::new(Summarization::new().preserve_recent(1)),
        Which::ClearThenSummarize => Engine::new(ClearThenSummarize),
        Which::EphemeralThenSummarize => Engine::new(spec("ephemeral | summarize:recent=1")),
        Which::Any(kinds) => Engine::new(stages(kinds).unwrap()),
    };
    let engine = engine.with_summarizer(Arc::clone(summarizer) as _).with_deadline(if summarizer.hangs() {
        Duration::from_millis(20)
    } else {
        Duration::MAX
    });
    if falls_back { engine.with_fallback(Truncation::new()) } else { engine }
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) sqlite: bool,
    pub(super) which: Which,
    pub(super) falls_back: bool,
    /// The messages of each round, and the actions after them.
    pub(super) rounds: Vec<(Vec<Said>, Answer, Meanwhile, u64)>,
}

pub(super) fn summarizing() -> impl Strategy<Value = Which> {
    prop_oneof![Just(Which::Summarize), Just(Which::ClearThenSummarize), Just(Which::EphemeralThenSummarize)]
}

/// Two or three stages in any order that a pipeline may have. A stage that replaces comes last, and most pipelines have
/// one.
pub(super) fn any_stages() -> impl Strategy<Value = Which> {
    let in_order = |kinds: &Vec<usize>| stages(kinds).is_some();
    let replaces = |kind: &usize| stages(&[*kind, 0]).is_none();
    let replacing: Vec<usize> = (0..KINDS.len()).filter(replaces).collect();
    let last = prop_oneof![1 => 0..KINDS.len(), 2 => prop::sample::select(replacing)];
    (prop::collection::vec(0..KINDS.len(), 1..=2), last)
        .prop_map(|(first, last)| first.into_iter().chain([last]).collect())
        .prop_filter("what replaces comes last", in_order)
        .prop_map(Which::Any)
}

pub(super) fn case(which: impl Strategy<Value = Which>) -> impl Strategy<Value = Case> {
    let answer = prop_oneof![
        7 => Just(Answer::Good),
        1 => Just(Answer::Full),
        1 => Just(Answer::Fails),
        1 => Just(Answer::Empty),
        1 => Just(Answer::TooLong),
        1 => Just(Answer::CallsTools),
        1 => Just(Answer::Panics),
        1 => Just(Answer::Hangs),
        2 => Just(Answer::Injects),
    ];
    let meanwhile = prop_oneof![
        4 => Just(Meanwhile::Nothing),
        2 => Just(Meanwhile::Append),
        3 => Just(Meanwhile::LateAnswer),
        4 => Just(Meanwhile::Compact),
        2 => Just(Meanwhile::Summarize),
    ];
    let round = (prop::collection::vec(said(), 6..20), answer, meanwhile, 10_u64..90);
    (any::<bool>(), which, any::<bool>(), prop::collection::vec(round, 2..6))
        .prop_map(|(sqlite, which, falls_back, rounds)| Case { sqlite, which, falls_back, rounds })
}

#[test]
fn whatever_happens_the_session_is_whole() {
    let minimums = [
        ("compacted", 1_500),
        ("failed", 300),
        ("unchanged", 200),
        ("summary", 1_000),
        ("summary over a summary", 400),
        ("brought up to date", 200),
        ("fell back", 250),
        ("conflict", 300),
        ("written once in a conflict", 75),
        ("told of a late answer", 100),
    ];
    cases::check("engine", case(summarizing()), &minimums, is_whole);
}

/// The session is whole with any stages in a row. Each legal pair of neighbours occurs.
#[test]
fn whatever_stages_there_are_the_session_is_whole() {
    let name = |first: &str, second: &str| -> &'static str { format!("{first} | {second}").leak() };
    let pairs: Vec<Vec<&'static str>> =
        KINDS.iter().map(|first| KINDS.iter().map(|second| name(first, second)).collect()).collect();
    let mut minimums =
        vec![("compacted", 2_000), ("summary", 250), ("digest", 150), ("conflict", 75), ("fell back", 25)];
    minimums.extend([("again", 500), ("again, goal missed", 200)]);
    let all = (0..KINDS.len()).flat_map(|first| (0..KINDS.len()).map(move |second| [first, second]));
    let legal = all.filter(|pair| stages(pair).is_some());
    minimums.extend(legal.map(|[first, second]| (pairs[first][second], 1)));
    cases::check("engine, any stages", case(any_stages()), &minimums, |case, census| {
        if let Which::Any(kinds) = &case.which {
            kinds.windows(2).for_each(|pair| census.count(pairs[pair[0]][pair[1]], true));
        }
        is_whole(case, census)
    });
}

fn is_whole(case: Case, census: &Census) -> Result<(), TestCaseError> {
    let store = store(case.sqlite);
    let (mut history, mut read) = (history(&store), Vec::new());
    for (round, (said, answer, meanwhile, percent)) in case.rounds.iter().enumerate() {
        append(&mut history, said_all(said, round));
        let summarizer = Arc::new(Scripted::new(*answer, *meanwhile, &store));
        let engine = engine(&case.which, &summarizer, case.falls_back);
        let (before, budget) = (shown(&history), budget(&history, *percent));
        let summaries = support::summaries(&history);
        let (late, live) = (support::late_answers(&store), history.live().to_vec());
        let outcome = compact(&mut history, &engine, budget, Pass::Manual);
        let calls = summarizer.calls.load(Ordering::Relaxed);
        let disturbed = calls > 0 && *meanwhile != Meanwhile::Nothing;
        let conflict = summarizer.moved.load(Ordering::Relaxed);
        census.count("conflict", conflict);
        prop_assert!(!summarizer.wrong.load(Ordering::Relaxed), "asked for what may not be summarized");
        match &outcome {
            Ok(CompactionOutcome::Compacted(result)) => {
                census.count("compacted", true);
                prop_assert_eq!(result.compacted_tokens, Some(history.index().tokens()));
                let written = support::summaries(&history);
                census.count("summary", written > 0);
                census.count("summary over a summary", summaries > 0 && calls > 0 && written > 0);
                let earlier = !summarizer.previous.lock().unwrap().is_empty();
                census.count("brought up to date", earlier && written > 0);
                census.count("fell back", calls > 0 && !answer.is_good());
                census.count("written once in a conflict", conflict && answer.is_good() && calls == 1);
            }
            Ok(_) => census.count("unchanged", true),
            Err(error) => {
                census.count("failed", true);
                prop_assert!(!case.falls_back || error.kind() == SessionErrorKind::Conflict, "{error}");
                // After an error, only changes of other writers are visible: they are loaded after a conflict, with at
                // most one commit for each call.
                let (now, stored) = (shown(&history), shown(&support::history(&store)));
                prop_assert!(now == before || conflict && now == stored);
                prop_assert!(now.0 - before.0 <= calls as u64);
            }
        }
        if disturbed {
            block_on(history.reload()).unwrap();
        }
        // One call, and a second one only if the summarized messages may have changed meanwhile.
        prop_assert!(
            calls <= 1 + usize::from(conflict),
            "{calls} calls in round {round}, {answer:?} {meanwhile:?} {outcome:?}"
        );
        check(&history, &store)?;
        let mut told = core::mem::take(&mut *summarizer.shown.lock().unwrap());
        // Some messages have the same text, and another writer is shown the answer for its own summary.
        let log = support::log(&store);
        let is_told_twice = |(_, answer): &(Seq, Message)| {
            let alike = log.iter().filter(|logged| logged.entry.message == *answer).count();
            told.iter().filter(|it| *it == answer).count() > alike
        };
        prop_assert!(
            disturbed || calls > 1 || !late.iter().any(is_told_twice),
            "a late answer was told twice"
        );
        read.append(&mut told);
        // Without a call of the summarizer the summary is a digest, which is made from all messages that it stands for.
        if calls == 0 && matches!(outcome, Ok(CompactionOutcome::Compacted(_))) {
            let told = support::covered(&history, &store);
            census.count("digest", !told.is_empty());
            read.extend(told);
        }
        check_covered(&history, &store, &read)?;
        // With a fallback the next pass may use the fallback. With a summarizer the next pass may ask for another
        // summary, because a pass asks for one only.
        if matches!(outcome, Ok(CompactionOutcome::Compacted(_))) && calls == 0 && !case.falls_back {
            census.count("again, goal missed", budget.goal() < Some(history.index().tokens()));
            changes_nothing(&mut history, &engine, budget, census)?;
        }
        // Only if the summarizer wrote the summary, and no other writer summarizes meanwhile.
        if calls > 0 && answer.is_good() && *meanwhile != Meanwhile::Summarize {
            let told = support::check_late(&history, &live, &late, &read)?;
            census.count("told of a late answer", told > 0);
        }
    }
    Ok(())
}

/// A late answer that only a digest stood for is read for the next summary. In an earlier version, the next summary was
/// made without it.
#[test]
fn an_answer_of_a_later_turn_is_read_behind_a_digest() {
    let quiet = || vec![Said::User(0), Said::User(0), Said::Assistant(0, 0)];
    let mut said = [quiet(), quiet(), quiet(), vec![Said::User(0), Said::Assistant(0, 1)]].concat();
    said.extend([Said::User(0), Said::User(0), Said::Result(4, 48)]);
    let more = vec![Said::Assistant(0, 0), Said::User(114), Said::User(84), Said::User(54), Said::User(216)];
    let rounds = vec![
        (said, Answer::Good, Meanwhile::Nothing, 10),
        (more, Answer::Fails, Meanwhile::Nothing, 47),
        ([quiet(), quiet()].concat(), Answer::Good, Meanwhile::Nothing, 10),
    ];
    for sqlite in [false, true] {
        let case = Case { sqlite, which: Which::Summarize, falls_back: true, rounds: rounds.clone() };
        let census = Census::default();
        is_whole(case, &census).unwrap();
    }
}

/// Checks that the same pass has nothing to do directly after a pass.
fn changes_nothing(
    history: &mut History,
    engine: &Engine,
    budget: Budget,
    census: &Census,
) -> Result<(), TestCaseError> {
    let before = shown(history);
    let again = compact(history, engine, budget, Pass::Manual);
    prop_assert!(matches!(again, Ok(CompactionOutcome::Unchanged(_))), "{again:?}");
    prop_assert_eq!(shown(history), before);
    census.count("again", true);
    Ok(())
}

/// Another writer has put a summary before an older one. A plan that was made earlier drops the messages between the
/// two.
#[test]
fn summaries_from_before_meet_when_what_parted_them_goes() {
    use Said::{Assistant, Context, Result, User};
    let said = [
        (vec![User(0), User(0), Assistant(0, 1), User(0)], Meanwhile::Nothing),
        (vec![Assistant(0, 1), User(36), User(0), Assistant(0, 0), Context(false, 0)], Meanwhile::Nothing),
        (
            vec![User(0), Assistant(0, 0), Result(2, 60), Assistant(0, 1), User(36), User(0)],
            Meanwhile::Summarize,
        ),
    ];
    let rounds = said.map(|(said, meanwhile)| (said, Answer::Good, meanwhile, 10)).to_vec();
    let which = Which::Any(vec![4, 9]);
    is_whole(Case { sqlite: false, which, falls_back: false, rounds }, &Census::default()).unwrap();
}
