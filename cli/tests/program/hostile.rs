//! Texts with control sequences for a terminal, and keys in names: no command prints them raw.

use std::fs;

use serde_json::{Value, json};

use crate::samples;
use crate::support::*;

/// Escape sequences, a bell, a carriage return, a delete character, a C1 control, direction controls, zero-width
/// characters, a tag, blank fillers, and variation selectors.
const HOSTILE: &str = concat!(
    "\u{1b}[2J\u{1b}]0;t\u{7}\r\u{7f}\u{9b}31m\u{202e}\u{200b}\u{feff}\u{2066}\u{e0041}",
    "\u{ad}\u{34f}\u{115f}\u{17b4}\u{180b}\u{3164}\u{ffa0}\u{2061}\u{fe00}\u{fe0f}\u{e0100}",
);
/// A text in the form of a GitHub key.
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
    // A result without a call: a violation.
    all.push(json!({"role": "tool", "tool_call_id": bad("nobody"), "content": "orphan"}));
    all
}

/// Runs the program, and checks all of its output.
fn harmless(args: &[&str]) -> Done {
    let done = run(args);
    assert_harmless(&format!("{args:?} on standard output"), &done.out);
    assert_harmless(&format!("{args:?} on standard error"), &done.err);
    done
}

/// Commands on files. FILE, OUT, MISSING and NOWHERE are paths with [`HOSTILE`] in them.
const FILES: &[&[&str]] = &[
    &["compact", "FILE", "--keep", "30%", "--why"],
    &["compact", "FILE", "--keep", "30%", "--why", "--json"],
    &["compact", "FILE", "--keep", "30%", "--repair", "-o", "OUT"],
    &["compact", "FILE", "--keep", "30%", "-o", "NOWHERE"],
    &["compact", "FILE", "--keep", "30%", "--to", "gemini", "-o", "OUT"],
    &["compact", "FILE", "--pin", HOSTILE],
    &["compact", "FILE", "--strategy", HOSTILE],
    &["compact", "FILE", "--model", HOSTILE],
    &["compact", "FILE", "--at", HOSTILE],
    &[
        "compact",
        "FILE",
        "--strategy",
        "summarize",
        "--summary-model",
        HOSTILE,
        "--summarizer",
        "http://127.0.0.1:1",
    ],
    &["compact", "FILE", "--strategy", "summarize", "--summary-model", "m", "--summarizer", HOSTILE],
    &["diff", "FILE", "FILE"],
    &["diff", "FILE", "FILE", "--json"],
    &["eval", "FILE", "--tokenizer", "estimate"],
    &["eval", "FILE", "--tokenizer", "estimate", "--json"],
    &["eval", "FILE", "--strategy", HOSTILE],
    &["eval", "MISSING"],
    &["report", "FILE", "--json"],
    &["report", "FILE", "--redact", "-o", "OUT"],
    &["report", "FILE", "--strategy", HOSTILE],
    &["report", "MISSING"],
    &["show", "FILE"],
    &["show", "FILE", "--full", "--redact"],
    &["show", "FILE", "--grep", "question"],
    &["show", "FILE", "--grep", "."],
    &["show", "FILE", "--grep", "(\u{202e}\u{1b}"],
    &["stats", "FILE"],
    &["stats", "FILE", "--json"],
    &["stats", "FILE", "--by", "tool"],
    &["stats", "FILE", "--by", "tool", "--json"],
    &["stats", "FILE", "--by", "turn"],
    &["stats", "MISSING"],
    &["bench", "FILE", "--rounds", "1"],
    &["validate", "FILE"],
    &["validate", "FILE", "--json"],
    &["convert", "FILE", "--to", HOSTILE],
    &["handoff", "FILE"],
    &["handoff", "FILE", "--redact"],
    &["hook", "--redact-list", HOSTILE],
    &[HOSTILE],
];

/// Commands on sessions, below `session`. EXPORT is a damaged export, OTHER is another store.
const SESSIONS: &[&[&str]] = &[
    &["import", "FILE"],
    &["import", "FILE", "--json", "--append"],
    &["import", "EXPORT"],
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
    &["inspect", "--redact-list", HOSTILE],
    &["export", "-o", "OUT"],
    &["export", "--to", "anthropic", "-o", "OUT"],
    &["copy", "--to", "OTHER"],
    &["fork", "--at", "3", "--as", HOSTILE],
    &["uncompact"],
    &["rewind", "--turns", "1"],
    &["rewind", "--at", "1000"],
    &["clear"],
    &["retain", "--messages", "3", "--dry-run"],
    &["prune", "--all", "--dry-run"],
    &["verify"],
    &["vacuum"],
    &["erase", "--dry-run"],
    &["erase"],
];

