//! Many sessions on one agent at once.

use std::sync::Arc;

use epitome::agent::Agent;
use epitome::history::MemoryStore;
use epitome::message::Message;
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{ModelResponse, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;
use futures::future::join_all;

use crate::sessions::support::{Scripted, shown, texts};

const SESSIONS: usize = 1_000;
const RUNS: usize = 10;
const THREADS: usize = 2;

/// Runs of one session. The model repeats the name of the session from its request.
async fn talk(agent: &Agent, name: String) -> AgentSession {
    let mut session = agent.create_session(Some(&name), None);
    for run in 0..RUNS {
        let says = format!("{name}/{run}");
        let outcome = agent.run(&mut session, says.clone(), &RunOptions::default()).await.unwrap();
        let answer = texts(&outcome.response.messages);
        assert_eq!(answer, [format!("assistant: {} of {name}, asked {says}", 2 * run + 1)]);
    }
    session
}

#[test]
fn a_thousand_sessions_of_ten_runs_do_not_mix() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|_, messages| {
        let said = texts(messages);
        let last = said.last().unwrap().strip_prefix("user: ").unwrap().to_owned();
        let name = last.split('/').next().unwrap();
        assert!(said.iter().all(|text| text.contains(name)), "a message of another session");
        Ok(ModelResponse::new(vec![Message::assistant(format!("{} of {name}, asked {last}", said.len()))]))
    });
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory()).unwrap();
    providers.push(HistoryProvider::new("audit", store.clone()).load_messages(false)).unwrap();
    let agent = Agent::with_settings(RunSettings::new("a").with_providers(providers), client);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let agent = &agent;
            let share = (0..SESSIONS).filter(move |it| it % THREADS == thread);
            scope.spawn(move || {
                let talks = share.map(|it| talk(agent, format!("s{it:04}-")));
                assert_eq!(block_on(join_all(talks)).len(), SESSIONS / THREADS);
            });
        }
    });
    for session in 0..SESSIONS {
        let (name, shown) = (format!("s{session:04}-"), shown(&*store, &format!("s{session:04}-")));
        assert_eq!(shown.len(), 2 * RUNS);
        assert!(shown.iter().all(|text| text.contains(&name)));
    }
}
