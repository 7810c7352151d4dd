//! Messages of `LangChain` in their three forms, read, changed and written back.

use epitome_core::message::MediaKind;
use epitome_message::{Media, MediaSource, Message, Part, ToolCall, ToolResult};

use crate::openai_chat::tests::shown;
use crate::tests::support::written;
use crate::{Format, ReadOptions, Transcript, TranscriptEntry, WireErrorKind, detect, read, write_back};

const USAGE: &str = r#""usage_metadata": {"input_tokens": 120, "output_tokens": 9, "total_tokens": 129,
    "input_token_details": {"cache_read": 100}, "output_token_details": {"reasoning": 4}}"#;

/// A question, two calls, and their results.
fn bodies() -> [String; 4] {
    [
        r#"{"content": [{"type": "text", "text": "Go"}, {"type": "image_url", "image_url": {"url": "https://a/b.png"}}], "type": "human", "id": "h1"}"#.to_owned(),
        format!(
            r#"{{"content": [{{"type": "text", "text": ""}}, {{"type": "tool_use", "id": "c1", "name": "f", "input": {{}}}}], "type": "ai", "id": "a1",
  "additional_kwargs": {{"reasoning_content": "hm"}}, "tool_calls": [{{"name": "f", "args": {{"x": 1.50}}, "id": "c1", "type": "tool_call"}},
  {{"name": "g", "args": {{}}, "id": "c2", "type": "tool_call"}}], {USAGE}}}"#
        ),
        r#"{"content": "one", "type": "tool", "tool_call_id": "c1", "status": "success", "name": "f"}"#.to_owned(),
        r#"{"content": "two", "type": "tool", "tool_call_id": "c2", "status": "error"}"#.to_owned(),
    ]
}

fn flat() -> String {
    format!(r#"{{"values": {{"title": "t", "messages": [{}]}}, "next": []}}"#, bodies().join(", "))
}

fn transcript(text: &str) -> Transcript {
    assert_eq!(detect(text).unwrap().format, Format::LangChain);
    let transcript = read(text, &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), text, "what nobody changed is the source text");
    transcript
}

fn lines(transcript: &Transcript) -> Vec<String> {
    let of = |message: &Message| format!("{}: {}", message.role().as_str(), shown(message).join(" | "));
    transcript.conversations()[0].messages().map(of).collect()
}

