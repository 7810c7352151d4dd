//! `show`: the text of a transcript for people, without characters that are unsafe for a terminal.

use core::time::Duration;
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::support::*;

/// A line of a Claude Code session, after the line `parent`.
fn line_after(parent: Option<u32>, number: u32, message: &Value) -> String {
    let id = |number: u32| format!("00000000-0000-0000-0000-{number:012}");
    let kind = if message["role"] == "user" { "user" } else { "assistant" };
    let line = json!({"parentUuid": parent.map(id), "isSidechain": false, "sessionId": "s", "cwd": "/p", "type": kind,
        "message": message, "uuid": id(number), "timestamp": "2026-01-01T00:00:00Z"});
    format!("{line}\n")
}

/// A session with a call, its result, and a compaction after them.
fn session() -> String {
    let call = json!([{"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls\n-l \u{1b}[31m"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "file\n".repeat(50)}]);
    let boundary = json!({"parentUuid": null, "logicalParentUuid": "00000000-0000-0000-0000-000000000003",
        "isSidechain": false, "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
        "sessionId": "s", "uuid": "00000000-0000-0000-0000-000000000004",
        "compactMetadata": {"trigger": "manual", "preTokens": 12345}});
    [
        line_after(None, 1, &json!({"role": "user", "content": "Go"})),
        line_after(Some(1), 2, &json!({"role": "assistant", "id": "m1", "content": call})),
        line_after(Some(2), 3, &json!({"role": "user", "content": result})),
        format!("{boundary}\n"),
        line_after(Some(4), 5, &json!({"role": "user", "content": "Go on"})),
        line_after(
            Some(5),
            6,
            &json!({"role": "assistant", "id": "m2", "content": [{"type": "text", "text": "Done."}]}),
        ),
    ]
    .concat()
}

#[test]
fn a_message_is_a_header_and_its_parts() {
    let folder = Folder::new();
    let long = "row\n".repeat(40);
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look\u{1b}]0;title\u{7} at\r\nthis"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="}}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "run", "arguments": "{\"command\": \"ls\\n-l\", \"deep\": {\"n\": [1]}}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": long},
        {"role": "assistant", "content": "Nothing.\u{202e}"},
    ]);
    let path = folder.file("in.json", messages.to_string());
    let said = run(&["show", text(&path)]).ok();
    let headers: Vec<_> = said.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(headers.len(), 5, "{said}");
    assert!(headers[0].starts_with("#0  turn 0  system  ~") && headers[3].ends_with("answers c1"), "{said}");
    assert!(headers[2].ends_with("  calls c1"), "{said}");
    assert!(said.contains("\n  Look␛]0;title␇ at\n  this\n  [image image/png, about 16 bytes]\n"), "{said}");
    assert!(
        said.contains("\n  -> run\n     command:\n       ls\n       -l\n     deep: {\"n\": [1]}\n"),
        "{said}"
    );
    assert!(said.contains("[.. 97 characters on 24 lines left out; --full shows them]"), "{said}");
    assert!(!said.contains("iVBOR") && said.contains("Nothing.\\u202e"), "{said}");
    let full = run(&["show", text(&path), "--full"]).ok();
    assert_eq!(full.matches("\n     row").count(), 40);
    assert!(!full.contains("left out"));
    for said in [said, full] {
        assert!(said.chars().all(|one| one == '\n' || !one.is_control()), "{said:?}");
    }
}

#[test]
fn a_compaction_of_the_tool_is_a_line() {
    let folder = Folder::new();
    let path = folder.file("in.jsonl", session());
    let done = run(&["show", text(&path)]);
    let first =
        "~~~ compacted by the tool that wrote it: 3 messages dropped, 12,345 tokens before (manual)\n";
    assert!(done.out.starts_with(first), "{}", done.out);
    assert!(done.out.contains("#1  turn 1  assistant"), "{}", done.out);
    assert_eq!(
        done.err,
        "epitome: the file has 1 other conversation; `epitome stats` lists them, --leaf takes one that has an id\n"
    );
    let leaf = "00000000-0000-0000-0000-000000000003";
    let before = run(&["show", text(&path), "--leaf", leaf]).ok();
    assert!(before.contains("     command:\n       ls\n       -l ␛[31m\n"), "{before}");
    assert!(before.contains("34 lines left out"), "{before}");
}

#[test]
fn a_turn_and_a_search() {
    let folder = Folder::new();
    let path = folder.file("in.json", serde_json::to_string(&messages(3)).unwrap());
    let headers = |args: &[&str]| {
        let said = run(&[&["show", text(&path)], args].concat()).ok();
        said.lines().filter(|line| line.starts_with('#')).count()
    };
    assert_eq!((headers(&[]), headers(&["--turn", "2"]), headers(&["--turn", "0"])), (16, 5, 1));
    assert_eq!(headers(&["--grep", "question number [01]"]), 2);
    assert_eq!(headers(&["--grep", "(?i)CALL_2_"]), 3);
    // The search covers the text of an argument, not its JSON; and it can be limited to one turn.
    assert_eq!(headers(&["--grep", "SECRET-text 1$"]), 1);
    assert_eq!(headers(&["--grep", "日本語", "--turn", "1"]), 4);

    let none = run(&["show", text(&path), "--grep", "no such words"]);
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (1, "", ""));
    let none = run(&["show", text(&path), "--grep", "question number 0", "--turn", "2"]);
    assert_eq!((none.code, none.out.as_str()), (1, ""));
    let late = run(&["show", text(&path), "--turn", "9"]).fails(2);
    assert_eq!(late, "epitome: --turn 9: the last turn is 3\n");
    let wrong = run(&["show", text(&path), "--grep", "a(b"]).fails(2);
    assert!(wrong.contains("'--grep <RE>': unclosed group"), "{wrong}");
    let one = folder.file("one.json", json!([{"role": "user", "content": "Hi"}]).to_string());
    assert!(
        run(&["show", text(&one), "--turn", "0"])
            .fails(2)
            .contains("nothing stands before the first request")
    );
}

