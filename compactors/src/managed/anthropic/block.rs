//! What a compaction left.

use core::fmt;
use std::borrow::ToOwned as _;
use std::string::String;

use super::body::Block;
use super::error::{MappingError, shape};

/// A compaction block with content, as the API wrote it. It can be read, and is sent back byte for byte.
#[derive(Clone, PartialEq, Eq)]
pub struct CompactionBlock {
    raw: String,
    signed: bool,
}

impl CompactionBlock {
    /// The block, as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.raw
    }

    /// The summary in it.
    ///
    /// # Errors
    /// `Shape` if the content is no text.
    pub fn text(&self) -> Result<String, MappingError> {
        let block = Block::of(&self.raw)?;
        let content = block.head.content.map_or("", |content| content.get());
        serde_json::from_str(content).map_err(|error| shape("a compaction block with a text", &error))
    }

    /// Whether it has a signature: those that were asked for have one, those of a threshold none.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.signed
    }

    /// The message that it is sent back in.
    pub(super) fn message(&self) -> String {
        let (before, after) = (r#"{"role":"assistant","content":["#, "]}");
        [before, &self.raw, after].concat()
    }

    /// The block `raw`, which has content.
    pub(super) fn of(block: &Block<'_>) -> Result<Self, MappingError> {
        let signed = block.head.signature.as_deref().is_some_and(|signature| !signature.is_empty());
        let block = Self { raw: block.text.to_owned(), signed };
        match block.text()?.is_empty() {
            true => Err(MappingError::EmptySummary),
            false => Ok(block),
        }
    }
}

/// No text: what is said stays out of logs.
impl fmt::Debug for CompactionBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionBlock")
            .field("bytes", &self.raw.len())
            .field("signed", &self.signed)
            .finish()
    }
}
