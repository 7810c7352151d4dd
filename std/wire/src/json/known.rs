//! The functions of the parent module for a text that is known to be JSON.
//!
//! [`check`](super::check) or a function that scans the whole text has checked it, so these functions only look for the
//! ends of its strings. A reader opens a text level by level, so most of its texts are known.

use std::sync::Arc;

use super::scan::{Known, Spans};
use crate::WireError;

/// A value of a checked text, with the known ends of its longest parts.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    text: &'a str,
    look: Known<'a>,
}

impl<'a> Value<'a> {
    /// The value `text`, which begins at `start` in the whole text. `spans` belong to a part of the whole.
    pub(crate) fn noted(text: &'a str, spans: &'a Spans, start: usize) -> Self {
        Self { text, look: Known::new(spans, start) }
    }

    pub(crate) const fn text(self) -> &'a str {
        self.text
    }

    /// The value `part`, a slice of this one.
    pub(crate) fn within(self, part: &'a str) -> Self {
        Self { text: part, look: self.look.behind(super::offset_of(self.text, part)) }
    }
}

/// A value without known spans.
impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, look: Known::default() }
    }
}

impl<'a> From<&'a Arc<str>> for Value<'a> {
    fn from(text: &'a Arc<str>) -> Self {
        Self::from(&**text)
    }
}

/// Works like [`items`](super::items).
pub(crate) fn items<'a>(
    array: impl Into<Value<'a>>,
    visit: impl FnMut(&'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let Value { text, look } = array.into();
    super::items_by(look, known(text), visit)
}

/// Works like [`items_and_fields`](super::items_and_fields).
pub(crate) fn items_and_fields<'a, const N: usize>(
    array: impl Into<Value<'a>>,
    names: &[&'static str; N],
    visit: impl FnMut(&'a str, Result<[Option<&'a str>; N], WireError>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let Value { text, look } = array.into();
    super::items_and_fields_by(look, known(text), names, visit)
}

/// Works like [`items_and_fields`], for readers that use some keys only together with others.
pub(crate) fn items_and_members<'a, const N: usize>(
    array: impl Into<Value<'a>>,
    names: &'static [&'static str; N],
    mut visit: impl FnMut(Members<'a, N>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let array = array.into();
    items_and_fields(array, names, |object, found| {
        visit(Members { object: array.within(object), names, found })
    })
}

/// The values of some keys of an object, found in a single scan. There are none if the value is no object. A repeated
/// key is an error only for a reader that asks for it.
pub(crate) struct Members<'a, const N: usize> {
    object: Value<'a>,
    names: &'static [&'static str; N],
    found: Result<[Option<&'a str>; N], WireError>,
}

impl<'a, const N: usize> Members<'a, N> {
    pub(crate) fn of(object: impl Into<Value<'a>>, names: &'static [&'static str; N]) -> Self {
        let object = object.into();
        Self { object, names, found: fields(object, names) }
    }

    pub(crate) const fn object(&self) -> &'a str {
        self.object.text
    }

    /// The value `part`, a slice of the object.
    pub(crate) fn within(&self, part: &'a str) -> Value<'a> {
        self.object.within(part)
    }

    /// The values of all keys.
    pub(crate) fn all(&self) -> Result<[Option<&'a str>; N], WireError> {
        match &self.found {
            Ok(found) => Ok(*found),
            Err(_) => fields(self.object, self.names),
        }
    }

    /// The value of one of the keys.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<&'a str>, WireError> {
        let at = self.names.iter().position(|known| *known == name);
        debug_assert!(at.is_some(), "nobody has looked for `{name}`");
        match &self.found {
            Ok(found) => Ok(at.and_then(|at| found.get(at).copied().flatten())),
            Err(_) => field(self.object, name),
        }
    }
}

/// Works like [`fields`](super::fields).
pub(crate) fn fields<'a, const N: usize>(
    object: impl Into<Value<'a>>,
    names: &[&'static str; N],
) -> Result<[Option<&'a str>; N], WireError> {
    let Value { text, look } = object.into();
    super::fields_by(look, known(text), names)
}

/// Works like [`field`](super::field).
pub(crate) fn field<'a>(object: impl Into<Value<'a>>, name: &str) -> Result<Option<&'a str>, WireError> {
    let Value { text, look } = object.into();
    super::field_by(look, known(text), name)
}

fn known(text: &str) -> &str {
    let is_long = text.len() > ASSERTED_BYTES_MAX;
    debug_assert!(is_long || super::scan::is_value(text), "nobody has looked at this text");
    text
}

/// Limit of the assertion in bytes, because tests of huge texts are slow already.
const ASSERTED_BYTES_MAX: usize = 4 << 10;
