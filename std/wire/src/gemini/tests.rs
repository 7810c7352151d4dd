//! Contents, read, changed and written back.

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolCall, ToolResult};

use crate::openai_chat::tests::shown;
use crate::tests::support::written;
use crate::{Format, ReadOptions, Transcript, convert, detect, read};

fn transcript(text: &str) -> Transcript {
    let transcript = read(text, &ReadOptions::default()).unwrap();
    assert_eq!(transcript.conversations()[0].format, Format::Gemini);
    assert_eq!(written(&transcript), text);
    transcript
}

fn lines(transcript: &Transcript) -> Vec<String> {
    let of = |message: &Message| format!("{}: {}", message.role().as_str(), shown(message).join(" | "));
    transcript.conversations()[0].messages().map(of).collect()
}

const REQUEST: &str = r#"{"systemInstruction": {"parts": [{"text": "S"}]}, "contents": [
  {"role": "user", "parts": [{"text": "Go"}, {"inlineData": {"mimeType": "audio/wav", "data": "QUJD"}}]},
  {"role": "model", "parts": [{"text": "hm", "thought": true},
    {"functionCall": {"name": "f", "args": {"x": 1.0}}, "thoughtSignature": "sealed"},
    {"function_call": {"name": "f", "args": {}}}]},
  {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "one"}}},
    {"function_response": {"name": "f", "response": {"error": "two"}}}, {"text": "And?"}]},
  {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, {"text": "Done", "thoughtSignature": "s2"}]}
]}"#;

#[test]
fn parts_in_either_spelling() {
    let code = r#"{"language": "PYTHON", "code": "1"}"#;
    let expected = [
        "system: text S".to_owned(),
        "user: text Go | Audio audio/wav false".to_owned(),
        "assistant: reasoning hm | reasoning  | call gemini:1:0 f {\"x\": 1.0} | call gemini:1:1 f {}"
            .to_owned(),
        "tool: result gemini:1:0 [text one]".to_owned(),
        "tool: result gemini:1:1 [text two]".to_owned(),
        "user: text And?".to_owned(),
        format!("assistant: call  executableCode {code} | result  [text 1] | reasoning  | text Done"),
    ];
    let transcript = transcript(REQUEST);
    assert_eq!(lines(&transcript), expected);
    let Part::ToolResult(failed) = &transcript.conversations()[0].entries[4].message().parts()[0] else {
        panic!("a result")
    };
    assert!(failed.is_error);
}

#[test]
fn a_changed_response_keeps_its_member_and_the_call_its_signature() {
    let mut transcript = transcript(REQUEST);
    let entries = &mut transcript.conversations_mut()[0].entries;
    let cleared = ToolResult::new("gemini:1:0", vec![Part::Text("[cleared]".into())]);
    let message = entries[3].message().clone().with_parts(vec![Part::ToolResult(cleared)]);
    entries[3] = entries[3].clone().with_message(message);
    let calls = entries[2].message().parts()[1..3].to_vec();
    let message = entries[2].message().clone().with_parts(calls);
    entries[2] = entries[2].clone().with_message(message);
    let expected = REQUEST
        .replace("\"one\"", "\"[cleared]\"")
        .replace("{\"text\": \"hm\", \"thought\": true},\n    ", "")
        .replace(",\n    {\"function_call\": {\"name\": \"f\", \"args\": {}}}", "");
    assert_eq!(written(&transcript), expected);
}

#[test]
fn candidates_are_conversations_and_one_without_content_is_none() {
    let text = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"},
        {"finishReason":"SAFETY"}],"responseId":"r1","usageMetadata":{"promptTokenCount":1}}"#;
    assert_eq!(detect(text).unwrap().format, Format::Gemini);
    let transcript = transcript(text);
    assert_eq!(transcript.conversations().len(), 1);
    assert_eq!(transcript.conversations()[0].entries[0].message().response_id(), Some("r1"));
}

#[test]
fn a_result_stands_as_an_object_only_if_it_is_read_as_the_same_text() {
    let responses = [
        (r#"{"a":1}"#, r#"{"a":1}"#),
        ("{}\n", r#"{"output":"{}\n"}"#),
        (r#"{"output":"a"}"#, r#"{"output":"{\"output\":\"a\"}"}"#),
        (r#"{"error":1}"#, r#"{"output":"{\"error\":1}"}"#),
        (r#"{"error":1,"error":2}"#, r#"{"output":"{\"error\":1,\"error\":2}"}"#),
    ];
    for (text, response) in responses {
        let call = Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("c", "f", "{}"))]);
        let converted =
            convert(&[Message::user("a"), call, Message::tool("c", text)], Format::Gemini).unwrap();
        assert!(converted.text.contains(&format!(r#""response":{response}}}"#)), "{}", converted.text);
        let again = read(converted.text, &ReadOptions::default()).unwrap();
        assert_eq!(lines(&again)[2], format!("tool: result c [text {text}]"));
    }
}

#[test]
fn a_part_of_unknown_kind_keeps_the_one_signature_that_it_has() {
    let text = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"thoughtSignature":"s1"},
        {"inlineData":{"name":"f"},"thoughtSignature":"s2"}]}]}"#;
    let transcript = transcript(text);
    let converted = convert(transcript.conversations()[0].messages(), Format::Gemini).unwrap();
    let expected = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"","thoughtSignature":"s1"},{"inlineData":{"name":"f"},"thoughtSignature":"s2"}]}]}"#;
    assert_eq!(converted.text, expected);
    assert_eq!(lines(&read(converted.text, &ReadOptions::default()).unwrap()), lines(&transcript));
}

#[test]
fn a_sealed_thought_without_a_text_stays_a_thought() {
    let text = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"","thought":true,
        "thoughtSignature":"s1"},{"text":"","thought":true},{"text":"b"}]}]}"#;
    let transcript = transcript(text);
    let parts = transcript.conversations()[0].messages().nth(1).map(Message::parts).unwrap();
    assert!(
        matches!(parts, [Part::Reasoning(sealed), Part::Text(_)] if sealed.opaque.as_deref() == Some("s1"))
    );
    let converted = convert(transcript.conversations()[0].messages(), Format::Gemini).unwrap();
    assert!(converted.text.contains(r#""thoughtSignature":"s1""#), "{}", converted.text);
}

#[test]
fn a_result_of_code_keeps_the_id_of_its_call() {
    let text = r#"{"contents":[{"role":"user","parts":[{"text":"Run it."}]},{"role":"model","parts":[
      {"executableCode":{"id":"x1","language":"PYTHON","code":"1"}},
      {"codeExecutionResult":{"id":"x1","outcome":"OUTCOME_OK","output":"1"}}]}]}"#;
    let transcript = read(text, &ReadOptions::default().with_from(Format::Gemini)).unwrap();
    let converted = convert(transcript.conversations()[0].messages(), Format::Gemini).unwrap();
    assert!(converted.losses.is_empty(), "{converted:?}");
    assert!(converted.text.contains(r#""codeExecutionResult":{"id":"x1","outcome""#), "{}", converted.text);
}