#[test]
fn many_conversations_have_their_places() {
    let said = run(&["show", text(&fixture("conversations.jsonl")), "--each"]).ok();
    assert!(said.starts_with("=== #0 /messages\n") && said.contains("\n=== #1 "), "{said}");
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let folder = Folder::new();
    let some = jsonl(&messages(200));
    let path = folder.file("in.jsonl", some.repeat(20));
    let mut command = program(&["show", text(&path)]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("#0  turn 0"), "{line}");
    drop(out);
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stderr.as_slice()), (Some(0), &b""[..]));
}

/// A program that follows a file, and the lines of its output.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn of(path: &Path, args: &[&str]) -> Self {
        let mut command = program(&[&["show", text(path), "--follow"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        Self { child, lines }
    }

    /// The header lines up to the first one with this beginning.
    fn until(&self, wanted: &str) -> Vec<String> {
        let mut headers = Vec::new();
        loop {
            let line =
                self.lines.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no {wanted}"));
            if line.starts_with('#') || line.starts_with('~') {
                headers.push(line.clone());
            }
            if line.starts_with(wanted) {
                return headers;
            }
        }
    }

    /// Waits for the end of the program, and returns its exit code and standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

fn append(path: &Path, more: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(more.as_bytes()).unwrap();
}

#[test]
fn a_growing_file_is_followed_until_it_is_gone() {
    let folder = Folder::new();
    let all = session();
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    let path = folder.file("in.jsonl", lines[0]);
    let follower = Follower::of(&path, &[]);
    append(&path, lines[1]);
    assert_eq!(follower.until("#1").len(), 2);
    // An incomplete line is not read until its rest arrives.
    let (half, rest) = lines[2].split_at(40);
    append(&path, half);
    append(&path, rest);
    assert_eq!(follower.until("#2").len(), 1);
    // A compaction replaces all messages with others.
    append(&path, &lines[3..].concat());
    let after = follower.until("#1");
    assert!(after[0].starts_with("~~~ compacted by the tool"), "{after:?}");
    assert_eq!(after.len(), 3, "{after:?}");
    fs::remove_file(&path).unwrap();
    let (code, said) = follower.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.ends_with("in.jsonl was removed\n"), "{said}");
}

#[test]
fn following_goes_on_where_the_conversation_does() {
    let folder = Folder::new();
    let said = |what: &str| json!({"role": "user", "content": what});
    let start = [line_after(None, 1, &said("one")), line_after(Some(1), 2, &said("two"))].concat();
    let path = folder.file("in.jsonl", start);
    let follower = Follower::of(&path, &["--grep", "t"]);
    assert_eq!(follower.until("#1").len(), 1, "only what is searched for");
    // The user went back to the first message.
    append(&path, &line_after(Some(1), 3, &said("three, after one")));
    assert_eq!(follower.until("#1").len(), 1);
    let messages = jsonl(&messages(1));
    fs::write(&path, &messages[..messages.find('\n').unwrap() + 1]).unwrap();
    follower.until("#0");
    fs::remove_file(&path).unwrap();
    let (code, said) = follower.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 message shown before is no longer part of the conversation"), "{said}");
    assert!(said.contains("the file is shorter than it was"), "{said}");
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let folder = Folder::new();
    let document = folder.file("in.json", serde_json::to_string_pretty(&messages(2)).unwrap());
    let refused = run(&["show", text(&document), "--follow"]).fails(2);
    assert!(refused.contains("--follow takes files of lines, and this is none"), "{refused}");
    assert!(run(&["show", "-", "--follow"]).fails(2).contains("give it a file"));
    assert!(run(&["show", text(&folder.path("")), "--follow"]).fails(2).contains("no plain file"));
    run(&["show", text(&folder.path("none")), "--follow"]).fails(4);
    // More than sixteen lines, none of which shows a format.
    let odd = folder.file("odd.jsonl", "{\"a\": 1}\n".repeat(20));
    assert!(run(&["show", text(&odd), "--follow"]).fails(2).contains("odd.jsonl: "));
}

#[test]
fn bad_input_names_its_place_and_what_to_do() {
    for (name, part) in [
        ("not-json.txt", "line 1: not JSON"),
        ("truncated.json", "get the rest of it"),
        ("empty.json", "give it a transcript"),
        ("empty-conversation.json", "it has no messages"),
        ("other-shape.json", "expected a conversation"),
        ("nested.json", "try --at /history"),
        ("invalid-utf8.json", "convert"),
        ("unknown-role.json", "role"),
        ("conversations.jsonl", "--each"),
    ] {
        let file = fixture(name);
        for command in
            [&["show"][..], &["stats", "--by", "turn"], &["stats", "--by", "tool"], &["show", "--redact"]]
        {
            let done = run(&[&[command[0], text(&file)], &command[1..]].concat());
            let place = format!("epitome: {}", text(&file));
            assert_eq!(done.code, 2, "{name}: {}", done.err);
            assert!(done.err.starts_with(&place) && done.err.lines().count() == 1, "{}", done.err);
            assert!(done.err.contains(part), "{name}: {}", done.err);
        }
    }
    run(&["show", text(&fixture("none"))]).fails(4);
}
