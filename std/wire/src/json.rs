//! Reads JSON one level at a time: the members of an object, the elements of an array, as slices of the text.
//!
//! No function builds a tree or recurses with the depth of the text. The offset of an error is in the text that the
//! function received.

pub(crate) mod known;
mod patch;
mod scan;
mod text;

use core::cell::RefCell;
use core::fmt;
use core::ops::Range;
use std::borrow::Cow;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use scan::{Checked, Look};

use super::error::{WireError, WireErrorKind, quoted};

pub(crate) use patch::{ElementPlaces, map_items, patch, rebuild, retain_items};
pub(crate) use scan::Spans;
pub use text::{decode, push_quoted};
pub(crate) use text::{quote, quoted_bytes};

/// The kind of a JSON value, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON has no other")]
pub enum ValueKind {
    Object,
    Array,
    Text,
    Null,
    Bool,
    Number,
}

impl ValueKind {
    /// The kind of `text`. A text that cannot begin a value counts as a number.
    pub fn of(text: &str) -> Self {
        match text.as_bytes().iter().find(|byte| !is_blank(byte)) {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::Text,
            Some(b'n') => Self::Null,
            Some(b't' | b'f') => Self::Bool,
            _ => Self::Number,
        }
    }
}

/// Fails unless `text` is one JSON value.
pub fn check(text: &str) -> Result<(), WireError> {
    if scan::is_value(text) {
        return Ok(());
    }
    Err(broken(text, serde_json::from_str::<&RawValue>(text).err()))
}

/// Checks like [`check`], and adds the long values to `spans`.
pub(crate) fn noted_check(spans: &mut Spans, text: &str) -> Result<(), WireError> {
    match scan::is_value_by(Checked::noting(text, spans), text) {
        true => Ok(()),
        false => check(text),
    }
}

/// The text without leading and trailing white space of JSON.
pub fn trim(text: &str) -> &str {
    let bytes = text.as_bytes();
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last.saturating_add(1));
    text.get(start..end).unwrap_or_default()
}

