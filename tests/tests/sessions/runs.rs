//! A run as an explicit object: its requests, its answers and the stored messages.

use std::sync::Arc;

use epitome::compactors::Truncation;
use epitome::core::message::Role;
use epitome::core::{Basis, Budget, ClassEstimator, Pass, Usage};
use epitome::history::{AppendToken, History, HistoryStore, MemoryStore, SessionId};
use epitome::message::{Approval, ApprovalAnswer, Message, Part, ToolResult};
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{CallDelta, Delta, ModelResponse, Persistence, Run, RunError, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;

use crate::sessions::support::{call, log, shown, texts};

pub(crate) fn settings(store: &Arc<MemoryStore>) -> RunSettings {
    settings_over(&(store.clone() as Arc<dyn HistoryStore>))
}

pub(crate) fn settings_over(store: &Arc<dyn HistoryStore>) -> RunSettings {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::clone(store))).unwrap();
    RunSettings::new("assistant").with_providers(providers)
}

fn options(token: &str) -> RunOptions {
    RunOptions::default().with_run_token(token)
}

fn answer(text: &str) -> ModelResponse {
    ModelResponse::new(vec![Message::assistant(text)])
}

/// A message with an outdated answer to an approval and with a new request is refused: the request would be lost with
/// the answer.
#[test]
fn an_input_that_would_not_be_sent_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    let stale = Part::ApprovalResponse(ApprovalAnswer::new(Approval::new("a1", "c1"), true));
    let both = Message::new(Role::User, vec![stale.clone(), Part::Text("And delete b.txt.".into())]);
    let apart = vec![Message::new(Role::User, vec![stale]), Message::user("And delete b.txt.")];
    block_on(async {
        let refused = Run::begin(&settings, &mut session, vec![both], &options("1")).await;
        assert!(matches!(refused, Err(RunError::Misuse(_))));
        let mut run = Run::begin(&settings, &mut session, apart, &options("2")).await.unwrap();
        assert_eq!(texts(&run.prompt().await.unwrap().messages), ["user: And delete b.txt."]);
    });
    assert_eq!(log(&*store, "s"), []);
}

/// A message with a new request and with the answer to a call that a compaction has hidden is refused: the request
/// would be lost with the answer.
#[test]
fn an_input_that_would_be_hidden_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    let late = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("42".into())]));
    let both = Message::new(Role::User, vec![late.clone(), Part::Text("And delete b.txt.".into())]);
    let apart = vec![Message::new(Role::User, vec![late]), Message::user("And delete b.txt.")];
    block_on(async {
        let counter = Arc::new(ClassEstimator::new());
        let mut history = History::open(store.clone(), SessionId::new("s"), counter).await.unwrap();
        let mut said = vec![Message::user("Hello."), Message::user("Read it."), call("c1", "read")];
        for _ in 0..20 {
            said.extend([Message::user("Never mind."), Message::assistant("Fine, as you like it.")]);
        }
        history.append(&AppendToken::new("t"), said).await.unwrap();
        let budget = Budget::builder().window(1_000).trigger(200).goal(100).build().unwrap();
        history.compact(&budget, Pass::Manual, &Truncation::new()).await.unwrap();
        assert!(!shown(&*store, "s").iter().any(|text| text.contains("call c1")));
        let refused = Run::begin(&settings, &mut session, vec![both], &options("1")).await;
        assert!(matches!(refused, Err(RunError::Misuse(_))));
        let mut run = Run::begin(&settings, &mut session, apart, &options("2")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        assert_eq!(texts(&prompt.messages).last().unwrap(), "user: And delete b.txt.");
    });
}

#[test]
fn a_prompt_waits_for_open_calls() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    block_on(async {
        let input = vec![Message::user("Read it.")];
        let mut run = Run::begin(&settings, &mut session, input, &options("1")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        run.record(prompt.handle, ModelResponse::new(vec![call("c1", "read")])).await.unwrap();
        let error = run.prompt().await.unwrap_err();
        assert!(matches!(&error, RunError::PendingCalls(calls) if calls[0].name == *"read"), "{error}");
        assert!(matches!(run.answer(vec![Message::tool("c2", "?")]), Err(RunError::Misuse(_))));
        run.answer(vec![Message::tool("c1", "42")]).unwrap();
        let prompt = run.prompt().await.unwrap();
        assert_eq!(texts(&prompt.messages).len(), 3);
        run.record(prompt.handle, answer("It is 42.")).await.unwrap();
        assert_eq!(log(&*store, "s"), [], "stored at the end");
        let outcome = run.finish().await.unwrap();
        assert_eq!(outcome.response.messages.len(), 3);
        assert!(matches!(run.finish().await, Err(RunError::Misuse(_))));
    });
    let said = ["user: Read it.", "assistant: call c1", "tool: result c1: 42", "assistant: It is 42."];
    assert_eq!(shown(&*store, "s"), said);
}

