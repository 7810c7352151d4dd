//! Recognises, reads and writes session files.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part};

use super::message::{NAMES, block, message};
use super::outline::Lines;
use super::session::Session;
use crate::body::Body;
use crate::json::known::Members;
use crate::json::{self, ValueKind, patch, quote};
use crate::rewrite::{
    changes, form, loses_thoughts, only_text, text, with_arguments, with_nth_part, without_thoughts,
};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Chain, NewRecord, NewRecords, Transcript};
use crate::{Format, WireError};

/// The row of pi in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::Pi, &[], (sign, read), Writer::Own(write_record))
        .with_chain(Chain {
            keys: ["id", "parentId"],
            first_kept: Some("firstKeptEntryId"),
            by_last: true,
            aside: None,
            new: Some(NewRecords {
                name: |hash| format!("{:08x}", hash >> 96),
                write: new_entry,
                unnamed: true,
            }),
        })
        .with_outliner(|| Box::<Lines>::default());

fn sign(body: &Body<'_>) -> Fit {
    let first = match body.value() {
        Some(one) => Some(one),
        None => body.sample("").and_then(|sample| sample.first().copied()),
    };
    let Some(first) = first.filter(|line| ValueKind::of(line) == ValueKind::Object) else { return Fit::No };
    match json::fields(first, &["type", "id", "cwd", "timestamp"]) {
        Ok([Some("\"session\""), Some(_), Some(_), Some(_)]) => {
            Fit::Certain("its first line is a `session` with `cwd`")
        }
        _ => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let session = Session::read(transcript, body.text())?;
    let base = transcript.conversations.len();
    let found = session.conversations(body.leaf(), base)?;
    transcript.push_all(found);
    Ok(())
}

fn write_record(record: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(entry) = record else { return Err(form("a new message")) };
    let whole: Arc<str> = Arc::from(entry);
    let Some(said) = json::field(&whole, "message")? else {
        // The summary of a compaction.
        let [now] = messages else { return Err(form("several messages in one entry")) };
        let [part @ Part::Text(_)] = now.parts() else { return Err(form("a summary that is no text")) };
        let was = json::field(entry, "summary")?.map(json::decode);
        return match text(part)? {
            same if was.as_deref() == Some(same) => Ok(Some(entry.to_owned())),
            new => patch(entry, &[("summary", Some(quote(new)))]).map(Some),
        };
    };
    let was: Vec<Message> = message(&whole, said)?.into_iter().collect();
    let mut said = said.to_owned();
    if loses_thoughts(&was, messages) {
        let no_text: Arc<str> = Arc::from("");
        let is_thought =
            |raw: &str| Ok(matches!(block(&no_text, &Members::of(raw, &NAMES))?, Some(Part::Reasoning(_))));
        let others = without_thoughts(&said, "content", is_thought)?;
        return write_record(Some(&patch(entry, &[("message", Some(others))])?), messages);
    }
    // From last to first: a text that is empty now is no part.
    for change in changes(&was, messages)?.iter().rev() {
        let content = json::field(&said, "content")?.unwrap_or("\"\"");
        let content = match change.new {
            new @ Part::ToolResult(_) => format!(r#"[{{"type":"text","text":{}}}]"#, quote(text(new)?)),
            new if ValueKind::of(content) == ValueKind::Text => quote(text(new)?),
            new => with_part(content, change.part, new)?,
        };
        said = patch(&said, &[("content", Some(content))])?;
    }
    patch(entry, &[("message", Some(said))]).map(Some)
}

/// Writes the list of blocks with this part in the place of the part `wanted`.
fn with_part(list: &str, wanted: usize, new: &Part) -> Result<String, WireError> {
    let whole: Arc<str> = Arc::from("");
    let is_part = |raw: &str| Ok(block(&whole, &Members::of(raw, &NAMES))?.is_some());
    with_nth_part(list, wanted, is_part, |raw| match new {
        Part::ToolCall(call) => with_arguments(raw, "arguments", call),
        new if json::field(raw, "type")? == Some("\"text\"") => {
            patch(raw, &[("text", Some(quote(text(new)?)))])
        }
        new => Ok(format!(r#"{{"type":"text","text":{}}}"#, quote(text(new)?))),
    })
}

/// Writes the entry of a new message, which is a text. An entry of the model has no usage.
fn new_entry(new: &NewRecord<'_>) -> Result<String, WireError> {
    let (message, text) = only_text(&[new.message])?;
    let [time, beside] = json::fields(new.like, &["timestamp", "message"])?;
    let beside = beside.filter(|beside| ValueKind::of(beside) == ValueKind::Object).unwrap_or("{}");
    let [at, api, provider, model] = json::fields(beside, &["timestamp", "api", "provider", "model"])?;
    let content = format!(r#"[{{"type":"text","text":{}}}]"#, quote(text));
    let said = match message.role() {
        Role::User => format!(r#"{{"role":"user","content":{content}}}"#),
        Role::Assistant => {
            let none = r#""input":0,"output":0,"cacheRead":0,"cacheWrite":0"#;
            let [api, provider, model] = [api, provider, model].map(|name| name.unwrap_or("\"\""));
            format!(
                r#"{{"role":"assistant","content":{content},"api":{api},"provider":{provider},"model":{model},"usage":{{{none},"totalTokens":0,"cost":{{{none},"total":0}}}},"stopReason":"stop"}}"#
            )
        }
        _ => return Err(form("a new message of this role")),
    };
    let said = patch(&said, &[("timestamp", at.map(str::to_owned))])?;
    let names = new.name.map(|name| {
        let parent = new.parent.map_or_else(|| "null".to_owned(), quote);
        format!("\"id\":{},\"parentId\":{parent},", quote(name))
    });
    let time = time.map(|time| format!("\"timestamp\":{time},")).unwrap_or_default();
    Ok(format!("{{\"type\":\"message\",{}{time}\"message\":{said}}}", names.unwrap_or_default()))
}
