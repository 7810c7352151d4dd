//! Transcripts of other formats than Chat Completions, and conversion between them.

use serde_json::{Value, json};

use crate::samples;
use crate::support::{Folder, SECRET, read, run, run_with, text};

/// The report of a conversion without losses.
const WHOLE: &str =
    "no message has lost anything; fields beside the messages (model, tools) are not converted\n";

/// A request to Anthropic with a call, its result and a text next to the result.
fn anthropic() -> String {
    let messages = json!([
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": SECRET, "signature": "sealed"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": SECRET.repeat(40)},
            {"type": "text", "text": "And?"}]},
        {"role": "assistant", "content": "Done"},
        {"role": "user", "content": "More"},
        {"role": "assistant", "content": "Done again"},
        {"role": "user", "content": "Even more"},
        {"role": "assistant", "content": "Again"},
    ]);
    json!({"system": "S", "messages": messages, "max_tokens": 9}).to_string()
}

#[test]
fn stats_and_validate_read_what_the_file_looks_like() {
    let folder = Folder::new();
    let path = folder.file("in.json", anthropic());
    let stats = run(&["stats", text(&path), "--json"]).json();
    assert_eq!((&stats["messages"], &stats["calls"], &stats["turns"]), (&json!(10), &json!(1), &json!(4)));
    let valid = run(&["validate", text(&path)]).ok();
    assert!(valid.contains("valid under anthropic"), "{valid}");
    let refused = run(&["validate", text(&path), "--from", "openai-responses"]).fails(2);
    assert!(refused.contains("expected a text or an array of items"), "{refused}");
}

