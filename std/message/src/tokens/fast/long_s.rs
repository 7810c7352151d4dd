//! Contractions with the long s (`it'ſ`), which the crate `tiktoken` does not recognize in every text.
//!
//! The patterns match contractions in either case, and `ſ` (U+017F) is another case of `s`. The crate splits most
//! words without its pattern, and then recognizes only `s` and `S`: its piece continues with the letters behind the
//! `ſ`, where the piece of the pattern ends. There is no other difference. So the text is cut directly behind each
//! such `ſ`, and both sides are counted separately: the right side begins with a piece, because patterns never look
//! back.
//!
//! *Detection*: a `'ſ` is a contraction if a `'t` in its place is one, because patterns treat all contractions
//! alike. The crate shows this for a `'t`: the text up to the apostrophe is encoded with [`PROBE`] behind it, and
//! the last token shows the end of a piece.
//!
//! *Why the left side has equal counts*: in `cl100k_base` a contraction is a separate piece, in the crate too. In
//! `o200k_base` word and contraction are one piece, and two in the crate. No token crosses the apostrophe, so both
//! have equally many tokens. The only exception is [`JOINED`], which is one token at the beginning of the piece,
//! and saves one.

use tiktoken::CoreBpe;

use super::super::cut;

/// The tokens of `text`, as the sum of `count` for its parts.
///
/// The cost is linear: after each `'ſ` the search for the next one starts from a later place.
pub(super) fn count(
    encoding: &CoreBpe,
    text: &str,
    joins_apostrophe: bool,
    count: impl Fn(&str) -> usize,
) -> usize {
    let (mut tokens, mut counted, mut seen) = (0_usize, 0_usize, 0_usize);
    for (apostrophe, _) in text.match_indices(LONG_S) {
        let before = text.get(seen..apostrophe).unwrap_or_default();
        if is_contraction(encoding, before) {
            let end = apostrophe.saturating_add(LONG_S.len());
            let saved = usize::from(joins_apostrophe && before.ends_with(JOINED));
            let left = count(text.get(counted..end).unwrap_or_default());
            tokens = tokens.saturating_add(left.saturating_sub(saved));
            (counted, seen) = (end, end);
        } else {
            // The `ſ` begins a piece, or is the first letter of one. The end of the piece is the same in both
            // cases.
            seen = apostrophe.saturating_add(1);
        }
    }
    tokens.saturating_add(count(text.get(counted..).unwrap_or_default()))
}

/// Whether an apostrophe with letters is a contraction behind `before`, which begins with a piece.
fn is_contraction(encoding: &CoreBpe, before: &str) -> bool {
    let piece = cut::last_cut(before, 0).unwrap_or(0);
    let mut probe = before.get(piece..).unwrap_or_default().to_owned();
    probe.push_str(PROBE);
    let last = encoding.encode(&probe).last().map(|last| encoding.decode(&[*last]));
    last.as_deref() == Some(BEHIND_CONTRACTION)
}

/// A contraction with the long s.
pub(super) const LONG_S: &str = "'\u{17f}";
/// A contraction with further letters. As one piece it is one token in `o200k_base` (in `cl100k_base` no piece
/// begins with both). So are the letters alone, behind signs that include the apostrophe. A test reads these tokens
/// from the vocabularies.
const PROBE: &str = "'type";
/// The last token of [`PROBE`] if a piece ends behind the contraction.
const BEHIND_CONTRACTION: &[u8] = b"ype";
/// A word that is one token together with the apostrophe behind it, in `o200k_base`. There is no letter before the
/// space or behind the `I`, so it is the whole of its piece.
const JOINED: &str = " I";

#[cfg(all(test, feature = "tiktoken"))]
mod tests;
