//! Session files, read and written.

use epitome_message::Message;

use super::outline::Lines;
use super::session::Session;
use crate::anthropic;
use crate::body::Body;
use crate::forest;
use crate::json::{self, Kind, patch};
use crate::spec::{Fit, FormatName, FormatSpec, Reader, Writer};
use crate::transcript::{Chain, Transcript};
use crate::{Format, WireError};

/// The row of Claude Code.
pub(crate) const SPEC: FormatSpec = FormatSpec {
    name: FormatName::BuiltIn(Format::ClaudeCode),
    keys: &[],
    reader: Reader::Own { sign, read },
    writer: Writer::Own(write_record),
    fresh: None,
    chain: Some(Chain {
        names: |raw| forest::names(raw, &["uuid", "parentUuid"]),
        linked: |raw, parent| forest::linked(raw, "parentUuid", parent),
    }),
    log: None,
    outliner: Some(|| Box::<Lines>::default()),
};

fn sign(body: &Body<'_>) -> Fit {
    let lines = match body.value() {
        Some(one) => vec![one],
        None => body.sample("").unwrap_or_default(),
    };
    let is_line = |line: &&str| {
        let names = &["type", "uuid", "parentUuid", "sessionId"];
        let found = if Kind::of(line) == Kind::Object { json::fields(line, names).ok() } else { None };
        matches!(found, Some([Some(_), Some(_), Some(_), Some(_)]))
    };
    match lines.iter().any(is_line) {
        true => Fit::Certain("its lines have `uuid`, `parentUuid` and `sessionId`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let (session, names) = Session::read(transcript, body.text())?;
    let base = transcript.conversations.len();
    let found = session.conversations(&names, body.leaf, base)?;
    transcript.push_all(found);
    Ok(())
}

fn write_record(record: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(line) = record else {
        return Err(WireError::unsupported("Claude Code's files have no form for a new message"));
    };
    let Some(message) = json::field(line, "message")? else { return Ok(Some(line.to_owned())) };
    match anthropic::write_record(Some(message), messages)? {
        Some(message) => patch(line, &[("message", Some(message))]).map(Some),
        None => Ok(None),
    }
}
