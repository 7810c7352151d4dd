//! Recognises and reads lists of events.

use epitome_message::Str;

use super::session;
use super::v1;
use super::write::write_record;
use crate::body::{Body, Content};
use crate::document;
use crate::expect::{optional_text, share};
use crate::json::{self, ValueKind};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::Transcript;
use crate::{Format, WireError};

/// The row of OpenHands in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::OpenHands,
    &["history", "events", "items"],
    (sign, read),
    Writer::Own(write_record),
)
.with_chain(v1::CHAIN);

fn sign(body: &Body<'_>) -> Fit {
    let sample = match &body.content {
        Content::Value(_) => {
            let key = LISTS.iter().find(|key| body.field(key).is_some()).unwrap_or(&"history");
            body.sample(key).unwrap_or_default()
        }
        Content::Lines(_)
            if body.sample("").is_some_and(|lines| lines.iter().all(|line| v1::is_event(line))) =>
        {
            body.sample("").unwrap_or_default()
        }
        Content::Lines(text) => {
            let lines: Vec<_> = document::lines(text).map(|line| line.text()).collect();
            if lines.iter().any(|line| history(line).is_none()) {
                return Fit::No;
            }
            lines.first().and_then(|line| history(line)).map(events).unwrap_or_default()
        }
    };
    let all = |is_event: fn(&str) -> bool| !sample.is_empty() && sample.iter().all(|event| is_event(event));
    match () {
        () if all(v1::is_event) && sample.iter().any(|event| v1::is_known(event)) => {
            Fit::Certain("its events have `kind`, `id` and `source`")
        }
        () if all(is_event) => Fit::Certain("its events have `source`, and `action` or `observation`"),
        () => Fit::No,
    }
}

/// The events of a run, if `line` is a run.
fn history(line: &str) -> Option<&str> {
    let object = Some(line).filter(|line| ValueKind::of(line) == ValueKind::Object)?;
    json::field(object, "history").ok()?.filter(|history| ValueKind::of(history) == ValueKind::Array)
}

fn events(list: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let _ = json::items(list, |event| {
        found.push(event);
        Ok(())
    });
    found
}

fn is_event(event: &str) -> bool {
    let found = if ValueKind::of(event) == ValueKind::Object {
        json::fields(event, &["source", "action", "observation", "id", "args", "role"]).ok()
    } else {
        None
    };
    match found {
        Some([Some(_), action, observation, Some(_), _, None]) => action.is_some() != observation.is_some(),
        // A message that this crate added to the file has no number: only OpenHands assigns numbers.
        Some([Some(_), Some("\"message\""), None, None, Some(_), None]) => true,
        _ => false,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    match &body.content {
        Content::Lines(text)
            if document::lines(text).next().is_some_and(|line| v1::is_event(line.text())) =>
        {
            let list = transcript.forest(text);
            session::read(transcript, (text, list, None), String::new(), Str::default())
        }
        Content::Lines(text) => {
            for line in document::lines(text) {
                let line = line.text();
                json::nested(text, line, "", |line| read_run(transcript, line, ""))?;
            }
            Ok(())
        }
        Content::Value(document) => read_run(transcript, document.text(), body.path()),
    }
}

/// Reads a run: a list of events, or an object with one.
fn read_run(transcript: &mut Transcript, whole: &str, place: &str) -> Result<(), WireError> {
    if ValueKind::of(whole) == ValueKind::Array {
        let list = transcript.free_array(whole)?;
        return session::read(transcript, (whole, list, Some("")), place.to_owned(), Str::default());
    }
    let [history, events, items, name] = match ValueKind::of(whole) {
        ValueKind::Object => json::fields(whole, &["history", "events", "items", "instance_id"])?,
        _ => [None; 4],
    };
    let lists = LISTS.iter().zip([history, events, items]);
    let mut lists = lists.filter_map(|(key, list)| Some((key, list?)));
    let Some((key, list)) = lists.find(|(_, list)| ValueKind::of(list) == ValueKind::Array) else {
        let found = json::describe(whole);
        return Err(WireError::shape(format!("expected a list of events or `history`, found {found}")));
    };
    let path = format!("/{key}");
    let name = optional_text(whole, name, "instance_id")?;
    let label = name.map(|name| share(&transcript.source, &name)).unwrap_or_default();
    let number = json::nested(whole, list, &path, |list| transcript.free_array(list))?;
    session::read(transcript, (whole, number, Some(&path)), format!("{place}{path}"), label)
}

/// Keys of an object that may hold its events.
const LISTS: &[&str] = &["history", "events", "items"];
