//! Chats in no known format, chats with the further fields of Chat Completions, and messages without content.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::*;

/// Every command that reads a transcript, with the arguments that let it write.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("stats", &[]),
    ("validate", &[]),
    ("show", &[]),
    ("compact", &["--keep", "50%"]),
    ("convert", &["--to", "anthropic"]),
];

/// Every command refuses the file with an error that has all of `parts`.
fn refused(file: &Path, parts: &[&str]) {
    for (command, more) in COMMANDS {
        let args: Vec<_> = [command, text(file)].iter().chain(more).copied().collect();
        let message = run(&args).fails(2);
        assert_eq!(message.lines().count(), 1, "{message}");
        for part in parts {
            assert!(message.contains(part), "{command}: {part:?} is not in: {message}");
        }
    }
}

/// Messages in no known format: their description, their name in the refusal, and an example.
fn foreign() -> Vec<(&'static str, &'static str, Vec<Value>)> {
    vec![
        (
            "a text without content",
            "`text` in the place of `content`",
            vec![json!({"role": "user", "text": SECRET}), json!({"role": "assistant", "text": SECRET})],
        ),
        (
            "one block without a type",
            "a block of content without a `type`",
            vec![
                json!({"role": "user", "content": SECRET}),
                json!({"role": "assistant", "content": [{"words": SECRET}]}),
            ],
        ),
        ("roles alone", "no known format fits", vec![json!({"role": "user"}), json!({"role": "assistant"})]),
        (
            "blocks of two formats",
            "no known format fits",
            vec![
                json!({"role": "user", "content": SECRET}),
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}),
                json!({"role": "tool", "tool_call_id": "t", "content": SECRET}),
            ],
        ),
    ]
}

#[test]
fn messages_that_no_format_fits_are_refused_by_every_command() {
    let folder = Folder::new();
    for (name, words, messages) in foreign() {
        println!("{name}");
        let remedy =
            if words.starts_with("no known") { "--from" } else { "which is not read: convert it to" };
        refused(&folder.file("array.json", Value::from(messages.clone()).to_string()), &[words, remedy]);
        refused(&folder.file("request.json", json!({"messages": messages}).to_string()), &[words, remedy]);
        refused(&folder.file("lines.jsonl", jsonl(&messages)), &[words, remedy]);
        let nested = folder.file("nested.json", json!({"run": {"messages": messages}}).to_string());
        let message = run(&["stats", text(&nested), "--at", "/run"]).fails(2);
        assert!(message.contains(words) && message.contains("/run"), "{message}");
        let each = folder.file("each.json", json!([{"messages": messages}]).to_string());
        let message = run(&["stats", text(&each), "--each"]).fails(2);
        assert!(message.contains(words) && message.contains("/0"), "{message}");
    }
}

#[test]
fn a_refusal_names_the_message_that_is_of_no_format() {
    let folder = Folder::new();
    let mut messages =
        vec![json!({"role": "user", "content": "Hi"}), json!({"role": "assistant", "content": "Yes?"})];
    messages.push(json!({"role": "user", "content": [{"words": SECRET}]}));
    refused(&folder.file("a.json", json!({"messages": messages}).to_string()), &["at /messages/2"]);
    refused(&folder.file("a.jsonl", jsonl(&messages)), &["line 3"]);
}

/// Fields of a message that only Chat Completions has.
fn fields() -> Vec<(&'static str, Value, Value)> {
    let blocks = json!([{"type": "text", "text": SECRET}]);
    vec![
        ("assistant", json!(SECRET), json!({"reasoning_content": "hm"})),
        ("assistant", json!(SECRET), json!({"reasoning": "hm"})),
        ("assistant", Value::Null, json!({"refusal": SECRET})),
        ("assistant", json!(SECRET), json!({"refusal": null})),
        ("assistant", Value::Null, json!({"audio": {"id": "a"}})),
        ("assistant", json!(SECRET), json!({"audio": null, "function_call": null, "tool_calls": null})),
        ("assistant", json!(SECRET), json!({"name": "bob"})),
        ("user", json!(SECRET), json!({"name": "bob"})),
        ("user", blocks.clone(), json!({"name": "bob"})),
        ("assistant", blocks, json!({"reasoning_content": "hm"})),
    ]
}

