//! Runs with providers, clients and stores that fail, and with invalid or large state.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use async_trait::async_trait;
use epitome::agent::{Agent, ChatClient, ChatRequest, ClientError, ToolOutput};
use epitome::compaction::{AutoCompaction, RunPoints};
use epitome::compactors::Truncation;
use epitome::core::Trigger;
use epitome::history::{Append, Appended, HistoryStore, MemoryStore, SessionId, StoreError, StoreErrorKind};
use epitome::message::Message;
use epitome::provider::{ContextProvider, HistoryProvider, Hook, HookName, Providers};
use epitome::run::{ModelResponse, Persistence, Run, RunError, RunEvent, RunOptions, RunSettings};
use epitome::session::{AgentSession, FileSessionStore, SessionError, SessionErrorKind};
use epitome_tests::around::{Around, StoreWith};
use futures::executor::block_on;
use serde_json::json;

use crate::sessions::support::{Scripted, Truncating, call, log, shown, texts};

/// Failure of the first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Error,
    Panic,
    /// A panic before the future exists: the trait is implemented by hand.
    EarlyPanic,
}

const TROUBLES: [Trouble; 3] = [Trouble::Error, Trouble::Panic, Trouble::EarlyPanic];

struct Broken {
    hook: HookName,
    trouble: Trouble,
    calls: AtomicUsize,
}

impl Broken {
    fn new(hook: HookName, trouble: Trouble) -> Self {
        Self { hook, trouble, calls: AtomicUsize::new(0) }
    }

    fn at<'a>(&self, hook: HookName) -> Pin<Box<dyn Future<Output = Result<(), SessionError>> + Send + 'a>> {
        if hook != self.hook || self.calls.fetch_add(1, Ordering::Relaxed) > 0 {
            return Box::pin(async { Ok(()) });
        }
        match self.trouble {
            Trouble::Error => {
                Box::pin(async { Err(SessionError::new(SessionErrorKind::Invalid, "on purpose")) })
            }
            Trouble::Panic => Box::pin(async { panic!("a SECRET") }),
            Trouble::EarlyPanic => panic!("a SECRET"),
        }
    }
}

// The signatures are those of `async_trait`.
impl ContextProvider for Broken {
    fn source_id(&self) -> &str {
        "broken"
    }

    fn before_run<'a, 'b, 'c>(
        &'a self,
        _: Hook<'b>,
    ) -> Pin<Box<dyn Future<Output = Result<(), SessionError>> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
    {
        self.at(HookName::BeforeRun)
    }

    fn after_run<'a, 'b, 'c>(
        &'a self,
        _: Hook<'b>,
    ) -> Pin<Box<dyn Future<Output = Result<(), SessionError>> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
    {
        self.at(HookName::AfterRun)
    }
}

fn settings(store: &Arc<MemoryStore>, broken: Broken) -> RunSettings {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", store.clone() as Arc<dyn HistoryStore>)).unwrap();
    providers.push(broken).unwrap();
    RunSettings::new("a").with_providers(providers)
}

#[test]
fn a_provider_that_fails_before_a_run_ends_it_before_the_model_is_asked() {
    for trouble in TROUBLES {
        let (store, client) = (Arc::new(MemoryStore::new()), Scripted::says("Hello."));
        let settings = settings(&store, Broken::new(HookName::BeforeRun, trouble));
        let agent = Agent::with_settings(settings, client.clone());
        let mut session = agent.create_session(Some("s"), None);
        let error = block_on(agent.run(&mut session, "A SECRET", &RunOptions::default())).unwrap_err();
        let RunError::Provider(failed) = &error else { panic!("{trouble:?}: {error}") };
        assert_eq!((&*failed.source_id, failed.hook), ("broken", HookName::BeforeRun));
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
        assert_eq!((client.sent.lock().unwrap().len(), log(&*store, "s").len()), (0, 0));
        // The session can go on.
        block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap();
        assert_eq!(texts(&log(&*store, "s")), ["user: Hi", "assistant: Hello."]);
    }
}

#[test]
fn a_provider_that_fails_after_a_run_is_told_and_all_is_stored_once() {
    for trouble in TROUBLES {
        let store = Arc::new(MemoryStore::new());
        let settings = settings(&store, Broken::new(HookName::AfterRun, trouble));
        let mut session = AgentSession::with_id("s");
        block_on(async {
            let input = vec![Message::user("Hi")];
            let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
            let prompt = run.prompt().await.unwrap();
            let answer = ModelResponse::new(vec![Message::assistant("Hello.")]);
            run.record(prompt.handle, answer).await.unwrap();
            let error = run.finish().await.unwrap_err();
            let RunError::Providers(failures) = &error else { panic!("{trouble:?}: {error}") };
            assert_eq!((&*failures.first().source_id, failures.iter().count()), ("broken", 1));
            assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
            run.finish().await.unwrap();
        });
        assert_eq!(texts(&log(&*store, "s")), ["user: Hi", "assistant: Hello."], "{trouble:?}");
    }
}

