//! Texts that a terminal obeys, and keys in names: no command prints them raw.

use std::fs;

use serde_json::{Value, json};

use crate::samples;
use crate::support::*;

/// Escape sequences, a bell, a carriage return, delete, a later control, a turn of direction, a width of zero, a tag.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;t\u{7}\r\u{7f}\u{9b}31m\u{202e}\u{200b}\u{feff}\u{2066}\u{e0041}";
/// Looks like a key of GitHub.
const KEY: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";

fn assert_harmless(what: &str, said: &str) {
    let wrong = said.chars().find(|one| match *one {
        '\n' | '\t' => false,
        one => one.is_control() || HOSTILE.contains(one) && !one.is_ascii(),
    });
    assert_eq!(wrong, None, "{what}: {said:?}");
}

fn messages() -> Vec<Value> {
    let bad = |what: &str| format!("{what}{HOSTILE}");
    let mut all = vec![json!({"role": "system", "content": bad("Be brief.")})];
    for turn in 0..6 {
        let function =
            json!({"name": bad("look"), "arguments": json!({bad("at"): bad("there")}).to_string()});
        let call = json!({"id": bad("c"), "type": "function", "function": function});
        all.push(json!({"role": "user", "name": bad("Ann"), "content": bad("question ").repeat(20), KEY: turn, bad("odd"): 1}));
        all.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        all.push(json!({"role": "tool", "tool_call_id": bad("c"), "content": bad("result ").repeat(20)}));
        all.push(json!({"role": "assistant", "content": bad("answer ").repeat(20)}));
    }
    // What answers nothing: a violation.
    all.push(json!({"role": "tool", "tool_call_id": bad("nobody"), "content": "orphan"}));
    all
}

/// Runs it, and looks at all that it says.
fn harmless(args: &[&str]) -> Done {
    let done = run(args);
    assert_harmless(&format!("{args:?} on standard output"), &done.out);
    assert_harmless(&format!("{args:?} on standard error"), &done.err);
    done
}

#[test]
fn files_are_looked_at_without_obeying_them() {
    let folder = Folder::new();
    let name = HOSTILE.replace('/', "");
    let file = folder.file(&format!("{name}.json"), json!({"messages": messages()}).to_string());
    let (file, out) = (text(&file), folder.path(&format!("{name}-out.json")));
    let out = text(&out);
    let missing = folder.path(&format!("{name}-missing"));
    let nowhere = folder.path(&format!("{name}-no/out.json"));
    let rows: [&[&str]; 24] = [
        &["compact", file, "--keep", "30%", "--why"],
        &["compact", file, "--keep", "30%", "--why", "--json"],
        &["compact", file, "--keep", "30%", "--repair", "-o", out],
        &["compact", file, "--keep", "30%", "-o", text(&nowhere)],
        &["compact", file, "--keep", "30%", "--to", "gemini", "-o", out],
        &["compact", file, "--pin", HOSTILE],
        &["compact", file, "--strategy", HOSTILE],
        &["compact", file, "--model", HOSTILE],
        &["compact", file, "--at", HOSTILE],
        &["diff", file, file],
        &["diff", file, file, "--json"],
        &["show", file],
        &["show", file, "--full", "--redact"],
        &["stats", file],
        &["stats", file, "--json"],
        &["stats", file, "--by", "tool"],
        &["stats", file, "--by", "tool", "--json"],
        &["stats", file, "--by", "turn"],
        &["stats", text(&missing)],
        &["bench", file, "--rounds", "1"],
        &["validate", file],
        &["validate", file, "--json"],
        &["convert", file, "--to", HOSTILE],
        &[HOSTILE],
    ];
    for args in rows {
        harmless(args);
    }
    for to in samples::TARGETS {
        // The transcript is what it is; what is said of it is not.
        let lines = harmless(&["convert", file, "--to", to, "-o", out]).err;
        assert!(lines.contains("lost") || to == "openai-chat", "{lines}");
        for more in [&["--redact"][..], &["--redact", "--json"]] {
            let said = harmless(&[&["convert", file, "--to", to, "-o", out], more].concat());
            assert!(!said.err.contains(KEY) && !said.out.contains(KEY), "{to}: {}", said.err);
        }
    }
}

#[test]
fn sessions_are_looked_at_without_obeying_them() {
    let folder = Folder::new();
    let file = folder.file("in.jsonl", jsonl(&messages()));
    let (file, url, other) = (
        text(&file),
        format!("sqlite:{}", text(&folder.path("store.db"))),
        format!("sqlite:{}", text(&folder.path("other.db"))),
    );
    let out = folder.path("out.jsonl");
    let rows: [&[&str]; 24] = [
        &["import", file],
        &["import", file, "--json", "--append"],
        &["list"],
        &["list", "--json"],
        &["show"],
        &["show", "--json"],
        &["show", "--redact"],
        &["compact", "--keep", "30%", "--json"],
        &["log"],
        &["log", "--json"],
        &["log", "--redact", "--json"],
        &["expand", "--revision", "1"],
        &["expand", "--revision", "1", "--json"],
        &["export", "-o", text(&out)],
        &["export", "--to", "anthropic", "-o", text(&out)],
        &["copy", "--to", &other],
        &["fork", "--at", "3", "--as", HOSTILE],
        &["uncompact"],
        &["clear"],
        &["retain", "--messages", "3", "--dry-run"],
        &["prune", "--all", "--dry-run"],
        &["verify"],
        &["erase", "--dry-run"],
        &["erase"],
    ];
    for args in rows {
        let session: &[&str] = if args[0] == "list" { &[] } else { &["--session", HOSTILE] };
        harmless(&[&["session", args[0], "--store", &url], session, &args[1..]].concat());
    }
    harmless(&["session", "show", "--store", &url, "--session", HOSTILE]);
    harmless(&["session", "show", "--store", &format!("sqlite:{HOSTILE}"), "--session", "s"]);
}

#[test]
fn homes_are_looked_at_without_obeying_them() {
    let folder = Folder::new();
    let project = folder.path(&format!(".claude/projects/{HOSTILE}"));
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join(format!("{HOSTILE}.jsonl")), "no session").unwrap();
    for args in [
        &["sessions"][..],
        &["sessions", "--json"],
        &["sessions", "--project", HOSTILE],
        &["stats", "latest"],
    ] {
        let mut command = program(args);
        let done = done(command.env("HOME", folder.path("")).env_remove("CLAUDE_CONFIG_DIR"));
        assert_harmless(&format!("{args:?}"), &done.out);
        assert_harmless(&format!("{args:?}"), &done.err);
    }
}
