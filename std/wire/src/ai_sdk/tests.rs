//! Messages of the Vercel AI SDK. The forms are those of its sources; the contents are made up.

use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part, Str, ToolResult};

use crate::openai_chat::tests::shown;
use crate::tests::support::{transcript_of, written};
use crate::{Format, ReadOptions, Transcript, WireErrorKind, read, write_back};

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::AiSdk)
}

fn shown_in(transcript: &Transcript) -> Vec<String> {
    let of = |message: &Message| format!("{}: {}", message.role().as_str(), shown(message).join(" | "));
    transcript.conversations()[0].messages().map(of).collect()
}

const UI: &str = include_str!("../../../../fuzz/seeds/wire_ai_sdk/ui.json");
const V4: &str = include_str!("../../../../fuzz/seeds/wire_ai_sdk/v4.json");
const MODEL: &str = include_str!("../../../../fuzz/seeds/wire_ai_sdk/model.jsonl");

#[test]
fn a_message_of_steps_is_the_messages_that_are_sent() {
    let transcript = transcript(UI);
    let said = shown_in(&transcript);
    let roles: Vec<_> = transcript.conversations()[0].messages().map(Message::role).collect();
    let (user, model, tool) = (Role::User, Role::Assistant, Role::Tool);
    assert_eq!(roles, [Role::System, user, model, tool, tool, model, model, tool], "{said:#?}");
    assert!(said[2].contains("call c1 list_files") && said[2].contains("1.50"), "{said:#?}");
    assert!(said[2].contains("call c2 read"), "{said:#?}");
    assert!(said[3].contains("result c1") && said[4].contains("no such file"), "{said:#?}");
    // Calls that the provider ran stay in the message of the model; sources and data are not sent.
    let hosted = transcript.conversations()[0].entries[5].message().parts().to_vec();
    assert!(
        matches!(&hosted[..], [Part::ToolCall(call), Part::ToolResult(_), Part::Text(_)] if call.kind == CallKind::Hosted)
    );
    let failed = |at: usize| matches!(transcript.conversations()[0].entries[at].message().parts(), [Part::ToolResult(result)] if result.is_error);
    assert!(failed(4) && failed(7) && !failed(3));
    // The interrupted call is no call, and the last call waits.
    assert!(!said.iter().any(|said| said.contains("c5")) && said[6].contains("call c6 rm"), "{said:#?}");
}

#[test]
fn what_is_sent_has_the_same_form() {
    let transcript = transcript(MODEL);
    let said = shown_in(&transcript);
    let roles: Vec<_> = transcript.conversations()[0].messages().map(Message::role).collect();
    let (user, model, tool) = (Role::User, Role::Assistant, Role::Tool);
    assert_eq!(roles, [Role::System, user, model, tool, tool, model, user, tool, model], "{said:#?}");
    assert!(
        matches!(transcript.conversations()[0].entries[6].message().parts(), [Part::ApprovalResponse(answer)] if !answer.approved)
    );
    assert!(said[4].contains("page") && said[7].contains("never"), "{said:#?}");
}

