//! Tests of every format: its recognition, and that each text is written back as it was read.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::spec::SPECS;
use crate::convert::tests::{TARGETS, converted};
use crate::document::Pointer;
use crate::{Format, ReadOptions, WireErrorKind, detect, read, write_back};

fn found(text: &str) -> (Format, String) {
    let found = detect(text).unwrap();
    (found.format, found.reason)
}

#[test]
fn each_format_has_one_row() {
    for (at, spec) in SPECS.iter().enumerate() {
        assert!(SPECS[..at].iter().all(|other| other.format() != spec.format()), "{}", spec.format());
    }
}

#[test]
fn a_sign_decides() {
    let tool = r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"b"}]"#;
    assert_eq!(found(tool), (Format::OpenaiChat, "its messages have `tool_call_id`".to_owned()));
    let system = r#"{"system":"s","messages":[{"role":"user","content":"a"}]}"#;
    assert_eq!(found(system), (Format::Anthropic, "it has `system` beside `messages`".to_owned()));
    let block = r#"[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]"#;
    assert_eq!(found(block).0, Format::Anthropic);
}

#[test]
fn messages_that_only_look_like_chat_completions_have_their_own_formats() {
    for (text, format) in [
        (
            r#"{"modelId":"m","messages":[{"role":"user","content":[{"text":"Hi"}]}]}"#,
            Format::BedrockConverse,
        ),
        (
            r#"[{"role":"user","content":[{"text":"Hi"}]},{"role":"assistant","content":[{"toolUse":{"name":"f"}}]}]"#,
            Format::BedrockConverse,
        ),
        (r#"[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]"#, Format::OtelGenai),
        (r#"[{"id":"1","role":"user","parts":[{"type":"text","text":"Hi"}]}]"#, Format::AiSdk),
        (
            r#"[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"t","toolName":"f","input":{}}]}]"#,
            Format::AiSdk,
        ),
        (r#"{"role":"user","message":{"content":[{"type":"text","text":"Hi"}]}}"#, Format::Cursor),
        (
            r#"[{"ts":1,"role":"user","content":[{"type":"text","text":"<task>\nGo\n</task>"}]}]"#,
            Format::Cline,
        ),
    ] {
        assert_eq!(found(text).0, format, "{text}");
    }
    // The calls of Chat Completions decide, next to any other message.
    let call = r#"{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    for other in [
        r#"{"role":"user","content":[{"type":"image","image":"https://e.org/a.png"},{"type":"text","text":"a"}]}"#,
        r#"{"role":"user","content":[{"text":"a"}]}"#,
        r#"{"role":"user","ts":1,"content":"<task>"}"#,
    ] {
        let messages = format!("[{other},{call}]");
        for text in
            [format!(r#"{{"sessionId":"a","version":1,"updated_at":"t","messages":{messages}}}"#), messages]
        {
            assert!(detect(&text).map_or(true, |found| found.format == Format::OpenaiChat), "{text}");
        }
    }
    let task = r#"[{"role":"user","content":[{"type":"text","text":"<task>\nGo\n</task>"},{"type":"text","text":"<environment_details>"}]}]"#;
    assert_eq!(found(task).0, Format::Cline);
    let old = r#"[{"role":"assistant","content":"","toolInvocations":[]}]"#;
    assert_eq!(found(old).0, Format::AiSdk);
    // A time in a message alone does not decide the format.
    assert_eq!(found(r#"[{"ts":1,"role":"user","content":"a"}]"#).0, Format::OpenaiChat);
}

#[test]
fn developers_speak_in_two_formats() {
    let items = r#"[{"type":"message","role":"developer","content":"s"},{"type":"reasoning","summary":[]}]"#;
    assert_eq!(found(items).0, Format::OpenaiResponses);
    let plain = r#"{"messages":[{"role":"developer","content":"s"},{"role":"user","content":"a"}]}"#;
    assert_eq!(found(plain).0, Format::OpenaiChat);
    let either = found(r#"[{"role":"developer","content":"s"}]"#);
    assert!(either.1.contains("openai-responses would read the same"), "{}", either.1);
}

#[test]
fn without_a_sign_an_equal_reading_is_no_guess() {
    let (format, reason) = found(r#"[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]"#);
    assert_eq!(format, Format::OpenaiChat);
    assert!(reason.ends_with("anthropic would read the same messages"), "{reason}");
}

#[test]
fn without_a_sign_another_reading_is_refused() {
    let text = r#"[{"role":"user","content":[{"type":"novel"}]}]"#;
    let error = detect(text).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Ambiguous);
    assert!(
        error.to_string().contains("openai-chat because") && error.to_string().contains("anthropic because")
    );
    for format in [Format::OpenaiChat, Format::Anthropic] {
        assert!(read(text, &ReadOptions::default().with_from(format)).is_ok(), "{format}");
    }
}

#[test]
fn elements_that_fit_several_formats_follow_the_others() {
    let plain = r#"{"messages":[{"role":"user","content":"a"}]}"#;
    let sure = r#"{"system":"s","messages":[{"role":"user","content":"a"}]}"#;
    let text = format!("{plain}\n{sure}\n{plain}\n");
    let transcript = read(text, &ReadOptions::default().with_each()).unwrap();
    assert_eq!(transcript.conversations().len(), 3);
    assert!(transcript.conversations().iter().all(|one| one.format == Format::Anthropic));
}

#[test]
fn deep_huge_and_odd_texts_are_results_or_errors() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(50_000), close.repeat(50_000));
    let odd = [
        deep("[", "]"),
        deep("{\"a\":", "}"),
        deep(r#"{"type":"tool_result","tool_use_id":"a","content":["#, "]}"),
        deep(r#"{"functionResponse":{"name":"f","parts":["#, "]}}"),
        "-1e999999".to_owned(),
        "123456789".repeat(1_000),
        format!("\"{}\"", "x".repeat(1 << 20)),
        r#""\u0000\u001f\ud800\udc00\ud83d""#.to_owned(),
    ];
    for value in &odd {
        let texts = [
            value.clone(),
            format!(r#"{{"messages":[{{"role":"user","content":[{value}]}}]}}"#),
            format!(r#"{{"messages":[{{"role":"user","content":{value}}}],"x":{value}}}"#),
            format!(r#"{{"input":[{{"type":"function_call_output","call_id":"a","output":{value}}}]}}"#),
            format!(r#"{{"contents":[{{"role":"user","parts":[{value}]}}]}}"#),
            format!(
                r#"{{"contents":[{{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{value}}}}}]}}]}}"#
            ),
        ];
        for text in &texts {
            for format in TARGETS {
                same_text(text, &ReadOptions::default().with_from(format));
            }
            let _ = detect(text);
        }
    }
}

/// Real transcripts, if they are available.
pub(super) fn data() -> Vec<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|above| above.join("shared/data"));
    let Some(root) = above.into_iter().find(|path| path.is_dir()) else {
        eprintln!("skipped: there are no recorded conversations");
        return Vec::new();
    };
    let files = |folder: &Path| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files(&root).filter(|folder| folder.is_dir()).flat_map(|folder| files(&folder)).collect()
}

#[test]
fn real_transcripts_are_written_back_as_they_were() {
    for path in data() {
        let text = fs::read_to_string(&path).unwrap();
        if path.ends_with("pydantic-ai__recorded_requests.jsonl") {
            // Requests to several providers in one file.
            let options = ReadOptions::default().with_at(Pointer::parse("/body").unwrap());
            text.lines().for_each(|line| same_text(line, &options));
        } else {
            same_text(&text, &ReadOptions::default());
        }
    }
}

#[test]
fn a_message_that_was_only_read_is_not_changed() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut messages = 0;
    for format in Format::readable() {
        let folder = seeds.join(format!("wire_{}", format.as_str().replace('-', "_")));
        for file in fs::read_dir(folder).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let Ok(transcript) = read(text, &ReadOptions::default().with_from(format)) else { continue };
            for message in transcript.conversations().iter().flat_map(|one| one.messages()) {
                assert!(message.wire().is_some_and(|wire| !wire.touched), "{format}: {message:?}");
                messages += 1;
            }
        }
    }
    assert!(messages > 100, "{messages}");
}

/// Checks that a readable text is written back as it was.
pub(super) fn same_text(text: &str, options: &ReadOptions) {
    let Ok(mut transcript) = read(text, options) else { return };
    // The bench does the same with the large texts.
    for to in TARGETS.into_iter().filter(|_| text.len() < 100_000) {
        converted(&transcript, to);
    }
    let mut out = Vec::new();
    write_back(&transcript, &mut out).unwrap();
    assert!(out == text.as_bytes());
    // The same parts again change nothing, though everything is patched.
    for conversation in transcript.conversations_mut() {
        for entry in &mut conversation.entries {
            let message = entry.message().clone();
            let parts = message.parts().to_vec();
            *entry = entry.clone().with_message(message.with_parts(parts));
        }
    }
    let mut again = Vec::new();
    write_back(&transcript, &mut again).unwrap();
    assert!(again == text.as_bytes(), "{}", first_difference(&again, text.as_bytes()));
}

/// The first difference of two texts, for a person who examines it.
pub(super) fn first_difference(one: &[u8], other: &[u8]) -> String {
    let at = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let around = |text: &[u8]| {
        String::from_utf8_lossy(&text[at.saturating_sub(60)..text.len().min(at + 60)]).into_owned()
    };
    format!("{}\ninstead of\n{}", around(one), around(other))
}
