//! A run that is dropped at any of its await points leaves a session that can be used.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use epitome::agent::{Agent, ToolOutput};
use epitome::compaction::{AutoCompaction, CompactTool, Compaction, Compactor, RunPoints};
use epitome::compactors::{ToolResultClearing, Truncation};
use epitome::core::{OpenCallTree, Profile, Trigger, Validator, Violation};
use epitome::history::{HistoryStore, SessionId};
use epitome::message::Message;
use epitome::provider::{ClosureProvider, HistoryProvider, Providers, boxed_hook};
use epitome::run::{ModelResponse, Persistence, Run, RunError, RunOptions, RunSettings};
use epitome::session::AgentSession;
use epitome_tests::around::{Pauses, StoreWith, pause};
use futures::StreamExt;
use futures::executor::block_on;
use futures::task::noop_waker;

use crate::sessions::support::{Scripted, Truncating, call, log, shown, texts};

/// Polls a future at most `polls` times.
pub(crate) fn drive<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let (mut future, waker) = (pin!(future), noop_waker());
    let mut cx = Context::from_waker(&waker);
    for _ in 0..polls {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return Some(value);
        }
    }
    None
}

/// Number of tool calls of the model in a run.
const ROUNDS: usize = 3;

/// A model that reads, compacts, reads again, and then answers.
fn client() -> Scripted {
    Scripted::new(|_, messages| {
        let said = texts(messages);
        let rounds = said.iter().rev().take_while(|text| !text.starts_with("user: "));
        let rounds = rounds.filter(|text| text.starts_with("tool: ")).count();
        let says = Message::assistant("And that is what was found in it, as far as I can see.");
        let asked = said.iter().filter(|text| text.starts_with("user: ")).count();
        let id = format!("c{asked}-{rounds}");
        let name = if rounds == 1 { CompactTool::NAME } else { "read" };
        Ok(ModelResponse::new(vec![if rounds == ROUNDS { says } else { call(&id, name) }]))
    })
}

/// An agent that pauses everywhere: in stores, in providers, in its client and in tools. It compacts at every point.
fn agent(
    store: &Arc<StoreWith<Pauses>>,
    in_session: bool,
    persistence: Persistence,
    compactor: Arc<dyn Compactor>,
) -> Agent {
    let mut providers = Providers::default();
    match in_session {
        true => providers.push(HistoryProvider::in_memory()).unwrap(),
        false => {
            providers.push(HistoryProvider::new("memory", store.clone() as Arc<dyn HistoryStore>)).unwrap()
        }
    }
    let counting = ClosureProvider::before_run(boxed_hook(|hook| {
        Box::pin(async move {
            let runs = hook.state.get("runs").and_then(|runs| runs.as_u64()).unwrap_or(0);
            pause().await;
            hook.state.insert("runs".into(), (runs + 1).into());
            pause().await;
            Ok(())
        })
    }));
    providers.push_closure(counting).unwrap();
    let compaction = AutoCompaction::new(compactor)
        .with_trigger(Trigger::tokens(60))
        .with_points(RunPoints::default().and_before_call().and_after_run())
        .with_tool();
    let settings = RunSettings::new("a").with_providers(providers).with_persistence(persistence);
    let client = client();
    Agent::with_settings(
        settings.with_compaction(compaction),
        if in_session { client.streaming() } else { client },
    )
    .with_tool_runner(|_| {
        Box::pin(async {
            pause().await;
            ToolOutput::new("forty-two, and a few more words so that it is long; ".repeat(3))
        })
    })
}

fn assert_usable(store: &Arc<StoreWith<Pauses>>, agent: &Agent, mut session: AgentSession, at: usize) {
    // The session can be written and loaded.
    let dict = session.to_dict().unwrap_or_else(|error| panic!("after {at} polls: {error}"));
    session = AgentSession::from_dict(dict).unwrap();
    // The next request is legal, wherever the run was dropped.
    block_on(async {
        let input = vec![Message::user("Go on.")];
        let mut run =
            Run::begin(agent.settings(), &mut session, input, &RunOptions::default()).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        let mut validator = Validator::<OpenCallTree>::new(Profile::OpenaiChat);
        let mut found = |violation: Violation| panic!("after {at} polls: {violation:?}");
        for message in &prompt.messages {
            validator.push(message, &mut found).unwrap();
        }
        validator.finish(&mut found);
        assert_eq!(texts(&prompt.messages).last().unwrap(), "user: Go on.");
        run.abort();
    });
    block_on(agent.run(&mut session, "Go on.", &RunOptions::default())).unwrap();
    assert!(session.state()["decorated"]["runs"].as_u64().unwrap() >= 2);
    let said = texts(&log(&store.store, "s"));
    let shown = shown(&store.store, "s");
    let is_said = |text: &String| said.contains(text) || text.ends_with(": [cleared]");
    assert!(shown.iter().all(is_said), "after {at} polls: only what was said is shown: {shown:?}");
    assert!(!said.iter().any(|text| text.ends_with(": [cleared]")), "the log has all of it");
}

