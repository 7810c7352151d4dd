//! Plans that shorten and replace, on stored sessions. After a commit, the visible messages are the messages that a
//! fresh process loads, and the result of the plan's edits when they are carried out by hand. Their size is the size
//! that the plan stated. The log keeps everything.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test support")]

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use epitome::compactors::{Pipeline, ReasoningClearing, ToolResultClearing, Truncation};
use epitome::core::attribution::{Authority, SourceKind};
use epitome::core::message::{MediaKind, Role};
use epitome::core::{
    Budget, Clamp, ClassEstimator, Draft, Outcome, PartKind, Pass, Placeholders, PlannedEdit, Planner,
    Profile, ReadyPlan, Seq, StandIn, StandIns, Strategy as Rule, TokenCounter, Tokens, count_message,
};
use epitome::history::{
    AppendToken, CompactionRecord, History, HistoryStore, MemoryStore, Notes, SessionId, SqliteStore,
};
use epitome::message::{Media, MediaSource, Message, Part, Reasoning, ToolCall, ToolResult};
use futures::executor::block_on;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Said>),
    /// Compact with this strategy, to this share of the current size, in percent.
    Compact(Which, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Clears all tool results but the newest ones, with or without arguments, then truncates.
    Clear(u32, bool),
    /// Clears reasoning, and nothing else.
    Thoughts,
    /// Clamps long parts.
    Clamp,
    /// Replaces old groups by a summary.
    Summarize,
}

#[derive(Debug, Clone, Copy)]
enum Said {
    User(u8),
    /// Whether it has reasoning, the length of its text, and the number of its calls.
    Assistant(bool, u8, u8),
    /// An answer to the call with this id. The call may be open, missing, or already answered or hidden.
    Result(u8, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let said = prop_oneof![
        3 => any::<u8>().prop_map(Said::User),
        5 => (any::<bool>(), any::<u8>(), 0_u8..4).prop_map(|(thinks, size, calls)| Said::Assistant(thinks, size, calls)),
        8 => (0_u8..6, any::<u8>()).prop_map(|(id, size)| Said::Result(id, size)),
    ];
    let which = prop_oneof![
        4 => (0_u32..4, any::<bool>()).prop_map(|(keep, inputs)| Which::Clear(keep, inputs)),
        1 => Just(Which::Thoughts),
        2 => Just(Which::Clamp),
        10 => Just(Which::Summarize),
    ];
    let compact = (which, 5_u64..95).prop_map(|(which, percent)| Step::Compact(which, percent));
    // A clearing after one of these shortens the rest of the same message again.
    let first = prop_oneof![Just(Which::Thoughts), Just(Which::Clamp)];
    let again = (first, 0_u32..4, 5_u64..95).prop_map(|(first, keep, percent)| {
        [first, Which::Clear(keep, true)].map(|which| Step::Compact(which, percent)).to_vec()
    });
    let step = prop_oneof![
        8 => prop::collection::vec(said, 4..14).prop_map(|said| vec![Step::Append(said)]),
        5 => compact.prop_map(|step| vec![step]),
        2 => again,
    ];
    prop::collection::vec(step, 4..18).prop_map(|steps| steps.concat())
}

impl Said {
    fn message(self, at: usize) -> Message {
        let text =
            |size: u8| Part::Text("日本語 and some words, 1234. ".repeat(usize::from(size) / 4).into());
        match self {
            Self::User(size) => {
                Message::new(Role::User, vec![Part::Text(format!("{at}?").into()), text(size)])
            }
            Self::Assistant(thinks, size, calls) => {
                let mut parts = Vec::new();
                if thinks {
                    parts.push(Part::Reasoning(Reasoning::new(format!(
                        "thought {at} {}",
                        "hm ".repeat(at % 9)
                    ))));
                }
                parts.push(Part::Text(format!("{at}.").into()));
                parts.extend((0..calls).map(|nth| {
                    let id = format!("c{}", (usize::from(nth) + at) % 6);
                    let input = format!(r#"{{"path":"{}"}}"#, "a/".repeat(usize::from(size) / 8));
                    Part::ToolCall(ToolCall::new(id, ["read", "search"][usize::from(nth % 2)], input))
                }));
                Message::new(Role::Assistant, parts)
            }
            Self::Result(id, size) => {
                let mut parts = vec![Part::Text(format!("{at}:").into()), text(size)];
                if size % 5 == 0 {
                    let source = MediaSource::Uri("https://example.com/i.png".into());
                    parts.push(Part::Media(Media::new(MediaKind::Image, "image/png", source)));
                }
                let result = ToolResult::new(format!("c{id}"), parts);
                Message::new(Role::Tool, vec![Part::ToolResult(result)])
            }
        }
    }
}

/// Keeps a few tokens at each end of long parts.
#[derive(Debug)]
struct Clamps;

impl Rule for Clamps {
    fn name(&self) -> &'static str {
        "clamps"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        for part in draft.index().parts() {
            // The draft refuses parts that are protected, too short, or without ends.
            let _ = draft.clamp(&part, Clamp { head: Tokens(9), tail: Tokens(6) });
        }
    }
}

/// Replaces the first run of groups that may be replaced. The run is as long as the draft allows.
#[derive(Debug)]
struct Summarizes;

impl Rule for Summarizes {
    fn name(&self) -> &'static str {
        "summarizes"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let leaders: Vec<u32> = draft.index().groups().map(|group| group.leader()).collect();
        for (at, first) in leaders.iter().enumerate() {
            for last in leaders[at..].iter().rev() {
                if draft.replace(*first, *last, Tokens(16)).is_ok() {
                    return;
                }
            }
        }
    }
}

