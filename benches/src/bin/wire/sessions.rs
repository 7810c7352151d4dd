//! Converts a conversation of Chat Completions to session files of agents, for a measurement.

use epitome::wire::Format;
use serde_json::{Value, json};

/// The formats of session files.
pub(crate) const SESSIONS: [Format; 6] =
    [Format::Codex, Format::ClaudeCode, Format::GeminiCli, Format::OpenHands, Format::Pi, Format::SweAgent];

/// Writes `messages` as a file of `format`, one of [`SESSIONS`].
pub(crate) fn session(format: Format, messages: &[Value]) -> String {
    match format {
        Format::Codex => lines(codex_head(), messages.iter().flat_map(codex)),
        Format::ClaudeCode => {
            lines(json!({"type": "summary", "summary": "t", "leafUuid": "0"}), claude(messages))
        }
        Format::Pi => lines(
            json!({"type": "session", "id": "s", "timestamp": "t", "cwd": "/"}),
            messages
                .iter()
                .filter_map(pi)
                .map(|said| json!({"type": "message", "timestamp": "t", "message": said})),
        ),
        Format::GeminiCli => {
            let list = gemini_cli(messages);
            json!({"sessionId": "s", "projectHash": "p", "messages": list}).to_string()
        }
        Format::OpenHands => Value::Array(openhands(messages)).to_string(),
        _ => json!({"trajectory": [], "history": messages}).to_string(),
    }
}

fn lines(head: Value, rest: impl Iterator<Item = Value>) -> String {
    let mut text = head.to_string();
    for line in rest {
        text.push('\n');
        text += &line.to_string();
    }
    text.push('\n');
    text
}

fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

fn calls(message: &Value) -> impl Iterator<Item = &Value> {
    message["tool_calls"].as_array().into_iter().flatten()
}

/// A field of the called function.
fn field<'a>(call: &'a Value, name: &str) -> &'a Value {
    call.get("function").and_then(|function| function.get(name)).unwrap_or(&Value::Null)
}

fn arguments(call: &Value) -> Value {
    let text = field(call, "arguments").as_str().unwrap_or("{}");
    let value = serde_json::from_str(text).unwrap_or_default();
    if matches!(value, Value::Object(_)) { value } else { json!({}) }
}

fn codex_head() -> Value {
    json!({"timestamp": "t", "type": "session_meta", "payload": {"id": "s", "cwd": "/"}})
}

fn codex(message: &Value) -> Vec<Value> {
    let line = |payload: Value| json!({"timestamp": "t", "type": "response_item", "payload": payload});
    if message["role"] == "tool" {
        let (id, output) = (&message["tool_call_id"], text_of(message));
        return vec![line(json!({"type": "function_call_output", "call_id": id, "output": output}))];
    }
    let kind = if message["role"] == "assistant" { "output_text" } else { "input_text" };
    let mut found = Vec::new();
    if !text_of(message).is_empty() {
        let content = json!([{"type": kind, "text": text_of(message)}]);
        found.push(line(json!({"type": "message", "role": message["role"], "content": content})));
    }
    found.extend(calls(message).map(|call| {
        let function = &call["function"];
        line(json!({"type": "function_call", "call_id": call["id"], "name": function["name"],
            "arguments": function["arguments"]}))
    }));
    found
}

fn claude(messages: &[Value]) -> impl Iterator<Item = Value> {
    let spoken = messages.iter().filter(|message| message["role"] != "system");
    spoken.enumerate().map(|(at, message)| {
        let is_model = message["role"] == "assistant";
        let said = match (is_model, message["role"] == "tool") {
            (true, _) => {
                let text =
                    (!text_of(message).is_empty()).then(|| json!({"type": "text", "text": text_of(message)}));
                let calls = calls(message).map(|call| {
                    json!({"type": "tool_use", "id": call["id"], "name": field(call, "name"),
                        "input": arguments(call)})
                });
                let blocks: Vec<Value> = text.into_iter().chain(calls).collect();
                json!({"id": format!("r{at}"), "type": "message", "role": "assistant", "content": blocks})
            }
            (_, true) => json!({"role": "user", "content": [{"type": "tool_result",
                "tool_use_id": message["tool_call_id"], "content": text_of(message)}]}),
            _ => json!({"role": "user", "content": text_of(message)}),
        };
        let parent = at.checked_sub(1).map(|parent| format!("u{parent}"));
        json!({"parentUuid": parent, "isSidechain": false, "sessionId": "s",
            "type": if is_model { "assistant" } else { "user" }, "message": said, "uuid": format!("u{at}")})
    })
}

fn pi(message: &Value) -> Option<Value> {
    let text = json!([{"type": "text", "text": text_of(message)}]);
    Some(match message["role"].as_str()? {
        "user" => json!({"role": "user", "content": text}),
        "tool" => json!({"role": "toolResult", "toolCallId": message["tool_call_id"], "content": text,
            "isError": false}),
        "assistant" => {
            let calls = calls(message).map(|call| {
                json!({"type": "toolCall", "id": call["id"], "name": field(call, "name"),
                    "arguments": arguments(call)})
            });
            let blocks: Vec<Value> = text.as_array()?.iter().cloned().chain(calls).collect();
            json!({"role": "assistant", "content": blocks})
        }
        _ => return None,
    })
}

fn gemini_cli(messages: &[Value]) -> Vec<Value> {
    let result = |id: &Value| {
        let found = messages.iter().find(|message| message["tool_call_id"] == *id && !id.is_null());
        found.map(text_of).unwrap_or_default()
    };
    // A search for each result is quadratic. This is acceptable here, because this code is not measured.
    let small = messages.len() <= 2_000;
    let of = |message: &Value| match message["role"].as_str()? {
        "user" => Some(json!({"id": "1", "type": "user", "content": text_of(message)})),
        "assistant" => {
            let calls: Vec<Value> = calls(message)
                .map(|call| {
                    let (id, name) = (&call["id"], field(call, "name"));
                    let said = if small { result(id) } else { "done" };
                    json!({"id": id, "name": name, "args": arguments(call), "status": "success", "result":
                        [{"functionResponse": {"id": id, "name": name, "response": {"output": said}}}]})
                })
                .collect();
            Some(json!({"id": "2", "type": "gemini", "content": text_of(message), "toolCalls": calls}))
        }
        _ => None,
    };
    messages.iter().filter_map(of).collect()
}

fn openhands(messages: &[Value]) -> Vec<Value> {
    let mut events = Vec::new();
    for message in messages {
        let (id, text) = (events.len(), text_of(message));
        events.push(match message["role"].as_str() {
            Some("assistant") => {
                json!({"id": id, "source": "agent", "action": "message", "args": {"content": text}})
            }
            Some("tool") => json!({"id": id, "source": "agent", "observation": "run", "content": text}),
            _ => json!({"id": id, "source": "user", "action": "message", "args": {"content": text}}),
        });
    }
    events
}
