//! Histories of Pydantic AI, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{Format, ReadOptions, Transcript, TranscriptEntry, WireErrorKind, read, write_back};

const ASKED: &str = r#"{"parts":[{"content":"Be kind.","timestamp":"t","dynamic_ref":null,"part_kind":"system-prompt"},
 {"content":["Which files?",{"url":"https://x.example/a.png","kind":"image-url","media_type":"image/png"},
  {"kind":"cache-point","ttl":"5m"},{"content":"tagged","metadata":{"a":1},"kind":"text-content"}],"part_kind":"user-prompt"}],
 "instructions":"Be brief.","kind":"request","run_id":"r"}"#;
const CALLS: &str = r#"{"parts":[{"content":"hm","id":"rs_1","signature":"s","provider_name":"openai","part_kind":"thinking"},
 {"content":"look","part_kind":"text"},{"tool_name":"ls","args":"{\"n\":1.0}","tool_call_id":"c1","part_kind":"tool-call"},
 {"tool_name":"view","args":{"n":1.0},"tool_call_id":"c2","part_kind":"tool-call"},
 {"tool_name":"stat","args":null,"tool_call_id":"c3","part_kind":"tool-call"},
 {"tool_name":"web_search","args":{},"tool_call_id":"h","part_kind":"builtin-tool-call"},
 {"tool_name":"web_search","content":{"found":1},"tool_call_id":"h","part_kind":"builtin-tool-return"}],
 "usage":{"input_tokens":100,"cache_write_tokens":1,"cache_read_tokens":90,"output_tokens":10,"details":{"reasoning_tokens":4}},
 "model_name":"m","kind":"response"}"#;
const RETURNED: &str = r#"{"parts":[{"tool_name":"ls","content":"a.txt","tool_call_id":"c1","outcome":"success","part_kind":"tool-return"},
 {"tool_name":"view","content":["a picture",{"data":"AAAA","media_type":"image/png","kind":"binary"}],"tool_call_id":"c2","part_kind":"tool-return"},
 {"tool_name":"stat","content":[{"type":"missing","loc":["a"]}],"tool_call_id":"c3","part_kind":"retry-prompt"},
 {"content":"say more","tool_name":null,"tool_call_id":"x","part_kind":"retry-prompt"}],"instructions":"Be brief.","kind":"request"}"#;

fn list(messages: &[&str]) -> String {
    format!("[{}]", messages.join(", "))
}

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::PydanticAi)
}

#[test]
fn requests_are_messages_of_their_parts() {
    let transcript = transcript(&list(&[ASKED, CALLS, RETURNED]));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said.len(), 8, "{said:?}");
    assert_eq!(said[..2], ["system: text Be brief.", "system: text Be kind."]);
    assert!(
        said[2].starts_with("user: text Which files? | ") && said[2].ends_with("text tagged"),
        "{said:?}"
    );
    let calls = "call c1 ls {\"n\":1.0} | call c2 view {\"n\":1.0} | call c3 stat {} | ";
    assert!(said[3].contains(calls) && said[3].contains("text look"), "{said:?}");
    assert!(said[4].contains("a.txt") && said[5].contains("a picture") && said[6].contains("missing"));
    assert_eq!(said[7], "user: text say more");
    let message = |at: usize| conversation.entries[at].message();
    assert!(matches!(message(6).parts(), [Part::ToolResult(result)] if result.is_error));
    assert_eq!(message(7).attribution().source, SourceKind::Context);
    assert_eq!(message(2).attribution().source, SourceKind::Caller);
    let usage = &conversation.usage[0];
    assert_eq!((usage.at, usage.usage.input_total, usage.usage.cache_read), (3, Some(100), Some(90)));
}

/// In newer versions, the answer to a call that must be repeated is a return, and feedback on a response is a separate
/// part.
#[test]
fn retries_of_newer_versions_are_read() {
    let newer = r#"{"parts":[{"tool_name":"ls","content":"no such folder","tool_call_id":"c1","outcome":"retried","part_kind":"tool-return"},
 {"content":"say more","retry":{"cause":"output_validator"},"part_kind":"retry-feedback"}],"kind":"request"}"#;
    let transcript = transcript(&list(&[CALLS, newer]));
    let conversation = &transcript.conversations()[0];
    let message = |at: usize| conversation.entries[at].message();
    assert!(matches!(message(1).parts(), [Part::ToolResult(result)] if result.is_error));
    assert_eq!(shown_in(conversation)[2], "user: text say more");
    assert_eq!(message(2).attribution().source, SourceKind::Context);
}

#[test]
fn lines_and_other_places_are_read_too() {
    let one = |text: &str| text.replace("\n ", "");
    let lines = format!("{}\n{}\n", one(ASKED), one(CALLS));
    assert_eq!(transcript(&lines).conversations()[0].entries.len(), 4);
    let wrapped = format!("{{\"run\":1,\"messages\":{}}}", list(&[ASKED, CALLS]));
    assert_eq!(transcript(&wrapped).conversations()[0].path, "/messages");
}

