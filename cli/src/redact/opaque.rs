//! Values that cannot be searched: encrypted, signed, or bytes in base64.

/// Names of values that only the provider can read, and of bytes.
const KEYS: &[&str] = &[
    "b64_json",
    "data",
    "encrypted_content",
    "file_data",
    "signature",
    "thinkingSignature",
    "thoughtSignature",
    "thought_signature",
];
/// Minimum length of a value with one of these names: shorter values are words.
const NAMED_BYTES_MIN: usize = 32;
/// Minimum length of base64 with any name: no key is this long.
const BYTES_MIN: usize = 1_024;

/// Number of bytes of `text`, the value of `key`, that cannot be searched; `None` if all of it can be.
pub(super) fn of(key: Option<&str>, text: &str) -> Option<usize> {
    let is_data_url = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
    let payload = match text.split_once(";base64,") {
        Some((_, payload)) if is_data_url => payload,
        _ if key.is_some_and(|key| KEYS.contains(&key)) && text.len() >= NAMED_BYTES_MIN => text,
        _ if text.len() >= BYTES_MIN => text,
        _ => return None,
    };
    is_base64(payload).then_some(text.len())
}

fn is_base64(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'='))
}
