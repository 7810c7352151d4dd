//! Converse. The forms are those of its reference; the contents are made up.

use epitome_core::attribution::SourceKind;
use epitome_core::message::{CallKind, Role};
use epitome_core::{OpenCallTree, Profile, Validator};
use epitome_message::{Message, Part};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json as value};

use crate::openai_chat::tests::shown;
use crate::{Format, ReadOptions, Transcript, TranscriptEntry, detect, read, write_back};

const REQUEST: &str = include_str!("../../../../fuzz/seeds/wire_bedrock_converse/request.json");
const ANSWER: &str = include_str!("../../../../fuzz/seeds/wire_bedrock_converse/answer.json");

#[test]
fn a_request_is_its_instructions_and_messages() {
    assert_eq!(detect(REQUEST).unwrap().format, Format::BedrockConverse);
    let transcript = read(REQUEST, &ReadOptions::default()).unwrap();
    let conversation = &transcript.conversations()[0];
    let said: Vec<_> = conversation.messages().map(|message| shown(message).join(" | ")).collect();
    let roles: Vec<_> = conversation.messages().map(Message::role).collect();
    let (user, model, tool) = (Role::User, Role::Assistant, Role::Tool);
    assert_eq!(roles, [Role::System, user, model, tool, tool, user, model], "{said:#?}");
    assert!(said[2].contains("call c1 ls {\"n\": 1.50}") && said[3].contains("[\"a.txt\"]"), "{said:#?}");
    assert!(
        matches!(conversation.entries[4].message().parts(), [Part::ToolResult(result)] if result.is_error)
    );
    let last = conversation.entries[6].message().parts();
    assert!(matches!(&last[0], Part::ToolCall(call) if call.kind == CallKind::Hosted), "{said:#?}");
    assert!(matches!(&last[2], Part::Text(text) if text == "checked"), "{said:#?}");
    assert!(matches!(&last[3], Part::Unknown(unknown) if unknown.kind == "citationsContent"), "{said:#?}");
}

#[test]
fn an_answer_is_a_message_with_its_usage() {
    assert_eq!(detect(ANSWER).unwrap().format, Format::BedrockConverse);
    let transcript = read(ANSWER, &ReadOptions::default()).unwrap();
    let conversation = &transcript.conversations()[0];
    assert_eq!((conversation.path.as_str(), conversation.entries.len()), ("/output/message", 1));
    let usage = conversation.usage.iter().next().unwrap().usage;
    assert_eq!((usage.input_total, usage.output_total), (Some(13), Some(2)));
}

#[test]
fn an_error_names_the_place() {
    let wrong = r#"{"messages":[{"role":"user","content":[{"text":"a"},{"toolResult":{"content":[1]}}]}]}"#;
    let error = read(wrong, &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("/messages/0/content/1/toolResult/content/0"), "{error}");
}

fn written(transcript: &Transcript) -> String {
    let mut out = Vec::new();
    write_back(transcript, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Number of breaches of the rules of the API.
fn violations(transcript: &Transcript) -> usize {
    let (mut validator, mut found) = (Validator::<OpenCallTree>::new(Profile::BedrockConverse), 0);
    for message in transcript.conversations()[0].messages() {
        validator.push(message, &mut |_| found += 1).unwrap();
    }
    validator.finish(&mut |_| found += 1);
    found
}

#[test]
fn records_that_a_change_makes_neighbours_are_joined() {
    let text = r#"{"messages": [
  {"role": "user", "content": [ {"text": "Read it."}, {"cachePoint": {"type": "default"}} ]},
  {"role": "assistant", "content": [{"text": "I read."}, {"toolUse": {"toolUseId": "c", "name": "cat", "input": {}}}]},
  {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "x"}], "status": "success"}}]},
  {"role": "assistant", "content": [{"text": "Done."}]},
  {"role": "user", "content": [{"text": "And now?"}], "z": 1}
]}"#;
    let mut transcript = read(text, &ReadOptions::default()).unwrap();
    let entries = &mut transcript.conversations_mut()[0].entries;
    entries.remove(3);
    entries.insert(1, TranscriptEntry::new(Message::assistant("[note]")));
    let out = written(&transcript);
    assert_eq!(
        out,
        r#"{"messages": [
  {"role": "user", "content": [ {"text": "Read it."}, {"cachePoint": {"type": "default"}} ]},
  {"role":"assistant","content":[{"text":"[note]"}, {"text": "I read."}, {"toolUse": {"toolUseId": "c", "name": "cat", "input": {}}}]},
  {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "x"}], "status": "success"}}, {"text": "And now?"}]}
]}"#
    );
    let again = read(&*out, &ReadOptions::default()).unwrap();
    assert_eq!(violations(&again), 0);
}

