//! Runs over a conversation that a service keeps, step by step: the content of each request, and the response from
//! which the session goes on. Whole conversations with such services are in `managed`.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use async_trait::async_trait;
use epitome::agent::{Agent, ChatClient, ChatRequest, ClientError, ToolOutput};
use epitome::compaction::{
    AutoCompaction, CompactionCx, CompactionOutcome, Compactor, KeptSession, RunPoints,
};
use epitome::core::message::Role;
use epitome::core::{ClassEstimator, TokenCounter, Trigger, Usage};
use epitome::history::MemoryStore;
use epitome::message::{Approval, ApprovalAnswer, Message, Part};
use epitome::provider::{ClosureProvider, HistoryProvider, Providers, boxed_hook};
use epitome::run::{Delta, ModelResponse, Point, Prompt, Run, RunError, RunEvent, RunOptions, RunSettings};
use epitome::session::{AgentSession, ServiceSessionId, SessionError, SessionErrorKind};
use epitome::wire::{ContextOverflow, Format, ReadOptions, convert_continued, read};
use futures::executor::block_on;
use futures::{FutureExt, StreamExt};

use crate::sessions::support::{Scripted, call, shown, texts};

/// A session of which the service keeps the messages up to the response `r1`.
fn session() -> AgentSession {
    AgentSession::with_id("s").with_service_session_id("r1")
}

fn settings(store: &Arc<MemoryStore>) -> RunSettings {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", store.clone())).unwrap();
    RunSettings::new("a").with_providers(providers)
}

async fn begin<'a>(settings: &'a RunSettings, session: &'a mut AgentSession, input: Vec<Message>) -> Run<'a> {
    Run::begin(settings, session, input, &RunOptions::default()).await.unwrap()
}

fn says(message: Message, id: &str) -> ModelResponse {
    ModelResponse::new(vec![message]).with_service_session_id(id)
}

/// The id of the response from which a request goes on, and the texts of the request.
fn asked(prompt: &Prompt) -> (Option<&str>, Vec<String>) {
    (prompt.service_session_id.as_ref().and_then(ServiceSessionId::as_text), texts(&prompt.messages))
}

fn goes_on_from(session: &AgentSession) -> Option<&str> {
    session.service_session_id().and_then(ServiceSessionId::as_text)
}

/// A service that leaves one message of its session, whenever a compaction is requested.
#[derive(Debug)]
struct Leaves;

#[async_trait]
impl Compactor for Leaves {
    fn name(&self) -> &str {
        "leaves"
    }

    async fn compact(&self, _: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        panic!("what is stored is compacted beside what the service keeps")
    }

    fn compacts_kept(&self) -> bool {
        true
    }

    async fn compact_kept(&self, _: &KeptSession<'_>) -> Result<Vec<Message>, SessionError> {
        Ok(vec![Message::assistant("What is left.")])
    }
}

fn compacting(store: &Arc<MemoryStore>) -> RunSettings {
    let auto = AutoCompaction::new(Leaves).with_trigger(Trigger::tokens(1));
    settings(store).with_compaction(auto.with_points(RunPoints::NONE.and_before_call()))
}

#[test]
fn what_is_said_while_a_call_is_out_is_in_the_request_after_it() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), session());
    block_on(async {
        let mut run = begin(&settings, &mut session, vec![Message::user("Look.")]).await;
        let prompt = run.prompt().await.unwrap();
        run.answer(vec![Message::user("Be quick.")]).unwrap();
        run.record(prompt.handle, says(call("c1", "look"), "r2")).await.unwrap();
        run.answer(vec![Message::tool("c1", "Rain.")]).unwrap();
        let prompt = run.prompt().await.unwrap();
        let new = ["user: Be quick.", "tool: result c1: Rain."].map(str::to_owned);
        assert_eq!(asked(&prompt), (Some("r2"), new.to_vec()));
        run.record(prompt.handle, says(Message::assistant("It rains."), "r3")).await.unwrap();
        run.answer(vec![Message::user("And now?")]).unwrap();
        assert_eq!(asked(&run.prompt().await.unwrap()), (Some("r3"), vec!["user: And now?".to_owned()]));
    });
}

