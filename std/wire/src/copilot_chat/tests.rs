//! Chats of VS Code, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_message::{Message, Part, ToolResult};

use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{Format, ReadOptions, Transcript, TranscriptEntry, WireErrorKind, read, write_back};

const PLAIN: &str = r#"{"requestId":"r0","message":"hello","variableData":{"variables":[]},"response":[{"value":"Hi ","supportThemeIcons":false},{"kind":"inlineReference","inlineReference":{}},{"kind":"markdownContent","content":{"value":"there"}}],"isCanceled":false}"#;
const ROUNDS: &str = r#"{"requestId":"r1","message":{"text":"go","parts":[{"kind":"text","text":"go"}]},"variableData":{"variables":[]},"response":[{"value":"look"},{"kind":"toolInvocationSerialized","toolCallId":"u","toolId":"ls","isComplete":true},{"value":"done"}],"result":{"metadata":{"toolCallRounds":[{"id":"1","response":"look","toolCalls":[{"id":"c1","name":"ls","arguments":"{\"n\":1.0}"},{"id":"c2","name":"view","arguments":"{}"}],"thinking":{"id":"t","text":["h","m"]}},{"id":"2","response":"done","toolCalls":[]}],"toolCallResults":{"c1":{"$mid":20,"content":[{"$mid":21,"value":"a.txt"}]},"c2":{"$mid":20,"content":[{"$mid":23,"value":{"node":{"type":1,"children":[{"type":2,"text":"one"},{"type":1,"children":[{"type":2,"text":"two","lineBreakBefore":true}]}]}}}]}}}}}"#;
const UNDONE: &str = r#"{"requestId":"r2","message":{"text":"no"},"response":[{"value":"never"}],"shouldBeRemovedOnSend":{"requestId":"r2"}}"#;

fn session(requests: &[&str]) -> String {
    format!(
        r#"{{"version":3,"responderUsername":"GitHub Copilot","sessionId":"s1","customTitle":"Look around", "requests":[{}]}}"#,
        requests.join(", ")
    )
}

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::CopilotChat)
}

#[test]
fn rounds_are_messages() {
    let transcript = transcript(&session(&[PLAIN, ROUNDS, UNDONE]));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said[..3], ["user: text hello", "assistant: text Hi  | text there", "user: text go"]);
    assert!(said[3].ends_with("text look | call c1 ls {\"n\":1.0} | call c2 view {}"), "{said:?}");
    assert!(said[3].contains("reasoning hm") && said[4].contains("a.txt") && said[5].contains("one\ntwo"));
    assert_eq!((said.len(), said[6].as_str()), (7, "assistant: text done"));
    assert_eq!((conversation.id.as_str(), conversation.label.as_str()), ("s1", "Look around"));
}

#[test]
fn changes_are_patched_in_place() {
    let mut transcript = transcript(&session(&[PLAIN, ROUNDS, UNDONE]));
    let conversation = &mut transcript.conversations_mut()[0];
    let cleared = |id: &str| vec![Part::ToolResult(ToolResult::new(id, vec![Part::Text("-".into())]))];
    change(conversation, 4, cleared("c1"));
    change(conversation, 5, cleared("c2"));
    change(conversation, 6, vec![Part::Text("Done.".into())]);
    conversation.entries.drain(..2);
    let out = written(&transcript);
    let (before, behind) = ROUNDS.split_once("{\"$mid\":23").unwrap();
    let (_, behind) = behind.split_once("true}]}]}}}").unwrap();
    let rounds = format!("{before}{{\"$mid\":21,\"value\":\"-\"}}{behind}");
    let rounds = rounds.replace("a.txt", "-").replace("\"response\":\"done\"", "\"response\":\"Done.\"");
    assert_eq!(out, session(&[&rounds, UNDONE]));
}

#[test]
fn a_round_goes_with_its_results() {
    let mut transcript = transcript(&session(&[ROUNDS]));
    transcript.conversations_mut()[0].entries.drain(1..4);
    let again = read(written(&transcript), &ReadOptions::default()).unwrap();
    assert_eq!(shown_in(&again.conversations()[0]), ["user: text go", "assistant: text done"]);
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&session(&[ROUNDS]));
    transcript.conversations_mut()[0].entries.remove(2);
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert!(refused.to_string().contains("a call without its result"), "{refused}");
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::user("new")));
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
    for wrong in ["1", r#"{"message":1,"response":[]}"#, r#"{"message":"a","response":[1]}"#] {
        let options = ReadOptions::default().with_from(Format::CopilotChat);
        let error = read(session(&[PLAIN, wrong]), &options).unwrap_err();
        assert!(error.kind() == WireErrorKind::Shape && error.to_string().contains("/requests/1"), "{error}");
    }
}

#[test]
fn the_last_request_may_have_no_answer() {
    let open = r#"{"requestId":"r9","message":{"text":"next"}}"#;
    assert_eq!(shown_in(&transcript(&session(&[PLAIN, open])).conversations()[0]).len(), 3);
}
