//! Recognises, reads and writes session files.

use epitome_core::message::Role;
use epitome_message::Message;

use super::outline::Lines;
use super::session::Session;
use crate::anthropic;
use crate::body::Body;
use crate::json::{self, ValueKind, patch, quote};
use crate::rewrite::{form, only_text};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Chain, NewRecord, NewRecords, Transcript, uuid};
use crate::{Format, WireError};

/// The row of Claude Code in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::ClaudeCode, &[], (sign, read), Writer::Own(write_record))
        .with_chain(Chain {
            keys: ["uuid", "parentUuid"],
            first_kept: None,
            by_last: true,
            aside: Some("isSidechain"),
            new: Some(NewRecords { name: uuid, write: new_line, unnamed: true }),
        })
        .with_outliner(|| Box::<Lines>::default());

fn sign(body: &Body<'_>) -> Fit {
    let lines = match body.value() {
        Some(one) => vec![one],
        None => body.sample("").unwrap_or_default(),
    };
    let is_line = |line: &&str| {
        let names = &["type", "uuid", "parentUuid", "sessionId"];
        let found =
            if ValueKind::of(line) == ValueKind::Object { json::fields(line, names).ok() } else { None };
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
    let found = session.conversations(&names, body.leaf(), base)?;
    transcript.push_all(found);
    Ok(())
}

fn write_record(record: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let line = record.ok_or_else(|| form("a new message"))?;
    let Some(message) = json::field(line, "message")? else { return Ok(Some(line.to_owned())) };
    match anthropic::write_record(Some(message), messages)? {
        Some(message) => patch(line, &[("message", Some(message))]).map(Some),
        None => Ok(None),
    }
}

/// Keys that every line of a file has.
const COMMON: [&str; 8] =
    ["isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "timestamp"];

/// Writes the line of a new message, which is a text. A message of the model has the form of the messages that Claude
/// Code writes in the model's place: with the model `<synthetic>` and without usage.
fn new_line(new: &NewRecord<'_>) -> Result<String, WireError> {
    let (message, text) = only_text(&[new.message])?;
    let name = quote(new.name.unwrap_or_default());
    let (kind, said) = match message.role() {
        Role::User => ("user", format!(r#"{{"role":"user","content":{}}}"#, quote(text))),
        Role::Assistant => (
            "assistant",
            format!(
                r#"{{"id":{name},"type":"message","role":"assistant","model":"<synthetic>","content":[{{"type":"text","text":{}}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}}"#,
                quote(text)
            ),
        ),
        _ => return Err(form("a new message of this role")),
    };
    let mut line = format!("{{\"parentUuid\":{}", new.parent.map_or_else(|| "null".to_owned(), quote));
    for (key, value) in COMMON.iter().zip(json::fields(new.like, &COMMON)?) {
        if let Some(value) = value {
            line.push_str(&format!(",\"{key}\":{value}"));
        }
    }
    Ok(format!("{line},\"type\":\"{kind}\",\"message\":{said},\"uuid\":{name}}}"))
}
