//! A run with documents of Azure AI Search, for `tests/interop/services.sh`.
//!
//! ```text
//! azure_search_interop URL index|meaning|base|filtered|made NAME INPUT    prints the messages that the provider adds to a run with this input
//! ```

use core::error::Error;

use epitome_azure_search::{AzureAISearchContextProvider, Credential, KnowledgeModel};
use epitome_std::message::Message;
use epitome_std::provider::{NamedAgent, Providers};
use epitome_std::session::{AgentSession, SessionContext};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [url, searched, name, input] = arguments[..] else {
        return Err("usage: azure_search_interop URL index|meaning|base|filtered|made NAME INPUT".into());
    };
    let key = Credential::ApiKey("a-key".into());
    let provider = match searched {
        "index" => AzureAISearchContextProvider::of_index(url, name, key)?,
        "meaning" => {
            AzureAISearchContextProvider::of_index(url, name, key)?.with_semantic_configuration("default")
        }
        "made" => {
            let model = KnowledgeModel::new("https://o.openai.azure.com", "gpt-4.1-mini").with_key("o-key");
            AzureAISearchContextProvider::of_knowledge_base_over(url, name, model, key)?
        }
        "filtered" => {
            AzureAISearchContextProvider::of_knowledge_base(url, name, key)?.with_filter("tenant eq 'north'")
        }
        _ => AzureAISearchContextProvider::of_knowledge_base(url, name, key)?,
    };
    let mut providers = Providers::default();
    providers.push(provider)?;
    let mut session = AgentSession::new();
    let mut context = SessionContext::new(&session, "run-1", vec![Message::user(input)]);
    providers.before_run(&NamedAgent::new("agent"), &mut session, &mut context).await?;
    for message in context.context_messages().iter().flat_map(|added| &added.messages) {
        println!("{}", message.text());
    }
    Ok(())
}
