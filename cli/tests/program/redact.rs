//! `--redact`: the output of the program has no keys, and is otherwise unchanged.

use std::path::Path;

use serde_json::{Value, json};

use super::support::*;

/// Invented keys, joined here from pieces, so that no scanner reports this file as a leak.
fn keys() -> [String; 3] {
    [
        ["sk-", "ant-api03-", &"a1B2".repeat(10)].concat(),
        ["gh", "p_", &"c3D4".repeat(9)].concat(),
        ["AK", "IA", "ABCDEFGHIJ234567"].concat(),
    ]
}

/// A request whose texts, arguments and results hold keys, and a value that cannot be searched.
fn request() -> String {
    let [anthropic, github, aws] = keys();
    let arguments =
        json!({"command": format!("curl -H 'x-api-key: {anthropic}'\n"), "password": "correct-horse"})
            .to_string();
    let messages = json!([
        {"role": "user", "content": format!("My token is {github}"), "note": 1.50},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "run", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": "c1", "content": format!("id {aws}; customer ACME-77")},
        {"role": "user", "content": [{"type": "image_url",
            "image_url": {"url": format!("data:image/png;base64,{}", "QUJD".repeat(40))}}]},
        {"role": "assistant", "content": "Nothing secret here."},
    ]);
    format!("{{\"model\":  \"m\", \"messages\": {messages}}}\n")
}

fn assert_clean(text: &str) {
    for key in keys().iter().map(String::as_str).chain(["correct-horse"]) {
        assert!(!text.contains(key), "{key} in {text}");
    }
}

const TOLD: &str = "epitome: redacted 1 anthropic-key, 1 assignment, 1 aws-access-key-id, 1 github-token\n";

#[test]
fn what_is_written_is_the_same_without_keys() {
    let folder = Folder::new();
    let path = folder.file("in.json", request());
    let out = folder.path("out.json");
    let done = run(&["compact", text(&path), "-o", text(&out), "--redact"]);
    assert_eq!(done.code, 0);
    assert_eq!(
        done.err,
        format!(
            "epitome: wrote {}\n{TOLD}epitome: not searched: 1 value that is encrypted, signed or base64 (182 bytes)\n",
            out.display()
        )
    );
    let after = read(&out);
    assert_clean(&after);
    // Everything except the keys is unchanged, byte for byte.
    let [anthropic, github, aws] = keys();
    let expected = request()
        .replace(&anthropic, "[redacted:anthropic-key]")
        .replace(&github, "[redacted:github-token]")
        .replace(&aws, "[redacted:aws-access-key-id]")
        .replace("correct-horse", "[redacted:assignment]");
    assert_eq!(after, expected);
    let arguments = json_of(&out)["messages"][1]["tool_calls"][0]["function"]["arguments"].clone();
    let arguments: Value = serde_json::from_str(arguments.as_str().unwrap()).unwrap();
    assert_eq!(arguments["password"], "[redacted:assignment]");
    // A second redaction changes nothing.
    let again = folder.path("again.json");
    let done = run(&["compact", text(&out), "-o", text(&again), "--redact"]);
    assert!(done.err.contains("\nepitome: nothing was redacted\n"), "{}", done.err);
    assert_eq!(read(&again), after);
    // JSONL is redacted line by line.
    let lines = folder.file("in.jsonl", jsonl(json_of(&path)["messages"].as_array().unwrap()));
    let done = run(&["compact", text(&lines), "-o", "-", "--redact"]);
    assert_clean(&done.out);
    assert!(done.err.contains(TOLD) && done.out.lines().count() == 5, "{}", done.err);
}

#[test]
fn conversions_are_redacted() {
    let folder = Folder::new();
    let path = folder.file("in.json", request());
    for to in ["openai-chat", "openai-responses", "anthropic", "gemini"] {
        let done = run(&["convert", text(&path), "--to", to, "--redact"]);
        assert_clean(&done.out);
        assert!(done.err.contains(TOLD), "{}", done.err);
        run_with(&["validate", "-", "--profile", to, "--from", to], done.out.as_bytes()).ok();
        let plain = run(&["convert", text(&path), "--to", to]).ok();
        let shape = |text: &str| text.split('"').count();
        assert_eq!(shape(&plain), shape(&done.out), "{to}");
        let told: Value =
            serde_json::from_str(&run(&["convert", text(&path), "--to", to, "--redact", "--json"]).err)
                .unwrap();
        assert_eq!(told["secrets"]["redacted"]["github-token"], 1, "{told}");
        assert_eq!(told["secrets"]["not_searched"], 1, "{told}");
    }
}

