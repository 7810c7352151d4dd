//! An agent over async-openai: its `create_byot` sends the request text of Epitome, so that no field is lost.
//!
//! `over_async_openai` runs its own service; `over_async_openai MODEL` asks the service of `OPENAI_BASE_URL`, with
//! `OPENAI_API_KEY`.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_trait::async_trait;
use epitome::agent::{ChatClient, ChatRequest, ClientError};
use epitome::run::ModelResponse;
use epitome::session::Tool;
use epitome::wire::{context_overflow, openai_chat, usage};
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
        let answer: Value = self.0.chat().create_byot(body).await.map_err(refused)?;
        let message = openai_chat::read(&answer["choices"][0]["message"].to_string())?;
        let mut response =
            ModelResponse::new(vec![message]).with_response_id(answer["id"].as_str().unwrap_or_default());
        response.usage = usage::reported(&answer.to_string())?;
        response.finish_reason = answer["choices"][0]["finish_reason"].as_str().map(Into::into);
        Ok(response.with_raw_response(answer))
    }
}

/// A request that is too long has an error of its own: the agent compacts the history and asks again.
fn refused(error: OpenAIError) -> ClientError {
    let overflow = match &error {
        OpenAIError::ApiError(answer) => {
            let body = json!({"error": answer.api_error}).to_string();
            context_overflow(answer.status_code.as_u16(), &body)
        }
        _ => None,
    };
    overflow.map_or_else(|| error.into(), Into::into)
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
