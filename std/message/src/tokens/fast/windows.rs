//! Long runs of letters, signs or white space, counted in windows that fit the processor's cache.
//!
//! A merge of a piece of a megabyte reads tens of megabytes in random order, so that twice the text took three
//! times as long. Each window begins at the beginning of a token of the window before, and its first token must be
//! that token. The counts of the windows up to and from these tokens then add up to the count of the whole:
//!
//! *Why*: byte pairs are merged in the order of the vocabulary, the leftmost of equals first. As long as no merge
//! crosses the two ends of a region, the merges in it depend on the region alone. Assume that in the whole text a
//! merge crosses an end of one of these tokens, and take the first such merge. Both tokens at that end are in one
//! window (the shared ones in two). Before this merge, the region of that window's tokens has gone through the same
//! merges in both, so the window must have made this merge too. But in the window, this place is the end of a
//! token.
//!
//! A window must also be *one piece* to the encoding, like the run that it is cut from. So only those runs are cut
//! of which any part is one piece, independent of the text before it, and ends where the whole ends:
//!
//! - letters without case and small letters of ASCII. `o200k_base` takes the former for either case, and continues
//!   with a capital if there was no small letter before. The run must therefore be followed by no letter; otherwise
//!   it ends with its last small letter;
//! - signs. Newlines behind them belong to the piece, and also to that of a part;
//! - blanks. A newline before them may be in their piece, because another one follows: no token continues behind a
//!   newline except with another newline (a test reads this from the vocabularies), and a window has none;
//! - newlines, unless white space or a slash follows: their piece then depends on the text before them.

use tiktoken::CoreBpe;

use super::super::cut::{Class, class_of};

/// Sizes of windows in bytes. The last tokens of a window, in the overlap before its end, are counted in the next
/// window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) window: usize,
    /// The text behind a window changes the tokens before its end. These tokens are not used.
    pub(super) overlap: usize,
}

/// The overlap is twice the longest token: the last tokens of a run of blanks would differ if the run continued.
pub(super) const SIZES: Sizes = Sizes { window: 4_096, overlap: 256 };

/// The tokens of `text`, which has a run at byte `from`. `None` if there is no long run, or if two windows
/// disagree; the whole must then be counted.
pub(super) fn count(encoding: &CoreBpe, text: &str, from: usize, sizes: Sizes) -> Option<usize> {
    let run =
        end_of_run(text, from).filter(|end| end.saturating_sub(from) >= sizes.window.saturating_mul(2))?;
    let inside = text.ceil_char_boundary(from).saturating_add(CONTRACTION_BYTES_MAX);
    let (mut start, mut tokens, mut expected) = (0_usize, 0_usize, None);
    loop {
        let end = text.floor_char_boundary(start.max(from).saturating_add(sizes.window));
        let is_last = end >= run;
        let window = if is_last { text.get(start..)? } else { text.get(start..end)? };
        let encoded = encoding.encode(window);
        if expected.is_some_and(|expected| encoded.first() != Some(&expected)) {
            return None;
        }
        if is_last {
            return Some(tokens.saturating_add(encoded.len()));
        }
        let (kept, seam) = seam(encoding, &encoded, window, sizes.overlap)?;
        expected = encoded.get(kept).copied();
        // A window of one token would begin at the same place for ever, and pieces may end before the run.
        start = start.checked_add(seam).filter(|next| seam > 0 && *next >= inside)?;
        tokens = tokens.saturating_add(kept);
    }
}

/// The last token of the window that begins a character and has at least `overlap` bytes from there on: its number
/// in the window, and its place.
fn seam(encoding: &CoreBpe, tokens: &[u32], window: &str, overlap: usize) -> Option<(usize, usize)> {
    let mut at = window.len();
    for (kept, token) in tokens.iter().enumerate().rev() {
        at = at.checked_sub(encoding.decode(&[*token]).len())?;
        if window.len().saturating_sub(at) >= overlap && window.is_char_boundary(at) {
            return Some((kept, at));
        }
    }
    None
}

/// Characters of which any number is one piece, or part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    /// Small letters of ASCII, and letters without case.
    Letters,
    Signs,
    Blanks,
    Newlines,
}

impl Run {
    fn of(character: char) -> Option<Self> {
        match class_of(character) {
            Class::Letter if !character.is_ascii_uppercase() => Some(Self::Letters),
            Class::Sign => Some(Self::Signs),
            _ if character == ' ' => Some(Self::Blanks),
            _ if character == '\n' => Some(Self::Newlines),
            _ => None,
        }
    }

    /// The last cut in `run` before the character `after`.
    fn end(self, run: &str, after: Option<char>) -> Option<usize> {
        let after = after.map(class_of);
        let is_all = match self {
            Self::Letters => !matches!(after, Some(Class::Letter | Class::Other)),
            Self::Newlines => !matches!(after, Some(Class::Space | Class::Newline | Class::Slash)),
            Self::Signs | Self::Blanks => true,
        };
        match self {
            _ if is_all => Some(run.len()),
            // A small letter: a capital behind it does not belong to the piece.
            Self::Letters => Some(run.rfind(|last: char| last.is_ascii_lowercase())?.saturating_add(1)),
            _ => None,
        }
    }
}

/// The end of the run at byte `from`, as far as the run may be cut.
fn end_of_run(text: &str, from: usize) -> Option<usize> {
    let from = text.ceil_char_boundary(from);
    let rest = text.get(from..)?;
    let kind = Run::of(rest.chars().next()?)?;
    let length = rest.find(|next| Run::of(next) != Some(kind)).unwrap_or(rest.len());
    let (run, after) = rest.split_at_checked(length)?;
    Some(from.saturating_add(kind.end(run, after.chars().next())?))
}

/// The first letters of a run may belong to an apostrophe before it: `'ll`.
const CONTRACTION_BYTES_MAX: usize = 2;

#[cfg(test)]
mod tests;
