//! Recognises and reads lists of messages and states.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::message::Role;
use epitome_message::Message;

use super::message::{Fields, message};
use super::write::write_record;
use crate::body::{self, Body, Content};
use crate::expect::number;
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of `LangChain` in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::LangChain, &["values", "messages"], (sign, read), Writer::Own(write_record));

/// The list of messages, and its place in the body.
fn list<'a>(body: &Body<'a>) -> Option<(&'a str, &'static str)> {
    let found = match (body.field("values"), body.field("messages")) {
        (Some(values), _) if ValueKind::of(values) == ValueKind::Object => {
            (json::field(values, "messages").ok()??, "/values/messages")
        }
        (_, Some(messages)) => (messages, "/messages"),
        _ => (body.value()?, ""),
    };
    Some(found).filter(|(list, _)| ValueKind::of(list) == ValueKind::Array)
}

fn sign(body: &Body<'_>) -> Fit {
    let sample = match body.content {
        Content::Lines(_) => body.sample("messages"),
        Content::Value(_) => list(body).and_then(|(list, _)| body::first_of(list)),
    };
    let each = sample.unwrap_or_default().into_iter().map(fit);
    // If one message is of another format, the list is too. A certain sign in one message is enough.
    let best = each.reduce(|one, next| match (one, next) {
        (Fit::No, _) | (_, Fit::No) => Fit::No,
        (_, Fit::Certain(_)) => next,
        _ => one,
    });
    best.unwrap_or(Fit::No)
}

/// The fit of one message.
fn fit(item: &str) -> Fit {
    if ValueKind::of(item) != ValueKind::Object || !matches!(json::field(item, "role"), Ok(None)) {
        return Fit::No;
    }
    let Ok(fields) = Fields::of(item) else { return Fit::No };
    if fields.content.is_none() || fields.role().is_err() {
        return Fit::No;
    }
    match (fields.key, fields.is_own_word()) {
        ("kwargs", _) => Fit::Certain("its messages have `lc` and `kwargs`"),
        ("data", true) => Fit::Certain("its messages are of type `human` or `ai`, with `data`"),
        (_, true) => Fit::Certain("its messages are of type `human` or `ai`"),
        // Other formats have messages with the types `user`, `system` and `tool` too.
        _ => Fit::Possible("its messages have `type` and `content`"),
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    if let Content::Lines(text) = &body.content {
        let list = transcript.lines(text);
        let mut conversation = Conversation::new(Format::LangChain, "");
        transcript.extend(&mut conversation, list, (text, ""), read_element)?;
        transcript.push(conversation);
        return Ok(());
    }
    let whole = body.value().unwrap_or_default();
    if let Some(values) = body.field("values").filter(|values| ValueKind::of(values) == ValueKind::Object) {
        json::nested(whole, values, "/values", |values| json::field(values, "messages"))?;
    }
    let Some((list, path)) = list(body) else {
        let found = json::describe(whole);
        return Err(WireError::shape(format!("expected an array of messages, found {found}")));
    };
    let mut conversation = Conversation::new(Format::LangChain, format!("{}{path}", body.path()));
    let list = json::nested(whole, list, path, |list| transcript.array(list))?;
    transcript.extend(&mut conversation, list, (whole, path), read_element)?;
    transcript.push(conversation);
    Ok(())
}

/// The message of an element, and its report of usage.
fn read_element(source: &Arc<str>, text: Value<'_>) -> Result<([Message; 1], Option<Usage>), WireError> {
    let fields = Fields::of(text)?;
    let message = message(source, text.text(), &fields)?;
    let usage = reported(&fields)?.filter(|_| message.role() == Role::Assistant);
    Ok(([message], usage))
}

/// Reads `usage_metadata`. Its input includes the tokens that were read from and written to a cache, its output the
/// reasoning.
fn reported(fields: &Fields<'_>) -> Result<Option<Usage>, WireError> {
    let Some(usage) = fields.usage.filter(|usage| ValueKind::of(usage) == ValueKind::Object) else {
        return Ok(None);
    };
    let names =
        &["input_tokens", "output_tokens", "total_tokens", "input_token_details", "output_token_details"];
    let [input, output, total, input_details, output_details] = json::fields(usage, names)?;
    let within = |details: Option<&str>, key: &'static str| match details
        .filter(|text| ValueKind::of(text) == ValueKind::Object)
    {
        Some(details) => Ok::<_, WireError>(number(json::field(details, key)?)),
        None => Ok(None),
    };
    let mut report = Usage::NONE;
    (report.input_total, report.output_total, report.total) = (number(input), number(output), number(total));
    report.cache_read = within(input_details, "cache_read")?;
    report.cache_creation = within(input_details, "cache_creation")?;
    report.reasoning = within(output_details, "reasoning")?;
    Ok(Some(report))
}
