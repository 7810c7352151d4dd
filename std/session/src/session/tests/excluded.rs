//! Messages that compactions of Microsoft Agent Framework have excluded are hidden here.

use futures::executor::block_on;
use serde_json::{Value, json};

use crate::history::History;
use crate::message::Part;
use crate::provider::HistoryProvider;
use crate::session::{AgentSession, State};

fn message(role: &str, content: &Value, excluded: bool) -> Value {
    let properties = match excluded {
        true => {
            json!({"_excluded": true, "_exclude_reason": "truncation", "_group": {"id": "group_m1", "index": 1}})
        }
        false => json!({"_excluded": false}),
    };
    json!({"type": "message", "role": role, "contents": [content], "additional_properties": properties})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn result(id: &str) -> Value {
    json!({"type": "function_result", "call_id": id, "result": format!("of {id}")})
}

fn open(session: &mut AgentSession) -> History {
    let mut state = match session.state_mut().remove("in_memory") {
        Some(Value::Object(state)) => state,
        _ => State::new(),
    };
    block_on(HistoryProvider::in_memory().open(session, &mut state)).unwrap()
}

fn session(messages: &[Value]) -> AgentSession {
    let dict = json!({
        "type": "session", "session_id": "s", "service_session_id": null, "state": {"in_memory": {"messages": messages}},
    });
    AgentSession::from_dict(dict).unwrap()
}

fn shown(history: &History) -> Vec<String> {
    let of = |part: &Part| match part {
        Part::Text(text) => text.to_string(),
        Part::ToolCall(call) => format!("call {}", call.id.as_str()),
        Part::ToolResult(result) => format!("result {}", result.call_id.as_str()),
        other => format!("{other:?}"),
    };
    history.projection().map(|message| message.parts().iter().map(of).collect::<String>()).collect()
}

fn conversation() -> Vec<Value> {
    vec![
        message("system", &text("Be brief."), true),
        message("user", &text("First."), true),
        message("assistant", &text("Here is a summary."), false),
        message("assistant", &call("c1"), true),
        message("tool", &result("c1"), true),
        message("assistant", &text("Found."), true),
        message("user", &text("Second."), true),
        message("assistant", &call("c2"), true),
        message("tool", &result("c2"), false),
        message("assistant", &text("Found too."), false),
        message("user", &text("Third."), true),
        message("assistant", &text("Well."), true),
    ]
}

#[test]
fn what_is_excluded_is_hidden_in_whole_groups_unless_it_is_protected() {
    let mut session = session(&conversation());
    let history = open(&mut session);
    // The system message, the first and the last request and the newest step stay. A group stays if a part of it stays.
    let expected = [
        "Be brief.",
        "First.",
        "Here is a summary.",
        "Second.",
        "call c2",
        "result c2",
        "Found too.",
        "Third.",
        "Well.",
    ];
    assert_eq!((shown(&history), history.head().0), (expected.map(String::from).to_vec(), 12));
    // A reload gives the same session, without a new decision.
    let dict = session.to_dict().unwrap();
    assert_eq!(dict["state"]["in_memory"]["messages"], json!(conversation()));
    let mut again = AgentSession::from_dict(dict.clone()).unwrap();
    let reloaded = open(&mut again);
    assert_eq!((reloaded.live(), reloaded.revision()), (history.live(), history.revision()));
    assert_eq!(again.to_dict().unwrap(), dict);
}

#[test]
fn marks_that_come_later_are_seen_in_what_is_known() {
    let unmarked: Vec<Value> = conversation()
        .into_iter()
        .map(|mut message| {
            message["additional_properties"] = json!({});
            message
        })
        .collect();
    let mut first = session(&unmarked);
    assert_eq!(open(&mut first).live().len(), 12);
    let mut dict = first.to_dict().unwrap();
    let list = dict["state"]["in_memory"]["messages"].as_array_mut().unwrap();
    for (here, there) in list.iter_mut().zip(conversation()) {
        here["additional_properties"] = there["additional_properties"].clone();
    }
    list.push(message("user", &text("Fourth."), false));
    let history = open(&mut AgentSession::from_dict(dict).unwrap());
    let shown = shown(&history);
    assert_eq!((shown.len(), shown.last().unwrap().as_str()), (10, "Fourth."), "{shown:?}");
    assert!(!shown.contains(&"Found.".to_owned()));
}

#[test]
fn several_answers_in_one_message_are_marked_together() {
    let mut answers = message("tool", &result("c1"), true);
    answers["contents"] = json!([result("c1"), result("c2")]);
    let mut calls = message("assistant", &call("c1"), true);
    calls["contents"] = json!([call("c1"), call("c2")]);
    let messages = [
        message("user", &text("First."), false),
        calls,
        answers,
        message("assistant", &text("Found."), false),
        message("user", &text("Second."), false),
    ];
    let history = open(&mut session(&messages));
    assert_eq!(
        (shown(&history), history.head().0),
        (vec!["First.".into(), "Found.".into(), "Second.".into()], 6)
    );
}
