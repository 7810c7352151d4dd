//! Compactions that are undone during a run: their hidden messages are in the next request, at their places. No message
//! is lost, no message is there twice, and the visible messages are the stored ones.

use std::collections::VecDeque;
use std::sync::Arc;

use epitome::compaction::{AutoCompaction, CompactionOptions, RunPoints};
use epitome::compactors::{AnyStrategy, Engine};
use epitome::core::message::Role;
use epitome::core::{Seq, Trigger};
use epitome::history::HistoryStore;
use epitome::message::{Message, Part, ToolCall};
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{ModelResponse, Persistence, Run, RunError, RunOptions, RunSettings};
use epitome::session::{AgentSession, SessionErrorKind};
use epitome::wire::ContextOverflow;
use epitome_tests::cases::{self, Census};
use futures::executor::block_on;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::store;
use super::support::{Answer, Meanwhile, Scripted, check, history, log, open};

/// An event of a run.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A tool is called, and returns this number of lines.
    Use(u8),
    /// The oldest unanswered call gets its result.
    Late,
    /// The provider refuses the request, and accepts at most this percentage of its size.
    Refused(u64),
    /// The latest compaction is read and undone.
    Undo,
    /// The compactions that are not stored are taken back.
    TakeBack,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u8..40).prop_map(Step::Use),
        1 => Just(Step::Late),
        3 => (20_u64..90).prop_map(Step::Refused),
        3 => Just(Step::Undo),
        1 => Just(Step::TakeBack),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    sqlite: bool,
    per_call: bool,
    rule: &'static str,
    /// The events of each run, and whether its last call is left without an answer.
    runs: Vec<(Vec<Step>, bool)>,
}

const RULES: &[&str] =
    &["truncate", "tool-results:keep=1 | truncate", "clamp:max=260 | tool-drop", "summarize:recent=1"];

fn case() -> impl Strategy<Value = Case> {
    let runs = prop::collection::vec((prop::collection::vec(step(), 2..12), any::<bool>()), 2..6);
    (any::<bool>(), any::<bool>(), prop::sample::select(RULES), runs)
        .prop_map(|(sqlite, per_call, rule, runs)| Case { sqlite, per_call, rule, runs })
}

#[test]
fn what_is_undone_in_a_run_is_shown_in_it() {
    let minimums = [
        ("refused, and compacted", 300),
        ("undone", 100),
        ("undone, its own", 50),
        ("later ones first", 30),
        ("taken back", 50),
        ("all is shown again", 100),
        ("a late answer is shown again", 5),
    ];
    cases::check("engine, undone in runs", case(), &minimums, |case, census| {
        Talk::of(&case).goes_through(&case, census)
    });
}

/// A conversation, and all its messages.
struct Talk {
    store: Arc<dyn HistoryStore>,
    settings: RunSettings,
    said: Vec<Message>,
    /// The calls without an answer.
    open: VecDeque<String>,
    calls: usize,
}

impl Talk {
    fn of(case: &Case) -> Self {
        let store = store(case.sqlite);
        let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
        let engine = Engine::new(case.rule.parse::<AnyStrategy>().unwrap()).with_summarizer(summarizer);
        let auto = AutoCompaction::new(engine)
            .with_trigger(Trigger::never())
            .with_points(RunPoints::NONE)
            .with_options(CompactionOptions::default().with_window(1_000_000));
        let mut providers = Providers::default();
        providers.push(HistoryProvider::new("memory", Arc::clone(&store))).unwrap();
        let persistence = if case.per_call { Persistence::PerModelCall } else { Persistence::PerRun };
        let settings = RunSettings::new("agent")
            .with_providers(providers)
            .with_compaction(auto)
            .with_persistence(persistence);
        Self { store, settings, said: Vec::new(), open: VecDeque::new(), calls: 0 }
    }

    fn goes_through(mut self, case: &Case, census: &Census) -> Result<(), TestCaseError> {
        let settings = self.settings.clone();
        let mut session = AgentSession::with_id("session");
        for (at, (steps, leaves)) in case.runs.iter().enumerate() {
            let input = vec![Message::user(format!("Question {at}? {}", "And why? ".repeat(at * 9)))];
            self.said.extend(input.iter().cloned());
            let mut run =
                block_on(Run::begin(&settings, &mut session, input, &RunOptions::default())).unwrap();
            block_on(async {
                for step in steps {
                    self.goes_on(&mut run, *step, census).await?;
                    self.is_as_stored(&mut run, case.per_call).await?;
                }
                self.ends(run, at, *leaves).await;
                Ok::<_, TestCaseError>(())
            })?;
            check(&history(&self.store), &self.store)?;
            prop_assert_eq!(texts(log(&self.store).iter().map(|it| &it.entry.message)), texts(&self.said));
        }
        Ok(())
    }

    async fn ends(&mut self, mut run: Run<'_>, at: usize, leaves: bool) {
        let last = if leaves { self.call() } else { Message::assistant(format!("Answer {at}.")) };
        if leaves {
            self.open.push_back(format!("c{}", self.calls));
        }
        self.answers(&mut run, last).await;
        run.finish().await.unwrap();
    }

