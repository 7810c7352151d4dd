//! The agent's loop from the model to tools and back, and answers that arrive piece by piece.

use core::ops::ControlFlow;
use std::sync::Arc;

use epitome::std::agent::{Agent, Concurrency, SharedSession, ToolOutput};
use epitome::std::history::MemoryStore;
use epitome::std::message::Message;
use epitome::std::run::{ModelResponse, RunError, RunOptions};
use epitome_tests::around::pause;
use futures::executor::block_on;
use futures::future::join;

use crate::runs::settings;
use crate::support::{Scripted, call, log, texts};

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
    let listen = |delta: &epitome::std::run::Delta| {
        heard.push_str(&delta.text);
        if heard.len() < 6 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    block_on(agent.run_streaming(&mut session, "Tell.", &RunOptions::default(), listen)).unwrap();
    let log = log(&*store, "s");
    assert_eq!(texts(&log), ["user: Tell.", "assistant: A long"]);
    assert!(log[1].is_incomplete());
}

#[test]
fn a_stream_that_dies_leaves_what_has_arrived() {
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::with_settings(settings(&store), Scripted::says("A lo!ng story").streaming());
    let mut session = agent.create_session(Some("s"), None);
    let listen = |_: &epitome::std::run::Delta| ControlFlow::Continue(());
    let error = block_on(agent.run_streaming(&mut session, "Tell.", &RunOptions::default(), listen));
    assert!(matches!(error, Err(RunError::Model(_))));
    assert_eq!(texts(&log(&*store, "s")), ["user: Tell.", "assistant: A lo"]);
}

#[test]
fn a_client_without_streams_is_heard_whole() {
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::with_settings(settings(&store), Scripted::says("Hello."));
    let mut session = agent.create_session(Some("s"), None);
    let mut heard = String::new();
    let listen = |delta: &epitome::std::run::Delta| {
        heard.push_str(&delta.text);
        ControlFlow::Continue(())
    };
    block_on(agent.run_streaming(&mut session, "Hi", &RunOptions::default(), listen)).unwrap();
    assert_eq!(heard, "Hello.");
    assert!(!log(&*store, "s")[1].is_incomplete());
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
