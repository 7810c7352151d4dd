//! A conversation that a model provider compacts, and the response of the provider, for the programs `managed` and
//! `managed_memory`.

use epitome::core::message::Role;
use epitome::message::{Message, Part, ToolCall};
use serde_json::{Value, json};

/// A conversation of this many turns, each with a call and prose with characters that JSON escapes.
#[must_use]
pub fn conversation(turns: usize) -> Vec<Message> {
    (0..turns).flat_map(turn).collect()
}

/// One turn of the conversation.
#[must_use]
pub fn turn(at: usize) -> [Message; 4] {
    let id = format!("call_{at:024}");
    let call = ToolCall::new(id.clone(), "read", format!(r#"{{"path":"src/part_{at}.rs","lines":[1,200]}}"#));
    [
        Message::user(format!("What does part {at} do, and who calls it?\nSay it in a few words.")),
        Message::new(Role::Assistant, vec![Part::ToolCall(call)]),
        Message::tool(id, format!("fn part_{at}() {{\n\tcall(\"näher\", 'x');\n}}\n").repeat(40)),
        Message::assistant("It calls the next one, and \"nobody\" calls it but the one before. ".repeat(6)),
    ]
}

/// The response of OpenAI's service to a request with this body.
#[must_use]
pub fn openai_answer(body: &str, sealed: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let users = list(&body, "input").iter().filter(|item| item.get("role") == Some(&json!("user")));
    let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": sealed});
    let output: Vec<Value> = users.cloned().chain([item]).collect();
    let usage = json!({"input_tokens": 9_000, "input_tokens_details": {}, "output_tokens": 700, "total_tokens": 9_700});
    json!({"id": "r", "object": "response.compaction", "created_at": 1, "output": output, "usage": usage})
        .to_string()
}

/// The array under a key.
#[must_use]
pub fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).unwrap()
}
