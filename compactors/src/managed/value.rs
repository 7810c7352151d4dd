//! Single JSON values as source text.

use std::borrow::Cow;

/// The value, if it is present and not null.
pub(super) fn present(raw: Option<&str>) -> Option<&str> {
    raw.filter(|raw| *raw != "null")
}

/// Text of the JSON value `raw`, if it is a string; a slice of it if it has no escapes.
pub(super) fn text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

/// Text of an optional value; an error if it is present and no string.
pub(super) fn optional_text(raw: Option<&str>) -> Result<Option<Cow<'_, str>>, NoText> {
    present(raw).map(|raw| text(raw).ok_or(NoText)).transpose()
}

/// A value that should be a string, and is none.
#[derive(Debug)]
pub(super) struct NoText;
