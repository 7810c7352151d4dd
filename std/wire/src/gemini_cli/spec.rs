//! Recognises and reads session files.

use super::log::Log;
use super::message::record;
use super::write::{checkpoint, write_logged, write_record};
use crate::body::Body;
use crate::json::{self, ValueKind};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{self, Conversation, Transcript};
use crate::{Format, WireError};

/// The row of Gemini CLI in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::GeminiCli,
    &["messages", "sessionId", "summary"],
    (sign, read),
    Writer::Own(write_record),
)
.with_log(transcript::Log { record: write_logged, line: checkpoint });

fn sign(body: &Body<'_>) -> Fit {
    let has = |key, kind| body.field(key).is_some_and(|value| ValueKind::of(value) == kind);
    if has("sessionId", ValueKind::Text)
        && has("projectHash", ValueKind::Text)
        && has("messages", ValueKind::Array)
    {
        return Fit::Certain("it has `sessionId`, `projectHash` and `messages`");
    }
    let first = lines(body).and_then(|_| body.value().or_else(|| body.sample("")?.first().copied()));
    let Some(first) = first.filter(|first| ValueKind::of(first) == ValueKind::Object) else { return Fit::No };
    match json::fields(first, &["sessionId", "projectHash"]) {
        Ok([Some(session), Some(project)])
            if [session, project].map(ValueKind::of) == [ValueKind::Text; 2] =>
        {
            Fit::Certain("its first line has `sessionId` and `projectHash`")
        }
        _ => Fit::No,
    }
}

/// The log in a body: lines, or a single first line, which has no messages yet.
fn lines<'a>(body: &Body<'a>) -> Option<&'a str> {
    let is_first = |value: &str| body.field("messages").is_none() && !value.contains('\n');
    Some(body.text()).filter(|_| body.value().is_none_or(is_first))
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    if let Some(text) = lines(body) {
        return Log::read(transcript, text)?.conversations(transcript, body.leaf());
    }
    let whole = body.value().unwrap_or_default();
    let Some(list) = body.field("messages") else {
        return Err(WireError::shape(format!("expected `messages`, found {}", json::describe(whole))));
    };
    let mut conversation = Conversation::new(Format::GeminiCli, format!("{}/messages", body.path()));
    (conversation.id, conversation.label) = (body.text_of("sessionId")?, body.text_of("summary")?);
    let list = json::nested(whole, list, "/messages", |list| transcript.array(list))?;
    transcript.extend(&mut conversation, list, (whole, "/messages"), |source, text| {
        let found = record(source, text)?;
        Ok((found.messages, found.usage))
    })?;
    transcript.push(conversation);
    Ok(())
}
