//! The sentences of a text.

/// Calls `visit` with each sentence of a text, in order.
///
/// A sentence ends with a line; behind a full stop, a question mark or an exclamation mark before white space; and
/// behind the corresponding marks of Chinese, Japanese and Korean. White space alone is no sentence.
///
/// *Cost*: one pass over the bytes. Only bytes that may begin a mark or end a line are decoded.
pub(super) fn for_each_sentence<'t>(text: &'t str, mut visit: impl FnMut(&'t str)) {
    let (bytes, mut start, mut at) = (text.as_bytes(), 0_usize, 0_usize);
    let mut visit_one = |from: usize, to: usize| {
        if let Some(sentence) = text.get(from..to).filter(|sentence| !sentence.trim_start().is_empty()) {
            visit(sentence);
        }
    };
    while let Some(found) = next_end(bytes, at) {
        let mut chars = text.get(found..).unwrap_or_default().chars();
        let Some(mark) = chars.next() else { break };
        at = found.saturating_add(mark.len_utf8());
        let end = match mark {
            '\n' => found,
            '。' | '！' | '？' => at,
            '.' | '!' | '?' | '؟' | '।' if chars.next().is_some_and(char::is_whitespace) => at,
            _ => continue,
        };
        visit_one(start, end);
        start = end;
    }
    visit_one(start, text.len());
}

/// The next byte at or behind `from` that may end a sentence.
fn next_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    // Blocks of eight bytes, most of which contain no such byte.
    let (blocks, _) = rest.as_chunks::<8>();
    let without = |block: &&[u8; 8]| !block.iter().fold(false, |any, byte| any | may_end(*byte));
    let passed = blocks.iter().take_while(without).flatten().count();
    let next = rest.get(passed..)?.iter().position(|byte| may_end(*byte))?;
    Some(from + passed + next)
}

/// Whether a line end or one of the marks may begin with this byte. Such a byte is never a later byte of a
/// character.
fn may_end(byte: u8) -> bool {
    MAY_END.get(usize::from(byte)).copied().unwrap_or_default()
}

/// A table, which is faster than the comparisons.
static MAY_END: [bool; 256] = {
    let mut all = [false; 256];
    let (mut left, mut byte): (&mut [bool], u8) = (&mut all, 0);
    while let [own, others @ ..] = left {
        // U+061F; U+0964; U+3002; U+FF01 and U+FF1F.
        *own = matches!(byte, b'\n' | b'.' | b'!' | b'?' | 0xD8 | 0xE0 | 0xE3 | 0xEF);
        (left, byte) = (others, byte.wrapping_add(1));
    }
    all
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let mut all = Vec::new();
        for_each_sentence(text, |sentence| all.push(sentence));
        all
    }

    #[test]
    fn sentences_end_behind_marks_and_with_lines() {
        let text = "It is 3.14. Is it?\nYes!  No\n\n  \n发票到期。是吗？是";
        let all: Vec<&str> = sentences(text).into_iter().map(str::trim).collect();
        assert_eq!(all, ["It is 3.14.", "Is it?", "Yes!", "No", "发票到期。", "是吗？", "是"]);
        assert!(sentences("").is_empty());
    }

    /// A naive implementation of the rule, character by character.
    fn naive(text: &str) -> Vec<&str> {
        let (mut all, mut start, mut after_mark) = (Vec::new(), 0, false);
        for (at, char) in text.char_indices() {
            let end = match char {
                '\n' => at,
                '。' | '！' | '？' => at + char.len_utf8(),
                _ if after_mark && char.is_whitespace() => at,
                _ => {
                    after_mark = matches!(char, '.' | '!' | '?' | '؟' | '।');
                    continue;
                }
            };
            after_mark = false;
            all.push(&text[start..end]);
            start = end;
        }
        all.push(&text[start..]);
        all.retain(|sentence| !sentence.trim().is_empty());
        all
    }

    proptest! {
        #[test]
        fn they_are_those_of_the_rule(text in "([ab]|[.!?]|[ \n\t]|[。！？؟।]|[\u{a0}\u{3000}\u{2028}]|[éहあ]|\\PC){0,40}") {
            prop_assert_eq!(sentences(&text), naive(&text));
        }
    }
}
