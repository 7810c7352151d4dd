//! Exact counts by the crate `tiktoken`: those of `tiktoken-rs`, several times as fast.

use core::fmt;
use std::sync::OnceLock;

use epitome_core::{Amount, Basis, TokenBounds, TokenCounter, Tokens};
use tiktoken::CoreBpe;

use super::cut;
use long_s::LONG_S;

mod long_s;
mod windows;

/// An exact counter for one of OpenAI's encodings. Its counts and names are those of `Tiktoken`, the reference of
/// the feature `tiktoken`, so that counts of one are valid for the other.
///
/// It is a cheap handle. The tables (24 MB for `o200k_base`, 12 MB for `cl100k_base`) are built on first use, once
/// per process, and shared; each counting thread caches 1.2 MB of pieces. Text in the form of a special token is
/// counted as plain text. The cost is linear for every text, because very long runs are merged in windows.
///
/// ```
/// use epitome_core::{TokenCounter, Tokens};
/// use epitome_message::tokens::FastTiktoken;
///
/// let counter = FastTiktoken::o200k_base();
/// assert_eq!(counter.count("hello world"), Tokens(2));
/// assert_eq!(counter.count_up_to(&"hello world".repeat(1000), Tokens(100)), None);
/// ```
#[derive(Clone, Copy)]
pub struct FastTiktoken {
    name: &'static str,
    tables: &'static Tables,
}

/// The tables of an encoding, with a cache of the look-up by name: a stream needs them after every word.
struct Tables {
    name: &'static str,
    /// Whether a contraction and its word are one piece, so that [`long_s`] must handle tokens across its
    /// apostrophe.
    joins_apostrophe: bool,
    found: OnceLock<Option<&'static CoreBpe>>,
}

impl FastTiktoken {
    /// `o200k_base`: GPT-4o, GPT-4.1, GPT-5 and the o-series.
    #[must_use]
    pub const fn o200k_base() -> Self {
        Self { name: "o200k_base", tables: &O200K }
    }

    /// `o200k_harmony`: gpt-oss. It counts text as `o200k_base` does, and shares its tables; only the special
    /// tokens differ.
    #[must_use]
    pub const fn o200k_harmony() -> Self {
        Self { name: "o200k_harmony", tables: &O200K }
    }

    /// `cl100k_base`: GPT-4 and GPT-3.5.
    #[must_use]
    pub const fn cl100k_base() -> Self {
        Self { name: "cl100k_base", tables: &CL100K }
    }

    /// The tables; always present, because this crate's features include them.
    fn encoding(self) -> Option<&'static CoreBpe> {
        *self.tables.found.get_or_init(|| tiktoken::get_encoding(self.tables.name))
    }

    fn count_part(self, encoding: &CoreBpe, part: &str) -> usize {
        if has_long_s(part) {
            return long_s::count(encoding, part, self.tables.joins_apostrophe, |side| {
                count_side(encoding, side)
            });
        }
        count_side(encoding, part)
    }
}

impl TokenCounter for FastTiktoken {
    fn name(&self) -> &str {
        self.name
    }

    fn basis(&self) -> Basis {
        Basis::Counted
    }

    fn count(&self, text: &str) -> Tokens {
        if text.len() <= 1 {
            // Every byte is a token. The text of a stream before a word is often only a blank.
            return Tokens::from_u64(text.len() as u64);
        }
        // The most frequent case: a stream asks after each word.
        match (self.tables.found.get(), text.len() <= WORD_BYTES_MAX && is_ascii(text.as_bytes())) {
            (Some(Some(encoding)), true) => Tokens::from_u64(encoding.count(text) as u64),
            _ => self.measure(text).tokens,
        }
    }

    fn measure(&self, text: &str) -> Amount {
        let Some(encoding) = self.encoding() else {
            return Amount::new(Tokens::from_u64(text.len() as u64), Basis::Estimated);
        };
        let tokens = match text.len() <= PART_BYTES_MIN {
            true => self.count_part(encoding, text) as u64,
            // At white space beyond ASCII the crate reads all the text behind it. In parts that is little.
            false => cut::parts(text, PART_BYTES_MIN)
                .map(|part| self.count_part(encoding, part) as u64)
                .fold(0, u64::saturating_add),
        };
        Amount::new(Tokens::from_u64(tokens), Basis::Counted)
    }

    fn count_up_to(&self, text: &str, limit: Tokens) -> Option<Tokens> {
        cut::count_up_to(text, limit, |part| self.count(part))
    }

    fn bounds(&self, text: &str) -> TokenBounds {
        cut::bounds(text)
    }

    fn last_cut(&self, text: &str, from: usize) -> Option<usize> {
        cut::last_cut(text, from)
    }
}

impl fmt::Debug for FastTiktoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FastTiktoken").field(&self.name()).finish()
    }
}

/// The tokens of a part, or of a side of it, without a contraction that needs a cut behind it.
///
/// It calls only `count`, and `encode` in windows. Neither recognizes special tokens, and neither can panic.
fn count_side(encoding: &CoreBpe, side: &str) -> usize {
    let in_windows = (side.len() > LONG_BYTES_MIN)
        .then(|| windows::count(encoding, side, PART_BYTES_MIN, windows::SIZES))
        .flatten();
    in_windows.unwrap_or_else(|| encoding.count(side))
}

/// Whether the part has a [`LONG_S`]. Usually one pass over the bytes shows that it has none.
fn has_long_s(part: &str) -> bool {
    part.as_bytes().contains(&LONG_S_BYTE) && part.contains(LONG_S)
}

/// Whether a text of at most [`WORD_BYTES_MAX`] bytes is ASCII. It checks the first and the last half, which may
/// overlap.
fn is_ascii(word: &[u8]) -> bool {
    const HIGHEST_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    if let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) {
        return (u64::from_ne_bytes(*first) | u64::from_ne_bytes(*last)) & HIGHEST_BITS == 0;
    }
    if let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) {
        return u64::from(u32::from_ne_bytes(*first) | u32::from_ne_bytes(*last)) & HIGHEST_BITS == 0;
    }
    word.is_ascii()
}

static O200K: Tables = Tables { name: "o200k_base", joins_apostrophe: true, found: OnceLock::new() };
static CL100K: Tables = Tables { name: "cl100k_base", joins_apostrophe: false, found: OnceLock::new() };

/// The first byte of the long s.
const LONG_S_BYTE: u8 = 0xC5;
/// Maximum length of a text that is counted as one word, in bytes.
const WORD_BYTES_MAX: usize = 16;
/// Minimum length of a part, in bytes: a longer text is counted part by part.
const PART_BYTES_MIN: usize = 16_384;
/// Minimum length of a part with a very long piece, in bytes. One merge of such a piece would not fit the fast
/// memory.
const LONG_BYTES_MIN: usize = 2 * PART_BYTES_MIN;

#[cfg(all(test, feature = "tiktoken"))]
mod tests;
