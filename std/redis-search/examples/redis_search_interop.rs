//! A run with the memories of Redis around it, and the server of the tests, for `tests/interop/services.sh`.
//!
//! ```text
//! redis_search_interop serve FILE                                     prints its port; the commands go to FILE, one a line
//! redis_search_interop PORT words|vectors SCOPE INPUT ANSWER          prints the messages that the provider adds to a run with this input,
//!                                                                     and stores it
//! ```
//!
//! SCOPE is a list of ids: `user=alice,agent=helper`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the server of the tests: a failed expectation ends it"
)]

use core::error::Error;
use core::fmt::Write as _;
use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_redis_search::{Embedder, RedisContextProvider, RedisServer, RemoteOptions, Scope, VectorSearch};
use epitome_std::message::Message;
use epitome_std::provider::{NamedAgent, Providers};
use epitome_std::session::{AgentResponse, AgentSession, SessionContext, SessionError};

#[path = "../src/tests/query.rs"]
mod query;
#[expect(dead_code, reason = "it can fail, too, which only tests want")]
#[path = "../src/tests/server.rs"]
mod server;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", file] => serve(file).await,
        [port, searched, scope, input, answer] => run(port, searched, scope, input, answer).await,
        _ => Err("usage: redis_search_interop PORT words|vectors SCOPE INPUT ANSWER".into()),
    }
}

/// Writes what is asked, with bytes that are no letters as `\xNN`, and a line for what the server does not know.
async fn serve(file: &str) -> Result<(), Box<dyn Error>> {
    let server = server::Server::new().await;
    println!("{}", server.port);
    loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let mut state = server.state.lock().unwrap();
        let faults = core::mem::take(&mut state.faults);
        let mut lines: String = faults.iter().map(|fault| format!("fault: {fault}\n")).collect();
        for command in core::mem::take(&mut state.asked) {
            let words = command.iter().map(|word| word.escape_ascii().to_string());
            writeln!(lines, "{}", words.collect::<Vec<_>>().join("\t"))?;
        }
        if !lines.is_empty() {
            let mut log = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
            std::io::Write::write_all(&mut log, lines.as_bytes())?;
        }
    }
}

/// The vector of the Python side too.
#[derive(Debug)]
struct Letters;

#[async_trait]
impl Embedder for Letters {
    async fn embed(&self, text: &str) -> Result<Vec<f32>, SessionError> {
        Ok(['k', 'o', 't'].map(|letter| text.matches(letter).count() as f32 + 0.5).to_vec())
    }
}

async fn run(
    port: &str,
    searched: &str,
    scope: &str,
    input: &str,
    answer: &str,
) -> Result<(), Box<dyn Error>> {
    let server = RedisServer::from_url(&format!("redis://127.0.0.1:{port}"))?;
    let provider = RedisContextProvider::new(&server, RemoteOptions::default())?.with_scope(of(scope));
    let provider = match searched {
        "vectors" => provider
            .with_vectors(VectorSearch::new("vector", 3.try_into()?, Arc::new(Letters)))
            .with_index("vectors")
            .with_prefix("vectors"),
        _ => provider,
    };
    let mut providers = Providers::default();
    providers.push(provider)?;
    let (agent, mut session) = (NamedAgent::new("agent"), AgentSession::with_id("s-1"));
    let mut context = SessionContext::new(&session, format!("run-{input}"), vec![Message::user(input)]);
    providers.before_run(&agent, &mut session, &mut context).await?;
    for message in context.context_messages().iter().flat_map(|added| &added.messages) {
        println!("{}", message.text());
    }
    let mut context = context.with_response(AgentResponse::new(vec![Message::assistant(answer)]));
    providers.after_run(&agent, &mut session, &mut context).await?;
    Ok(())
}

fn of(text: &str) -> Scope {
    let ids = text.split(',').filter_map(|id| id.split_once('='));
    ids.fold(Scope::default(), |scope, (name, id)| match name {
        "user" => scope.with_user(id),
        "agent" => scope.with_agent(id),
        _ => scope.with_application(id),
    })
}
