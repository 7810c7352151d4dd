//! An agent over async-openai: its `create_byot` sends what Epitome has written, so that no field is lost on the way.
//!
//! `over_async_openai` answers itself; `over_async_openai MODEL` asks the service that `OPENAI_BASE_URL` names, with
//! `OPENAI_API_KEY`.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_trait::async_trait;
use epitome::std::agent::{ChatClient, ChatRequest, ClientError};
use epitome::std::run::ModelResponse;
use epitome::std::session::Tool;
use epitome::std::wire::{openai_chat, usage};
use epitome_clients::{service, talk};
use serde_json::{Value, json};

struct OpenAi(Client<OpenAIConfig>);

#[async_trait]
impl ChatClient for OpenAi {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        let messages =
            request.messages.iter().map(|message| Ok(serde_json::from_str(&openai_chat::write(message)?)?));
        let messages: Vec<Value> = messages.collect::<Result<_, ClientError>>()?;
        let mut body = json!({"model": request.model, "messages": messages});
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        let answer: Value = self.0.chat().create_byot(body).await?;
        let message = openai_chat::read(&answer["choices"][0]["message"].to_string())?;
        let response =
            ModelResponse::new(vec![message]).with_response_id(answer["id"].as_str().unwrap_or_default());
        Ok(match usage::reported(&answer.to_string())? {
            Some(usage) => response.with_usage(usage),
            None => response,
        })
    }
}

fn tool(tool: &Tool) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name.as_str(), "description": tool.description.as_str(), "parameters": tool.parameters,
    }})
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClientError> {
    if let Some(model) = std::env::args().nth(1) {
        // It takes the address and the key from the environment.
        talk(OpenAi(Client::new()), &model).await?;
        return Ok(());
    }
    let config = OpenAIConfig::new().with_api_key("none").with_api_base(service().await?);
    let talk = talk(OpenAi(Client::with_config(config)), "m").await?;
    assert_eq!(talk.messages.len(), 4, "a call, its result, and two answers");
    assert_eq!(talk.tokens, 60, "what the service reported last, of six messages");
    Ok(())
}