/// If a provider fails after the answer, the caller of an agent gets the answer together with the failure.
#[test]
fn a_provider_that_fails_after_the_answer_does_not_take_it_away() {
    for trouble in TROUBLES {
        let store = Arc::new(MemoryStore::new());
        let settings = settings(&store, Broken::new(HookName::AfterRun, trouble));
        let agent = Agent::with_settings(settings, Scripted::says("Hello."));
        let mut session = agent.create_session(Some("s"), None);
        let error = block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap_err();
        let RunError::EndFailed { outcome, failures, cause: None } = &error else {
            panic!("{trouble:?}: {error}")
        };
        assert_eq!(outcome.response.messages, [Message::assistant("Hello.")]);
        assert!(outcome.context_size.is_some());
        assert_eq!((&*failures.first().source_id, failures.iter().count()), ("broken", 1));
        assert_eq!(error.to_string(), failures.to_string());
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
        assert_eq!(texts(&log(&*store, "s")), ["user: Hi", "assistant: Hello."], "{trouble:?}");
    }
}

/// A compaction of a run is committed with the messages of the run, even if a provider fails later: the compaction was
/// paid for.
#[test]
fn a_provider_that_fails_after_the_answer_does_not_undo_a_compaction() {
    let store = Arc::new(MemoryStore::new());
    let before =
        Agent::with_settings(crate::sessions::runs::settings(&store), Scripted::says("A long answer."));
    let mut session = before.create_session(Some("s"), None);
    for _ in 0..20 {
        block_on(before.run(&mut session, "And then?", &RunOptions::default())).unwrap();
    }
    let auto = AutoCompaction::new(Truncating(Truncation::new()))
        .with_trigger(Trigger::tokens(100))
        .with_points(RunPoints::NONE.and_before_call());
    let settings = settings(&store, Broken::new(HookName::AfterRun, Trouble::Error)).with_compaction(auto);
    let agent = Agent::with_settings(settings, Scripted::says("Hello."));
    let error = block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap_err();
    let RunError::EndFailed { outcome, .. } = &error else { panic!("{error}") };
    assert!(outcome.events.iter().any(|event| matches!(event, RunEvent::Compacted { .. })));
    assert_eq!(log(&*store, "s").len(), 42);
    assert!(shown(&*store, "s").len() < 20, "{:?}", shown(&*store, "s"));
}

/// Fails at the append with the number `at`, counted from 0.
#[derive(Debug, Default)]
struct FailsOnce {
    at: usize,
    appends: AtomicUsize,
}

#[async_trait]
impl Around for FailsOnce {
    async fn append(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        append: &Append<'_>,
    ) -> Result<Appended, StoreError> {
        if self.appends.fetch_add(1, Ordering::Relaxed) == self.at {
            return Err(StoreError::new(StoreErrorKind::Unavailable, "a SECRET"));
        }
        store.append(session, append).await
    }
}

/// Messages are stored before and after each call. A store that fails once, at any of these points, loses no answer and no result of a tool
/// that has run.
#[test]
fn a_store_that_fails_once_between_calls_loses_nothing() {
    for at in 0..5 {
        let store = Arc::new(StoreWith {
            store: MemoryStore::new(),
            around: FailsOnce { at, ..FailsOnce::default() },
        });
        let client = Scripted::new(|asked, _| {
            let said = if asked == 1 { call("c1", "pay") } else { Message::assistant("Done.") };
            Ok(ModelResponse::new(vec![said]))
        });
        let as_store: Arc<dyn HistoryStore> = store.clone();
        let settings =
            crate::sessions::runs::settings_over(&as_store).with_persistence(Persistence::PerModelCall);
        let agent = Agent::with_settings(settings, client)
            .with_tool_runner(|_| Box::pin(async { ToolOutput::new("paid") }));
        let mut session = agent.create_session(Some("s"), None);
        let done = block_on(agent.run(&mut session, "Pay.", &RunOptions::default()));
        let all = ["user: Pay.", "assistant: call c1", "tool: result c1: paid", "assistant: Done."];
        let said = match done {
            Ok(outcome) => {
                assert_eq!(outcome.response.text(), "Done.");
                4
            }
            // The input, or the result, could not be stored before the next call.
            Err(RunError::EndFailed { outcome, .. }) => 1 + outcome.response.messages.len(),
            Err(error) => panic!("{at}: {error}"),
        };
        assert_eq!(said, [1, 4, 3, 4, 4][at], "{at}");
        assert_eq!(texts(&log(&store.store, "s")), all[..said], "{at}");
    }
}

