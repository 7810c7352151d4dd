//! The same in a text that has been looked at, with [`check`](super::check) or a function that finds values in all of it: it is
//! JSON, and of its strings only the ends are looked for. A reader opens a text level by level, so that most of what it looks
//! at is known.

use super::scan::Known;
use crate::WireError;

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

/// As [`items_and_fields`], for readers to which some keys matter only beside others.
pub(crate) fn items_and_members<'a, const N: usize>(
    text: &'a str,
    names: &'static [&'static str; N],
    mut visit: impl FnMut(Members<'a, N>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    items_and_fields(text, names, |object, found| visit(Members { object, names, found }))
}

/// What stands under some keys of a value, which one look has found: nothing, where it is no object. A key that is there
/// twice is an error for who asks for it, and for nobody else.
pub(crate) struct Members<'a, const N: usize> {
    object: &'a str,
    names: &'static [&'static str; N],
    found: Result<[Option<&'a str>; N], WireError>,
}

impl<'a, const N: usize> Members<'a, N> {
    pub(crate) fn of(object: &'a str, names: &'static [&'static str; N]) -> Self {
        Self { object, names, found: fields(object, names) }
    }

    pub(crate) const fn object(&self) -> &'a str {
        self.object
    }

    /// The values of all of the keys.
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
