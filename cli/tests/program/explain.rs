//! Pins, reasons of the verdicts, and two transcripts side by side.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::support::*;

fn compacted(args: &[&str]) -> Value {
    let all = [&["--keep", "40%", "--strategy", "tool-results,truncate"], args].concat();
    report(&example("coding-agent.json"), &all)
}

fn verdict(report: &Value, message: u64) -> Value {
    let groups = report["groups_detail"].as_array().unwrap();
    let holds = |group: &&Value| (group["first"].as_u64()..=group["last"].as_u64()).contains(&Some(message));
    groups.iter().find(holds).unwrap()["verdict"].clone()
}

#[test]
fn a_pin_keeps_its_group() {
    let calls = json_of(&example("coding-agent.json"))["messages"][5]["tool_call_id"].clone();
    for pin in ["5".to_owned(), "4-5".to_owned(), format!("id:{}", calls.as_str().unwrap())] {
        assert_eq!(verdict(&compacted(&[]), 5), "D");
        let pinned = compacted(&["--pin", &pin, "--pin", "9"]);
        assert_eq!((verdict(&pinned, 5), verdict(&pinned, 9)), (json!("K"), json!("K")), "{pin}");
    }
    // Pins on all messages of the conversation exceed the limit.
    let file = example("coding-agent.json");
    let args = ["compact", text(&file), "--window", "4000", "--reserve", "0", "--pin", "0-73"];
    assert!(run(&args).fails(3).contains("what is protected has"));
}

#[test]
fn a_pin_that_holds_nothing_is_refused() {
    let file = example("coding-agent.json");
    for pin in ["74", "80-90", "id:call_of_nobody", "source:handbook"] {
        for lazy in [&[][..], &["--lazy"]] {
            let args =
                [&["compact", text(&file), "--goal", "5000", "--pin", "1", "--pin", pin], lazy].concat();
            let message = run(&args).fails(2);
            assert!(message.contains(&format!("--pin {pin}: there is no such message")), "{message}");
        }
    }
    let message = run(&["compact", text(&file), "--pin", "last"]).fails(2);
    assert!(
        message.contains("expected a message's number (12), a range (3-5), id:ID or source:NAME"),
        "{message}"
    );
    assert!(run(&["compact", text(&file), "--each", "--pin", "1"]).fails(2).contains("--each"));
}

#[test]
fn a_pin_on_what_answers_no_call_is_refused() {
    let folder = Folder::new();
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "42"});
    let calls = [json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}})];
    let said = json!([
        {"role": "user", "content": "Go."}, {"role": "assistant", "content": null, "tool_calls": calls},
        result("a"), result("nobody"), {"role": "user", "content": "And?"}, {"role": "assistant", "content": "Yes."},
        result("a"),
    ]);
    let file = folder.file("orphan.json", said.to_string());
    for lazy in [&[][..], &["--lazy"]] {
        for pin in ["3", "0-5", "3-4", "id:nobody"] {
            let message =
                run(&[&["compact", text(&file), "--goal", "1", "--pin", pin], lazy].concat()).fails(2);
            assert!(message.contains(&format!("--pin {pin}: message 3 answers no call")), "{message}");
        }
        // The second result of the call is dropped; the call and its first result are pinned.
        let pinned = report(&file, &[&["--goal", "1", "--pin", "id:a", "--pin", "4"], lazy].concat());
        assert_eq!(verdict(&pinned, 6), "D");
        assert_eq!((verdict(&pinned, 2), verdict(&pinned, 4)), (json!("K"), json!("K")));
    }
}

