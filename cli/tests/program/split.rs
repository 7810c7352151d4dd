//! `stats --by turn|tool`.

use serde_json::{Value, json};

use super::support::*;

/// The estimator, because debug builds need a while to load a vocabulary.
const ESTIMATE: &str = "--tokenizer=estimate";

#[test]
fn turns_show_the_growth() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(3)).unwrap());
    let split = run(&["stats", text(&file), "--by", "turn", "--json", ESTIMATE]).json();
    let whole = run(&["stats", text(&file), "--json", ESTIMATE]).json();
    let turns = split["turns"].as_array().unwrap();
    let column = |name: &str| turns.iter().map(|turn| turn[name].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(column("turn"), [0, 1, 2, 3]);
    assert_eq!(column("first_message"), [0, 1, 6, 11]);
    assert_eq!((column("messages"), column("calls")), (vec![1, 5, 5, 5], vec![0, 2, 2, 2]));
    let mut total = 0;
    for turn in turns {
        total += turn["tokens_added"].as_u64().unwrap();
        assert_eq!(turn["tokens_total"], total);
        assert_eq!((&turn["reported_input"], &turn["cached_percent"]), (&Value::Null, &Value::Null));
    }
    assert_eq!((&whole["tokens"], &split["tokens"]), (&json!(total), &json!(total)));
    assert_eq!(split["tokenizer"], "estimate-v2");

    let said = run(&["stats", text(&file), "--by", "turn", ESTIMATE]).ok();
    assert!(said.starts_with("16 messages in 3 turns, "), "{said}");
    assert_eq!(said.lines().count(), 3 + 4, "{said}");
}

/// A session whose responses have usage reports: 100 tokens, none cached; then 300, of which 150 are cached; then 100
/// again.
fn reported() -> String {
    let line = |at: usize, role: &str, content: &str, usage: Value| {
        let parent = at.checked_sub(1).map(|before| format!("u{before}"));
        let message = match role {
            "user" => json!({"role": role, "content": content}),
            _ => {
                let content = json!([{"type": "text", "text": content}]);
                json!({"role": role, "id": format!("m{at}"), "content": content, "usage": usage})
            }
        };
        let line = json!({"parentUuid": parent, "isSidechain": false, "cwd": "/p", "sessionId": "s", "type": role,
            "message": message, "uuid": format!("u{at}"), "timestamp": "2026-01-01T00:00:00Z"});
        format!("{line}\n")
    };
    let usage = |fresh: u64, cached: u64| {
        json!({"input_tokens": fresh, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0,
            "output_tokens": 5})
    };
    [
        line(0, "user", "Go", Value::Null),
        line(1, "assistant", "First", usage(100, 0)),
        line(2, "user", "And?", Value::Null),
        line(3, "assistant", "Second", usage(150, 150)),
        line(4, "assistant", "Third", usage(100, 0)),
    ]
    .concat()
}

#[test]
fn turns_show_what_was_reported_and_cached() {
    let folder = Folder::new();
    let file = folder.file("in.jsonl", reported());
    let turns = run(&["stats", text(&file), "--by", "turn", "--json", ESTIMATE]).json()["turns"].clone();
    let of = |turn: usize| (turns[turn]["reported_input"].clone(), turns[turn]["cached_percent"].clone());
    assert_eq!(turns.as_array().unwrap().len(), 2, "{turns}");
    assert_eq!(of(0), (json!(100), json!(0.0)));
    assert_eq!(of(1), (json!(100), json!(37.5)), "the last input; the share of both");
    let said = run(&["stats", text(&file), "--by", "turn", ESTIMATE]).ok();
    assert!(said.lines().last().unwrap().ends_with("        100     38 %"), "{said}");
}

#[test]
fn tools_are_sorted_by_what_they_cost() {
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let result = |id: &str, content: String| json!({"role": "tool", "tool_call_id": id, "content": content});
    let file_messages = json!([
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": null, "tool_calls": [call("a", "small"), call("b", "big\u{1b}[1m")]},
        result("a", "x".to_owned()),
        result("b", "many words ".repeat(50)),
        {"role": "assistant", "content": null, "tool_calls": [call("a", "big\u{1b}[1m")]},
        result("a", "many words ".repeat(90)),
        result("none", "to nothing".to_owned()),
    ]);
    let folder = Folder::new();
    let file = folder.file("in.json", file_messages.to_string());
    let split = run(&["stats", text(&file), "--by", "tool", "--json", ESTIMATE]).json();
    let tools = split["tools"].as_array().unwrap();
    let column = |name: &str| tools.iter().map(|tool| tool[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("tool"), [json!("big\u{1b}[1m"), json!("small"), Value::Null]);
    assert_eq!(
        (column("calls"), column("results")),
        (vec![json!(2), json!(1), json!(0)], vec![json!(2), json!(1), json!(1)],)
    );
    assert_eq!(column("largest_message"), [json!(5), json!(2), json!(6)], "a reused id is the later call's");
    let whole = run(&["stats", text(&file), "--json", ESTIMATE]).json();
    let of = |name: &str| {
        let kinds = whole["by_kind"].as_array().unwrap();
        kinds.iter().find(|kind| kind["name"] == name).unwrap()["tokens"].as_u64().unwrap()
    };
    let sum = |name: &str| column(name).iter().map(|tokens| tokens.as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("call_tokens"), sum("result_tokens")), (of("tool call"), of("tool result")));

    let said = run(&["stats", text(&file), "--by", "tool", ESTIMATE]).ok();
    assert!(said.contains("\nbig␛[1m ") && said.contains("\n(no call) "), "{said}");
    let none =
        run_with(&["stats", "-", "--by", "tool", ESTIMATE], br#"[{"role":"user","content":"Hi"}]"#).ok();
    assert!(none.ends_with("0 % of them calls and results of 0 tools\n"), "{none}");
}

#[test]
fn splits_of_many_and_wrong_ones() {
    let many =
        run(&["stats", text(&fixture("conversations.jsonl")), "--each", "--by", "turn", "--json", ESTIMATE])
            .json();
    assert!(many.as_array().unwrap().len() > 1 && many[0]["path"] == "/messages", "{many}");
    let said =
        run(&["stats", text(&fixture("conversations.jsonl")), "--each", "--by", "tool", ESTIMATE]).ok();
    assert!(said.starts_with("#0 /messages\n"), "{said}");
    let file = fixture("bom.json");
    assert!(run(&["stats", text(&file), "--by", "role"]).fails(2).contains("[possible values: turn, tool]"));
    let refused = run(&["stats", text(&file), "--by", "turn", "--tokenizer", "all"]).fails(2);
    assert!(refused.contains("--by counts with one counter"), "{refused}");
}
