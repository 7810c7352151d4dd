//! Outputs of a shell that is no plain function: a list with the streams and the end of each command.

use std::sync::Arc;

use epitome_message::{Part, Str, ToolResult};

use super::WireError;
use super::expect::share;
use super::json::{self, ValueKind, patch, quote};

/// The streams of a command, in the order in which they are read.
const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// The result with the texts of all streams but the empty ones, and an error if a command of the list `raw` has failed.
/// `None` if an entry has no stream, or another value than a text in one.
pub(crate) fn read(whole: &Arc<str>, raw: &str, call_id: &Str) -> Result<Option<ToolResult>, WireError> {
    let Some(entries) = entries(raw)? else { return Ok(None) };
    let mut result = ToolResult::new(call_id.clone(), Vec::new());
    for entry in entries {
        let streams = json::fields(entry, &STREAMS)?;
        let are_texts = streams.iter().flatten().all(|text| ValueKind::of(text) == ValueKind::Text);
        if streams == [None, None] || !are_texts {
            return Ok(None);
        }
        let said = streams.into_iter().flatten().map(json::decode).filter(|text| !text.is_empty());
        result.parts.extend(said.map(|text| Part::Text(share(whole, &text))));
        result.is_error |= failed(entry)?;
    }
    Ok(Some(result))
}

/// The list `raw` with these texts in the places of its streams. If their number differs, each text is the standard
/// output of a copy of one entry: of the first one that has failed, if `is_error`. `fresh` is the entry of an empty list.
pub(crate) fn write(raw: &str, texts: &[&str], is_error: bool, fresh: &str) -> Result<String, WireError> {
    let entries = entries(raw)?.unwrap_or_default();
    let mut streams = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        let found = STREAMS.into_iter().zip(json::fields(entry, &STREAMS)?);
        streams.extend(
            found.filter(|(_, text)| text.is_some_and(|text| text != "\"\"")).map(|(key, _)| (place, key)),
        );
    }
    let mut written = Vec::new();
    if streams.len() == texts.len() && !texts.is_empty() {
        for (place, entry) in entries.iter().enumerate() {
            let own = streams.iter().zip(texts).filter(|((at, _), _)| *at == place);
            let changes: Vec<_> = own.map(|((_, key), text)| (*key, Some(quote(text)))).collect();
            written.push(patch(entry, &changes)?);
        }
    } else {
        let mut form = entries.first().copied().unwrap_or(fresh);
        for entry in entries {
            if is_error && !failed(form)? && failed(entry)? {
                form = entry;
            }
        }
        for text in if texts.is_empty() { &[""] } else { texts } {
            written.push(patch(form, &[("stdout", Some(quote(text))), ("stderr", Some(quote("")))])?);
        }
    }
    Ok(format!("[{}]", written.join(",")))
}

/// Whether the command ended with another code than 0, or not in its time.
fn failed(entry: &str) -> Result<bool, WireError> {
    let [outcome, code, is_late] = json::fields(entry, &["outcome", "exit_code", "timed_out"])?;
    let Some(outcome) = outcome.filter(|outcome| ValueKind::of(outcome) == ValueKind::Object) else {
        return Ok(is_late == Some("true") || code.is_some_and(|code| !matches!(code, "0" | "null")));
    };
    let [kind, code] = json::fields(outcome, &["type", "exit_code"])?;
    Ok(kind == Some("\"timeout\"") || code.is_some_and(|code| !matches!(code, "0" | "null")))
}

/// The entries of a list of objects; `None` for any other value.
fn entries(raw: &str) -> Result<Option<Vec<&str>>, WireError> {
    if ValueKind::of(raw) != ValueKind::Array {
        return Ok(None);
    }
    let mut entries = Vec::new();
    json::items(raw, |entry| {
        entries.push(entry);
        Ok(())
    })?;
    let are_objects = entries.iter().all(|entry| ValueKind::of(entry) == ValueKind::Object);
    Ok(Some(entries).filter(|_| are_objects))
}
