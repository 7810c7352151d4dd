//! Long runs of letters, signs or white space, counted in windows that fit the memory next to the processor.
//!
//! Merging a piece of a megabyte touches tens of megabytes in no order, so that twice the text took three times as long. Each
//! window begins where the one before has a token begin, and its first token must be that token. Then what the windows say
//! up to and from those tokens is what a count of the whole says:
//!
//! *Why*: byte pairs are merged in the order of the vocabulary, the leftmost of equals first. As long as nothing is merged
//! across the two ends of a region, what happens in it depends on the region alone. Say that in the whole text a merge
//! crosses an end of one of these tokens, and take the first that does. Both tokens beside that end stand in one window (the
//! shared ones in two). Until then the region of that window's tokens has gone through the same merges in both, so that the
//! window had made this merge too; but there it is an end of a token.
//!
//! A window must also be *one piece* to the encoding, like the run that it is cut from. So only runs are cut of which any part
//! is one piece, whatever stands before it, and ends where the whole ends:
//!
//! - letters without case and small letters of ASCII. `o200k_base` takes the former for either case, and goes on with a
//!   capital if no small letter has come before: what follows the run must be no letter, or the run counts to its last small one;
//! - signs; where newlines follow they belong to the piece, also to that of a part;
//! - blanks. Before them may stand a newline that is in their piece, because another follows: no token goes on behind a
//!   newline but to another (a test reads that from the vocabularies), and a window has none;
//! - newlines, unless white space or a slash follows: whose they are depends on what stands before.

use tiktoken::CoreBpe;

use super::super::cut::{Class, class_of};

/// Sizes of windows in bytes: a window's last tokens, in the overlap before its end, are left to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) window: usize,
    /// The text after a window changes the tokens before its end; these few are not looked at.
    pub(super) overlap: usize,
}

/// The overlap is twice the longest token: the last ones of a run of blanks are not what they would be if it went on.
pub(super) const SIZES: Sizes = Sizes { window: 4_096, overlap: 256 };

/// The tokens of `text`, in which a run goes on `from` bytes in. `None` where there is none that is long, or where
/// windows do not agree: then only a count of the whole tells.
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
        // A window that is one token would be begun for ever, and before the run pieces may end.
        start = start.checked_add(seam).filter(|next| seam > 0 && *next >= inside)?;
        tokens = tokens.saturating_add(kept);
    }
}

/// The last token of the window that begins a character and has `overlap` bytes from there on: which it is, and where.
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

/// Characters of which any number is one piece, or belongs to one.
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

    /// The last cut in `run`, with that character after it.
    fn end(self, run: &str, after: Option<char>) -> Option<usize> {
        let after = after.map(class_of);
        let is_all = match self {
            Self::Letters => !matches!(after, Some(Class::Letter | Class::Other)),
            Self::Newlines => !matches!(after, Some(Class::Space | Class::Newline | Class::Slash)),
            Self::Signs | Self::Blanks => true,
        };
        match self {
            _ if is_all => Some(run.len()),
            // A small letter, after which no capital belongs to the piece.
            Self::Letters => Some(run.rfind(|last: char| last.is_ascii_lowercase())?.saturating_add(1)),
            _ => None,
        }
    }
}

/// The end of the run that goes through the character `from` bytes in, as far as it may be cut.
fn end_of_run(text: &str, from: usize) -> Option<usize> {
    let from = text.ceil_char_boundary(from);
    let rest = text.get(from..)?;
    let kind = Run::of(rest.chars().next()?)?;
    let length = rest.find(|next| Run::of(next) != Some(kind)).unwrap_or(rest.len());
    let (run, after) = rest.split_at_checked(length)?;
    Some(from.saturating_add(kind.end(run, after.chars().next())?))
}

/// The first letters of a run may belong to an apostrophe that stands before it: `'ll`.
const CONTRACTION_BYTES_MAX: usize = 2;

#[cfg(test)]
mod tests;
