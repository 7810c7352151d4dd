//! Recognises, reads and writes trajectories.

use epitome_message::Message;

use crate::body::Body;
use crate::json::{self, ValueKind};
use crate::openai_chat;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of SWE-agent in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::SweAgent, &["history"], (sign, read), Writer::Own(write_record));

fn sign(body: &Body<'_>) -> Fit {
    let is_list = |key| body.field(key).is_some_and(|list| ValueKind::of(list) == ValueKind::Array);
    match is_list("trajectory") && is_list("history") {
        true => Fit::Certain("it has `trajectory` beside `history`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let Some(history) = body.field("history") else {
        return Err(WireError::shape(format!("expected `history`, found {}", json::describe(whole))));
    };
    let mut conversation = Conversation::new(Format::SweAgent, format!("{}/history", body.path()));
    let list = json::nested(whole, history, "/history", |history| transcript.array(history))?;
    transcript.extend(&mut conversation, list, (whole, "/history"), openai_chat::read_element)?;
    transcript.push(conversation);
    Ok(())
}

fn write_record(record: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let [message] = messages else {
        return Err(WireError::unsupported("a trajectory has one message in each record"));
    };
    let new = || (*message).clone().without_wire();
    Ok(Some(match record {
        Some(_) => openai_chat::write(message)?.into_owned(),
        None => openai_chat::write(&new())?.into_owned(),
    }))
}
