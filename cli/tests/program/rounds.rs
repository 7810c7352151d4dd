//! Several compactions of one conversation: `eval --rounds`, and a file that is compacted again.

use std::fs;

use serde_json::{Value, json};

use super::support::*;

#[test]
fn what_is_left_is_reported_by_round() {
    let folder = Folder::new();
    let file = folder.file("chat.json", json!({"messages": messages(30)}).to_string());
    let args = [
        "eval",
        text(&file),
        "--rounds",
        "3",
        "--keep",
        "30",
        "--strategy",
        "truncate",
        "--strategy",
        "agent",
    ];
    let report = run(&[&args[..], &["--json"]].concat()).json();
    let degradation = &report["degradation"];
    assert_eq!((degradation["conversations"].as_u64(), degradation["rounds"].as_u64()), (Some(1), Some(3)));
    assert!(report.get("shares").is_none() && report.get("canaries").is_none(), "{report}");
    let rows = degradation["shares"][0]["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["strategy"].as_str().unwrap()).collect();
    let oracles = ["(oracle: identifiers)", "(oracle: copied text)"];
    assert_eq!(
        names,
        [&["truncate", "agent", "(newest)", "(newest that fit)", "(random)"][..], &oracles].concat()
    );
    for row in rows {
        let after = row["after"].as_array().unwrap();
        assert_eq!(after.len(), 3, "{row}");
        assert!(after.iter().all(|after| after["tokens_left"].as_f64() <= Some(100.0)), "{row}");
    }
    let said = run(&args).ok();
    for expected in
        ["compacted 3 times", "keep 30%: identifiers", "keep 30%: written", "      1      2      3   once\n"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // The same command gives the same output.
    assert_eq!(run(&args).ok(), said);
}

#[test]
fn what_has_no_rounds_is_refused_with_a_remedy() {
    let folder = Folder::new();
    let short = folder.file("short.json", json!({"messages": messages(1)}).to_string());
    let turns = (0..20).map(|number| json!({"id": number, "role": "user", "text": "words"}));
    let labelled =
        json!({"messages": turns.collect::<Vec<_>>(), "questions": [{"text": "?", "evidence": [3]}]});
    let labelled = folder.file("labelled.json", labelled.to_string());
    let [short, labelled] = [&short, &labelled].map(|file| text(file));
    for (args, expected) in [
        (
            &["eval", short, "--rounds", "2"][..],
            "enough messages of the model for 2 compactions; give a longer one",
        ),
        (
            &["eval", labelled, "--rounds", "2"],
            "labelled questions, which say nothing of the turns behind a compaction: leave it",
        ),
        (&["eval", short, "--rounds", "1"], "2..=5"),
        (&["eval", short, "--rounds", "6"], "2..=5"),
        (&["eval", short, "--rounds", "2", "--canaries"], "--canaries"),
    ] {
        let error = run(args).fails(2);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

/// Steps of an agent, as Chat Completions: each has a call with a path, and a long result with an id.
fn steps(range: core::ops::Range<u32>) -> Vec<Value> {
    let step = |number: u32| {
        let arguments = json!({"path": format!("src/file{number}.rs")}).to_string();
        let call = json!({"id": format!("c{number}"), "type": "function", "function": {"name": "read", "arguments": arguments}});
        let result =
            format!("error E{} {}", 1_000 + number, "of the type that was expected here ".repeat(30));
        [
            json!({"role": "assistant", "content": format!("Step {number}"), "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": format!("c{number}"), "content": result}),
        ]
    };
    range.flat_map(step).collect()
}

/// A file has no attributions. Its ledger is recognised nevertheless: over several compactions a file keeps exactly the
/// messages that a session keeps, with one ledger.
#[test]
fn a_file_is_compacted_again_as_a_session_is() {
    let folder = Folder::new();
    let (store, options) = (
        format!("sqlite:{}", text(&folder.path("s.db"))),
        ["--strategy", "agent", "--trigger", "3000", "--goal", "1500"],
    );
    let session = |command: &str, more: &[&str]| {
        run(&[&["session", command, "--store", &store, "--session", "s"], more].concat()).ok()
    };
    let mut messages = vec![json!({"role": "user", "content": "Fix the bug in src/app.rs."})];
    let mut new = messages.clone();
    for round in 0..4 {
        let more = steps(round * 20..round * 20 + 20);
        messages.extend(more.clone());
        new.extend(more);
        let added = folder.file("new.json", json!({"messages": new.split_off(0)}).to_string());
        session("import", &[text(&added), "--append"]);
        session("compact", &options);
        let file = folder.file("file.json", json!({"messages": messages}).to_string());
        let out = folder.path("out.json");
        run(&[&["compact", text(&file), "-o", text(&out)][..], &options].concat()).ok();
        let of_file: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        messages = of_file["messages"].as_array().unwrap().clone();
        let of_session: Value = serde_json::from_str(&session("show", &["--json"])).unwrap();
        assert_eq!(Value::from(messages.clone()), of_session, "round {round}");
        let ledgers = messages
            .iter()
            .filter(|message| message["content"].as_str().is_some_and(|text| text.contains("[Identifiers]")));
        assert_eq!(ledgers.count(), 1, "round {round}");
    }
    assert!(
        json!(messages).to_string().contains("src/file0.rs"),
        "the first round is remembered: {messages:#?}"
    );
}

/// A newest step that is larger than the goal costs no memory: the goal is missed, and the ledger is written and kept
/// nevertheless.
#[test]
fn a_goal_out_of_reach_keeps_the_ledger() {
    let folder = Folder::new();
    let mut messages = vec![json!({"role": "user", "content": "Fix the bug in src/app.rs."})];
    for round in 0..3 {
        messages.extend(steps(round * 20..round * 20 + 20));
        let giant = messages.last_mut().unwrap();
        giant["content"] = json!("of the type that was expected here ".repeat(600));
        for again in [false, true] {
            let file = folder.file("file.json", json!({"messages": messages}).to_string());
            let out = folder.path("out.json");
            let options = ["--strategy", "agent", "--trigger", "3000", "--goal", "1500", "--json"];
            let report = run(&[&["compact", text(&file), "-o", text(&out)][..], &options].concat()).json();
            assert_eq!(report["goal_missed"], true, "round {round}");
            let left = json_of(&out)["messages"].as_array().unwrap().clone();
            if again {
                assert_eq!(left, messages, "round {round}");
            }
            messages = left;
        }
        let said = json!(messages).to_string();
        assert_eq!(said.matches("[Identifiers]").count(), 1, "round {round}: {said}");
        assert!(said.contains("src/file0.rs"), "round {round}: {said}");
    }
}