#[test]
fn only_the_latest_request_is_answered_and_once() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Hi")], &options("1")).await.unwrap();
        let (first, second) = (run.prompt().await.unwrap(), run.prompt().await.unwrap());
        assert!(matches!(run.record(first.handle, answer("old")).await, Err(RunError::Misuse(_))));
        run.record(second.handle, answer("new")).await.unwrap();
        run.finish().await.unwrap();
    });
    assert_eq!(shown(&*store, "s"), ["user: Hi", "assistant: new"]);
}

#[test]
fn the_size_of_the_next_request_follows_what_was_reported() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Hi")], &options("1")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        assert_eq!(prompt.size.basis, Basis::Estimated);
        run.record(prompt.handle, answer("Hello").with_usage(Usage::new(5_000, 20))).await.unwrap();
        run.finish().await.unwrap();
        assert_eq!(session.token_count(), 5_000);
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("More")], &options("2")).await.unwrap();
        let size = run.prompt().await.unwrap().size.tokens;
        assert!(size > 5_000 && size < 5_200, "{size}: the anchor holds from run to run");
    });
    assert_eq!(session.usage().unwrap().output_total, Some(20));
}

#[test]
fn an_abandoned_stream_stores_what_arrived() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Tell.")], &options("1")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        run.begin_response(prompt.handle).unwrap();
        run.extend_response(&Delta::text("Once upon ")).unwrap();
        run.extend_response(&Delta::text("a")).unwrap();
        let whole = CallDelta::new(0, "{\"a\": 1}").of("c1", "read");
        run.extend_response(&Delta::call(whole)).unwrap();
        run.extend_response(&Delta::call(CallDelta::new(1, "{\"a\": ").of("c2", "read"))).unwrap();
        assert!(matches!(run.finish().await, Err(RunError::Misuse(_))), "an answer is arriving");
        run.abandon().await.unwrap();
    });
    let log = log(&*store, "s");
    assert_eq!(texts(&log), ["user: Tell.", "assistant: Once upon a|call c1"]);
    assert!(log[1].is_incomplete() && !log[0].is_incomplete());
    // The next run tells the model that the call has no result.
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Go on.")], &options("2")).await.unwrap();
        assert_eq!(run.unfinished_calls()[0].id, *"c1");
        let sent = texts(&run.prompt().await.unwrap().messages);
        assert!(sent[2].starts_with("tool: result c1: [no result is recorded"), "{sent:?}");
        assert_eq!(sent.last().unwrap(), "user: Go on.");
    });
}

#[test]
fn a_whole_stream_is_an_answer_and_its_last_report_counts() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Tell.")], &options("1")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        run.begin_response(prompt.handle).unwrap();
        run.extend_response(&Delta::text("Hel").with_usage(Usage::new(7, 1))).unwrap();
        run.extend_response(&Delta::text("lo").with_usage(Usage::new(9, 2))).unwrap();
        run.finish_response().await.unwrap();
        run.finish().await.unwrap();
    });
    assert_eq!(shown(&*store, "s"), ["user: Tell.", "assistant: Hello"]);
    assert_eq!((session.token_count(), session.usage().unwrap().output_total), (9, Some(2)));
}

#[test]
fn a_failed_call_stores_the_inputs_only() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Hi")], &options("1")).await.unwrap();
        let _prompt = run.prompt().await.unwrap();
        run.fail().await.unwrap();
    });
    assert_eq!(shown(&*store, "s"), ["user: Hi"]);
}

#[test]
fn an_aborted_run_stores_nothing() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Hi")], &options("1")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        run.record(prompt.handle, answer("Hello")).await.unwrap();
        run.abort();
    });
    assert_eq!(shown(&*store, "s"), Vec::<String>::new());
}

#[test]
fn per_model_call_what_was_said_survives_a_crash() {
    let store = Arc::new(MemoryStore::new());
    let settings = settings(&store).with_persistence(Persistence::PerModelCall);
    let mut session = AgentSession::with_id("s");
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Read.")], &options("1")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        assert_eq!(shown(&*store, "s"), ["user: Read."], "before the model is called");
        run.record(prompt.handle, ModelResponse::new(vec![call("c1", "read")])).await.unwrap();
        // Here the process dies.
        drop(run);
    });
    assert_eq!(shown(&*store, "s"), ["user: Read.", "assistant: call c1"]);

    // Without new input the call is still open, and is answered first.
    let mut session = AgentSession::with_id("s");
    block_on(async {
        let mut run = Run::begin(&settings, &mut session, Vec::new(), &options("2")).await.unwrap();
        assert_eq!(run.pending_calls()[0].id, *"c1");
        run.answer(vec![Message::tool("c1", "42")]).unwrap();
        let prompt = run.prompt().await.unwrap();
        assert_eq!(prompt.messages.len(), 3);
        run.record(prompt.handle, answer("42")).await.unwrap();
        run.finish().await.unwrap();
    });
    let said = ["user: Read.", "assistant: call c1", "tool: result c1: 42", "assistant: 42"];
    assert_eq!(shown(&*store, "s"), said);
}

