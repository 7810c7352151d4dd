//! Records patched, or written anew.

use std::sync::Arc;

use epitome_core::message::Role;

use super::message::messages as read;
use crate::message::{Message, Part};
use crate::wire::WireError;
use crate::wire::json::{self, Kind, patch, quote};
use crate::wire::rewrite::{changes, form, only_text, text};

/// The record `source` as its messages are now, or a new one that is a text.
pub(super) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    let whole: Arc<str> = Arc::from(source);
    let was = read(&whole, &whole)?;
    let mut record = source.to_owned();
    for change in changes(&was, messages)? {
        let new = text(change.new)?;
        record = match change.new {
            Part::ToolResult(result) => with_result(&record, &result.call_id, new)?,
            _ => match json::field(&record, "content")? {
                Some(content) if Kind::of(content) == Kind::Text => {
                    patch(&record, &[("content", Some(quote(new)))])?
                }
                _ => return Err(form("a change to one of several parts")),
            },
        };
    }
    Ok(Some(record))
}

/// The record with another result of the call `id`.
fn with_result(record: &str, id: &str, new: &str) -> Result<String, WireError> {
    let calls = json::field(record, "toolCalls")?.unwrap_or("[]");
    let (mut ranges, mut pieces) = (Vec::new(), Vec::new());
    json::items(calls, |call| {
        let at = ranges.len();
        ranges.push(json::range_of(calls, call));
        let [own, name] = json::fields(call, &["id", "name"])?;
        let (own, name) = (own.unwrap_or("\"\""), name.unwrap_or("\"\""));
        let piece = if json::decode(own) == id {
            let output = quote(new);
            let result = format!(
                r#"[{{"functionResponse":{{"id":{own},"name":{name},"response":{{"output":{output}}}}}}}]"#
            );
            patch(call, &[("result", Some(result))])?
        } else {
            call.to_owned()
        };
        pieces.push((Some(at), piece));
        Ok(())
    })?;
    let calls = json::rebuild(calls, &ranges, pieces.iter().map(|(at, piece)| (*at, piece.as_str())));
    patch(record, &[("toolCalls", Some(calls))])
}

fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let (message, text) = only_text(messages)?;
    let kind = match message.role() {
        Role::User => "user",
        Role::Assistant => "gemini",
        _ => return Err(form("a new message of this role")),
    };
    Ok(format!(r#"{{"type":"{kind}","content":{}}}"#, quote(text)))
}
