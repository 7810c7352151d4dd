//! Anthropic's messages, read, changed and written back.

use epitome_core::message::{CallKind, Parts as _, Role};
use epitome_message::{Message, Part, ToolCall, ToolResult};

use crate::openai_chat::tests::shown;
use crate::tests::support::written;
use crate::{Format, ReadOptions, Transcript, TranscriptEntry, WireErrorKind, detect, read, write_back};

fn transcript(text: &str) -> Transcript {
    let transcript = read(text, &ReadOptions::default().with_from(Format::Anthropic)).unwrap();
    assert_eq!(written(&transcript), text, "what nobody changed is the source text");
    transcript
}

fn lines(transcript: &Transcript) -> Vec<String> {
    let entries = &transcript.conversations()[0].entries;
    let of = |entry: &TranscriptEntry| {
        let rejoin = if entry.rejoin() { "+" } else { "" };
        let role = entry.message().role().as_str();
        format!("{rejoin}{role}: {}", shown(entry.message()).join(" | "))
    };
    entries.iter().map(of).collect()
}

/// One assistant message with these blocks.
fn blocks(blocks: &str) -> Message {
    let text = format!(r#"[{{"role":"assistant","content":{blocks}}}]"#);
    transcript(&text).conversations()[0].entries[0].message().clone()
}

const MIXED: &str = r#"{"model": "m", "system": "Be brief.", "max_tokens": 1e2, "messages": [
  {"role": "user", "content": "Go"},
  {"role": "assistant", "content": [
    {"type": "thinking", "thinking": "hm", "signature": "sig"},
    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1.50}, "cache_control": {"type": "ephemeral"}},
    {"type": "tool_use", "id": "b", "name": "g", "input": {}}]},
  {"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "a", "content": "one", "cache_control": {"type": "ephemeral"}},
    {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": [{"type": "text", "text": "two"}]},
    {"type": "text", "text": "And now?"}, {"type": "text", "text": "Well?"}], "extra": 1}
]}"#;

#[test]
fn a_message_that_mixes_results_and_words_is_split() {
    let expected = [
        "system: text Be brief.",
        "user: text Go",
        "assistant: reasoning hm | call a f {\"x\": 1.50} | call b g {}",
        "tool: result a [text one]",
        "+tool: result b [text two]",
        "+user: text And now? | text Well?",
    ];
    assert_eq!(lines(&transcript(MIXED)), expected);
}

#[test]
fn a_changed_piece_is_patched_and_the_others_stay() {
    let mut transcript = transcript(MIXED);
    let entries = &mut transcript.conversations_mut()[0].entries;
    let shorter = Part::ToolResult(ToolResult::new("a", vec![Part::Text("[cleared]".into())]));
    let cleared = entries[3].message().clone().with_parts(vec![shorter]);
    entries[3] = entries[3].clone().with_message(cleared);
    assert_eq!(written(&transcript), MIXED.replace("\"one\"", "\"[cleared]\""));
}

#[test]
fn dropped_pieces_and_records_leave_the_rest_as_it_was() {
    let mut transcript = transcript(MIXED);
    transcript.conversations_mut()[0].entries.truncate(5);
    let cut =
        ",\n    {\"type\": \"text\", \"text\": \"And now?\"}, {\"type\": \"text\", \"text\": \"Well?\"}";
    assert_eq!(written(&transcript), MIXED.replace(cut, ""));
    transcript.conversations_mut()[0].entries.truncate(2);
    let end = "\"content\": \"Go\"}";
    let head = &MIXED[..MIXED.find(end).unwrap() + end.len()];
    assert_eq!(written(&transcript), format!("{head}\n]}}"));
    transcript.conversations_mut()[0].entries.remove(0);
    assert_eq!(written(&transcript), format!("{head}\n]}}").replace(" \"system\": \"Be brief.\",", ""));
    transcript.conversations_mut()[0].entries.clear();
    assert_eq!(written(&transcript), r#"{"model": "m", "max_tokens": 1e2, "messages": []}"#);
}

#[test]
fn new_messages_stand_behind_the_one_before_them() {
    let text = r#"[{"role":"user","content":"a"}, {"role":"user","content":"b"}]"#;
    let mut transcript = transcript(text);
    let entries = &mut transcript.conversations_mut()[0].entries;
    entries.insert(1, TranscriptEntry::new(Message::assistant("x")));
    entries.push(TranscriptEntry::new(Message::tool("c", "y")));
    let new = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"y"}]}"#;
    let expected = format!(
        r#"[{{"role":"user","content":"a"}}, {{"role":"assistant","content":"x"}}, {{"role":"user","content":"b"}}, {new}]"#
    );
    assert_eq!(written(&transcript), expected);
}

