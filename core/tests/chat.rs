//! An ordinary JSON reader reads the JSON of a device as the same messages.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use core::fmt;

use epitome_core::attribution::AttributionView;
use epitome_core::message::{
    CallKind, MediaKind, MediaView, MessageView, PartView, Parts, ReasoningView, Role, SimpleMessage, Text,
    ToolCallView, ToolResultView, UnknownView,
};
use epitome_core::{BoundedHistory, ClassEstimator, write_openai_chat};
use proptest::prelude::*;
use serde_json::{Value, json};

fn written<M: MessageView>(messages: impl IntoIterator<Item = M>) -> Value {
    let mut body = String::new();
    write_openai_chat(messages, &mut body).unwrap();
    serde_json::from_str(&body).unwrap()
}

#[test]
fn calls_and_results_come_back() {
    let calls = [ToolCallView::new("c1", "read", r#"{"path":"a\\b"}"#), ToolCallView::new("c2", "list", "")];
    let mut history = BoundedHistory::<16, 1024>::new();
    for message in [
        SimpleMessage::system("Be brief."),
        SimpleMessage::user("Read \"a\\b\"\nplease.\u{1}\u{7f}\u{2028}"),
        SimpleMessage::calls(&calls),
        SimpleMessage::result("c2", ""),
        SimpleMessage::result("c1", "one\ttwo\r"),
        SimpleMessage::assistant("Done. 𝄞"),
    ] {
        history.push(&message, &ClassEstimator::new()).unwrap();
    }
    let expected = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Read \"a\\b\"\nplease.\u{1}\u{7f}\u{2028}" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "read", "arguments": r#"{"path":"a\\b"}"# } },
            { "id": "c2", "type": "function", "function": { "name": "list", "arguments": "" } },
        ] },
        { "role": "tool", "tool_call_id": "c2", "content": "" },
        { "role": "tool", "tool_call_id": "c1", "content": "one\ttwo\r" },
        { "role": "assistant", "content": "Done. 𝄞" },
    ]);
    assert_eq!(written(history.messages()), expected);
}

/// A message of several parts, some of which this wire format cannot hold.
struct Mixed(Role);

impl Parts for Mixed {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        visit(PartView::Reasoning(ReasoningView::new("hm")));
        visit(PartView::Text("one"));
        visit(PartView::Media(MediaView::new(MediaKind::Image, "image/png")));
        visit(PartView::ToolCall(ToolCallView::new("h", "search", "{}").with_kind(CallKind::Hosted)));
        visit(PartView::ToolResult(ToolResultView::new("h", &Text("found"))));
        visit(PartView::Unknown(UnknownView::new("", "x", "{}")));
    }
}

impl MessageView for Mixed {
    fn role(&self) -> Role {
        self.0
    }

    fn attribution(&self) -> AttributionView<'_> {
        AttributionView::caller(self.0.authority())
    }

    fn name(&self) -> Option<&str> {
        Some("Ann")
    }
}

#[test]
fn several_parts_are_an_array_and_what_has_no_place_is_left_out() {
    let content = json!([
        { "type": "text", "text": "one" },
        { "type": "text", "text": "[media left out: image/png]" },
    ]);
    let message = |role| json!({ "role": role, "name": "Ann", "content": content });
    assert_eq!(written([Mixed(Role::Assistant)]), json!([message("assistant")]));
    // Results in a user message become separate messages.
    let result = json!({ "role": "tool", "tool_call_id": "h", "content": "found" });
    assert_eq!(written([Mixed(Role::User)]), json!([result, message("user")]));
    assert_eq!(written::<Mixed>([]), json!([]));
}

#[test]
fn what_takes_no_more_text_ends_the_writing() {
    struct Short(usize);

    impl fmt::Write for Short {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
            Ok(())
        }
    }

    let whole = written([Mixed(Role::User), Mixed(Role::Assistant)]).to_string().len();
    for room in 0..whole {
        assert!(write_openai_chat([Mixed(Role::User), Mixed(Role::Assistant)], &mut Short(room)).is_err());
    }
    assert!(write_openai_chat([Mixed(Role::User), Mixed(Role::Assistant)], &mut Short(whole)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_comes_back(text in any::<String>(), id in any::<String>(), arguments in any::<String>()) {
        let calls = [ToolCallView::new(&id, &text, &arguments)];
        let read = written([
            SimpleMessage::user(&text),
            SimpleMessage::calls(&calls),
            SimpleMessage::result(&id, &text),
        ]);
        // A message without a text has an empty one.
        prop_assert_eq!(&read[0]["content"], &json!(text));
        prop_assert_eq!(&read[1]["tool_calls"][0]["id"], &json!(id));
        prop_assert_eq!(&read[1]["tool_calls"][0]["function"], &json!({ "name": text, "arguments": arguments }));
        prop_assert_eq!(&read[2], &json!({ "role": "tool", "tool_call_id": id, "content": text }));
    }
}
