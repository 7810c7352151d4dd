//! Items, read, changed and written back.

use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part, ToolCall, ToolResult};

use crate::openai_chat::tests::shown;
use crate::tests::support::written;
use crate::{Format, ReadOptions, Transcript, TranscriptEntry, detect, read};

fn transcript(text: &str) -> Transcript {
    let transcript = read(text, &ReadOptions::default().with_from(Format::OpenaiResponses)).unwrap();
    assert_eq!(written(&transcript), text);
    transcript
}

fn change(transcript: &mut Transcript, at: usize, parts: Vec<Part>) {
    let entries = &mut transcript.conversations_mut()[0].entries;
    let message = entries[at].message().clone().with_parts(parts);
    entries[at] = entries[at].clone().with_message(message);
}

const REQUEST: &str = r#"{"model":"m", "instructions": "Be brief.", "input": [
  {"role":"user","content":[{"type":"input_text","text":"Go"},{"type":"input_image","image_url":"data:image/png;base64,QUJD"}]},
  {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"sealed"},
  {"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"x\":1}","status":"completed"},
  {"type":"custom_tool_call","call_id":"b","name":"patch","input":"*** Begin"},
  {"type":"local_shell_call","id":"ls","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}},
  {"type":"function_call_output","call_id":"a","output":"one"},
  {"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"two"}]},
  {"type":"local_shell_call_output","id":"c","output":"three"},
  {"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}},
  {"type":"mcp_call","id":"mcp","name":"t","server_label":"s","arguments":"{}","output":"four","error":null},
  {"type":"compaction","id":"cmp","encrypted_content":"sealed"},
  {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done","annotations":[]}]},
  {"type":"mcp_list_tools","id":"mcpl","server_label":"s","tools":[]},
  {"type":"compaction_trigger"}
]}"#;

#[test]
fn every_kind_of_item_is_read() {
    let transcript = transcript(REQUEST);
    let of = |message: &Message| format!("{}: {}", message.role().as_str(), shown(message).join(" | "));
    let lines: Vec<_> = transcript.conversations()[0].messages().map(of).collect();
    let raw = r#"{"type":"mcp_list_tools","id":"mcpl","server_label":"s","tools":[]}"#;
    let expected = [
        "system: text Be brief.".to_owned(),
        "user: text Go | Image image/png false".to_owned(),
        "assistant: reasoning hm".to_owned(),
        "assistant: call a f {\"x\":1}".to_owned(),
        "assistant: call b patch *** Begin".to_owned(),
        "assistant: call c local_shell {\"type\":\"exec\",\"command\":[\"ls\"]}".to_owned(),
        "tool: result a [text one]".to_owned(),
        "tool: result b [text two]".to_owned(),
        "tool: result c [text three]".to_owned(),
        "assistant: call ws web_search {\"type\":\"search\",\"query\":\"q\"}".to_owned(),
        "assistant: call mcp t {} | result mcp [text four]".to_owned(),
        lines[11].clone(),
        "assistant: text Done".to_owned(),
        format!("assistant: unknown mcp_list_tools {raw}"),
    ];
    assert_eq!(lines, expected);
    assert!(lines[11].contains("Compaction"), "{}", lines[11]);
    let messages: Vec<_> = transcript.conversations()[0].messages().collect();
    let Part::ToolCall(hosted) = &messages[9].parts()[0] else { panic!("a call") };
    assert_eq!(hosted.kind, CallKind::Hosted);
    let Part::Reasoning(reasoning) = &messages[2].parts()[0] else { panic!("reasoning") };
    assert_eq!((reasoning.id.as_deref(), reasoning.opaque.as_deref()), (Some("rs_1"), Some("sealed")));
}

#[test]
fn changed_items_are_patched_and_the_trigger_stays_last() {
    let mut transcript = transcript(REQUEST);
    let result = |id: &str| vec![Part::ToolResult(ToolResult::new(id, vec![Part::Text("[cleared]".into())]))];
    change(&mut transcript, 6, result("a"));
    change(&mut transcript, 7, result("b"));
    change(&mut transcript, 3, vec![Part::ToolCall(ToolCall::new("a", "f", "{}"))]);
    let expected = REQUEST.replace("\"one\"", "\"[cleared]\"").replace("\"two\"", "\"[cleared]\"");
    assert_eq!(written(&transcript), expected.replace(r#""{\"x\":1}""#, r#""{}""#));
    transcript.conversations_mut()[0].entries.truncate(2);
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::assistant("x")));
    let end = "QUJD\"}]}";
    let head = &REQUEST[..REQUEST.find(end).unwrap() + end.len()];
    let new = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}"#;
    let trigger = r#"{"type":"compaction_trigger"}"#;
    assert_eq!(written(&transcript), format!("{head},\n  {new},\n  {trigger}\n]}}"));
}

#[test]
fn items_of_codex_alone_are_detected_among_others() {
    let text = r#"{"input":[{"type":"message","role":"user","content":"Hi"},
        {"type":"agent_message","author":"worker","content":[{"type":"input_text","text":"Done."}]}]}"#;
    assert_eq!(detect(text).unwrap().format, Format::OpenaiResponses);
    assert_eq!(transcript(text).conversations()[0].entries.len(), 2);
}

#[test]
fn a_text_alone_is_the_users_and_a_response_has_its_id() {
    let text = r#"{"model":"m","input":"Hi"}"#;
    assert_eq!(detect(text).unwrap().format, Format::OpenaiResponses);
    let one = transcript(text);
    assert_eq!(shown(one.conversations()[0].entries[0].message()), ["text Hi"]);
    let text = r#"{"id":"resp_1","object":"response","output":[{"type":"message","role":"assistant","id":"msg_1",
        "content":[{"type":"output_text","text":"Hi"}]}],"usage":{}}"#;
    assert_eq!(detect(text).unwrap().format, Format::OpenaiResponses);
    let message = transcript(text).conversations()[0].entries[0].message().clone();
    assert_eq!((message.role(), message.id()), (Role::Assistant, Some("msg_1")));
    assert_eq!(message.response_id(), Some("resp_1"));
}

/// The tools that a search has found are kept next to an empty result. A list of tools is no text: a compaction that
/// cleared it would write an item that the API refuses.
#[test]
fn the_tools_that_a_search_has_found_stand_beside_an_empty_result() {
    let text = r#"[{"type":"tool_search_call","call_id":"c1","execution":"client","arguments":{"query":"w"}},
  {"type":"tool_search_output","call_id":"c1","execution":"client","tools":[{"type":"function","name":"w"}]}]"#;
    let found = transcript(text);
    let found: Vec<_> = found.conversations()[0].messages().collect();
    let [Part::ToolResult(result), Part::Unknown(tools)] = found[1].parts() else { panic!("{found:?}") };
    assert!(result.parts.is_empty() && *tools.raw == *r#"[{"type":"function","name":"w"}]"#);
}