/// The writer joins a ledger with the message behind it; a later compaction finds it again, and may leave it out.
#[test]
fn a_ledger_that_was_joined_is_a_message_of_its_own() {
    let text = r#"[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"text":"b"}]}]"#;
    let from = ReadOptions::default().with_from(Format::BedrockConverse);
    let mut transcript = read(text, &from).unwrap();
    let ledger = Message::assistant(format!("{} src/main.rs", epitome_core::LEDGER_OPENING));
    transcript.conversations_mut()[0].entries.insert(1, TranscriptEntry::new(ledger));
    let out = written(&transcript);
    assert_eq!(out.matches(r#""role""#).count(), 2, "{out}");
    let mut again = read(&*out, &from).unwrap();
    let sources: Vec<_> = again.conversations()[0].messages().map(|one| one.attribution().source).collect();
    assert_eq!(sources, [SourceKind::Caller, SourceKind::Compaction, SourceKind::Caller]);
    assert_eq!(written(&again), out);
    again.conversations_mut()[0].entries.remove(1);
    assert_eq!(written(&again), text);
}

#[test]
fn a_result_that_a_repair_makes_is_written() {
    let text = r#"[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"f","input":{}}}]}]"#;
    let mut transcript = read(text, &ReadOptions::default().with_from(Format::BedrockConverse)).unwrap();
    let lost = Message::tool("c", "no \"result\"");
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(lost));
    let record = r#",{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"text":"no \"result\""}],"status":"success"}}]}]"#;
    let out = written(&transcript);
    assert_eq!(out.strip_suffix(record), text.strip_suffix(']'));
    let again = read(&*out, &ReadOptions::default().with_from(Format::BedrockConverse)).unwrap();
    assert_eq!(violations(&again), 0);
}

proptest! {
    /// The naive twin merges trees of values.
    #[test]
    fn neighbours_of_one_role_are_joined_as_trees_are(
        rows in vec((any::<bool>(), vec("[a-c\"日]{1,3}", 1..3), any::<bool>(), proptest::option::of(any::<bool>())), 1..12),
        lines in any::<bool>(),
    ) {
        let record = |user: bool, texts: &[String]| {
            let blocks: Vec<_> = texts.iter().map(|text| value!({"text": text})).collect();
            value!({"role": if user { "user" } else { "assistant" }, "content": blocks})
        };
        let source: Vec<_> = rows.iter().map(|(user, texts, ..)| record(*user, texts)).collect();
        let text = match lines {
            true => source.iter().map(|record| format!("{record}\n")).collect(),
            false => Value::Array(source.clone()).to_string(),
        };
        let from = ReadOptions::default().with_from(Format::BedrockConverse);
        let mut transcript = read(&*text, &from).unwrap();
        let entries = &mut transcript.conversations_mut()[0].entries;
        let was: Vec<_> = entries.iter().cloned().collect();
        entries.clear();
        let mut expected: Vec<(Option<usize>, Value)> = Vec::new();
        let mut expect = |at: Option<usize>, record: Value| {
            if let Some((last, before)) = expected.last_mut()
                && before["role"] == record["role"]
                && last.zip(at).is_none_or(|(last, at)| last + 1 != at)
            {
                before["content"].as_array_mut().unwrap().extend(record["content"].as_array().unwrap().clone());
                *last = at;
                return;
            }
            expected.push((at, record));
        };
        for (at, (entry, (_, _, stays, new))) in was.into_iter().zip(&rows).enumerate() {
            if *stays {
                entries.push(entry);
                expect(Some(at), source[at].clone());
            }
            if let Some(user) = new {
                let message = if *user { Message::user("new") } else { Message::assistant("new") };
                entries.push(TranscriptEntry::new(message));
                expect(None, record(*user, &["new".to_owned()]));
            }
        }
        let out = written(&transcript);
        let again: Vec<Value> = match lines {
            true => out.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            false => serde_json::from_str(&out).unwrap(),
        };
        prop_assert_eq!(again, expected.into_iter().map(|(_, record)| record).collect::<Vec<_>>(), "{}", out);
    }
}
