//! Sessions of ADK, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_message::{Message, Part, ToolResult};

use crate::tests::support::{shown_in, transcript_of, written};
use crate::{
    Conversation, Format, ReadOptions, ToolCompaction, Transcript, TranscriptEntry, WireErrorKind, detect,
    read, write_back,
};

const ASKS: &str = r#"{"id":"e1","invocationId":"i1","author":"user","timestamp":1.25,"actions":{"stateDelta":{}},"content":{"role":"user","parts":[{"text":"go"}]}}"#;
const CALLS: &str = r#"{"id":"e2","invocationId":"i1","author":"helper","timestamp":2.5,"content":{"role":"model","parts":[{"text":"look"},{"functionCall":{"id":"adk-1","name":"ls","args":{"n":1.0}}}]},"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"totalTokenCount":12}}"#;
const RETURNED: &str = r#"{"id":"e3","invocationId":"i1","author":"helper","timestamp":3.5,"content":{"role":"user","parts":[{"functionResponse":{"id":"adk-1","name":"ls","response":{"result":"a.txt"}}}]}}"#;
const STATE: &str =
    r#"{"id":"e4","invocationId":"i1","author":"helper","timestamp":4.0,"actions":{"stateDelta":{"a":1}}}"#;
const CREDENTIAL: &str = r#"{"id":"e5","invocationId":"i1","author":"helper","timestamp":4.1,"content":{"role":"model","parts":[{"functionCall":{"id":"adk-2","name":"adk_request_credential","args":{}}}]}}"#;
const COMPACTS: &str = r#"{"id":"e6","invocationId":"i2","author":"user","timestamp":5.0,"actions":{"compaction":{"startTimestamp":1.25,"endTimestamp":3.5,"compactedContent":{"role":"model","parts":[{"text":"so far"}]}}}}"#;
const AGAIN: &str = r#"{"id":"e7","invocation_id":"i3","author":"user","timestamp":6.0,"content":{"role":"user","parts":[{"text":"and?"}]}}"#;
const ANSWER: &str = r#"{"id":"e8","invocation_id":"i3","author":"helper","timestamp":7.0,"content":{"role":"model","parts":[{"text":"done"}]}}"#;
const REWINDS: &str = r#"{"id":"e9","invocation_id":"i4","author":"user","timestamp":8.0,"actions":{"rewind_before_invocation_id":"i3"}}"#;

fn session(events: &[&str]) -> String {
    format!(
        r#"{{"id":"s1","appName":"files","userId":"u","state":{{}}, "events":[{}],"lastUpdateTime":9.0}}"#,
        events.join(", ")
    )
}

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::Adk)
}

fn compactions(conversation: &Conversation) -> Vec<(usize, Option<u64>)> {
    let of = |one: &ToolCompaction| (one.at, one.dropped);
    conversation.compactions.iter().map(of).collect()
}

#[test]
fn events_are_contents_of_gemini() {
    let transcript = transcript(&session(&[ASKS, CALLS, RETURNED, STATE, CREDENTIAL]));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(said[1], "assistant: text look | call adk-1 ls {\"n\":1.0}");
    assert_eq!(said[2], "tool: result adk-1 [text a.txt]");
    assert_eq!((conversation.id.as_str(), conversation.label.as_str()), ("s1", "files"));
    let usage = &conversation.usage[0];
    assert_eq!((usage.at, usage.usage.input_total), (1, Some(10)));
    let bare = format!("[{ASKS}, {CALLS}]");
    assert_eq!(detect(&bare).unwrap().format, Format::Adk);
    let alone = r#"{"id":"s","events":[{"content":{"role":"user","parts":[{"text":"Hi"}]}}]}"#;
    assert_eq!(detect(alone).unwrap().format, Format::Adk);
}

