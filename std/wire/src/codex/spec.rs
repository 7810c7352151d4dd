//! Recognises and reads rollout files.

use super::outline::Lines;
use super::session;
use super::write::write_record;
use crate::body::Body;
use crate::json::known::{Members, Value};
use crate::json::{self, Spans, ValueKind};
use crate::openai_responses;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::Transcript;
use crate::{Format, WireError};

/// The row of Codex in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::Codex, &[], (sign, read), Writer::Own(write_record))
        .with_outliner(|| Box::<Lines>::default());

fn sign(body: &Body<'_>) -> Fit {
    let lines = match body.value() {
        Some(one) => vec![one],
        None => body.sample("").unwrap_or_default(),
    };
    let mut fit = Fit::No;
    for line in lines.iter().filter(|line| ValueKind::of(line) == ValueKind::Object) {
        let Ok([kind, payload, state]) = json::fields(line, &["type", "payload", "record_type"]) else {
            continue;
        };
        match (kind, payload.map(ValueKind::of), state) {
            (
                Some("\"session_meta\"" | "\"response_item\"" | "\"turn_context\""),
                Some(ValueKind::Object),
                _,
            ) => {
                return Fit::Certain(
                    "its lines are a `session_meta`, `response_item` or `turn_context` with a `payload`",
                );
            }
            (_, _, Some("\"state\"")) => fit = Fit::Certain("it has lines of the `record_type` `state`"),
            _ => {}
        }
    }
    fit
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    session::read(transcript, body.text())
}

/// The item in a line of either layout; `None` for a line without one.
pub(super) fn item_of<'a>(spans: &'a mut Spans, line: &'a str) -> Result<Option<Item<'a>>, WireError> {
    let [kind, payload, state, role] =
        json::noted_fields(spans, line, &["type", "payload", "record_type", "role"])?;
    let item = match (kind, payload) {
        (Some("\"response_item\""), Some(payload)) => Some(payload),
        (_, Some(_)) => None,
        (Some(_), None) => Some(line),
        (None, None) => Some(line).filter(|_| role.is_some()),
    };
    let line = Value::noted(line, spans, 0);
    let item = item.filter(|item| state.is_none() && ValueKind::of(item) == ValueKind::Object);
    let is_note = |item: &Item<'_>| item.get("type").is_ok_and(|kind| kind == Some("\"ghost_snapshot\""));
    Ok(item.map(|item| Item::of(line.within(item), &openai_responses::FIELDS)).filter(|item| !is_note(item)))
}

/// An item, and its values under the keys that the reader uses.
pub(super) type Item<'a> = Members<'a, { openai_responses::FIELDS.len() }>;