fn dropped_everywhere(
    in_session: bool,
    persistence: Persistence,
    streaming: bool,
    compactor: Arc<dyn Compactor>,
) -> usize {
    for polls in 1.. {
        let store = Arc::new(StoreWith::<Pauses>::default());
        let agent = agent(&store, in_session, persistence, Arc::clone(&compactor));
        let mut session = agent.create_session(Some("s"), None);
        for run in 0..3 {
            let options = RunOptions::default().with_compaction(Compaction::Off);
            block_on(agent.run(&mut session, format!("Question {run}?"), &options)).unwrap();
        }
        let options = RunOptions::default().with_run_token("dropped");
        let done = match streaming {
            true => {
                let mut stream = agent.run_stream(&mut session, "Read it.", &options);
                let heard = async {
                    while let Some(piece) = stream.next().await {
                        piece.unwrap();
                        pause().await;
                    }
                };
                drive(heard, polls).is_some()
            }
            false => drive(agent.run(&mut session, "Read it.", &options), polls).is_some(),
        };
        if !in_session && persistence == Persistence::PerRun && !streaming {
            // A repetition with the same run token stores the messages once.
            match block_on(agent.run(&mut session, "Read it.", &options)) {
                Ok(_) | Err(RunError::AlreadyStored { .. }) => {}
                Err(error) => panic!("after {polls} polls: {error}"),
            }
            let said = texts(&log(&store.store, "s"));
            let asked = said.iter().filter(|text| *text == "user: Read it.").count();
            assert_eq!(asked, 1, "after {polls} polls: {said:?}");
        }
        assert_usable(&store, &agent, session, polls);
        if done {
            let records = block_on(store.store.records(&SessionId::new("s"), None, 9));
            assert!(in_session || !records.unwrap().is_empty(), "compactions are among what is dropped");
            println!("{persistence:?}, in the session {in_session}: {polls} await points");
            return polls;
        }
    }
    unreachable!("a run ends")
}

fn truncating() -> Arc<dyn Compactor> {
    Arc::new(Truncating(Truncation::new()))
}

#[test]
fn a_run_over_a_store_can_be_dropped_anywhere() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        let points = dropped_everywhere(false, persistence, false, truncating());
        assert!(points >= 17, "only {points} await points");
    }
}

#[test]
fn a_run_that_shortens_parts_can_be_dropped_anywhere() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        let clearing = Arc::new(Truncating(ToolResultClearing::new().keep(1)));
        let points = dropped_everywhere(false, persistence, false, clearing);
        assert!(points >= 17, "only {points} await points");
    }
}

#[test]
fn a_run_over_the_session_itself_can_be_dropped_anywhere() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        let points = dropped_everywhere(true, persistence, true, truncating());
        assert!(points >= 65, "only {points} await points");
    }
}

/// A run is dropped while it stores the messages that an earlier dropped run has left: the next run still has these
/// messages.
#[test]
fn what_a_dropped_run_has_left_outlives_a_second_dropped_run() {
    let mut points = 0;
    for polls in 1.. {
        let store = Arc::new(StoreWith::<Pauses>::default());
        let client = Scripted::says("Once upon a time").streaming();
        let agent = Agent::with_settings(
            crate::sessions::runs::settings_over(&(store.clone() as Arc<dyn HistoryStore>)),
            client,
        );
        let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
        let mut stream = agent.run_stream(&mut session, "Tell.", &options);
        assert!(block_on(stream.next()).is_some_and(|piece| piece.is_ok()));
        drop(stream);
        let is_done = drive(agent.run_stream(&mut session, "And then?", &options).finish(), polls).is_some();
        block_on(agent.run(&mut session, "Go on.", &options)).unwrap();
        let said = texts(&log(&store.store, "s"));
        assert_eq!(said[..2], ["user: Tell.".to_owned(), "assistant: O".to_owned()], "after {polls} polls");
        assert_eq!(
            said.iter().filter(|text| *text == "user: Tell.").count(),
            1,
            "after {polls} polls: {said:?}"
        );
        points = polls;
        if is_done {
            break;
        }
    }
    assert!(points > 3, "only {points} await points");
}
