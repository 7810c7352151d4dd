//! Events of version 1 of OpenHands, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{Format, ReadOptions, Relation, Transcript, TranscriptEntry, WireErrorKind, read, write_back};

const SYSTEM: &str = r#"{"id":"e0","timestamp":"t","source":"agent","system_prompt":{"cache_prompt":false,"type":"text","text":"Be brief."},"tools":[],"dynamic_context":{"type":"text","text":"On Linux."},"kind":"SystemPromptEvent"}"#;
const ASKS: &str = r#"{"id":"e1","source":"user","parent_id":"e0","llm_message":{"role":"user","content":[{"type":"text","text":"go"},{"type":"image","image_urls":["data:image/png;base64,AAAA"]}]},"extended_content":[{"type":"text","text":"A rule."}],"kind":"MessageEvent"}"#;
const STATE: &str = r#"{"id":"e2","source":"environment","parent_id":"e1","key":"x","value":1,"kind":"ConversationStateUpdateEvent"}"#;
const CALLS: &str = r#"{"id":"e3","source":"agent","parent_id":"e2","thought":[{"type":"text","text":"look"}],"reasoning_content":"hm","thinking_blocks":[],"action":{"command":"ls","kind":"TerminalAction"},"tool_name":"terminal","tool_call_id":"c1","tool_call":{"id":"c1","name":"terminal","arguments":"{\"n\":1.0}","origin":"completion"},"llm_response_id":"r1","kind":"ActionEvent"}"#;
const SEEN: &str = r#"{"id":"e4","source":"environment","parent_id":"e3","tool_name":"terminal","tool_call_id":"c1","observation":{"content":[{"type":"text","text":"a.txt"}],"is_error":false,"exit_code":0,"kind":"TerminalObservation"},"action_id":"e3","kind":"ObservationEvent"}"#;
const THINKS: &str = r#"{"id":"e5","source":"agent","parent_id":"e4","thought":[],"reasoning_content":"so","thinking_blocks":[{"type":"thinking","thinking":"so","signature":"s"}],"action":null,"tool_name":"f","tool_call_id":"c2","tool_call":{"id":"c2","name":"f","arguments":"{}"},"llm_response_id":"r2","kind":"ActionEvent"}"#;
const FAILED: &str = r#"{"id":"e6","source":"agent","parent_id":"e5","tool_name":"f","tool_call_id":"c2","error":"no such tool","kind":"AgentErrorEvent"}"#;
const FORGETS: &str = r#"{"id":"e7","source":"environment","parent_id":"e6","forgotten_event_ids":["e3","e4"],"summary":"so far","summary_offset":2,"llm_response_id":"r3","kind":"Condensation"}"#;
const ANSWER: &str = r#"{"id":"e8","source":"agent","parent_id":"e7","llm_message":{"role":"assistant","content":[{"type":"text","text":"done"}]},"kind":"MessageEvent"}"#;

fn list(events: &[&str]) -> String {
    format!("[{}]", events.join(",\n "))
}

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::OpenHands)
}

#[test]
fn events_are_messages() {
    let transcript = transcript(&list(&[SYSTEM, ASKS, STATE, CALLS, SEEN, THINKS, FAILED, ANSWER]));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said.len(), 7, "{said:?}");
    assert_eq!(said[0], "system: text Be brief. | text On Linux.");
    assert!(said[1].starts_with("user: text go | ") && said[1].ends_with("text A rule."), "{said:?}");
    assert_eq!(said[2], "assistant: reasoning hm | text look | call c1 terminal {\"n\":1.0}");
    assert_eq!(said[3], "tool: result c1 [text a.txt]");
    assert!(said[4].ends_with("call c2 f {}") && said[5].contains("no such tool"), "{said:?}");
    assert_eq!(conversation.entries[2].message().response_id(), Some("r1"));
    let lines = [SYSTEM, ASKS, STATE, CALLS, SEEN].join("\n");
    assert_eq!(self::transcript(&lines).conversations()[0].entries.len(), 4);
    let page = format!("{{\"items\":{},\"next_page_id\":null}}", list(&[ASKS, ANSWER]));
    assert_eq!(self::transcript(&page).conversations()[0].path, "/items");
}

