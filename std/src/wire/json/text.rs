//! JSON strings, decoded.

use std::borrow::Cow;

/// What the JSON string `raw`, quotes included, says: a slice of it where nothing is escaped.
///
/// Half a surrogate pair, which is what is left when a program cuts a text in the middle of an emoji, becomes U+FFFD:
/// the message is still readable, and its source text still has it.
pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    match serde_json::from_str::<String>(raw) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Owned(serde_json::from_str(&with_pairs_only(raw)).unwrap_or_default()),
    }
}

/// `raw` with every surrogate escape that is not part of a pair replaced.
fn with_pairs_only(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => escape.get(..12),
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => escape.get(..6),
            (None, _) => escape.get(..2),
        };
        out.push_str(taken.unwrap_or_default());
        rest = escape.get(taken.map_or(escape.len(), str::len)..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The code unit of the escape that `text` begins with, if it is of the form `\u1234`.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_escapes_is_borrowed() {
        assert!(matches!(decode("\"h\u{e9}llo\""), Cow::Borrowed("h\u{e9}llo")));
        assert_eq!(decode(r#""a\n\"b\"\\ud83d""#), "a\n\"b\"\\ud83d");
        assert_eq!(decode(r#""\ud83d\ude00""#), "\u{1f600}");
    }

    #[test]
    fn half_a_pair_becomes_the_replacement_character() {
        assert_eq!(decode(r#""a\ud83d""#), "a\u{fffd}");
        assert_eq!(decode(r#""\ude00b\ud83d\ude00\ud83d\n""#), "\u{fffd}b\u{1f600}\u{fffd}\n");
        assert_eq!(decode(r#""\ud83d\\ude00""#), "\u{fffd}\\ude00");
    }
}
