//! The conversation of the samples in the formats that are written through slots.

use serde_json::{Value, json};

use crate::samples::said;

/// Messages of the Vercel AI SDK, as applications store them.
pub(crate) fn ui_messages(turns: usize) -> Vec<Value> {
    let words = |text: String| json!({"type": "text", "text": text});
    let mut all = Vec::new();
    for turn in 0..turns {
        let tool = json!({"type": "tool-look", "toolCallId": format!("c{turn}"), "state": "output-available",
            "input": {"at": turn}, "output": said("result", turn)});
        all.push(json!({"id": format!("q{turn}"), "role": "user", "parts": [words(said("question", turn))]}));
        all.push(json!({"id": format!("a{turn}"), "role": "assistant", "parts": [{"type": "step-start"},
            words(said("plan", turn)), tool, {"type": "step-start"}, words(said("answer", turn))]}));
    }
    all
}

/// A request of Bedrock's Converse.
pub(crate) fn converse(turns: usize) -> Value {
    let mut all = Vec::new();
    let mut add = |role: &str, block: Value| all.push(json!({"role": role, "content": [block]}));
    for turn in 0..turns {
        let id = format!("c{turn}");
        add("user", json!({"text": said("question", turn)}));
        add("assistant", json!({"toolUse": {"toolUseId": id, "name": "look", "input": {"at": turn}}}));
        let content = json!([{"text": said("result", turn)}]);
        add("user", json!({"toolResult": {"toolUseId": id, "content": content, "status": "success"}}));
        add("assistant", json!({"text": said("answer", turn)}));
    }
    json!({"modelId": "m", "system": [{"text": "Be brief."}], "messages": all})
}

/// Messages as OpenTelemetry records them.
pub(crate) fn recorded(turns: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |role: &str, part: Value| all.push(json!({"role": role, "parts": [part]}));
    for turn in 0..turns {
        let id = format!("c{turn}");
        add("user", json!({"type": "text", "content": said("question", turn)}));
        add("assistant", json!({"type": "tool_call", "id": id, "name": "look", "arguments": {"at": turn}}));
        add("tool", json!({"type": "tool_call_response", "id": id, "response": said("result", turn)}));
        add("assistant", json!({"type": "text", "content": said("answer", turn)}));
    }
    all
}

/// A history of Cline.
pub(crate) fn cline(turns: usize) -> Vec<Value> {
    let words = |text: String| json!({"type": "text", "text": text});
    let mut all = Vec::new();
    let mut add = |role: &str, content: Value| all.push(json!({"role": role, "ts": 1, "content": content}));
    for turn in 0..turns {
        let id = format!("c{turn}");
        let asked = format!("<task>\n{}\n</task>", said("question", turn));
        add(
            "user",
            json!([words(asked), words("<environment_details>\nnow\n</environment_details>".into())]),
        );
        add("assistant", json!([{"type": "tool_use", "id": id, "name": "look", "input": {"at": turn}}]));
        add("user", json!([{"type": "tool_result", "tool_use_id": id, "content": said("result", turn)}]));
        add("assistant", json!([words(said("answer", turn))]));
    }
    all
}
