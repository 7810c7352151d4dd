//! Decodes and writes JSON strings.

use std::borrow::Cow;

use super::scan::{NEAR_BYTES, position};

/// The text of the JSON string `raw`, quotes included: a slice of `raw` if it has no escapes. `raw` has to be checked
/// JSON.
///
/// Half a surrogate pair becomes U+FFFD. A program leaves it when it cuts a text in the middle of an emoji. The message
/// is still readable, and its source text still has the half.
pub fn decode(raw: &str) -> Cow<'_, str> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    let mut next = position(b'\\', inner.as_bytes(), NEAR_BYTES);
    if next.is_none() {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, escape)) = next.and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        rest = match escape.as_bytes().get(1).and_then(|letter| short(*letter)) {
            Some(said) => {
                out.push(said);
                escape.get(2..).unwrap_or_default()
            }
            None => {
                let (character, after) = unescape(escape.get(1..).unwrap_or_default());
                out.push(character);
                after
            }
        };
        next = position(b'\\', rest.as_bytes(), NEAR_BYTES);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// A JSON string with the text `text`.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(text.len() / 8).saturating_add(2));
    push_quoted(&mut out, text);
    out
}

/// Writes a JSON string with the text `text`, with the escapes of `serde_json`.
pub fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_at_checked(plain_bytes(rest.as_bytes())) {
        out.push_str(plain);
        let mut characters = escaped.chars();
        match characters.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\t') => out.push_str("\\t"),
            Some('\r') => out.push_str("\\r"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(control) => {
                let digit = |number: u32| char::from_digit(number & 0xf, 16).unwrap_or_default();
                let control = u32::from(control);
                out.extend(['\\', 'u', '0', '0', digit(control >> 4), digit(control)]);
            }
            None => break,
        }
        rest = characters.as_str();
    }
    out.push('"');
}

/// Number of bytes that [`push_quoted`] writes.
pub(crate) fn quoted_bytes(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| matches!(byte, ..0x20 | b'"' | b'\\')).count();
    // Characters without an escape letter of their own, such as `\u001b`.
    let controls = text.bytes().filter(|byte| matches!(byte, ..8 | 11 | 14..0x20)).count();
    let lengths = [text.len(), escaped, controls.saturating_mul(4), 2];
    lengths.into_iter().fold(0, usize::saturating_add)
}

/// Number of bytes at the beginning of `text` that need no escape. The scan takes eight bytes at a time.
fn plain_bytes(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let is_plain = |eight: &[u8; 8]| {
        let word = u64::from_ne_bytes(*eight);
        let controls = word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word & HIGHS;
        let quotes = zeros(word ^ ONES.wrapping_mul(u64::from(b'"')));
        controls | quotes | zeros(word ^ ONES.wrapping_mul(u64::from(b'\\'))) == 0
    };
    let (words, _) = text.as_chunks::<8>();
    let words = words.iter().take_while(|eight| is_plain(eight)).count().saturating_mul(8);
    let rest = text.get(words..).unwrap_or_default();
    let is_plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
    words.saturating_add(rest.iter().take_while(is_plain).count())
}

/// The character for this letter after a backslash; `None` if the escape needs more than the letter.
pub(super) const fn short(letter: u8) -> Option<char> {
    Some(match letter {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        _ => return None,
    })
}

/// The first character of `escape`, which stood after a backslash and is no short escape, and the rest of `escape`.
fn unescape(escape: &str) -> (char, &str) {
    let mut characters = escape.chars();
    match characters.next() {
        Some('u') => unescape_units(characters.as_str()),
        itself => (itself.unwrap_or(char::REPLACEMENT_CHARACTER), characters.as_str()),
    }
}

/// The first character of `digits`, which stood after `\u`, alone or as a surrogate pair, and the rest.
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

/// The code unit at the beginning of `digits`.
fn unit(digits: &str) -> Option<u16> {
    u16::from_str_radix(digits.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_bytes_are_written_as_were_counted() {
        let all: String = (0..0x300).filter_map(char::from_u32).collect();
        for text in ["", "näher \"x\"\\\n\t\r\u{8}\u{c}", "\u{1b}[31mred\u{1b}[0m", &all] {
            assert_eq!(quoted_bytes(text), quote(text).len());
        }
    }

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
    fn what_is_written_is_what_serde_json_writes() {
        let all: String =
            (0..0x3000).filter_map(char::from_u32).chain(['\u{2028}', '\u{1f600}', '\u{ffff}']).collect();
        let mut texts = vec![all.clone(), String::new()];
        for character in all.chars().take(0x101) {
            // At each place of a word, and with each neighbour of what is escaped.
            texts.extend(
                (0..18).map(|at| format!("{}{character}{}", "x".repeat(at), "é\u{7f}y".repeat(at % 5))),
            );
        }
        for text in texts {
            assert_eq!(quote(&text), serde_json::to_string(&text).unwrap());
            assert_eq!(decode(&quote(&text)), text);
        }
    }

    #[test]
    fn half_a_pair_becomes_the_replacement_character() {
        assert_eq!(decode(r#""a\ud83d""#), "a\u{fffd}");
        assert_eq!(decode(r#""\ude00b\ud83d\ude00\ud83d\n""#), "\u{fffd}b\u{1f600}\u{fffd}\n");
        assert_eq!(decode(r#""\ud83d\\ude00""#), "\u{fffd}\\ude00");
    }
}
