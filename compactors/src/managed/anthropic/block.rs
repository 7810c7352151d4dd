//! The content block of a compaction.

use core::fmt;
use std::borrow::{Cow, ToOwned as _};
use std::string::String;

use super::super::value;
use super::body::Block;
use super::error::MappingError;

/// A compaction block with content, as the API wrote it. It can be read, and is sent back byte for byte.
#[derive(Clone, PartialEq, Eq)]
pub struct CompactionBlock {
    raw: String,
    signed: bool,
}

impl CompactionBlock {
    /// The JSON of the block, as the API wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.raw
    }

    /// The summary in the block.
    ///
    /// # Errors
    /// `Shape` if the content is no text.
    pub fn text(&self) -> Result<String, MappingError> {
        text(&Block::alone(&self.raw)?).map(Cow::into_owned)
    }

    /// Whether the block has a signature: blocks on request have one, blocks of a threshold have none.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.signed
    }

    /// The message in which the block is sent back.
    pub(super) fn message(&self) -> String {
        let (before, after) = (r#"{"role":"assistant","content":["#, "]}");
        [before, &self.raw, after].concat()
    }

    /// The block, which must have content.
    pub(super) fn of(block: &Block<'_>) -> Result<Self, MappingError> {
        let signed = is_signed(block)?;
        Ok(Self { raw: block.text.to_owned(), signed })
    }

    /// The block with the JSON `raw`, which must have content and a signature.
    pub(super) fn signed(raw: &str) -> Self {
        Self { raw: raw.to_owned(), signed: true }
    }
}

/// Whether the block is signed; an error if it has no content.
pub(super) fn is_signed(block: &Block<'_>) -> Result<bool, MappingError> {
    match text(block)?.is_empty() {
        true => Err(MappingError::EmptySummary),
        false => Ok(block.head.signature.as_deref().is_some_and(|signature| !signature.is_empty())),
    }
}

/// The summary in a block.
fn text<'a>(block: &Block<'a>) -> Result<Cow<'a, str>, MappingError> {
    let shape = MappingError::Shape { expected: "a compaction block with a text", line: 1, column: 1 };
    block.head.content.and_then(value::text).ok_or(shape)
}

/// Without the text, to keep conversations out of logs.
impl fmt::Debug for CompactionBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionBlock")
            .field("bytes", &self.raw.len())
            .field("signed", &self.signed)
            .finish()
    }
}