    /// The next call, which has an id of its own.
    fn call(&mut self) -> Message {
        self.calls += 1;
        let call = ToolCall::new(format!("c{}", self.calls), "read", format!("{{\"at\":{}}}", self.calls));
        Message::new(Role::Assistant, vec![Part::ToolCall(call)])
    }

    async fn answers(&mut self, run: &mut Run<'_>, message: Message) {
        let prompt = run.prompt().await.unwrap();
        self.said.push(message.clone());
        run.record(prompt.handle, ModelResponse::new(vec![message])).await.unwrap();
    }

    fn hears(&mut self, run: &mut Run<'_>, answer: Message) {
        self.said.push(answer.clone());
        run.answer(vec![answer]).unwrap();
    }

    async fn goes_on(&mut self, run: &mut Run<'_>, step: Step, census: &Census) -> Result<(), TestCaseError> {
        match step {
            Step::Use(lines) => {
                let call = self.call();
                self.answers(run, call).await;
                let id = format!("c{}", self.calls);
                let text = format!("{id}: {}", "a line of what it read\n".repeat(usize::from(lines)));
                self.hears(run, Message::tool(id, text));
            }
            Step::Late => {
                if let Some(id) = self.open.pop_front() {
                    self.hears(run, Message::tool(id.clone(), format!("late, to {id}")));
                }
            }
            Step::Refused(percent) => {
                let prompt = run.prompt().await.unwrap();
                let window = (prompt.size.tokens * percent / 100).max(2);
                let done = run.refused(prompt.handle, ContextOverflow::new(Some(window), None)).await;
                census.count("refused, and compacted", done.is_ok());
            }
            Step::Undo => self.undoes(run, census).await?,
            Step::TakeBack => {
                let mut compactions = run.compactions().await.unwrap();
                census.count("taken back", compactions.is_ahead());
                compactions.take_back().await.unwrap();
                prop_assert!(!compactions.is_ahead());
                let rest = compactions.latest().await.unwrap();
                if rest.is_none() {
                    self.shows_all(run, census)?;
                }
            }
        }
        Ok(())
    }

    /// Undoes the latest stored compaction. If the run has later compactions that are not stored, this is a `Conflict`.
    async fn undoes(&mut self, run: &mut Run<'_>, census: &Census) -> Result<(), TestCaseError> {
        let own = run.context().response().is_some();
        let mut compactions = run.compactions().await.unwrap();
        let Some(made) = compactions.latest().await.unwrap() else { return Ok(()) };
        if compactions.is_ahead() {
            let error = compactions.undo(made.revision).await.unwrap_err();
            prop_assert_eq!(error.kind(), SessionErrorKind::Conflict);
            census.count("later ones first", true);
            return Ok(());
        }
        let page = compactions.expand(made.revision, Seq(0), 1_000).await.unwrap();
        prop_assert!(!page.messages.is_empty());
        compactions.undo(made.revision).await.unwrap();
        let none = compactions.latest().await.unwrap().is_none();
        census.count("undone", true);
        census.count("undone, its own", own);
        if none { self.shows_all(run, census) } else { Ok(()) }
    }

    /// Checks that no message is hidden any more: each message is visible once.
    fn shows_all(&self, run: &Run<'_>, census: &Census) -> Result<(), TestCaseError> {
        let shown = run.projection();
        prop_assert_eq!(texts(shown.iter().copied()), texts(&self.said));
        census.count("all is shown again", true);
        let late = |message: &&Message| said(message).contains("late, to");
        census.count("a late answer is shown again", shown.into_iter().any(|message| late(&message)));
        Ok(())
    }

    /// Checks that a run that stores with each call shows the same messages as a fresh process.
    async fn is_as_stored(&self, run: &mut Run<'_>, per_call: bool) -> Result<(), TestCaseError> {
        if !per_call {
            return Ok(());
        }
        match run.prompt().await {
            Ok(_) => {}
            Err(RunError::PendingCalls(_)) => return Ok(()),
            Err(other) => panic!("{other}"),
        }
        let fresh = open(&self.store).await;
        let fresh: Vec<_> = fresh.projection().map(said).collect();
        prop_assert_eq!(run.projection().into_iter().map(said).collect::<Vec<_>>(), fresh);
        Ok(())
    }
}

/// Texts of the messages, sorted.
fn texts<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<String> {
    let mut texts: Vec<_> = messages.into_iter().map(said).collect();
    texts.sort_unstable();
    texts
}

/// The role and the texts of a message.
fn said(message: &Message) -> String {
    format!("{:?} {:?}", message.role(), message.parts().iter().map(part_text).collect::<Vec<_>>())
}

fn part_text(part: &Part) -> String {
    match part {
        Part::Text(text) => text.to_string(),
        Part::ToolCall(call) => format!("{} {}", call.id.as_str(), call.arguments.as_str()),
        Part::ToolResult(result) => {
            format!("{}: {}", result.call_id.as_str(), result.parts.iter().map(part_text).collect::<String>())
        }
        _ => String::new(),
    }
}
