//! The common part of the examples: a conversation with an agent that has a tool, and a service of Chat Completions.
//!
//! Each example runs its own service, on a separate port. With the name of a model it asks the service of
//! `OPENAI_BASE_URL` with `OPENAI_API_KEY`, which the clients read themselves. For a service with `https`, add their
//! feature `rustls`:
//!
//! ```sh
//! OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=none cargo run --bin over_rig -- qwen3
//! ```

use std::io;

use epitome::agent::{Agent, ChatClient, ClientError, ToolOutput};
use epitome::message::{Message, Part};
use epitome::run::{RunOptions, RunSettings};
use epitome::session::Tool;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The result of a conversation.
#[derive(Debug)]
pub struct Talk {
    /// The messages of the model and the tool, in order.
    pub messages: Vec<Message>,
    /// The size of the history, as the service reports it.
    pub tokens: u64,
}

/// Two runs of an agent over `client`. The tool is useful for the first of them.
///
/// # Errors
/// The errors of the client and of the session.
pub async fn talk(client: impl ChatClient + 'static, model: &str) -> Result<Talk, ClientError> {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let weather = Tool::new("weather", "Tells the weather in a city.", city);
    let settings = RunSettings::new("assistant").with_model(model).with_instructions("Be brief.");
    let agent = Agent::with_settings(settings.with_tools(vec![weather]), client)
        .with_tool_runner(|_| Box::pin(async { ToolOutput::new("rain") }));
    let mut session = agent.create_session(None, None);
    let mut messages = Vec::new();
    for question in ["Does it rain in Oslo?", "Thank you!"] {
        let outcome = agent.run(&mut session, question, &RunOptions::default()).await?;
        for message in outcome.response.messages {
            message.parts().iter().for_each(|part| println!("{}", line(part)));
            messages.push(message);
        }
    }
    let tokens = session.token_count();
    println!("{} messages, {tokens} tokens", messages.len());
    Ok(Talk { messages, tokens })
}

/// A part as a line to print.
fn line(part: &Part) -> String {
    match part {
        Part::Text(text) => text.to_string(),
        Part::ToolCall(call) => format!("{}({})", &*call.name, &*call.arguments),
        Part::ToolResult(result) => result.parts.iter().map(|part| format!("-> {}", line(part))).collect(),
        other => format!("{other:?}"),
    }
}

/// Starts a service, and returns the base of its URL. The service ends with the runtime.
///
/// # Errors
/// As [`TcpListener::bind`].
pub async fn service() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Err(error) = serve(stream).await {
                eprintln!("{error}");
            }
        }
    });
    Ok(base)
}

/// Answers one request.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    let body = loop {
        if let Some(body) = body(&request) {
            break answer(body).to_string();
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    stream.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    stream.shutdown().await
}

/// The body of a request that has arrived completely: its length is the number of bytes in the head.
fn body(request: &[u8]) -> Option<&[u8]> {
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let (head, body) = request.split_at(end + 4);
    let head = String::from_utf8_lossy(head);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    body.get(..length.unwrap_or(0))
}

/// Answers a first question with a call, and answers the result of the call, or thanks, with a text. Each message of a
/// request is ten tokens.
fn answer(body: &[u8]) -> Value {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let said = messages.iter().filter(|message| message["role"] == "user").count();
    let is_asked = messages.last().is_some_and(|last| last["role"] == "user");
    let (message, reason) = if is_asked && said == 1 {
        let function = json!({"name": "weather", "arguments": r#"{"city":"Oslo"}"#});
        let call = json!({"id": "c1", "type": "function", "function": function});
        (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
    } else {
        let text = if is_asked { "You are welcome." } else { "It does." };
        (json!({"role": "assistant", "content": text}), "stop")
    };
    let input = messages.len() * 10;
    json!({"id": format!("r{}", messages.len()), "object": "chat.completion", "created": 0, "model": request["model"],
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": input, "completion_tokens": 10, "total_tokens": input + 10}})
}
