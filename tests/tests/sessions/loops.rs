//! The agent's loop of model calls and tool calls, and answers that arrive piece by piece.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use async_trait::async_trait;
use epitome::agent::{
    Agent, ChatClient, ChatRequest, ClientError, Concurrency, DeltaSink, INTERRUPTED, OpenCallAction,
    RunUpdate, SessionForgotten, SharedSession, ToolOutput,
};
use epitome::compaction::{AutoCompaction, CompactionCx, CompactionOutcome, Compactor, RunPoints};
use epitome::compactors::Truncation;
use epitome::core::Trigger;
use epitome::core::message::Role;
use epitome::history::MemoryStore;
use epitome::message::{Message, Part, ToolCall};
use epitome::run::{Delta, ModelResponse, RunError, RunEvent, RunOptions};
use epitome::session::SessionError;
use epitome::wire::ContextOverflow;
use epitome_tests::around::pause;
use futures::executor::block_on;
use futures::future::join;
use futures::{FutureExt, StreamExt};

use crate::sessions::runs::settings;
use crate::sessions::support::{Failing, Scripted, Truncating, call, listen, log, texts};

fn with_tools(store: &Arc<MemoryStore>, client: &Scripted) -> Agent {
    Agent::with_settings(settings(store), client.clone()).with_tool_runner(|call| {
        Box::pin(async move {
            pause().await;
            ToolOutput::new(format!("ran {}", call.name.as_str()))
        })
    })
}

#[test]
fn tools_run_until_the_model_has_an_answer() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| {
        Ok(ModelResponse::new(vec![match asked {
            1 | 2 => call(&format!("c{asked}"), "read"),
            _ => Message::assistant("Done."),
        }]))
    });
    let agent = with_tools(&store, &client);
    let mut session = agent.create_session(Some("s"), None);
    let outcome = block_on(agent.run(&mut session, "Work.", &RunOptions::default())).unwrap();
    assert_eq!(outcome.response.messages.len(), 5);
    assert_eq!(texts(&log(&*store, "s"))[2], "tool: result c1: ran read");
}

/// Open calls of an earlier run are reported and not run. A run has ended with three calls, and the next run brings the
/// result of one of them.
#[test]
fn open_calls_are_reported_and_not_run() {
    for streams in [false, true] {
        let store = Arc::new(MemoryStore::new());
        let client = Scripted::new(|asked, _| {
            let calls = ["c1", "c2", "c3"].map(|id| Part::ToolCall(ToolCall::new(id, "pay", "{}")));
            Ok(ModelResponse::new(vec![match asked {
                1 => Message::new(Role::Assistant, calls.to_vec()),
                2 => call("c4", "look"),
                _ => Message::assistant("Done."),
            }]))
        });
        let waiting = Agent::with_settings(settings(&store), client.clone());
        block_on(waiting.run(&mut waiting.create_session(Some("s"), None), "Pay.", &RunOptions::default()))
            .unwrap();

        let agent = with_tools(&store, &client).with_open_calls(OpenCallAction::Report);
        let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
        let input = vec![Message::tool("c2", "paid")];
        let mut told = Vec::new();
        let outcome = match streams {
            false => block_on(agent.run(&mut session, input, &options)).unwrap(),
            true => {
                let mut stream = agent.run_stream(&mut session, input, &options);
                while let Some(update) = block_on(stream.next()) {
                    if let RunUpdate::ToolResult(result) = update.unwrap() {
                        told.push(result);
                    }
                }
                block_on(stream.finish()).unwrap()
            }
        };
        let interrupted = |id: &str| format!("tool: result {id}: {INTERRUPTED}");
        let said = texts(&log(&*store, "s"));
        let (first, third) = (interrupted("c1"), interrupted("c3"));
        assert_eq!(said[2..5], ["tool: result c2: paid", &first, &third]);
        // The calls of this run are run.
        assert_eq!(said[5..], ["assistant: call c4", "tool: result c4: ran look", "assistant: Done."]);
        let results = outcome.response.messages.into_iter().filter(|said| said.role() == Role::Tool);
        assert!(!streams || results.eq(told), "{said:?}");
    }
}