#[test]
fn what_is_shown_is_redacted_and_searched_so() {
    let folder = Folder::new();
    let path = folder.file("in.json", request());
    let done = run(&["show", text(&path), "--redact"]);
    assert_clean(&done.out);
    assert!(done.err.starts_with(TOLD), "{}", done.err);
    assert!(
        done.out.contains("command:\n       curl -H 'x-api-key: [redacted:anthropic-key]'\n"),
        "{}",
        done.out
    );
    assert!(done.out.contains("password: [redacted:assignment]"), "{}", done.out);
    let found = run(&["show", text(&path), "--redact", "--grep", "redacted:(github|aws)"]).ok();
    assert_eq!(found.lines().filter(|line| line.starts_with('#')).count(), 2);
    let none = run(&["show", text(&path), "--redact", "--grep", &keys()[0]]);
    assert_eq!((none.code, none.out.as_str()), (1, ""));
}

#[test]
fn sessions_are_redacted_on_their_way_out() {
    let folder = Folder::new();
    let path = folder.file("in.json", request());
    let store = format!("sqlite:{}", text(&folder.path("store.db")));
    let session = ["--store", &store, "--session", "s"];
    run(&[&["session", "import", text(&path)], &session[..]].concat()).ok();
    for (command, json) in [("show", true), ("show", false), ("log", true), ("log", false)] {
        let mut args = [&["session", command], &session[..]].concat();
        args.extend(json.then_some("--json"));
        let plain = run(&args);
        assert!(plain.out.contains(&keys()[1]), "the store keeps what was said");
        args.push("--redact");
        let done = run(&args);
        assert_clean(&done.out);
        assert_eq!((done.code, done.err.starts_with(TOLD)), (0, true), "{}", done.err);
    }
}

#[test]
fn the_users_own_list() {
    let folder = Folder::new();
    let path = folder.file("in.json", request());
    let list = folder.file("list", "# customers\n\n  Nothing secret \n/ACME-\\d+/\n");
    let done = run(&["show", text(&path), "--redact-list", text(&list)]);
    assert_clean(&done.out);
    assert!(
        done.out.contains("customer [redacted:listed]") && done.out.contains("\n  [redacted:listed] here.\n"),
        "{}",
        done.out
    );
    assert!(done.err.contains("2 listed"), "{}", done.err);

    let refused = |list: &Path, code: i32| {
        let refused =
            run(&["convert", text(&path), "--to", "gemini", "--redact-list", text(list)]).fails(code);
        assert!(refused.starts_with(&format!("epitome: {}: ", text(list))), "{refused}");
        refused
    };
    let wrong = folder.file("wrong", format!("fine\n/{SECRET}(/\n"));
    assert!(refused(&wrong, 2).contains("line 2: what stands between the slashes is no regular expression"));
    let empty = folder.file("empty", "/x*/\n");
    assert!(refused(&empty, 2).contains("line 1: this expression matches the empty text"));
    refused(&folder.path("none"), 4);
    let idle = run(&["compact", text(&path), "--keep", "50%", "--redact"]).fails(2);
    assert!(idle.contains("add -o OUT"), "{idle}");
}

#[test]
fn keys_in_the_names_of_speakers_are_redacted() {
    let folder = Folder::new();
    let name = ["ghp_", "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3i2"].concat();
    let mut said: Value = serde_json::from_str(&request()).unwrap();
    said["messages"][0]["name"] = json!(name);
    let path = folder.file("in.json", said.to_string());
    let store = format!("sqlite:{}", text(&folder.path("store.db")));
    let session = |command: &'static str| vec!["session", command, "--store", &store, "--session", "s"];
    run(&[session("import"), vec![text(&path)]].concat()).ok();
    for args in [
        vec!["show", text(&path)],
        vec!["convert", text(&path), "--to", "openai-chat"],
        vec!["convert", text(&path), "--to", "langchain"],
        vec!["compact", text(&path), "-o", "-"],
        [session("show"), vec!["--json"]].concat(),
        [session("log"), vec!["--json"]].concat(),
    ] {
        assert!(run(&args).out.contains(&name), "{args:?} shows no names: leave it out here");
        let done = run(&[&args[..], &["--redact"]].concat());
        assert_clean(&done.out);
        assert!(
            !done.out.contains(&name) && done.out.contains("[redacted:github-token]"),
            "{args:?}: {}",
            done.out
        );
        assert!(done.err.contains("2 github-token"), "{args:?}: {}", done.err);
    }
}
