//! `compact --repair` with summaries in the place of messages.

use std::path::Path;

use serde_json::{Value, json};

use super::samples::{self, Sample};
use super::support::*;

const DIGEST: [&str; 5] = ["--keep", "40%", "--strategy", "tool-digest:keep=1", "--json"];

/// The report of `compact` with these further arguments, and the messages that it writes to `out`.
fn compacted(file: &Path, out: &Path, args: &[&str]) -> (Value, Vec<Value>) {
    let report = run(&[&["compact", text(file), "-o", text(out)], &DIGEST[..], args].concat()).json();
    let written = read(out);
    let values: Vec<Value> =
        serde_json::Deserializer::from_str(&written).into_iter().collect::<Result<_, _>>().unwrap();
    let messages = match values.as_slice() {
        [Value::Array(list)] => list.clone(),
        [Value::Object(whole)] => whole["messages"].as_array().unwrap().clone(),
        _ => values,
    };
    // The written messages have the size that is reported, and are legal under a profile.
    let again = report_of(out);
    assert_eq!(again["tokens_before"], report["tokens_after"], "{}", file.display());
    assert_eq!(again["messages_before"], report["messages_after"], "{}", file.display());
    (report, messages)
}

fn report_of(file: &Path) -> Value {
    report(file, &["--keep", "100%"])
}

fn is_summary(message: &&Value) -> bool {
    message.to_string().contains("[Conversation Summary]")
}

#[test]
fn summaries_stay_in_their_places_beside_what_a_repair_adds() {
    let folder = Folder::new();
    let mut all = messages(12);
    // A result without a call in the first turns, and a call without its result in the last turn.
    all.insert(1, json!({"role": "tool", "tool_call_id": "nobody's", "content": "orphan"}));
    let gone = all.len() - 2;
    assert_eq!(all.remove(gone)["role"], "tool");
    folder.file("in.json", serde_json::to_string_pretty(&all).unwrap());
    folder.file("whole.json", json!({"model": "m", "messages": all, "n": 1.5}).to_string());
    folder.file("in.jsonl", jsonl(&all));
    for name in ["in.json", "whole.json", "in.jsonl"] {
        let (file, out) = (folder.path(name), folder.path(&format!("out-{name}")));
        let (_, plain) = compacted(&file, &out, &[]);
        let (report, repaired) = compacted(&file, &out, &["--repair"]);
        assert_eq!(report["repair"]["aborted"], 1, "{name}");
        let is_aborted = |message: &Value| message.to_string().contains("[aborted: this call has no result]");
        let aborted = repaired.iter().position(is_aborted).unwrap();
        assert_eq!(repaired[aborted]["role"], "tool", "{name}");
        let rest: Vec<_> = repaired.iter().filter(|message| !is_aborted(message)).collect();
        assert_eq!(
            rest,
            plain.iter().filter(|message| message["content"] != "orphan").collect::<Vec<_>>(),
            "{name}"
        );
        assert!(plain.iter().filter(is_summary).count() >= 1, "{name}");
        run(&["validate", text(&out)]).ok();
    }
}

#[test]
fn summaries_stay_in_a_repaired_conversation_of_another_format() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", serde_json::to_string(&messages(12)).unwrap());
    let file = folder.path("in.json");
    run(&["convert", text(&chat), "--to", "anthropic", "-o", text(&file)]).ok();
    let out = folder.path("out.json");
    let summaries = |messages: &[Value]| -> Vec<Value> {
        let blocks = messages.iter().flat_map(|message| match &message["content"] {
            Value::Array(blocks) => blocks.clone(),
            text => vec![json!({"type": "text", "text": text})],
        });
        blocks.filter(|block| is_summary(&block)).collect()
    };
    let (_, plain) = compacted(&file, &out, &["--profile", "anthropic"]);
    let (_, repaired) = compacted(&file, &out, &["--profile", "anthropic", "--repair"]);
    assert!(!summaries(&plain).is_empty());
    assert_eq!(summaries(&plain), summaries(&repaired));
    run(&["validate", text(&out), "--profile", "anthropic"]).ok();
}

/// The lines without the questions after the first and without the answers before the last: one turn of an agent, whose
/// newest step follows the digest of the steps before it.
fn one_turn(lines: &str) -> String {
    let said = |line: &&str| line.contains("question number") || line.contains("answer number");
    let kept =
        |line: &&str| !said(line) || line.contains("question number 0") || line.contains("answer number 3");
    lines.lines().filter(kept).map(|line| format!("{line}\n")).collect()
}

/// A conversion reports each part that its target cannot hold as a loss, also in messages that a repair has merged.
#[test]
fn what_is_repaired_is_converted_as_what_is_not() {
    let folder = Folder::new();
    let (mut merged, mut digests) = (0, 0);
    let mut all = samples::all(4);
    for name in ["codex.jsonl", "claude-code.jsonl", "pi.jsonl", "openhands.jsonl"] {
        let turns = all.iter().find(|sample| sample.name == name).unwrap();
        all.push(Sample { from: "auto", name: format!("steps-{name}"), text: one_turn(&turns.text) });
    }
    for sample in all {
        let file = folder.file(&sample.name, &sample.text);
        for (profile, to) in
            [("mistral", "openai-chat"), ("anthropic", "gemini"), ("gemini", "openai-responses")]
        {
            let out = folder.path("out.json");
            let args = ["compact", text(&file), "--from", sample.from, "-o", text(&out), "--to", to];
            let args = [&args[..], &["--repair", "--profile", profile], &DIGEST].concat();
            let done = run(&args);
            let what = format!("{} --profile {profile} --to {to}: {}", sample.name, done.err);
            assert!([0, 1].contains(&done.code), "{what}");
            merged += serde_json::from_str::<Value>(&done.out).unwrap()["repair"]["merged"].as_u64().unwrap();
            digests += usize::from(read(&out).contains("[Conversation Summary]"));
        }
    }
    assert!(merged > 0 && digests > 20, "{merged} {digests}");
}

/// A conversion may leave out the message that made a repaired conversation legal.
#[test]
fn a_conversion_that_breaks_the_repaired_rules_is_refused_and_its_advice_works() {
    let folder = Folder::new();
    let (user, assistant) =
        (json!({"role": "user", "content": ""}), json!({"role": "assistant", "content": "a"}));
    let file = folder.file("in.json", json!([user, assistant, user]).to_string());
    let (out, between) = (folder.path("out.json"), folder.path("between.json"));
    let to = ["--to", "openai-chat", "-o"];
    let repaired = ["compact", text(&file), "--repair", "--profile", "gemini"];
    let refused = run(&[&repaired[..], &to, &[text(&out)]].concat());
    let error = refused.fails(5);
    assert!(
        error.contains("2 violations of gemini, and the plan leaves 0; convert it without --repair"),
        "{error}"
    );
    assert!(!out.exists());
    run(&[&["convert", text(&file)], &to[..], &[text(&between)]].concat()).ok();
    run(&["compact", text(&between), "--repair", "--profile", "gemini", "-o", text(&out)]).ok();
    run(&["validate", text(&out), "--profile", "gemini"]).ok();
}
