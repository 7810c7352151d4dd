//! Recognises and reads lists of messages and attributes.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::Message;

use super::part::part;
use crate::body::Body;
use crate::document::Foreign;
use crate::expect::expect_object;
use crate::json::known::{Members, Value};
use crate::json::{self, ValueKind};
use crate::slots::{self, RecordMessage, read_list};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of OpenTelemetry in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::OtelGenai,
    &["messages", INSTRUCTIONS, INPUT, OUTPUT],
    (sign, read),
    Writer::Slots(pieces),
)
.with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    if [INPUT, OUTPUT].iter().any(|key| body.field(key).is_some()) {
        return Fit::Certain("it has `gen_ai.input.messages` or `gen_ai.output.messages`");
    }
    match body.sample("messages").is_some_and(|sample| Foreign::OpenTelemetry.is_of(&sample)) {
        true => Fit::Certain("its messages have `parts` of a `type` with `content`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let attributes: Vec<_> = [INPUT, OUTPUT].into_iter().filter(|key| body.field(key).is_some()).collect();
    if attributes.is_empty() {
        let mut conversation = Conversation::new(Format::OtelGenai, "");
        read_list(transcript, body, &mut conversation, "messages", pieces)?;
        transcript.push(conversation);
        return Ok(());
    }
    let whole = body.value().unwrap_or_default();
    let mut conversation = Conversation::new(Format::OtelGenai, body.path());
    if let Some(list) = body.field(INSTRUCTIONS) {
        let said = json::nested(whole, list, format_args!("/{INSTRUCTIONS}"), |list| {
            expect_parsed(list)?;
            slots::messages(body.source, list, Format::OtelGenai, pieces)
        })?;
        let record = transcript.field(&body.members, INSTRUCTIONS, said.len());
        conversation.extend(record, said);
    }
    for key in attributes {
        let list = body.field(key).unwrap_or_default();
        json::nested(whole, list, format_args!("/{key}"), expect_parsed)?;
        let read = |source: &Arc<str>, text: Value<'_>| {
            Ok((slots::messages(source, text.text(), Format::OtelGenai, pieces)?, None))
        };
        let number = transcript.array(list)?;
        transcript.extend(&mut conversation, number, (whole, &format!("/{key}")), read)?;
    }
    transcript.push(conversation);
    Ok(())
}

/// Fails for an attribute that is JSON within a text, or any other value that is no list.
fn expect_parsed(list: &str) -> Result<(), WireError> {
    match ValueKind::of(list) {
        ValueKind::Array => Ok(()),
        ValueKind::Text => Err(WireError::unsupported(
            "the attribute is a text with JSON in it: put the list itself in the place of the text, then read it again",
        )),
        _ => Err(WireError::shape(format!("expected a list, found {}", json::describe(list)))),
    }
}

fn fresh(message: &Message, _like: Option<&str>) -> Result<String, WireError> {
    let (role, text) = slots::fresh_text(message, &[Role::User, Role::Assistant, Role::System])?;
    Ok(format!(r#"{{"role":{role},"parts":[{{"type":"text","content":{text}}}]}}"#))
}

/// The messages of a record: a message, or the list of instructions, an attribute next to the messages.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    if ValueKind::of(raw) == ValueKind::Array {
        return slots::list(whole, (raw, raw), ("", Role::System), part);
    }
    expect_object(raw, "a message")?;
    let found = Members::of(raw, &["role", "parts", "name"]);
    let role = match &*found.text(whole, "role")? {
        "user" => Role::User,
        "assistant" | "model" => Role::Assistant,
        "system" => Role::System,
        "developer" => Role::Developer,
        "tool" => Role::Tool,
        _ => {
            let what = "expected a `role` of `user`, `assistant`, `system`, `developer` or `tool`";
            return Err(WireError::shape(what));
        }
    };
    let Some(parts) = found.get("parts")?.filter(|parts| ValueKind::of(parts) == ValueKind::Array) else {
        let found = json::describe(raw);
        return Err(WireError::shape(format!("expected a message with `parts`, a list, found {found}")));
    };
    let mut pieces = slots::list(whole, (raw, parts), ("/parts", role), part)?;
    let name = found.text(whole, "name")?;
    pieces.iter_mut().for_each(|piece| piece.name = name.clone());
    Ok(pieces)
}

/// The names of the attributes.
const INSTRUCTIONS: &str = "gen_ai.system_instructions";
const INPUT: &str = "gen_ai.input.messages";
const OUTPUT: &str = "gen_ai.output.messages";
