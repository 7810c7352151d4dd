//! The conversation of the samples in more formats.

use serde_json::{Value, json};

use super::said;

pub(super) fn opencode(turns: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |role: &str, parts: Value| {
        all.push(json!({"info": {"id": format!("m{}", all.len()), "role": role}, "parts": parts}));
    };
    for turn in 0..turns {
        let state = json!({"status": "completed", "input": {"at": turn}, "output": said("result", turn), "title": "t",
            "metadata": {}, "time": {"start": 1, "end": 2}});
        let call = json!({"type": "tool", "callID": format!("c{turn}"), "tool": "look", "state": state});
        let text = |text: String| json!({"type": "text", "text": text});
        add("user", json!([text(said("question", turn))]));
        add(
            "assistant",
            json!([{"type": "step-start"}, text(said("plan", turn)), call, {"type": "step-finish"}]),
        );
        add(
            "assistant",
            json!([{"type": "step-start"}, text(said("answer", turn)), {"type": "step-finish"}]),
        );
    }
    all
}

pub(super) fn pydantic_ai(turns: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for turn in 0..turns {
        let id = format!("c{turn}");
        let request = |part: Value| json!({"kind": "request", "instructions": "Be brief.", "parts": [part]});
        let text = json!({"part_kind": "text", "content": said("plan", turn)});
        let call =
            json!({"part_kind": "tool-call", "tool_name": "look", "args": {"at": turn}, "tool_call_id": id});
        let result = json!({"part_kind": "tool-return", "tool_name": "look", "content": said("result", turn), "tool_call_id": id});
        all.push(request(json!({"part_kind": "user-prompt", "content": said("question", turn)})));
        all.push(json!({"kind": "response", "parts": [text, call]}));
        all.push(request(result));
        all.push(
            json!({"kind": "response", "parts": [{"part_kind": "text", "content": said("answer", turn)}]}),
        );
    }
    all
}

pub(super) fn adk(turns: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |author: &str, role: &str, parts: Value| {
        all.push(json!({"id": format!("e{}", all.len()), "author": author, "invocationId": "i", "timestamp": all.len(),
            "content": {"role": role, "parts": parts}}));
    };
    for turn in 0..turns {
        let id = format!("adk-{turn}");
        add("user", "user", json!([{"text": said("question", turn)}]));
        let call = json!({"functionCall": {"id": id, "name": "look", "args": {"at": turn}}});
        add("helper", "model", json!([{"text": said("plan", turn)}, call]));
        let response = json!({"id": id, "name": "look", "response": {"result": said("result", turn)}});
        add("helper", "user", json!([{"functionResponse": response}]));
        add("helper", "model", json!([{"text": said("answer", turn)}]));
    }
    all
}

pub(super) fn openhands_v1(turns: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |kind: &str, source: &str, mut event: Value| {
        let parent = (!all.is_empty()).then(|| format!("e{}", all.len() - 1));
        event["id"] = json!(format!("e{}", all.len()));
        event["parent_id"] = json!(parent);
        (event["kind"], event["source"]) = (json!(kind), json!(source));
        all.push(event);
    };
    let words = |text: String| json!([{"type": "text", "text": text}]);
    for turn in 0..turns {
        let id = format!("c{turn}");
        add(
            "MessageEvent",
            "user",
            json!({"llm_message": {"role": "user", "content": words(said("question", turn))}}),
        );
        let call = json!({"id": id, "name": "look", "arguments": "{}"});
        add(
            "ActionEvent",
            "agent",
            json!({"thought": words(said("plan", turn)), "tool_name": "look", "tool_call_id": id,
            "tool_call": call, "llm_response_id": format!("r{turn}")}),
        );
        let observation = json!({"content": words(said("result", turn)), "is_error": false});
        add("ObservationEvent", "environment", json!({"tool_call_id": id, "observation": observation}));
        add(
            "MessageEvent",
            "agent",
            json!({"llm_message": {"role": "assistant", "content": words(said("answer", turn))}}),
        );
    }
    all
}

pub(super) fn continue_dev(turns: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for turn in 0..turns {
        let id = format!("c{turn}");
        let item = |role: &str, text: String| json!({"message": {"role": role, "content": text}, "contextItems": []});
        let call = json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
        let output = json!([{"name": "look", "description": "", "content": said("result", turn)}]);
        let mut calls = item("assistant", said("plan", turn));
        calls["message"]["toolCalls"] = json!([call]);
        calls["toolCallStates"] = json!([{"toolCallId": id, "toolCall": call, "status": "done", "parsedArgs": {}, "output": output}]);
        all.push(item("user", said("question", turn)));
        all.push(calls);
        all.push(item("assistant", said("answer", turn)));
    }
    all
}

