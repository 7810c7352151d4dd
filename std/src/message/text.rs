//! Shared text.

use core::fmt;
use core::ops::{Deref, Range};
use std::sync::Arc;

/// Text that is held once and shared: a whole of its own, or a slice of the text that a message was read from.
#[derive(Clone)]
pub struct Str {
    whole: Arc<str>,
    range: Range<usize>,
}

impl Str {
    /// The part `range` of `whole`, without a copy.
    ///
    /// `None` when the range does not lie in the text or cuts a character.
    #[must_use]
    pub fn slice_of(whole: &Arc<str>, range: Range<usize>) -> Option<Self> {
        whole.get(range.clone())?;
        Some(Self { whole: Arc::clone(whole), range })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.whole.get(self.range.clone()).unwrap_or_default()
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Default for Str {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<Arc<str>> for Str {
    fn from(whole: Arc<str>) -> Self {
        let range = 0..whole.len();
        Self { whole, range }
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::from(Arc::<str>::from(text))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self::from(Arc::<str>::from(text))
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What was said stays out of logs.
        write!(f, "Str({} bytes)", self.len())
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Str {}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl core::hash::Hash for Str {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl serde::Serialize for Str {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Str {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <std::borrow::Cow<'de, str>>::deserialize(deserializer).map(|text| Self::from(Arc::<str>::from(text)))
    }
}