const fn is_blank(byte: &u8) -> bool {
    matches!(*byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The offset of `part`, a slice of `whole`, in `whole`.
pub(crate) fn offset_of(whole: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// The range of `part`, a slice of `whole`, in `whole`.
pub(crate) fn range_of(whole: &str, part: &str) -> Range<usize> {
    let start = offset_of(whole, part);
    start..start.saturating_add(part.len())
}

/// Runs `read` on `inner`, a slice of `outer` at `path`. Errors have their place in `outer`.
pub(crate) fn nested<'a, T>(
    outer: &str,
    inner: &'a str,
    path: impl fmt::Display,
    read: impl FnOnce(&'a str) -> Result<T, WireError>,
) -> Result<T, WireError> {
    read(inner).map_err(|error| error.inside(path, offset_of(outer, inner)))
}

/// Calls `visit` with every key and value of the object `text`, in order. Keys are unchanged, quotes included.
pub fn raw_members<'a>(
    text: &'a str,
    visit: impl FnMut(&'a str, &'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    members_by(Checked::default(), text, visit)
}

fn members_by<'a, S: Look>(
    look: S,
    text: &'a str,
    visit: impl FnMut(&'a str, &'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    scan::members(look, text, visit).map_err(|failed| failed.unwrap_or_else(|| no_object(text)))
}

/// Works like [`raw_members`], calls `visit_item` with each element of an array before the array itself, and adds the
/// long values to `spans`. Use it for a large text.
pub(crate) fn members_and_items<'a>(
    spans: &mut Spans,
    text: &'a str,
    visit_item: impl FnMut(&'a str),
    visit: impl FnMut(&'a str, &'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    scan::members_and_items(Checked::noting(text, spans), text, visit_item, visit)
        .map_err(|failed| failed.unwrap_or_else(|| no_object(text)))
}

/// Calls `visit` with every decoded key and its value of the object `text`, in order.
pub(crate) fn members<'a>(
    text: &'a str,
    mut visit: impl FnMut(Cow<'a, str>, &'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    raw_members(text, |key, value| visit(decode(key), value))
}

/// Calls `visit` with every element of the array `text`, in order.
pub fn items<'a>(
    text: &'a str,
    visit: impl FnMut(&'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    items_by(Checked::default(), text, visit)
}

/// Works like [`items`], and adds the long values to `spans`.
pub(crate) fn noted_items<'a>(
    spans: &mut Spans,
    text: &'a str,
    visit: impl FnMut(&'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    items_by(Checked::noting(text, spans), text, visit)
}

fn items_by<'a, S: Look>(
    look: S,
    text: &'a str,
    visit: impl FnMut(&'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    scan::items(look, text, visit).map_err(|failed| failed.unwrap_or_else(|| no_array(text)))
}

fn no_array(text: &str) -> WireError {
    let mut reader = serde_json::Deserializer::from_str(text);
    broken(text, reader.deserialize_seq(Skim("an array")).and_then(|()| reader.end()).err())
}

/// Calls `visit` with every element of the array `text`, in order, and with the element's values as [`fields`] finds
/// them: none for an element that is no object. It scans a long list only once.
pub(crate) fn items_and_fields<'a, const N: usize>(
    text: &'a str,
    names: &[&'static str; N],
    visit: impl FnMut(&'a str, Result<[Option<&'a str>; N], WireError>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    items_and_fields_by(Checked::default(), text, names, visit)
}

fn items_and_fields_by<'a, S: Look, const N: usize>(
    look: S,
    text: &'a str,
    names: &[&'static str; N],
    mut visit: impl FnMut(&'a str, Result<[Option<&'a str>; N], WireError>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    // The values, and the first key that appears twice.
    let seen = RefCell::new(([None; N], None));
    let note = |key: &'a str, value: &'a str| {
        let (slots, twice) = &mut *seen.borrow_mut();
        let at = place_of(key, names);
        let Some((slot, name)) = at.and_then(|at| Some((slots.get_mut(at)?, names.get(at)?))) else { return };
        if slot.replace(value).is_some() {
            twice.get_or_insert((name, value));
        }
    };
    let visit = |item| match seen.replace(([None; N], None)) {
        (slots, None) => visit(item, Ok(slots)),
        (_, Some((name, value))) => visit(item, Err(duplicate(name).inside("", offset_of(item, value)))),
    };
    scan::items_and_members(look, text, note, visit)
        .map_err(|failed| failed.unwrap_or_else(|| no_array(text)))
}

fn no_object(text: &str) -> WireError {
    let mut reader = serde_json::Deserializer::from_str(text);
    broken(text, reader.deserialize_map(Skim("an object")).and_then(|()| reader.end()).err())
}

/// The values of these keys of the object `text`, unchanged. A key that appears twice is an error.
pub(crate) fn fields<'a, const N: usize>(
    text: &'a str,
    names: &[&'static str; N],
) -> Result<[Option<&'a str>; N], WireError> {
    fields_by(Checked::default(), text, names)
}

/// Works like [`fields`], and adds the long values to `spans`.
pub(crate) fn noted_fields<'a, const N: usize>(
    spans: &mut Spans,
    text: &'a str,
    names: &[&'static str; N],
) -> Result<[Option<&'a str>; N], WireError> {
    fields_by(Checked::noting(text, spans), text, names)
}

fn fields_by<'a, S: Look, const N: usize>(
    look: S,
    text: &'a str,
    names: &[&'static str; N],
) -> Result<[Option<&'a str>; N], WireError> {
    let mut slots = [None; N];
    members_by(look, text, |key, value| {
        let Some(at) = place_of(key, names) else { return Ok(()) };
        let (Some(slot), Some(name)) = (slots.get_mut(at), names.get(at)) else { return Ok(()) };
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => Err(duplicate(name).inside("", offset_of(text, value))),
        }
    })?;
    Ok(slots)
}

/// The index in `names` of the key `raw`, which includes its quotes. Hardly any key has an escape.
fn place_of(raw: &str, names: &[&str]) -> Option<usize> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    let found = names.iter().position(|name| *name == inner);
    match found.is_none() && inner.contains('\\') {
        true => names.iter().position(|name| *name == decode(raw)),
        false => found,
    }
}

/// The value of one key of the object `text`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Result<Option<&'a str>, WireError> {
    field_by(Checked::default(), text, name)
}

fn field_by<'a, S: Look>(look: S, text: &'a str, name: &str) -> Result<Option<&'a str>, WireError> {
    let mut found = None;
    members_by(look, text, |key, value| match place_of(key, &[name]) {
        Some(_) if found.is_some() => Err(duplicate(name).inside("", offset_of(text, value))),
        Some(_) => {
            found = Some(value);
            Ok(())
        }
        None => Ok(()),
    })?;
    Ok(found)
}

