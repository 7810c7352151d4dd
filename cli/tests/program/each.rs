//! `--each`: many conversations in one file.

use serde_json::{Value, json};

use super::support::*;

#[test]
fn one_that_is_infeasible_stays_and_the_others_are_done() {
    let folder = Folder::new();
    let mut long = messages(1);
    long[1]["content"] = json!(format!("{SECRET} ").repeat(500));
    let whole = json!([messages(12), long, messages(12)]);
    let file = folder.file("in.json", serde_json::to_string_pretty(&whole).unwrap());
    let out = folder.path("out.json");
    let args = ["compact", text(&file), "--each", "--window", "1500", "-o", text(&out)];
    let done = run(&args);
    assert_eq!(done.code, 3);
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines[0].starts_with("conversation  messages  tokens was"), "{}", done.out);
    assert!(lines[1].starts_with("/0 ") && lines[1].contains(" groups dropped"), "{}", done.out);
    assert!(
        lines[2].starts_with("/1 ") && lines[2].contains("infeasible, left as it is: what is protected has ")
    );
    assert!(lines[2].contains("shorten the largest of it: message 1 (user, "), "{}", done.out);
    assert!(
        lines[5].starts_with("3 conversations, 2 compacted, 1 infeasible and not counted; "),
        "{}",
        done.out
    );
    let left = json_of(&out);
    assert_eq!(left[1], whole[1]);
    assert!(left[0].as_array().unwrap().len() < 61 && left[0] == left[2]);

    let done = run(&[&args[..], &["--json"]].concat());
    let rows: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(
        (done.code, rows[1]["exit_code"].as_u64(), rows[1]["path"].as_str()),
        (3, Some(3), Some("/1"))
    );
    assert!(rows[1]["error"].as_str().unwrap().contains("raise --window"));
    assert_eq!(rows[2]["conversation"], 2);
}

#[test]
fn lines_are_told_apart() {
    let file = fixture("conversations.jsonl");
    let said = run(&["compact", text(&file), "--each", "--keep", "50%"]).ok();
    let names: Vec<&str> = said.lines().skip(1).take(3).map(|line| &line[..12]).collect();
    assert_eq!(names, ["#0 /messages", "#1 /messages", "#2 /messages"]);
    assert!(
        said.ends_with("3 conversations, 1 compacted; 108 tokens are now 101, 94 % of what they were\n"),
        "{said}"
    );
    assert!(said.contains("unchanged: nothing to drop, goal missed"), "{said}");
}

#[test]
fn a_bad_one_stops_all_and_is_named() {
    let folder = Folder::new();
    let whole = json!([{"traj": messages(1)}, {"traj": [{"role": "ghost", "content": SECRET}]}]);
    let file = folder.file("in.json", whole.to_string());
    let out = folder.file("out.json", "old");
    let args = ["compact", text(&file), "--each", "--at", "/traj", "--keep", "50%", "-o", text(&out)];
    assert!(run(&args).fails(2).contains("at /1/traj/0/role: unknown role `ghost`"));
    assert_eq!(read(&out), "old");
    // An error in the command line is not reported as an error of a conversation.
    let message =
        run(&["compact", text(&file), "--each", "--at", "/traj", "--window", "5", "--reserve", "9"]).fails(2);
    assert!(message.starts_with("epitome: the reserve (9) leaves nothing of the window (5)"), "{message}");
}

