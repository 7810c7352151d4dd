//! Random JSON and random messages.

use epitome_core::message::{MediaKind, Role};
use epitome_message::{Media, MediaSource, Message, Part, Reasoning, ToolCall, ToolResult, UnknownPart};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::json::quote;
use crate::openai_chat::FORMAT;

/// Text with escapes, characters of every length, and pieces that look like JSON.
pub(super) fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", "\\PC{0,8}", "[\"\\\\/\n\t\u{1}{}\\[\\],:\u{1f600}]{0,8}"]
}

pub(super) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An object with `role` and any other members.
pub(super) fn message_value() -> impl Strategy<Value = Value> {
    vec((text(), value()), 0..4).prop_map(|members| {
        let mut object: serde_json::Map<_, _> = members.into_iter().collect();
        object.insert("role".to_owned(), Value::from("user"));
        Value::Object(object)
    })
}

/// `value` as text, with this white space between its tokens, in turn.
pub(super) fn print(value: &Value, spaces: &[&str]) -> String {
    let mut out = String::new();
    let mut turn = spaces.iter().copied().cycle();
    print_into(value, &mut turn, &mut out);
    out
}

fn print_into<'s>(value: &Value, spaces: &mut impl Iterator<Item = &'s str>, out: &mut String) {
    let mut space = |out: &mut String| out.push_str(spaces.next().unwrap_or_default());
    match value {
        Value::Array(items) => {
            out.push('[');
            space(out);
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(spaces.next().unwrap_or_default());
                print_into(item, spaces, out);
                out.push_str(spaces.next().unwrap_or_default());
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            space(out);
            for (index, (key, item)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(spaces.next().unwrap_or_default());
                out.push_str(&quote(key));
                out.push(':');
                out.push_str(spaces.next().unwrap_or_default());
                print_into(item, spaces, out);
                out.push_str(spaces.next().unwrap_or_default());
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

pub(super) fn spaces() -> impl Strategy<Value = Vec<&'static str>> {
    vec(select(vec!["", " ", "\n  ", "\r\n\t"]), 1..7)
}

fn said() -> impl Strategy<Value = String> {
    text().prop_filter("an empty text is no part", |text| !text.is_empty())
}

fn media() -> impl Strategy<Value = Part> {
    let image = (select(vec!["image/png", "image/svg+xml"]), "[A-Za-z0-9+/]{0,8}", any::<bool>()).prop_map(
        |(mime, data, low)| {
            let mut media = Media::new(MediaKind::Image, mime, MediaSource::Base64(data.into()));
            media.extent.low_detail = low;
            media
        },
    );
    let linked =
        "https://[a-z]{1,9}".prop_map(|url| Media::new(MediaKind::Image, "", MediaSource::Uri(url.into())));
    let sound = (select(vec!["audio/wav", "audio/mpeg", "audio/flac"]), "[A-Z]{0,8}")
        .prop_map(|(mime, data)| Media::new(MediaKind::Audio, mime, MediaSource::Base64(data.into())));
    let file = (select(vec!["", "application/pdf"]), "[A-Z]{1,8}")
        .prop_map(|(mime, data)| Media::new(MediaKind::Document, mime, MediaSource::Base64(data.into())));
    prop_oneof![image, linked, sound, file].prop_map(Part::Media)
}

fn content() -> impl Strategy<Value = Vec<Part>> {
    let unknown = value().prop_map(|value| {
        let raw = format!("{{\"x\":{value}, \"type\": \"novel\"}}");
        Part::Unknown(UnknownPart::new(FORMAT, "novel", raw))
    });
    let part = prop_oneof![
        4 => said().prop_map(|text| Part::Text(text.into())),
        1 => media(),
        1 => unknown,
    ];
    vec(part, 0..4)
}

fn call() -> impl Strategy<Value = Part> {
    (select(vec!["", "c1", "c2", "c3"]), text(), text())
        .prop_map(|(id, name, arguments)| Part::ToolCall(ToolCall::new(id, name, arguments)))
}

fn assistant() -> impl Strategy<Value = Vec<Part>> {
    (option::of(said()), content(), vec(call(), 0..4)).prop_map(|(reasoning, content, calls)| {
        let reasoning = reasoning.map(|text| Part::Reasoning(Reasoning::new(text)));
        reasoning.into_iter().chain(content).chain(calls).collect()
    })
}

fn result() -> impl Strategy<Value = Vec<Part>> {
    (select(vec!["", "c1"]), content())
        .prop_map(|(id, content)| vec![Part::ToolResult(ToolResult::new(id, content))])
}

/// Parts that a message of this role can have.
pub(super) fn parts(role: Role) -> BoxedStrategy<Vec<Part>> {
    match role {
        Role::Assistant => assistant().boxed(),
        Role::Tool => result().boxed(),
        _ => content().boxed(),
    }
}

pub(super) fn role() -> impl Strategy<Value = Role> {
    let rest = select(vec![Role::System, Role::Developer, Role::User]);
    prop_oneof![rest, Just(Role::Assistant), Just(Role::Tool)]
}

/// A message of this role, with or without a name.
pub(super) fn message(role: Role) -> impl Strategy<Value = Message> {
    (parts(role), option::of(said())).prop_map(move |(parts, name)| {
        let message = Message::new(role, parts);
        match name {
            Some(name) => message.with_name(name),
            None => message,
        }
    })
}
