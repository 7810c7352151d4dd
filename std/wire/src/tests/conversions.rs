//! Generated conversations in every format.

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolCall};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::generate;
use crate::convert::tests::TARGETS;
use crate::{
    ConversionLossKind, FieldValidator, FieldViolationKind, Format, ReadOptions, convert, read, write_back,
};

/// The next step of a conversation.
#[derive(Debug, Clone)]
enum Step {
    User(String),
    Assistant(String),
    /// Calls, each with its name, arguments and result.
    Tools(Vec<(String, Value, String)>),
}

fn said() -> impl Strategy<Value = String> + Clone {
    let text = generate::text().prop_filter("an empty text is no part", |text| !text.is_empty());
    prop_oneof![4 => text, 1 => select(JSON).prop_map(str::to_owned)]
}

/// A text that each provider accepts.
fn taken() -> impl Strategy<Value = String> + Clone {
    said().prop_map(|text| if text.trim().is_empty() { format!("{text}.") } else { text })
}

/// Outputs of tools that look like the text that a format adds to an output.
const JSON: &[&str] = &[
    "{}",
    "{}\n",
    " {\"a\":1}",
    "[]",
    "null",
    "\"a\"",
    "{\"output\":\"a\"}",
    "{\"result\": {}, \"error\":1}",
    "{\"error\":true}",
    "{\"error\":\"a\",\"error\":\"b\"}",
    "{\"role\":\"user\"}",
    "[{\"type\":\"text\",\"text\":\"a\"}]",
    "{\"a\"",
];

fn step(
    text: impl Strategy<Value = String> + Clone + 'static,
    name: impl Strategy<Value = String> + 'static,
) -> impl Strategy<Value = Step> {
    let arguments = vec((said(), generate::value()), 0..3)
        .prop_map(|members| Value::Object(members.into_iter().collect()));
    prop_oneof![
        text.clone().prop_map(Step::User),
        text.clone().prop_map(Step::Assistant),
        vec((name, arguments, text), 1..4).prop_map(Step::Tools),
    ]
}

/// A conversation that every format accepts: a user message first, and a result for each call.
fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let steps = vec(step(taken(), "[a-zA-Z0-9_-]{1,64}"), 0..8);
    (taken(), steps).prop_map(|(first, steps)| messages(first, steps, "c"))
}

/// A conversation with ids, names and texts that a provider may refuse.
fn odd_conversation() -> impl Strategy<Value = Vec<Message>> {
    (said(), vec(step(said(), said()), 0..8), said())
        .prop_map(|(first, steps, id)| messages(first, steps, &id))
}

/// The messages of these steps. The ids of calls begin with `id`.
fn messages(first: String, steps: Vec<Step>, id: &str) -> Vec<Message> {
    let mut messages = vec![Message::user(first)];
    for (at, step) in steps.into_iter().enumerate() {
        match step {
            Step::User(text) => messages.push(Message::user(text)),
            Step::Assistant(text) => messages.push(Message::assistant(text)),
            Step::Tools(tools) => {
                let id = |call: usize| format!("{id}{at}_{call}");
                let calls = tools.iter().enumerate().map(|(call, (name, arguments, _))| {
                    Part::ToolCall(ToolCall::new(id(call), name.as_str(), arguments.to_string()))
                });
                messages.push(Message::new(Role::Assistant, calls.collect()));
                let results = tools.iter().enumerate();
                messages.extend(results.map(|(call, (_, _, text))| Message::tool(id(call), text.as_str())));
            }
        }
    }
    messages
}

/// The fields that the service of a provider refuses.
fn refused<'m>(messages: impl Iterator<Item = &'m Message>, to: Format) -> Vec<FieldViolationKind> {
    let (mut validator, mut found) = (FieldValidator::new(to.profile()), Vec::new());
    messages.for_each(|message| validator.push(message, &mut |violation| found.push(violation.kind)));
    validator.finish(&mut |violation| found.push(violation.kind));
    found
}

/// Every part with the role of its message. The formats divide the parts differently into messages.
fn parts<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<(Role, Part)> {
    messages.flat_map(|message| message.parts().iter().map(|part| (message.role(), part.clone()))).collect()
}

proptest! {
    #[test]
    fn what_is_written_in_a_format_is_read_again(messages in conversation()) {
        for to in TARGETS {
            let converted = convert(&messages, to).unwrap();
            prop_assert!(converted.losses.is_empty(), "{}: {:?}", to, converted.losses);
            let again = read(converted.text.as_str(), &ReadOptions::default().with_from(to)).unwrap();
            let read = &again.conversations()[0];
            prop_assert_eq!(parts(read.messages()), parts(messages.iter()), "{}", to);
            // From this format to every other one.
            for next in TARGETS {
                let twice = convert(read.messages(), next).unwrap();
                prop_assert!(twice.losses.is_empty(), "{} to {}: {:?}", to, next, twice.losses);
                let twice = crate::read(twice.text, &ReadOptions::default().with_from(next)).unwrap();
                let again = parts(twice.conversations()[0].messages());
                prop_assert_eq!(again, parts(messages.iter()), "{} to {}", to, next);
            }
        }
    }

    #[test]
    fn what_is_written_for_a_provider_has_no_field_that_it_refuses(messages in odd_conversation()) {
        use ConversionLossKind::{BlankText, CallId, ToolName};
        for to in [Format::OpenaiChat, Format::OpenaiResponses, Format::Anthropic, Format::Gemini] {
            let converted = convert(&messages, to).unwrap();
            // A field is changed, and the change reported, only if the target refuses the field.
            let refused_here = refused(messages.iter(), to);
            let told = |kind| converted.losses.iter().any(|loss| loss.kind == kind);
            for (lost, kind) in [
                (CallId, FieldViolationKind::CallId),
                (ToolName, FieldViolationKind::ToolName),
                (BlankText, FieldViolationKind::BlankText),
            ] {
                prop_assert_eq!(told(lost), refused_here.contains(&kind), "{} {:?}", to, lost);
            }
            let again = read(converted.text, &ReadOptions::default().with_from(to)).unwrap();
            let said = again.conversations().iter().flat_map(|conversation| conversation.messages());
            prop_assert_eq!(refused(said, to), [], "{}", to);
        }
    }

    #[test]
    fn dropping_messages_leaves_the_others(messages in conversation(), keep in vec(any::<bool>(), 40)) {
        for to in TARGETS {
            let text = convert(&messages, to).unwrap().text;
            let mut transcript = read(text, &ReadOptions::default().with_from(to)).unwrap();
            let mut keep = keep.iter().copied().cycle();
            let conversation = &mut transcript.conversations_mut()[0];
            conversation.entries.retain(|_| keep.next().unwrap_or(true));
            let expected = parts(conversation.messages());
            let mut out = Vec::new();
            write_back(&transcript, &mut out).unwrap();
            let again = read(String::from_utf8(out).unwrap(), &ReadOptions::default().with_from(to)).unwrap();
            prop_assert_eq!(parts(again.conversations()[0].messages()), expected, "{}", to);
        }
    }
}