/// If the model and the store fail together, the caller gets the messages so far, and both errors.
#[test]
fn a_model_and_a_store_that_fail_together_are_both_told() {
    for streams in [false, true] {
        let around = FailsOnce { at: 0, ..FailsOnce::default() };
        let store = Arc::new(StoreWith { store: MemoryStore::new(), around });
        let client = Scripted::new(|asked, _| match asked {
            1 => Ok(ModelResponse::new(vec![call("c1", "pay")])),
            _ => Err("a SECRET".into()),
        });
        let as_store: Arc<dyn HistoryStore> = store.clone();
        let agent = Agent::with_settings(crate::sessions::runs::settings_over(&as_store), client)
            .with_tool_runner(|_| Box::pin(async { ToolOutput::new("paid") }));
        let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
        let ended = match streams {
            true => block_on(agent.run_stream(&mut session, "Pay.", &options).finish()),
            false => block_on(agent.run(&mut session, "Pay.", &options)),
        };
        let error = ended.unwrap_err();
        let RunError::EndFailed { outcome, cause: Some(cause), .. } = &error else { panic!("{error}") };
        assert!(matches!(**cause, RunError::Model(_)) && outcome.response.messages.len() == 2, "{error}");
        assert!(error.to_string().starts_with("the call of the model failed; then "), "{error}");
        // The store works again at the second attempt.
        let said = ["user: Pay.", "assistant: call c1", "tool: result c1: paid"];
        assert_eq!(texts(&log(&store.store, "s")), said);
    }
}

/// A client that panics before its future exists.
struct Panicking;

impl ChatClient for Panicking {
    fn complete<'a, 'b, 'c, 'd>(
        &'a self,
        _: &'b ChatRequest<'c>,
    ) -> Pin<Box<dyn Future<Output = Result<ModelResponse, ClientError>> + Send + 'd>>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
    {
        panic!("a SECRET")
    }
}

#[test]
fn a_client_that_panics_has_failed() {
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::with_settings(crate::sessions::runs::settings(&store), Panicking);
    let mut session = agent.create_session(Some("s"), None);
    let error = block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap_err();
    assert!(matches!(error, RunError::Model(_)) && !format!("{error:?}").contains("SECRET"), "{error:?}");
    assert_eq!(texts(&log(&*store, "s")), ["user: Hi"]);
}

#[test]
fn state_that_is_no_object_ends_a_run_and_stays() {
    let agent = Agent::new("a", Scripted::says("Hello."));
    let dict = json!({"session_id": "s", "state": {"in_memory": ["not", "an", "object"]}});
    let mut session = AgentSession::from_dict(dict.clone()).unwrap();
    let error = block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap_err();
    let RunError::Provider(failed) = &error else { panic!("{error}") };
    assert_eq!((&*failed.source_id, failed.kind()), ("in_memory", SessionErrorKind::Invalid));
    assert_eq!(session.to_dict().unwrap()["state"], dict["state"]);
}

#[test]
fn ten_megabytes_of_state_go_through_runs_and_files() {
    let agent = Agent::new("a", Scripted::says("Hello."));
    let big = "x".repeat(10_000_000);
    let dict = json!({"session_id": "s", "state": {"big": {"text": big}, "in_memory": {"own": 1}}});
    let mut session = AgentSession::from_dict(dict).unwrap();
    block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap();
    let folder = std::env::temp_dir().join(format!("epitome-big-{}", std::process::id()));
    let files = FileSessionStore::new(&folder);
    block_on(files.save(&session)).unwrap();
    let mut again = block_on(files.load(session.session_id())).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(again.to_dict().unwrap(), session.to_dict().unwrap());
    block_on(agent.run(&mut again, "Still there?", &RunOptions::default())).unwrap();
    let dict = again.to_dict().unwrap();
    assert_eq!(dict["state"]["in_memory"]["messages"].as_array().unwrap().len(), 4);
    assert_eq!(dict["state"]["big"]["text"].as_str().unwrap().len(), big.len());
    assert_eq!(dict["state"]["in_memory"]["own"], 1);
}