/// Six calls in one answer. Their results are in the order of the answer, however many run at once.
#[test]
fn tools_of_one_answer_run_at_once_up_to_the_limit() {
    for (limit, expected) in [(None, 6), (Some(4), 4), (Some(1), 1), (Some(0), 1)] {
        let store = Arc::new(MemoryStore::new());
        let client = Scripted::new(|asked, _| {
            let calls = (0..6).map(|n| Part::ToolCall(ToolCall::new(format!("c{n}"), "read", "{}")));
            Ok(ModelResponse::new(vec![match asked {
                1 => Message::new(Role::Assistant, calls.collect()),
                _ => Message::assistant("Done."),
            }]))
        });
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (running.clone(), most.clone());
        let mut agent = Agent::with_settings(settings(&store), client).with_tool_runner(move |call| {
            let (running, most) = counts.clone();
            Box::pin(async move {
                most.fetch_max(running.fetch_add(1, Relaxed) + 1, Relaxed);
                // The first ones take longest.
                let id = call.id.as_str().to_owned();
                for _ in 0..b'9' - id.as_bytes()[1] {
                    pause().await;
                }
                running.fetch_sub(1, Relaxed);
                assert!(id != "c3", "a tool that panics does not end the others");
                ToolOutput::new(format!("ran {id}"))
            })
        });
        if let Some(limit) = limit {
            agent = agent.with_parallel_calls_max(limit);
        }
        let mut session = agent.create_session(Some("s"), None);
        block_on(agent.run(&mut session, "Work.", &RunOptions::default())).unwrap();
        assert_eq!(most.load(Relaxed), expected, "{limit:?}");
        let said = texts(&log(&*store, "s"));
        let results = (0..6).map(|n| match n {
            3 => "tool: result c3: the tool panicked".to_owned(),
            _ => format!("tool: result c{n}: ran c{n}"),
        });
        assert_eq!(said[2..8], results.collect::<Vec<_>>());
    }
}

#[test]
fn a_model_that_does_not_stop_is_stopped() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| Ok(ModelResponse::new(vec![call(&format!("c{asked}"), "read")])));
    let agent = with_tools(&store, &client);
    let mut session = agent.create_session(Some("s"), None);
    let error = block_on(agent.run(&mut session, "Work.", &RunOptions::default())).unwrap_err();
    assert!(matches!(error, RunError::ToolRounds { rounds_max: 40 }), "{error}");
    assert_eq!(log(&*store, "s").len(), 1 + 40 * 2 + 1, "what was said is stored");
}

#[test]
fn without_a_runner_the_caller_answers_in_the_next_run() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| {
        Ok(ModelResponse::new(vec![if asked == 1 {
            call("c1", "read")
        } else {
            Message::assistant("Done.")
        }]))
    });
    let agent = Agent::with_settings(settings(&store), client.clone());
    let mut session = agent.create_session(Some("s"), None);
    let options = RunOptions::default();
    block_on(agent.run(&mut session, "Work.", &options)).unwrap();
    let error = block_on(agent.run(&mut session, Vec::new(), &options)).unwrap_err();
    assert!(matches!(error, RunError::PendingCalls(_)));
    block_on(agent.run(&mut session, Message::tool("c1", "42"), &options)).unwrap();
    let said = ["user: Work.", "assistant: call c1", "tool: result c1: 42", "assistant: Done."];
    assert_eq!(texts(&log(&*store, "s")), said);
}

#[test]
fn a_client_that_fails_ends_the_run_and_the_input_is_kept() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|_, _| Err("SECRET is down".into()));
    let agent = Agent::with_settings(settings(&store), client);
    let mut session = agent.create_session(Some("s"), None);
    let error = block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap_err();
    assert!(matches!(error, RunError::Model(_)));
    assert!(!error.to_string().contains("SECRET"));
    assert_eq!(texts(&log(&*store, "s")), ["user: Hi"]);
}

#[test]
fn a_listener_that_breaks_leaves_what_has_arrived() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::says("A long story").streaming();
    let agent = Agent::with_settings(settings(&store), client);
    let mut session = agent.create_session(Some("s"), None);
    let mut heard = String::new();
    let options = RunOptions::default();
    let hear = |delta: &Delta| {
        heard.push_str(&delta.text);
        heard.len() < 6
    };
    block_on(listen(agent.run_stream(&mut session, "Tell.", &options), hear)).unwrap();
    let log = log(&*store, "s");
    assert_eq!(texts(&log), ["user: Tell.", "assistant: A long"]);
    assert!(log[1].is_incomplete());
}

#[test]
fn a_stream_that_dies_leaves_what_has_arrived() {
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::with_settings(settings(&store), Scripted::says("A lo!ng story").streaming());
    let mut session = agent.create_session(Some("s"), None);
    let options = RunOptions::default();
    let error = block_on(listen(agent.run_stream(&mut session, "Tell.", &options), |_| true));
    assert!(matches!(error, Err(RunError::Model(_))));
    assert_eq!(texts(&log(&*store, "s")), ["user: Tell.", "assistant: A lo"]);
}