/// Commands on a home folder.
const HOMES: &[&[&str]] = &[
    &["sessions"],
    &["sessions", "--json"],
    &["sessions", "--project", HOSTILE],
    &["stats", "latest"],
    &["search", "words"],
    &["search", "words", "--json"],
    &["search", HOSTILE],
    &["search", "--session", HOSTILE, "--messages", "0"],
    &["mcp"],
    &["mcp", "--store", HOSTILE],
    &["completions", "zsh"],
    &["completions", HOSTILE],
    &["man"],
];

/// The row with its placeholders replaced by words.
fn filled<'a>(row: &[&'a str], places: &[(&str, &'a str)]) -> Vec<&'a str> {
    let word =
        |word: &&'a str| places.iter().find(|(place, _)| place == word).map_or(*word, |(_, word)| *word);
    row.iter().map(word).collect()
}

/// All commands below this one, from its help text, each as a list of words.
fn listed(command: &[String]) -> Vec<Vec<String>> {
    let help = run(&[command, &["--help".to_owned()]].concat()).ok();
    let Some((_, list)) = help.split_once("Commands:\n") else { return vec![command.to_vec()] };
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split(' ').next()?;
        Some(name).filter(|name| *name != "help")
    });
    names.flat_map(|name| listed(&[command, &[name.to_owned()]].concat())).collect()
}

#[test]
fn each_command_has_a_row() {
    let all = listed(&[]);
    assert!(all.contains(&vec!["session".to_owned(), "list".to_owned()]), "{all:?}");
    for command in all {
        let rows = match &command[..] {
            [first, second] if first == "session" => SESSIONS.iter().any(|row| row[0] == second),
            [first] => FILES.iter().chain(HOMES).any(|row| row[0] == first),
            _ => false,
        };
        assert!(rows, "{command:?} has no row: add one that makes it print what it reads");
    }
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
    let places = [("FILE", file), ("OUT", out), ("MISSING", text(&missing)), ("NOWHERE", text(&nowhere))];
    for row in FILES {
        harmless(&filled(row, &places));
    }
    for to in samples::TARGETS {
        // The written transcript keeps the hostile texts; the messages about it do not show them raw.
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
    let [store, other, third] =
        ["store", "other", "third"].map(|name| format!("sqlite:{}", text(&folder.path(name))));
    let (out, export) = (folder.path("out.jsonl"), folder.path(&format!("{HOSTILE}.jsonl").replace('/', "")));
    run(&["session", "import", text(&file), "--store", &third, "--session", HOSTILE]).ok();
    run(&["session", "export", "--store", &third, "--session", HOSTILE, "-o", text(&export)]).ok();
    let damaged = read(&export).replacen("question", &format!("other {}", "\\u202e"), 1);
    fs::write(&export, damaged).unwrap();
    let places = [("FILE", text(&file)), ("OUT", text(&out)), ("EXPORT", text(&export)), ("OTHER", &other)];
    for row in SESSIONS {
        let (command, args) = row.split_first().unwrap();
        let session: &[&str] = if *command == "list" { &[] } else { &["--session", HOSTILE] };
        let place: &[&str] =
            &["session", command, "--store", if row.contains(&"EXPORT") { &other } else { &store }];
        let done = harmless(&[place, session, &filled(args, &places)].concat());
        assert!(!row.contains(&"EXPORT") || done.code == 2, "it is refused: {}", done.out);
    }
    harmless(&["session", "show", "--store", &store, "--session", HOSTILE]);
    harmless(&["session", "show", "--store", &format!("sqlite:{HOSTILE}"), "--session", "s"]);
}

#[test]
fn homes_are_looked_at_without_obeying_them() {
    let folder = Folder::new();
    let project = folder.path(&format!(".claude/projects/{HOSTILE}"));
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join(format!("{HOSTILE}.jsonl")), "no session").unwrap();
    let said = json!({"role": "user", "content": format!("words{HOSTILE}")});
    let line = json!({"type": "user", "uuid": "u", "cwd": HOSTILE, "sessionId": format!("s{HOSTILE}"), "message": said});
    fs::write(project.join("one.jsonl"), line.to_string()).unwrap();
    for args in HOMES {
        let mut command = program(args);
        let done = done(command.env("HOME", folder.path("")).env_remove("CLAUDE_CONFIG_DIR"));
        assert_harmless(&format!("{args:?}"), &done.out);
        assert_harmless(&format!("{args:?}"), &done.err);
    }
}