#[test]
fn lines_of_messages_are_told() {
    let text = include_str!("../../../../fuzz/seeds/wire_langchain/lines.jsonl");
    assert_eq!(
        lines(&transcript(text)),
        ["user: text Go", "assistant: call c1 f {}", "tool: result c1 [text one]"]
    );
    assert_eq!(detect(text).unwrap().reason, "its messages are of type `human` or `ai`, with `data`");
    let mixed = format!("{text}{}\n", r#"{"role":"user","content":"a"}"#);
    assert!(detect(&mixed).is_err(), "one line of another format");
}

#[test]
fn three_forms_say_the_same() {
    let dicts = bodies().map(|body| {
        let kind = ["human", "ai", "tool"]
            .into_iter()
            .find(|kind| body.contains(&format!("\"type\": \"{kind}\"")))
            .unwrap();
        format!(r#"{{"type": "{kind}", "data": {body}}}"#)
    });
    let dumped = bodies().map(|body| {
        format!(r#"{{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "X"], "kwargs": {body}}}"#)
    });
    let flat = transcript(&flat());
    let dicts = transcript(&format!("[{}]", dicts.join(",\n")));
    let dumped = transcript(&format!("[{}]", dumped.join(",\n")));
    assert_eq!(lines(&flat), lines(&dicts));
    assert_eq!(lines(&flat), lines(&dumped));
    assert_eq!(lines(&flat).len(), 4);
    assert_eq!(lines(&flat)[1], r#"assistant: reasoning hm | call c1 f {"x": 1.50} | call c2 g {}"#);
    assert_eq!(lines(&flat)[2], "tool: result c1 [text one]");
    for one in [&flat, &dicts, &dumped] {
        let usage = &one.conversations()[0].usage;
        assert_eq!((usage.len(), usage[0].at), (1, 1));
        assert_eq!((usage[0].usage.input_total, usage[0].usage.cache_read), (Some(120), Some(100)));
    }
    assert_eq!(flat.conversations()[0].path, "/values/messages");
}

#[test]
fn changed_texts_and_results_are_patched_and_other_changes_refused() {
    let mut transcript = transcript(&flat());
    let set = |transcript: &mut Transcript, at: usize, parts: Vec<Part>| {
        let entries = &mut transcript.conversations_mut()[0].entries;
        entries[at] = entries[at].clone().with_message(entries[at].message().clone().with_parts(parts));
    };
    set(
        &mut transcript,
        2,
        vec![Part::ToolResult(ToolResult::new("c1", vec![Part::Text("[cleared]".into())]))],
    );
    let mut parts = transcript.conversations()[0].entries[0].message().parts().to_vec();
    parts[0] = Part::Text("Go on".into());
    set(&mut transcript, 0, parts);
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::user("new")));
    let new = r#", {"type":"human","data":{"content":"new","type":"human"}}]}"#;
    let expected = flat()
        .replace("\"one\"", "\"[cleared]\"")
        .replace("\"Go\"", "\"Go on\"")
        .replace("]}, \"next\"", &format!("{new}, \"next\""));
    assert_eq!(written(&transcript), expected);
    let refused = |transcript: &Transcript| write_back(transcript, &mut Vec::new()).unwrap_err().to_string();
    let mut parts = transcript.conversations()[0].entries[1].message().parts().to_vec();
    parts[1] = Part::ToolCall(ToolCall::new("c1", "f", "{}"));
    set(&mut transcript, 1, parts);
    assert_eq!(written(&transcript), expected.replace(r#"{"x": 1.50}"#, "{}"));
    set(&mut transcript, 1, vec![Part::Text("no calls".into())]);
    assert_eq!(
        refused(&transcript),
        "line 1, column 180, at /values/messages/1: the file has no form for a message with other parts than it had; write it \
         in another format or remove that part"
    );
}

#[test]
fn cleared_arguments_are_cleared_in_each_copy_of_the_call() {
    let text = r#"[{"type": "ai", "data": {"content": [{"type": "text", "text": "Go"},
  {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}, "partial_json": "{\"x\": 1}"},
  {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"x\": 1}"},
  {"type": "tool_call_chunk", "id": "c1", "name": "f", "args": "{\"x\": 1}"},
  {"type": "tool_use", "id": "c2", "name": "f", "input": {"x": 2}}],
 "additional_kwargs": {"function_call": {"name": "f", "arguments": "{\"x\": 1}"}, "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{\"x\": 1}"}, "type": "function"},
  {"id": "c2", "function": {"name": "f", "arguments": "{\"x\": 2}"}, "type": "function"}]},
 "tool_call_chunks": [{"name": "f", "args": "{\"x\": 1}", "id": "c1", "index": 0}],
 "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "c1"}, {"name": "f", "args": {"x": 2}, "id": "c2"}]}}]"#;
    let mut transcript = transcript(text);
    let entry = &mut transcript.conversations_mut()[0].entries[0];
    let mut parts = entry.message().parts().to_vec();
    parts[1] = Part::ToolCall(ToolCall::new("c1", "f", "{}"));
    *entry = entry.clone().with_message(entry.message().clone().with_parts(parts));
    assert_eq!(written(&transcript), text.replace(r#"{"x": 1}"#, "{}").replace(r#"{\"x\": 1}"#, "{}"));
}

#[test]
fn an_unknown_type_is_refused_with_its_place() {
    let text = r#"{"messages": [{"type": "human", "content": "a"}, {"type": "remove", "content": ""}]}"#;
    assert!(detect(text).is_err());
    let error = read(text, &ReadOptions::default().with_from(Format::LangChain)).unwrap_err();
    assert_eq!((error.kind(), error.path()), (WireErrorKind::UnknownRole, "/messages/1"));
}

#[test]
fn words_that_others_use_too_are_no_certain_sign() {
    let session = r#"{"sessionId": "s", "projectHash": "p", "messages": [{"id": "1", "type": "user", "content": "Hi"}]}"#;
    assert_eq!(detect(session).unwrap().format, Format::GeminiCli, "of a user who was not answered yet");
    let events = r#"[{"type": "user", "data": {"clicked": true}}, {"type": "system", "data": {}}]"#;
    assert_eq!(detect(events).unwrap_err().kind(), WireErrorKind::Shape);
}

/// The media blocks of packages for providers are read as media: as a text, a medium would have the tokens of its
/// base64.
#[test]
fn media_in_the_forms_of_providers_are_media() {
    for (block, kind, mime) in [
        (
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}"#,
            MediaKind::Image,
            "image/png",
        ),
        (
            r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aGk="}}"#,
            MediaKind::Document,
            "application/pdf",
        ),
        (
            r#"{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}"#,
            MediaKind::Audio,
            "audio/wav",
        ),
        (r#"{"type":"media","mime_type":"video/mp4","data":"aGk="}"#, MediaKind::Video, "video/mp4"),
        (
            r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,aGk="}}"#,
            MediaKind::Document,
            "application/pdf",
        ),
        (r#"{"type":"image","base64":"aGk=","mime_type":"image/png"}"#, MediaKind::Image, "image/png"),
    ] {
        let text = format!(r#"[{{"type":"human","content":[{{"type":"text","text":"Look"}},{block}]}}]"#);
        let transcript = read(&*text, &ReadOptions::default()).unwrap();
        let message = transcript.conversations()[0].messages().next().unwrap();
        let expected = Media::new(kind, mime, MediaSource::Base64("aGk=".into()));
        assert_eq!(message.parts()[1], Part::Media(expected), "{block}");
    }
    let linked =
        r#"[{"type":"human","content":[{"type":"image","source":{"type":"url","url":"https://a/b.png"}}]}]"#;
    let transcript = read(linked, &ReadOptions::default()).unwrap();
    let message = transcript.conversations()[0].messages().next().unwrap();
    let Part::Media(media) = &message.parts()[0] else { panic!("{message:?}") };
    assert_eq!(media.source, MediaSource::Uri("https://a/b.png".into()));
    // A block whose bytes are elsewhere, or that is a text, keeps its form.
    for block in [
        r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"Long text"}}"#,
        r#"{"type":"file","file":{"file_id":"f"}}"#,
    ] {
        let text = format!(r#"[{{"type":"human","content":[{block}]}}]"#);
        let transcript = read(&*text, &ReadOptions::default()).unwrap();
        let message = transcript.conversations()[0].messages().next().unwrap();
        assert!(matches!(message.parts()[0], Part::Unknown(_)), "{block}");
    }
}