/// The member of the object `text` with this key, with its key and its value.
pub(crate) fn member<'a>(text: &'a str, name: &str) -> Result<Option<&'a str>, WireError> {
    let mut found = None;
    raw_members(text, |key, value| {
        if place_of(key, &[name]).is_some() {
            found = text.get(offset_of(text, key)..range_of(text, value).end);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Number of elements of the array `text`.
pub(crate) fn count(text: &str) -> usize {
    let mut count = 0_usize;
    // The count of a broken array ends at the error: the count appears only in an error about something else.
    let _ = items(text, |_| {
        count = count.saturating_add(1);
        Ok(())
    });
    count
}

/// A description of `text`, in words, for an error: "an object with keys `a`, `b`", "an array of 3".
pub(crate) fn describe(text: &str) -> String {
    match ValueKind::of(text) {
        ValueKind::Object => describe_object(text),
        ValueKind::Array => match count(text) {
            0 => "an empty array".to_owned(),
            count => format!("an array of {count}"),
        },
        ValueKind::Text => "a text".to_owned(),
        ValueKind::Null => "null".to_owned(),
        ValueKind::Bool => "true or false".to_owned(),
        ValueKind::Number => "a number".to_owned(),
    }
}

fn describe_object(text: &str) -> String {
    let mut keys = Vec::new();
    let mut more = 0_usize;
    let _ = members(text, |key, _| {
        match keys.len() < KEYS_MAX {
            true => keys.push(quoted(&key)),
            false => more = more.saturating_add(1),
        }
        Ok(())
    });
    match (keys.len(), more) {
        (0, _) => "an empty object".to_owned(),
        (1, _) => format!("an object with the key {}", keys.concat()),
        (_, 0) => format!("an object with keys {}", keys.join(", ")),
        (_, more) => format!("an object with keys {} and {more} more", keys.join(", ")),
    }
}

/// The number of keys that identify an object on one line.
const KEYS_MAX: usize = 8;

pub(crate) fn duplicate(name: &str) -> WireError {
    WireError::new(WireErrorKind::DuplicateKey, format!("the key {} appears twice", quoted(name)))
}

/// The error for a text that is not JSON. It takes from `serde_json` only words that never quote the text.
fn broken(text: &str, error: Option<serde_json::Error>) -> WireError {
    if trim(text).is_empty() {
        return WireError::new(WireErrorKind::Empty, "there is no JSON: the text is empty");
    }
    let Some(error) = error else { return WireError::new(WireErrorKind::NotJson, "not JSON") };
    let line_start = match error.line().checked_sub(2) {
        None => 0,
        Some(skip) => text.match_indices('\n').nth(skip).map_or(0, |(at, _)| at.saturating_add(1)),
    };
    let offset = line_start.saturating_add(error.column().saturating_sub(1)).min(text.len());
    let error = match (error.is_eof(), error.is_syntax()) {
        (true, _) => WireError::new(WireErrorKind::Truncated, "the JSON ends before it is complete"),
        (_, true) => {
            let words = error.to_string();
            let words = words.split(" at line ").next().unwrap_or_default().to_owned();
            WireError::new(WireErrorKind::NotJson, format!("not JSON: {words}"))
        }
        _ => WireError::shape(format!("unexpected: {}", describe(text))),
    };
    error.with_offset(offset)
}

/// Skips an object or an array. The text names the expected one of the two.
struct Skim(&'static str);

impl<'de> Visitor<'de> for Skim {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<&RawValue, &RawValue>()?.is_some() {}
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<&RawValue>()?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_text_is_told_apart() {
        let kind = |text| check(text).map_err(|error| (error.kind(), error.offset()));
        assert_eq!(kind("{\"a\": [1, 2]}\n"), Ok(()));
        assert_eq!(kind(" \n"), Err((WireErrorKind::Empty, None)));
        assert_eq!(kind("{\"a\": [1,"), Err((WireErrorKind::Truncated, Some(8))));
        assert_eq!(kind("{\"a\":\n\n 1 x}"), Err((WireErrorKind::NotJson, Some(10))));
        assert_eq!(kind("{} {}"), Err((WireErrorKind::NotJson, Some(3))));
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(check(&deep).is_ok());
        assert_eq!(describe(&deep), "an array of 1");
        assert_eq!(check(&deep[..150_000]).map_err(|error| error.kind()), Err(WireErrorKind::Truncated));
    }

    #[test]
    fn a_key_twice_is_an_error_that_names_it() {
        let error = fields(r#"{"role":"user", "x":1, "x":2, "role":"tool"}"#, &["role"]).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (WireErrorKind::DuplicateKey, Some(37)));
        assert_eq!(error.to_string(), "byte 37: the key `role` appears twice; remove one of the two");
    }

    #[test]
    fn values_are_described_without_their_text() {
        assert_eq!(describe(r#"{"b":1,"a":2}"#), "an object with keys `b`, `a`");
        assert_eq!(describe("[1,2,3]"), "an array of 3");
        assert_eq!(describe("\"secret\""), "a text");
        let many: Vec<String> = (0..20).map(|n| format!("\"k{n}\":0")).collect();
        assert!(describe(&format!("{{{}}}", many.join(","))).ends_with("`k7` and 12 more"));
    }
}