/// The result of a custom tool has its own form, even if only the service has the call. The service refuses the output
/// of a function for such a call, and gets only the new messages.
#[test]
fn a_result_of_a_custom_tool_has_its_own_form_where_the_service_has_the_call() {
    let item = r#"{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** x"}"#;
    let read = read(format!("[{item}]"), &ReadOptions::default()).unwrap();
    let patch = read.conversations()[0].messages().next().unwrap().clone();
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), session());
    block_on(async {
        let mut run = begin(&settings, &mut session, vec![Message::user("Mend it.")]).await;
        let prompt = run.prompt().await.unwrap();
        run.record(prompt.handle, says(patch, "r2")).await.unwrap();
        run.answer(vec![Message::tool("c1", "Done.")]).unwrap();
        let new = run.prompt().await.unwrap().messages;
        let text = convert_continued(&new, Format::OpenaiResponses).unwrap().text;
        let output = r#"{"type":"custom_tool_call_output","call_id":"c1","output":"Done."}"#;
        assert_eq!(text, format!(r#"{{"input":[{output}]}}"#));
    });
}

/// No compaction is made between a call or a question of the service and its answer: the answer cannot follow the
/// output of a compaction.
#[test]
fn nothing_is_compacted_between_a_question_and_its_answer() {
    let approved = Part::ApprovalResponse(ApprovalAnswer::new(Approval::new("a1", "c1"), true));
    let approved = Message::new(Role::User, vec![approved]);
    let said = Message::user("Go on.");
    for (input, answer, renewed) in [
        (vec![said.clone()], vec![], true),
        (vec![approved], vec![], false),
        (vec![Message::tool("c1", "Rain.")], vec![], false),
        (vec![said], vec![Message::tool("c1", "Rain.")], false),
    ] {
        let store = Arc::new(MemoryStore::new());
        let (settings, mut session) = (compacting(&store), session());
        block_on(async {
            let mut run = begin(&settings, &mut session, input).await;
            run.answer(answer).unwrap();
            let prompt = run.prompt().await.unwrap();
            assert_eq!(run.events().contains(&RunEvent::Renewed { point: Point::BeforeCall }), renewed);
            assert_eq!(asked(&prompt).0, (!renewed).then_some("r1"));
        });
    }
}

#[test]
fn a_new_session_of_the_service_that_brings_no_id_is_sent_all_again() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (compacting(&store), session());
    block_on(async {
        let mut run = begin(&settings, &mut session, vec![Message::user("Look.")]).await;
        let prompt = run.prompt().await.unwrap();
        let first = ["assistant: What is left.", "user: Look."].map(str::to_owned);
        assert_eq!(asked(&prompt), (None, first.to_vec()));
        run.record(prompt.handle, ModelResponse::new(vec![call("c1", "look")])).await.unwrap();
        run.answer(vec![Message::tool("c1", "Rain.")]).unwrap();
        let prompt = run.prompt().await.unwrap();
        let rest = ["assistant: call c1", "tool: result c1: Rain."].map(str::to_owned);
        assert_eq!(asked(&prompt), (None, [first, rest].concat()));
        run.record(prompt.handle, says(Message::assistant("It rains."), "r2")).await.unwrap();
        run.finish().await.unwrap();
    });
    assert_eq!(goes_on_from(&session), Some("r2"));
}

/// If a provider fails at the end of a run, the service's session matches the history: it includes the messages if they
/// are stored. If they are not stored, the run can be repeated.
#[test]
fn where_a_provider_fails_at_the_end_the_session_is_where_the_history_is() {
    for (stores, on) in [(true, "r2"), (false, "r1")] {
        let store = Arc::new(MemoryStore::new());
        let mut providers = Providers::default();
        if stores {
            providers.push(HistoryProvider::new("memory", store.clone())).unwrap();
        }
        let away = || SessionError::new(SessionErrorKind::Unavailable, "it is away");
        let fails = ClosureProvider::after_run(boxed_hook(move |_| Box::pin(async move { Err(away()) })));
        providers.push_closure(fails).unwrap();
        let (settings, mut session) = (RunSettings::new("a").with_providers(providers), session());
        block_on(async {
            let options = RunOptions::default().with_store(true);
            let input = vec![Message::user("Hi.")];
            let mut run = Run::begin(&settings, &mut session, input, &options).await.unwrap();
            let prompt = run.prompt().await.unwrap();
            run.record(prompt.handle, says(Message::assistant("Hello."), "r2")).await.unwrap();
            assert!(matches!(run.finish().await, Err(RunError::Providers(_))));
        });
        assert_eq!((goes_on_from(&session), shown(&*store, "s").len() == 2), (Some(on), stores));
    }
}

