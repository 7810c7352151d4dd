//! JSON strings, decoded.

use std::borrow::Cow;

use memchr::memchr;

/// What the JSON string `raw`, quotes included, says: a slice of it where nothing is escaped. `raw` has been checked to
/// be JSON.
///
/// Half a surrogate pair, which is what is left when a program cuts a text in the middle of an emoji, becomes U+FFFD:
/// the message is still readable, and its source text still has it.
pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    let Some(first) = memchr(b'\\', inner.as_bytes()) else { return Cow::Borrowed(inner) };
    let mut out = String::with_capacity(inner.len());
    let (mut rest, mut next) = (inner, Some(first));
    while let Some((before, escape)) = next.and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let (character, after) = unescape(escape.get(1..).unwrap_or_default());
        out.push(character);
        (rest, next) = (after, memchr(b'\\', after.as_bytes()));
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character that `escape`, which stood after a backslash, begins with, and what follows it.
fn unescape(escape: &str) -> (char, &str) {
    let mut characters = escape.chars();
    let character = match characters.next() {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('u') => return unescape_units(characters.as_str()),
        Some(itself) => itself,
        None => char::REPLACEMENT_CHARACTER,
    };
    (character, characters.as_str())
}

/// The character that `digits`, which stood after `\u`, begins with, alone or as a surrogate pair, and what follows.
fn unescape_units(digits: &str) -> (char, &str) {
    let after = digits.get(4..).unwrap_or_default();
    let Some(first) = unit(digits) else { return (char::REPLACEMENT_CHARACTER, after) };
    if let Some(character) = char::from_u32(u32::from(first)) {
        return (character, after);
    }
    let second = after.strip_prefix("\\u").and_then(unit);
    match second.and_then(|second| char::decode_utf16([first, second]).next()?.ok()) {
        Some(pair) => (pair, after.get(6..).unwrap_or_default()),
        None => (char::REPLACEMENT_CHARACTER, after),
    }
}

/// The code unit that `digits` begins with.
fn unit(digits: &str) -> Option<u16> {
    u16::from_str_radix(digits.get(..4)?, 16).ok()
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
    fn every_escape_means_what_serde_json_says() {
        let escapes = "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\u20AC\\uD83D\\uDE00 \u{1f600}\\\\n\"";
        assert_eq!(decode(escapes), serde_json::from_str::<String>(escapes).unwrap());
    }

    #[test]
    fn half_a_pair_becomes_the_replacement_character() {
        assert_eq!(decode(r#""a\ud83d""#), "a\u{fffd}");
        assert_eq!(decode(r#""\ude00b\ud83d\ude00\ud83d\n""#), "\u{fffd}b\u{1f600}\u{fffd}\n");
        assert_eq!(decode(r#""\ud83d\\ude00""#), "\u{fffd}\\ude00");
    }
}
