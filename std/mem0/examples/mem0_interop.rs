//! A run with the memories of Mem0 around it, for `tests/interop/services.sh`.
//!
//! ```text
//! mem0_interop hosted URL SEARCH STORE INPUT ANSWER    prints the messages that the provider adds to a run with this input, and stores it
//! mem0_interop own ..          the same over a server of one's own, which stores what was said as it is
//! mem0_interop inferring ..    the same, and its model infers what is stored
//! ```
//!
//! SEARCH and STORE are scopes: `user=alice,agent=helper`.

use core::error::Error;

use epitome_mem0::{Mem0ContextProvider, Scope};
use epitome_std::message::Message;
use epitome_std::provider::{NamedAgent, Providers};
use epitome_std::session::{AgentResponse, AgentSession, SessionContext};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [service, url, search, store, input, answer] = arguments[..] else {
        return Err("usage: mem0_interop hosted|own URL SEARCH STORE INPUT ANSWER".into());
    };
    let provider = match service {
        "hosted" => {
            Mem0ContextProvider::hosted("m0-key")?.with_endpoint(|endpoint| endpoint.with_base_url(url))
        }
        "inferring" => Mem0ContextProvider::self_hosted(url)?,
        _ => Mem0ContextProvider::self_hosted(url)?.with_infer(false),
    };
    let mut providers = Providers::default();
    providers.push(provider.with_search(scope(search)).with_storage(scope(store)))?;
    let (agent, mut session) = (NamedAgent::new("agent"), AgentSession::new());
    let mut context = SessionContext::new(&session, "run-1", vec![Message::user(input)]);
    providers.before_run(&agent, &mut session, &mut context).await?;
    for message in context.context_messages().iter().flat_map(|added| &added.messages) {
        println!("{}", message.text());
    }
    let mut context = context.with_response(AgentResponse::new(vec![Message::assistant(answer)]));
    providers.after_run(&agent, &mut session, &mut context).await?;
    Ok(())
}

fn scope(text: &str) -> Scope {
    let ids = text.split(',').filter_map(|id| id.split_once('='));
    ids.fold(Scope::default(), |scope, (name, id)| match name {
        "user" => scope.with_user(id),
        "agent" => scope.with_agent(id),
        "application" => scope.with_application(id),
        _ => scope.with_thread(id),
    })
}