#[test]
fn changes_are_patched_in_place() {
    let mut transcript = transcript(&list(&[ASKED, CALLS, RETURNED]));
    let conversation = &mut transcript.conversations_mut()[0];
    let cleared = |id: &str| ToolResult::new(id, vec![Part::Text("-".into())]);
    change(conversation, 4, vec![Part::ToolResult(cleared("c1"))]);
    change(conversation, 5, vec![Part::ToolResult(cleared("c2"))]);
    let mut failed = cleared("c3");
    failed.is_error = true;
    change(conversation, 6, vec![Part::ToolResult(failed)]);
    change(conversation, 0, vec![Part::Text("Be terse.".into())]);
    conversation.entries.remove(7);
    let mut parts = conversation.entries[2].message().parts().to_vec();
    parts.remove(1);
    change(conversation, 2, parts);
    let asked = ASKED
        .replace("\"Be brief.\"", "\"Be terse.\"")
        .replace(r#",{"url":"https://x.example/a.png","kind":"image-url","media_type":"image/png"}"#, "");
    let returned = RETURNED
        .replace("\"a.txt\"", "\"-\"")
        .replace(r#"["a picture",{"data":"AAAA","media_type":"image/png","kind":"binary"}]"#, "\"-\"")
        .replace(r#"[{"type":"missing","loc":["a"]}]"#, "\"-\"")
        .replace(
            r#",
 {"content":"say more","tool_name":null,"tool_call_id":"x","part_kind":"retry-prompt"}"#,
            "",
        );
    let out = written(&transcript);
    let expected = list(&[&asked, CALLS, &returned]);
    assert_eq!(out, expected);
    let again = read(out, &ReadOptions::default()).unwrap();
    assert_eq!(again.conversations()[0].entries.len(), 7);
}

#[test]
fn what_is_left_out_leaves_the_rest() {
    let text = list(&[ASKED, CALLS, RETURNED]);
    let mut transcript = transcript(&text);
    let entries = &mut transcript.conversations_mut()[0].entries;
    entries.drain(..3);
    assert_eq!(written(&transcript), list(&[CALLS, RETURNED]));
    let again = read(written(&transcript), &ReadOptions::default()).unwrap();
    // Now the instructions of the second request are the first ones.
    let roles: Vec<_> = again.conversations()[0].messages().map(Message::role).collect();
    assert_eq!(roles, [Role::Assistant, Role::Tool, Role::Tool, Role::Tool, Role::System, Role::User]);
}

/// Instructions that begin with the result of a call stand behind the result, which can be shortened.
#[test]
fn instructions_do_not_part_a_call_from_its_result() {
    let text = list(&[&ASKED.replace(r#""instructions":"Be brief.","#, ""), CALLS, RETURNED]);
    let mut transcript = transcript(&text);
    let entries = &mut transcript.conversations_mut()[0].entries;
    let roles: Vec<_> = entries.iter().map(|entry| entry.message().role()).collect();
    let system = roles.iter().rposition(|role| *role == Role::System).unwrap();
    assert_eq!((roles[system - 1], roles.last()), (Role::Tool, Some(&Role::User)), "{roles:?}");
    let Part::ToolResult(result) = &entries[system - 1].message().parts()[0] else { panic!("{roles:?}") };
    let mut short = result.clone();
    short.parts = vec![Part::Text("-".into())];
    let message = entries[system - 1].message().clone().with_parts(vec![Part::ToolResult(short)]);
    entries[system - 1] = entries[system - 1].clone().with_message(message.clone());
    let again = read(written(&transcript), &ReadOptions::default()).unwrap();
    let said: Vec<_> = again.conversations()[0].messages().collect();
    assert_eq!(said.iter().map(|message| message.role()).collect::<Vec<_>>(), roles);
    assert_eq!(said[system - 1].parts(), message.parts());
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&list(&[ASKED]));
    transcript.conversations_mut()[0]
        .entries
        .push(TranscriptEntry::new(Message::new(Role::Developer, vec![Part::Text("new".into())])));
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    for wrong in [
        r#"{"kind":"request","parts":{}}"#,
        r#"{"kind":"novel","parts":[]}"#,
        r#"{"kind":"request","parts":[1]}"#,
        r#"{"kind":"request","parts":[{"part_kind":"user-prompt","content":[1]}]}"#,
        r#"{"kind":"response","parts":[{"part_kind":"text","content":1}]}"#,
    ] {
        let options = ReadOptions::default().with_from(Format::PydanticAi);
        let error = read(list(&[ASKED, wrong]), &options).unwrap_err();
        assert!(error.kind() == WireErrorKind::Shape && error.to_string().contains("/1"), "{error}");
    }
}
