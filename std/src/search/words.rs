//! Words in any script.

use unicode_segmentation::UnicodeSegmentation;

/// Calls `visit` with each word of a text, without regard to case. Chinese, Japanese and Korean, which do not set words apart as
/// one could look them up, give every two neighbouring characters; one that stands alone is itself.
pub(super) fn for_each_word(text: &str, visit: &mut dyn FnMut(&str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.find(is_cjk).unwrap_or(rest.len());
        let (before, from) = rest.split_at(plain);
        before.unicode_words().for_each(|word| visit(&folded(word)));
        let run = from.find(|char| !is_cjk(char)).unwrap_or(from.len());
        let (run, after) = from.split_at(run);
        for_each_pair(run, visit);
        rest = after;
    }
}

fn for_each_pair(run: &str, visit: &mut dyn FnMut(&str)) {
    let mut ends = run.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
    let Some((mut start, first_end)) = ends.next() else { return };
    let mut is_alone = true;
    for (next, end) in ends {
        is_alone = false;
        visit(run.get(start..end).unwrap_or_default());
        start = next;
    }
    if is_alone {
        visit(run.get(start..first_end).unwrap_or_default());
    }
}

/// Upper case first, so that what one script writes in one letter and another in two becomes the same (`ß`, `SS`).
fn folded(word: &str) -> String {
    word.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Han, Hiragana, Katakana and Hangul, by their blocks.
const fn is_cjk(char: char) -> bool {
    matches!(char,
        '\u{1100}'..='\u{11FF}' | '\u{3041}'..='\u{30FF}' | '\u{3130}'..='\u{318F}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, &mut |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_of_any_script() {
        assert_eq!(words("Don't STOP, Stra\u{df}e 3.14!"), ["don't", "stop", "strasse", "3.14"]);
        assert_eq!(words("\u{39f}\u{394}\u{39f}\u{3a3}"), words("\u{3bf}\u{3b4}\u{3bf}\u{3c2}"));
        assert_eq!(words("\u{6771}\u{4eac}\u{90fd}"), ["\u{6771}\u{4eac}", "\u{4eac}\u{90fd}"]);
        assert_eq!(words("Rust\u{8a9e}ok"), ["rust", "\u{8a9e}", "ok"]);
        assert!(words(" \u{1f600} -- ").is_empty());
    }
}
