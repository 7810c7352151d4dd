//! Input that cannot be used: the message names the place and the remedy, never the text of a message; exit code 2.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::samples;
use super::support::*;

const COMMANDS: [&str; 4] = ["compact", "stats", "validate", "bench"];

/// Every command refuses the file with a message that has all of `parts`; the old output stays.
fn refused(file: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let folder = Folder::new();
    let out = folder.file("out", "old");
    for command in COMMANDS {
        let mut all = vec![command, text(file)];
        all.extend(args);
        if command == "compact" {
            all.extend(["--keep", "50%", "-o", text(&out)]);
        }
        let message = run(&all).fails(code);
        assert!(message.starts_with("epitome: ") && message.ends_with('\n') && message.lines().count() == 1);
        for part in parts.iter().chain([&text(file)]) {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }
    assert_eq!(read(&out), "old");
    assert_eq!(folder.names(), ["out"]);
}

#[test]
fn not_json() {
    refused(&fixture("not-json.txt"), &[], 2, &["line 1: not JSON", "expected a transcript, JSON or JSONL"]);
    let folder = Folder::new();
    let broken = format!("[{{\"role\":\"user\",\"content\":\"{SECRET}\"}},\n  {SECRET}]");
    refused(&folder.file("a.json", broken), &[], 2, &["line 2, column 3: not JSON", "; mend it there"]);
    refused(&folder.file("b", [0, 159, 146, 150]), &[], 2, &["not UTF-8"]);
}

#[test]
fn truncated_json() {
    refused(
        &fixture("truncated.json"),
        &[],
        2,
        &["line 6, column 40", "ends before it is complete", "get the rest of it"],
    );
    let folder = Folder::new();
    let lines = jsonl(&messages(3));
    let cut = folder.file("cut.jsonl", &lines[..lines.len() - 9]);
    refused(&cut, &[], 2, &["line 16, column ", "ends before it is complete"]);
}

/// A file without the end of its last line is usable: an agent writes its session while it works.
#[test]
fn an_unfinished_last_line_of_a_session_is_left_out() {
    let folder = Folder::new();
    let sample = samples::all(6).into_iter().find(|sample| sample.name == "claude-code.jsonl").unwrap();
    let whole = sample.text.lines().count();
    let last = sample.text.trim_end().rfind('\n').unwrap();
    let lines = folder.file("lines.jsonl", &sample.text[..last + 1]);
    let cut = folder.file("cut.jsonl", &sample.text[..last + 30]);
    let notice = format!("epitome: {}: the last line is unfinished: it was left out\n", text(&cut));
    for command in
        [&["stats", "--json"][..], &["show"], &["validate"], &["compact", "--keep", "50%", "--json"]]
    {
        let on = |file: &Path| run(&[command, &[text(file)]].concat());
        let (expected, done) = (on(&lines), on(&cut));
        assert_eq!(
            (done.code, done.out.replace("cut.jsonl", "lines.jsonl")),
            (0, expected.out),
            "{command:?}"
        );
        assert_eq!(done.err, [notice.as_str(), &expected.err].concat(), "{command:?}");
    }
    let out = folder.path("out.jsonl");
    let compact = ["compact", text(&cut), "--keep", "50%", "-o"];
    run(&[&compact[..], &[text(&out)]].concat()).ok();
    assert!(read(&out).ends_with('\n') && read(&out).lines().count() < whole);
    // The agent may complete the line a moment later.
    let before = read(&cut);
    for command in [&compact[..], &["convert", text(&cut), "--to", "anthropic", "-o"]] {
        let refused = run(&[command, &[text(&cut)]].concat()).fails(2);
        assert!(refused.contains("its last line is unfinished, and would be lost"), "{refused}");
        assert_eq!(read(&cut), before);
    }
}

#[test]
fn json_of_another_shape() {
    let expected =
        "expected a conversation: an array of messages (objects with `role`), or an object with `messages`";
    refused(&fixture("other-shape.json"), &[], 2, &["found an object with the key `data`", expected]);
    refused(&fixture("nested.json"), &[], 2, &["/history holds 3 messages: try --at /history"]);
    refused(&fixture("nested.json"), &["--at", "/meta"], 2, &["line 2, column 10", "at /meta", expected]);
    refused(&fixture("nested.json"), &["--at", "/other"], 2, &["`meta`, `history`; it has no key `other`"]);
    refused(&fixture("nested.json"), &["--at", "history"], 2, &["not a JSON pointer: it must begin with /"]);
    refused(
        &fixture("nested.json"),
        &["--at", "/history/9"],
        2,
        &["at /history", "an array of 3; it has no element 9"],
    );
    let folder = Folder::new();
    for (content, found) in
        [("17", "a number"), ("\"x\"", "a text"), ("null", "null"), ("{}", "an empty object")]
    {
        refused(&folder.file("x.json", content), &[], 2, &[&format!("found {found}"), expected]);
    }
    let capitals = json!([{"Role": "user", "Content": SECRET}, {"Role": "assistant"}]).to_string();
    refused(
        &folder.file("y.json", capitals),
        &[],
        2,
        &["an array of 2, the first an object with keys `Content`, `Role`"],
    );
    let number = json!([{"role": "user", "content": SECRET}, {"role": "user", "content": 17}]).to_string();
    refused(
        &folder.file("z.json", number),
        &[],
        2,
        &["at /1/content: expected a text, a list of parts or null, found a number"],
    );
}

#[test]
fn nothing_to_read() {
    refused(&fixture("empty.json"), &[], 2, &["the text is empty", "give it a transcript"]);
    refused(&fixture("empty-conversation.json"), &[], 2, &["the conversation is empty"]);
    refused(&fixture("empty-conversation.json"), &["--each"], 2, &["is empty"]);
    let folder = Folder::new();
    refused(&folder.file("blank.jsonl", "\r\n \n\n"), &[], 2, &["the text is empty"]);
    refused(&folder.file("mark.json", "\u{FEFF}"), &[], 2, &["the text is empty"]);
    let nested = folder.file("n.json", "{\"runs\": [{\"messages\": []}]}");
    refused(&nested, &["--at", "/runs/0"], 2, &["the conversation at /runs/0/messages is empty"]);
}

#[test]
fn unknown_roles() {
    let known = "expected system, developer, user, assistant, tool or function";
    refused(
        &fixture("unknown-role.json"),
        &[],
        2,
        &["line 4, column 12, at /2/role: unknown role `narrator`", known],
    );
}

#[test]
fn invalid_utf8() {
    refused(
        &fixture("invalid-utf8.json"),
        &[],
        2,
        &["line 3, column 39: not UTF-8", "convert the text to UTF-8"],
    );
    let folder = Folder::new();
    let utf16: Vec<u8> = "\u{FEFF}[{}]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused(&folder.file("utf16.json", utf16), &[], 2, &["not UTF-8 but UTF-16"]);
    let mut lines = jsonl(&messages(1)).into_bytes();
    lines.extend(b"{\"role\": \"user\", \"content\": \"\xFF\"}\n");
    refused(&folder.file("lines.jsonl", lines), &[], 2, &["line 7, column 30: not UTF-8"]);
}

#[test]
fn lines_that_mix_messages_and_other_things() {
    refused(
        &fixture("mixed-lines.jsonl"),
        &[],
        2,
        &["line 2: neither a message (an object with `role`) nor a conversation"],
    );
    refused(
        &fixture("conversations.jsonl"),
        &[],
        2,
        &["line 1: the line is a conversation of its own", "try --each"],
    );
    let folder = Folder::new();
    let mixed = format!("{}{}", jsonl(&messages(1)), json!({"messages": messages(1)}));
    let mixed = folder.file("mixed.jsonl", mixed);
    refused(&mixed, &[], 2, &["line 7: the line is a conversation of its own"]);
    refused(&mixed, &["--each"], 2, &["a single message"]);
    let requests = jsonl(&[json!({"body": {"input": messages(1)}}), json!({"body": {"input": messages(1)}})]);
    let requests = folder.file("requests.jsonl", requests);
    refused(&requests, &[], 2, &["/body/input in it holds 6 messages: try --each --at /body/input"]);
    let error = "a place in it begins with the number of a line, from 0, as /0/body/input does; --each reads the same";
    refused(&requests, &["--at", "/body/input"], 2, &[error]);
    refused(
        &requests,
        &["--at", "/2/body/input"],
        2,
        &["there is no line 2: the lines have the numbers 0 to 1"],
    );
    refused(&requests, &["--at", "/1/body"], 2, &["requests.jsonl", "/input"]);
    let second = run(&["stats", text(&requests), "--at", "/1/body/input", "--json"]).json();
    assert_eq!(second["messages"], 6, "{second}");
    // The other lines stay unchanged, in each format.
    let turns = |name: &str| -> Vec<Value> {
        let turn = |from: &str, number: u32| json!({"from": from, "value": format!("{name} {number} {}", "word ".repeat(20))});
        (0..4).flat_map(|number| [turn("human", number), turn("gpt", number)]).collect()
    };
    let of = |name: &str| json!({"id": name, "conversations": turns(name)});
    for (lines, at) in [
        ([json!({"messages": messages(4)}), json!({"messages": messages(3)})], "/1"),
        ([of("one"), of("two")], "/1"),
    ] {
        let file = folder.file("lines.jsonl", jsonl(&lines));
        let out = folder.path("lines.out.jsonl");
        let at = ["--at", at, "--keep", "60%", "--strategy", "truncate", "-o", text(&out)];
        run(&[&["compact", text(&file)], &at[..]].concat()).ok();
        let written = fs::read_to_string(&out).unwrap();
        let written: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((written.len(), &written[0]), (2, &lines[0]));
        assert!(written[1].to_string().len() < lines[1].to_string().len(), "{written:?}");
    }
    run(&["stats", text(&requests), "--each", "--at", "/body/input"]).ok();
}

#[test]
fn each_where_there_is_only_one() {
    let advice = "the file is one conversation: leave out --each";
    refused(&example("coding-agent.json"), &["--each"], 2, &["expected an array", advice]);
    refused(&example("support-chat.jsonl"), &["--each"], 2, &["a single message", advice]);
    refused(&fixture("bom.json"), &["--each"], 2, &["at /0", "a single message", advice]);
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new();
    refused(&folder.path(""), &[], 2, &["this is a directory"]);
    refused(&folder.path("missing.json"), &[], 4, &["No such file", "check its name"]);
    let closed = folder.file("closed.json", "[]");
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    match fs::read(&closed) {
        Ok(_) => println!("skipped: this user may read everything"),
        Err(_) => refused(&closed, &[], 4, &["Permission denied"]),
    }
}

#[test]
fn a_message_stays_on_its_line_whatever_a_name_holds() {
    let message = run(&["stats", "no\n\u{1b}[31msuch\u{9b}"]).fails(4);
    assert!(message.starts_with(r"epitome: no␊␛[31msuch\u009b: No such file"), "{message}");
    let folder = Folder::new();
    let file = folder.file("a.json", "{\"a\\u001b[31mkey\": 1}");
    assert!(run(&["stats", text(&file)]).fails(2).contains(r"the key `a\u{1b}[31mkey`"));
}

#[test]
fn deep_nesting_needs_no_stack() {
    let folder = Folder::new();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    refused(&folder.file("deep.json", &deep), &[], 2, &["found an array of 1"]);
    refused(&folder.file("cut.json", &deep[..150_000]), &[], 2, &["ends before it is complete"]);
    // Inside a message the nested value is data that the program never reads.
    let message = format!(
        "[{{\"role\":\"user\",\"content\":\"{SECRET}\",\"x\":{deep}}},{{\"role\":\"assistant\",\"content\":\"a\"}}]"
    );
    let file = folder.file("inside.json", &message);
    run(&["validate", text(&file)]).ok();
    let out = folder.path("out.json");
    run(&["compact", text(&file), "--keep", "50%", "-o", text(&out)]).ok();
    assert_eq!(read(&out), message);
    let store = format!("sqlite:{}", text(&folder.path("s.db")));
    run(&["session", "import", text(&file), "--store", &store, "--session", "deep"]).ok();
    run(&["session", "show", "--store", &store, "--session", "deep"]).ok();
}

#[test]
fn a_huge_text() {
    let folder = Folder::new();
    let huge = "lorem ipsum ".repeat(10 * 1024 * 1024 / 12);
    let mut all = messages(6);
    all[3]["content"] = json!(huge);
    let file = folder.file("huge.jsonl", jsonl(&all));
    let out = folder.path("out.jsonl");
    let report = report(&file, &["--window", "8000", "-o", text(&out)]);
    assert_eq!(report["goal_missed"], false);
    assert!(read(&out).len() < 100_000);
    // A protected message of this size does not fit: the error names the message.
    all[3]["content"] = json!("short");
    let last = all.len() - 5;
    all[last]["content"] = json!(huge);
    let file = folder.file("protected.json", serde_json::to_string(&all).unwrap());
    let message = run(&["compact", text(&file), "--window", "8000"]).fails(3);
    assert!(message.contains(&format!("shorten the largest of it: message {last} (user, ")), "{message}");
}

#[test]
fn a_file_that_no_memory_holds() {
    let folder = Folder::new();
    let file = folder.file("x", "");
    fs::File::options().write(true).open(&file).unwrap().set_len(8 << 40).unwrap();
    for command in COMMANDS {
        // Some machines promise more memory than they have: this shell has a limit.
        let limited =
            format!("ulimit -v 4000000; exec {} {command} {}", env!("CARGO_BIN_EXE_epitome"), text(&file));
        let output = std::process::Command::new("sh").args(["-c", &limited]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("x: too large for memory (8.80 TB): a JSONL file, "), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_file_that_is_larger_than_any_that_is_held() {
    let folder = Folder::new();
    let file = folder.file("x", "");
    fs::File::options().write(true).open(&file).unwrap().set_len((4 << 30) + 1).unwrap();
    for command in COMMANDS {
        let said = run(&[command, text(&file)]).fails(4);
        assert!(said.contains("x: too large for memory (4.29 GB): a JSONL file, "), "{said}");
        assert!(said.contains("more than 4.00 GiB is never held"), "{said}");
    }
}

#[test]
fn a_file_whose_messages_no_memory_holds() {
    let folder = Folder::new();
    let message = r#"{"role":"user","content":"go"},"#;
    let messages = message.repeat((15 << 20) / message.len());
    let file = folder.file("x.json", format!("[{}]", messages.trim_end_matches(',')));
    let limited = format!("ulimit -v 300000; exec {} stats {}", env!("CARGO_BIN_EXE_epitome"), text(&file));
    let output = std::process::Command::new("sh").args(["-c", &limited]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("x.json: too large for memory (15.73 MB): a JSONL file, "), "{said}");
}
