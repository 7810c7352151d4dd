//! Hooks: the events are as Claude Code sends them, the sessions as Claude Code and pi store them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::support::*;

/// A session of one user, with a request and its answer.
struct Session {
    folder: Folder,
    lines: Vec<Value>,
}

impl Session {
    fn new() -> Self {
        let mut session = Self { folder: Folder::new(), lines: Vec::new() };
        session.say(
            "user",
            "Why does src/retry.rs drop ORDER-4711? See https://ci.example.com/runs/88.",
            false,
        );
        session.say("assistant", "The limit in config/queue.toml is 3: commit 8c1f0d2 has set it.", false);
        session
    }

    /// Appends a message after the last line.
    fn say(&mut self, role: &str, text: &str, is_summary: bool) {
        let (at, parent) = (self.lines.len(), self.lines.last().map(|line| line["uuid"].clone()));
        let mut line = json!({
            "parentUuid": parent, "isSidechain": false, "sessionId": "s1", "cwd": "/work", "type": role,
            "uuid": format!("u{at}"), "timestamp": "2026-11-02T10:00:00Z",
            "message": {"role": role, "content": text},
        });
        if role == "assistant" {
            line["message"]["content"] = json!([{"type": "text", "text": text}]);
        }
        if is_summary {
            line["isCompactSummary"] = true.into();
        }
        self.lines.push(line);
    }

    /// Appends a compaction by Claude Code, with this summary.
    fn compact(&mut self, summary: &str) {
        let (at, before) = (self.lines.len(), self.lines.last().map(|line| line["uuid"].clone()));
        self.lines.push(json!({
            "parentUuid": null, "logicalParentUuid": before, "isSidechain": false, "sessionId": "s1", "type": "system",
            "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 1000}, "uuid": format!("u{at}"),
        }));
        self.say("user", summary, true);
    }

    fn file(&self) -> PathBuf {
        let file = self.folder.path("s1.jsonl");
        let lines: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, lines).unwrap();
        file
    }
}

/// A hook event with these further fields.
fn event(name: &str, transcript: &Path, more: &[(&str, &str)]) -> Vec<u8> {
    let mut event = json!({
        "session_id": "s1", "transcript_path": transcript, "cwd": "/work", "permission_mode": "default",
        "hook_event_name": name,
    });
    more.iter().for_each(|(field, value)| event[field] = (*value).into());
    event.to_string().into_bytes()
}

fn before(file: &Path) -> Done {
    let more = [("trigger", "auto"), ("custom_instructions", "")];
    run_with(&["hook"], &event("PreCompact", file, &more))
}

fn after(file: &Path) -> Done {
    run_with(&["hook"], &event("SessionStart", file, &[("source", "compact")]))
}

#[test]
fn before_a_compaction_the_summarizer_gets_the_identifiers_of_the_conversation() {
    let text = before(&Session::new().file()).ok();
    assert!(text.starts_with("The summary must name each of these"), "{text}");
    for identifier in
        ["src/retry.rs", "ORDER-4711", "https://ci.example.com/runs/88", "config/queue.toml", "8c1f0d2"]
    {
        assert!(text.contains(identifier), "{identifier} is missing: {text}");
    }
}

#[test]
fn after_a_compaction_the_conversation_gets_what_its_summary_lacks() {
    let mut session = Session::new();
    session.compact("The user asks about ORDER-4711 and src/retry.rs.");
    let text = after(&session.file()).ok();
    for identifier in ["https://ci.example.com/runs/88", "config/queue.toml", "8c1f0d2"] {
        assert!(text.contains(identifier), "{identifier} is missing: {text}");
    }
    assert!(!text.contains("ORDER-4711") && !text.contains("src/retry.rs"), "{text}");
    assert!(text.contains("recall_history reads the messages themselves, of the session s1."), "{text}");
}

