use epitome_core::attribution::SourceKind;
use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part};

use crate::{Format, ReadOptions, Relation, Transcript, WireErrorKind, detect, read, write_back};

const EXPORT: &str = include_str!("../../../../fuzz/seeds/wire_chatgpt/conversations.json");
const ONE: &str = include_str!("../../../../fuzz/seeds/wire_chatgpt/one.json");

fn transcript(text: &str) -> Transcript {
    read(text, &ReadOptions::default()).unwrap()
}

/// Each message as a line: its role, and its parts.
fn said<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text(text) => text.to_string(),
        Part::Reasoning(thought) => format!("({})", &*thought.text),
        Part::ToolCall(call) => format!("{}={}{}", &*call.id, &*call.name, &*call.arguments),
        Part::ToolResult(result) => format!("{}:{:?}", &*result.call_id, result.parts),
        Part::Media(media) => format!("{:?}", media.source),
        other => format!("{other:?}").chars().take(7).collect(),
    };
    let line = |message: &Message| {
        let parts: Vec<_> = message.parts().iter().map(part).collect();
        format!("{} {}", message.role().as_str(), parts.join(" | "))
    };
    messages.map(line).collect()
}

#[test]
fn the_way_to_the_current_node_goes_on_and_other_ends_are_branches() {
    let transcript = transcript(EXPORT);
    let found = transcript.conversations();
    let heads: Vec<_> =
        found.iter().map(|one| (&*one.id, &*one.label, &*one.path, one.relation, one.active)).collect();
    assert_eq!(
        heads,
        [
            ("c-1", "Late order", "/0", Relation::Own, true),
            ("n4b", "", "/0", Relation::Branch(0), false),
            ("c-2", "Empty", "/1", Relation::Own, true),
        ]
    );
    assert_eq!(
        said(found[0].messages()),
        [
            "user Name: Ann | Be brief.",
            "user Unknown | How many days is 日本 late? | Unknown",
            "assistant (I count the days.) | (Only a summary)",
            r#"assistant n3=python{"input":"print(12)"}"#,
            "tool n3:[Text(Str(2 bytes))]",
            "assistant 12 days.",
        ]
    );
    // The second output of a tool has no call.
    assert_eq!(
        said(found[1].messages()),
        [
            "user Name: Ann | Be brief.",
            "user Never mind",
            r#"assistant n2b=web{"queries": ["a"]}"#,
            "tool n2b:[Text(Str(10 bytes))]",
            "user a quote",
        ]
    );
    assert!(found[2].entries.is_empty());
    let of = |conversation: usize, at: usize| {
        transcript.conversations()[conversation].entries[at].message().attribution().source
    };
    assert_eq!([of(0, 0), of(0, 1), of(1, 4)], [SourceKind::Context, SourceKind::Caller, SourceKind::Tool]);
}

#[test]
fn a_leaf_that_is_asked_for_is_the_conversation() {
    let transcript = read(EXPORT, &ReadOptions::default().with_leaf("n2b")).unwrap();
    let found = &transcript.conversations()[0];
    assert_eq!(said(found.messages()).len(), 3);
    assert_eq!((&*found.id, found.active), ("c-1", true));
    let other = read(EXPORT, &ReadOptions::default().with_leaf("c-2")).unwrap();
    assert_eq!(other.active().map(|one| &*one.id), Some("c-2"));
    let missing = read(EXPORT, &ReadOptions::default().with_leaf("n9")).unwrap_err();
    assert_eq!(missing.kind(), WireErrorKind::NotFound);
}

#[test]
fn a_call_without_a_result_waits_for_none_and_new_content_is_kept() {
    let transcript = transcript(ONE);
    let found = &transcript.conversations()[0];
    assert_eq!(said(found.messages()), ["user Hi", "assistant Yes?", "assistant Unknown | c=bio{}"]);
    let Part::ToolCall(call) = &found.entries[2].message().parts()[1] else { panic!() };
    assert_eq!(call.kind, CallKind::Hosted);
    assert_eq!(found.entries[2].message().role(), Role::Assistant);
}

/// A node with a message of `text` to `recipient`.
fn node(name: &str, parent: &str, role: &str, recipient: &str, text: &str) -> String {
    format!(
        r#""{name}": {{"message": {{"author": {{"role": "{role}"}}, "content": {{"content_type": "text", "parts": ["{text}"]}}, "recipient": "{recipient}"}}, "parent": "{parent}"}}"#
    )
}

