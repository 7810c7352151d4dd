//! Writes new lines, and patches old ones.

use std::sync::Arc;

use epitome_message::{Message, Part};

use super::session::{history, instructions, replacement};
use super::spec::item_of;
use crate::WireError;
use crate::json::{self, Spans, patch, quote, rebuild};
use crate::openai_responses;
use crate::places::Places;

/// Writes the line `source` with these messages, or new lines.
pub(super) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    if let Some(item) = item_of(&mut Spans::default(), source)? {
        let item = item.object();
        let items = openai_responses::write_items(Some(item), messages)?;
        let is_bare = core::ptr::eq(item, source);
        let line = |new| if is_bare { Ok(new) } else { patch(source, &[("payload", Some(new))]) };
        let lines = items.into_iter().map(line).collect::<Result<Vec<_>, _>>()?;
        return Ok(Some(lines.join("\n")).filter(|lines| !lines.is_empty()));
    }
    let [kind, payload] = json::fields(source, &["type", "payload"])?;
    let payload = payload.unwrap_or("{}");
    if kind == Some("\"session_meta\"") {
        let payload = begun(payload, messages)?;
        return patch(source, &[("payload", Some(payload))]).map(Some);
    }
    let payload = compacted(payload, messages)?;
    patch(source, &[("payload", Some(payload))]).map(Some)
}

/// Writes the first line of a session with other instructions.
fn begun(payload: &str, messages: &[&Message]) -> Result<String, WireError> {
    let [message] = messages else {
        return Err(WireError::unsupported("the instructions of a session are one text"));
    };
    let whole: Arc<str> = Arc::from(payload);
    if instructions(&whole, payload)?.is_some_and(|was| was.parts() == message.parts()) {
        return Ok(payload.to_owned());
    }
    let [Part::Text(text)] = message.parts() else {
        return Err(WireError::unsupported("the instructions of a session are one text"));
    };
    let base = json::field(payload, "base_instructions")?.unwrap_or("{}");
    let base = patch(base, &[("text", Some(quote(text)))])?;
    patch(payload, &[("base_instructions", Some(base))])
}

fn compacted(payload: &str, messages: &[&Message]) -> Result<String, WireError> {
    let Some(history) = history(payload)? else {
        let [message] = messages else {
            return Err(WireError::unsupported("this compaction is one summary"));
        };
        let whole: Arc<str> = Arc::from(payload);
        if replacement(&whole, payload)?.first().is_some_and(|was| was.parts() == message.parts()) {
            return Ok(payload.to_owned());
        }
        return match message.parts() {
            [Part::Text(text)] => patch(payload, &[("message", Some(quote(text)))]),
            _ => Err(WireError::unsupported("this compaction is one text")),
        };
    };
    let (mut ranges, mut texts) = (Vec::new(), Vec::new());
    json::items(history, |item| {
        ranges.push(json::range_of(history, item));
        texts.push(item);
        Ok(())
    })?;
    let (mut places, mut next, mut pieces) = (Places::new(&texts), 0, Vec::new());
    for message in messages {
        let wire = message.wire().map(|wire| wire.text.as_str());
        let place = wire.and_then(|text| places.find(&text, next));
        let item = place.and_then(|at| texts.get(at).copied());
        if let Some(text) = openai_responses::write_record(item, &[message])? {
            pieces.push((place, text));
        }
        next = place.map_or(next, |at| at.saturating_add(1));
    }
    let history = rebuild(history, &ranges, pieces.iter().map(|(at, text)| (*at, text.as_str())));
    patch(payload, &[("replacement_history", Some(history))])
}

/// Writes items as lines. Their time is unknown, because this crate does not read the clock.
fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let mut lines = Vec::new();
    for message in messages {
        let items = openai_responses::write_items(None, &[message])?;
        let line = |item| format!(r#"{{"timestamp":"{NEVER}","type":"response_item","payload":{item}}}"#);
        lines.extend(items.into_iter().map(line));
    }
    Ok(lines.join("\n"))
}

const NEVER: &str = "1970-01-01T00:00:00.000Z";
