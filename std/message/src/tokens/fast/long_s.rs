//! Contractions with the long s (`it'ſ`), which the crate `tiktoken` does not take for contractions in every text.
//!
//! The patterns match contractions in either case, and `ſ` (U+017F) is an `s` of another case. The crate reads most words without
//! its pattern, and there it knows `s` and `S` alone: then its piece goes on with the letters behind the `ſ`, and in the pattern a piece
//! ends there. The two differ nowhere else. So the text is cut directly behind each such `ſ`, and both sides are counted apart: the
//! right one begins with a piece, as patterns never look back.
//!
//! *Which are contractions*: those where a `'t` in the place of the `'ſ` is one, for patterns treat all contractions alike. The crate
//! tells that of a `'t`: the text up to the apostrophe is encoded with [`PROBE`] behind it, whose last token tells where a piece ends.
//!
//! *Why the left side counts alike*: in `cl100k_base` a contraction is a piece of its own, which the crate sees too. In `o200k_base`
//! word and contraction are one piece, and two in the crate. No token reaches over the apostrophe, so that there are as many
//! tokens in both; only [`JOINED`] is one token where it begins the piece, and saves one.

use tiktoken::CoreBpe;

use super::super::cut;

/// The tokens of `text`, as the sum of what `count` says of its parts.
///
/// The cost is linear: each `'ſ` leaves a place from which the next one is looked at.
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
            // The `ſ` begins a piece, or is the first letter of one: all the same to where that ends.
            seen = apostrophe.saturating_add(1);
        }
    }
    tokens.saturating_add(count(text.get(counted..).unwrap_or_default()))
}

/// Whether letters with an apostrophe are a contraction behind `before`, which begins with a piece.
fn is_contraction(encoding: &CoreBpe, before: &str) -> bool {
    let piece = cut::last_cut(before, 0).unwrap_or(0);
    let mut probe = before.get(piece..).unwrap_or_default().to_owned();
    probe.push_str(PROBE);
    let last = encoding.encode(&probe).last().map(|last| encoding.decode(&[*last]));
    last.as_deref() == Some(BEHIND_CONTRACTION)
}

/// A contraction with the long s.
pub(super) const LONG_S: &str = "'\u{17f}";
/// A contraction and more letters. As one piece they are one token in `o200k_base` (in `cl100k_base` no piece begins with both), and so
/// are the letters alone, behind signs that the apostrophe belongs to. A test reads these tokens from the vocabularies.
const PROBE: &str = "'type";
/// The last token of [`PROBE`] where a piece ends behind the contraction.
const BEHIND_CONTRACTION: &[u8] = b"ype";
/// A word that is one token with the apostrophe behind it, in `o200k_base`. No letter stands before the space or behind the `I`, so it is
/// the whole of its piece.
const JOINED: &str = " I";

#[cfg(all(test, feature = "tiktoken"))]
mod tests;