#[test]
fn fields_that_a_provider_refuses_are_named_and_converted() {
    let folder = Folder::new();
    let long = "x".repeat(41);
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
    let chat = json!([
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": " \n", "tool_calls": [call("f.read:0", "fs.read"), call(&long, "b")]},
        result("f.read:0"),
        result(&long),
        {"role": "assistant", "content": " \n"},
        {"role": "user", "content": "Go on"},
    ]);
    let path = folder.file("in.json", chat.to_string());
    let kinds = |profile: &str| -> Vec<Value> {
        let done = run(&["validate", text(&path), "--profile", profile, "--json"]);
        assert_eq!(done.code, 1, "{}", done.err);
        let report: Value = serde_json::from_str(&done.out).unwrap();
        report["violations"].as_array().unwrap().clone()
    };
    let at = |all: &[(u32, &str)]| -> Vec<Value> {
        all.iter().map(|(at, kind)| json!({"position": at, "kind": kind})).collect()
    };
    assert_eq!(kinds("openai-chat"), at(&[(1, "tool_name"), (1, "call_id")]));
    assert_eq!(kinds("openai-responses"), at(&[(1, "tool_name")]));
    assert_eq!(kinds("anthropic"), at(&[(1, "call_id"), (4, "blank_text")]));
    run(&["validate", text(&path), "--profile", "gemini"]).ok();
    let said = run(&["validate", text(&path)]).out;
    let line = "message 1: the name of a tool is too long, or has a character that is refused (tool_name)\n";
    assert!(said.contains(line), "{said}");
    for (to, kinds) in [
        ("openai-chat", &["call-id", "tool-name"][..]),
        ("openai-responses", &["tool-name"]),
        ("anthropic", &["blank-text", "call-id"]),
        ("gemini", &[]),
        ("langchain", &[]),
    ] {
        let done = run(&["convert", text(&path), "--to", to, "--json"]);
        let losses: Value = serde_json::from_str(&done.err).unwrap();
        let told: Vec<_> = losses["by_kind"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(told, kinds, "{to}");
        assert_eq!(done.out.contains("\"fs_read\""), kinds.contains(&"tool-name"), "{}", done.out);
        run_with(&["validate", "-", "--from", to], done.out.as_bytes()).ok();
    }
}

#[test]
fn a_conversion_that_leaves_nothing_is_refused() {
    let alone = br#"[{"role":"tool","tool_call_id":"c","content":"1"}]"#;
    let message = run_with(&["convert", "-", "--to", "openai-responses"], alone).fails(2);
    let expected = "nothing is left of it in openai-responses: message 0: message: nothing of it is left, or";
    assert!(message.contains(expected), "{message}");
    let blank =
        run_with(&["convert", "-", "--to", "anthropic"], br#"[{"role":"user","content":" "}]"#).fails(2);
    assert!(blank.contains("message 0: blank-text"), "{blank}");
    // Among other conversations, the empty one is left out.
    let lines = [&alone[..], &br#"[{"role":"user","content":"Hi"}]"#[..]].join(&b'\n');
    let done = run_with(&["convert", "-", "--to", "openai-responses", "--each"], &lines);
    assert_eq!((done.code, done.out.lines().count()), (0, 1), "{}", done.err);
    assert!(done.err.contains("1 conversation without messages left out"), "{}", done.err);
}

#[test]
fn a_compacted_request_keeps_its_form() {
    let folder = Folder::new();
    let path = folder.file("in.json", anthropic());
    let out = folder.path("out.json");
    run(&["compact", text(&path), "--keep", "30%", "-o", text(&out)]).ok();
    let (before, after) = (anthropic(), read(&out));
    assert!(after.len() < before.len() && after.contains("\"system\":\"S\""), "{after}");
    run(&["validate", text(&out), "--profile", "anthropic", "--from", "anthropic"]).ok();
    // A document without a change is the same text.
    run(&["compact", text(&path), "-o", text(&out)]).ok();
    assert_eq!(read(&out), before);
}

#[test]
fn a_conversion_is_legal_and_its_losses_are_told() {
    let folder = Folder::new();
    let path = folder.file("in.json", anthropic());
    for to in samples::TARGETS.into_iter().filter(|to| *to != "anthropic") {
        let done = run(&["convert", text(&path), "--to", to, "--json"]);
        assert_eq!(done.code, 0);
        let losses: Value = serde_json::from_str(&done.err).unwrap();
        assert_eq!(losses["by_kind"]["sealed-reasoning"], 1, "{losses}");
        assert!(!done.out.contains("sealed"), "{to}");
        run_with(&["validate", "-", "--from", to], done.out.as_bytes()).ok();
    }
    let plain = run_with(&["convert", "-", "--to", "gemini"], br#"[{"role":"user","content":"Hi"}]"#);
    assert_eq!(plain.err, WHOLE);
    assert_eq!(plain.out, "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"Hi\"}]}]}\n");
}

#[test]
fn several_conversations_are_lines() {
    let line = r#"{"body": {"system": "S", "messages": [{"role": "user", "content": "Hi"}]}}"#;
    let folder = Folder::new();
    let path = folder.file("in.jsonl", format!("{line}\n{line}\n"));
    let done = run(&["convert", text(&path), "--each", "--at", "/body", "--to", "openai-chat"]);
    assert_eq!(done.out.lines().count(), 2);
    assert_eq!(done.err, WHOLE);
}

#[test]
fn what_fits_several_formats_is_refused() {
    let unsure = br#"[{"role":"user","content":[{"type":"novel"}]}]"#;
    let refused = run_with(&["stats", "-"], unsure).fails(2);
    assert!(refused.contains("several formats fit") && refused.contains("--from"), "{refused}");
    run_with(&["stats", "-", "--from", "anthropic"], unsure).ok();
    let unknown = run(&["convert", "-", "--to", "codex"]).fails(2);
    assert!(unknown.contains("[possible values: openai-chat, "), "{unknown}");
}

/// Calls without ids can be compacted. A reader derives their ids from the calls before them, which a compaction may
/// remove.
#[test]
fn calls_without_ids_are_compacted() {
    let samples = samples::all(8);
    let folder = Folder::new();
    for name in ["gemini-without-ids.json", "adk.json"] {
        let sample = samples.iter().find(|sample| sample.name == name).unwrap();
        let (file, out) = (folder.file(name, &sample.text), folder.path("out.json"));
        run(&["compact", text(&file), "--keep", "40%", "-o", text(&out)]).ok();
        let left = run(&["validate", text(&out)]).ok();
        assert!(left.contains("valid under"), "{left}");
        assert!(read(&out).len() < sample.text.len(), "{name}");
    }
}

/// No strategy removes the records that a program needs in its file.
#[test]
fn a_session_that_was_compacted_is_compacted_again() {
    let words = "a few more words of it. ".repeat(40);
    let said = |id: &str, role: &str, more: Value, part: Value| {
        let mut info = json!({"id": id, "role": role});
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"info": info, "parts": [part]})
    };
    let mut messages = vec![
        said("u0", "user", json!({}), json!({"type": "text", "text": "first"})),
        said("u1", "user", json!({}), json!({"type": "compaction", "auto": true})),
        said(
            "a1",
            "assistant",
            json!({"parentID": "u1", "summary": true, "finish": "stop"}),
            json!({"type": "text", "text": "so far"}),
        ),
    ];
    for turn in 2..12 {
        let (user, answer) = (format!("u{turn}"), format!("a{turn}"));
        messages.push(said(&user, "user", json!({}), json!({"type": "text", "text": "more"})));
        messages.push(said(&answer, "assistant", json!({}), json!({"type": "text", "text": words})));
    }
    let folder = Folder::new();
    let file = folder.file("opencode.json", json!({"info": {"id": "s"}, "messages": messages}).to_string());
    let out = folder.path("out.json");
    run(&["compact", text(&file), "--keep", "40%", "-o", text(&out)]).ok();
    let left = read(&out);
    assert!(left.contains("so far") && left.contains("compaction") && left.len() < read(&file).len());
}

/// An export is read; one of its conversations is selected by its id, and written alone in another format.
#[test]
fn exports_are_read_and_converted() {
    let words = "a few more words of it. ".repeat(30);
    let node = |at: usize, role: &str| {
        let parent = at.checked_sub(1).map(|parent| format!("n{parent}"));
        let content = json!({"content_type": "text", "parts": [format!("{at}: {words}")]});
        let message = json!({"author": {"role": role}, "content": content, "recipient": "all"});
        (format!("n{at}"), json!({"message": message, "parent": parent}))
    };
    let tree: serde_json::Map<_, _> =
        (0..20).map(|at| node(at, if at % 2 == 0 { "user" } else { "assistant" })).collect();
    let short: serde_json::Map<_, _> = [node(0, "user"), node(1, "assistant")].into_iter().collect();
    let chatgpt = json!([
        {"id": "c1", "title": "Short", "mapping": short, "current_node": "n1"},
        {"id": "c2", "title": "Long", "mapping": tree, "current_node": "n19"},
    ]);
    let said = |at: usize, sender: &str| json!({"uuid": format!("m{at}"), "sender": sender, "text": format!("{at}: {words}")});
    let messages = |n: usize| -> Vec<Value> {
        (0..n).map(|at| said(at, if at % 2 == 0 { "human" } else { "assistant" })).collect()
    };
    let claude = json!([{"uuid": "c1", "name": "Short", "chat_messages": messages(2)},
        {"uuid": "c2", "name": "Long", "chat_messages": messages(20)}]);
    for (name, export) in [("chatgpt.json", chatgpt), ("claude-ai.json", claude)] {
        let folder = Folder::new();
        let (file, out) = (folder.file(name, export.to_string()), folder.path("out.json"));
        let stats = run(&["stats", text(&file)]).ok();
        assert!(stats.starts_with("2 messages") && stats.contains("c2  Long"), "{stats}");
        let long = run(&["stats", text(&file), "--leaf", "c2", "--json"]).json();
        assert_eq!(long["messages"], json!(20), "{name}");
        let missing = run(&["stats", text(&file), "--leaf", "c3"]).fails(2);
        assert!(missing.contains("no conversation, and no message, has the id `c3`"), "{missing}");
        let compact = ["compact", text(&file), "--leaf", "c2", "--keep", "50%", "-o", text(&out)];
        let converted = run(&["convert", text(&file), "--to", "openai-chat"]);
        assert!(
            converted.err.starts_with("epitome: the file has 1 other conversation;"),
            "{}",
            converted.err
        );
        let all = run(&["convert", text(&file), "--to", "openai-chat", "--each"]);
        assert_eq!((all.out.lines().count(), &*all.err), (2, WHOLE));
        let refused = run(&compact).fails(2);
        assert!(refused.contains("only read") && refused.contains("--to FORMAT"), "{refused}");
        run(&[&compact[..], &["--to", "openai-chat"]].concat()).ok();
        let left = run(&["stats", text(&out), "--json"]).json();
        assert!(left["messages"].as_u64().unwrap() < 16, "{left}");
        let valid = run(&["validate", text(&out)]).ok();
        assert!(valid.contains("valid under"), "{valid}");
    }
}

#[test]
fn a_leaf_of_a_file_without_branches_is_refused() {
    let folder = Folder::new();
    for (name, text_of) in [
        ("chat.json", r#"[{"role":"user","content":"Hi"}]"#),
        ("chat.jsonl", "{\"role\":\"user\",\"content\":\"Hi\"}\n"),
    ] {
        let file = folder.file(name, text_of);
        run(&["stats", text(&file)]).ok();
        let refused = run(&["stats", text(&file), "--leaf", "x"]).fails(2);
        assert!(refused.contains("this text of openai-chat has no branches"), "{refused}");
    }
}

/// Markdown is no JSON: it is read, written back and converted, and the options for JSON are refused.
#[test]
fn a_history_of_aider_is_read_written_and_converted() {
    let sample = samples::all(8).into_iter().find(|sample| sample.name == "aider.md").unwrap();
    for mark in ["", "\u{FEFF}"] {
        let folder = Folder::new();
        let (file, out) = (folder.file("a.md", format!("{mark}{}", sample.text)), folder.path("out.md"));
        let stats = run(&["stats", text(&file), "--json"]).json();
        assert_eq!((&stats["messages"], &stats["turns"]), (&json!(25), &json!(8)));
        let shown = run(&["show", text(&file)]).ok();
        assert!(shown.contains("question number 7") && !shown.contains("####"), "{shown}");
        run(&["compact", text(&file), "--keep", "40%", "-o", text(&out)]).ok();
        let left = read(&out);
        assert!(
            left.starts_with(&format!("{mark}\n# aider chat started at")) && left.ends_with("  \n\n"),
            "{left}"
        );
        assert!(left.len() < sample.text.len() / 2, "{left}");
        let left = run(&["stats", text(&out), "--json"]).json();
        assert!(left["messages"].as_u64().unwrap() < 12, "{left}");
        let chat = run(&["compact", text(&file), "--keep", "40%", "--to", "openai-chat", "-o", "-"]).out;
        assert!(serde_json::from_str::<Value>(&chat).is_ok(), "{chat}");
        let anthropic = run(&["convert", text(&file), "--to", "anthropic"]);
        assert_eq!(anthropic.err, WHOLE);
        run_with(&["validate", "-", "--from", "anthropic"], anthropic.out.as_bytes()).ok();
        for args in [&["--each"][..], &["--at", "/x"], &["--from", "aider", "--each"]] {
            let refused = run(&[&["stats", text(&file)], args].concat()).fails(2);
            assert!(refused.contains("a.md: a chat history of aider is markdown"), "{refused}");
        }
        let refused = run(&["stats", text(&file), "--leaf", "x"]).fails(2);
        assert!(refused.contains("has no branches"), "{refused}");
    }
    let bare = run_with(&["stats", "-", "--from", "aider", "--json"], b"#### Go  \n\nDone.\n").json();
    assert_eq!(bare["messages"], json!(2));
    let page = run_with(&["stats", "-"], b"# A page\n\nWords.\n").fails(2);
    assert!(page.contains("line 1: not JSON"), "{page}");
    let page = run_with(&["stats", "-", "--from", "aider"], b"# A page\n\nWords.\n").fails(2);
    assert!(page.contains("line 1: no line begins with"), "{page}");
}

/// Another notation of the same content is neither a loss nor a reason to refuse the conversion.
#[test]
fn a_conversion_takes_the_forms_of_its_target() {
    let call = |arguments: &str| {
        json!([{"role": "user", "content": "Look."},
            {"role": "assistant", "content": "", "tool_calls":
                [{"id": "c", "type": "function", "function": {"name": "list", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": "c",
                "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}])
    };
    let legacy = json!([{"role": "user", "content": "Look."},
        {"role": "assistant", "content": null, "function_call": {"name": "list", "arguments": "{}"}},
        {"role": "function", "name": "list", "content": "one"}]);
    let picture =
        |url: &str| json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]);
    for messages in
        [call(""), call("{}"), legacy, picture("https://example.org/1"), picture("https://example.org/a.png")]
    {
        for to in samples::TARGETS {
            let request = json!({"messages": messages}).to_string();
            let done = run_with(&["convert", "-", "--from", "openai-chat", "--to", to], request.as_bytes());
            assert_eq!((done.code, &*done.err), (0, WHOLE), "{to}: {request}");
            run_with(&["validate", "-", "--from", to], done.out.as_bytes()).ok();
            if request.contains("image_url") {
                let shown = run_with(&["show", "-", "--from", to], done.out.as_bytes()).ok();
                assert!(shown.contains("[image"), "{to}: {shown}");
            }
        }
    }
    // Reasoning in several parts becomes one text in Chat Completions.
    let thought = json!({"input": [{"role": "user", "content": "Look."},
        {"type": "reasoning", "id": "r1", "summary": [], "content": [{"type": "reasoning_text", "text": "First."}]},
        {"type": "reasoning", "id": "r2", "summary": [], "content": [{"type": "reasoning_text", "text": "Then."}]},
        {"role": "assistant", "content": "Done."}]});
    let done = run_with(&["convert", "-", "--to", "openai-chat"], thought.to_string().as_bytes());
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("First.") && done.out.contains("Then."), "{}", done.out);
}
