//! An agent over async-openai: its `create_byot` sends what Epitome has written, so that no field is lost on the way.
//!
//! The example answers itself, on a port of its own. For a real service leave out `with_api_base`.

use std::error::Error;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_trait::async_trait;
use epitome::std::agent::{Agent, ChatClient, ChatRequest, ClientError};
use epitome::std::run::{ModelResponse, RunOptions};
use epitome::std::session::Tool;
use epitome::std::wire::{openai_chat, usage};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

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
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/v1", listener.local_addr()?);
    let server = tokio::spawn(answer(listener));
    let config = OpenAIConfig::new().with_api_key("none").with_api_base(base);
    let agent = Agent::new("assistant", OpenAi(Client::with_config(config)));
    let mut session = agent.create_session(None, None);
    let outcome = agent.run(&mut session, "Hello!", &RunOptions::default()).await?;
    assert_eq!(outcome.response.messages.len(), 1);
    assert_eq!(session.token_count(), 12, "what the service reported");
    server.await??;
    println!("1 answer, {} tokens sent", session.token_count());
    Ok(())
}

/// Answers one request, as a service would.
async fn answer(listener: TcpListener) -> std::io::Result<()> {
    let body = json!({"id": "r1", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}});
    let body = body.to_string();
    let (mut stream, _) = listener.accept().await?;
    let mut request = Vec::new();
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    stream.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    stream.shutdown().await
}

/// Whether all of a request has arrived: its head, and as many bytes as it says.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    body.len() >= length.unwrap_or(0)
}
