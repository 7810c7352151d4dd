use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part};

use crate::{Format, ReadOptions, Relation, Transcript, WireErrorKind, detect, read, write_back};

const EXPORT: &str = include_str!("../../../../fuzz/seeds/wire_claude_ai/conversations.json");

fn transcript(text: &str) -> Transcript {
    read(text, &ReadOptions::default()).unwrap()
}

/// Each message: its role, and the kinds of its parts.
fn said<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<(Role, String)> {
    let part = |part: &Part| match part {
        Part::Text(text) => text.to_string(),
        Part::Reasoning(thought) => format!("({})", &*thought.text),
        Part::ToolCall(call) => format!("{}={} {:?}", &*call.id, &*call.name, call.kind),
        Part::ToolResult(result) => format!("{}:{}", &*result.call_id, result.parts.len()),
        _ => "?".to_owned(),
    };
    let of = |message: &Message| {
        (message.role(), message.parts().iter().map(part).collect::<Vec<_>>().join(" | "))
    };
    messages.map(of).collect()
}

fn line(role: Role, parts: &str) -> (Role, String) {
    (role, parts.to_owned())
}

#[test]
fn messages_blocks_attachments_and_branches_are_read() {
    let transcript = transcript(EXPORT);
    let found = transcript.conversations();
    let heads: Vec<_> = found.iter().map(|one| (&*one.id, &*one.label, one.relation, one.active)).collect();
    assert_eq!(
        heads,
        [
            ("c-1", "Order", Relation::Own, true),
            ("m4", "", Relation::Branch(0), false),
            ("c-2", "", Relation::Own, true),
            ("c-3", "", Relation::Own, true),
        ]
    );
    let before = [
        line(Role::User, "Read it | order 12 日本 | ?"),
        line(Role::Assistant, "(I look.) | t1=repl Function"),
        line(Role::Tool, "t1:1"),
        line(Role::Assistant, "It is 12."),
        line(Role::User, "And this?"),
    ];
    let after = |last: &str| [before.to_vec(), vec![line(Role::Assistant, last)]].concat();
    assert_eq!(said(found[0].messages()), after("=web_search Hosted | :0 | It is 13."));
    assert_eq!(said(found[1].messages()), after("An abandoned answer"));
    assert_eq!(said(found[2].messages()), [line(Role::User, "Old"), line(Role::Assistant, "An old answer")]);
    assert!(found[3].entries.is_empty());
    let call = found[0].entries[5].message().parts()[0].clone();
    assert!(matches!(call, Part::ToolCall(call) if call.kind == CallKind::Hosted));
}

#[test]
fn the_leaf_that_the_export_names_or_that_is_asked_for_goes_on() {
    let named =
        EXPORT.replacen(r#""name": "Order""#, r#""name": "Order", "current_leaf_message_uuid": "m4""#, 1);
    for text in [transcript(&named), read(EXPORT, &ReadOptions::default().with_leaf("m4")).unwrap()] {
        let last = said(text.conversations()[0].messages()).pop();
        assert_eq!(last, Some(line(Role::Assistant, "An abandoned answer")));
    }
}

#[test]
fn the_message_that_stands_last_goes_on_and_names_may_be_missing() {
    let message = |uuid: &str, parent: &str, sender: &str| {
        format!(
            r#"{{"uuid": {uuid}, "parent_message_uuid": {parent}, "sender": "{sender}", "text": "says {sender}"}}"#
        )
    };
    let messages = [
        message("\"a\"", "null", "human"),
        message("\"b1\"", "\"a\"", "assistant"),
        message("null", "\"a\"", "assistant"),
        message("\"c\"", "\"b1\"", "human"),
        message("\"d\"", "\"c\"", "assistant"),
        message("null", "\"d\"", "human"),
    ];
    let transcript = transcript(&format!(r#"{{"chat_messages": [{}]}}"#, messages.join(",")));
    let counts: Vec<_> = transcript.conversations().iter().map(|one| one.entries.len()).collect();
    assert_eq!(counts, [5, 2]);
}

/// For clients that cannot show a block, claude.ai writes a text. This text is not read as a part of the message.
#[test]
fn a_text_beside_blocks_is_not_said() {
    let filler = "This block is not supported on your current device yet.";
    let text = format!(
        r#"{{"chat_messages": [{{"sender": "human", "text": "Go"}}, {{"sender": "assistant", "text": "{filler}",
            "content": [{{"type": "tool_use", "id": "t", "name": "f", "input": {{}}}}, {{"type": "tool_result", "tool_use_id": "t", "content": "x"}}]}}]}}"#
    );
    let transcript = transcript(&text);
    let said = said(transcript.conversations()[0].messages());
    assert_eq!(
        said,
        [line(Role::User, "Go"), line(Role::Assistant, "t=f Function"), line(Role::Tool, "t:1")]
    );
}

#[test]
fn it_is_told_and_only_read() {
    assert_eq!(detect(EXPORT).unwrap().format, Format::ClaudeAi);
    let mut transcript = transcript(EXPORT);
    transcript.conversations_mut()[2].entries.remove(0);
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let error = |messages: &str| {
        let text = format!("[{{\"chat_messages\": [{messages}]}}]");
        let found = read(text, &ReadOptions::default().with_from(Format::ClaudeAi)).unwrap_err();
        (found.kind(), found.path().to_owned())
    };
    assert_eq!(error(r#"{"sender": "system"}"#), (WireErrorKind::Shape, "/0/chat_messages/0".to_owned()));
    let again =
        r#"{"sender": "human", "uuid": "a"},{"sender": "human", "uuid": "a", "parent_message_uuid": "a"}"#;
    assert_eq!(error(again).0, WireErrorKind::DuplicateKey);
    let circle = r#"{"sender": "human", "uuid": "a", "parent_message_uuid": "a"}"#;
    assert_eq!(error(circle).0, WireErrorKind::Shape);
}
