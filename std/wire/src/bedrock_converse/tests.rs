//! Converse. The forms are those of its reference; the contents are made up.

use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part};

use crate::openai_chat::tests::shown;
use crate::{Format, ReadOptions, detect, read};

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
