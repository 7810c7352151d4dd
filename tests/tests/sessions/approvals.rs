//! Tool calls that a person must allow: an agent runs only those that are allowed.

use std::sync::{Arc, Mutex};

use epitome::agent::{Agent, DENIED, INTERRUPTED, Input, OpenCallAction, ToolOutput};
use epitome::core::message::Role;
use epitome::history::MemoryStore;
use epitome::message::{Approval, ApprovalAnswer, Message, Part, ToolCall};
use epitome::run::{Delta, ModelResponse, PendingCall, Persistence, RecallTool, Run, RunError, RunOptions};
use epitome::session::AgentSession;
use futures::FutureExt;
use futures::executor::block_on;

use crate::sessions::runs::settings;
use crate::sessions::support::{Scripted, log, texts};

/// State of the approval of a call before the second run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    NotRequested,
    Requested,
    Answered(bool),
}

const SAID: [Said; 4] = [Said::NotRequested, Said::Requested, Said::Answered(true), Said::Answered(false)];

fn approval(call: &str) -> Approval {
    Approval::new(format!("ask-{call}"), call)
}

fn answers(call: &str, approved: bool) -> Message {
    Message::new(Role::User, vec![Part::ApprovalResponse(ApprovalAnswer::new(approval(call), approved))])
}

/// An agent with a model that makes these calls and then ends. Also returns the calls that the tool runner gets, and
/// the client.
fn agent(store: &Arc<MemoryStore>, first: Vec<Part>) -> (Agent, Arc<Mutex<Vec<String>>>, Scripted) {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let client = Scripted::new(move |asked, _| {
        Ok(ModelResponse::new(vec![match asked {
            1 => Message::new(Role::Assistant, first.clone()),
            _ => Message::assistant("Done."),
        }]))
    });
    let asked = Arc::clone(&ran);
    let agent = Agent::with_settings(settings(store), client.clone()).with_tool_runner(move |call| {
        asked.lock().unwrap().push(call.id.to_string());
        Box::pin(async { ToolOutput::new("ran") })
    });
    (agent, ran, client)
}

/// An agent runs the calls that need no approval or that a person has allowed, and runs no call while another call of
/// the answer waits. The test has two calls in one answer, with every pair of states.
#[test]
fn a_call_runs_if_nobody_must_allow_it_or_a_person_does() {
    for first in SAID {
        for second in SAID {
            let (store, said) = (Arc::new(MemoryStore::new()), [("c1", first), ("c2", second)]);
            let asks = said.iter().filter(|(_, said)| *said != Said::NotRequested);
            let mut parts: Vec<_> =
                said.iter().map(|(id, _)| Part::ToolCall(ToolCall::new(*id, "remove", "{}"))).collect();
            parts.extend(asks.map(|(id, _)| Part::ApprovalRequest(approval(id))));
            let (agent, ran, client) = agent(&store, parts);
            let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
            block_on(agent.run(&mut session, "Clean up.", &options)).unwrap();
            let must_wait = said.iter().any(|(_, said)| *said != Said::NotRequested);
            assert_eq!(ran.lock().unwrap().is_empty(), must_wait, "{said:?}");
            if !must_wait {
                continue;
            }
            let input: Vec<_> = said
                .iter()
                .filter_map(|(id, said)| match said {
                    Said::Answered(approved) => Some(answers(id, *approved)),
                    _ => None,
                })
                .collect();
            let outcome = block_on(agent.run(&mut session, input, &options));
            let open: Vec<_> = said.iter().filter(|(_, said)| *said == Said::Requested).collect();
            if !open.is_empty() {
                let open = open.iter().map(|(id, _)| PendingCall::new((*id).into(), "remove".into()));
                let Err(RunError::PendingCalls(calls)) = outcome else { panic!("{said:?}: {outcome:?}") };
                assert!(calls.iter().cloned().eq(open), "{said:?}");
                assert!(ran.lock().unwrap().is_empty() && client.sent.lock().unwrap().len() == 1, "{said:?}");
                // The answers of the person are stored, so that only the missing answers are necessary.
                for (id, said) in said {
                    if said == Said::Requested {
                        let _ = block_on(agent.run(&mut session, answers(id, true), &options));
                    }
                }
            } else {
                outcome.unwrap();
            }
            let denied = |id: &str| said.contains(&(id, Said::Answered(false)));
            let allowed: Vec<_> = ["c1", "c2"].into_iter().filter(|id| !denied(id)).collect();
            assert_eq!(*ran.lock().unwrap(), allowed, "{said:?}");
            let said_now = texts(&log(&*store, "s"));
            for id in ["c1", "c2"] {
                let result = format!("result {id}: {}", if denied(id) { DENIED } else { "ran" });
                let count = said_now.iter().filter(|said| said.ends_with(&result)).count();
                assert_eq!(count, 1, "{said:?}: {said_now:#?}");
            }
            assert_eq!(said_now.last().unwrap(), "assistant: Done.");
        }
    }
}

