//! Requests, responses, arrays and JSONL of Chat Completions.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_message::{Message, Str};

use super::owned::read_in;
use super::{FORMAT, write};
use crate::body::{Body, Content};
use crate::document::{self, Foreign};
use crate::expect::{optional_text, share};
use crate::json::known::Value;
use crate::json::{self, ValueKind, patch};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Relation, Transcript};
use crate::{Format, WireError, cline};

/// The row of Chat Completions in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::OpenaiChat,
    &["messages", "choices", "id"],
    (sign, read),
    Writer::Own(write_record),
);

fn sign(body: &Body<'_>) -> Fit {
    if let Some(choices) = body.field("choices").filter(|choices| ValueKind::of(choices) == ValueKind::Array)
    {
        let mut answers = false;
        let _ = json::items(choices, |choice| {
            answers |=
                ValueKind::of(choice) == ValueKind::Object && json::field(choice, "message")?.is_some();
            Ok(())
        });
        if answers {
            return Fit::Certain("it has `choices` with a `message`");
        }
    }
    let Some(sample) = body.sample("messages").filter(|_| cline::sign_of(body).is_none()) else {
        return Fit::No;
    };
    let mut fit = Fit::Possible("its messages have `role` and `content`");
    let mut says_something = sample.is_empty();
    for message in sample {
        let found = sign_of(message);
        says_something |= found.is_some();
        fit = match (found, fit) {
            (Some(Fit::No), _) => return Fit::No,
            (Some(Fit::Certain(why)), _) => Fit::Certain(why),
            (Some(Fit::Likely(why)), Fit::Possible(_)) => Fit::Likely(why),
            _ => fit,
        };
    }
    if says_something { fit } else { Fit::No }
}

/// The fit of one message. `None` if it has no sign at all, as some messages among others.
fn sign_of(message: &str) -> Option<Fit> {
    if Foreign::of(message).is_some() {
        return Some(Fit::No);
    }
    let names = &[
        "role",
        "contents",
        "tool_calls",
        "function_call",
        "tool_call_id",
        "content",
        "refusal",
        "audio",
        "reasoning_content",
        "reasoning",
        "name",
    ];
    let Some(Ok([Some(role), contents, calls, call, call_id, content, own @ ..])) =
        (ValueKind::of(message) == ValueKind::Object).then(|| json::fields(message, names))
    else {
        // An unreadable message is still a message: its reader reports the error.
        return Some(if document::is_message(message) { Fit::Possible("") } else { Fit::No });
    };
    let [refusal, audio, ..] = own;
    let said = match () {
        () if contents.is_some() && content.is_none() => Fit::No,
        () if calls.is_some() || call.is_some() => Fit::Certain("its messages have `tool_calls`"),
        () if call_id.is_some() => Fit::Certain("its messages have `tool_call_id`"),
        () if matches!(role, "\"tool\"" | "\"function\"") => Fit::Certain("it has messages of role `tool`"),
        () => match content.map_or(Fit::Possible(""), sign_of_content) {
            Fit::Possible(_) if own.iter().any(Option::is_some) => {
                Fit::Likely("its messages have `reasoning_content`, `refusal`, `audio` or `name`")
            }
            fit => fit,
        },
    };
    let is_silent = content.is_none() && refusal.is_none() && audio.is_none();
    Some(said).filter(|said| !is_silent || matches!(said, Fit::Certain(_) | Fit::No))
}

