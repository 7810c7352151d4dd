//! The Messages API with its compaction and context editing, as Anthropic documents them.
//!
//! A fact is a text `FACT-n` in a message. A summary lists the facts of the messages that it replaces. An answer states
//! the number of facts in the request, so that a test finds out whether a compaction lost a fact.
//!
//! The server reports usage: one token for each byte, so that small texts exceed a threshold.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};

use crate::fault::{self, header};

mod binding;
mod check;

use binding::{Chain, signature};
use check::{Request, Summary};

pub(crate) fn routes() -> Router {
    Router::new().route("/anthropic/v1/messages", post(messages))
}

/// A refusal: its error code (empty: `invalid_request_error`) and its message.
type Refused = (&'static str, &'static str);

/// The API key that the server accepts.
const KEY: &str = "sk-test-4711";

async fn messages(headers: HeaderMap, body: Bytes) -> Response {
    if header(&headers, "x-api-key") != Some(KEY) {
        return refused(StatusCode::UNAUTHORIZED, ("authentication_error", "invalid x-api-key"));
    }
    if header(&headers, "anthropic-version") != Some("2023-06-01") {
        return refused(StatusCode::BAD_REQUEST, ("", "anthropic-version: header is required"));
    }
    let fault = fault::of(&headers);
    if fault == "unavailable" {
        let status = StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        return refused(status, ("compaction_unavailable", "later"));
    }
    if let Some(answer) = fault::answer(&fault).await {
        return answer;
    }
    let betas: Vec<&str> =
        header(&headers, "anthropic-beta").unwrap_or_default().split(',').map(str::trim).collect();
    let request = serde_json::from_slice(&body).map_err(|_| ("", "the body is no JSON"));
    match request.and_then(|request| answer(&request, &betas, &fault)) {
        Ok(answer) => (StatusCode::OK, answer.to_string()).into_response(),
        Err(why) => refused(StatusCode::BAD_REQUEST, why),
    }
}

fn refused(status: StatusCode, (code, message): Refused) -> Response {
    let error = match code {
        "" => json!({"type": "invalid_request_error", "message": message}),
        code if code.starts_with("compaction_") => {
            json!({"type": "invalid_request_error", "message": message, "details": {"error_code": code}})
        }
        code => json!({"type": code, "message": message}),
    };
    (status, json!({"type": "error", "error": error}).to_string()).into_response()
}

fn answer(body: &Value, betas: &[&str], fault: &str) -> Result<Value, Refused> {
    let request = Request::check(body, betas)?;
    let size = request.size();
    if request.asks() {
        return Ok(summarized(&request, size, fault));
    }
    let (mut content, mut iterations) = (Vec::new(), Vec::new());
    let mut chain = request.chain;
    let mut size = size;
    if request.threshold.is_some_and(|threshold| size > threshold) {
        let summary = request.summary();
        iterations.push(json!({"type": "compaction", "input_tokens": size, "output_tokens": summary.len()}));
        match fault {
            "failed" => content.push(json!({"type": "compaction", "content": null})),
            _ => {
                size = summary.len() as u64;
                chain = Chain::of_summary(request.body, &summary);
                content.push(json!({"type": "compaction", "content": summary}));
            }
        }
        if request.pauses() && fault != "failed" {
            return Ok(message(content, "compaction", (0, 0), iterations));
        }
    }
    // The compaction block and the blocks behind it are one turn of the model.
    chain.speaks("assistant");
    content.iter().filter(|block| !block["content"].is_null()).for_each(|block| chain.says(block));
    if request.thinks() {
        let signature = signature(chain, request.last_thinking.as_deref());
        content.push(json!({"type": "thinking", "thinking": "hm", "signature": signature}));
    }
    let stop = request.says(&mut content);
    let output = Value::from(content.clone()).to_string().len() as u64;
    iterations.push(json!({"type": "message", "input_tokens": size, "output_tokens": output}));
    let mut answer = message(content, stop, (size, output), iterations);
    if let Some(answer) = answer.as_object_mut() {
        if !request.dropped.is_empty() {
            answer.insert("input_transformations".into(), request.dropped.clone().into());
        }
        if body.get("context_management").is_some() {
            answer.insert("context_management".into(), json!({"applied_edits": []}));
        }
    }
    Ok(answer)
}

/// The answer to a request for a summary.
fn summarized(request: &Request<'_>, size: u64, fault: &str) -> Value {
    let summary = request.summary();
    let spent = vec![json!({"type": "compaction", "input_tokens": size, "output_tokens": summary.len()})];
    let block = Summary::sign(&summary, request);
    let (content, stop) = match fault {
        "none" => (vec![], "max_tokens"),
        "two" => (vec![block.clone(), block], "compaction"),
        "other" => (vec![json!({"type": "text", "text": "What?"})], "end_turn"),
        "unsigned" => (vec![json!({"type": "compaction", "content": summary})], "compaction"),
        "empty" => (vec![json!({"type": "compaction", "content": "", "signature": "s"})], "compaction"),
        _ => (vec![block], "compaction"),
    };
    message(content, stop, (0, 0), spent)
}

fn message(content: Vec<Value>, stop: &str, usage: (u64, u64), iterations: Vec<Value>) -> Value {
    json!({
        "id": format!("msg_{}", iterations.len()), "type": "message", "role": "assistant", "model": "fake",
        "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": usage.0, "output_tokens": usage.1, "iterations": iterations},
    })
}
