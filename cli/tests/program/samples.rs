//! One conversation in every format that the program reads.

mod newer;

use epitome::compactors::StrategySpec;
use epitome::core::Profile;
use epitome::wire::CONVERSION_TARGETS;
use serde_json::{Value, json};

use crate::support::{Folder, read, run, text};

/// One file: its name and its contents.
pub(crate) struct Sample {
    /// Format for `--from`.
    pub(crate) from: &'static str,
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The formats that `convert` writes: these samples are its output.
pub(crate) const TARGETS: [&str; CONVERSION_TARGETS.len()] = {
    let (mut names, mut at) = ([""; CONVERSION_TARGETS.len()], 0);
    while at < names.len() {
        names[at] = CONVERSION_TARGETS[at].as_str();
        at += 1;
    }
    names
};

/// The rules that `--profile` takes.
pub(crate) const PROFILES: [&str; Profile::ALL.len()] = {
    let (mut names, mut at) = ([""; Profile::ALL.len()], 0);
    while at < names.len() {
        names[at] = Profile::ALL[at].as_str();
        at += 1;
    }
    names
};

/// Every strategy that needs no model, in the notation of `--strategy`: with its required parameters, or with
/// parameters that make it change a conversation of a few turns. A new strategy is included by its name alone.
pub(crate) fn strategies() -> Vec<String> {
    let told = |name: &str| match name {
        "window" => ":turns=1",
        "tool-results" | "tool-drop" | "tool-digest" => ":keep=1",
        "reasoning" => ":profile=permissive",
        "clamp" => ":max=20",
        "context-window" => ":window=4000:output=100",
        _ => "",
    };
    let each = StrategySpec::known().map(|(name, _)| format!("{name}{}", told(name)));
    let each = each.chain(["tool-results:keep=1 | truncate".to_owned()]);
    each.filter(|text| !text.parse::<StrategySpec>().unwrap().summarizes()).collect()
}

/// A conversation of this many turns in every format, in each file form of the format.
pub(crate) fn all(turns: usize) -> Vec<Sample> {
    let folder = Folder::new();
    let mut samples = Vec::new();
    let chat = chat(turns);
    let whole = json!({"model": "m", "messages": chat}).to_string();
    let file = folder.file("chat.json", &whole);
    for format in TARGETS {
        let out = folder.path("out.json");
        run(&["convert", text(&file), "--to", format, "-o", text(&out)]).ok();
        samples.push(Sample { from: "auto", name: format!("{format}.json"), text: read(&out) });
    }
    let lines = |lines: Vec<Value>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let mut more = |name: &str, text| samples.push(Sample { from: "auto", name: name.to_owned(), text });
    more("chat.jsonl", lines(chat));
    more("codex.jsonl", lines(codex(turns)));
    more("claude-code.jsonl", lines(claude_code(turns)));
    more("gemini-without-ids.json", newer::gemini_without_ids(turns).to_string());
    more("gemini-cli.json", gemini_cli(turns).1);
    more("gemini-cli.jsonl", lines(gemini_cli(turns).0));
    more("openhands.json", Value::from(openhands(turns)).to_string());
    more("openhands-gui.json", Value::from(openhands_of_the_interface(turns)).to_string());
    more("openhands-old.json", Value::from(openhands_without_calls(turns)).to_string());
    more("openhands.jsonl", lines(vec![json!({"instance_id": "one", "history": openhands(turns)})]));
    more("pi.jsonl", lines(pi(turns)));
    more("swe-agent.json", swe_agent(turns));
    more("goose.jsonl", lines(goose(turns)));
    more("ai-sdk.json", Value::from(newer::ui_messages(turns)).to_string());
    more("bedrock-converse.json", newer::converse(turns).to_string());
    more("otel-genai.json", Value::from(newer::recorded(turns)).to_string());
    more("cline.json", Value::from(newer::cline(turns)).to_string());
    more(
        "opencode.json",
        json!({"info": {"id": "s", "title": "t"}, "messages": newer::opencode(turns)}).to_string(),
    );
    more("pydantic-ai.json", Value::from(newer::pydantic_ai(turns)).to_string());
    more("adk.json", json!({"id": "s", "appName": "a", "events": newer::adk(turns)}).to_string());
    more("openhands-v1.json", Value::from(newer::openhands_v1(turns)).to_string());
    more(
        "continue.json",
        json!({"sessionId": "s", "title": "t", "history": newer::continue_dev(turns)}).to_string(),
    );
    more("copilot-cli.jsonl", lines(newer::copilot_cli(turns)));
    more("copilot-chat.json", json!({"version": 3, "requests": newer::copilot_chat(turns)}).to_string());
    more("sharegpt.json", Value::from(vec![json!({"conversations": newer::sharegpt(turns)})]).to_string());
    more("aider.md", newer::aider(turns));
    more("shell-and-computer.json", newer::shell_and_computer(turns).to_string());
    samples
}

/// Text of a turn. Results are longer, like those of real tools, so that a digest of a result saves tokens.
fn said(what: &str, turn: usize) -> String {
    let times = if what == "result" { 48 } else { 12 };
    format!("{what} number {turn}: {}", "a few more words of it. ".repeat(times))
}

fn chat(turns: usize) -> Vec<Value> {
    let mut all = vec![json!({"role": "system", "content": "Be brief."})];
    for turn in 0..turns {
        let function = json!({"name": "look", "arguments": format!("{{\"at\":{turn}}}")});
        let call = json!({"id": format!("c{turn}"), "type": "function", "function": function});
        all.push(json!({"role": "user", "content": said("question", turn)}));
        all.push(json!({"role": "assistant", "content": said("plan", turn), "tool_calls": [call]}));
        all.push(
            json!({"role": "tool", "tool_call_id": format!("c{turn}"), "content": said("result", turn)}),
        );
        all.push(json!({"role": "assistant", "content": said("answer", turn)}));
    }
    all
}

fn codex(turns: usize) -> Vec<Value> {
    let line = |kind: &str, payload: Value| json!({"timestamp": "t", "type": kind, "payload": payload});
    let item = |payload| line("response_item", payload);
    let message = |role: &str, kind: &str, text: String| {
        item(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
    };
    let mut all = vec![line("session_meta", json!({"id": "s", "cwd": "/", "instructions": null}))];
    for turn in 0..turns {
        let id = format!("c{turn}");
        all.push(message("user", "input_text", said("question", turn)));
        all.push(line("turn_context", json!({"cwd": "/", "model": "m"})));
        let summary = json!([{"type": "summary_text", "text": "thinking"}]);
        all.push(item(
            json!({"type": "reasoning", "summary": summary, "content": null, "encrypted_content": "gAAAA"}),
        ));
        all.push(item(json!({"type": "function_call", "name": "look", "arguments": "{}", "call_id": id})));
        all.push(item(
            json!({"type": "function_call_output", "call_id": id, "output": said("result", turn)}),
        ));
        all.push(message("assistant", "output_text", said("answer", turn)));
    }
    all
}

fn claude_code(turns: usize) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut add = |role: &str, message: Value| {
        let parent = all.last().map(|last| last["uuid"].clone());
        all.push(json!({"parentUuid": parent, "isSidechain": false, "sessionId": "s", "type": role,
            "message": message, "uuid": format!("u{}", all.len())}));
    };
    for turn in 0..turns {
        let (id, response) = (format!("c{turn}"), format!("r{turn}"));
        add("user", json!({"role": "user", "content": said("question", turn)}));
        let thinking = json!([{"type": "thinking", "thinking": "hm", "signature": "sealed"}]);
        let assistant = |content: Value| json!({"id": response, "type": "message", "role": "assistant", "content": content});
        add("assistant", assistant(thinking));
        let call = json!([{"type": "tool_use", "id": id, "name": "look", "input": {"at": turn}}]);
        add("assistant", assistant(call));
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": said("result", turn)}]);
        add("user", json!({"role": "user", "content": result}));
        let answer = json!([{"type": "text", "text": said("answer", turn)}]);
        add(
            "assistant",
            json!({"id": format!("a{turn}"), "type": "message", "role": "assistant", "content": answer}),
        );
    }
    all
}

/// A session of Gemini CLI, as lines and as one document.
fn gemini_cli(turns: usize) -> (Vec<Value>, String) {
    let mut messages = Vec::new();
    for turn in 0..turns {
        let id = format!("c{turn}");
        messages.push(json!({"id": format!("q{turn}"), "timestamp": "t", "type": "user", "content": said("question", turn)}));
        let response = json!({"id": id, "name": "look", "response": {"output": said("result", turn)}});
        let call = json!({"id": id, "name": "look", "args": {}, "status": "success",
            "result": [{"functionResponse": response}]});
        let thought = json!({"subject": "Plan", "description": "look", "timestamp": "t"});
        messages
            .push(json!({"id": format!("g{turn}"), "timestamp": "t", "type": "gemini", "content": "Look.",
            "thoughts": [thought], "toolCalls": [call]}));
        messages.push(json!({"id": format!("a{turn}"), "timestamp": "t", "type": "gemini", "content": said("answer", turn)}));
    }
    let head =
        json!({"sessionId": "s", "projectHash": "p", "startTime": "t", "lastUpdated": "t", "kind": "main"});
    let lines = core::iter::once(head).chain(messages.clone()).collect();
    (lines, json!({"sessionId": "s", "projectHash": "p", "messages": messages}).to_string())
}

fn openhands(turns: usize) -> Vec<Value> {
    let mut all = vec![json!({"source": "agent", "action": "system", "args": {"content": "Be brief."}})];
    for turn in 0..turns {
        let id = format!("c{turn}");
        let function = json!({"name": "ls", "arguments": "{}"});
        let call = json!({"id": id, "type": "function", "function": function});
        let choice = json!({"message": {"role": "assistant", "content": "look", "tool_calls": [call]}});
        let response = json!({"id": format!("r{turn}"), "choices": [choice]});
        let about = json!({"function_name": "ls", "tool_call_id": id, "model_response": response});
        all.push(json!({"source": "user", "action": "message", "args": {"content": said("question", turn)}}));
        all.push(json!({"source": "agent", "action": "run", "tool_call_metadata": about, "args": {"thought": "look"}}));
        all.push(json!({"source": "agent", "cause": all.len() - 1, "observation": "run", "tool_call_metadata": about,
            "content": said("result", turn)}));
        all.push(json!({"source": "agent", "action": "message", "args": {"content": said("answer", turn)}}));
    }
    numbered(all)
}

/// The events of a run in the interface: each with a `message` for people, and with changes of state between them.
fn openhands_of_the_interface(turns: usize) -> Vec<Value> {
    let state = |state: &str| {
        json!({"source": "environment", "message": "", "observation": "agent_state_changed", "content": "",
            "extras": {"agent_state": state}})
    };
    let nothing = |source: &str| json!({"source": source, "message": "No observation", "cause": 1, "observation": "null", "content": "", "extras": {}});
    let mut all = vec![state("loading"), nothing("environment"), state("init")];
    for mut event in openhands(turns) {
        let (is_users, is_message) = (event["source"] == "user", event["action"] == "message");
        event["message"] = json!("Words for people");
        event["timestamp"] = json!("2025-01-20T20:29:32.262843");
        all.push(event);
        if is_users {
            all.push(state("running"));
        }
        if is_message {
            all.push(nothing("agent"));
        }
    }
    all.push(state("awaiting_user_input"));
    numbered(all)
}

/// The events of a version that did not record the calls of the model: an observation names the action that caused it.
fn openhands_without_calls(turns: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for turn in 0..turns {
        all.push(json!({"source": "user", "action": "message", "args": {"content": said("question", turn)}}));
        let args = json!({"command": "ls -la", "thought": said("plan", turn)});
        all.push(
            json!({"source": "agent", "action": "run", "message": "Running command: ls -la", "args": args}),
        );
        all.push(json!({"source": "agent", "cause": all.len() - 1, "observation": "run", "content": said("result", turn),
            "extras": {"command": "ls -la"}}));
        all.push(json!({"source": "agent", "action": "message", "args": {"content": said("answer", turn)}}));
    }
    numbered(all)
}

fn numbered(mut events: Vec<Value>) -> Vec<Value> {
    for (at, event) in events.iter_mut().enumerate() {
        event["id"] = json!(at);
    }
    events
}

fn pi(turns: usize) -> Vec<Value> {
    let mut all =
        vec![json!({"type": "session", "id": "s", "timestamp": "t", "cwd": "/", "provider": "anthropic"})];
    let mut add = |message: Value| {
        let parent = (all.len() > 1).then(|| format!("m{}", all.len() - 1));
        all.push(
            json!({"id": format!("m{}", all.len()), "parentId": parent, "type": "message", "timestamp": "t",
            "message": message}),
        );
    };
    let words = |text: String| json!([{"type": "text", "text": text}]);
    for turn in 0..turns {
        let id = format!("c{turn}");
        add(json!({"role": "user", "content": said("question", turn)}));
        add(
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
            {"type": "toolCall", "id": id, "name": "look", "arguments": {}}]}),
        );
        add(
            json!({"role": "toolResult", "toolCallId": id, "toolName": "look", "content": words(said("result", turn)),
            "isError": false}),
        );
        add(json!({"role": "assistant", "content": words(said("answer", turn))}));
    }
    all
}

