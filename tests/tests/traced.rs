//! Spans and events of a run: each hook, load, store and decision has one, and none has a text of a message.
//!
//! This is a program of its own, because the interest in a span is cached for a whole process: threads without a
//! subscriber would take part too.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests: a panic is how they report")]

use core::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::compaction::{AutoCompaction, CompactionCx, CompactionOutcome, Compactor, RunPoints};
use epitome::compactors::ToolResultClearing;
use epitome::core::Trigger;
use epitome::core::message::Role;
use epitome::history::{HistoryStore, MemoryStore};
use epitome::message::{Message, Part, ToolCall};
use epitome::provider::{ClosureProvider, HistoryProvider, Providers, boxed_hook};
use epitome::run::{ModelResponse, Run, RunOptions, RunSettings};
use epitome::session::{AgentSession, FileSessionStore, SessionError, SessionErrorKind};
use futures::executor::block_on;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Subscriber that records each span and each event, with its fields.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("epitome")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(format!("span {}", span.metadata().name()));
        span.record(&mut fields);
        let mut all = self.0.lock().unwrap();
        all.push(fields.0);
        Id::from_u64(all.len() as u64)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields("record".into());
        values.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields("event".into());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Clears all results but the newest.
#[derive(Debug)]
struct Clearing;

#[async_trait]
impl Compactor for Clearing {
    fn name(&self) -> &str {
        "clearing"
    }

    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        let (budget, pass, before) = (*cx.budget(), cx.pass(), cx.measure());
        let clearing = ToolResultClearing::new().keep(1);
        Ok(match cx.history().compact(&budget, pass, &clearing).await.expect("it can be cleared") {
            Some(_) => CompactionOutcome::Compacted(cx.result_since(before)),
            None => CompactionOutcome::Unchanged("nothing to clear".into()),
        })
    }
}

/// Always fails.
#[derive(Debug)]
struct Failing;

#[async_trait]
impl Compactor for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    async fn compact(&self, _: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        Err(SessionError::new(SessionErrorKind::Unavailable, "on purpose"))
    }
}

const SECRET: &str = "SECRET words that somebody has said, and nobody else is to read";

fn settings(store: &Arc<dyn HistoryStore>) -> RunSettings {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::clone(store))).unwrap();
    let audit = HistoryProvider::new("audit", Arc::new(MemoryStore::new()) as Arc<dyn HistoryStore>);
    providers.push(audit.load_messages(false)).unwrap();
    let context = ClosureProvider::before_run(boxed_hook(|hook| {
        Box::pin(async move {
            hook.context.extend_messages("rag", [Message::user(SECRET)]);
            hook.state.insert("said".into(), SECRET.into());
            Ok(())
        })
    }));
    providers.push(context.with_source_id("rag")).unwrap();
    let clearing = AutoCompaction::new(Clearing)
        .with_trigger(Trigger::tokens(60))
        .with_points(RunPoints::default().and_before_call().and_after_run());
    RunSettings::new("a").with_instructions(SECRET).with_providers(providers).with_compaction(clearing)
}

async fn talk(settings: &RunSettings, session: &mut AgentSession) {
    let options = RunOptions::default().with_run_token("r-1");
    let mut run = Run::begin(settings, session, vec![Message::user(SECRET)], &options).await.unwrap();
    for id in ["c1", "c2"] {
        let prompt = run.prompt().await.unwrap();
        let call = Part::ToolCall(ToolCall::new(id, "read", "{}"));
        run.record(prompt.handle, ModelResponse::new(vec![Message::new(Role::Assistant, vec![call])]))
            .await
            .unwrap();
        run.answer(vec![Message::tool(id, SECRET.repeat(20))]).unwrap();
    }
    let prompt = run.prompt().await.unwrap();
    run.record(prompt.handle, ModelResponse::new(vec![Message::assistant(SECRET)])).await.unwrap();
    run.finish().await.unwrap();
}

