//! Session files of Gemini CLI, read, changed and written back.

use crate::message::{Message, Part, ToolResult};
use crate::wire::openai_chat::tests::shown;
use crate::wire::{Entry, Format, ReadOptions, Transcript, WireErrorKind, detect, read, write_back};

const SESSION: &str = r#"{"sessionId": "s", "projectHash": "p", "messages": [
  {"id": "1", "type": "user", "content": "Go"},
  {"id": "n", "type": "info", "content": "note"},
  {"id": "2", "type": "gemini", "content": "Look.", "thoughts": [{"subject": "Plan", "description": "look"}],
   "tokens": {"input": 12350, "output": 51, "cached": 11820, "thoughts": 51, "tool": 0, "total": 12452}, "toolCalls": [
    {"id": "c1", "name": "ls", "args": {"dir": "."}, "status": "success", "resultDisplay": "a",
     "result": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}]},
    {"id": "c2", "name": "rm", "args": {}, "status": "error",
     "result": [{"functionResponse": {"id": "c2", "name": "rm", "response": {"error": "no"}}}]}]},
  {"id": "3", "type": "user", "content": [{"text": "And"}, "now"]}]}"#;

fn written(transcript: &Transcript) -> String {
    let mut out = Vec::new();
    write_back(transcript, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn transcript() -> Transcript {
    assert_eq!(detect(SESSION).unwrap().format, Format::GeminiCli);
    let transcript = read(SESSION, &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), SESSION);
    transcript
}

#[test]
fn a_record_of_the_model_is_its_words_and_its_results() {
    let transcript = transcript();
    let conversation = &transcript.conversations()[0];
    let of = |message: &Message| format!("{}: {}", message.role().as_str(), shown(message).join(" | "));
    let expected = [
        "user: text Go",
        "assistant: reasoning Plan\nlook | text Look. | call c1 ls {\"dir\": \".\"} | call c2 rm {}",
        "tool: result c1 [text a.txt]",
        "tool: result c2 [text no]",
        "user: text And | text now",
    ];
    assert_eq!(conversation.messages().map(of).collect::<Vec<_>>(), expected);
    assert!(conversation.entries[2].rejoin() && conversation.entries[3].rejoin());
    let report = conversation.usage[0];
    assert_eq!(
        (report.at, report.usage.input_total, report.usage.output_total),
        (1, Some(12_350), Some(102))
    );
}

#[test]
fn results_are_cleared_and_messages_added() {
    let mut transcript = transcript();
    let entries = &mut transcript.conversations_mut()[0].entries;
    let cleared = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("-".into())]));
    entries[2] = entries[2].clone().with_message(entries[2].message().clone().with_parts(vec![cleared]));
    entries.insert(1, Entry::new(Message::assistant("Yes.")));
    let result = r#"[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"-"}}}]"#;
    let before = r#"[{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}]"#;
    let new = "\"content\": \"Go\"},\n  {\"type\":\"gemini\",\"content\":\"Yes.\"}";
    let expected = SESSION.replace(before, result).replace("\"content\": \"Go\"}", new);
    assert_eq!(written(&transcript), expected);
    transcript.conversations_mut()[0].entries.remove(4);
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}