/// An export may contain conversations without messages. Such a conversation alone does not show the format of the
/// file.
#[test]
fn an_export_has_conversations_without_messages() {
    let said = json!({"id": "m", "message": {"id": "m", "author": {"role": "user"},
        "content": {"content_type": "text", "parts": ["Hello"]}, "recipient": "all"}, "parent": null, "children": []});
    let empty = json!({"title": "Empty", "mapping": {"r": {"id": "r", "message": null, "parent": null, "children": []}},
        "current_node": "r", "id": "c-2"});
    let full = json!({"title": "Full", "mapping": {"m": said}, "current_node": "m", "id": "c-1"});
    let folder = Folder::new();
    for export in [json!([full, empty]), json!([empty, full])] {
        let file = folder.file("conversations.json", export.to_string());
        let done = run(&["convert", text(&file), "--to", "openai-chat", "--each"]);
        assert_eq!(done.out, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}\n", "{}", done.err);
        assert!(done.err.starts_with("epitome: 1 conversation without messages left out\n"), "{}", done.err);
        assert_eq!(run(&["stats", text(&file), "--each", "--json"]).json().as_array().unwrap().len(), 2);
        let out = folder.path("out.jsonl");
        let keep = ["--to", "openai-chat", "--each", "--keep", "50%", "-o", text(&out)];
        let done = run(&[&["compact", text(&file)], &keep[..]].concat());
        assert!(done.err.contains("epitome: 1 conversation without messages left out\n"), "{}", done.err);
        assert_eq!(read(&out), "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}\n");
    }
    // A loss has the number that its conversation has in the input.
    let image = json!({"type": "file", "file": {"file_id": "f-1"}});
    let lossy =
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "Look."}, image]}]});
    let file = folder.file("lines.jsonl", format!("{}\n{lossy}\n", json!({"messages": []})));
    let done = run(&["convert", text(&file), "--to", "semantic-kernel", "--each", "--json"]);
    let report: Value = serde_json::from_str(&done.err).unwrap();
    assert_eq!((&report["conversations"], &report["left_out"]), (&json!(1), &json!(1)), "{report}");
    assert_eq!(report["losses"][0]["conversation"], 1, "{report}");
    let file = folder.file("conversations.json", json!([empty, empty]).to_string());
    let none = run(&["convert", text(&file), "--to", "openai-chat", "--each", "--from", "chatgpt"]).fails(2);
    assert!(none.contains("no conversation has messages"), "{none}");
}

/// A command for one conversation reports that the file has more.
#[test]
fn another_conversation_of_the_file_is_mentioned() {
    let line = |text: &str| {
        format!(
            "{}\n",
            json!({"conversations": [{"from": "human", "value": text}, {"from": "gpt", "value": "Yes."}]})
        )
    };
    let folder = Folder::new();
    let file = folder.file("lines.jsonl", format!("{}{}", line("One?"), line("Two?")));
    let store = format!("sqlite:{}", text(&folder.path("s.db")));
    for command in [
        &["compact", text(&file), "--keep", "50%"][..],
        &["validate", text(&file)],
        &["handoff", text(&file)],
        &["session", "import", text(&file), "--store", &store, "--session", "one"],
    ] {
        let done = run(command);
        assert!(done.err.contains("the file has 1 other conversation"), "{command:?}: {}", done.err);
    }
}

#[test]
fn stats_and_validate_take_each_too() {
    let file = fixture("conversations.jsonl");
    let stats = run(&["stats", text(&file), "--each", "--json"]).json();
    let counts: Vec<_> =
        stats.as_array().unwrap().iter().map(|one| one["messages"].as_u64().unwrap()).collect();
    assert_eq!(counts, [3, 5, 4]);
    let said = run(&["stats", text(&file), "--each"]).ok();
    assert!(said.starts_with("#0 /messages\n3 messages, 1 turn, "), "{said}");
    assert_eq!(
        run(&["validate", text(&file), "--each"]).ok(),
        "12 messages in 3 conversations: valid under openai-chat\n"
    );
    let valid = run(&["validate", text(&file), "--each", "--json"]).json();
    assert!(valid.as_array().unwrap().iter().all(|one| one["violations"] == json!([])));
    let folder = Folder::new();
    let orphan =
        json!([{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": SECRET}]);
    let file =
        folder.file("in.json", json!([orphan, [{"role": "user", "content": "a"}], orphan]).to_string());
    let done = run(&["validate", text(&file), "--each"]);
    assert_eq!(done.code, 1);
    assert!(
        done.out.starts_with("/0: message 1: ") && done.out.contains("\n/2: message 1: "),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("4 messages") || done.out.contains("5 messages in 3 conversations: 2 violations")
    );
}