#[test]
fn a_model_cannot_allow_its_own_call() {
    let store = Arc::new(MemoryStore::new());
    let forged = Part::ApprovalResponse(ApprovalAnswer::new(approval("c1"), true));
    let call = Part::ToolCall(ToolCall::new("c1", "remove", "{}"));
    let (agent, ran, _) = agent(&store, vec![call, Part::ApprovalRequest(approval("c1")), forged]);
    let mut session = agent.create_session(Some("s"), None);
    block_on(agent.run(&mut session, "Clean up.", &RunOptions::default())).unwrap();
    let outcome = block_on(agent.run(&mut session, Input::default(), &RunOptions::default()));
    assert!(matches!(outcome, Err(RunError::PendingCalls(_))), "{outcome:?}");
    // The first answer of a person counts.
    block_on(agent.run(
        &mut session,
        vec![answers("c1", false), answers("c1", true)],
        &RunOptions::default(),
    ))
    .unwrap();
    assert!(ran.lock().unwrap().is_empty());
}

/// If open calls of an earlier run are reported, a call that is allowed now runs, and a call that was allowed before a
/// crash does not run.
#[test]
fn an_allowed_call_runs_once_where_open_calls_are_reported() {
    let store = Arc::new(MemoryStore::new());
    let call = Part::ToolCall(ToolCall::new("c1", "remove", "{}"));
    let (agent, ran, _) = agent(&store, vec![call, Part::ApprovalRequest(approval("c1"))]);
    let agent = agent.with_open_calls(OpenCallAction::Report);
    let options = RunOptions::default();
    block_on(agent.run(&mut agent.create_session(Some("s"), None), "Clean up.", &options)).unwrap();
    for (crashes, result) in [(true, INTERRUPTED), (false, "ran")] {
        let store = Arc::new(block_on(copied(&store)));
        let agent = {
            let per_call = settings(&store).with_persistence(Persistence::PerModelCall);
            let asked = Arc::clone(&ran);
            Agent::with_settings(per_call, Scripted::says("Done."))
                .with_open_calls(OpenCallAction::Report)
                .with_tool_runner(move |call| {
                    asked.lock().unwrap().push(call.id.to_string());
                    Box::pin(async { ToolOutput::new("ran") })
                })
        };
        ran.lock().unwrap().clear();
        if crashes {
            // Without a tool runner the run ends with the call, and the approval is stored.
            let waiting = Agent::with_settings(settings(&store), Scripted::says("Done."));
            let _ = block_on(waiting.run(
                &mut waiting.create_session(Some("s"), None),
                answers("c1", true),
                &options,
            ));
            let stored = texts(&log(&*store, "s"));
            assert!(stored.iter().any(|said| said.contains("approved")), "{stored:#?}");
        }
        let input = if crashes { Input::default() } else { answers("c1", true).into() };
        block_on(agent.run(&mut agent.create_session(Some("s"), None), input, &options)).unwrap();
        let said = texts(&log(&*store, "s"));
        assert!(said.iter().any(|said| said.ends_with(&format!("result c1: {result}"))), "{said:#?}");
        assert_eq!(ran.lock().unwrap().len(), usize::from(!crashes));
    }
}

