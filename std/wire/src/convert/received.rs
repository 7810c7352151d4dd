//! Adds the form of a service's answer to messages that a client assembled.

use std::rc::Rc;

use epitome_core::message::CallKind;
use epitome_message::{Message, Part};

use super::parts::Told;
use super::target::Target;
use crate::{Format, ReadOptions, read};

/// Converts a message that a client assembled from pieces of a streamed answer to the messages that [`read`] makes of a
/// whole answer: with their text in the format.
///
/// Sealed reasoning (a signature, encrypted content) goes back only to the format that it came from. An assembled
/// message does not name its format: without the text, its sealed reasoning is left out of later requests. A call
/// without an id gets one, and empty arguments become `{}`. Responses makes several messages of one, because an item is
/// a message.
///
/// The message stays unchanged, without a text, in three cases: the format has no form for one of its parts, the format
/// is not one of the [`CONVERSION_TARGETS`](super::CONVERSION_TARGETS), or the service would refuse the message.
/// Anthropic and Responses refuse reasoning that is not sealed or that is the last part, and calls of a provider's own
/// tools have fields that the message does not represent.
///
/// ```
/// use epitome_core::message::Role;
/// use epitome_message::{Message, Part, Reasoning};
/// use epitome_wire::{Format, convert, received};
///
/// let mut thought = Reasoning::new("The tide table says so.");
/// thought.opaque = Some("c2lnbmVk".into());
/// let answer = Message::new(Role::Assistant, vec![Part::Reasoning(thought), Part::Text("At nine.".into())]);
///
/// let mut messages = vec![Message::user("When does the ferry leave?"), answer.clone()];
/// assert!(!convert(&messages, Format::Anthropic)?.text.contains("c2lnbmVk"));
/// messages.truncate(1);
/// messages.extend(received(answer, Format::Anthropic));
/// assert!(convert(&messages, Format::Anthropic)?.text.contains(r#""signature":"c2lnbmVk""#));
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
#[must_use]
pub fn received(message: Message, format: Format) -> Vec<Message> {
    let again = if goes_back(&message, format) { read_again(&message, format) } else { None };
    again.unwrap_or_else(|| vec![message])
}

/// Whether the service accepts the message in a request. An answer that was cut may end in reasoning.
fn goes_back(message: &Message, format: Format) -> bool {
    if !matches!(format, Format::Anthropic | Format::OpenaiResponses) {
        return true;
    }
    let is_whole = |part: &Part| match part {
        Part::Reasoning(reasoning) => reasoning.opaque.is_some(),
        Part::ToolCall(call) => call.kind == CallKind::Function,
        Part::ToolResult(_) => false,
        _ => true,
    };
    let ends_in_reasoning = matches!(message.parts().last(), Some(Part::Reasoning(_)));
    message.parts().iter().all(is_whole) && !ends_in_reasoning
}

/// Writes `message` in the format and reads the text again. `None` if the content differs.
fn read_again(message: &Message, format: Format) -> Option<Vec<Message>> {
    let written = Target::of(format).ok()?.write(&[Told::Made(Rc::new(message.clone()))]).ok()?;
    let transcript = read(written, &ReadOptions::default().with_from(format)).ok()?;
    let again = transcript.conversations().iter().flat_map(|conversation| conversation.messages());
    let again: Vec<Message> = again
        .map(|read| {
            let mut same = message.clone().with_parts(read.parts().to_vec());
            if let Some(wire) = read.wire() {
                same = same.with_wire(wire.clone());
            }
            same
        })
        .collect();
    let (mut parts, mut own) = (again.iter().flat_map(Message::parts), message.parts().iter());
    let is_same =
        own.all(|own| parts.next().is_some_and(|read| is_same(own, read))) && parts.next().is_none();
    (is_same && again.iter().all(|one| one.wire().is_some())).then_some(again)
}

