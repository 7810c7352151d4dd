//! The outline of a file that is not held in memory equals the outline of the whole file.

use std::fs;
use std::io::Cursor;

use epitome_message::Message;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::formats::data;
use crate::{Format, Outline, ReadOptions, SessionLines, WireError, WireErrorKind, detect, read};

/// Compares both readings of `text`. `None` if both refuse it.
fn compare(text: &str, format: Format, leaf: Option<&str>) -> Option<Outline> {
    let mut options = ReadOptions::default().with_from(format);
    options.leaf = leaf.map(str::to_owned);
    let mut lines = SessionLines::new(Cursor::new(text), format).unwrap();
    let (whole, outline) = match (read(text, &options), Outline::read(&mut lines, leaf)) {
        (Ok(whole), Ok(outline)) => (whole, outline),
        (Err(whole), Err(outline)) => {
            assert_eq!((whole.kind(), whole.line()), (outline.kind(), outline.line()), "{text}");
            return None;
        }
        (whole, outline) => panic!("{whole:?} {outline:?} {text}"),
    };
    let mut named = outline
        .conversations()
        .iter()
        .map(|one| (one.id.as_str(), one.label.as_str(), one.relation, one.messages));
    for one in whole.conversations() {
        let expected = (one.id.as_str(), one.label.as_str(), one.relation, one.entries.len());
        assert_eq!(named.next(), Some(expected), "{text}");
    }
    assert_eq!(named.next(), None, "{text}");
    let said: Vec<Message> = outline.messages(&mut lines).collect::<Result<_, WireError>>().unwrap();
    let Some(active) = whole.active() else {
        assert!(said.is_empty());
        return Some(outline);
    };
    assert!(said.iter().eq(active.messages()), "{text}");
    assert_eq!(outline.conversations()[0].compactions, active.compactions, "{text}");
    let usage: Vec<_> = outline.usage(&mut lines).collect::<Result<_, WireError>>().unwrap();
    assert_eq!(usage, *active.usage, "{text}");
    Some(outline)
}

