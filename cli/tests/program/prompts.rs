//! Conversations with sealed reasoning: printed from a store, and written in other formats.

use serde_json::{Value, json};

use crate::samples;
use crate::support::*;

const SEALED: [&str; 3] = ["claude-code.jsonl", "codex.jsonl", "pi.jsonl"];

fn sealed() -> impl Iterator<Item = samples::Sample> {
    samples::all(6).into_iter().filter(|sample| SEALED.contains(&sample.name.as_str()))
}

#[test]
fn sessions_with_sealed_reasoning_are_printed_as_json() {
    for sample in sealed() {
        let folder = Folder::new();
        let file = folder.file(&sample.name, &sample.text);
        let url = format!("sqlite:{}", text(&folder.path("store.db")));
        let session = |command: &str, more: &[&str]| {
            run(&[&["session", command, "--store", &url, "--session", "s"], more].concat())
        };
        session("import", &[text(&file)]).ok();
        session("compact", &["--keep", "40%"]).ok();
        let shown = session("show", &["--json"]).json();
        let details: Vec<_> =
            shown.as_array().unwrap().iter().filter_map(|message| message.get("reasoning_details")).collect();
        assert!(
            !details.is_empty() && details.iter().all(|one| one[0]["type"] == "reasoning.encrypted"),
            "{shown}"
        );
        for (command, more) in [("log", &["--json"][..]), ("expand", &["--json", "--revision", "1"])] {
            let lines = session(command, more).ok();
            assert!(lines.contains("reasoning.encrypted"), "{} {command}: {lines}", sample.name);
            assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
        }
        for to in samples::TARGETS {
            let out = folder.path("prompt.json");
            session("export", &["--to", to, "-o", text(&out)]).ok();
            run(&["validate", text(&out), "--from", to]).ok();
            assert!(!read(&out).contains("answer number 0"), "what is hidden is in no prompt: {to}");
        }
    }
}

#[test]
fn a_summary_that_the_file_cannot_hold_goes_to_another_format() {
    let digest = ["--keep", "40%", "--strategy", "tool-digest:keep=1"];
    let takes_none = |sample: &samples::Sample| sample.name == "copilot-chat.json";
    for sample in sealed().chain(samples::all(6).into_iter().filter(takes_none)) {
        let folder = Folder::new();
        let (file, out) = (folder.file(&sample.name, &sample.text), folder.path("out.json"));
        let with = |more: &[&str]| run(&[&["compact", text(&file)], &digest[..], more].concat());
        if takes_none(&sample) {
            // A run without `-o` fails with the same message as a run with it.
            let refused = with(&[]).fails(2);
            assert_eq!(with(&["-o", text(&out)]).fails(2), refused);
            assert!(refused.contains("--to FORMAT"), "{refused}");
        }
        for to in samples::TARGETS {
            let done = with(&["--to", to, "-o", text(&out), "--json"]);
            let losses: Value = serde_json::from_str(&done.err).unwrap();
            assert!(losses["by_kind"].is_object(), "{losses}");
            let report: Value = done.json();
            assert!(report["groups"]["replaced"].as_u64() > Some(0), "{report}");
            assert!(read(&out).contains("[Conversation Summary]"), "{to}");
            run(&["validate", text(&out), "--from", to]).ok();
        }
    }
}

#[test]
fn nobody_is_asked_for_a_summary_that_cannot_be_written() {
    let sample = samples::all(6).into_iter().find(|sample| sample.name == "copilot-chat.json").unwrap();
    let folder = Folder::new();
    let file = folder.file(&sample.name, &sample.text);
    // No server listens at this address: a request to the model would fail with another message.
    let ask = ["--strategy", "summarize", "--summarizer", "http://127.0.0.1:9/v1", "--summary-model", "m"];
    let out = folder.path("out.jsonl");
    let args = [&["compact", text(&file), "--keep", "40%", "-o", text(&out)], &ask[..]].concat();
    let refused = run(&args).fails(2);
    assert!(refused.contains("no form for a new message"), "{refused}");
}

#[test]
fn profiles_are_those_of_the_file() {
    for (name, profile) in
        [("claude-code.jsonl", "anthropic"), ("codex.jsonl", "openai-responses"), ("pi.jsonl", "permissive")]
    {
        let sample = sealed().find(|sample| sample.name == name).unwrap();
        let done = run_with(&["validate", "-", "--json"], sample.text.as_bytes());
        let found: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(
            (done.code, &found["profile"], &found["violations"]),
            (0, &json!(profile), &json!([])),
            "{name}"
        );
    }
}

#[test]
fn a_line_is_a_list_of_one() {
    let line =
        json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]});
    let done = run_with(&["stats", "-", "--each", "--json"], format!("{line}\n").as_bytes()).json();
    assert_eq!((done[0]["messages"].as_u64(), done.as_array().unwrap().len()), (Some(2), 1));
}