/// Whether a part has the same content after it was read. A call without an id gets one, and empty arguments become an
/// empty object.
fn is_same(own: &Part, read: &Part) -> bool {
    match (own, read) {
        (Part::ToolCall(own), Part::ToolCall(read)) => {
            let mut same = own.clone();
            if own.id.is_empty() {
                same.id = read.id.clone();
            }
            if own.arguments.trim().is_empty() || own.arguments.trim() == read.arguments.trim() {
                same.arguments = read.arguments.clone();
            }
            same == *read
        }
        _ => own == read,
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::message::Role;
    use epitome_message::{Reasoning, ToolCall};

    use super::*;
    use crate::convert;

    fn answer(parts: Vec<Part>) -> Message {
        Message::new(Role::Assistant, parts)
    }

    fn sealed(text: &str, id: Option<&str>) -> Part {
        let mut reasoning = Reasoning::new(text);
        (reasoning.opaque, reasoning.id) = (Some("SEALED".into()), id.map(Into::into));
        Part::Reasoning(reasoning)
    }

    #[test]
    fn sealed_reasoning_of_pieces_goes_back_to_its_format_and_to_no_other() {
        let call = || Part::ToolCall(ToolCall::new("c1", "tide", r#"{"at":"Oslo"}"#));
        for (format, parts) in [
            (Format::Anthropic, vec![sealed("I think", None), Part::Text("So.".into()), call()]),
            (Format::Anthropic, vec![sealed("", None), call()]),
            (Format::OpenaiResponses, vec![sealed("", Some("rs_1")), Part::Text("So.".into()), call()]),
            (Format::Gemini, vec![sealed("", None), call()]),
        ] {
            let message = answer(parts).with_response_id("r").with_incomplete(false);
            let again = received(message.clone(), format);
            assert!(again.iter().all(|one| one.response_id() == Some("r") && one.role() == Role::Assistant));
            let parts: Vec<&Part> = again.iter().flat_map(|message| message.parts()).collect();
            assert_eq!(parts, message.parts().iter().collect::<Vec<_>>(), "{format}");
            let asked = [Message::user("When?")];
            let result = [Message::tool("c1", "Nine.")];
            let all = || asked.iter().chain(&again).chain(&result);
            for to in super::super::CONVERSION_TARGETS {
                let converted = convert(all(), to).unwrap();
                assert_eq!(
                    converted.text.contains("SEALED"),
                    to == format,
                    "{format} to {to}: {}",
                    converted.text
                );
            }
            let alone = convert(asked.iter().chain([&message]).chain(&result), format).unwrap();
            assert!(!alone.text.contains("SEALED"), "{format}: {}", alone.text);
        }
    }

    #[test]
    fn a_call_without_id_and_arguments_is_read_as_one_of_a_whole_answer() {
        let call = |id: &str, arguments: &str| Part::ToolCall(ToolCall::new(id, "tide", arguments));
        let again = received(
            answer(vec![sealed("", None), call("", " "), call("", "{ \"a\": 1.50 }")]),
            Format::Gemini,
        );
        let calls = [call("gemini:1:0", "{}"), call("gemini:1:1", "{ \"a\": 1.50 }")];
        assert_eq!(again[0].parts()[1..], calls);
        assert!(again[0].wire().is_some());
        let again = received(answer(vec![sealed("hm", None), call("c", "")]), Format::Anthropic);
        assert_eq!(again[0].parts()[1..], [call("c", "{}")]);
    }

    #[test]
    fn a_message_that_the_service_would_refuse_stays_without_a_text() {
        let unsigned = Part::Reasoning(Reasoning::new("hm"));
        let said = || Part::Text("So.".into());
        let mut search = ToolCall::new("srv_1", "web_search", "{}");
        search.kind = CallKind::Hosted;
        for (format, parts) in [
            (Format::Aider, vec![said()]),
            (Format::Anthropic, vec![unsigned.clone()]),
            (Format::Anthropic, vec![unsigned, said()]),
            (Format::Anthropic, vec![said(), sealed("hm", None)]),
            (Format::Anthropic, vec![Part::ToolCall(search), said()]),
            (Format::OpenaiResponses, vec![sealed("", Some("rs_1"))]),
        ] {
            let message = answer(parts).with_incomplete(true);
            assert_eq!(received(message.clone(), format), [message], "{format}");
        }
    }

    #[test]
    fn a_signature_of_no_text_is_no_redacted_reasoning() {
        let call = || Part::ToolCall(ToolCall::new("c1", "tide", "{}"));
        let redacted = r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"SEALED"},
            {"type":"tool_use","id":"c1","name":"tide","input":{}}]}]"#;
        let options = ReadOptions::default().with_from(Format::Anthropic);
        let transcript = read(redacted, &options).unwrap();
        let read: Vec<Message> = transcript.conversations()[0].messages().cloned().collect();
        for (messages, block) in [
            (
                received(answer(vec![sealed("", None), call()]), Format::Anthropic),
                r#""thinking":"","signature":"SEALED""#,
            ),
            (read[1..].to_vec(), r#"{"type":"redacted_thinking","data":"SEALED"}"#),
            (
                received(answer(read[1].parts().to_vec()), Format::Anthropic),
                r#"{"type":"redacted_thinking","data":"SEALED"}"#,
            ),
        ] {
            let (asked, result) = ([Message::user("When?")], [Message::tool("c1", "Nine.")]);
            let converted = convert(asked.iter().chain(&messages).chain(&result), Format::Anthropic).unwrap();
            assert!(converted.text.contains(block), "{}", converted.text);
        }
    }
}