const SUMMARY: &str = "[Conversation Summary]\nIt went well.";

fn with<T>(which: Which, run: impl FnOnce(&dyn Rule) -> T) -> T {
    match which {
        Which::Clear(keep, inputs) => {
            let clearing = ToolResultClearing::new().keep(keep).clear_inputs(inputs);
            run(&Pipeline::new(&[&clearing, &Truncation::new()]).unwrap())
        }
        Which::Thoughts => run(&ReasoningClearing::new(Profile::OpenaiChat)),
        Which::Clamp => run(&Clamps),
        Which::Summarize => run(&Summarizes),
    }
}

fn budget(history: &History, percent: u64) -> Budget {
    let goal = history.index().tokens() * percent / 100;
    Budget::builder().window(10_000_000).trigger(5_000_000).goal(goal).min_reclaim(0).build().unwrap()
}

/// The visible messages after the edits of a plan are carried out by hand.
fn by_hand(history: &History, ready: &ReadyPlan<'_, '_>) -> Vec<(Role, Vec<Part>)> {
    let (mut hidden, mut summaries, mut edits) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
    for edit in ready.edits() {
        match edit {
            PlannedEdit::Hide(positions) => hidden.extend(positions),
            PlannedEdit::Summary(edit) => {
                drop(summaries.insert(edit.position, edit.stand_in.text.to_owned()))
            }
            PlannedEdit::Part(part) => edits.push(part),
            _ => unreachable!("an edit of a new kind"),
        }
    }
    let message = |position: u32| &history.live()[position as usize].entry.message;
    let mut shown: BTreeMap<u32, Vec<Part>> = (0..history.index().messages())
        .map(|position| (position, message(position).parts().to_vec()))
        .collect();
    for edit in edits.iter().rev() {
        let (parts, at) = (shown.get_mut(&edit.position).unwrap(), edit.ordinal as usize);
        let text = || edit.stand_in.unwrap().text.into();
        match (&mut parts[at], edit.kind) {
            (_, PartKind::Reasoning) => drop(parts.remove(at)),
            (Part::ToolResult(result), _) => result.parts = vec![Part::Text(text())],
            (Part::ToolCall(call), _) => call.arguments = text(),
            (part, _) => *part = Part::Text(text()),
        }
    }
    let order = history.index().projection().flatten();
    let said = order.filter_map(|position| match summaries.get(&position) {
        Some(summary) => Some((Role::Assistant, vec![Part::Text(summary.as_str().into())])),
        None if hidden.contains(&position) => None,
        None => Some((message(position).role(), shown[&position].clone())),
    });
    said.collect()
}

fn shown(history: &History) -> Vec<(Role, Vec<Part>)> {
    history.projection().map(|message| (message.role(), message.parts().to_vec())).collect()
}