#[test]
fn nothing_is_undone_in_a_run_that_the_service_has_begun_to_keep() {
    let store = Arc::new(MemoryStore::new());
    let (settings, mut session) = (settings(&store), AgentSession::with_id("s"));
    block_on(async {
        let mut run = begin(&settings, &mut session, vec![Message::user("Hi.")]).await;
        assert!(run.compactions().await.is_ok());
        let prompt = run.prompt().await.unwrap();
        run.record(prompt.handle, says(Message::assistant("Hello."), "r2")).await.unwrap();
        let error = run.compactions().await.unwrap_err();
        assert!(error.to_string().contains("service-managed"), "{error}");
    });
}

/// A result is in the request and in its size, even if only the service has the call. Instructions of providers are
/// counted once.
#[test]
fn what_is_sent_is_counted_once() {
    let counted = |text: &str| ClassEstimator::new().count(text).as_u64();
    let (long, instructions) =
        ("It rains. ".repeat(400), "Be brief, and say where you know it from. ".repeat(40));
    let store = Arc::new(MemoryStore::new());
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", store.clone())).unwrap();
    let told = instructions.clone();
    providers
        .push_closure(ClosureProvider::before_run(boxed_hook(move |hook| {
            let told = told.clone();
            Box::pin(async move {
                hook.context.extend_instructions("told", [told]);
                Ok(())
            })
        })))
        .unwrap();
    let (settings, mut session) = (RunSettings::new("a").with_providers(providers), session());
    block_on(async {
        let mut run = begin(&settings, &mut session, vec![Message::tool("c1", long.as_str())]).await;
        let prompt = run.prompt().await.unwrap();
        let whole = counted(&long) + counted(&instructions);
        assert!((whole..whole + 30).contains(&prompt.size.tokens), "{} of {whole}", prompt.size.tokens);
        let usage = Usage::new(2_000, 10);
        run.record(prompt.handle, says(Message::assistant("I see."), "r2").with_usage(usage)).await.unwrap();
        run.finish().await.unwrap();
        let mut run = begin(&settings, &mut session, vec![Message::user("And?")]).await;
        let size = run.prompt().await.unwrap().size.tokens;
        assert!((2_000..2_050).contains(&size), "{size}: all that it reported is in it");
    });
}

/// One run with `store`, answered with or without an id. Returns the texts of the request, and the events.
fn stored(
    session: &mut AgentSession,
    store: bool,
    says: &str,
    id: Option<&str>,
) -> (Vec<String>, Vec<RunEvent>) {
    let (settings, options) = (RunSettings::new("a"), RunOptions::default().with_store(store));
    block_on(async {
        let input = vec![Message::user(says)];
        let mut run = Run::begin(&settings, session, input, &options).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        let sent = texts(&prompt.messages);
        let mut answer = ModelResponse::new(vec![Message::assistant("Yes.")]);
        answer.service_session_id = id.map(ServiceSessionId::from);
        run.record(prompt.handle, answer).await.unwrap();
        (sent, run.finish().await.unwrap().events)
    })
}

#[test]
fn a_service_that_tells_no_id_of_what_it_should_keep_loses_nothing() {
    let mut session = AgentSession::with_id("s");
    let (_, events) = stored(&mut session, true, "I am Alice.", None);
    assert_eq!(events, [RunEvent::ServiceSessionMissing]);
    // This holds also for a session that was written and read in between.
    let mut session = AgentSession::from_json(&session.to_json().unwrap()).unwrap();
    let (sent, events) = stored(&mut session, true, "Who am I?", None);
    assert_eq!(sent, ["user: I am Alice.", "assistant: Yes.", "user: Who am I?"]);
    assert_eq!(events, []);
    // If the service returns an id, the session goes on from there.
    let (sent, events) = stored(&mut AgentSession::with_id("s"), true, "Hi", Some("r1"));
    assert_eq!((sent, events), (vec!["user: Hi".to_owned()], vec![]));
}

/// Answers once with a call, then fails or hangs.
struct Once {
    hangs: bool,
    /// The id that it returns with the call.
    id: Option<&'static str>,
    asked: AtomicBool,
}

#[async_trait]
impl ChatClient for Once {
    async fn complete(&self, _: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        if !self.asked.swap(true, Relaxed) {
            let mut answer = ModelResponse::new(vec![call("c1", "pay")]);
            answer.service_session_id = self.id.map(ServiceSessionId::from);
            return Ok(answer);
        }
        if self.hangs {
            core::future::pending::<()>().await;
        }
        Err("down".into())
    }
}

