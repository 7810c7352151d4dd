//! `stats`, `validate` and `--repair`.

use epitome::core::Profile;
use serde_json::{Value, json};

use super::support::*;

#[test]
fn stats_count_what_is_there() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(3)).unwrap());
    let stats = run(&["stats", text(&file), "--json"]).json();
    for (name, value) in [("messages", 16), ("turns", 3), ("groups", 10), ("calls", 6), ("orphan_results", 0)]
    {
        assert_eq!(stats[name], value, "{name}");
    }
    assert_eq!(stats["format"], "openai-chat");
    assert_eq!((&stats["token_basis"], &stats["tokenizer"]), (&json!("counted"), &json!("o200k_base")));
    let named = |list: &str, name: &str| {
        let all = stats[list].as_array().unwrap();
        all.iter().find(|share| share["name"] == name).unwrap_or(&Value::Null)["count"].clone()
    };
    assert_eq!(
        [named("by_role", "user"), named("by_role", "assistant"), named("by_role", "tool")],
        [3, 6, 6]
    );
    assert_eq!(
        [named("by_kind", "tool call"), named("by_kind", "tool result"), named("by_kind", "text")],
        [6, 6, 7]
    );
    let roles: u64 =
        stats["by_role"].as_array().unwrap().iter().map(|role| role["tokens"].as_u64().unwrap()).sum();
    assert_eq!(stats["tokens"], roles);
    let largest: Vec<u64> =
        stats["largest"].as_array().unwrap().iter().map(|one| one["tokens"].as_u64().unwrap()).collect();
    assert!(largest.len() == 5 && largest.is_sorted_by(|left, right| left >= right));
    let estimate = report(&file, &["--tokenizer", "estimate"])["tokens_before"].clone();
    assert_eq!(stats["tokens_estimated"], estimate);

    let said = run(&["stats", text(&file)]).ok();
    assert!(said.starts_with("16 messages, 3 turns, 10 groups, "), "{said}");
    assert!(said.contains(" tokens (counted by o200k_base); the estimate is "), "{said}");
    assert!(said.contains("\nlargest messages, counted from 0\n  message "), "{said}");
    assert!(!said.contains(SECRET));
}

#[test]
fn validate_names_every_violation_and_its_place() {
    for (name, violation) in [
        ("call-without-result.json", "message 2: a tool call without a result (unanswered_call)"),
        ("pending-call.json", "message 4: a tool call that has no result yet (pending_call)"),
        (
            "result-without-call.json",
            "message 3: a tool result without its call directly before it (orphan_result)",
        ),
    ] {
        let done = run(&["validate", text(&fixture(name))]);
        assert_eq!(done.code, 1);
        assert_eq!(done.out.lines().next(), Some(violation));
        assert!(
            done.out.ends_with("5 messages: 1 violation of openai-chat (messages are counted from 0)\n"),
            "{}",
            done.out
        );
        let done = run(&["validate", text(&fixture(name)), "--json"]);
        let found: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!((done.code, found["violations"].as_array().unwrap().len()), (1, 1));
        assert_eq!((&found["profile"], &found["messages"]), (&json!("openai-chat"), &json!(5)));
    }
    let valid = run(&["validate", text(&example("coding-agent.json"))]).ok();
    assert_eq!(valid, "74 messages: valid under openai-chat\n");
    let valid =
        run(&["validate", text(&fixture("reused-ids.json")), "--profile", "permissive", "--json"]).json();
    assert_eq!(valid["violations"], json!([]));
    let unknown = run(&["validate", text(&fixture("bom.json")), "--profile", "x"]).fails(2);
    assert!(unknown.contains("invalid value 'x' for '--profile"), "{unknown}");
}

fn violations(file: &std::path::Path, args: &[&str]) -> usize {
    let found = run(&[&["validate", text(file), "--json"], args].concat());
    let found: Value = serde_json::from_str(&found.out).unwrap();
    let all = found.as_array().cloned().unwrap_or_else(|| vec![found]);
    all.iter().map(|one| one["violations"].as_array().unwrap().len()).sum()
}