/// The index with its parts: everything that a plan sees.
fn everything(history: &History) -> String {
    let parts = history
        .index()
        .parts()
        .map(|part| (part.position(), part.ordinal(), part.kind(), part.tokens(), part.tool()));
    format!("{:?} {:?}", history.index(), parts.collect::<Vec<_>>())
}

type Planned = (CompactionRecord, Vec<(Role, Vec<Part>)>, u64);

fn planned(history: &History, budget: &Budget, which: Which) -> Option<Planned> {
    let mut planner = Planner::new();
    let outcome = with(which, |rule| planner.plan(history.index(), budget, Pass::Manual, rule)).unwrap();
    let Outcome::Planned(plan) = outcome else { return None };
    let done = |ready: ReadyPlan<'_, '_>| {
        assert!(ready.tokens_after() <= ready.plan().tokens_after(), "a bound that does not hold");
        (history.record(&ready, "test"), by_hand(history, &ready), ready.tokens_after())
    };
    if plan.summaries().next().is_none() {
        return Some(history.fill(plan, &Notes::default(), done).unwrap());
    }
    let tokens = count_message(&Message::assistant(SUMMARY), &ClassEstimator::new());
    let summaries = [StandIn::new(SUMMARY, tokens)];
    Some(done(plan.fill(StandIns::new(Placeholders::new()).with_summaries(&summaries)).unwrap()))
}

fn open(store: &Arc<dyn HistoryStore>) -> History {
    let session = SessionId::new("session");
    block_on(History::open(Arc::clone(store), session, Arc::new(ClassEstimator::new()))).unwrap()
}

type Counts = RefCell<BTreeMap<&'static str, usize>>;

/// Counts the nasty cases in a record that is about to be committed.
fn note(history: &History, record: &CompactionRecord, counts: &Counts) {
    let count = |name, holds: bool| *counts.borrow_mut().entry(name).or_default() += usize::from(holds);
    let shortened =
        |seq: Seq| history.live().iter().any(|live| live.key == seq && !live.stand_ins.is_empty());
    let hides = |seq: Seq| record.hides.iter().any(|range| range.contains(seq));
    count("edits", !record.edits.is_empty());
    count("edits and hides", !record.edits.is_empty() && !record.hides.is_empty());
    count("a summary", !record.summaries.is_empty());
    count("a summary over a summary", {
        let summary = |live: &epitome::history::Live| !live.covers.is_empty() && hides(live.key);
        !record.summaries.is_empty() && history.live().iter().any(summary)
    });
    count("a message edited again", record.edits.iter().any(|edit| shortened(edit.seq)));
    let removed = |edit: &epitome::history::MessageEdit| edit.stand_ins.iter().any(|one| one.text.is_none());
    count("reasoning taken out", record.edits.iter().any(removed));
    count(
        "an edited message hidden",
        history.live().iter().any(|live| shortened(live.key) && hides(live.key)),
    );
}

fn compact(
    history: &mut History,
    store: &Arc<dyn HistoryStore>,
    (which, percent): (Which, u64),
    counts: &Counts,
) -> Result<(), TestCaseError> {
    let budget = budget(history, percent);
    let Some((record, expected, tokens)) = planned(history, &budget, which) else { return Ok(()) };
    note(history, &record, counts);
    block_on(history.commit(&record)).unwrap();
    let fresh = open(store);
    prop_assert_eq!(shown(history), expected);
    prop_assert_eq!(shown(&fresh), shown(history));
    prop_assert_eq!(everything(&fresh), everything(history));
    let counted: u64 =
        history.projection().map(|message| count_message(message, &ClassEstimator::new()).as_u64()).sum();
    let index = history.index().tokens();
    prop_assert_eq!((record.tokens_after, tokens, index), (counted, counted, counted));
    let listed = block_on(store.list(None, 1)).unwrap();
    prop_assert_eq!(listed[0].live_tokens, counted);
    check_summaries(&fresh, store)?;
    if which != Which::Summarize {
        let again = with(which, |rule| block_on(history.compact(&budget, Pass::Manual, rule))).unwrap();
        prop_assert!(again.is_none(), "compacted again: {:?}", again);
    }
    Ok(())
}