#[test]
fn calls_of_the_providers_tools_and_their_results_are_one_message() {
    let message = blocks(
        r#"[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},
            {"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"u"}]},
            {"type":"mcp_tool_use","id":"m","name":"t","server_name":"n","input":{}},
            {"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[{"type":"text","text":"ok"}]},
            {"type":"bash_code_execution_tool_result","tool_use_id":"z","content":{"type":"bash_result","stdout":""}}]"#,
    );
    assert_eq!(message.role(), Role::Assistant);
    let expected = [
        r#"call s web_search {"query":"q"}"#,
        r#"result s [unknown web_search_result {"type":"web_search_result","url":"u"}]"#,
        "call m t {}",
        "result m [text ok]",
        r#"result z [unknown bash_result {"type":"bash_result","stdout":""}]"#,
    ];
    assert_eq!(shown(&message), expected);
    message.for_each_part(&mut |part| {
        if let epitome_core::message::PartView::ToolCall(call) = part {
            assert_eq!(call.kind, CallKind::Hosted);
        }
    });
}

#[test]
fn sealed_reasoning_compactions_and_media() {
    let message = blocks(
        r#"[{"type":"redacted_thinking","data":"xyz"},
            {"type":"compaction","content":"so far","encrypted_content":"e","signature":"s"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},
            {"type":"document","title":"t","source":{"type":"url","url":"https://a/b.pdf"}},
            {"type":"document","source":{"type":"content","content":[]}}, {"type":"text","text":""}]"#,
    );
    let [
        Part::Reasoning(sealed),
        Part::Compaction(left),
        Part::Media(image),
        Part::Media(_),
        Part::Unknown(other),
    ] = message.parts()
    else {
        panic!("{:?}", message.parts())
    };
    assert_eq!((&*sealed.text, sealed.opaque.as_deref()), ("", Some("xyz")));
    let others = r#"{"encrypted_content":"e","signature":"s"}"#;
    assert_eq!((&*left.text, left.opaque.as_deref()), ("so far", Some(others)));
    assert_eq!(&*image.mime, "image/png");
    assert_eq!(other.kind, "document");
}

#[test]
fn what_a_compaction_left_is_written_with_all_that_it_had() {
    let fresh = |block: &str| {
        let message = blocks(&format!("[{block}]"));
        super::encode::block(&message.parts()[0]).unwrap()
    };
    for block in [
        r#"{"type":"compaction","content":"so far"}"#,
        r#"{"type":"compaction","content":null}"#,
        r#"{"type":"compaction","content":"so far","encrypted_content":"e"}"#,
        r#"{"type":"compaction","content":"so far","encrypted_content":"{}"}"#,
        r#"{"type":"compaction","content":"so far","signature":"a/b=="}"#,
        r#"{"type":"compaction","content":"so far","signature":"s","tool_changes":[{"x": 1.50}],"cache_control":{"type": "ephemeral"}}"#,
    ] {
        assert_eq!(fresh(block), block);
    }
    let spaced = r#"{"signature": "\u0073", "content":"so far", "type":"compaction", "tool_changes":null}"#;
    assert_eq!(fresh(spaced), r#"{"type":"compaction","content":"so far","signature":"\u0073"}"#);
}

#[test]
fn a_response_is_one_message_that_cannot_be_left_out() {
    let text = "{\"id\": \"msg_1\", \"type\": \"message\", \"role\": \"assistant\",\n \"content\": \
                [{\"type\": \"text\", \"text\": \"Hi\"}], \"stop_reason\": \"end_turn\", \"usage\": {}}";
    assert_eq!(detect(text).unwrap().format, Format::Anthropic);
    let mut transcript = transcript(text);
    assert_eq!(transcript.conversations()[0].entries[0].message().response_id(), Some("msg_1"));
    transcript.conversations_mut()[0].entries.clear();
    let error = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Unsupported);
}

#[test]
fn a_changed_call_keeps_what_else_its_block_says() {
    let mut transcript = transcript(MIXED);
    let entries = &mut transcript.conversations_mut()[0].entries;
    let mut parts = entries[2].message().parts().to_vec();
    parts[1] = Part::ToolCall(ToolCall::new("a", "f", r#"{"x": "[cut]"}"#));
    let changed = entries[2].message().clone().with_parts(parts);
    entries[2] = entries[2].clone().with_message(changed);
    assert_eq!(written(&transcript), MIXED.replace("1.50", "\"[cut]\""));
}

#[test]
fn errors_name_the_place() {
    let error = |text: &str| {
        read(text, &ReadOptions::default().with_from(Format::Anthropic)).unwrap_err().to_string()
    };
    assert_eq!(
        error("{\"messages\": [\n{\"role\": \"user\", \"content\": [{\"text\": 1}]}]}"),
        "line 2, column 30, at /messages/0/content/0: expected a block with `type`, found an object with the key `text`"
    );
    assert_eq!(
        error("[{\"role\": \"tool\", \"content\": \"\"}]"),
        "line 1, column 11, at /0/role: unknown role `tool`: expected user, assistant or system"
    );
}