/// Readable fixtures, and a file with all the faults of real transcripts; each with its further arguments.
fn files(folder: &Folder) -> Vec<(std::path::PathBuf, Vec<&'static str>)> {
    let mut wild = messages(30);
    // Late and duplicate results, results without calls, calls without results, two user messages in a row.
    wild.swap(4, 10);
    wild.swap(40, 39);
    wild.insert(60, wild[59].clone());
    wild.remove(78);
    wild.insert(0, json!({"role": "tool", "tool_call_id": "zero", "content": SECRET}));
    wild.insert(90, json!({"role": "user", "content": SECRET}));
    wild.truncate(wild.len() - 2);
    vec![
        (fixture("bom.json"), vec![]),
        (fixture("call-without-result.json"), vec![]),
        (fixture("conversations.jsonl"), vec!["--each"]),
        (fixture("nested.json"), vec!["--at", "/history"]),
        (fixture("pending-call.json"), vec![]),
        (fixture("result-without-call.json"), vec![]),
        (fixture("reused-ids.json"), vec![]),
        (example("coding-agent.json"), vec![]),
        (example("support-chat.jsonl"), vec![]),
        (folder.file("wild.json", serde_json::to_string_pretty(&wild).unwrap()), vec![]),
        (folder.file("wild.jsonl", jsonl(&wild)), vec![]),
    ]
}

#[test]
fn compacting_adds_no_violation_and_repair_leaves_none() {
    let folder = Folder::new();
    let out = folder.path("out");
    let mut wrong = 0;
    for (file, place) in files(&folder) {
        let before = violations(&file, &place);
        wrong += usize::from(before > 0);
        for keep in ["10%", "50%", "90%", "100%"] {
            for strategy in ["truncate", "window"] {
                let args = [
                    &["compact", text(&file), "--keep", keep, "--strategy", strategy, "-o", text(&out)],
                    &place[..],
                ];
                run(&args.concat()).ok();
                assert!(violations(&out, &place) <= before, "{} {keep} {strategy}", file.display());
                run(&[&args.concat()[..], &["--repair"]].concat()).ok();
                assert_eq!(violations(&out, &place), 0, "{} {keep} {strategy}", file.display());
                assert_eq!(run(&[&["validate", text(&out)], &place[..]].concat()).code, 0);
            }
        }
    }
    assert_eq!(wrong, 5);
}

/// A repair makes the faulty transcript of `files` valid under every profile.
#[test]
fn repair_leaves_nothing_that_a_profile_forbids() {
    let folder = Folder::new();
    let out = folder.path("out");
    let wild =
        files(&folder).into_iter().filter(|(file, _)| file.file_stem().is_some_and(|stem| stem == "wild"));
    let mut done = [0; 2];
    for (file, _) in wild {
        for profile in Profile::ALL.map(Profile::as_str) {
            let report = report(&file, &["--repair", "--profile", profile, "-o", text(&out)]);
            for (sum, what) in done.iter_mut().zip(["left_out", "aborted"]) {
                *sum += report["repair"][what].as_u64().unwrap();
            }
            assert_eq!(violations(&out, &["--profile", profile]), 0, "{} {profile}", file.display());
        }
    }
    assert!(done.iter().all(|count| *count > 0), "{done:?}");
}

#[test]
fn repair_writes_the_form_that_it_read() {
    let folder = Folder::new();
    let out = folder.path("out.json");
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let call = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let messages = json!([
        said("assistant", "I begin."),
        said("user", "Go"),
        said("user", "on"),
        call,
        said("user", "Well?"),
        said("assistant", "Yes.")
    ]);
    let file = folder.file("in.json", json!({"system": "S", "messages": messages}).to_string());
    let report = report(&file, &["--repair", "--profile", "mistral", "-o", text(&out)]);
    let expected = json!({"left_out": 0, "moved": 0, "aborted": 0, "unrecorded": 1, "merged": 1,
        "put_between": 2, "without_reasoning": 0, "violations_left": 0});
    assert_eq!(report["repair"], expected);
    let after = json_of(&out);
    assert_eq!(after["system"], "S");
    assert_eq!(
        after["messages"][2]["content"],
        json!([{"type": "text", "text": "Go"}, {"type": "text", "text": "on"}])
    );
    assert_eq!(after["messages"][3]["content"][0]["signature"], "s");
    assert_eq!(violations(&out, &["--profile", "mistral", "--from", "anthropic"]), 0);
    let said = run(&["compact", text(&file), "--repair", "--profile", "mistral"]).ok();
    let line = "0 results left out, 0 moved, 0 calls answered as aborted, 1 call answered as not recorded, \
        1 message merged, 2 messages put between\n";
    assert!(said.contains(line), "{said}");
}

