//! Compactions that begin before they are due. Until then anything may happen: the commit still covers no message that
//! has changed, and hides no message that was appended since. One crossing of the early trigger causes one summary.

use core::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use epitome::compaction::{Began, Begun, CompactionCx, CompactionOutcome, Compactor as _, Discarded};
use epitome::compactors::{Background, BackgroundTask, Truncation};
use epitome::core::{Budget, ClassEstimator, ModelKey, Pass, Revision, Seq};
use epitome::history::{Committed, History, HistoryStore};
use epitome::message::Message;
use epitome_tests::cases::{self, Census};
use futures::executor::block_on;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::paths::polled;
use super::store;
use super::support::{
    self, Answer, Meanwhile, Said, Scripted, append, check, check_covered, history, open, said, said_all,
    session,
};
use super::whole::{Which, any_stages, engine, summarizing};

/// An event of a session.
#[derive(Debug, Clone)]
enum Step {
    Said(Vec<Said>),
    /// The size passes the early trigger, which is below the trigger.
    Begin,
    /// The executor polls the tasks this number of times.
    Polled(usize),
    /// The executor drops the tasks.
    Forgotten,
    /// Calls of earlier turns are answered.
    Late,
    /// Another handle compacts.
    Edited,
    /// The conversation goes on with another model.
    Model,
    /// A compaction is due, and the request fits.
    Due,
    /// A compaction is requested, or cannot wait.
    Now,
    /// A compaction is requested, and its future is dropped after this number of polls.
    Dropped(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(said(), 2..12).prop_map(Step::Said),
        6 => Just(Step::Begin),
        5 => (1_usize..6).prop_map(Step::Polled),
        1 => Just(Step::Forgotten),
        1 => Just(Step::Late),
        2 => Just(Step::Edited),
        2 => Just(Step::Model),
        4 => Just(Step::Due),
        3 => Just(Step::Now),
        1 => (1_usize..4).prop_map(Step::Dropped),
    ]
}

/// Steps in any order, with two sequences that are rare by chance: a caller drops its compaction, or the task ends
/// (often because the summarizer fails), before the next compaction is requested.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let said = || prop::collection::vec(said(), 6..12).prop_map(Step::Said);
    let given_up = (said(), 1_usize..4, prop::option::of(said())).prop_map(|(first, polls, then)| {
        [first, Step::Begin, Step::Dropped(polls)].into_iter().chain(then).chain([Step::Now]).collect()
    });
    let failed = (said(), any::<bool>()).prop_map(|(first, due)| {
        vec![first, Step::Begin, Step::Polled(8), if due { Step::Due } else { Step::Now }]
    });
    let row = prop_oneof![16 => step().prop_map(|one| vec![one]), 1 => given_up, 1 => failed];
    prop::collection::vec(row, 6..24).prop_map(|rows| rows.concat())
}

#[derive(Debug, Clone)]
struct Case {
    sqlite: bool,
    which: Which,
    falls_back: bool,
    answer: Answer,
    /// Number of yields of the summarizer before its answer.
    yields: usize,
    meanwhile: Meanwhile,
    first: Vec<Said>,
    steps: Vec<Step>,
}

fn case() -> impl Strategy<Value = Case> {
    let answer = prop_oneof![8 => Just(Answer::Good), 1 => Just(Answer::Full), 2 => Just(Answer::Fails), 2 => Just(Answer::Panics)];
    let meanwhile = prop_oneof![6 => Just(Meanwhile::Nothing), 1 => Just(Meanwhile::Append), 1 => Just(Meanwhile::Compact)];
    let which = prop_oneof![2 => summarizing(), 1 => any_stages()];
    let said = prop::collection::vec(said(), 12..30);
    (any::<bool>(), which, any::<bool>(), answer, 0_usize..4, meanwhile, said, steps()).prop_map(
        |(sqlite, which, falls_back, answer, yields, meanwhile, first, steps)| Case {
            sqlite,
            which,
            falls_back,
            answer,
            yields,
            meanwhile,
            first,
            steps,
        },
    )
}

#[test]
fn whatever_happens_until_it_is_due_the_session_is_whole() {
    let minimums = [
        ("begun", 1_200),
        ("begun again and again", 450),
        ("committed as planned", 350),
        ("committed behind what was said since", 150),
        ("committed after a drop", 80),
        ("ready before it was due", 120),
        ("waited for", 120),
        ("under way", 250),
        ("discarded: edited", 80),
        ("discarded: another model", 80),
        ("discarded: failed", 50),
        ("discarded: nothing to gain", 100),
        ("dropped", 80),
        ("edited by another handle", 100),
    ];
    cases::check("engine, early", case(), &minimums, |case, census| {
        Room::of(&case).goes_through(&case.steps, census)
    });
}