#[test]
fn a_client_without_streams_is_heard_whole() {
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::with_settings(settings(&store), Scripted::says("Hello."));
    let mut session = agent.create_session(Some("s"), None);
    let mut heard = String::new();
    let options = RunOptions::default();
    let hear = |delta: &Delta| {
        heard.push_str(&delta.text);
        true
    };
    block_on(listen(agent.run_stream(&mut session, "Hi", &options), hear)).unwrap();
    assert_eq!(heard, "Hello.");
    assert!(!log(&*store, "s")[1].is_incomplete());
}

/// A stream that is stopped does not wait for a client or a tool that hangs. Results that a tool has returned are kept.
#[test]
fn a_stream_that_is_stopped_waits_for_nobody() {
    for (calls, said) in [(false, &["user: Work."][..]), (true, &["tool: result c2: done"])] {
        let store = Arc::new(MemoryStore::new());
        let agent = Agent::with_settings(settings(&store), Hanging { calls }).with_tool_runner(|call| {
            Box::pin(async move {
                if call.id.as_str() == "c1" {
                    core::future::pending::<()>().await;
                }
                ToolOutput::new("done")
            })
        });
        let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
        let mut stream = agent.run_stream(&mut session, "Work.", &options);
        let mut heard = Vec::new();
        for _ in 0..50 {
            heard.extend(stream.next().now_or_never().flatten().map(Result::unwrap));
        }
        let result = RunUpdate::ToolResult(Message::tool("c2", "done"));
        assert_eq!(heard.last(), if calls { Some(&result) } else { None });
        let outcome = block_on(stream.stop()).unwrap();
        assert_eq!(outcome.response.messages.len(), if calls { 2 } else { 0 });
        assert_eq!(texts(log(&*store, "s").last()), said);
    }
}

#[test]
fn a_stream_tells_what_happens_in_order_and_then_that_it_is_over() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| {
        Ok(ModelResponse::new(vec![if asked == 1 { call("c1", "read") } else { Message::assistant("Yes") }]))
    });
    let compaction = AutoCompaction::new(Failing).with_trigger(Trigger::always());
    let points = RunPoints::default().and_after_run();
    let settings = settings(&store).with_compaction(compaction.with_points(points));
    let agent = Agent::with_settings(settings, client.streaming())
        .with_tool_runner(|_| Box::pin(async { ToolOutput::new("forty-two") }));
    let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
    let mut stream = agent.run_stream(&mut session, "Work.", &options);
    let updates: Vec<RunUpdate> = block_on(stream.by_ref().map(Result::unwrap).collect());
    assert!(block_on(stream.next()).is_none() && block_on(stream.next()).is_none());
    let outcome = block_on(stream.finish()).unwrap();
    let told: Vec<&RunEvent> =
        updates.iter().filter_map(|it| if let RunUpdate::Event(it) = it { Some(it) } else { None }).collect();
    assert_eq!(told, outcome.events.iter().collect::<Vec<_>>());
    let kinds: String = updates
        .iter()
        .map(|update| match update {
            RunUpdate::Delta(_) => 'd',
            RunUpdate::ToolResult(_) => 't',
            RunUpdate::AnswerEnded => '.',
            _ => 'e',
        })
        .collect();
    // The call comes in two pieces, the text a letter at a time.
    assert_eq!(kinds, "edd.tddd.e");
}

/// A client that calls two tools, or never answers.
struct Hanging {
    calls: bool,
}

#[async_trait]
impl ChatClient for Hanging {
    async fn complete(&self, _: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        if !self.calls {
            core::future::pending::<()>().await;
        }
        let calls = ["c1", "c2"].map(|id| Part::ToolCall(ToolCall::new(id, "read", "{}")));
        Ok(ModelResponse::new(vec![Message::new(Role::Assistant, calls.into())]))
    }
}

/// A client with streams that a closure writes.
struct Piecewise<F>(F);

#[async_trait]
impl<F> ChatClient for Piecewise<F>
where
    F: Fn(&mut DeltaSink<'_>) -> Result<Option<ModelResponse>, ClientError> + Send + Sync,
{
    async fn complete(&self, _: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        unreachable!("it is streamed")
    }

    async fn stream(
        &self,
        _: &ChatRequest<'_>,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<Option<ModelResponse>, ClientError> {
        (self.0)(on_delta)
    }
}

/// An id alone does not count as a streamed answer: some services, for example OpenAI Responses, send the id of a
/// response before they fail.
#[test]
fn an_id_alone_is_no_part_of_an_answer() {
    let store = Arc::new(MemoryStore::new());
    let before = Agent::with_settings(settings(&store), Scripted::says("A long answer."));
    let mut session = before.create_session(Some("s"), None);
    for _ in 0..9 {
        block_on(before.run(&mut session, "And then?", &RunOptions::default())).unwrap();
    }
    let compaction = AutoCompaction::new(Truncating(Truncation::new()));
    let asked = AtomicUsize::new(0);
    let client = Piecewise(move |on_delta: &mut DeltaSink<'_>| {
        on_delta(Delta::default().with_response_id("r1"));
        match asked.fetch_add(1, Relaxed) {
            0 => Err(ContextOverflow::default().into()),
            _ => Ok(Some(ModelResponse::new(vec![Message::assistant("Hello.")]))),
        }
    });
    let agent = Agent::with_settings(settings(&store).with_compaction(compaction), client);
    let (options, mut heard) = (RunOptions::default(), String::new());
    let hear = |delta: &Delta| {
        heard.push_str(&delta.text);
        true
    };
    let outcome = block_on(listen(agent.run_stream(&mut session, "Hi", &options), hear)).unwrap();
    assert_eq!((outcome.response.text().as_str(), heard.as_str()), ("Hello.", "Hello."));
}

