//! A Chat Completions server for tests. It is strict, as the service of OpenAI is: it refuses a request in which calls
//! and results do not pair.
//!
//! It listens on a free port, prints its address in one line, and ends when its standard input is closed.
//!
//! If a request offers tools and its last message is a user message, the answer is a call of the first tool. The answer
//! to any other request is a text: the number of messages, and the beginnings of the first and the last user message.
//! The server reports usage: one token for four bytes.

#![expect(clippy::print_stdout, reason = "a program: the address is its output")]

use std::io::Read;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Router, serve};
use serde_json::{Value, json};
use tokio::net::TcpListener;

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        std::thread::spawn(|| {
            // The program that started the server holds the other end of standard input, and closes it when it ends.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        serve(listener, Router::new().route("/v1/chat/completions", post(complete))).await
    })
}

async fn complete(body: Bytes) -> (StatusCode, String) {
    match answer(&body) {
        Ok(answer) => (StatusCode::OK, answer.to_string()),
        Err(message) => {
            let error = json!({"error": {"message": message, "type": "invalid_request_error"}});
            (StatusCode::BAD_REQUEST, error.to_string())
        }
    }
}

fn answer(body: &[u8]) -> Result<Value, String> {
    let request: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let messages = request.get("messages").and_then(Value::as_array).ok_or("messages: missing")?;
    check_calls(messages)?;
    let last = messages.last().ok_or("messages: empty")?;
    let tool = request.pointer("/tools/0/function/name").and_then(Value::as_str);
    let calls = tool.filter(|_| role(last) == "user").map(|name| {
        let id = format!("call_{}", messages.len());
        json!([{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}])
    });
    let beginning = |message| content(message).chars().take(BEGINNING_CHARS).collect::<String>();
    let mut said = messages.iter().filter(|message| role(message) == "user").map(beginning);
    let (first, latest) = (said.clone().next().unwrap_or_default(), said.next_back().unwrap_or_default());
    let content = format!("{} messages, from {first:?} to {latest:?}", messages.len());
    let finish = if calls.is_some() { "tool_calls" } else { "stop" };
    let message = match calls {
        Some(calls) => json!({"role": "assistant", "content": null, "tool_calls": calls}),
        None => json!({"role": "assistant", "content": content, "refusal": null}),
    };
    let (input, output) = (body.len() / 4, message.to_string().len() / 4);
    Ok(json!({
        "id": format!("chatcmpl-{}", messages.len()),
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output},
    }))
}

/// Number of characters of a user message that an answer repeats.
const BEGINNING_CHARS: usize = 60;

/// Checks that the results of all calls of a message follow it directly, and that each result has a call.
fn check_calls(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if role(message) == "tool" {
            let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
            let place = open.iter().position(|call| *call == id);
            let place = place.ok_or_else(|| format!("messages[{at}]: a result without its call"))?;
            open.remove(place);
            continue;
        }
        if !open.is_empty() {
            return Err(format!("messages[{at}]: calls before it have no result"));
        }
        let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        open.extend(calls.filter_map(|call| call.get("id").and_then(Value::as_str)));
    }
    if open.is_empty() { Ok(()) } else { Err("messages: calls at the end have no result".into()) }
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn content(message: &Value) -> &str {
    message.get("content").and_then(Value::as_str).unwrap_or_default()
}
