//! The summarizer is unavailable for a while: nothing is forgotten meanwhile, and the outcome names the fallback.

use super::*;

use epitome::compaction::{AutoCompaction, CompactionOptions, FellBack};
use epitome::core::Trigger;
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{ModelResponse, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;

fn engine(answer: Answer, store: &Arc<dyn HistoryStore>) -> (Engine, Arc<Scripted>) {
    let scripted = Arc::new(Scripted::new(answer, Meanwhile::Nothing, store));
    let engine = Engine::new(Summarization::new().preserve_recent(1))
        .with_summarizer(Arc::clone(&scripted) as _)
        .with_fallback(Truncation::new());
    (engine, scripted)
}

#[test]
fn what_was_summarized_before_an_outage_is_known_after_it() {
    for outages in 1..4 {
        let store = store(false);
        let mut history = history(&store);
        append(&mut history, vec![Message::user("Begin."), Message::assistant("Yes.")]);
        append(&mut history, vec![Message::user("The ticket is PROJ-4711, the file src/lib.rs.")]);
        let answers = [Answer::Good].into_iter().chain([Answer::Fails].repeat(outages)).chain([Answer::Good]);
        for (round, answer) in answers.enumerate() {
            talk(&mut history, 12);
            append(&mut history, vec![Message::user(format!("Mind INC-{round}00."))]);
            append(&mut history, vec![Message::assistant("I do.")]);
            talk(&mut history, 4);
            let (engine, scripted) = engine(answer, &store);
            let goal = budget(&history, 40);
            let mut cx = CompactionCx::new(&mut history, goal, Pass::Manual);
            let outcome = block_on(engine.compact(&mut cx)).unwrap();
            assert!(matches!(outcome, CompactionOutcome::Compacted(_)), "{outcome:?}");
            let stood_in = FellBack::new("summarize", SessionErrorKind::Unavailable, "truncate");
            assert_eq!(cx.fell_back(), (answer == Answer::Fails).then_some(&stood_in));
            let texts = support::summary_texts(&history);
            let [summary] = texts.as_slice() else { panic!("round {round}: {texts:?}") };
            assert!(summary.starts_with("[Conversation Summary]\nIt went well.\n"), "{round}: {summary}");
            let shown: Vec<String> = history.projection().map(support::text_of).collect();
            for known in (0..=round).map(|round| format!("INC-{round}00")).chain(["PROJ-4711".into()]) {
                assert!(shown.concat().contains(&known), "round {round}: no {known} in {shown:?}");
            }
            if round > 0 {
                // The summarizer receives the earlier summary.
                assert_eq!(*scripted.previous.lock().unwrap(), ["It went well."]);
            }
            if round > outages {
                // The messages that were hidden during the outage are read from the log, each once.
                let read = scripted.shown.lock().unwrap();
                for missed in (1..round).map(|round| format!("Mind INC-{round}00.")) {
                    let times = read.iter().filter(|message| support::text_of(message) == missed).count();
                    assert_eq!(times, 1, "{missed} of {outages}");
                }
            }
        }
    }
}

#[test]
fn a_run_tells_who_stood_in_for_whom() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let (engine, _) = engine(Answer::Fails, &store);
    let auto = AutoCompaction::new(engine)
        .with_trigger(Trigger::tokens(3_000))
        .with_options(CompactionOptions::default().with_window(4_000));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::clone(&store))).unwrap();
    let settings = RunSettings::new("agent").with_providers(providers).with_compaction(auto);
    let mut session = AgentSession::with_id("session");
    let stood_in = FellBack::new("summarize", SessionErrorKind::Unavailable, "truncate");
    for _ in 0..200 {
        let events = block_on(async {
            let input = vec![Message::user("And then?")];
            let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
            let prompt = run.prompt().await.unwrap();
            let answer = Message::assistant("It goes on. ".repeat(40));
            run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
            run.finish().await.unwrap().events
        });
        let Some(at) = events.iter().position(|event| matches!(event, RunEvent::Compacted { .. })) else {
            continue;
        };
        let told = events[..at]
            .iter()
            .any(|event| matches!(event, RunEvent::FellBack { fell_back, .. } if *fell_back == stood_in));
        assert!(told, "{events:?}");
        return;
    }
    panic!("it was never due");
}