#[test]
fn a_later_compaction_keeps_what_stood_before_an_earlier_one() {
    let mut session = Session::new();
    session.compact("The user asks about an order.");
    session.say("assistant", "Raised to 9 in config/limits.toml.", false);
    let known = ["8c1f0d2", "ORDER-4711", "config/limits.toml"];
    // At first the file has no second boundary; the second `compact` below adds it.
    for text in [before(&session.file()).ok(), after(&session.file()).ok()] {
        known
            .iter()
            .for_each(|identifier| assert!(text.contains(identifier), "{identifier} is missing: {text}"));
    }
    session.compact("The limit of ORDER-4711 was raised.");
    let text = after(&session.file()).ok();
    assert!(text.contains("8c1f0d2") && text.contains("config/limits.toml"), "{text}");
    assert!(!text.contains("ORDER-4711"), "{text}");
}

#[test]
fn a_boundary_that_is_not_written_yet_hides_all_that_there_is() {
    let text = after(&Session::new().file()).ok();
    assert!(text.contains("8c1f0d2") && text.contains("ORDER-4711"), "{text}");
}

#[test]
fn other_events_and_conversations_without_identifiers_have_no_answer() {
    let file = Session::new().file();
    for source in ["startup", "resume", "clear"] {
        let done = run_with(&["hook"], &event("SessionStart", &file, &[("source", source)]));
        assert_eq!((done.err.as_str(), done.code, done.out.as_str()), ("", 0, ""), "{source}");
    }
    assert_eq!(run_with(&["hook"], &event("Stop", Path::new("/nowhere"), &[])).ok(), "");
    let mut session = Session { folder: Folder::new(), lines: Vec::new() };
    session.say("user", "Hello!", false);
    assert_eq!(before(&session.file()).ok(), "");
    let mut session = Session::new();
    let all = "ORDER-4711 src/retry.rs https://ci.example.com/runs/88 config/queue.toml 8c1f0d2 3";
    session.compact(all);
    assert_eq!(after(&session.file()).ok(), "");
}

#[test]
fn a_thread_of_a_sub_agent_was_never_in_the_conversation() {
    let mut session = Session::new();
    session.say("user", "Look into vendor/secret_plan.rs.", false);
    session.lines[2]["isSidechain"] = true.into();
    session.lines[2]["parentUuid"] = Value::Null;
    let thread = session.lines.remove(2);
    session.compact("So far so good.");
    session.lines.insert(2, thread);
    let text = after(&session.file()).ok();
    assert!(text.contains("8c1f0d2") && !text.contains("vendor/secret_plan.rs"), "{text}");
}

#[test]
fn a_list_is_as_long_as_it_may_be_and_has_no_secrets() {
    let mut session = Session::new();
    let key = format!("sk-{}", "a1B2".repeat(10));
    session.say("user", &format!("The key is {key}."), false);
    for n in 0..300 {
        session.say("assistant", &format!("src/part{n}.rs is done."), false);
    }
    let event = event("PreCompact", &session.file(), &[("trigger", "manual")]);
    let text = run_with(&["hook", "--tokens", "200", "--redact"], &event).ok();
    assert!(!text.contains("a1B2a1B2"), "{text}");
    assert!((400..1_200).contains(&text.len()), "{}: {text}", text.len());
    let longer = run_with(&["hook", "--tokens", "2000"], &event).ok();
    assert!(longer.len() > 2 * text.len(), "{longer}");
}