#[test]
fn a_leaf_of_a_text_without_branches_is_refused() {
    let codex = include_str!("../../../../fuzz/seeds/wire_codex/turn.jsonl");
    let chat = r#"{"messages": [{"role": "user", "content": "Hi"}]}"#;
    let leaf = ReadOptions::default().with_leaf("x");
    for (format, text) in
        [(Format::Codex, codex), (Format::OpenaiChat, chat), (Format::Gemini, r#"{"contents": []}"#)]
    {
        let error = read(text, &leaf.clone().with_from(format)).unwrap_err();
        assert_eq!(error.kind(), WireErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains(&format!("this text of {format} has no branches")), "{error}");
    }
    let mut lines = SessionLines::new(Cursor::new(codex), Format::Codex).unwrap();
    assert_eq!(Outline::read(&mut lines, Some("x")).unwrap_err().kind(), WireErrorKind::NotFound);
    let claude = include_str!("../../../../fuzz/seeds/wire_claude_code/branches.jsonl");
    let missing = read(claude, &leaf.with_from(Format::ClaudeCode)).unwrap_err();
    assert_eq!(missing.kind(), WireErrorKind::NotFound);
}

#[test]
fn known_files_have_the_outline_that_reading_them_finds() {
    let seeds = [
        (Format::Codex, include_str!("../../../../fuzz/seeds/wire_codex/turn.jsonl")),
        (Format::Codex, include_str!("../../../../fuzz/seeds/wire_codex/older.jsonl")),
        (Format::ClaudeCode, include_str!("../../../../fuzz/seeds/wire_claude_code/branches.jsonl")),
        (Format::ClaudeCode, include_str!("../../../../fuzz/seeds/wire_claude_code/compacted.jsonl")),
        (Format::Pi, include_str!("../../../../fuzz/seeds/wire_pi/tree.jsonl")),
        (Format::Pi, include_str!("../../../../fuzz/seeds/wire_pi/early.jsonl")),
    ];
    for (format, text) in seeds {
        assert!(
            compare(text, format, None).is_some_and(|found| !found.conversations().is_empty()),
            "{format}"
        );
    }
    for path in data() {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if let Ok(found) = detect(&text).map(|found| found.format)
            && Outline::FORMATS.contains(&found)
        {
            println!("{}", path.display());
            compare(&text, found, None);
        }
    }
}

#[test]
fn a_format_without_an_outline_is_refused() {
    let mut lines = SessionLines::new(Cursor::new(""), Format::OpenaiChat).unwrap();
    assert_eq!(Outline::read(&mut lines, None).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn a_file_that_has_changed_since_is_told() {
    let text = include_str!("../../../../fuzz/seeds/wire_codex/older.jsonl");
    let mut lines = SessionLines::new(Cursor::new(text), Format::Codex).unwrap();
    let outline = Outline::read(&mut lines, None).unwrap();
    let mut other = SessionLines::new(Cursor::new("{}\n"), Format::Codex).unwrap();
    let error = outline.messages(&mut other).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), WireErrorKind::Io);
}

/// A line of Claude Code. Names are few, so that lines are copied, follow each other, and refer to missing lines.
fn claude_line() -> impl Strategy<Value = String> {
    let name = || select(vec!["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let parent = prop_oneof![4 => name().prop_map(Value::from), 1 => Just(Value::Null)];
    let id = || select(vec!["c1", "c2", "c3"]);
    let block = prop_oneof![
        id().prop_map(|id| json!({"type": "tool_use", "id": id, "name": "Task",
            "input": {"prompt": "find it", "description": format!("Finding {id}")}})),
        Just(json!({"type": "text", "text": "I see."})),
    ];
    let usage = any::<u8>().prop_map(|count| json!({"input_tokens": count, "output_tokens": 1}));
    let model = (select(vec!["r1", "r2", "r3"]), block, proptest::option::of(usage)).prop_map(|(id, block, usage)| {
        json!({"type": "assistant", "message": {"id": id, "type": "message", "role": "assistant", "content": [block],
            "usage": usage}})
    });
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let user = prop_oneof![
        select(vec!["find it", "go on"]).prop_map(|text| json!(text)),
        id().prop_map(move |id| json!([result(id)])),
        id().prop_map(move |id| json!([result(id), {"type": "text", "text": "and now?"}])),
        Just(json!([])),
    ];
    let user = (user, any::<bool>()).prop_map(|(content, is_summary)| {
        json!({"type": "user", "message": {"role": "user", "content": content}, "isCompactSummary": is_summary})
    });
    let boundary = Just(
        json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}),
    );
    let title = name().prop_map(|leaf| json!({"type": "summary", "summary": "A title", "leafUuid": leaf}));
    let body = prop_oneof![6 => model, 6 => user, 1 => boundary, 1 => title];
    (name(), parent, name(), select(vec![false, false, true]), body).prop_map(|(name, parent, logical, side, body)| {
        let mut line = json!({"uuid": name, "parentUuid": parent, "logicalParentUuid": logical, "isSidechain": side});
        let members = line.as_object_mut().unwrap();
        members.extend(body.as_object().unwrap().clone());
        line.to_string()
    })
}

/// A line of Codex.
fn codex_line() -> impl Strategy<Value = String> {
    let text = || select(vec!["one", "two", "three"]);
    let message = |role: &'static str| {
        text().prop_map(move |text| json!({"type": "message", "role": role, "content": text}))
    };
    let item = prop_oneof![message("user"), message("assistant")];
    let history = proptest::option::of(proptest::collection::vec(item.clone(), 0..3));
    let line = prop_oneof![
        8 => item.prop_map(|item| ("response_item", item)),
        1 => text().prop_map(|text| ("session_meta", json!({"id": text, "base_instructions": {"text": text}}))),
        2 => (text(), history).prop_map(|(text, history)| {
            ("compacted", json!({"message": text, "replacement_history": history}))
        }),
        3 => any::<u8>().prop_map(|count| {
            let usage = json!({"input_tokens": count, "output_tokens": 1, "total_tokens": 1});
            ("event_msg", json!({"type": "token_count", "info": {"last_token_usage": usage}}))
        }),
    ];
    line.prop_map(|(kind, payload)| json!({"timestamp": "t", "type": kind, "payload": payload}).to_string())
}

/// An entry of pi.
fn pi_line() -> impl Strategy<Value = String> {
    let name = || select(vec!["a", "b", "c", "d", "e", "f", "g", "h"]);
    let said = prop_oneof![
        Just(json!({"role": "user", "content": "go on"})),
        any::<u8>()
            .prop_map(|count| json!({"role": "assistant", "content": [{"type": "text", "text": "I see."}],
            "usage": {"input": count, "output": 1}})),
        Just(json!({"role": "assistant", "content": []})),
    ];
    let body = prop_oneof![
        8 => said.prop_map(|said| json!({"type": "message", "message": said})),
        1 => name().prop_map(|first| json!({"type": "compaction", "summary": "so far", "firstKeptEntryId": first,
            "tokensBefore": 9})),
        1 => Just(json!({"type": "model_change"})),
    ];
    (proptest::option::weighted(0.9, name()), name(), body).prop_map(|(name, parent, mut body)| {
        let members = body.as_object_mut().unwrap();
        members.extend(name.map(|name| ("id".to_owned(), json!(name))));
        members.insert("parentId".to_owned(), json!(parent));
        body.to_string()
    })
}

fn file(line: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    proptest::collection::vec(line, 1..24).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn any_file_of_claude_code_has_the_outline_that_reading_it_finds(text in file(claude_line())) {
        compare(&text, Format::ClaudeCode, None);
        compare(&text, Format::ClaudeCode, Some("d"));
    }

    #[test]
    fn any_file_of_codex_has_the_outline_that_reading_it_finds(text in file(codex_line())) {
        compare(&text, Format::Codex, None);
    }

    #[test]
    fn any_file_of_pi_has_the_outline_that_reading_it_finds(text in file(pi_line())) {
        compare(&text, Format::Pi, None);
        compare(&text, Format::Pi, Some("d"));
    }
}