#[test]
fn every_verdict_is_explained() {
    let report = compacted(&["--why", "--pin", "5"]);
    let why: Vec<_> = report["why"].as_array().unwrap().iter().collect();
    let groups = report["groups_detail"].as_array().unwrap();
    assert_eq!(why.len(), groups.len());
    let because = |message: u64| {
        let row = why
            .iter()
            .find(|row| row["first"].as_u64() <= Some(message) && row["last"].as_u64() >= Some(message));
        row.unwrap()["because"].as_str().unwrap().to_owned()
    };
    assert_eq!(because(0), "an instruction");
    assert_eq!(because(1), "the first request of the user");
    assert_eq!(because(5), "pinned");
    assert_eq!(because(6), "truncate: among the oldest, until there was room");
    assert_eq!(because(13), "tool-results: results older than the newest uses of tools");
    assert_eq!(because(22), "the goal was met without it");
    assert_eq!(because(71), "the goal was met without it");
    assert_eq!(because(72), "the last request of the user");
    assert_eq!(because(73), "the newest step");
    // A removed or shortened group names its strategy; a kept group names none.
    for (row, group) in why.iter().zip(groups) {
        assert_eq!(row["verdict"], group["verdict"]);
        let because = row["because"].as_str().unwrap();
        let names_one = ["tool-results: ", "truncate: "].iter().any(|name| because.starts_with(name));
        assert_eq!(names_one, row["verdict"] != "K", "{row}");
    }
    assert!(compacted(&[]).get("why").is_none());
    // No compaction is due; then nothing more can be removed.
    let file = example("coding-agent.json");
    let idle = super::support::report(&file, &["--why"]);
    assert!(idle["why"].as_array().unwrap().iter().all(|row| row["because"] == "nothing is due"));
    let all = super::support::report(&file, &["--why", "--keep", "90%", "--strategy", "ephemeral"]);
    assert!(all["why"].as_array().unwrap().iter().any(|row| row["because"] == "no strategy takes it"));
    // A strategy that does not find enough to take.
    let wide = ["--window", "1000000", "--trigger", "13000", "--goal", "100"];
    let little = ["--why", "--strategy", "tool-results", "--pin", "5"];
    let little = super::support::report(&file, &[&wide[..], &little].concat());
    assert_eq!(little["unchanged_reason"], "too_little");
    let reasons: BTreeSet<_> =
        little["why"].as_array().unwrap().iter().map(|row| row["because"].as_str().unwrap()).collect();
    assert!(reasons.contains("a pass would free too little to be worth it") && reasons.contains("pinned"));
    assert!(!reasons.contains("no strategy takes it"), "{reasons:?}");
    let digest = super::support::report(&file, &["--why", "--keep", "60%", "--strategy", "tool-digest"]);
    let told = "tool-digest: an older use of tools, told in the digest";
    assert!(digest["why"].as_array().unwrap().iter().any(|row| row["because"] == told));
}

fn diff(a: &Path, b: &Path) -> Value {
    run(&["diff", text(a), text(b), "--json"]).json()
}

#[test]
fn two_transcripts_side_by_side() {
    let (file, folder) = (example("coding-agent.json"), tempfile::tempdir().unwrap());
    let out = folder.path().join("out.json");
    let args = ["--keep", "40%", "--strategy", "tool-results,truncate", "--json", "-o", text(&out)];
    let report = run(&[&["compact", text(&file)], &args[..]].concat()).json();
    let found = diff(&file, &out);
    let count = |name: &str| found[name].as_u64().unwrap();
    assert_eq!(count("only_b"), 0);
    assert_eq!(
        count("same") + count("changed") + count("only_a"),
        report["messages_before"].as_u64().unwrap()
    );
    assert_eq!(count("same") + count("changed"), report["messages_after"].as_u64().unwrap());
    assert_eq!(found["stable_prefix_messages"], report["stable_prefix_messages"]);
    assert_eq!((&found["tokens_a"], &found["tokens_b"]), (&report["tokens_before"], &report["tokens_after"]));
    // In the other direction, removed messages appear as added.
    let back = diff(&out, &file);
    assert_eq!((&back["only_a"], &back["only_b"]), (&found["only_b"], &found["only_a"]));
    assert_eq!(diff(&file, &file)["same"], report["messages_before"]);
    let shown = run(&["diff", text(&file), text(&out)]).ok();
    assert!(shown.contains("~") && shown.contains("[cleared]") && shown.contains(" only in the first"));
    assert!(shown.lines().next().unwrap().contains(" =     0 system "), "{shown}");
}

#[test]
fn diff_tells_a_summary_from_what_it_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let say = |name: &str, texts: &[(&str, &str)]| {
        let path = folder.path().join(name);
        let messages: Vec<_> =
            texts.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
        std::fs::write(&path, json!({"messages": messages}).to_string()).unwrap();
        path
    };
    let a = say(
        "a.json",
        &[("user", "Begin."), ("assistant", "One."), ("user", "And?"), ("assistant", "Two.\u{1b}[2J")],
    );
    let b = say(
        "b.json",
        &[("user", "Begin."), ("assistant", "[Conversation Summary]"), ("assistant", "Two.\u{1b}[2J")],
    );
    let signs: Vec<_> =
        diff(&a, &b)["rows"].as_array().unwrap().iter().map(|row| row["sign"].clone()).collect();
    assert_eq!(signs, ["=", ">", "<", "<", "="]);
    assert!(!run(&["diff", text(&a), text(&b)]).ok().contains('\u{1b}'));
}

#[test]
fn diff_refuses_what_is_not_two_transcripts() {
    let file = example("coding-agent.json");
    assert!(run(&["diff", text(&file)]).fails(2).contains("<OTHER>"));
    assert!(run(&["diff", text(&file), "nowhere.json"]).fails(4).contains("nowhere.json"));
    let broken = fixture("not-json.txt");
    assert!(run(&["diff", text(&file), text(&broken)]).fails(2).contains("not-json.txt"));
}