#[test]
fn repair_answers_a_custom_tool_in_its_own_form() {
    let folder = Folder::new();
    let out = folder.path("out.json");
    let call = json!({"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"});
    let said = |text: &str| json!({"role": "user", "content": text});
    let file = folder.file("in.json", json!({"input": [said("Fix it."), call, said("Well?")]}).to_string());
    assert_eq!(report(&file, &["--repair", "-o", text(&out)])["repair"]["unrecorded"], 1);
    let items = &json_of(&out)["input"];
    assert_eq!(items[2]["type"], "custom_tool_call_output", "{items}");
    assert_eq!(items[2]["call_id"], "c1");
}

#[test]
fn reused_ids_pair_with_the_nearest_call() {
    let folder = Folder::new();
    let out = folder.path("out.json");
    let report = report(&fixture("reused-ids.json"), &["--keep", "50%", "-o", text(&out)]);
    assert_eq!(report["verdicts"], "KKDDDDDKKK");
    let whole = json_of(&fixture("reused-ids.json"));
    let kept: Vec<Value> = [0, 1, 9, 10, 11, 12].iter().map(|at| whole[*at].clone()).collect();
    let left = json_of(&out);
    // A call and its result stay or go together, with any ids.
    let count =
        |messages: &[Value], role: &str| messages.iter().filter(|message| message["role"] == role).count();
    let calls = left.as_array().unwrap().iter().filter(|message| message["tool_calls"].is_array()).count();
    assert_eq!(calls, count(left.as_array().unwrap(), "tool"));
    assert_eq!(left.as_array().unwrap().len(), kept.len());
    assert_eq!(run(&["validate", text(&out)]).code, 0);
}

#[test]
fn repair_says_what_it_did() {
    let folder = Folder::new();
    let out = folder.path("out.json");
    for (name, left_out, aborted, unrecorded) in [
        ("call-without-result.json", 0, 0, 1),
        ("pending-call.json", 0, 1, 0),
        ("result-without-call.json", 1, 0, 0),
        ("bom.json", 0, 0, 0),
    ] {
        let report = report(&fixture(name), &["--repair", "-o", text(&out)]);
        let expected = json!({"left_out": left_out, "moved": 0, "aborted": aborted, "unrecorded": unrecorded,
            "merged": 0, "put_between": 0, "without_reasoning": 0, "violations_left": 0});
        assert_eq!(report["repair"], expected, "{name}");
    }
    let file = fixture("call-without-result.json");
    run(&["compact", text(&file), "--repair", "-o", text(&out)]).ok();
    let (before, mut after) = (json_of(&file), json_of(&out));
    let added = after.as_array_mut().unwrap().remove(3);
    assert_eq!((&added["role"], &added["tool_call_id"], after), (&json!("tool"), &json!("call_1"), before));
}

#[test]
fn a_plan_that_would_leave_nothing_is_refused() {
    let folder = Folder::new();
    let file = folder.file("lone.json", r#"[{"role":"tool","tool_call_id":"c","content":"4"}]"#);
    let says = run(&["compact", text(&file), "--repair"]).fails(2);
    assert!(
        says.contains("--repair: no message is left, because each one breaks a rule of openai-chat"),
        "{says}"
    );
    let empty = folder.file("empty.json", r#"[{"role":"user","content":null}]"#);
    let says = run(&["compact", text(&empty), "--keep", "50%"]).fails(2);
    assert!(says.contains("no message is left, because none has content that can be read"), "{says}");
}

/// Gemini has no ids: a result that a repair adds names its tool, also under the rules of another provider.
#[test]
fn a_repair_under_other_rules_writes_results_that_find_their_calls() {
    let folder = Folder::new();
    let (call, out) = (json!({"functionCall": {"name": "ls", "args": {}}}), folder.path("out.json"));
    let answer = json!({"functionResponse": {"name": "ls", "response": {"files": 1}}});
    let contents = json!({"contents": [
        {"role": "user", "parts": [{"text": "Which files?"}]}, {"role": "model", "parts": [call, call]},
        {"role": "user", "parts": [answer]}, {"role": "user", "parts": [{"text": "And now?"}]},
    ]});
    let file = folder.file("gemini.json", contents.to_string());
    for profile in ["gemini", "openai-chat", "anthropic"] {
        report(&file, &["--repair", "--profile", profile, "-o", text(&out)]);
        let written = json_of(&out).to_string();
        assert_eq!(written.matches(r#""functionResponse":{"name":"ls""#).count(), 2, "{profile}: {written}");
    }
}
