//! Reads JSON of a known shape, with errors that name the place and no text of a message.

use core::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};

use super::shape::Shape;
use crate::failure::{Failure, Result};

/// One value, or all of an array.
pub(super) fn one_or_many<T: DeserializeOwned>(path: &Path, text: &str, shape: &Shape) -> Result<Vec<T>> {
    match text.trim_start().starts_with('[') {
        true => read(path, text, shape),
        false => read(path, text, shape).map(|one| vec![one]),
    }
}

/// A value of this shape.
pub(super) fn read<T: DeserializeOwned>(path: &Path, text: &str, shape: &Shape) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        Failure::input(format!(
            "{}: read as {}: {} at line {} column {}; mend it there, docs/program.md describes the form",
            path.display(),
            shape.name(),
            without_value(&error),
            error.line(),
            error.column()
        ))
    })
}

/// The error without the wrong value, which may be the text of a message.
fn without_value(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
    text.rsplit_once(", expected ")
        .map_or_else(|| text.to_owned(), |(_, expected)| format!("expected {expected}"))
}

/// A short text that some files write as a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label(pub(super) String);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(json: D) -> core::result::Result<Self, D::Error> {
        json.deserialize_any(LabelVisitor)
    }
}

struct LabelVisitor;

impl Visitor<'_> for LabelVisitor {
    type Value = Label;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> core::result::Result<Label, E> {
        Ok(Label(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> core::result::Result<Label, E> {
        Ok(Label(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> core::result::Result<Label, E> {
        Ok(Label(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> core::result::Result<Label, E> {
        Ok(Label(number.to_string()))
    }
}
