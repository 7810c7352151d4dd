//! A message that arrives in pieces equals the whole message, with any cuts.

use epitome_core::message::MediaKind;
use proptest::prelude::*;

use super::*;
use crate::message::{Media, MediaSource};
use crate::wire::convert;

/// A part: a text, reasoning, a call or an image.
fn part() -> impl Strategy<Value = Part> {
    let words = "[a-z \u{e9}\u{4e2d}\u{1f980}]{1,12}";
    let reasoning = (words, proptest::option::of("[a-z]{1,6}")).prop_map(|(text, opaque)| {
        let mut reasoning = Reasoning::new(text);
        reasoning.opaque = opaque.map(Into::into);
        Part::Reasoning(reasoning)
    });
    let call =
        "[a-z]{0,20}".prop_map(|text| Part::ToolCall(ToolCall::new("id", "read", format!("[{text:?}]"))));
    let image =
        Just(Part::Media(Media::new(MediaKind::Image, "image/png", MediaSource::Base64("aGk=".into()))));
    prop_oneof![3 => words.prop_map(|text| Part::Text(text.into())), 2 => reasoning, 2 => call, 1 => image]
}

/// The pieces of a text, cut after the characters that `cuts` marks.
fn pieces(text: &str, cuts: &[bool]) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for (at, character) in text.chars().enumerate() {
        if let Some(last) = pieces.last_mut() {
            last.push(character);
        }
        if cuts.get(at % cuts.len().max(1)).copied().unwrap_or_default() {
            pieces.push(String::new());
        }
    }
    pieces
}

/// Deltas that a service would send for a message.
fn deltas(parts: &[Part], cuts: &[bool]) -> Vec<Delta> {
    let (mut deltas, mut index) = (Vec::new(), 0);
    for part in parts {
        match part {
            Part::Text(text) => deltas.extend(pieces(text, cuts).into_iter().map(Delta::text)),
            Part::Reasoning(Reasoning { text, opaque, .. }) => {
                deltas.extend(pieces(text, cuts).into_iter().map(Delta::reasoning));
                deltas.extend(opaque.iter().map(|sign| Delta::default().with_signature(sign.clone())));
            }
            Part::ToolCall(ToolCall { id, name, arguments, .. }) => {
                deltas.push(Delta::call(CallDelta::new(index, "").of(id.clone(), name.clone())));
                let more = pieces(arguments, cuts).into_iter();
                deltas.extend(more.map(|more| Delta::call(CallDelta::new(index, more))));
                index += 1;
            }
            other => deltas.push(Delta::part(other.clone())),
        }
    }
    deltas
}

/// Adjacent texts become one text, and adjacent reasoning without a signature becomes one part.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match (all.last_mut(), &part) {
            (Some(Part::Text(known)), Part::Text(more)) => {
                *known = [known.as_str(), more.as_str()].concat().into()
            }
            (Some(Part::Reasoning(known)), Part::Reasoning(more)) if known.opaque.is_none() => {
                known.text = [known.text.as_str(), more.text.as_str()].concat().into();
                known.opaque.clone_from(&more.opaque);
            }
            _ => all.push(part),
        }
    }
    all
}

proptest! {
    #[test]
    fn what_arrives_in_pieces_is_what_was_sent(
        parts in proptest::collection::vec(part(), 1..8),
        cuts in proptest::collection::vec(any::<bool>(), 1..9),
    ) {
        let mut arrived = Arrived::default();
        for delta in deltas(&parts, &cuts) {
            arrived.extend(&delta);
        }
        let expected = joined(parts);
        let whole = arrived.clone().finish().messages;
        prop_assert_eq!(whole[0].parts(), expected.as_slice());
        // No part is cut in its middle, so an abandoned answer keeps all of them.
        let left = arrived.clone().abandon().messages;
        prop_assert_eq!(left[0].parts(), expected.as_slice());
        prop_assert!(left[0].is_incomplete());
        // With a format the result is the same, in one message or several.
        for format in [Format::Anthropic, Format::OpenaiResponses, Format::Gemini, Format::OpenaiChat] {
            let mut arrived = arrived.clone();
            arrived.extend(&Delta::default().with_format(format));
            let whole = arrived.clone().finish().messages;
            prop_assert!(whole.iter().flat_map(Message::parts).eq(&expected), "{}: {:?}", format, whole);
            prop_assert!(arrived.abandon().messages.iter().all(Message::is_incomplete));
        }
    }
}

#[test]
fn the_usage_of_a_stream_is_its_last_report_with_the_input_of_the_one_before() {
    let (mut arrived, mut output) = (Arrived::default(), Usage::NONE);
    output.output_total = Some(80);
    for usage in [Usage::new(1_200, 1), output] {
        arrived.extend(&Delta::text("a").with_usage(usage));
    }
    assert_eq!(arrived.clone().finish().usage, Some(Usage::new(1_200, 80)));
    arrived.extend(&Delta::default().with_usage(Usage::new(1_300, 90)));
    assert_eq!(arrived.finish().usage, Some(Usage::new(1_300, 90)));
    let mut alone = Arrived::default();
    alone.extend(&Delta::text("a").with_usage(output));
    assert_eq!(alone.finish().usage, Some(output));
}

#[test]
fn a_signature_of_gemini_belongs_to_the_call_behind_the_thought() {
    let call = || Delta::call(CallDelta::new(0, "{}").of("c", "read"));
    let of = |format: Format| {
        let mut arrived = Arrived::default();
        for mut delta in [Delta::reasoning("plan"), Delta { signature: Some("S".into()), ..call() }] {
            delta.format = Some(format);
            arrived.extend(&delta);
        }
        let messages = arrived.finish().messages;
        messages.iter().flat_map(Message::parts).filter(|part| matches!(part, Part::Reasoning(_))).count()
    };
    assert_eq!((of(Format::Gemini), of(Format::Anthropic)), (2, 1));
}

#[test]
fn a_signature_goes_back_to_the_format_of_its_pieces() {
    let of = |format: Option<Format>| {
        let mut arrived = Arrived::default();
        let call = Delta::call(CallDelta::new(0, "{}").of("c", "read"));
        // One piece gives the format for all of them.
        let first = Delta { format, ..Delta::reasoning("plan") };
        for delta in [first, Delta::default().with_signature("SEALED"), call] {
            arrived.extend(&delta);
        }
        let (asked, result) = (Message::user("Read it."), Message::tool("c", "text"));
        let said = arrived.finish().messages;
        let all = [&asked].into_iter().chain(&said).chain([&result]);
        convert(all, Format::Anthropic).unwrap().text.contains(r#""signature":"SEALED""#)
    };
    assert!(of(Some(Format::Anthropic)) && !of(Some(Format::Gemini)) && !of(None));
}
