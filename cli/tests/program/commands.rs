//! `eval --command`: outside programs as rows. Shell scripts take the place of these programs.

use core::time::Duration;
use std::time::Instant;

use serde_json::{Value, json};

use super::support::*;

/// A program that answers each request with this line.
fn says(answer: &Value) -> String {
    format!("row=sh -c 'while read -r line; do echo {}; done'", answer.to_string().replace('"', "\\\""))
}

/// A program that answers with the messages of the request, and writes a line into `log` at each start.
fn gives_back(log: &str) -> String {
    let answer = r#"printf "%s\n" "${line%,*}}""#;
    format!("whole=sh -c 'echo started >> {log}; while IFS= read -r line; do {answer}; done'")
}

/// An agent reads a file that names `src/alpha_one.rs`, and writes that name again much later.
fn recorded() -> Value {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"index\"}"}});
    let mut messages = vec![
        json!({"role": "user", "content": "Look around."}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "see src/alpha_one.rs, the quick brown fox jumps here"}),
        json!({"role": "assistant", "content": "Done."}),
    ];
    for turn in 0..30 {
        let filler = format!("more about nothing in turn {turn} ").repeat(20);
        messages.push(json!({"role": "user", "content": filler}));
        let answer =
            if turn > 12 { "It was src/alpha_one.rs, the quick brown fox jumps here." } else { "I see." };
        messages.push(json!({"role": "assistant", "content": answer}));
    }
    json!({ "messages": messages })
}

/// The arguments that compare an outside program with a strategy.
fn measuring<'a>(file: &'a str, command: &'a str) -> [&'a str; 8] {
    ["eval", file, "--keep", "30", "--strategy", "truncate", "--command", command]
}

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut rows = report["shares"][0]["rows"].as_array().unwrap().iter();
    rows.find(|row| row["strategy"] == name).unwrap_or_else(|| panic!("no row {name} in {report}"))
}

#[test]
#[cfg(unix)]
fn a_program_that_keeps_all_is_over_the_budget_and_one_that_keeps_a_number_has_that() {
    let folder = Folder::new();
    let file = folder.file("recorded.json", recorded().to_string());
    let log = folder.path("started");
    let whole = gives_back(text(&log));
    let keeps = says(&json!({"keep": [2]}));
    let args = [&measuring(text(&file), &whole)[..], &["--command", &keeps]].concat();
    let report = run(&[&args[..], &["--json"]].concat()).json();
    let names: Vec<_> =
        report["shares"][0]["rows"].as_array().unwrap().iter().map(|row| &row["strategy"]).collect();
    assert_eq!(names[..3], ["truncate", "whole", "row"]);
    let whole = row(&report, "whole");
    assert_eq!((whole["identifiers"].as_f64(), whole["copied_text"].as_f64()), (Some(100.0), Some(100.0)));
    assert_eq!((whole["tokens_left"].as_f64(), whole["stable_prefix"].as_f64()), (Some(100.0), Some(100.0)));
    assert_eq!((whole["missed"].as_u64(), whole["illegal"].as_u64()), (report["cuts"].as_u64(), Some(0)));
    assert_eq!(whole["baseline"].as_bool(), Some(false));
    // The answer has a result without its call. No API accepts it, even if it keeps many identifiers.
    let one = row(&report, "row");
    assert_eq!((one["missed"].as_u64(), one["illegal"].as_u64()), (Some(0), report["cuts"].as_u64()));
    assert!(one["identifiers"].as_f64() > Some(0.0) && one["tokens_left"].as_f64() < Some(5.0), "{one}");
    // One process answers all requests of a run.
    assert_eq!(read(&log), "started\n");
    let said = run(&args).ok();
    assert!(said.contains("over the budget") && said.contains(" illegal"), "{said}");
}

#[test]
#[cfg(unix)]
fn a_request_is_one_line_with_the_messages_their_sizes_and_the_goal() {
    let folder = Folder::new();
    // Messages on several lines of the file become one line of a request.
    let file = folder.file("recorded.json", serde_json::to_string_pretty(&recorded()).unwrap());
    let log = folder.path("requests");
    let keeps =
        format!("row=sh -c 'tee {} | while read -r line; do echo {{\\\"keep\\\": []}}; done'", text(&log));
    let report = run(&[&measuring(text(&file), &keeps)[..], &["--json"]].concat()).json();
    let requests: Vec<Value> = read(&log).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(Some(requests.len() as u64), report["cuts"].as_u64());
    let recorded = recorded();
    for request in requests {
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(messages[..], recorded["messages"].as_array().unwrap()[..messages.len()]);
        let tokens = request["tokens"].as_array().unwrap();
        let all: u64 = tokens.iter().map(|tokens| tokens.as_u64().unwrap()).sum();
        assert_eq!((tokens.len(), request["goal_tokens"].as_u64()), (messages.len(), Some(all * 3 / 10)));
    }
}