fn sign_of_content(content: &str) -> Fit {
    let mut fit = Fit::Possible("");
    if ValueKind::of(content) == ValueKind::Array {
        let done = json::items(content, |part| {
            let kind =
                if ValueKind::of(part) == ValueKind::Object { json::field(part, "type")? } else { None };
            match kind {
                Some("\"image_url\"" | "\"input_audio\"" | "\"file\"") => {
                    fit = Fit::Certain("its parts are of type `image_url`, `input_audio` or `file`");
                }
                // Blocks of another format: Anthropic's, or Bedrock's, which have no type.
                Some("\"tool_use\"" | "\"tool_result\"") => return Err(WireError::shape("another format")),
                None if ValueKind::of(part) == ValueKind::Object => {
                    return Err(WireError::shape("another format"));
                }
                _ => {}
            }
            Ok(())
        });
        if done.is_err() {
            return Fit::No;
        }
    }
    fit
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    match &body.content {
        Content::Lines(text) => read_lines(transcript, text),
        Content::Value(_) => match body.field("choices") {
            Some(choices) if body.field("messages").is_none() => read_choices(transcript, body, choices),
            _ => read_messages(transcript, body),
        },
    }
}

fn read_lines(transcript: &mut Transcript, text: &str) -> Result<(), WireError> {
    let list = transcript.lines(text);
    let mut conversation = Conversation::new(Format::OpenaiChat, "");
    transcript.extend(&mut conversation, list, (text, ""), read_element)?;
    transcript.push(conversation);
    Ok(())
}

fn read_messages(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let (array, key) = match body.field("messages") {
        Some(array) => (array, "/messages"),
        None => (whole, ""),
    };
    if ValueKind::of(array) != ValueKind::Array {
        let found = json::describe(array);
        return Err(WireError::shape(format!("expected an array of messages, found {found}")).inside(key, 0));
    }
    let mut conversation = Conversation::new(Format::OpenaiChat, format!("{}{key}", body.path()));
    let list = transcript.array(array)?;
    transcript.extend(&mut conversation, list, (whole, key), read_element)?;
    transcript.push(conversation);
    Ok(())
}

/// The message of an element. Chat Completions reports no usage in it.
pub(crate) fn read_element(
    source: &Arc<str>,
    text: Value<'_>,
) -> Result<([Message; 1], Option<Usage>), WireError> {
    Ok(([read_in(source, text)?], None))
}

/// Reads a response: each choice is a conversation of its own, and the first one is active.
fn read_choices(transcript: &mut Transcript, body: &Body<'_>, choices: &str) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let id = optional_text(whole, body.field("id"), "id")?.map(|id| share(body.source, &id));
    let list = transcript.array(choices)?;
    let first = transcript.conversations.len();
    for at in 0..transcript.count(list) {
        let choice = body.source.get(transcript.place(list, at)).unwrap_or_default();
        let path = format!("/choices/{at}");
        let message =
            json::nested(whole, choice, &path, |choice| read_choice(body.source, choice, id.as_ref()))?;
        let mut conversation = Conversation::new(Format::OpenaiChat, format!("{}{path}", body.path()));
        conversation.id = id.clone().unwrap_or_default();
        if at > 0 {
            conversation.active = false;
            conversation.relation = Relation::Branch(first);
        }
        let record = transcript.element(list, at, 1);
        conversation.extend(record, [message]);
        transcript.push(conversation);
    }
    Ok(())
}

fn read_choice(source: &Arc<str>, choice: &str, id: Option<&Str>) -> Result<Message, WireError> {
    let Some(message) = json::field(choice, "message")? else {
        let found = json::describe(choice);
        return Err(WireError::shape(format!("expected a choice with `message`, found {found}")));
    };
    let message = json::nested(choice, message, "/message", |text| read_in(source, text))?;
    Ok(match id {
        Some(id) => message.with_response_id(id.clone()),
        None => message,
    })
}

fn write_record(record: Option<&str>, pieces: &[&Message]) -> Result<Option<String>, WireError> {
    let [message] = pieces else {
        return Err(WireError::unsupported("Chat Completions has one message in each record"));
    };
    let own = message.wire().is_some_and(|wire| wire.format == FORMAT);
    let text = match own {
        true => write(message)?.into_owned(),
        false => write(&(*message).clone().without_wire())?.into_owned(),
    };
    let is_choice = |record: &&str| json::field(record, "role").is_ok_and(|role| role.is_none());
    match record.filter(is_choice) {
        Some(choice) => patch(choice, &[("message", Some(text))]).map(Some),
        None => Ok(Some(text)),
    }
}
