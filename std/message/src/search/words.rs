//! Words in any script.

use unicode_segmentation::UnicodeSegmentation;

/// Calls `visit` with each word of a text, unchanged. Chinese, Japanese and Korean do not separate words: there
/// `visit` receives every two adjacent characters, or a single character between others.
pub(super) fn for_each_word(text: &str, mut visit: impl FnMut(&str)) {
    if text.chars().all(is_simple) {
        if !text.is_empty() {
            visit(text);
        }
        return;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.find(is_cjk).unwrap_or(rest.len());
        let (before, from) = rest.split_at(plain);
        if !before.is_empty() {
            before.unicode_words().for_each(&mut visit);
        }
        let run = from.find(|char| !is_cjk(char)).unwrap_or(from.len());
        let (run, after) = from.split_at(run);
        for_each_pair(run, &mut visit);
        rest = after;
    }
}

/// The characters of a word without regard to case.
///
/// Upper case comes first, so that a letter that is two letters in upper case becomes equal to these (`ß`, `SS`).
pub(super) fn folded(word: &str) -> impl Iterator<Item = char> {
    word.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

fn for_each_pair(run: &str, visit: &mut impl FnMut(&str)) {
    let mut ends = run.char_indices().map(|(at, c)| (at, at.saturating_add(c.len_utf8())));
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

/// Whether adjacent characters of this kind are always one word: letters and digits of Latin, and letters of
/// Cyrillic. These are most of the texts beyond ASCII with blanks between words. Other characters need the rules of
/// Unicode.
const fn is_simple(char: char) -> bool {
    matches!(char,
        '0'..='9' | 'A'..='Z' | 'a'..='z'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{24F}'
        | '\u{400}'..='\u{481}' | '\u{48A}'..='\u{52F}')
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
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(folded(word).collect()));
        words
    }

    #[test]
    fn words_of_any_script() {
        assert_eq!(words("Don't STOP, Stra\u{df}e 3.14!"), ["don't", "stop", "strasse", "3.14"]);
        assert_eq!(words("\u{39f}\u{394}\u{39f}\u{3a3}"), words("\u{3bf}\u{3b4}\u{3bf}\u{3c2}"));
        assert_eq!(words("\u{6771}\u{4eac}\u{90fd}"), ["\u{6771}\u{4eac}", "\u{4eac}\u{90fd}"]);
        assert_eq!(words("Rust\u{8a9e}ok"), ["rust", "\u{8a9e}", "ok"]);
        assert!(words(" \u{1f600} -- ").is_empty() && words("").is_empty());
    }

    #[test]
    fn simple_characters_are_one_word_by_the_rules_of_unicode() {
        let simple: Vec<char> = ('\0'..='\u{FFFF}').filter(|char| is_simple(*char)).collect();
        for one in &simple {
            for other in ['a', '7', 'ß', 'я', *one] {
                for word in [format!("{one}{other}"), format!("{other}{one}"), one.to_string()] {
                    assert!(word.unicode_words().eq([word.as_str()]), "{word}");
                }
            }
        }
        assert!(simple.len() > 700);
    }

    proptest! {
        #[test]
        fn words_are_those_of_unicode(text in "[A-Z0-9ÄöşЯя\u{301}'.·_ªΣа-г ]{0,12}") {
            prop_assert_eq!(words(&text), text.unicode_words().map(|word| folded(word).collect::<String>()).collect::<Vec<_>>());
        }
    }
}