#[test]
fn fields_that_only_chat_completions_has_decide() {
    let folder = Folder::new();
    for (role, content, more) in fields() {
        println!("{role} {more}");
        let mut message = json!({"role": role, "content": content});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let all = [
            json!({"role": "user", "content": "Hi"}),
            json!({"role": "assistant", "content": "Yes?"}),
            message,
            json!({"role": if role == "user" { "assistant" } else { "user" }, "content": "Go on"}),
        ];
        let file = folder.file("in.json", json!({"messages": all}).to_string());
        for (command, more) in COMMANDS {
            let args: Vec<_> = [command, text(&file)].iter().chain(more).copied().collect();
            run(&args).ok();
        }
        let valid = run(&["validate", text(&file)]).ok();
        assert!(valid.contains("valid under openai-chat"), "{valid}");
        run(&["stats", text(&folder.file("in.jsonl", jsonl(&all)))]).ok();
    }
}

#[test]
fn a_stronger_sign_of_another_format_outweighs_a_field() {
    let folder = Folder::new();
    let chat = json!([{"role": "user", "content": SECRET, "name": "bob"}]);
    let request = folder.file("in.json", json!({"system": "S", "messages": chat}).to_string());
    assert!(run(&["validate", text(&request)]).ok().contains("valid under anthropic"));
}

#[test]
fn a_message_that_says_nothing_is_told_by_its_number() {
    let folder = Folder::new();
    let silent = [
        json!({"role": "assistant"}),
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant", "content": ""}),
        json!({"role": "assistant", "content": []}),
        json!({"role": "assistant", "content": null, "tool_calls": []}),
    ];
    for message in silent {
        println!("{message}");
        let all = [
            json!({"role": "user", "content": "Hi"}),
            message,
            json!({"role": "user", "content": "Hm"}),
            json!({"role": "assistant", "content": "Yes?"}),
        ];
        for file in [
            folder.file("in.json", json!({"messages": all}).to_string()),
            folder.file("in.jsonl", jsonl(&all)),
        ] {
            for command in ["validate", "stats"] {
                let done = run(&[command, text(&file)]);
                let words = "warning: message 1 (assistant) has no content that can be read";
                assert!(done.err.contains(words), "{command}: {}", done.err);
                done.ok();
                run(&[command, text(&file), "--json"]).json();
            }
        }
    }
    let fine = folder.file("fine.json", Value::from(messages(3)).to_string());
    for command in ["validate", "stats"] {
        assert_eq!(run(&[command, text(&fine)]).err, "");
    }
}

#[test]
fn many_silent_messages_are_counted() {
    let folder = Folder::new();
    let mut all = vec![json!({"role": "user", "content": "Hi"})];
    all.resize(40, json!({"role": "assistant", "content": ""}));
    let done = run(&["stats", text(&folder.file("in.jsonl", jsonl(&all)))]);
    assert!(
        done.err.contains("warning: 39 messages have no content that can be read: 1, 2, 3, "),
        "{}",
        done.err
    );
    assert!(done.err.contains("and 34 more") && done.err.lines().count() == 1, "{}", done.err);
}

/// A text in a known format that the reader of this format refuses is refused: another reader would lose its content.
#[test]
fn a_broken_text_of_a_known_format_is_refused_with_its_place() {
    let folder = Folder::new();
    let parts = json!([{"role": "user", "parts": [{"type": "text", "text": SECRET}]},
        {"role": "assistant", "parts": [{"type": "text", "text": "ok"}, null]}]);
    refused(&folder.file("a.json", parts.to_string()), &["/1/parts/1"]);
    let recorded = json!({"gen_ai.input.messages": "[]"});
    refused(&folder.file("b.json", recorded.to_string()), &["put the list itself"]);
}