fn mapping(nodes: &[String], more: &str) -> String {
    format!(r#"{{"mapping": {{{}}}{more}}}"#, nodes.join(", "))
}

#[test]
fn without_a_current_node_the_last_of_the_file_goes_on() {
    let nodes = [
        node("a", "", "user", "all", "Q"),
        node("b1", "a", "assistant", "all", "first"),
        node("b2", "a", "assistant", "all", "again"),
        node("c", "b1", "user", "all", "more"),
        node("d", "c", "assistant", "all", "done"),
    ];
    let transcript = transcript(&mapping(&nodes, ""));
    let found = transcript.conversations();
    assert_eq!(said(found[0].messages()), ["user Q", "assistant first", "user more", "assistant done"]);
    assert_eq!(said(found[1].messages()), ["user Q", "assistant again"]);
}

#[test]
fn a_call_that_is_answered_on_one_way_only_waits_for_no_result() {
    let nodes = [
        node("a", "", "user", "all", "Q"),
        node("b", "a", "assistant", "web.run", "words"),
        node("r", "b", "tool", "all", "found"),
        node("u", "b", "user", "all", "never mind"),
    ];
    let transcript = transcript(&mapping(&nodes, r#", "current_node": "u""#));
    for conversation in transcript.conversations() {
        let Part::ToolCall(call) = &conversation.entries[1].message().parts()[0] else { panic!() };
        assert_eq!((call.kind, &*call.name), (CallKind::Hosted, "web_run"));
    }
    let other = &transcript.conversations()[1];
    assert_eq!(said(other.messages())[2], "user found");
}

#[test]
fn what_the_model_has_noted_of_the_user_is_context() {
    let noted = r#""a": {"message": {"author": {"role": "assistant"}, "content": {"content_type": "model_editable_context", "model_set_context": "Likes tea."}, "recipient": "all"}}"#;
    let nodes = [noted.to_owned(), node("b", "a", "user", "all", "Hi")];
    let transcript = transcript(&mapping(&nodes, r#", "id": 7"#));
    let found = &transcript.conversations()[0];
    assert_eq!(said(found.messages()), ["user Likes tea.", "user Hi"]);
    assert_eq!(found.entries[0].message().attribution().source, SourceKind::Context);
    assert_eq!(&*found.id, "7", "a number is a name too");
}

#[test]
fn what_holds_no_message_is_not_taken_from_other_formats() {
    for other in [
        r#"{"mapping":{},"messages":[{"role":"user","content":"hi"}]}"#,
        r#"[{"mapping":{},"role":"user","content":"hi"}]"#,
        r#"{"model":"m","chat_messages":[],"messages":[{"role":"user","content":"hi"}]}"#,
        r#"[{"role":"user","content":"hi","chat_messages":[]}]"#,
    ] {
        assert_eq!(detect(other).unwrap().format, Format::OpenaiChat, "{other}");
    }
    let roles = detect(r#"{"chat_messages":[{"role":"user","content":"hi"}]}"#).unwrap_err().to_string();
    assert!(roles.contains("--at /chat_messages"), "{roles}");
}

#[test]
fn it_is_told_and_only_read() {
    assert_eq!(detect(ONE).unwrap().format, Format::ChatGpt);
    assert!(detect(r#"[{"mapping": {"a": 1}}]"#).is_err());
    let mut transcript = transcript(EXPORT);
    transcript.conversations_mut()[0].entries.remove(0);
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let error = |mapping: &str| {
        let text = format!("[{{\"mapping\": {mapping}}}]");
        let found = read(text, &ReadOptions::default().with_from(Format::ChatGpt)).unwrap_err();
        (found.kind(), found.path().to_owned(), found.to_string())
    };
    let role = error(r#"{"a/b": {"message": {"author": {"role": "critic"}, "content": {}}}}"#);
    assert_eq!((role.0, &*role.1), (WireErrorKind::Shape, "/0/mapping/a~1b/message/author"), "{}", role.2);
    let circle = error(r#"{"a": {"parent": "b"}, "b": {"parent": "a"}}"#);
    assert_eq!((circle.0, &*circle.1), (WireErrorKind::Shape, "/0/mapping"), "{}", circle.2);
    assert!(circle.2.contains("in a circle"), "{}", circle.2);
    assert_eq!(error(r#"{"a": {"parent": null}, "a": {"parent": null}}"#).0, WireErrorKind::DuplicateKey);
    assert_eq!(error("7").1, "/0");
}