#[test]
fn changes_are_patched_in_place() {
    let mut transcript = transcript(&session(&[ASKS, CALLS, RETURNED, STATE, COMPACTS, AGAIN]));
    let conversation = &mut transcript.conversations_mut()[0];
    assert_eq!(shown_in(conversation), ["assistant: text so far", "user: text and?"]);
    assert_eq!(compactions(conversation), [(0, Some(3))]);
    let message = conversation.entries[0].message().clone().with_parts(vec![Part::Text("So far".into())]);
    conversation.entries[0] = conversation.entries[0].clone().with_message(message);
    conversation.entries.remove(1);
    let compacts = COMPACTS.replace("so far", "So far");
    assert_eq!(written(&transcript), session(&[ASKS, CALLS, RETURNED, STATE, &compacts]));
    transcript.conversations_mut()[0].entries.clear();
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn results_are_cleared_and_events_left_out() {
    let mut transcript = transcript(&session(&[ASKS, CALLS, RETURNED, AGAIN, ANSWER]));
    let conversation = &mut transcript.conversations_mut()[0];
    let cleared = Part::ToolResult(ToolResult::new("adk-1", vec![Part::Text("-".into())]));
    let message = conversation.entries[2].message().clone().with_parts(vec![cleared]);
    conversation.entries[2] = conversation.entries[2].clone().with_message(message);
    conversation.entries.remove(0);
    let returned = RETURNED.replace("a.txt", "-");
    assert_eq!(written(&transcript), session(&[CALLS, &returned, AGAIN, ANSWER]));
}

#[test]
fn a_rewind_takes_out_what_was_said_since() {
    let later = AGAIN.replace("i3", "i5").replace("and?", "other");
    let transcript = transcript(&session(&[ASKS, AGAIN, ANSWER, REWINDS, &later]));
    assert_eq!(shown_in(&transcript.conversations()[0]), ["user: text go", "user: text other"]);
}

#[test]
fn a_later_compaction_stands_for_an_earlier_one() {
    let wider = COMPACTS.replace("\"endTimestamp\":3.5", "\"endTimestamp\":6.0").replace("so far", "all");
    let transcript = transcript(&session(&[ASKS, CALLS, RETURNED, COMPACTS, AGAIN, &wider, ANSWER]));
    let conversation = &transcript.conversations()[0];
    assert_eq!(shown_in(conversation), ["assistant: text all", "assistant: text done"]);
    assert_eq!(compactions(conversation), [(0, Some(5))]);
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&session(&[ASKS]));
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::system("new")));
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    for wrong in ["1", r#"{"author":"user","content":{"role":"user","parts":[{"text":1}]}}"#] {
        let options = ReadOptions::default().with_from(Format::Adk);
        let error = read(session(&[ASKS, wrong]), &options).unwrap_err();
        assert!(error.kind() == WireErrorKind::Shape && error.to_string().contains("/events/1"), "{error}");
    }
}

#[test]
fn a_new_message_has_the_time_and_the_invocation_of_the_event_before_it() {
    let mut transcript = transcript(&session(&[ASKS, CALLS, RETURNED, AGAIN]));
    let entries = &mut transcript.conversations_mut()[0].entries;
    entries.push(TranscriptEntry::new(Message::assistant("Yes.")));
    entries.insert(1, TranscriptEntry::new(Message::user("new")));
    let new = r#"{"invocationId":"i1","timestamp":1.25,"author":"user","content":{"role":"user","parts":[{"text":"new"}]}}"#;
    let answer = r#"{"invocation_id":"i3","timestamp":6.0,"author":"model","content":{"role":"model","parts":[{"text":"Yes."}]}}"#;
    let out = written(&transcript);
    assert_eq!(out, session(&[ASKS, new, CALLS, RETURNED, AGAIN, answer]));
    assert_eq!(shown_in(&self::transcript(&out).conversations()[0])[1], "user: text new");
}

#[test]
fn a_new_message_is_refused_where_adk_would_hide_it() {
    let rewinds = REWINDS.replace("\"i3\"", "\"i1\"").replace("8.0", "4.0");
    let mut hidden = transcript(&session(&[ASKS, CALLS, RETURNED, &rewinds, AGAIN, ANSWER]));
    assert_eq!(hidden.conversations()[0].entries.len(), 2);
    let entries = &mut hidden.conversations_mut()[0].entries;
    entries.insert(1, TranscriptEntry::new(Message::user("new")));
    let again = transcript(&written(&hidden));
    assert_eq!(shown_in(&again.conversations()[0])[1], "user: text new");
    hidden.conversations_mut()[0].entries.insert(0, TranscriptEntry::new(Message::user("new")));
    assert_eq!(write_back(&hidden, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}
