//! JSON pointers.

use core::fmt;
use std::borrow::Cow;

use crate::error::quoted;
use crate::{WireError, WireErrorKind};

/// A place in a JSON text: a JSON pointer (RFC 6901), for example `/0/traj`. The empty pointer is the whole text.
///
/// ```
/// use epitome_wire::document::Pointer;
///
/// let pointer = Pointer::parse("/runs/0/a~1b")?;
/// assert_eq!(pointer.keys().collect::<Vec<_>>(), ["runs", "0", "a/b"]);
/// assert!(Pointer::parse("runs").is_err());
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Pointer {
    text: String,
}

impl Pointer {
    /// Parses `text` as a pointer.
    ///
    /// # Errors
    /// `Pointer` if it does not begin with `/`, or has a `~` that is not `~0` or `~1`.
    pub fn parse(text: &str) -> Result<Self, WireError> {
        let malformed = |what| Err(WireError::new(WireErrorKind::Pointer, what));
        if !text.is_empty() && !text.starts_with('/') {
            let named = quoted(text);
            return malformed(format!(
                "{named} is not a JSON pointer: it must begin with /, as in /messages"
            ));
        }
        if text.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            let named = quoted(text);
            return malformed(format!("{named} is not a JSON pointer: write ~0 for ~ and ~1 for / in a key"));
        }
        Ok(Self { text: text.to_owned() })
    }

    /// The pointer to the element or member `key` of the value at this pointer.
    #[must_use]
    pub fn join(&self, key: &str) -> Self {
        Self { text: format!("{}/{}", self.text, key.replace('~', "~0").replace('/', "~1")) }
    }

    /// The text of the pointer.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pointer is the whole text.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    /// The keys and indices, from the outside in.
    pub fn keys(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.text.split('/').skip(1).map(|key| match key.contains('~') {
            true => Cow::Owned(key.replace("~1", "/").replace("~0", "~")),
            false => Cow::Borrowed(key),
        })
    }

    /// This pointer, followed by `inner`.
    pub(crate) fn then(&self, inner: &Self) -> Self {
        Self { text: format!("{}{}", self.text, inner.text) }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_how_to_write_it() {
        let error = Pointer::parse("history").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`history` is not a JSON pointer: it must begin with /, as in /messages"
        );
        assert_eq!(Pointer::parse("/a~2").unwrap_err().kind(), WireErrorKind::Pointer);
    }

    #[test]
    fn joining_and_splitting_agree() {
        let pointer = Pointer::default().join("a/b").join("~1").join("").join("0");
        assert_eq!(pointer.as_str(), "/a~1b/~01//0");
        assert_eq!(pointer.keys().collect::<Vec<_>>(), ["a/b", "~1", "", "0"]);
        assert_eq!(Pointer::parse(pointer.as_str()).unwrap(), pointer);
    }
}