/// A session, and the early work for it.
struct Room {
    store: Arc<dyn HistoryStore>,
    history: History,
    summarizer: Arc<Scripted>,
    background: Background,
    tasks: Arc<Mutex<Vec<BackgroundTask>>>,
    begun: Begun,
    model: ModelKey,
    models: usize,
    since: Option<Since>,
    read: Vec<Message>,
    round: usize,
}

/// State of the session when early work was begun.
struct Since {
    head: Seq,
    revision: Revision,
    model: ModelKey,
    calls: usize,
    /// Number of times that a start was requested.
    asked: usize,
    dropped: bool,
    edited: bool,
}

impl Room {
    fn of(case: &Case) -> Self {
        let store = store(case.sqlite);
        let mut history = history(&store);
        append(&mut history, said_all(&case.first, 0));
        let summarizer = Arc::new(Scripted::new(case.answer, case.meanwhile, &store).yielding(case.yields));
        let tasks = Arc::new(Mutex::new(Vec::new()));
        let spawned = Arc::clone(&tasks);
        let engine = engine(&case.which, &summarizer, case.falls_back);
        let background = Background::new(engine, move |task| spawned.lock().unwrap().push(task));
        let model = model(0);
        Self {
            store,
            history,
            summarizer,
            background,
            tasks,
            begun: Begun::default(),
            model,
            models: 0,
            since: None,
            read: Vec::new(),
            round: 0,
        }
    }

    fn goes_through(mut self, steps: &[Step], census: &Census) -> Result<(), TestCaseError> {
        for step in steps {
            self.round += 1;
            match step {
                Step::Said(said) => self.says(said_all(said, self.round)),
                Step::Begin => self.begin(census)?,
                Step::Polled(times) => self.poll(*times),
                Step::Forgotten => self.tasks.lock().unwrap().clear(),
                Step::Late => {
                    let late = (0..6).map(|id| Message::tool(format!("c{id}"), "late, but here ".repeat(20)));
                    self.says(late.collect());
                }
                Step::Edited => {
                    if block_on(compacts(&self.store)) {
                        census.count("edited by another handle", self.since.is_some());
                        self.since.iter_mut().for_each(|since| since.edited = true);
                    }
                }
                Step::Model => {
                    self.models += 1;
                    self.model = model(self.models);
                }
                Step::Due => self.compact(Pass::Proactive, None, census)?,
                Step::Now => self.compact(Pass::Manual, None, census)?,
                Step::Dropped(polls) => self.compact(Pass::Manual, Some(*polls), census)?,
            }
        }
        Ok(())
    }

    fn says(&mut self, said: Vec<Message>) {
        // Another writer may have appended messages while a summary was written.
        block_on(self.history.reload()).unwrap();
        append(&mut self.history, said);
    }

    fn calls(&self) -> usize {
        self.summarizer.calls.load(Ordering::Relaxed)
    }

    fn begin(&mut self, census: &Census) -> Result<(), TestCaseError> {
        let goal = self.history.index().tokens() / 3;
        let (head, revision) = (self.history.head(), self.history.revision());
        let calls = self.calls();
        let mut cx = CompactionCx::new(&mut self.history, budget(goal), Pass::Proactive)
            .with_model_key(self.model)
            .with_begun(&mut self.begun);
        let began = self.background.begin(&mut cx);
        let discarded = cx.discarded();
        self.has_reason(discarded, census)?;
        match began {
            Began::Now => {
                prop_assert!(self.since.is_none() || discarded.is_some(), "begun twice for one crossing");
                census.count("begun", true);
                let (model, asked) = (self.model, 1);
                self.since =
                    Some(Since { head, revision, model, calls, asked, dropped: false, edited: false });
            }
            Began::Earlier => {
                let since = self.since.as_mut().unwrap();
                since.asked += 1;
                census.count("begun again and again", since.asked == 2);
            }
            other => prop_assert!(false, "{other:?}"),
        }
        prop_assert!(self.begun.is_under_way());
        Ok(())
    }

    fn poll(&self, times: usize) {
        let mut tasks = self.tasks.lock().unwrap();
        tasks.retain_mut(|task| polled(task, times).is_none());
    }

