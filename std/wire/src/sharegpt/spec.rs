//! Dialogues, told, read and written.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, Str, ToolCall};

use crate::expect::{expect_object, member_text};
use crate::exports;
use crate::json::known::Members;
use crate::json::{self, Kind};
use crate::slots::{self, RecordMessage, RecordPart};
use crate::spec::{Body, Fit, FormatName, FormatSpec, Reader, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of ShareGPT.
pub(crate) const SPEC: FormatSpec = FormatSpec {
    name: FormatName::BuiltIn(Format::ShareGpt),
    keys: &["conversations", "system"],
    reader: Reader::Own { sign, read },
    writer: Writer::Slots(pieces),
    fresh: Some(fresh),
    chain: None,
    log: None,
    outliner: None,
};

fn sign(body: &Body<'_>) -> Fit {
    exports::fit(body, "its `conversations` have messages with `from` and `value`", |raw| {
        let list = exports::value_of(raw, "conversations", Kind::Array).ok().flatten();
        let sample = list.and_then(crate::spec::first_of).unwrap_or_default();
        !sample.is_empty() && sample.iter().all(|message| is_message(message))
    })
}

fn is_message(raw: &str) -> bool {
    let found = match Kind::of(raw) {
        Kind::Object => json::fields(raw, &["from", "value", "role"]).ok(),
        _ => None,
    };
    matches!(found, Some([Some(_), Some(_), None]))
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    exports::for_each(transcript, body, |transcript, path, raw| {
        expect_object(raw, "a dialogue")?;
        let Some(list) = exports::value_of(raw, "conversations", Kind::Array)? else {
            let found = json::describe(raw);
            return Err(WireError::shape(format!(
                "expected a dialogue with `conversations`, a list, found {found}"
            )));
        };
        let mut conversation = Conversation::new(Format::ShareGpt, format!("{path}/conversations"));
        conversation.id = member_text(&transcript.source, raw, "id")?.unwrap_or_default();
        if let Some(system) = exports::value_of(raw, "system", Kind::Text)? {
            let source = Arc::clone(&transcript.source);
            let said = json::nested(raw, system, "/system", |system| {
                slots::messages(&source, system, Format::ShareGpt, pieces)
            })?;
            let record = transcript.value(system, said.len());
            conversation.extend(record, said);
        }
        let number = json::nested(raw, list, "/conversations", |list| transcript.array(list))?;
        transcript.extend(&mut conversation, number, (raw, "/conversations"), |source, text| {
            Ok((slots::messages(source, text, Format::ShareGpt, pieces)?, None))
        })?;
        let is_leaf = body.leaf.is_some_and(|leaf| *conversation.id == *leaf);
        transcript.push(conversation);
        Ok(is_leaf)
    })
}

fn fresh(message: &Message, _like: Option<&str>) -> Result<String, WireError> {
    let (_, text) = slots::fresh_text(message, &[Role::User, Role::Assistant, Role::System])?;
    let from = match message.role() {
        Role::Assistant => "gpt",
        Role::System => "system",
        _ => "human",
    };
    Ok(format!(r#"{{"from":"{from}","value":{text}}}"#))
}

/// The message that a record is: an element of the list, or the text of `system` beside it.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    if Kind::of(raw) == Kind::Text {
        return Ok(vec![
            RecordMessage::new(Role::System, raw).with_parts(RecordPart::text(whole, Some(raw))),
        ]);
    }
    expect_object(raw, "a message")?;
    let found = Members::of(raw, &["from", "value"]);
    let value = found.get("value")?;
    let from = found.text(whole, "from")?;
    let role = match &*from {
        "human" | "user" => Role::User,
        "system" => Role::System,
        "observation" | "tool" | "function_response" => {
            let result = RecordPart::tool_result(whole, CALL, value);
            return Ok(vec![RecordMessage::new(Role::Tool, raw).with_parts([result])]);
        }
        "gpt" | "assistant" | "function_call" | "chatgpt" | "bing" | "bard" | "model" => Role::Assistant,
        _ => {
            return Err(WireError::shape(
                "expected a `from` of `human`, `gpt`, `system`, `function_call` or `observation`",
            ));
        }
    };
    let call = match (&*from, value.map(Kind::of)) {
        ("function_call", Some(Kind::Text)) => call(value.unwrap_or_default()),
        _ => None,
    };
    let part = match call {
        Some((name, arguments)) => {
            Some(RecordPart::new(Part::ToolCall(ToolCall::new(CALL, name, arguments))))
        }
        None => RecordPart::text(whole, value),
    };
    Ok(vec![RecordMessage::new(role, raw).with_parts(part)])
}

/// The name and the arguments of the call that the JSON string `value` holds as JSON.
fn call(value: &str) -> Option<(Str, Str)> {
    let said = json::decode(value);
    let object = Some(&*said).filter(|said| Kind::of(said) == Kind::Object)?;
    json::check(object).ok()?;
    let [name, arguments] = json::fields(object, &["name", "arguments"]).ok()?;
    let name = name.filter(|name| Kind::of(name) == Kind::Text)?;
    let arguments = arguments.filter(|arguments| Kind::of(arguments) == Kind::Object).unwrap_or("{}");
    Some((Str::from(&*json::decode(name)), Str::from(arguments)))
}

/// The id of every call: a dataset has none.
const CALL: &str = "call";
