//! Recognises, reads and writes sessions.

use super::message::pieces;
use crate::body::Body;
use crate::json::{self, ValueKind};
use crate::slots;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of VS Code's chats in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::CopilotChat,
    &["requests", "sessionId", "customTitle"],
    (sign, read),
    Writer::Slots(pieces),
);

fn sign(body: &Body<'_>) -> Fit {
    if body.field("requests").is_none_or(|list| ValueKind::of(list) != ValueKind::Array) {
        return Fit::No;
    }
    let sample = body.sample("requests").unwrap_or_default();
    let mut answered = false;
    // The last request may have no answer yet.
    let mut is_request = |request: &&str| {
        let found = match ValueKind::of(request) {
            ValueKind::Object => json::fields(request, &["message", "response", "role"]).ok(),
            _ => None,
        };
        let Some([Some(message), response, None]) = found else { return false };
        answered |= response.is_some();
        matches!(ValueKind::of(message), ValueKind::Text | ValueKind::Object)
    };
    match !sample.is_empty() && sample.iter().all(&mut is_request) && answered {
        true => Fit::Certain("its `requests` have a `message` and a `response`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let Some(list) = body.field("requests") else {
        return Err(WireError::shape(format!("expected `requests`, found {}", json::describe(body.text()))));
    };
    let list = json::nested(whole, list, "/requests", |list| transcript.array(list))?;
    let mut conversation = Conversation::new(Format::CopilotChat, format!("{}/requests", body.path()));
    (conversation.id, conversation.label) = (body.text_of("sessionId")?, body.text_of("customTitle")?);
    transcript.extend(&mut conversation, list, (whole, "/requests"), |source, raw| {
        Ok((slots::messages(source, raw.text(), Format::CopilotChat, pieces)?, None))
    })?;
    transcript.push(conversation);
    Ok(())
}
