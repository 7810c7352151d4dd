//! JSON values as they are written, one at a time.

use std::borrow::Cow;

/// The value, if it is there and not null.
pub(super) fn present(raw: Option<&str>) -> Option<&str> {
    raw.filter(|raw| *raw != "null")
}

/// Text of the JSON value `raw`, if it is a string: a slice of it where nothing is escaped.
pub(super) fn text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

/// Text of a value that may be missing; an error if it is there and no string.
pub(super) fn optional_text(raw: Option<&str>) -> Result<Option<Cow<'_, str>>, NoText> {
    present(raw).map(|raw| text(raw).ok_or(NoText)).transpose()
}

/// A value that should be a string and is not.
#[derive(Debug)]
pub(super) struct NoText;
