//! Any text under any name: redaction keeps the rest of the text in its place, and a second redaction finds nothing.
#![no_main]

use std::io::Write as _;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use regex::Regex;
use serde::de::IgnoredAny;

use program::redact::Redactor;

/// The only module of the program that this target needs. The library of the program does not export it.
#[path = "../../cli/src"]
mod program {
    #[expect(dead_code, reason = "the program uses all of it")]
    pub(crate) mod redact;
}

fuzz_target!(|bytes: &[u8]| {
    let Some((name, rest)) = bytes.split_first() else { return };
    let (name, text) = (NAMES[usize::from(*name) % NAMES.len()], written_out(rest));

    let mut redactor = Redactor::default();
    let done = redactor.value(name, &text);
    assert_eq!(done.is_some(), !redactor.found().redacted.is_empty());
    if let Some(done) = &done {
        assert_eq!(Redactor::default().value(name, done), None, "{done:?}");
        assert_left(&text, done, 0);
    }

    if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
        let done = Redactor::default().json(&text);
        assert_eq!(Redactor::default().json(&done), done);
        assert_json_left(&text, &done, 0);
        assert_eq!(by_pieces(&text), done);
    }
});

/// The names under which a value may stand.
const NAMES: &[Option<&str>] = &[
    None,
    Some("password"),
    Some("x_api_key"),
    Some("token"),
    Some("auth"),
    Some("cookie"),
    Some("signature"),
    Some("text"),
];

/// Meanings of the bytes that begin no ASCII character: words that rules search for, and characters that might hide
/// them.
const WORDS: &[&str] = &[
    "password",
    "passphrase: ",
    "secret",
    "api_key",
    "token",
    "PWD=",
    "auth",
    "Authorization: ",
    "Bearer ",
    "Digest ",
    "response=\"",
    "Cookie: ",
    "set-cookie\": [\"a=",
    "login u password ",
    "://u:",
    "@host",
    "sk-ant-",
    "sk-",
    "ghp_",
    "AKIAABCDEFGHIJ234567",
    "eyJhbGciOiJI",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "[redacted:",
    "[redacted:openai-key]",
    "[redacted:assignment]",
    "a1B2c3D4e5F6g7H8i9J0",
    "0a1b2c3d4e5f67890a1b2c3d4e5f67890a1b2c3d",
    "hunter2",
    "\\",
    "\\n",
    "\\\"",
    "\\u200b",
    "\\ud83d",
    "\\u0041",
    "\u{200b}",
    "\u{1b}[0m",
    "\u{ad}",
    "é",
    "日本",
    "{\"password\": \"",
    "\"}",
    "<input value=\"",
    "\" type=\"password\">",
    "<password>",
    "</password>",
    "identified by '",
    "h:5432:d:u:",
    "curl -u a:",
    "mysql -p",
    "?sig=",
    "12345678:AA",
    "psk=",
    ":fx",
    ".atlasv1.",
    "1Q~",
    "$2a$10$",
    "data:image/png;base64,",
    "=",
    "--token ",
];

/// The text that these bytes encode.
fn written_out(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte.checked_sub(128) {
            None => text.push(char::from(*byte)),
            Some(word) => text.push_str(WORDS[usize::from(word) % WORDS.len()]),
        }
    }
    text
}

static MARKER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[redacted:[a-z-]+\]").unwrap());

/// Asserts that the text outside of the markers is the same in both, in its order, from the beginning to the end.
fn assert_left(before: &str, after: &str, depth: u8) {
    if depth < NESTING_MAX && is_json(before) {
        return assert_json_left(before, after, depth + 1);
    }
    let pieces: Vec<&str> = MARKER.split(after).collect();
    let ((first, middle), last) = match &pieces[..] {
        [only] => return assert_eq!(*only, before),
        [first, middle @ .., last] => ((first, middle), last),
        [] => unreachable!("a split text has a part"),
    };
    let rest = before.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    let left =
        rest.and_then(|rest| middle.iter().try_fold(rest, |rest, piece| Some(rest.split_once(piece)?.1)));
    assert!(left.is_some(), "{before:?} has become {after:?}");
}

/// Both are JSON, and equal outside of their texts. The texts satisfy [`assert_left`].
fn assert_json_left(before: &str, after: &str, depth: u8) {
    assert!(serde_json::from_str::<IgnoredAny>(after).is_ok(), "{before:?} has become {after:?}");
    let ((frame, texts), (frame_after, texts_after)) = (parted(before), parted(after));
    assert_eq!((&frame, texts.len()), (&frame_after, texts_after.len()), "{before:?} has become {after:?}");
    for (text, text_after) in texts.into_iter().zip(texts_after).filter(|(text, after)| text != after) {
        // Half a surrogate pair is no text, and its replacement is written differently.
        if let Ok(text) = serde_json::from_str::<String>(text) {
            assert_left(&text, &serde_json::from_str::<String>(text_after).unwrap(), depth);
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '"']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// JSON without its string literals, and these literals.
fn parted(json: &str) -> (String, Vec<&str>) {
    static LITERAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*""#).unwrap());
    let literals = LITERAL.find_iter(json).map(|literal| literal.as_str()).collect();
    (LITERAL.replace_all(json, "\"\"").into_owned(), literals)
}

/// Redacts JSON that arrives in pieces.
fn by_pieces(json: &str) -> String {
    let (mut redactor, mut out) = (Redactor::default(), Vec::new());
    let mut writer = redactor.writer(&mut out);
    json.as_bytes().chunks(7).for_each(|piece| writer.write_all(piece).unwrap());
    writer.finish().unwrap();
    String::from_utf8(out).unwrap()
}

/// Maximum depth at which the program examines texts that are JSON.
const NESTING_MAX: u8 = 8;