/// Messages that no service keeps are kept locally if a run fails, is stopped or is dropped. The service returns no id,
/// or an id from which the session does not go on.
#[test]
fn what_no_service_keeps_is_kept_however_the_run_ends() {
    for (how, id) in [("failed", None), ("stopped", None), ("failed", Some("r1")), ("stopped", Some("r1"))] {
        let client = Once { hangs: how != "failed", id, asked: AtomicBool::new(false) };
        let agent = Agent::new("a", client).with_tool_runner(|_| Box::pin(async { ToolOutput::new("paid") }));
        let (mut session, options) =
            (agent.create_session(None, None), RunOptions::default().with_store(true));
        let mut stream = agent.run_stream(&mut session, "Pay.", &options);
        while let Some(Some(Ok(_))) = stream.next().now_or_never() {}
        let ended = if how == "failed" { block_on(stream.finish()) } else { block_on(stream.stop()) };
        assert_eq!(ended.is_ok(), how == "stopped");
        let is_told = |events: &[RunEvent]| events.contains(&RunEvent::ServiceSessionMissing);
        assert!(ended.is_ok_and(|outcome| is_told(&outcome.events)) == (how == "stopped" && id.is_none()));
        let (sent, _) = stored(&mut session, true, "And?", None);
        assert_eq!(
            sent,
            ["user: Pay.", "assistant: call c1", "tool: result c1: paid", "user: And?"],
            "{how}"
        );
    }
    let settings = RunSettings::new("a");
    let (mut session, options) = (AgentSession::with_id("s"), RunOptions::default().with_store(true));
    block_on(async {
        let input = vec![Message::user("Tell.")];
        let mut run = Run::begin(&settings, &mut session, input, &options).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        run.begin_response(prompt.handle).unwrap();
        run.extend_response(&Delta::text("Once")).unwrap();
    });
    let (sent, _) = stored(&mut session, true, "And?", None);
    assert_eq!(sent, ["user: Tell.", "assistant: Once", "user: And?"]);
}

/// A session of the service is renewed once for a refusal. A second refusal is an error, because the renewal has not
/// made the session shorter.
#[test]
fn a_session_of_the_service_is_renewed_once_for_a_refusal() {
    let (store, mut session) = (Arc::new(MemoryStore::new()), session());
    // No point of the run is set. A refusal needs none.
    let auto = AutoCompaction::new(Leaves).with_points(RunPoints::NONE);
    let settings = settings(&store).with_compaction(auto);
    block_on(async {
        let mut run = begin(&settings, &mut session, vec![Message::user("Hi")]).await;
        let prompt = run.prompt().await.unwrap();
        run.refused(prompt.handle, ContextOverflow::default()).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        assert_eq!(asked(&prompt), (None, vec!["assistant: What is left.".into(), "user: Hi".into()]));
        let error = run.refused(prompt.handle, ContextOverflow::default()).await.unwrap_err();
        assert!(matches!(error, RunError::Session(_)), "{error}");
    });
}

/// If a provider fails after the answer, the caller of the agent gets the answer, and the session goes on from it.
#[test]
fn a_provider_that_fails_after_the_answer_does_not_unmake_it() {
    let failing = ClosureProvider::after_run(boxed_hook(|_| {
        Box::pin(async { Err(SessionError::new(SessionErrorKind::Unavailable, "down")) })
    }));
    let mut providers = Providers::default();
    providers.push_closure(failing).unwrap();
    let client = Scripted::new(|_, _| {
        Ok(ModelResponse::new(vec![Message::assistant("Yes.")]).with_service_session_id("r1"))
    });
    let agent = Agent::with_settings(RunSettings::new("a").with_providers(providers), client);
    let (mut session, options) = (agent.create_session(None, None), RunOptions::default().with_store(true));
    let error = block_on(agent.run(&mut session, "Hi", &options)).unwrap_err();
    assert!(matches!(&error, RunError::EndFailed { outcome, .. } if outcome.response.text() == "Yes."));
    assert_eq!(goes_on_from(&session), Some("r1"));
}

#[test]
fn a_service_that_keeps_what_it_should_not_is_not_followed() {
    let mut session = AgentSession::with_id("s");
    let (_, events) = stored(&mut session, false, "I am Alice.", Some("r1"));
    assert_eq!((events, goes_on_from(&session)), (vec![RunEvent::ServiceSessionIgnored], None));
    let (sent, _) = stored(&mut session, false, "Who am I?", None);
    assert_eq!(sent, ["user: I am Alice.", "assistant: Yes.", "user: Who am I?"]);
}