    /// Checks the reason of discarded work, as far as the test can know it without the method of the engine.
    fn has_reason(&mut self, discarded: Option<Discarded>, census: &Census) -> Result<(), TestCaseError> {
        let Some(why) = discarded else { return Ok(()) };
        let since = self.since.take().unwrap();
        match why {
            Discarded::PrefixEdited => {
                let moved = self.summarizer.moved.load(Ordering::Relaxed);
                prop_assert!(since.edited || moved || self.history.revision() != since.revision);
                census.count("discarded: edited", true);
            }
            Discarded::ModelChanged => {
                prop_assert!(since.model != self.model);
                census.count("discarded: another model", true);
            }
            Discarded::Failed => census.count("discarded: failed", true),
            Discarded::NothingToGain => census.count("discarded: nothing to gain", true),
            other => prop_assert!(false, "{other:?}"),
        }
        Ok(())
    }

    fn made_since(&self, revision: Revision) -> Vec<Committed> {
        block_on(self.store.records(&session(), Some(revision), 1_000)).unwrap()
    }

    fn compact(&mut self, pass: Pass, polls: Option<usize>, census: &Census) -> Result<(), TestCaseError> {
        let goal = self.history.index().tokens() / 2;
        let (calls, was_ready) = (self.calls(), self.tasks.lock().unwrap().is_empty());
        let said_since: Vec<Seq> = match &self.since {
            Some(since) => {
                self.history.live().iter().map(|live| live.key).filter(|key| *key >= since.head).collect()
            }
            None => Vec::new(),
        };
        let mut cx = CompactionCx::new(&mut self.history, budget(goal), pass)
            .with_model_key(self.model)
            .with_begun(&mut self.begun);
        let outcome = match polls {
            None => Some(block_on(self.background.compact(&mut cx))),
            Some(polls) => polled(self.background.compact(&mut cx), polls),
        };
        let discarded = cx.discarded();
        self.has_reason(discarded, census)?;
        match &outcome {
            None => {
                census.count("dropped", true);
                // The dropped future may have paid for work that it never reports.
                self.since.iter_mut().for_each(|since| since.dropped = true);
            }
            Some(Ok(CompactionOutcome::UnderWay)) => {
                census.count("under way", true);
                prop_assert!(pass == Pass::Proactive && self.begun.is_under_way() && calls == self.calls());
            }
            Some(outcome) => {
                if let Some(since) = self.since.take_if(|_| !self.begun.is_under_way()) {
                    let compacted = matches!(outcome, Ok(CompactionOutcome::Compacted(_)));
                    prop_assert!(compacted, "{outcome:?}: what was begun is gone, and nobody says why");
                    prop_assert!(since.model == self.model);
                    prop_assert!(self.calls() - since.calls <= 1, "written twice for one crossing");
                    // The other records are from another handle, which may have committed the same at the last moment.
                    let is_ours = |made: &Committed| {
                        let hides = |key: &Seq| {
                            made.record.hides.iter().any(|range| (range.first..=range.last).contains(key))
                        };
                        !said_since.iter().any(hides)
                    };
                    prop_assert!(
                        self.made_since(since.revision).iter().any(is_ours),
                        "what was said since is hidden"
                    );
                    census.count("committed as planned", true);
                    census.count("committed behind what was said since", !said_since.is_empty());
                    census.count("ready before it was due", was_ready && calls == self.calls());
                    census.count("waited for", calls < self.calls());
                    census.count("committed after a drop", since.dropped);
                }
            }
        }
        block_on(self.history.reload()).unwrap();
        check(&self.history, &self.store)?;
        self.read.append(&mut self.summarizer.shown.lock().unwrap());
        if self.calls() == calls {
            // A digest is made from all messages that it stands for.
            self.read.extend(support::covered(&self.history, &self.store));
        }
        check_covered(&self.history, &self.store, &self.read)
    }
}

fn model(number: usize) -> ModelKey {
    ModelKey::new(&format!("model-{number}"), &ClassEstimator::new())
}

fn budget(goal: u64) -> Budget {
    Budget::builder().window(10_000_000).trigger(5_000_000).goal(goal).min_reclaim(0).build().unwrap()
}

/// Another handle compacts the session to half of its size. Returns whether it has hidden messages.
pub(super) async fn compacts(store: &Arc<dyn HistoryStore>) -> bool {
    let mut other = open(store).await;
    let goal = other.index().tokens() / 2;
    other.compact(&budget(goal), Pass::Manual, &Truncation::new()).await.unwrap().is_some()
}
