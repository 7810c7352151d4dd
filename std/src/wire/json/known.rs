//! The same in a text that has been looked at, with [`check`](super::check) or a function that finds values in all of it: it is
//! JSON, and of its strings only the ends are looked for. A reader opens a text level by level, so that most of what it looks
//! at is known.

use super::scan::Known;
use crate::wire::WireError;

/// As [`items`](super::items).
pub(crate) fn items<'a>(
    text: &'a str,
    visit: impl FnMut(&'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    super::items_by::<Known>(known(text), visit)
}

/// As [`items_and_fields`](super::items_and_fields).
pub(crate) fn items_and_fields<'a, const N: usize>(
    text: &'a str,
    names: &[&'static str; N],
    visit: impl FnMut(&'a str, Result<[Option<&'a str>; N], WireError>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    super::items_and_fields_by::<Known, N>(known(text), names, visit)
}

/// As [`fields`](super::fields).
pub(crate) fn fields<'a, const N: usize>(
    text: &'a str,
    names: &[&'static str; N],
) -> Result<[Option<&'a str>; N], WireError> {
    super::fields_by::<Known, N>(known(text), names)
}

/// As [`field`](super::field).
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Result<Option<&'a str>, WireError> {
    super::field_by::<Known>(known(text), name)
}

fn known(text: &str) -> &str {
    let is_long = text.len() > ASSERTED_BYTES_MAX;
    debug_assert!(is_long || super::scan::is_value(text), "nobody has looked at this text");
    text
}

/// Tests of huge texts are slow enough.
const ASSERTED_BYTES_MAX: usize = 4 << 10;