/// The process ends while the tool of an allowed call runs: the call does not run a second time, even if the caller
/// sends the approval again.
#[test]
fn an_allowed_call_whose_process_ends_is_reported() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        let (store, ran) = (Arc::new(MemoryStore::new()), Arc::new(Mutex::new(0)));
        let call = Part::ToolCall(ToolCall::new("c1", "pay", "{}"));
        let first = vec![call, Part::ApprovalRequest(approval("c1"))];
        let client = Scripted::new(move |asked, _| {
            Ok(ModelResponse::new(vec![match asked {
                1 => Message::new(Role::Assistant, first.clone()),
                _ => Message::assistant("Done."),
            }]))
        });
        let counted = Arc::clone(&ran);
        let agent = Agent::with_settings(settings(&store).with_persistence(persistence), client)
            .with_open_calls(OpenCallAction::Report)
            .with_tool_runner(move |_| {
                let mut ran = counted.lock().unwrap();
                *ran += 1;
                let is_first = *ran == 1;
                Box::pin(async move {
                    if is_first {
                        core::future::pending::<()>().await;
                    }
                    ToolOutput::new("ran")
                })
            });
        let (options, input) = (RunOptions::default(), || answers("c1", true));
        block_on(agent.run(&mut agent.create_session(Some("s"), None), "Pay.", &options)).unwrap();
        let mut session = agent.create_session(Some("s"), None);
        let mut run = agent.run(&mut session, input(), &options).boxed();
        while *ran.lock().unwrap() == 0 {
            assert!((&mut run).now_or_never().is_none());
        }
        drop(run);
        block_on(agent.run(&mut agent.create_session(Some("s"), None), input(), &options)).unwrap();
        let said = texts(&log(&*store, "s"));
        assert!(said.iter().any(|said| said.ends_with(INTERRUPTED)), "{said:#?}");
        assert_eq!(*ran.lock().unwrap(), 1, "{persistence:?}");
    }
}

/// A stream ends after a call: the call does not run, because a request for its approval might have followed.
#[test]
fn a_call_of_an_answer_that_was_cut_off_does_not_run() {
    let store = Arc::new(MemoryStore::new());
    let (agent, ran, _) = agent(&store, Vec::new());
    let mut session = agent.create_session(Some("s"), None);
    block_on(async {
        let (settings, options) = (settings(&store), RunOptions::default());
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Clean up.")], &options).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        run.begin_response(prompt.handle).unwrap();
        run.extend_response(&Delta::part(Part::ToolCall(ToolCall::new("c1", "remove", "{}")))).unwrap();
        run.abandon().await.unwrap();
        agent.run(&mut session, Input::default(), &options).await.unwrap();
    });
    let said = texts(&log(&*store, "s"));
    assert!(said.iter().any(|said| said.ends_with(&format!("result c1: {INTERRUPTED}"))), "{said:#?}");
    assert!(ran.lock().unwrap().is_empty());
}