pub(super) fn copilot_cli(turns: usize) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut add = |kind: &str, data: Value| {
        let parent = (!all.is_empty()).then(|| format!("e{}", all.len() - 1));
        all.push(json!({"type": kind, "data": data, "id": format!("e{}", all.len()), "timestamp": "t", "parentId": parent}));
    };
    add("session.start", json!({"sessionId": "s", "version": 1, "producer": "copilot-agent"}));
    for turn in 0..turns {
        let id = format!("c{turn}");
        add("user.message", json!({"content": said("question", turn)}));
        let requests = json!([{"toolCallId": id, "name": "look", "arguments": {"at": turn}}]);
        add(
            "assistant.message",
            json!({"messageId": "m", "content": said("plan", turn), "toolRequests": requests}),
        );
        let result = json!({"content": said("result", turn)});
        add("tool.execution_complete", json!({"toolCallId": id, "success": true, "result": result}));
        add("assistant.message", json!({"messageId": "m", "content": said("answer", turn)}));
    }
    all
}

pub(super) fn copilot_chat(turns: usize) -> Vec<Value> {
    let request = |turn: usize| {
        let id = format!("c{turn}");
        let call = json!({"id": id, "name": "look", "arguments": "{}"});
        let rounds = json!([{"response": said("plan", turn), "toolCalls": [call]}, {"response": said("answer", turn), "toolCalls": []}]);
        let results = json!({id: {"content": [{"$mid": 21, "value": said("result", turn)}]}});
        json!({"requestId": format!("r{turn}"), "message": {"text": said("question", turn), "parts": []},
            "response": [{"value": said("answer", turn)}],
            "result": {"metadata": {"toolCallRounds": rounds, "toolCallResults": results}}})
    };
    (0..turns).map(request).collect()
}

/// Messages of the Vercel AI SDK, as applications store them.
pub(super) fn ui_messages(turns: usize) -> Vec<Value> {
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
pub(super) fn converse(turns: usize) -> Value {
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
pub(super) fn recorded(turns: usize) -> Vec<Value> {
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
pub(super) fn cline(turns: usize) -> Vec<Value> {
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

/// A request of Gemini, whose calls have no ids.
pub(super) fn gemini_without_ids(turns: usize) -> Value {
    let mut all = Vec::new();
    let mut add = |role: &str, part: Value| all.push(json!({"role": role, "parts": [part]}));
    for turn in 0..turns {
        add("user", json!({"text": said("question", turn)}));
        add("model", json!({"functionCall": {"name": "look", "args": {"at": turn}}}));
        let response = json!({"output": said("result", turn)});
        add("user", json!({"functionResponse": {"name": "look", "response": response}}));
        add("model", json!({"text": said("answer", turn)}));
    }
    json!({"contents": all})
}

/// A dialogue of a dataset, whose calls have no ids.
pub(super) fn sharegpt(turns: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |from: &str, value: String| all.push(json!({"from": from, "value": value}));
    for turn in 0..turns {
        add("human", said("question", turn));
        add("function_call", json!({"name": "look", "arguments": {"at": turn}}).to_string());
        add("observation", said("result", turn));
        add("gpt", said("answer", turn));
    }
    all
}

/// A chat history of aider, without calls and results.
pub(super) fn aider(turns: usize) -> String {
    let turn = |turn: usize| {
        let [question, result, answer] = ["question", "result", "answer"].map(|what| said(what, turn));
        format!("#### {}  \n\n{}\n\n> {}  \n\n", question.trim(), answer.trim(), result.trim())
    };
    let turns: String = (0..turns).map(turn).collect();
    format!("\n# aider chat started at 2026-05-22 09:00:00\n\n> Aider v0.86.2  \n\n{turns}")
}

/// Responses with a shell and a computer: the output of one is a list of streams, that of the other is a picture.
pub(super) fn shell_and_computer(turns: usize) -> Value {
    let mut items = Vec::new();
    for turn in 0..turns {
        let outcome = json!({"type": "exit", "exit_code": turn});
        let streams = [
            json!({"stdout": said("result", turn), "stderr": "", "outcome": outcome}),
            json!({"stdout": "", "stderr": said("result", turn), "outcome": outcome}),
        ];
        let picture = json!({"type": "computer_screenshot", "image_url": "https://example.org/screen.png"});
        items.extend([
            json!({"role": "user", "content": said("question", turn)}),
            json!({"type": "shell_call", "call_id": format!("s{turn}"), "action": {"commands": ["ls", "cat a"]}}),
            json!({"type": "shell_call_output", "call_id": format!("s{turn}"), "output": streams}),
            json!({"type": "computer_call", "call_id": format!("p{turn}"), "action": {"type": "click"}}),
            json!({"type": "computer_call_output", "call_id": format!("p{turn}"), "output": picture}),
        ]);
    }
    json!({"input": items})
}
