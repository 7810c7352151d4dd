//! Messages as telemetry records them. The forms are those of the conventions; the contents are made up.

use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part};

use crate::openai_chat::tests::shown;
use crate::{Format, ReadOptions, WireErrorKind, detect, read};

const LIST: &str = include_str!("../../../../fuzz/seeds/wire_otel_genai/list.json");
const ATTRIBUTES: &str = include_str!("../../../../fuzz/seeds/wire_otel_genai/attributes.json");

#[test]
fn a_list_and_attributes_hold_the_same_messages() {
    let (user, model, tool) = (Role::User, Role::Assistant, Role::Tool);
    for (text, expected) in [
        (LIST, vec![user, model, tool, tool, model]),
        (ATTRIBUTES, vec![Role::System, user, model, tool, tool, model]),
    ] {
        assert_eq!(detect(text).unwrap().format, Format::OtelGenai);
        let transcript = read(text, &ReadOptions::default()).unwrap();
        let conversation = &transcript.conversations()[0];
        let said: Vec<_> = conversation.messages().map(|message| shown(message).join(" | ")).collect();
        assert_eq!(conversation.messages().map(Message::role).collect::<Vec<_>>(), expected, "{said:#?}");
        let calls = &said[expected.len() - 4];
        assert!(
            calls.contains("call c1 ls {")
                && calls.contains("1.50")
                && calls.contains("call c2 cat {\"p\":1}"),
            "{said:#?}"
        );
        let last = conversation.entries[expected.len() - 1].message().parts();
        assert!(matches!(&last[0], Part::ToolCall(call) if call.kind == CallKind::Hosted), "{said:#?}");
    }
}

#[test]
fn json_within_a_text_is_refused_with_a_remedy() {
    let text = r#"{"gen_ai.input.messages":"[{\"role\":\"user\",\"parts\":[]}]"}"#;
    let error = read(text, &ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Unsupported);
    assert!(error.to_string().contains("put the list itself"), "{error}");
}
