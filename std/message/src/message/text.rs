//! Shared text.

use core::borrow::Borrow;
use core::fmt;
use core::ops::{Deref, Range};
use std::sync::{Arc, LazyLock};

/// Shared text: a whole text, or a slice of the text that a message was read from.
#[derive(Clone)]
pub struct Str {
    whole: Arc<str>,
    /// Byte offset of its beginning in `whole`. Offsets have four bytes, because a message has many such texts.
    start: u32,
    /// [`TO_THE_END`], or the place.
    end: u32,
}

/// Stands for the end of a text of any length.
const TO_THE_END: u32 = u32::MAX;

const _: () = assert!(size_of::<Str>() <= 24, "a message holds many of these");

impl Str {
    /// The slice `range` of `whole`. It is a copy only if it ends behind the first four gigabytes.
    ///
    /// `None` if the range is outside the text or divides a character.
    #[must_use]
    pub fn slice_of(whole: &Arc<str>, range: Range<usize>) -> Option<Self> {
        let text = whole.get(range.clone())?;
        let end = u32::try_from(range.end).ok().filter(|end| *end != TO_THE_END);
        let (Ok(start), Some(end)) = (u32::try_from(range.start), end) else {
            return Some(Self::from(Arc::<str>::from(text)));
        };
        Some(Self { whole: Arc::clone(whole), start, end })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let start = self.start as usize;
        let text = match self.end {
            TO_THE_END => self.whole.get(start..),
            end => self.whole.get(start..end as usize),
        };
        text.unwrap_or_default()
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

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Default for Str {
    fn default() -> Self {
        // One shared value, because most messages have several empty texts.
        Self::from(Arc::clone(&EMPTY))
    }
}

static EMPTY: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));

impl From<Arc<str>> for Str {
    fn from(whole: Arc<str>) -> Self {
        Self { whole, start: 0, end: TO_THE_END }
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        Self::from(Arc::<str>::from(text))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self::from(Arc::<str>::from(text))
    }
}

/// The text itself. `Debug` shows only its length, to keep conversations out of logs.
impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the text, to keep conversations out of logs.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_displayed_and_not_debugged() {
        let text = Str::from("llamas");
        assert_eq!(format!("{text:>8}"), "  llamas");
        assert!(!format!("{text:?}").contains("llamas"));
    }

    #[test]
    fn a_slice_is_what_the_range_names() {
        let whole: Arc<str> = Arc::from("aä𝄞");
        for start in 0..=whole.len() + 1 {
            for end in 0..=whole.len() + 1 {
                let slice = Str::slice_of(&whole, start..end);
                assert_eq!(slice.as_deref(), whole.get(start..end), "{start}..{end}");
            }
        }
        assert_eq!(Str::from(Arc::clone(&whole)), "aä𝄞");
        assert_eq!(Arc::strong_count(&whole), 1);
    }

    #[test]
    fn a_slice_holds_the_whole_and_copies_nothing() {
        let whole: Arc<str> = Arc::from("a longer text");
        let slice = Str::slice_of(&whole, 2..8).unwrap();
        assert_eq!(slice, "longer");
        assert_eq!(slice.as_ptr(), whole[2..8].as_ptr());
    }
}
