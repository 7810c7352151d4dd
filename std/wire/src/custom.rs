//! Formats that other crates define.
//!
//! A format is a [`FormatSpec`] in a `static`: its name, a function that recognises a text of the format, and a function that reads one
//! record. A text is one conversation, a list of records: a JSON array, JSONL, or an array under a key of an object. The reader says for
//! each part which JSON value of the record it comes from. From these places the crate writes the text back: changed values stand in
//! their places, everything else stays byte for byte. The object may have a system prompt ([`FormatSpec::with_system`]), and a record may
//! report usage ([`RecordMessage::with_usage`]).
//!
//! ```
//! use std::borrow::Cow;
//! use std::sync::Arc;
//!
//! use epitome_core::message::Role;
//! use epitome_message::Part;
//! use epitome_wire::custom::{Fit, FormatSpec, RecordMessage, RecordPart, Sample, parse};
//! use epitome_wire::{ReadOptions, WireError, read, write_back};
//! use serde::Deserialize;
//! use serde_json::value::RawValue;
//!
//! /// Logs of a support desk: `{"from":"customer","said":"..."}`, one record in a line.
//! static DESK: FormatSpec = FormatSpec::new("desk", "", sign, read_record);
//!
//! #[derive(Deserialize)]
//! struct Record<'a> {
//!     #[serde(borrow)]
//!     from: Cow<'a, str>,
//!     #[serde(borrow)]
//!     said: &'a RawValue,
//! }
//!
//! fn sign(sample: &Sample<'_>) -> Fit {
//!     match sample.all_are::<Record<'_>>() {
//!         true => Fit::Certain("its records have `from` and `said`"),
//!         false => Fit::No,
//!     }
//! }
//!
//! fn read_record<'a>(source: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
//!     let found: Record<'a> = parse(record)?;
//!     let role = if found.from == "desk" { Role::Assistant } else { Role::User };
//!     let text = RecordPart::text(source, Some(found.said.get()));
//!     Ok(vec![RecordMessage::new(role, record).with_parts(text)])
//! }
//!
//! let log = "{\"from\":\"customer\", \"said\":\"My order is late.\", \"at\":7}\n{\"from\":\"desk\", \"said\":\"Which one?\"}\n";
//! let mut transcript = read(log, &ReadOptions::default().with_format(&DESK))?;
//! let entry = &mut transcript.conversations_mut()[0].entries[0];
//! *entry = entry.clone().with_message(entry.message().clone().with_parts(vec![Part::Text("late".into())]));
//! let mut written = Vec::new();
//! write_back(&transcript, &mut written)?;
//! assert!(written.starts_with(b"{\"from\":\"customer\", \"said\":\"late\", \"at\":7}\n{"));
//! # Ok::<(), WireError>(())
//! ```
//!
//! The page `docs/adding-a-format.md` has a longer example, with tool calls. Formats whose files are forests or hold several
//! conversations are not open to other crates.

use serde::Deserialize;

pub use super::slots::{ReadRecord, RecordMessage, RecordPart, SlotForm};
pub use super::spec::{Fit, FormatSpec, FreshRecord, Sample};
use super::{WireError, WireErrorKind, json};

/// Reads the JSON text `record` as a `T`. Fields that become parts are `&RawValue`: slices of the record.
///
/// serde refuses a text with half a surrogate pair for a field that is a `str` or a `String`. In a `&RawValue` it is let through, and
/// [`RecordPart::text`] reads the half as U+FFFD.
///
/// ```
/// use epitome_wire::custom::parse;
///
/// #[derive(serde::Deserialize)]
/// struct Said<'a> {
///     by: &'a str,
///     #[serde(borrow)]
///     text: &'a serde_json::value::RawValue,
/// }
///
/// let said: Said = parse(r#"{"by": "user", "text": "Hi"}"#)?;
/// assert_eq!((said.by, said.text.get()), ("user", r#""Hi""#));
/// assert!(parse::<Said>(r#"{"by": 7}"#).is_err());
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// `Shape` for a record that is not a `T`, with the place in the record. The error does not quote the record.
pub fn parse<'a, T: Deserialize<'a>>(record: &'a str) -> Result<T, WireError> {
    parse_in(record, record)
}

/// Reads `value`, a JSON value in `record`, as [`parse`] does. Errors have their place in the record.
///
/// # Errors
/// As [`parse`].
pub fn parse_in<'a, T: Deserialize<'a>>(record: &str, value: &'a str) -> Result<T, WireError> {
    serde_json::from_str(value).map_err(|error| {
        let lines = value.split_inclusive('\n').take(error.line().saturating_sub(1));
        let before = lines.map(str::len).fold(json::offset_of(record, value), usize::saturating_add);
        let offset = before.saturating_add(error.column().saturating_sub(1)).min(record.len());
        WireError::new(WireErrorKind::Shape, without_values(&error.to_string())).with_offset(offset)
    })
}

/// The message of a serde error, without the values that it quotes and without its own place.
fn without_values(what: &str) -> String {
    let what = what.rsplit_once(" at line ").map_or(what, |(what, _)| what);
    let quotes = ["unknown variant", "unknown field", "invalid type", "invalid value"];
    let begin = quotes.into_iter().find(|begin| what.starts_with(begin));
    match (begin, what.rfind(", expected ").and_then(|at| what.get(at..))) {
        (Some(begin), Some(expected)) => format!("{begin}{expected}"),
        (Some(begin), None) => begin.to_owned(),
        (None, _) => what.to_owned(),
    }
}

#[cfg(test)]
mod tests;
