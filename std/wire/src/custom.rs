//! Formats that other crates define.
//!
//! A format is a [`FormatSpec`] in a `static`: its name, a function that recognises a text of the format, and one
//! that reads a record. A text is one conversation, a list of records: a JSON array, JSONL, or an array under a key
//! of an object. The reader names for each part the JSON value of the record that holds it. The crate uses these places
//! to write the text back: it replaces changed values, and all other text stays byte for byte. The object may have a
//! system prompt ([`FormatSpec::with_system`]), and a record may report usage ([`RecordMessage::with_usage`]).
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
//! The page `docs/adding-a-format.md` has a longer example, with tool calls. Other crates cannot define formats whose
//! files are forests or hold several conversations.

use serde::Deserialize;

pub use super::slots::{ReadRecord, RecordMessage, RecordPart, SlotForm};
pub use super::spec::{Fit, FormatSpec, FreshRecord, Sample};
use super::{WireError, WireErrorKind, json};

/// Reads the JSON text `record` as a `T`. Fields that become parts are `&RawValue`: slices of the record.
///
/// serde refuses half a surrogate pair in a field of type `str` or `String`. A `&RawValue` accepts it, and
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

/// Reads `value`, a JSON value in `record`, like [`parse`]. An error has its place in the record.
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

/// Removes the quoted values and the place from the message of a serde error.
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