#[test]
fn outputs_stay_json_where_their_new_text_is_json() {
    let mut transcript = transcript(UI);
    let conversation = &mut transcript.conversations_mut()[0];
    let mut change = |at: usize, text: &str| {
        let [Part::ToolResult(result)] = conversation.entries[at].message().parts() else { panic!("{at}") };
        let mut new = ToolResult::new(result.call_id.clone(), vec![Part::Text(Str::from(text))]);
        new.is_error = result.is_error;
        let message = conversation.entries[at].message().clone().with_parts(vec![Part::ToolResult(new)]);
        conversation.entries[at] = conversation.entries[at].clone().with_message(message);
    };
    change(3, r#"["a.txt", "1 more"]"#);
    change(4, "gone");
    let out = written(&transcript);
    assert!(
        out.contains(r#""output": ["a.txt", "1 more"]"#) && out.contains(r#""errorText": "gone""#),
        "{out}"
    );
    let mut again = self::transcript(&out);
    let entry = &mut again.conversations_mut()[0].entries[3];
    let cleared = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("[cleared]".into())]));
    *entry = entry.clone().with_message(entry.message().clone().with_parts(vec![cleared]));
    assert!(written(&again).contains(r#""output": "[cleared]""#));
}

#[test]
fn a_call_does_not_stay_without_its_result() {
    let mut transcript = transcript(UI);
    transcript.conversations_mut()[0].entries.remove(3);
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    // Both can be removed together.
    let mut transcript = self::transcript(V4);
    let conversation = &mut transcript.conversations_mut()[0];
    assert_eq!(conversation.id.as_str(), "chat");
    assert_eq!(conversation.entries.len(), 4);
    conversation.entries.remove(1);
    conversation.entries.remove(1);
    let out = written(&transcript);
    assert!(out.contains(r#""parts": [{"type": "text", "text": "Done."}]"#), "{out}");
}

#[test]
fn a_text_that_version_4_repeats_is_written_twice() {
    let mut transcript = transcript(V4);
    let entry = &mut transcript.conversations_mut()[0].entries[0];
    *entry = entry.clone().with_message(entry.message().clone().with_parts(vec![Part::Text("Ho".into())]));
    let out = written(&transcript);
    assert!(out.contains(r#""content": "Ho", "parts": [{"type": "text", "text": "Ho"}]"#), "{out}");
}

#[test]
fn an_error_names_the_place() {
    let wrong = r#"[{"role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"a"},7]}]"#;
    let error = read(wrong, &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("/0/parts/2"), "{error}");
    let wrong = r#"[{"role":"robot","parts":[{"type":"step-start"}]}]"#;
    assert_eq!(read(wrong, &ReadOptions::default()).unwrap_err().kind(), WireErrorKind::Shape);
}

#[test]
fn steps_that_begin_alike_are_told_by_their_place() {
    let step = |id: &str| {
        format!(
            r#"{{"type":"step-start"}},{{"type":"text","text":"Let me check."}},{{"type":"tool-b","toolCallId":"{id}","state":"output-available","input":{{}},"output":"o"}}"#
        )
    };
    let text = format!(r#"[{{"id":"2","role":"assistant","parts":[{},{}]}}]"#, step("a"), step("b"));
    let mut transcript = transcript(&text);
    transcript.conversations_mut()[0].entries.drain(..2);
    let out = written(&transcript);
    assert!(!out.contains(r#""a""#) && out.contains(r#""b""#), "{out}");
}

#[test]
fn copies_of_version_4_are_cleared_too() {
    let mut transcript = transcript(V4);
    let at = transcript.conversations()[0].messages().position(|one| one.role() == Role::Tool).unwrap();
    let entry = &mut transcript.conversations_mut()[0].entries[at];
    let cleared = Part::ToolResult(ToolResult::new("c", vec![Part::Text("[cleared]".into())]));
    *entry = entry.clone().with_message(entry.message().clone().with_parts(vec![cleared]));
    let out = written(&transcript);
    assert_eq!(out.matches(r#""result": "[cleared]""#).count(), 2, "{out}");
}

#[test]
fn reasoning_without_words_is_no_part() {
    let text = r#"[{"id":"1","role":"assistant","parts":[{"type":"reasoning","text":""},{"type":"text","text":"ok"}]}]"#;
    assert_eq!(shown_in(&transcript(text)), ["assistant: text ok"]);
}

/// In both forms, a pending call differs from a call that a person has approved or denied.
#[test]
fn approvals_are_parts() {
    let ui = r#"[{"id":"1","role":"user","parts":[{"type":"text","text":"Clean up."}]},
      {"id":"2","role":"assistant","parts":[{"type":"step-start"},
        {"type":"tool-rm","toolCallId":"c1","state":"approval-requested","input":{"path":"a"},"approval":{"id":"a1"}},
        {"type":"tool-rm","toolCallId":"c2","state":"approval-responded","input":{},"approval":{"id":"a2","approved":true}},
        {"type":"tool-rm","toolCallId":"c3","state":"approval-responded","input":{},"approval":{"id":"a3","approved":false}},
        {"type":"tool-rm","toolCallId":"c4","state":"approval-requested","input":{}}]}]"#;
    let mut transcript = transcript(ui);
    let said = transcript.conversations()[0].messages().collect::<Vec<_>>();
    let (user, model, tool) = (Role::User, Role::Assistant, Role::Tool);
    assert_eq!(said.iter().map(|message| message.role()).collect::<Vec<_>>(), [user, model, tool]);
    let requests = said[1].parts().iter().filter_map(|part| match part {
        Part::ApprovalRequest(asked) => Some((asked.id.as_str(), asked.call_id.as_str())),
        _ => None,
    });
    assert!(requests.eq([("a1", "c1"), ("a2", "c2"), ("a3", "c3")]));
    let answers = said[2].parts().iter().map(|part| match part {
        Part::ApprovalResponse(answer) => (answer.approval.id.as_str(), answer.approved),
        other => panic!("{other:?}"),
    });
    assert!(answers.eq([("a2", true), ("a3", false)]));
    assert_eq!(written(&transcript), ui);
    // The request for approval and its answer are removed together.
    transcript.conversations_mut()[0].entries.remove(2);
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
    transcript.conversations_mut()[0].entries.remove(1);
    assert!(!written(&transcript).contains("tool-rm"));
}