#[test]
#[cfg(unix)]
fn what_a_program_writes_anew_is_searched_and_counted() {
    let folder = Folder::new();
    let file = folder.file("recorded.json", recorded().to_string());
    let summary = json!({"messages": [{"role": "user", "content": "It read src/alpha_one.rs"}]});
    let summary = says(&summary);
    let report = run(&[&measuring(text(&file), &summary)[..], &["--json"]].concat()).json();
    let row = row(&report, "row");
    assert_eq!((row["identifiers"].as_f64(), row["copied_text"].as_f64()), (Some(100.0), Some(0.0)));
    assert_eq!((row["stable_prefix"].as_f64(), row["illegal"].as_u64()), (Some(0.0), Some(0)));
    assert!(row["tokens_left"].as_f64() > Some(0.0), "{row}");
}

#[test]
#[cfg(unix)]
fn a_program_goes_on_with_what_it_has_answered() {
    let folder = Folder::new();
    let file = folder.file("recorded.json", recorded().to_string());
    // The program keeps the messages 0 and 3 of each request. After a compaction, a request begins with the two that it
    // kept.
    let two = says(&json!({"keep": [0, 3]}));
    let args = [&measuring(text(&file), &two)[..], &["--json"]].concat();
    let report = run(&[&args[..], &["--rounds", "2"]].concat()).json();
    let rows = report["degradation"]["shares"][0]["rows"].as_array().unwrap();
    let after = &rows[1]["after"];
    assert_eq!((rows[1]["strategy"].as_str(), after[0]["compactions"].as_u64()), (Some("row"), Some(1)));
    // In the second round, message 3 is newer than the first compaction.
    assert!(after[1]["tokens_left"].as_f64() > after[0]["tokens_left"].as_f64(), "{after}");
    let rows = folder.file("own.csv", "house,openai-chat,o200k_base,50000,,,none,1.25/0.1/5/0/300,,\n");
    let priced =
        run(&[&args[..], &["--model", "house", "--models", text(&rows), "--window", "2000"]].concat()).json();
    let price = &row(&priced, "row")["price"];
    assert!(price["compactions"].as_u64() > Some(1) && price["percent"].as_f64() < Some(100.0), "{price}");
}

#[test]
#[cfg(unix)]
fn a_program_that_fails_ends_the_run_with_the_line_and_a_remedy() {
    let folder = Folder::new();
    let file = folder.file("recorded.json", recorded().to_string());
    for (command, code, expected) in [
        ("row=sh -c 'read -r line; echo loading..; cat'", 2, "row: line 1 of its output: it is no JSON"),
        (
            "row=sh -c 'read -r line; echo \"{\\\"keep\\\": []}\"; read -r line; echo \"{\\\"keep\\\": [999]}\"; cat'",
            2,
            "line 2 of its output: `keep` has 999, but the request has",
        ),
        (
            "row=sh -c 'read -r line; echo \"{\\\"error\\\": \\\"no room\\\"}\"; cat'",
            2,
            "the program says: no room",
        ),
        ("row=sh -c 'read -r line; exit 3'", 4, "has ended (exit status: 3) without an answer to request 1"),
        ("row=sh -c 'exit 0'", 4, "without an answer to request 1"),
        ("row=sleep 60", 4, "no answer to request 1 within 1 second: raise --command-timeout"),
        ("row=/nowhere/at/all", 4, "/nowhere/at/all cannot be started"),
        (
            "row=sh -c 'for at in 1 2 3 4 5 6 7 8 9; do echo \"{\\\"keep\\\": []}\"; done; cat >/dev/null'",
            2,
            "before it was asked",
        ),
    ] {
        let args =
            ["eval", text(&file), "--command", command, "--command-timeout", "1", "--strategy", "truncate"];
        let since = Instant::now();
        let error = run(&args).fails(code);
        assert!(error.contains(expected), "{command}: {error}");
        // The program has one second for an answer. The other seconds are for a program that is slow to end.
        assert!(since.elapsed() < Duration::from_secs(25), "{command}: {:?}", since.elapsed());
    }
}

#[test]
fn a_command_that_is_none_is_refused_with_an_example() {
    let folder = Folder::new();
    let file = folder.file("recorded.json", recorded().to_string());
    for (args, expected) in [
        (&["--command", "python3 trim.py"][..], "expected NAME=COMMAND"),
        (&["--command", "x='python3"], "not closed"),
        (&["--command", "x=cat", "--command", "x=cat -u"], "two programs are called x: rename one"),
        (&["--command", "x=cat", "--command-timeout", "0"], "1.."),
        (&["--command-timeout", "5"], "--command"),
    ] {
        let error = run(&[&["eval", text(&file)][..], args].concat()).fails(2);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}
