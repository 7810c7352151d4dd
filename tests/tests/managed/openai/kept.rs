//! Runs over a conversation that the service keeps: a request contains only the new messages, and no message that the
//! service already has.

use epitome::agent::{Agent, SessionForgotten, ToolOutput};
use epitome::compaction::Compaction;
use epitome::compactors::managed::openai::OpenAiCompaction;
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{Persistence, Point, RunError, RunEvent, RunOptions, RunSettings};
use epitome::session::{AgentSession, ServiceSessionId, SessionErrorKind};
use futures::future::join_all;
use serde_json::Value;

use super::service;
use super::sessions::Chat;
use crate::managed::support::{block_on, case, managed};
use crate::managed::talk::{Talk, auto, text};

/// Beginning of a request.
#[derive(Debug, PartialEq)]
enum Begins {
    /// With the id of an earlier response, and the new messages only.
    FromAnId,
    /// Without an id, with the output of a compaction by the service.
    FromWhatIsLeft,
    /// Without an id, with the whole history.
    Whole,
}

fn begins(body: &Value) -> Begins {
    assert_eq!(body["instructions"], "Be brief.", "they are not those of an earlier response");
    let items = body["input"].as_array().unwrap();
    let compactions = items.iter().filter(|item| item["type"] == "compaction").count();
    match body.get("previous_response_id") {
        Some(_) => {
            assert_eq!((items.len(), compactions), (1, 0), "what is new is one item: {items:?}");
            Begins::FromAnId
        }
        None if compactions == 1 && items[items.len() - 2]["type"] == "compaction" => {
            let before = &items[..items.len() - 2];
            assert!(before.iter().all(|item| item["role"] == "user"), "{before:?}");
            Begins::FromWhatIsLeft
        }
        None => Begins::Whole,
    }
}

fn count(sent: &[Value], what: &Begins) -> usize {
    sent.iter().filter(|body| begins(body) == *what).count()
}

#[test]
fn only_what_is_new_is_sent() {
    let chat = Chat::new("openai").keeping([]);
    let mut talk = Talk::new("m");
    let last = talk.go_on(200, &chat, auto(managed(service("openai")), 7_000));
    assert!(last.ends_with(" 200 facts"), "{last}");
    assert!(talk.renewed >= 5, "{} times", talk.renewed);
    assert_eq!((talk.compacted, talk.forgotten), (0, 0));
    assert_eq!(talk.spent_on_compaction(), talk.renewed as u64);
    let sent = chat.sent.lock().unwrap();
    assert_eq!(count(&sent, &Begins::Whole), 1, "the first");
    assert_eq!(count(&sent, &Begins::FromWhatIsLeft), talk.renewed);
    assert_eq!(sent.len(), 400);
}

/// A history that the service has forgotten is sent once, whole: before the first call of a run, and between a call and its result.
#[test]
fn what_is_forgotten_is_sent_once() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        // These requests are refused: among them are the first request of a run, and a request between a call and its
        // result.
        let chat = Chat::new("openai").keeping([(20, "forget"), (62, "forget"), (103, "forget")]);
        let mut talk = Talk::new("m").storing(persistence);
        let last = talk.go_on(60, &chat, auto(managed(service("openai")), 1_000_000));
        assert!(last.ends_with(" 60 facts"), "{last}");
        assert_eq!((talk.forgotten, talk.renewed, talk.compacted), (3, 0, 0));
        let sent = chat.sent.lock().unwrap();
        assert_eq!(sent.len(), 123);
        assert_eq!(count(&sent, &Begins::Whole), 4);
        let mut ends = Vec::new();
        for refused in [20, 62, 103] {
            let (refused, whole) = (&sent[refused], sent[refused + 1]["input"].as_array().unwrap());
            assert_eq!(whole.last(), refused["input"].as_array().unwrap().last(), "what was new is last");
            let calls: Vec<_> = whole.iter().filter_map(|item| item["call_id"].as_str()).collect();
            assert!(calls.iter().all(|id| calls.iter().filter(|it| *it == id).count() == 2), "{calls:?}");
            let questions: Vec<_> = whole.iter().filter(|item| item["role"] == "user").collect();
            assert!(questions.windows(2).all(|pair| pair[0] != pair[1]), "nothing is sent twice");
            ends.push(whole.last().unwrap()["type"] == "function_call_output");
        }
        assert!(ends.contains(&true) && ends.contains(&false), "{ends:?}");
    }
}

/// A forgotten history is sent once each time: also if a run goes on from another forgotten response, and if the run
/// has sent the history itself before.
#[test]
fn what_is_forgotten_again_is_sent_once_each_time() {
    let mut talk = Talk::new("m");
    let alone = Chat::new("openai");
    talk.go_on(5, &alone, auto(managed(service("openai")), 1_000_000));
    let chat = Chat::new("openai").keeping([(1, "forget"), (20, "forget"), (22, "forget")]);
    let last = talk.go_on(20, &chat, auto(managed(service("openai")), 1_000_000));
    assert!(last.ends_with(" 25 facts"), "{last}");
    assert_eq!(talk.forgotten, 3);
    let sent = chat.sent.lock().unwrap();
    for forgotten in [1, 20, 22] {
        let whole = sent[forgotten + 1]["input"].as_array().unwrap();
        let facts: Vec<_> = whole.iter().filter_map(|item| item["output"].as_str()).collect();
        assert!(facts.len() >= 5, "{forgotten}: all is sent");
        let all_but = |at: usize| facts.iter().enumerate().filter(move |(other, _)| *other != at);
        let twice = (0..facts.len()).find(|at| all_but(*at).any(|(_, fact)| *fact == facts[*at]));
        assert_eq!(twice, None, "{forgotten}: nothing is sent twice");
    }
}

