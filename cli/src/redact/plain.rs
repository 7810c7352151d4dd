//! Texts without invisible characters, so that these cannot hide a secret.

use core::ops::Range;
use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// A text without invisible characters and escape sequences, and the places of these.
#[derive(Debug)]
pub(super) struct Plain<'t> {
    text: Cow<'t, str>,
    /// Places in `text` at which something is left out, each with the number of bytes left out up to there.
    seams: Vec<(usize, usize)>,
}

/// Sequences that a terminal obeys, including a return to the beginning of the line; these and invisible characters in
/// the notation of source code; and invisible characters: controls, formats (zero width, soft hyphen, direction) and
/// variation selectors.
static INVISIBLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        \x1b\[[0-?]{0,64}[\x20-/]{0,8}[@-~] | \x1b\][^\x07\x1b]{0,256}(?:\x07|\x1b\\) | \x1b[@-_]
        | \\(?:u001[bB]|x1[bB]|033|e)\[[0-9;]{0,32}m
        | \\u(?:00[aA][dD]|200[b-fB-F]|202[a-eA-E]|206[0-9a-fA-F]|[fF][eE][fF][fF])
        | \r{1,64}
        | [\p{Cf}\p{Cc}\u{34f}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}-\u{180f}\u{3164}\u{fe00}-\u{fe0f}\u{ffa0}\u{e0100}-\u{e01ef}--[\t\n\r]]",
    )
    .ok()
});

impl<'t> Plain<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let Some(invisible) = INVISIBLE.as_ref().filter(|invisible| invisible.is_match(text)) else {
            return Self::visible(text);
        };
        let (mut plain, mut seams, mut from) = (String::with_capacity(text.len()), Vec::new(), 0);
        for found in invisible.find_iter(text) {
            // At the end of a line, the return is part of the line break.
            let after = text.get(found.end()..).unwrap_or_default();
            if found.as_str().starts_with('\r') && (after.is_empty() || after.starts_with('\n')) {
                continue;
            }
            // An escape directly before a marker forms no sequence with the bracket of the marker.
            let is_marked = found.as_str() == "\u{1b}[r"
                && text.get(found.start() + 1..).is_some_and(|rest| rest.starts_with("[redacted:"));
            plain += text.get(from..found.start()).unwrap_or_default();
            from = if is_marked { found.start() + 1 } else { found.end() };
            seams.push((plain.len(), from - plain.len()));
        }
        plain += text.get(from..).unwrap_or_default();
        Self { text: Cow::Owned(plain), seams }
    }

    /// A text without invisible characters.
    pub(super) const fn visible(text: &'t str) -> Self {
        Self { text: Cow::Borrowed(text), seams: Vec::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether something is left out at `at`.
    pub(super) fn is_seam(&self, at: usize) -> bool {
        self.seams.binary_search_by_key(&at, |seam| seam.0).is_ok()
    }

    /// The place in the original text of the part `place` of the plain text.
    pub(super) fn original(&self, place: &Range<usize>) -> Range<usize> {
        let left_out =
            |count: usize| count.checked_sub(1).and_then(|at| self.seams.get(at)).map_or(0, |seam| seam.1);
        let until_start = left_out(self.seams.partition_point(|seam| seam.0 <= place.start));
        let before_end = left_out(self.seams.partition_point(|seam| seam.0 < place.end));
        place.start + until_start..place.end + before_end
    }
}