#[test]
fn changes_are_patched_in_place() {
    let mut transcript = transcript(&list(&[SYSTEM, ASKS, STATE, CALLS, SEEN, THINKS, FAILED, ANSWER]));
    let conversation = &mut transcript.conversations_mut()[0];
    let texts = |texts: &[&str]| texts.iter().map(|text| Part::Text((*text).into())).collect::<Vec<_>>();
    change(conversation, 1, texts(&["Go", "[image]", "A rule."]));
    change(conversation, 3, vec![Part::ToolResult(ToolResult::new("c1", texts(&["-"])))]);
    for at in [2, 4] {
        let parts = conversation.entries[at].message().parts().iter();
        let parts = parts.filter(|part| !matches!(part, Part::Reasoning(_))).cloned().collect();
        change(conversation, at, parts);
    }
    let asks = ASKS.replace("\"go\"", "\"Go\"").replace(
        r#"{"type":"image","image_urls":["data:image/png;base64,AAAA"]}"#,
        r#"{"type":"text","text":"[image]"}"#,
    );
    let calls = CALLS.replace("\"hm\"", "null");
    let seen = SEEN.replace("a.txt", "-");
    let block = r#"{"type":"thinking","thinking":"so","signature":"s"}"#;
    let thinks =
        THINKS.replace("\"reasoning_content\":\"so\"", "\"reasoning_content\":null").replace(block, "");
    let expected = list(&[SYSTEM, &asks, STATE, &calls, &seen, &thinks, FAILED, ANSWER]);
    assert_eq!(written(&transcript), expected);
    change(&mut transcript.conversations_mut()[0], 2, texts(&["no call"]));
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn what_is_left_out_is_bridged() {
    let mut transcript = transcript(&list(&[SYSTEM, ASKS, STATE, CALLS, SEEN, ANSWER]));
    transcript.conversations_mut()[0].entries.drain(1..4);
    let state = STATE.replace("\"parent_id\":\"e1\"", "\"parent_id\":\"e0\"");
    let out = written(&transcript);
    assert_eq!(out, list(&[SYSTEM, &state, ANSWER]));
    assert_eq!(read(out, &ReadOptions::default()).unwrap().conversations()[0].entries.len(), 2);
}

#[test]
fn a_condensation_takes_events_out() {
    let transcript = transcript(&list(&[SYSTEM, ASKS, CALLS, SEEN, FORGETS, ANSWER]));
    let conversation = &transcript.conversations()[0];
    let roles: Vec<_> = conversation.messages().map(Message::role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::User, Role::Assistant]);
    assert_eq!(shown_in(conversation)[2], "user: text so far");
    assert_eq!(
        conversation.compactions.iter().map(|one| (one.at, one.dropped)).collect::<Vec<_>>(),
        [(2, Some(2))]
    );
    let before = &transcript.conversations()[1];
    assert_eq!((before.relation, before.entries.len()), (Relation::Branch(0), 4));
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&list(&[SYSTEM, ASKS]));
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::system("new")));
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    let wrong = ANSWER.replace("\"llm_message\":{", "\"llm_message\":1,\"x\":{");
    let error = read(list(&[ASKS, &wrong]), &ReadOptions::default()).unwrap_err();
    assert!(error.kind() == WireErrorKind::Shape && error.to_string().contains("/1"), "{error}");
}

#[test]
fn a_new_message_stands_between_two_events_which_name_it() {
    let mut changed = transcript(&list(&[SYSTEM, ASKS, STATE, CALLS, SEEN]));
    let entries = &mut changed.conversations_mut()[0].entries;
    entries.push(TranscriptEntry::new(Message::assistant("Yes.")));
    entries.insert(2, TranscriptEntry::new(Message::user("new")));
    let out = written(&changed);
    let events: Vec<&str> = out.lines().collect();
    assert_eq!(events.len(), 7, "{out}");
    let name = events[3].split('"').nth(3).unwrap();
    let new = format!(
        r#" {{"id":"{name}","source":"user","parent_id":"e2","llm_message":{{"role":"user","content":[{{"type":"text","text":"new"}}]}},"kind":"MessageEvent"}},"#
    );
    assert_eq!(events[3], new);
    assert_eq!(events[4], format!(" {},", CALLS.replace("\"e2\"", &format!("\"{name}\""))));
    assert!(events[6].contains(r#""parent_id":"e4""#) && events[6].contains("Yes."), "{out}");
    let again = transcript(&out);
    assert_eq!(shown_in(&again.conversations()[0])[2], "user: text new");
    let mut condensed = transcript(&list(&[SYSTEM, ASKS, CALLS, SEEN, FORGETS, ANSWER]));
    condensed.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::user("new")));
    assert_eq!(
        write_back(&condensed, &mut Vec::new()).unwrap_err().kind(),
        WireErrorKind::Unsupported,
        "the summary stands behind a number of events"
    );
}

#[test]
fn a_message_that_stood_before_a_condensation_is_left_out_of_the_file() {
    let mut changed = transcript(&list(&[SYSTEM, ASKS, STATE, CALLS, SEEN, FORGETS, ANSWER]));
    let entries = &mut changed.conversations_mut()[0].entries;
    assert_eq!(entries.remove(1).message().role(), Role::User);
    let left = shown_in(&changed.conversations()[0]);
    let out = written(&changed);
    assert!(!out.contains("\"go\""), "{out}");
    assert_eq!(shown_in(&transcript(&out).conversations()[0]), left);
}