/// A forgotten history that is too long is compacted like a history that is only stored locally, and goes on as a new
/// session of the service.
#[test]
fn what_is_forgotten_and_too_long_is_compacted() {
    let chat = Chat::new("openai").keeping([(121, "forget")]);
    let mut talk = Talk::new("m");
    let last = talk.go_on(100, &chat, auto(managed(service("openai")), 7_000));
    assert!(last.ends_with(" 100 facts"), "{last}");
    assert_eq!((talk.forgotten, talk.compacted), (1, 1));
    let sent = chat.sent.lock().unwrap();
    let whole = sent[122]["input"].as_array().unwrap();
    assert!(whole.iter().any(|item| item["type"] == "compaction"), "{whole:?}");
    assert!(sent[122].get("previous_response_id").is_none());
    assert!(sent[123..].iter().all(|body| begins(body) != Begins::Whole));
}

/// An agent with a conversation that the service keeps. `history` adds a local history provider.
fn agent(chat: &Chat, compaction: OpenAiCompaction, history: bool) -> Agent {
    let mut providers = Providers::default();
    if history {
        providers.push(HistoryProvider::in_memory()).unwrap();
    }
    let settings = RunSettings::new("a")
        .with_instructions("Be brief.")
        .with_providers(providers)
        .with_model("m")
        .with_compaction(auto(managed(compaction), 500));
    Agent::with_settings(settings, chat.clone())
        .with_tool_runner(|_| Box::pin(async { ToolOutput::new("unused") }))
}

fn long(fact: usize) -> String {
    format!("FACT-{fact}: {}", "and so on ".repeat(60))
}

/// After any failure, the old session of the service stays in use until the new one has answered, and no compaction is
/// paid for twice.
#[test]
fn a_failure_leaves_the_old_session_or_the_new_one() {
    // The faults of the compaction's requests, the fault of the request after them, and the error kind that the run
    // reports.
    let cases: [(&str, Option<&'static str>, Option<SessionErrorKind>); 7] = [
        ("ok", None, None),
        ("503,503,ok", None, None),
        ("503,503,503", None, Some(SessionErrorKind::Unavailable)),
        ("none", None, Some(SessionErrorKind::Unavailable)),
        ("401", None, Some(SessionErrorKind::Invalid)),
        // A second compaction would be refused.
        ("ok,401,401", Some("500"), None),
        ("ok,401,401", Some("disconnect"), None),
    ];
    // All cases run at once: most of them wait.
    block_on(join_all(cases.map(|(faults, answer, failed)| async move {
        let name = case();
        let compaction = service("openai").with_header("x-case", &name).unwrap();
        let compaction = compaction.with_header("x-faults", faults).unwrap();
        let chat = Chat::new("openai").keeping(answer.map(|fault| (4, fault)));
        let agent = agent(&chat, compaction, true);
        let mut session = AgentSession::with_id("s");
        let options = RunOptions::default();
        let alone = options.clone().with_compaction(Compaction::Off);
        for fact in 0..4 {
            agent.run(&mut session, long(fact), &alone).await.unwrap();
        }
        let before = session.service_session_id().cloned();
        let run = agent.run(&mut session, long(4), &options).await;
        let events = match (run, answer) {
            (Ok(outcome), None) => outcome.events,
            (Err(RunError::Model(_)), Some(_)) => {
                assert_eq!(session.service_session_id().cloned(), before, "nothing was answered");
                // The next run begins with the output of the compaction, which was kept.
                let outcome = agent.run(&mut session, long(4), &options).await.unwrap();
                assert_eq!(outcome.events, [], "{faults}: it is not asked for again");
                vec![RunEvent::Renewed { point: Point::BeforeCall }]
            }
            (run, _) => panic!("{faults}: {run:?}"),
        };
        let told = events.iter().find_map(|event| match event {
            RunEvent::Failed { kind, .. } => Some(*kind),
            _ => None,
        });
        assert_eq!(told, failed, "{faults}");
        assert_eq!(events.iter().any(|it| matches!(it, RunEvent::Renewed { .. })), failed.is_none());
        assert_ne!(session.service_session_id().cloned(), before);
        let expected = if failed.is_some() { Begins::FromAnId } else { Begins::FromWhatIsLeft };
        {
            let sent = chat.sent.lock().unwrap();
            assert_eq!(begins(sent.last().unwrap()), expected, "{faults}");
            assert_eq!(count(&sent, &Begins::Whole), 1, "{faults}: the first");
        }
        let outcome = agent.run(&mut session, long(5), &alone).await.unwrap();
        let last = text(outcome.response.messages.last().unwrap());
        assert!(last.contains(" 6 facts"), "{faults}: {last}");
    })));
}

/// A forgotten history that is not stored locally cannot be sent: the run fails with the error of the client.
#[test]
fn what_is_forgotten_and_not_stored_is_an_error() {
    let chat = Chat::new("openai").keeping([(1, "forget")]);
    let agent = agent(&chat, service("openai"), false);
    block_on(async {
        let mut session = AgentSession::with_id("s");
        let options = RunOptions::default().with_store(true);
        agent.run(&mut session, long(0), &options).await.unwrap();
        let id = session.service_session_id().and_then(ServiceSessionId::as_text).map(str::to_owned);
        assert!(id.is_some());
        let error = agent.run(&mut session, long(1), &options).await.unwrap_err();
        assert!(matches!(&error, RunError::Model(error) if error.is::<SessionForgotten>()), "{error:?}");
        assert_eq!(session.service_session_id().and_then(ServiceSessionId::as_text), id.as_deref());
    });
}
