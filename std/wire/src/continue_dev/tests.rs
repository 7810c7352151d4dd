//! Sessions of Continue, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolCall, ToolResult};

use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{Format, ReadOptions, Transcript, TranscriptEntry, WireErrorKind, read, write_back};

const ASKS: &str = r#"{"message":{"role":"user","content":[{"type":"text","text":"go"},{"type":"imageUrl","imageUrl":{"url":"data:image/png;base64,AAAA"}}],"id":"1"},"contextItems":[{"id":{"providerTitle":"file","itemId":"a"},"name":"a.txt","description":"","content":"some lines"}],"editorState":{"x":1}}"#;
const THINKS: &str = r#"{"message":{"role":"thinking","content":"hm","signature":"s"},"contextItems":[]}"#;
const CALLS: &str = r#"{"message":{"role":"assistant","content":"look","toolCalls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"n\":1.0}"}},{"id":"c2","type":"function","function":{"name":"cat","arguments":"{}"}}],"usage":{"promptTokens":100,"completionTokens":9,"promptTokensDetails":{"cachedTokens":90}}},"contextItems":[],"toolCallStates":[{"toolCallId":"c1","toolCall":{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"n\":1.0}"}},"status":"done","parsedArgs":{"n":1.0},"output":[{"name":"ls","description":"","content":"a.txt"},{"name":"more","description":"","content":"b.txt"}]},{"toolCallId":"c2","status":"canceled","parsedArgs":{}}]}"#;
const AGAIN: &str = r#"{"message":{"role":"tool","content":"a.txt","toolCallId":"c1"},"contextItems":[]}"#;
const OTHER: &str = r#"{"message":{"role":"tool","content":"alone","toolCallId":"c9"},"contextItems":[]}"#;
const ANSWER: &str = r#"{"message":{"role":"assistant","content":"done"},"contextItems":[]}"#;

fn session(items: &[&str]) -> String {
    format!(
        r#"{{"sessionId":"s1","title":"Look around","workspaceDirectory":"/", "history":[{}]}}"#,
        items.join(", ")
    )
}

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::Continue)
}

#[test]
fn states_are_results() {
    let transcript = transcript(&session(&[ASKS, THINKS, CALLS, AGAIN, OTHER, ANSWER]));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said.len(), 7, "{said:?}");
    assert!(said[0].starts_with("user: text some lines | text go | "), "{said:?}");
    assert!(said[1].starts_with("assistant: reasoning hm"), "{said:?}");
    assert_eq!(said[2], "assistant: text look | call c1 ls {\"n\":1.0} | call c2 cat {}");
    assert!(said[3].contains("a.txt") && said[3].contains("b.txt") && said[5].contains("alone"), "{said:?}");
    assert!(
        matches!(conversation.entries[4].message().parts(), [Part::ToolResult(result)] if result.is_error)
    );
    assert_eq!((conversation.id.as_str(), conversation.label.as_str()), ("s1", "Look around"));
    let usage = &conversation.usage[0];
    assert_eq!((usage.at, usage.usage.input_total, usage.usage.cache_read), (2, Some(100), Some(90)));
}

#[test]
fn changes_are_patched_in_place() {
    let mut transcript = transcript(&session(&[ASKS, THINKS, CALLS, AGAIN, OTHER, ANSWER]));
    let conversation = &mut transcript.conversations_mut()[0];
    let texts = |texts: &[&str]| texts.iter().map(|text| Part::Text((*text).into())).collect::<Vec<_>>();
    change(conversation, 0, texts(&["some lines", "Go", "[image]"]));
    change(conversation, 3, vec![Part::ToolResult(ToolResult::new("c1", texts(&["-"])))]);
    let mut parts = conversation.entries[2].message().parts().to_vec();
    parts[1] = Part::ToolCall(ToolCall::new("c1", "ls", "{}"));
    change(conversation, 2, parts);
    conversation.entries.remove(1);
    let asks = ASKS.replace("\"go\"", "\"Go\"").replace(
        r#"{"type":"imageUrl","imageUrl":{"url":"data:image/png;base64,AAAA"}}"#,
        r#"{"type":"text","text":"[image]"}"#,
    );
    let output = r#"[{"name":"ls","description":"","content":"a.txt"},{"name":"more","description":"","content":"b.txt"}]"#;
    let calls = CALLS
        .replace(r#""{\"n\":1.0}""#, "\"{}\"")
        .replace(r#"{"n":1.0}"#, "{}")
        .replace(output, r#"[{"name":"Output","description":"","content":"-"}]"#);
    assert_eq!(written(&transcript), session(&[&asks, &calls, AGAIN, OTHER, ANSWER]));
}

#[test]
fn a_call_goes_with_its_state() {
    let mut transcript = transcript(&session(&[ASKS, CALLS, ANSWER]));
    let conversation = &mut transcript.conversations_mut()[0];
    let mut parts = conversation.entries[1].message().parts().to_vec();
    parts.remove(2);
    change(conversation, 1, parts);
    conversation.entries.remove(3);
    let out = written(&transcript);
    assert!(!out.contains("c2") && out.contains("a.txt"), "{out}");
    transcript.conversations_mut()[0].entries.drain(1..3);
    assert_eq!(written(&transcript), session(&[ASKS, ANSWER]));
}

#[test]
fn what_is_before_a_summary_is_counted() {
    let ends =
        CALLS.replacen("\"contextItems\":[]", "\"contextItems\":[],\"conversationSummary\":\"so far\"", 1);
    let mut transcript = transcript(&session(&[ASKS, &ends, ASKS, ANSWER]));
    let conversation = &mut transcript.conversations_mut()[0];
    let said = shown_in(conversation);
    assert_eq!((said.len(), said[0].as_str()), (3, "system: text so far"));
    let compactions: Vec<_> = conversation.compactions.iter().map(|one| (one.at, one.dropped)).collect();
    assert_eq!(compactions, [(0, Some(4))]);
    change(conversation, 0, vec![Part::Text("So far".into())]);
    let changed = ends.replace("so far", "So far");
    assert_eq!(written(&transcript), session(&[ASKS, &changed, ASKS, ANSWER]));
    transcript.conversations_mut()[0].entries.remove(0);
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&session(&[ASKS]));
    transcript.conversations_mut()[0]
        .entries
        .push(TranscriptEntry::new(Message::new(Role::Developer, vec![Part::Text("new".into())])));
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    for wrong in ["1", r#"{"message":1}"#, r#"{"message":{"role":"user","content":1}}"#] {
        let options = ReadOptions::default().with_from(Format::Continue);
        let error = read(session(&[ASKS, wrong]), &options).unwrap_err();
        assert!(error.kind() == WireErrorKind::Shape && error.to_string().contains("/history/1"), "{error}");
    }
}
