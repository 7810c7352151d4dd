//! Exact counts by `tiktoken-rs`, without its panics.

use core::fmt;
use std::collections::HashSet;

use epitome_core::{Amount, Basis, TokenBounds, TokenCounter, Tokens};
use tiktoken_rs::CoreBPE;

use super::cut;

/// An exact counter for one of OpenAI's encodings: its counts are those of a request with that text, without
/// framing.
///
/// It is a cheap handle. The tables (46 MB for `o200k_base`) are built on first use, once per process, and shared.
///
/// Text in the form of a special token is counted as plain text. One kind of text may not be counted exactly: a run
/// of about a million whitespace characters, which the regular expression of `o200k_base` cannot split. It is
/// counted in parts of 65,536 characters, and each seam may be off by a token or two. [`TokenCounter::measure`]
/// then reports [`Basis::Estimated`].
#[derive(Clone, Copy)]
pub struct Tiktoken {
    name: &'static str,
    encoding: fn() -> &'static CoreBPE,
}

impl Tiktoken {
    /// `o200k_base`: GPT-4o, GPT-4.1, GPT-5 and the o-series.
    #[must_use]
    pub const fn o200k_base() -> Self {
        Self { name: "o200k_base", encoding: tiktoken_rs::o200k_base_singleton }
    }

    /// `o200k_harmony`: gpt-oss. It counts text as `o200k_base` does; only the special tokens differ.
    #[must_use]
    pub const fn o200k_harmony() -> Self {
        Self { name: "o200k_harmony", encoding: tiktoken_rs::o200k_harmony_singleton }
    }

    /// `cl100k_base`: GPT-4 and GPT-3.5.
    #[must_use]
    pub const fn cl100k_base() -> Self {
        Self { name: "cl100k_base", encoding: tiktoken_rs::cl100k_base_singleton }
    }

    /// The tokens of `text`; `None` if the regular expression that splits text gives up, on a very long run of
    /// whitespace.
    fn try_count(self, text: &str) -> Option<u64> {
        // Only this function of tiktoken-rs reports the failure; `count_ordinary` and `encode_ordinary` panic.
        (self.encoding)().count(text, &HashSet::new()).ok().map(|count| count as u64)
    }

    /// Halves a text that cannot be counted until each part can. A token has at least one byte, so the bytes are an
    /// upper bound.
    fn count_halving(self, text: &str) -> u64 {
        let middle = text.floor_char_boundary(text.len() / 2);
        match self.try_count(text) {
            Some(count) => count,
            None if middle == 0 => text.len() as u64,
            None => {
                let (left, right) = text.split_at(middle);
                self.count_halving(left).saturating_add(self.count_halving(right))
            }
        }
    }
}

impl TokenCounter for Tiktoken {
    fn name(&self) -> &str {
        self.name
    }

    fn basis(&self) -> Basis {
        Basis::Counted
    }

    fn count(&self, text: &str) -> Tokens {
        self.measure(text).tokens
    }

    fn measure(&self, text: &str) -> Amount {
        match self.try_count(text) {
            Some(count) => Amount::new(Tokens::from_u64(count), Basis::Counted),
            None => {
                let count = parts(text).map(|part| self.count_halving(part)).fold(0, u64::saturating_add);
                Amount::new(Tokens::from_u64(count), Basis::Estimated)
            }
        }
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

impl fmt::Debug for Tiktoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tiktoken").field(&self.name).finish()
    }
}

/// `text` in parts, cut inside runs of whitespace after every [`RUN_CHARS_MAX`] characters of a run. Such a run is
/// one or two pieces to the encoding (up to its last newline; the rest except one character). A cut therefore
/// splits one piece and moves no other boundary.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    core::iter::from_fn(move || {
        let mut run = 0_usize;
        let cut = rest.char_indices().find(|(_, character)| {
            run = if character.is_whitespace() { run + 1 } else { 0 };
            run > RUN_CHARS_MAX
        });
        let (part, after) = rest.split_at_checked(cut.map_or(rest.len(), |(at, _)| at))?;
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Maximum characters of a run of whitespace in a part: a multiple of the longest token of spaces, so that a cut in
/// spaces is between two tokens.
const RUN_CHARS_MAX: usize = 65_536;

#[cfg(test)]
mod tests;
