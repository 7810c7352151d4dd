//! The sentences of a text.

/// Calls `visit` with each sentence of a text, in order.
///
/// A sentence ends with a line; behind a full stop, a question mark or an exclamation mark that white space follows; and behind those of
/// Chinese, Japanese and Korean. White space alone is no sentence.
pub(super) fn for_each_sentence(text: &str, visit: &mut dyn FnMut(&str)) {
    let (mut start, mut after_mark) = (0, false);
    for (at, char) in text.char_indices() {
        let end = match char {
            '\n' => at,
            '。' | '！' | '？' => at.saturating_add(char.len_utf8()),
            _ if after_mark && char.is_whitespace() => at,
            _ => {
                after_mark = matches!(char, '.' | '!' | '?' | '؟' | '।');
                continue;
            }
        };
        after_mark = false;
        visit_one(text.get(start..end), visit);
        start = end;
    }
    visit_one(text.get(start..), visit);
}

fn visit_one(sentence: Option<&str>, visit: &mut dyn FnMut(&str)) {
    if let Some(sentence) = sentence.filter(|sentence| !sentence.trim().is_empty()) {
        visit(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_behind_marks_and_with_lines() {
        let mut all = Vec::new();
        let text = "It is 3.14. Is it?\nYes!  No\n\n  \n发票到期。是吗？是";
        for_each_sentence(text, &mut |sentence| all.push(sentence.trim().to_owned()));
        assert_eq!(all, ["It is 3.14.", "Is it?", "Yes!", "No", "发票到期。", "是吗？", "是"]);
        for_each_sentence("", &mut |sentence| panic!("{sentence}"));
    }
}
