//! Requests, responses and arrays of contents.

use epitome_message::Message;

use super::content::{Ids, instructions, messages};
use super::write::write_record;
use crate::body::Body;
use crate::document::Foreign;
use crate::expect::{optional_text, share};
use crate::json::{self, ValueKind};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Relation, Transcript};
use crate::{Format, WireError};

/// The row of Gemini in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::Gemini,
    &["contents", "candidates", "systemInstruction", "system_instruction", "responseId"],
    (sign, read),
    Writer::Own(write_record),
);

fn sign(body: &Body<'_>) -> Fit {
    let Some(value) = body.value() else { return Fit::No };
    if body.field("contents").is_some() {
        let known =
            body.sample("contents").is_some_and(|sample| sample.iter().all(|content| is_content(content)));
        return if known { Fit::Certain("it has `contents`") } else { Fit::No };
    }
    if body.field("candidates").is_some_and(|list| ValueKind::of(list) == ValueKind::Array) {
        return Fit::Certain("it has `candidates`");
    }
    let sample = body.sample("contents").unwrap_or_default();
    match ValueKind::of(value) == ValueKind::Array
        && !sample.is_empty()
        && sample.iter().all(|content| is_content(content))
    {
        true => Fit::Certain("its contents have `parts`"),
        false => Fit::No,
    }
}

fn is_content(content: &str) -> bool {
    ValueKind::of(content) == ValueKind::Object
        && json::fields(content, &["parts", "content", "info", "kind"])
            .is_ok_and(|[parts, others @ ..]: [Option<&str>; 4]| parts.is_some() && others == [None; 3])
        // Other formats have `parts` too, with a type in each.
        && matches!(Foreign::of(content), None | Some(Foreign::Parts))
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let Some(whole) = body.value() else {
        return Err(WireError::shape("lines; expected a request, a response or an array of contents"));
    };
    if let Some(candidates) = body.field("candidates").filter(|_| body.field("contents").is_none()) {
        return read_candidates(transcript, body, candidates);
    }
    let (list, key) = match body.field("contents") {
        Some(list) => (list, "/contents"),
        None => (whole, ""),
    };
    let mut conversation = Conversation::new(Format::Gemini, format!("{}{key}", body.path()));
    for name in ["systemInstruction", "system_instruction"] {
        if let Some(system) = body.field(name) {
            let path = format!("/{name}");
            let message = json::nested(whole, system, path, |system| instructions(body.source, system))?;
            let record = transcript.field(&body.members, name, 1);
            conversation.extend(record, [message]);
        }
    }
    if ValueKind::of(list) != ValueKind::Array {
        let found = json::describe(list);
        return Err(WireError::shape(format!("expected an array of contents, found {found}")));
    }
    let mut ids = Ids::default();
    let list = transcript.array(list)?;
    transcript.extend(&mut conversation, list, (whole, key), |source, text| {
        Ok((messages(source, text, &mut ids)?, None))
    })?;
    transcript.push(conversation);
    Ok(())
}

/// Reads a response: each candidate is a conversation of its own, and the first one is active.
fn read_candidates(transcript: &mut Transcript, body: &Body<'_>, list: &str) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let id = optional_text(whole, body.field("responseId"), "responseId")?.map(|id| share(body.source, &id));
    let list = transcript.array(list)?;
    let first = transcript.conversations.len();
    for at in 0..transcript.count(list) {
        let text = body.source.get(transcript.place(list, at)).unwrap_or_default();
        let path = format!("/candidates/{at}");
        // A candidate that was blocked has no content.
        let Some(content) = json::nested(whole, text, &path, |text| json::field(text, "content"))? else {
            continue;
        };
        let inside = format!("{path}/content");
        let said =
            json::nested(whole, content, inside, |text| messages(body.source, text, &mut Ids::default()))?;
        let said: Vec<Message> = said
            .into_iter()
            .map(|message| match &id {
                Some(id) => message.with_response_id(id.clone()),
                None => message,
            })
            .collect();
        let mut conversation = Conversation::new(Format::Gemini, format!("{}{path}", body.path()));
        conversation.id = id.clone().unwrap_or_default();
        if transcript.conversations.len() > first {
            conversation.active = false;
            conversation.relation = Relation::Branch(first);
        }
        let record = transcript.element(list, at, said.len());
        conversation.extend(record, said);
        transcript.push(conversation);
    }
    Ok(())
}