fn swe_agent(turns: usize) -> String {
    let mut all = vec![
        json!({"role": "system", "content": "Fix it.", "agent": "main", "message_type": "system_prompt"}),
    ];
    for turn in 0..turns {
        let id = format!("c{turn}");
        let call = json!({"function": {"arguments": "{}", "name": "ls"}, "id": id, "type": "function"});
        all.push(json!({"role": "user", "content": said("question", turn), "agent": "main"}));
        all.push(json!({"role": "assistant", "content": "Look.", "thought": "Look.", "action": "ls", "agent": "main",
            "tool_calls": [call]}));
        all.push(
            json!({"role": "tool", "content": said("result", turn), "agent": "main", "tool_call_ids": [id]}),
        );
        all.push(json!({"role": "assistant", "content": said("answer", turn), "agent": "main"}));
    }
    json!({"environment": "main", "trajectory": [], "history": all, "info": {}}).to_string()
}

fn goose(turns: usize) -> Vec<Value> {
    let mut all = vec![
        json!({"working_dir": "/", "description": "d", "schedule_id": null, "message_count": 4 * turns}),
    ];
    let mut add =
        |role: &str, content: Value| all.push(json!({"role": role, "created": 1, "content": [content]}));
    let words = |text: String| json!({"type": "text", "text": text});
    for turn in 0..turns {
        let id = format!("c{turn}");
        add("user", words(said("question", turn)));
        let call = json!({"status": "success", "value": {"name": "look", "arguments": {}}});
        add("assistant", json!({"type": "toolRequest", "id": id, "toolCall": call}));
        let result = json!({"status": "success", "value": [words(said("result", turn))]});
        add("user", json!({"type": "toolResponse", "id": id, "toolResult": result}));
        add("assistant", words(said("answer", turn)));
    }
    all
}
