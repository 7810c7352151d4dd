//! Contents of every kind.

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::{MediaKind, Role};
use epitome_message::{MediaSource, Message, Part};
use serde_json::{Value, json};

use super::{read_messages, write_messages};

fn read_content(content: Value) -> Part {
    let message = json!({"type": "message", "role": "assistant", "contents": [content]});
    let read = read_messages(core::slice::from_ref(&message)).unwrap();
    assert_eq!(write_messages(&read), [message]);
    read[0].parts()[0].clone()
}

#[test]
fn every_kind_is_read_as_what_it_is_or_kept_as_it_is() {
    assert_eq!(read_content(json!({"type": "text", "text": "Hi"})), Part::Text("Hi".into()));
    let Part::Reasoning(reasoning) =
        read_content(json!({"type": "text_reasoning", "text": "hm", "protected_data": "x", "id": "rs_1"}))
    else {
        panic!("reasoning")
    };
    assert_eq!((reasoning.opaque.as_deref(), reasoning.id.as_deref()), (Some("x"), Some("rs_1")));
    let Part::Media(inline) = read_content(
        json!({"type": "data", "uri": "data:image/png;base64,iVBORw==", "media_type": "image/png"}),
    ) else {
        panic!("media")
    };
    assert_eq!((inline.kind, inline.source), (MediaKind::Image, MediaSource::Base64("iVBORw==".into())));
    let Part::ToolCall(call) = read_content(
        json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": {"b": [1, 2]}}),
    ) else {
        panic!("a call")
    };
    assert_eq!(call.arguments, r#"{"b":[1,2]}"#);
    let function_call = json!({"type": "function_call", "call_id": "c9", "name": "h", "arguments": "{}"});
    let Part::ApprovalRequest(request) = read_content(
        json!({"type": "function_approval_request", "id": "a1", "function_call": function_call}),
    ) else {
        panic!("a request")
    };
    assert_eq!((request.id.as_str(), request.call_id.as_str()), ("a1", "c9"));
    for kind in ["usage", "error", "hosted_file", "mcp_server_tool_call", "of_the_future", "data"] {
        let Part::Unknown(unknown) = read_content(json!({"type": kind, "x": [1]})) else { panic!("{kind}") };
        assert_eq!(unknown.kind, kind);
    }
}

#[test]
fn an_approval_is_written_with_the_call_that_it_is_about() {
    let call = epitome_message::ToolCall::new("c9", "delete", r#"{"all":true}"#);
    let approval = epitome_message::Approval::new("a1", "c9");
    let messages = [
        Message::new(Role::Assistant, vec![Part::ToolCall(call), Part::ApprovalRequest(approval.clone())]),
        Message::new(
            Role::User,
            vec![Part::ApprovalResponse(epitome_message::ApprovalAnswer::new(approval, true))],
        ),
    ];
    let written = write_messages(&messages);
    for content in [&written[0]["contents"][1], &written[1]["contents"][0]] {
        assert_eq!(content["function_call"]["name"], "delete");
        assert_eq!(content["function_call"]["arguments"], r#"{"all":true}"#);
    }
}

#[test]
fn a_changed_message_keeps_what_stands_beside_its_contents() {
    let message =
        json!({"type": "message", "role": "user", "additional_properties": {"k": 1}, "contents": ["Hi"]});
    let read = read_messages(&[message]).unwrap();
    let changed = read[0].clone().with_parts(vec![Part::Text("Ho".into())]);
    let written = write_messages(&[changed]);
    assert_eq!(written[0]["additional_properties"], json!({"k": 1}));
    assert_eq!(written[0]["contents"][0]["text"], "Ho");
}

#[test]
fn context_of_a_provider_of_theirs_is_context_here() {
    let message = json!({
        "role": "user", "contents": ["document"], "additional_properties": {"_attribution": {"source_id": "rag"}},
    });
    let read = read_messages(&[message]).unwrap();
    let attribution = read[0].attribution();
    assert_eq!((attribution.source, attribution.source_id.as_str()), (SourceKind::Context, "rag"));
}

/// A session of the framework loads each message from its history provider: its request of the user begins a turn as any.
#[test]
fn a_message_of_a_history_of_theirs_is_of_the_user_or_the_model() {
    for (class, source) in [
        ("InMemoryHistoryProvider", SourceKind::Caller),
        ("RedisHistoryProvider", SourceKind::Caller),
        ("ChatHistorySearch", SourceKind::Context),
        ("Mem0ContextProvider", SourceKind::Context),
    ] {
        for (role, authority) in [("user", Authority::User), ("system", Authority::System)] {
            let message = json!({
                "role": role, "contents": ["Hi"],
                "additional_properties": {"_attribution": {"source_id": "in_memory", "source_type": class}},
            });
            let read = read_messages(&[message]).unwrap();
            let attribution = read[0].attribution();
            let authority = if source == SourceKind::Caller { authority } else { Authority::Retrieved };
            assert_eq!((attribution.source, attribution.authority), (source, authority), "{class} {role}");
        }
    }
}

#[test]
fn what_is_no_json_is_no_message() {
    let read = super::read_alone;
    assert!(read(r#"{"role":"user","contents":[{"type":"text","text":"a"}]}"#).is_some());
    for text in
        [r#"{"role":"user","contents":["a\x"]}"#, "{\"role\":\"user\",\"contents\":[\"\n\"]}", "{", ""]
    {
        assert!(read(text).is_none(), "{text}");
    }
}

#[test]
fn a_key_twice_is_an_error_where_it_is_read() {
    let content = |content: &str| super::read_alone(&format!(r#"{{"role":"user","contents":[{content}]}}"#));
    let read = content(r#"{"type":"text","text":"a","id":1,"id":2,"uri":[],"uri":{}}"#).unwrap();
    assert_eq!(read.parts(), [Part::Text("a".into())]);
    assert!(content(r#"{"type":"later","text":1,"text":2}"#).is_some());
    assert!(content(r#"{"type":"text","text":"a","text":"b"}"#).is_none());
    assert!(content(r#"{"type":"text_reasoning","text":"a","id":"1","id":"2"}"#).is_none());
}