#[test]
fn a_repeated_run_stores_once_and_has_the_answer() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        let store = Arc::new(MemoryStore::new());
        let settings = settings(&store).with_persistence(persistence);
        let input = || vec![Message::user("yes"), Message::user("yes")];
        block_on(async {
            let mut session = AgentSession::with_id("s");
            let mut run = Run::begin(&settings, &mut session, input(), &options("same")).await.unwrap();
            let prompt = run.prompt().await.unwrap();
            run.record(prompt.handle, ModelResponse::new(vec![call("c1", "read")])).await.unwrap();
            run.answer(vec![Message::tool("c1", "42")]).unwrap();
            let prompt = run.prompt().await.unwrap();
            run.record(prompt.handle, answer("Hello")).await.unwrap();
            run.finish().await.unwrap();
            drop(run);
            // Another run of the session does not hide the answer.
            let mut run = Run::begin(&settings, &mut session, vec![Message::user("no")], &options("next"))
                .await
                .unwrap();
            let prompt = run.prompt().await.unwrap();
            run.record(prompt.handle, answer("Bye")).await.unwrap();
            run.finish().await.unwrap();
        });
        let said = shown(&*store, "s");
        assert_eq!(said.len(), 7, "{said:?}");
        // The second attempt learns only from the error that the first one was stored.
        let mut session = AgentSession::with_id("s");
        match block_on(Run::begin(&settings, &mut session, input(), &options("same"))) {
            Err(RunError::AlreadyStored { answer: Some(answer) }) => {
                assert_eq!(texts(&[*answer]), ["assistant: Hello"])
            }
            other => panic!("{persistence:?}: {:?}", other.map(|_| ())),
        }
        assert_eq!(shown(&*store, "s"), said);
    }
}

#[test]
fn a_run_that_has_stored_its_input_is_not_begun_again() {
    let store = Arc::new(MemoryStore::new());
    let settings = settings(&store).with_persistence(Persistence::PerModelCall);
    let mut session = AgentSession::with_id("s");
    block_on(async {
        let input = || vec![Message::user("Read it.")];
        let mut run = Run::begin(&settings, &mut session, input(), &options("1")).await.unwrap();
        let _ = run.prompt().await.unwrap();
        drop(run);
        let again = Run::begin(&settings, &mut session, input(), &options("1")).await;
        assert!(matches!(again, Err(RunError::AlreadyStored { answer: None })));
        let mut run = Run::begin(&settings, &mut session, Vec::new(), &options("2")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        assert_eq!(texts(&prompt.messages), ["user: Read it."], "once");
        run.record(prompt.handle, ModelResponse::new(vec![call("c1", "read")])).await.unwrap();
        run.answer(vec![Message::tool("c1", "42")]).unwrap();
        let _ = run.prompt().await.unwrap();
        drop(run);
        let again = Run::begin(&settings, &mut session, Vec::new(), &options("2")).await;
        assert!(matches!(again, Err(RunError::AlreadyStored { answer: None })), "a result is no answer");
        let mut run = Run::begin(&settings, &mut session, Vec::new(), &options("3")).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        run.record(prompt.handle, answer("It is 42.")).await.unwrap();
        run.finish().await.unwrap();
    });
    let said = ["user: Read it.", "assistant: call c1", "tool: result c1: 42", "assistant: It is 42."];
    assert_eq!(shown(&*store, "s"), said);
}

#[test]
fn what_has_arrived_when_a_run_is_dropped_is_stored_with_the_next() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        let store = Arc::new(MemoryStore::new());
        let settings = settings(&store).with_persistence(persistence);
        let mut session = AgentSession::with_id("s");
        block_on(async {
            for (token, aborts) in [("1", false), ("2", true)] {
                let input = vec![Message::user(token)];
                let mut run = Run::begin(&settings, &mut session, input, &options(token)).await.unwrap();
                let prompt = run.prompt().await.unwrap();
                run.begin_response(prompt.handle).unwrap();
                run.extend_response(&Delta::text("Well, ")).unwrap();
                if aborts { run.abort() } else { drop(run) }
            }
            let again = Run::begin(&settings, &mut session, Vec::new(), &options("1")).await;
            assert!(matches!(again, Err(RunError::AlreadyStored { answer: None })), "half an answer is none");
            let run = Run::begin(&settings, &mut session, Vec::new(), &options("3")).await.unwrap();
            drop(run);
        });
        let mut said = vec!["user: 1", "assistant: Well, "];
        said.extend((persistence == Persistence::PerModelCall).then_some("user: 2"));
        assert_eq!(shown(&*store, "s"), said, "an abort leaves nothing of what has arrived");
        assert!(log(&*store, "s")[1].is_incomplete());
    }
}