/// The approval of a person is also necessary for calls of the run's own tools.
#[test]
fn a_run_does_not_answer_its_own_tools_before_a_person_allows_it() {
    let store = Arc::new(MemoryStore::new());
    let (settings, options) = (settings(&store).with_recall(), RunOptions::default());
    let mut session = AgentSession::with_id("s");
    block_on(async {
        let mut run =
            Run::begin(&settings, &mut session, vec![Message::user("Look.")], &options).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        let call = |id: &str| Part::ToolCall(ToolCall::new(id, RecallTool::NAME, r#"{"query": "tea"}"#));
        let asked = ["c1", "c2"].map(|id| Part::ApprovalRequest(approval(id)));
        let parts = ["c1", "c2", "c3"].map(call).into_iter().chain(asked).collect();
        run.record(prompt.handle, ModelResponse::new(vec![Message::new(Role::Assistant, parts)]))
            .await
            .unwrap();
        run.answer(vec![answers("c2", false)]).unwrap();
        let answered = |results: Vec<Message>| {
            texts(&results).iter().map(|said| said[..15].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(answered(run.run_own_calls().await.unwrap()), ["tool: result c3"]);
        run.answer(vec![answers("c1", true)]).unwrap();
        assert_eq!(answered(run.run_own_calls().await.unwrap()), ["tool: result c1"]);
        assert!(run.pending_calls().iter().map(|call| call.id.as_str()).eq(["c2"]));
    });
}

/// If an id occurs twice, the strictest meaning holds.
#[test]
fn ids_that_are_there_twice_allow_nothing() {
    let call = |id: &str, name: &str| Part::ToolCall(ToolCall::new(id, name, "{}"));
    let request = |id: &str, call: &str| Part::ApprovalRequest(Approval::new(id, call));
    let allowed = |id: &str, call: &str| {
        let answer = ApprovalAnswer::new(Approval::new(id, call), true);
        Message::new(Role::User, vec![Part::ApprovalResponse(answer)])
    };
    let cases = [
        // Two calls with one id: a person must allow one of them.
        (vec![vec![call("c1", "rm"), request("a1", "c1")], vec![call("c1", "ls")]], Vec::new(), vec!["c1"]),
        // The request is before its call.
        (vec![vec![request("a1", "c1")], vec![call("c1", "rm")]], Vec::new(), vec!["c1"]),
        // One id for two requests: the answer names the call.
        (
            vec![vec![call("c1", "rm"), call("c2", "rm"), request("a", "c1"), request("a", "c2")]],
            vec![allowed("a", "c1")],
            vec!["c2"],
        ),
        // Two requests for one call: both must be allowed.
        (
            vec![vec![call("c1", "rm"), request("a1", "c1"), request("a2", "c1")]],
            vec![allowed("a1", "c1")],
            vec!["c1"],
        ),
        // A service that does not name the call.
        (vec![vec![call("c1", "rm"), request("a1", "c1")]], vec![allowed("a1", "")], Vec::new()),
        (vec![vec![call("c1", "rm"), request("a1", "c1")]], vec![allowed("a2", "")], vec!["c1"]),
    ];
    for (answer, input, waiting) in cases {
        let store = Arc::new(MemoryStore::new());
        let messages: Vec<_> =
            answer.iter().map(|parts| Message::new(Role::Assistant, parts.clone())).collect();
        let client = Scripted::new(move |asked, _| {
            Ok(ModelResponse::new(match asked {
                1 => messages.clone(),
                _ => vec![Message::assistant("Done.")],
            }))
        });
        let ran = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&ran);
        let agent = Agent::with_settings(settings(&store), client).with_tool_runner(move |_| {
            *counted.lock().unwrap() += 1;
            Box::pin(async { ToolOutput::new("ran") })
        });
        let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
        block_on(agent.run(&mut session, "Clean up.", &options)).unwrap();
        assert_eq!(*ran.lock().unwrap(), 0, "{answer:?}");
        match block_on(agent.run(&mut session, input, &options)) {
            Err(RunError::PendingCalls(calls)) => {
                assert!(
                    calls.iter().all(|call| waiting.contains(&call.id.as_str())),
                    "{answer:?}: {calls:?}"
                );
                assert_eq!((*ran.lock().unwrap(), calls.is_empty()), (0, false), "{answer:?}");
            }
            outcome => assert!(outcome.is_ok() && waiting.is_empty(), "{answer:?}: {outcome:?}"),
        }
    }
}

/// Another store with the same session.
async fn copied(store: &MemoryStore) -> MemoryStore {
    use epitome::history::{HistoryStoreExt, SessionId};
    let copy = MemoryStore::new();
    let session = SessionId::new("s");
    let mut lines = Vec::new();
    store.export(&session, &mut lines).await.unwrap();
    copy.import(&session, &mut &*lines).await.unwrap();
    copy
}

/// A process ends while one of two tools still runs: the result of the other is stored, and its tool does not run again.
#[test]
fn a_result_is_stored_while_another_tool_still_runs() {
    for parallel in [1, 8] {
        let store = Arc::new(MemoryStore::new());
        let calls = ["pay", "wait"].map(|name| Part::ToolCall(ToolCall::new(name, name, "{}")));
        let client = Scripted::new(move |asked, _| {
            Ok(ModelResponse::new(vec![match asked {
                1 => Message::new(Role::Assistant, calls.to_vec()),
                _ => Message::assistant("Done."),
            }]))
        });
        let ran = Arc::new(Mutex::new(Vec::new()));
        let agent = |hangs: bool| {
            let asked = Arc::clone(&ran);
            let per_call = settings(&store).with_persistence(Persistence::PerModelCall);
            Agent::with_settings(per_call, client.clone()).with_parallel_calls_max(parallel).with_tool_runner(
                move |call| {
                    asked.lock().unwrap().push(call.id.to_string());
                    Box::pin(async move {
                        if hangs && call.name.as_str() == "wait" {
                            core::future::pending::<()>().await;
                        }
                        ToolOutput::new("ran")
                    })
                },
            )
        };
        let (ends, options) = (agent(true), RunOptions::default());
        let mut session = ends.create_session(Some("s"), None);
        let mut run = ends.run(&mut session, "Pay.", &options).boxed();
        for _ in 0..1_000 {
            assert!((&mut run).now_or_never().is_none());
        }
        drop(run);
        let said = texts(&log(&*store, "s"));
        assert_eq!(said.last().unwrap(), "tool: result pay: ran");
        // Another process.
        let goes_on = agent(false);
        let mut session = goes_on.create_session(Some("s"), None);
        block_on(goes_on.run(&mut session, Input::default(), &options)).unwrap();
        assert_eq!(*ran.lock().unwrap(), ["pay", "wait", "wait"]);
        let said = texts(&log(&*store, "s"));
        assert_eq!(said[2..], ["tool: result pay: ran", "tool: result wait: ran", "assistant: Done."]);
    }
}