#[test]
fn no_character_of_an_identifier_is_obeyed() {
    let mut session = Session::new();
    session.say("user", "See src/a\u{1b}[2J\u{202e}.rs and src/b.rs.", false);
    let text = before(&session.file()).ok();
    assert!(text.contains("src/b.rs") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
}

/// A session file of pi: the entries `a` to `g`, each of which follows the one before it.
fn pi_session(folder: &Folder, entries: &[Value]) -> PathBuf {
    let head = json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-11-02T10:00:00Z", "cwd": "/work"});
    let named = entries.iter().zip('a'..).map(|(entry, name)| {
        let parent = char::from_u32(u32::from(name) - 1).filter(|_| name != 'a');
        let mut entry = entry.clone();
        (entry["id"], entry["parentId"]) = (json!(name), json!(parent));
        format!("{entry}\n")
    });
    let file = folder.path("s1.jsonl");
    std::fs::write(&file, format!("{head}\n{}", named.collect::<String>())).unwrap();
    file
}

fn pi_says(role: &str, text: &str) -> Value {
    let message = json!({"role": role, "content": [{"type": "text", "text": text}], "timestamp": 0});
    json!({"type": "message", "timestamp": "2026-11-02T10:00:00Z", "message": message})
}

/// A compaction by pi, which keeps the messages from the entry `first` on.
fn pi_compacts(summary: &str, first: &str) -> Value {
    json!({
        "type": "compaction", "timestamp": "2026-11-02T10:00:00Z", "summary": summary, "firstKeptEntryId": first,
        "tokensBefore": 1000,
    })
}

#[test]
fn a_session_of_pi_is_recognised() {
    let folder = Folder::new();
    let mut entries = vec![
        pi_says("user", "Why does src/retry.rs drop ORDER-4711?"),
        pi_says("assistant", "The limit in config/queue.toml is 3: commit 8c1f0d2 has set it."),
        pi_says("user", "Raise it in config/limits.toml."),
        pi_says("assistant", "Raised: commit 02f7b9c."),
    ];
    let text = before(&pi_session(&folder, &entries)).ok();
    assert!(text.contains("8c1f0d2") && text.contains("02f7b9c"), "{text}");
    // pi keeps messages after its summary, answers included: the conversation still shows them.
    entries.push(pi_compacts("The user asks about src/retry.rs.", "c"));
    let text = after(&pi_session(&folder, &entries)).ok();
    assert!(["ORDER-4711", "config/queue.toml", "8c1f0d2"].iter().all(|one| text.contains(one)), "{text}");
    let shown = ["src/retry.rs", "config/limits.toml", "02f7b9c"];
    assert!(!shown.iter().any(|one| text.contains(one)), "{text}");
    assert!(text.contains("of the session s1."), "{text}");
    // Messages that the first compaction hid stay hidden after the second.
    entries.extend([pi_says("user", "Thanks."), pi_compacts("The limit was raised.", "f")]);
    let text = after(&pi_session(&folder, &entries)).ok();
    assert!(["ORDER-4711", "8c1f0d2", "02f7b9c"].iter().all(|one| text.contains(one)), "{text}");
}

#[test]
fn a_file_of_claude_code_may_begin_with_lines_without_messages() {
    let mut session = Session::new();
    session.compact("The user asks about an order.");
    let note = json!({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}});
    session.lines.splice(0..0, vec![note; 300]);
    assert!(after(&session.file()).ok().contains("8c1f0d2"));
}

/// A failure of the hook never ends with exit code 2, which would stop the compaction.
#[test]
fn a_failure_never_stops_a_compaction() {
    assert!(before(Path::new("/nowhere/s1.jsonl")).fails(4).contains("/nowhere/s1.jsonl"));
    assert!(
        run_with(&["hook"], b"no JSON").fails(4).starts_with("epitome: standard input: this is no event")
    );
    let event = json!({"hook_event_name": "PreCompact", "session_id": "s1"}).to_string();
    assert!(run_with(&["hook"], event.as_bytes()).fails(4).contains("no transcript_path"));
    for wrong in
        [&["hook", "--tokens", "few"][..], &["--color", "never", "hook", "more"], &["hook", "--tokens", "5"]]
    {
        assert_eq!(run_with(wrong, event.as_bytes()).code, 4, "{wrong:?}");
    }
    let folder = Folder::new();
    let file = folder.path("broken.jsonl");
    std::fs::write(&file, "{\"type\":\"user\"").unwrap();
    before(&file).fails(4);
    // The hook refuses a pipe, because it would wait for data.
    let pipe = folder.path("pipe.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(before(&pipe).fails(4).contains("no regular file"));
}