fn recorded(run: impl FnOnce()) -> Vec<String> {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), run);
    let told = recorder.0.lock().unwrap().clone();
    for line in &told {
        assert!(!line.contains("SECRET"), "{line}");
    }
    told
}

#[test]
fn each_hook_load_store_and_decision_has_a_span_and_no_content() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let settings = settings(&store);
    let told = recorded(|| block_on(talk(&settings, &mut AgentSession::with_id("s"))));
    let count = |line: &str| told.iter().filter(|told| told.starts_with(line)).count();
    for (span, times) in [
        ("span begin session=s run=\"r-1\"", 1),
        ("span hook source_id=\"memory\" hook=\"before_run\"", 1),
        ("span hook source_id=\"audit\" hook=\"before_run\"", 0),
        ("span hook source_id=\"rag\" hook=\"before_run\"", 1),
        ("span hook source_id=\"rag\" hook=\"after_run\"", 1),
        ("span hook source_id=\"audit\" hook=\"after_run\"", 1),
        ("span hook source_id=\"memory\" hook=\"after_run\"", 1),
        ("span load source_id=\"memory\"", 1),
        ("span load source_id=\"audit\" tail=true", 1),
        ("span store source_id=\"memory\" messages=6", 1),
        ("span store source_id=\"audit\" messages=6", 1),
        ("span prompt run=\"r-1\"", 3),
        ("span trigger point=\"before_run\"", 1),
        ("span trigger point=\"before_call\"", 3),
        ("span trigger point=\"after_run\"", 1),
        ("span compaction point=\"before_call\"", 2),
        ("span commit source_id=\"memory\"", 1),
        ("span finish run=\"r-1\"", 1),
    ] {
        assert_eq!(count(span), times, "{span}: {told:#?}");
    }
    assert!(count("event message=compaction is due fired=") >= 2, "{told:#?}");
    assert!(count("event message=compaction is not due") >= 1, "{told:#?}");
}

#[test]
fn failures_and_session_files_are_told_without_content() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let failing = AutoCompaction::new(Failing).with_trigger(Trigger::always());
    let settings = settings(&store).with_compaction(failing);
    let folder = std::env::temp_dir().join(format!("epitome-traced-{}", std::process::id()));
    let told = recorded(|| {
        block_on(async {
            let (files, mut session) = (FileSessionStore::new(&folder), AgentSession::with_id("s"));
            talk(&settings, &mut session).await;
            files.save(&session).await.unwrap();
            files.load(session.session_id()).await.unwrap();
        });
    });
    std::fs::remove_dir_all(&folder).unwrap();
    let has = |part: &str| told.iter().any(|told| told.contains(part));
    assert!(has("compaction failed point=\"before_run\" kind=Unavailable"), "{told:#?}");
    assert!(has("span save_session session=\"s\" bytes=") && has("span load_session session=\"s\""));
}

#[test]
fn odd_histories_are_warned_of_once_with_the_first_run_of_whatever_session() {
    let store = || Arc::new(MemoryStore::new()) as Arc<dyn HistoryStore>;
    for (loads, words) in [(true, "Multiple history providers"), (false, "none have load_messages=true")] {
        let mut providers = Providers::default();
        for id in ["one", "two"] {
            providers.push(HistoryProvider::new(id, store()).load_messages(loads)).unwrap();
        }
        let settings = RunSettings::new("a").with_providers(providers);
        let told = recorded(|| {
            block_on(async {
                // Two sessions that were read from JSON, each with one run without an agent.
                let written = AgentSession::with_id("s").to_json().unwrap();
                for session in [written.as_str(), &written] {
                    let mut session = AgentSession::from_json(session).unwrap();
                    let input = vec![Message::user("Hi")];
                    let begun = Run::begin(&settings, &mut session, input, &RunOptions::default()).await;
                    begun.unwrap().abort();
                }
            });
        });
        assert_eq!(told.iter().filter(|told| told.contains(words)).count(), 1, "{told:#?}");
    }
}
