//! The worked examples of the proposal for automatic compaction, in its order, each with its outcome. If an outcome
//! differs on purpose, the test marks it with these words, and `docs/divergences.md` gives the reason. The example that
//! hands the history to OpenAI's `/responses/compact` is in `managed/openai/proposal.rs`, with the server that it
//! needs.

mod compactors;

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use epitome::agent::Agent;
use epitome::compaction::{AutoCompaction, Compaction, CompactionOptions, CompactionResult, RunPoints};
use epitome::compactors::{Engine, Instructions, PromptedSummarizer, Strength, Summarization, Truncation};
use epitome::core::{Trigger, Usage};
use epitome::message::Message;
use epitome::run::{ModelResponse, Point, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;

use crate::sessions::support::Scripted;

/// A model that reports the number of input tokens in `reports`.
fn model(reports: &Arc<AtomicU64>) -> Scripted {
    let reports = Arc::clone(reports);
    Scripted::new(move |nth, _| {
        let answer = Message::assistant(format!("Answer {nth}: {}", "it is as it should be, ".repeat(20)));
        let usage = Usage::new(reports.load(Ordering::Relaxed), 100);
        Ok(ModelResponse::new(vec![answer]).with_usage(usage))
    })
}

fn truncating(threshold: u64) -> AutoCompaction {
    AutoCompaction::new(Engine::new(Truncation::new())).with_trigger(Trigger::tokens(threshold))
}

/// Makes a run. Returns its compactions, with their points.
fn ask(
    agent: &Agent,
    session: &mut AgentSession,
    says: &str,
    options: &RunOptions,
) -> Vec<(Point, CompactionResult)> {
    let outcome = block_on(agent.run(session, says, options)).unwrap();
    let compacted = outcome.events.iter().filter_map(|event| match event {
        RunEvent::Compacted { point, result } => Some((*point, *result)),
        _ => None,
    });
    compacted.collect()
}

/// A conversation of twelve turns. The reported size of its last request is 100,001 tokens.
fn long(agent: &Agent, session: &mut AgentSession, reports: &AtomicU64) {
    reports.store(1_000, Ordering::Relaxed);
    for turn in 0..12 {
        if turn == 11 {
            reports.store(100_001, Ordering::Relaxed);
        }
        assert_eq!(ask(agent, session, &format!("Question {turn}"), &off()), [], "off");
    }
    assert_eq!(session.token_count(), 100_001, "tracked always, also with compaction off");
}

fn off() -> RunOptions {
    RunOptions::default().with_compaction(Compaction::Off)
}

fn with(auto: AutoCompaction) -> RunOptions {
    RunOptions::default().with_compaction(Compaction::With(auto))
}

#[test]
fn explicit_opt_in_for_one_run() {
    let reports = Arc::new(AtomicU64::new(0));
    let agent = Agent::with_settings(RunSettings::new("agent"), model(&reports));
    let mut session = agent.create_session(None, None);
    long(&agent, &mut session, &reports);
    // No compaction parameter: no compaction.
    assert_eq!(ask(&agent, &mut session, "Hello!", &RunOptions::default()), []);
    let compacted = ask(&agent, &mut session, "Hello!", &with(truncating(100_000)));
    let [(Point::BeforeRun, result)] = compacted.as_slice() else { panic!("{compacted:?}") };
    assert_eq!(result.original_count, 26);
    assert!(result.compacted_count < 26 && result.compacted_tokens.is_some(), "on purpose: known at once");
}

#[test]
fn the_threshold_is_compared_strictly() {
    let reports = Arc::new(AtomicU64::new(0));
    let agent = Agent::with_settings(RunSettings::new("agent"), model(&reports));
    let mut session = agent.create_session(None, None);
    long(&agent, &mut session, &reports);
    // On purpose: the trigger looks at the size of the next request, of which the report is the larger part. The rule of the
    // proposal, which looks at the report alone, has a name of its own.
    let reported = |tokens| truncating(0).with_trigger(Trigger::reported(tokens));
    assert_eq!(ask(&agent, &mut session, "Hello!", &with(reported(100_001))), []);
    assert_eq!(ask(&agent, &mut session, "Hello!", &with(reported(100_000))).len(), 1);
}

#[test]
fn an_agents_default_is_used_overridden_and_switched_off() {
    let reports = Arc::new(AtomicU64::new(0));
    let settings = RunSettings::new("Assistant").with_compaction(truncating(100_000));
    let agent = Agent::with_settings(settings, model(&reports));
    let mut session = agent.create_session(None, None);
    long(&agent, &mut session, &reports);
    // Switched off for this run, with any default of the agent.
    assert_eq!(ask(&agent, &mut session, "Quick follow-up", &off()), []);
    // The agent's default.
    assert_eq!(ask(&agent, &mut session, "Hello!", &RunOptions::default()).len(), 1);
    // Another compaction for this run: at 80,000 tokens, with a summary. 90,000 is above its trigger, and below the
    // agent's.
    reports.store(90_000, Ordering::Relaxed);
    assert_eq!(ask(&agent, &mut session, "More.", &off()), []);
    assert_eq!(ask(&agent, &mut session, "More.", &RunOptions::default()), [], "under the agent's 100,000");
    let writes = Scripted::says("Goal: to go on.");
    let engine = Engine::new(Summarization::new().preserve_recent(1))
        .with_summarizer(Arc::new(PromptedSummarizer::new(Arc::new(writes.clone()))));
    let own = AutoCompaction::new(engine).with_trigger(Trigger::tokens(80_000));
    assert_eq!(ask(&agent, &mut session, "Let's summarize", &with(own)).len(), 1);
    assert_eq!(writes.sent.lock().unwrap().len(), 1, "one summary");
    assert!(session.token_count() > 0, "token count is always tracked");
}

#[test]
fn a_compactors_own_options() {
    let reports = Arc::new(AtomicU64::new(0));
    let agent = Agent::with_settings(RunSettings::new("agent"), model(&reports));
    let mut session = agent.create_session(None, None);
    long(&agent, &mut session, &reports);
    // preserve_recent = 5, preserve_system, "conservative" (three quarters of the older messages stay). On purpose: a
    // trigger in tokens brings a goal, and the goal then decides. On demand the strength decides.
    let truncation = Truncation::new().preserve_recent(5).preserve_system(true).strength(Strength::Light);
    let result =
        block_on(agent.compact(&mut session, &Engine::new(truncation), CompactionOptions::default()));
    let result = result.unwrap();
    // Of twelve turns seven are older: 14 messages. The first user message always stays, and its answer is dropped with
    // the oldest messages. Of the other 13 messages 9 stay (three quarters, rounded down). The oldest of these is an
    // answer, and its request stays with it.
    assert_eq!((result.original_count, result.compacted_count), (24, 24 - 13 + 10));

    // A summary by another model, with other instructions.
    let writes = Scripted::says("Decided: nothing.");
    let summarizer = PromptedSummarizer::new(Arc::new(writes.clone()))
        .with_model("gpt-4o-mini")
        .with_instructions(Instructions::custom("Summarize key decisions and current task state."));
    let engine = Engine::new(Summarization::new().preserve_recent(3)).with_summarizer(Arc::new(summarizer));
    let auto =
        AutoCompaction::new(engine).with_trigger(Trigger::tokens(80_000)).with_points(RunPoints::default());
    reports.store(80_001, Ordering::Relaxed);
    assert_eq!(ask(&agent, &mut session, "Go on.", &off()), []);
    assert_eq!(ask(&agent, &mut session, "Go on.", &with(auto)).len(), 1);
    assert!(writes.last()[0].contains("Summarize key decisions and current task state."));
}

#[test]
fn by_hand_whenever_you_decide() {
    let reports = Arc::new(AtomicU64::new(0));
    let agent = Agent::with_settings(RunSettings::new("Assistant"), model(&reports));
    let mut session = agent.create_session(None, None);
    let compactor = Engine::new(Truncation::new());
    let compact = |session: &mut AgentSession| {
        block_on(agent.compact(session, &compactor, CompactionOptions::default())).unwrap()
    };
    let nothing = compact(&mut session);
    assert_eq!((nothing.original_count, nothing.compacted_count), (0, 0), "nothing was said yet");
    long(&agent, &mut session, &reports);
    let usage = session.usage().unwrap();
    assert_eq!(
        (usage.input_total, usage.output_total),
        (Some(100_001), Some(1_200)),
        "the latest, and the sum"
    );
    assert!(session.token_count() > 100_000);
    let result = compact(&mut session);
    assert_eq!(result.original_count, 24);
    assert!(result.compacted_count < 24, "compacted from 24 to {}", result.compacted_count);
    assert_eq!(session.token_count(), 0, "unknown until the next report");
    // On purpose: the used tokens are not forgotten with the size.
    assert_eq!(session.usage().unwrap().output_total, Some(1_200));
    let mut managed = agent.create_session(None, Some("thread-1".into()));
    let refused =
        block_on(agent.compact(&mut managed, &compactor, CompactionOptions::default())).unwrap_err();
    let words =
        "Cannot compact service-managed sessions. Compaction is only supported for client-managed sessions.";
    assert!(refused.to_string().contains(words), "{refused}");
}
