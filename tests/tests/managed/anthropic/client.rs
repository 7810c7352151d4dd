//! A client that keeps its conversation as an API request, and uses only the mappers.

use serde_json::{Value, json};

use super::{KEY, MODEL, base};

/// Answer of the server: whether it accepted, and its text.
pub(crate) type Answer = (bool, String);

/// Sends one request.
pub(crate) async fn post(body: &str, betas: &[&str], faults: Option<(&str, &str)>) -> Answer {
    // Without certificates, which take longer to load than the answer takes.
    let http = reqwest::Client::builder().tls_built_in_root_certs(false).build().unwrap();
    let mut request = http
        .post(format!("{}/v1/messages", base()))
        .header("x-api-key", KEY)
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", betas.join(","));
    if let Some((case, faults)) = faults {
        request = request.header("x-case", case).header("x-faults", faults);
    }
    let answer = request.body(body.to_owned()).send().await.unwrap();
    (answer.status().is_success(), answer.text().await.unwrap())
}

/// A request without messages, of a conversation with thinking and one tool.
pub(super) fn empty() -> String {
    json!({
        "model": MODEL, "max_tokens": 4_096, "system": "Be brief.", "thinking": {"type": "adaptive"}, "messages": [],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    })
    .to_string()
}

/// The request with another message at its end.
pub(super) fn push(body: &str, message: Value) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    body["messages"].as_array_mut().unwrap().push(message);
    body.to_string()
}

pub(super) fn user(text: impl Into<String>) -> Value {
    json!({"role": "user", "content": text.into()})
}

/// Messages that a turn adds: the answer, and the results of its calls.
pub(super) fn answered(answer: &str, fact: usize) -> (Value, Option<Value>) {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let content = answer["content"].as_array().unwrap();
    let calls = content.iter().filter(|block| block["type"] == "tool_use");
    let said = format!("FACT-{fact}: {}", "found where it was. ".repeat(50));
    let results: Vec<Value> = calls
        .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": said}))
        .collect();
    let results = (!results.is_empty()).then(|| json!({"role": "user", "content": results}));
    (json!({"role": "assistant", "content": content}), results)
}
