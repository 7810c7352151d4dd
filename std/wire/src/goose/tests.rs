//! Session files of goose, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_message::{Message, Part, ToolResult};

use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{Format, ReadOptions, Transcript, WireErrorKind, read, write_back};

const HEAD: &str = r#"{"working_dir":"/work","description":"Look around","schedule_id":null,"message_count":4,"total_tokens":120}"#;
const USER: &str =
    r#"{"id":null,"role":"user","created":1700000000,"content":[{"type":"text","text":"go"}]}"#;
const CALLS: &str = r#"{"role":"assistant","created":1700000001,"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"look"},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"n":1.0}}}},{"type":"toolRequest","id":"c2","toolCall":{"status":"success","value":{"name":"read"}}}]}"#;
const RESULTS: &str = r#"{"role":"user","created":1700000002,"content":[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":[{"type":"text","text":"a.txt","annotations":{"audience":["assistant"],"priority":0.0}},{"type":"text","text":"shown to people","annotations":{"audience":["user"]}}]}}, {"type":"toolResponse","id":"c2","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"no"}],"structuredContent":{"x":1},"isError":true}}},{"type":"text","text":"and?"}]}"#;
const FAILED: &str = r#"{"role":"user","created":1700000003,"content":[{"type":"toolResponse","id":"c3","toolResult":{"status":"error","error":"denied"}}]}"#;
const NOTICE: &str = r#"{"role":"assistant","created":1,"content":[{"type":"systemNotification","notificationType":"inlineMessage","msg":"x"}],"metadata":{"userVisible":true,"agentVisible":false}}"#;

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::Goose)
}

#[test]
fn lines_are_one_conversation() {
    let transcript = transcript(&[HEAD, USER, NOTICE, CALLS, RESULTS, FAILED].join("\n"));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said.len(), 6, "{said:?}");
    assert_eq!(said[0], "user: text go");
    assert_eq!(
        said[1],
        "assistant: reasoning hm | text look | call c1 developer__shell {\"n\":1.0} | call c2 read {}"
    );
    assert!(
        said[2].starts_with("tool: result c1") && said[2].contains("a.txt") && !said[2].contains("people")
    );
    assert!(said[3].starts_with("tool: result c2") && said[4] == "user: text and?", "{said:?}");
    assert!(said[5].contains("denied"), "{said:?}");
    let failed = |at: usize| matches!(conversation.entries[at].message().parts(), [Part::ToolResult(result)] if result.is_error);
    assert_eq!([failed(2), failed(3), failed(5)], [false, true, true]);
    assert_eq!(conversation.label.as_str(), "Look around");
    let rejoin: Vec<_> = conversation.entries.iter().map(crate::TranscriptEntry::rejoin).collect();
    assert_eq!(rejoin, [false, false, false, true, true, false]);
    assert!(conversation.compactions.is_empty());
}

#[test]
fn changes_are_patched_in_place() {
    let mut transcript = transcript(&[HEAD, USER, CALLS, RESULTS, FAILED].join("\n"));
    let conversation = &mut transcript.conversations_mut()[0];
    let cleared = |id: &str| vec![Part::ToolResult(ToolResult::new(id, vec![Part::Text("-".into())]))];
    change(conversation, 2, cleared("c1"));
    let mut second = ToolResult::new("c2", vec![Part::Text("-".into())]);
    second.is_error = true;
    change(conversation, 3, vec![Part::ToolResult(second)]);
    change(conversation, 4, vec![Part::Text("And?".into())]);
    let mut third = ToolResult::new("c3", vec![Part::Text("-".into())]);
    third.is_error = true;
    change(conversation, 5, vec![Part::ToolResult(third)]);
    conversation.entries.remove(0);
    let expected = RESULTS
        .replace("a.txt", "-")
        .replace(r#""text":"no"}],"structuredContent":{"x":1}"#, r#""text":"-"}],"structuredContent":null"#)
        .replace("and?", "And?");
    assert_eq!(written(&transcript), [HEAD, CALLS, &expected, &FAILED.replace("denied", "-")].join("\n"));
    let again = read(written(&transcript), &ReadOptions::default()).unwrap();
    assert_eq!(again.conversations()[0].entries.len(), 5);
}

#[test]
fn what_the_model_no_longer_sees_is_a_compaction() {
    let hidden = |record: &str| {
        let end = record.len() - 1;
        format!("{},\"metadata\":{{\"userVisible\":true,\"agentVisible\":false}}}}", &record[..end])
    };
    let summary = r#"{"role":"user","created":9,"content":[{"type":"text","text":"what was"}],"metadata":{"userVisible":false,"agentVisible":true}}"#;
    let records = [hidden(USER), hidden(CALLS), hidden(RESULTS), summary.to_owned(), USER.to_owned()];
    let document = format!(
        "{{\"id\":\"20260101_1\",\"working_dir\":\"/\",\"name\":\"n\",\"conversation\":[{}],\"message_count\":5}}",
        records.join(", ")
    );
    let transcript = transcript(&document);
    let conversation = &transcript.conversations()[0];
    assert_eq!(shown_in(conversation), ["user: text what was", "user: text go"]);
    let of = |one: &crate::ToolCompaction| (one.at, one.dropped);
    assert_eq!(conversation.compactions.iter().map(of).collect::<Vec<_>>(), [(0, Some(5))]);
    assert_eq!((conversation.id.as_str(), conversation.label.as_str()), ("20260101_1", "n"));
    assert_eq!(conversation.path, "/conversation");
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&[HEAD, USER, CALLS].join("\n"));
    let call = Part::ToolCall(epitome_message::ToolCall::new("c", "ls", "{}"));
    let new = Message::new(epitome_core::message::Role::Assistant, vec![call]);
    transcript.conversations_mut()[0].entries.push(crate::TranscriptEntry::new(new));
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    for wrong in [
        r#"{"role":"user","content":"text"}"#,
        r#"{"role":"user","content":[1]}"#,
        r#"{"role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"value":1}}]}"#,
    ] {
        let error = read([HEAD, USER, wrong].join("\n"), &ReadOptions::default()).unwrap_err();
        assert_eq!((error.kind(), error.line()), (WireErrorKind::Shape, Some(3)), "{error}");
    }
}