/// A stream that is stopped does not wait for a compaction that hangs, at any point of the run.
#[test]
fn a_stream_that_is_stopped_waits_for_no_compaction() {
    for points in [RunPoints::default(), RunPoints::NONE.and_before_call(), RunPoints::NONE.and_after_run()] {
        let store = Arc::new(MemoryStore::new());
        let auto = AutoCompaction::new(Hangs).with_trigger(Trigger::always()).with_points(points);
        let settings = settings(&store).with_compaction(auto);
        let agent = Agent::with_settings(settings, Scripted::says("Hello."));
        let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
        let mut stream = agent.run_stream(&mut session, "Hi", &options);
        for _ in 0..50 {
            let _ = stream.next().now_or_never();
        }
        let outcome = block_on(stream.stop()).unwrap();
        let is_after = points.after_run();
        assert_eq!(outcome.response.text(), if is_after { "Hello." } else { "" });
        // Before the run no message is stored.
        assert_eq!(log(&*store, "s").len(), if points.before_run() { 0 } else { 1 + usize::from(is_after) });
    }
}

#[derive(Debug)]
struct Hangs;

#[async_trait]
impl Compactor for Hangs {
    fn name(&self) -> &str {
        "hangs"
    }

    async fn compact(&self, _: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        core::future::pending().await
    }
}

/// Streamed text is not played again, and not requested again. The client streams and also returns the whole answer, or
/// it fails after the first piece with an error that services return before the first piece.
#[test]
fn what_was_heard_is_not_played_or_asked_again() {
    let errors: [Option<fn() -> ClientError>; 3] =
        [None, Some(|| ContextOverflow::default().into()), Some(|| SessionForgotten.into())];
    for error in errors {
        let (fails, store) = (error.is_some(), Arc::new(MemoryStore::new()));
        let client = Piecewise(move |on_delta: &mut DeltaSink<'_>| {
            on_delta(Delta::text("Hel"));
            if let Some(error) = error {
                return Err(error());
            }
            on_delta(Delta::text("lo."));
            Ok(Some(ModelResponse::new(vec![Message::assistant("Hello.")])))
        });
        let agent = Agent::with_settings(settings(&store), client);
        let mut session = agent.create_session(Some("s"), None);
        let mut heard = String::new();
        let options = RunOptions::default();
        let hear = |delta: &Delta| {
            heard.push_str(&delta.text);
            true
        };
        let done = block_on(listen(agent.run_stream(&mut session, "Hi", &options), hear));
        assert!(fails == matches!(done, Err(RunError::Model(_))) && fails == done.is_err());
        let expected = if fails { "Hel" } else { "Hello." };
        assert_eq!(heard, expected);
        assert_eq!(texts(&log(&*store, "s")), ["user: Hi".to_owned(), format!("assistant: {expected}")]);
    }
}

#[test]
fn runs_on_one_session_follow_each_other_or_are_rejected() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::says("Hello.");
    let agent = Agent::with_settings(settings(&store), client.clone());
    let session = SharedSession::new(agent.create_session(Some("s"), None));
    let options = RunOptions::default();
    let (one, two) = block_on(join(
        agent.run_shared(&session, "one", &options),
        agent.run_shared(&session, "two", &options),
    ));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(client.last(), ["user: one", "assistant: Hello.", "user: two"]);

    let agent = agent.with_concurrency(Concurrency::Reject);
    let (one, two) =
        block_on(join(agent.run_shared(&session, "3", &options), agent.run_shared(&session, "4", &options)));
    assert!(one.is_ok() && matches!(two, Err(RunError::Busy)));
    assert_eq!(log(&*store, "s").len(), 6);
}

#[test]
fn a_run_without_a_session_remembers_nothing() {
    let client = Scripted::says("Hello.");
    let agent = Agent::new("a", client.clone());
    for _ in 0..2 {
        block_on(agent.run_once("Hi", &RunOptions::default())).unwrap();
        assert_eq!(client.last(), ["user: Hi"]);
    }
}