/// A summary has the lowest authority of the messages that it covers, also through earlier summaries, and never more
/// than the authority of a model.
fn check_summaries(history: &History, store: &Arc<dyn HistoryStore>) -> Result<(), TestCaseError> {
    for live in history.live().iter().filter(|live| !live.covers.is_empty()) {
        let log = block_on(store.log(&SessionId::new("session"), Seq(0)..history.head(), u32::MAX)).unwrap();
        let covers = |seq: Seq| live.covers.iter().any(|range| range.contains(seq));
        let covered = log.messages.iter().filter(|logged| covers(logged.seq));
        let authority =
            Authority::of_summary(covered.map(|logged| logged.entry.message.attribution().authority));
        let attribution = live.entry.message.attribution();
        prop_assert_eq!((attribution.source, attribution.authority), (SourceKind::Compaction, authority));
        prop_assert_eq!((&attribution.derived_from, live.covers[0].first), (&live.covers, live.key));
    }
    Ok(())
}

fn run(store: &Arc<dyn HistoryStore>, steps: &[Step], counts: &Counts) -> Result<History, TestCaseError> {
    let mut history = open(store);
    let mut said: Vec<Message> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Append(more) => {
                let messages: Vec<_> = more
                    .iter()
                    .enumerate()
                    .map(|(nth, said_now)| said_now.message(said.len() + nth))
                    .collect();
                said.extend(messages.iter().cloned());
                block_on(history.append(&AppendToken::new(format!("{at}")), messages)).unwrap();
                prop_assert_eq!(everything(&open(store)), everything(&history));
            }
            Step::Compact(which, percent) => compact(&mut history, store, (*which, *percent), counts)?,
        }
    }
    let log = block_on(store.log(&SessionId::new("session"), Seq(0)..Seq(u64::MAX), u32::MAX));
    if let Ok(log) = log {
        prop_assert!(
            log.messages.iter().map(|logged| &logged.entry.message).eq(&said),
            "the log has changed"
        );
    }
    Ok(history)
}

#[test]
fn what_a_plan_shortens_is_shown_loaded_and_counted_alike_and_stays_in_the_log() {
    let cases = epitome_tests::cases::count();
    let config = ProptestConfig { cases, ..ProptestConfig::default() };
    let (counts, ignored) = (Counts::default(), Counts::default());
    prop::test_runner::TestRunner::new(config)
        .run(&steps(), |steps| {
            let memory: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
            let sqlite: Arc<dyn HistoryStore> = Arc::new(SqliteStore::open_in_memory().unwrap());
            let one = run(&memory, &steps, &counts)?;
            let other = run(&sqlite, &steps, &ignored)?;
            prop_assert_eq!(everything(&one), everything(&other));
            prop_assert_eq!(shown(&one), shown(&other));
            Ok(())
        })
        .unwrap();
    println!("{cases} cases: {:?}", counts.borrow());
    for (name, count) in counts.into_inner() {
        assert!(count >= cases as usize / 32, "{name}: only {count} in {cases}");
    }
}

#[test]
fn a_session_counted_by_another_counter_is_shortened_in_its_own_units() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let mut history = open(&store);
    let said = (0..12).flat_map(|at| {
        [
            Said::Assistant(false, 9, 1).message(at),
            Said::Result(u8::try_from(at % 6).unwrap(), 90).message(at),
        ]
    });
    let said = core::iter::once(Message::user("Look.")).chain(said).collect();
    block_on(history.append(&AppendToken::new("a"), said)).unwrap();
    let exact = Arc::new(epitome::tokens::Tiktoken::o200k_base());
    let counter: Arc<dyn TokenCounter + Send + Sync> = exact.clone();
    let mut history =
        block_on(History::open(Arc::clone(&store), SessionId::new("session"), counter)).unwrap();
    let budget = budget(&history, 50);
    let record =
        block_on(history.compact(&budget, Pass::Manual, &ToolResultClearing::new())).unwrap().unwrap();
    assert!(record.edits.len() == 9 && record.edits.iter().all(|edit| edit.count.counter == "o200k_base"));
    let counted: u64 = history.projection().map(|message| count_message(message, &*exact).as_u64()).sum();
    assert_eq!((record.tokens_after, history.index().tokens()), (counted, counted));
    // Opened with the first counter again, the history counts its shortened messages anew. All others keep their
    // counts.
    let again = open(&store);
    let counted: u64 =
        again.projection().map(|message| count_message(message, &ClassEstimator::new()).as_u64()).sum();
    assert_eq!(again.index().tokens(), counted);
}
