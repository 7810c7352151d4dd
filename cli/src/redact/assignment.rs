//! Secrets that are known by the name that they are given: `password=..`, `api_key: ..`, `"client_secret": ".."`.
//!
//! The value may be any word, so that what is no value has to be told: names of types and variables, calls, masks. In doubt
//! a value is taken for a secret where it is quoted or stands behind `=`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::table::SECRET;

pub(super) const KIND: &str = "assignment";

/// The names, at the end of longer ones too: `DB_PASSWORD`, `openai.api-key`.
const NAMES: &str = "password|passwd|passphrase|secret|api[_-]?key|apikey|access[_-]?key|secret[_-]?key|\
                     private[_-]?key|(?:access|auth|refresh|session|bearer|api)[_-]?token|client[_-]?secret";

/// The value in quotes, and then bare.
static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let name = format!(r#"(?i:{NAMES})\\*["'`]?[ \t]{{0,4}}(?P<sep>:=|=>|=|:)[ \t]{{0,4}}"#);
    let quoted = format!(r#"{name}\\*(?P<quote>["'`])(?P<secret>[^\s"'`\\]+)\\*["'`]"#);
    let bare = format!(r#"{name}(?P<secret>[^\s"'`,;&|<>(){{}}\[\]\\]+)"#);
    [quoted, bare].iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("(?i)(?:{NAMES})$")).ok());

pub(super) fn patterns() -> &'static [Regex] {
    &PATTERNS
}

/// Whether what was found in `text` is a secret.
pub(super) fn is_secret(text: &str, found: &Captures<'_>) -> bool {
    let Some(secret) = found.name(SECRET) else { return false };
    let value = secret.as_str();
    // No word is so long. And what is refused is searched again: that has to be short.
    if value.len() > WORD_BYTES_MAX {
        return true;
    }
    if !is_value(value) {
        return false;
    }
    if found.name("quote").is_some() {
        return true;
    }
    let rest = text.get(secret.end()..).unwrap_or_default();
    let next = rest.chars().next();
    // A call, an index, a template, and the path of a variable are how code gets a secret, not what it is.
    if matches!(next, Some('(' | '[' | '{' | '<')) || is_path(value) {
        return false;
    }
    let is_word = value.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    // In a sentence, `password: the` is no password; on a line of its own, it is one.
    !is_word || found.name("sep").is_some_and(|sep| sep.as_str() != ":") || ends_line(rest)
}

/// Whether a line ends here; in a text within a text, a break is a letter behind a backslash.
fn ends_line(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['\n', '\r']) || rest.starts_with("\\n") || rest.starts_with("\\r")
}

/// Whether the JSON text `value` under `key` is a secret.
pub(super) fn is_secret_under(key: &str, value: &str) -> bool {
    KEY.as_ref().is_some_and(|names| names.is_match(key))
        && value.len() <= VALUE_BYTES_MAX
        && !value.contains(char::is_whitespace)
        && !value.contains("[redacted:")
        && is_value(value)
}

/// Shorter ones are words such as `no`.
const VALUE_BYTES_MIN: usize = 4;
/// Names of types and variables are shorter.
const WORD_BYTES_MAX: usize = 256;
/// What is longer than any key is a text of another kind.
const VALUE_BYTES_MAX: usize = 4_096;

/// Whether it is not a type, a state, the name of a variable, or a mask.
fn is_value(value: &str) -> bool {
    let is_mask = value.bytes().all(|byte| matches!(byte, b'*' | b'x' | b'X' | b'.' | b'-' | b'_' | b'#'));
    value.len() >= VALUE_BYTES_MIN
        && !is_mask
        && !value.ends_with("..")
        && !value.starts_with(['$', '%', '=', '<', '{', '[', '@'])
        && !NO_VALUES
            .iter()
            .any(|word| value.trim_end_matches(['.', ':', '?', '!']).eq_ignore_ascii_case(word))
}

/// What stands behind a name without being its value: types, states and words of documentation.
const NO_VALUES: &[&str] = &[
    "any",
    "array",
    "bool",
    "boolean",
    "bytes",
    "char",
    "const",
    "default",
    "false",
    "float",
    "integer",
    "none",
    "null",
    "number",
    "object",
    "option",
    "optional",
    "password",
    "redacted",
    "required",
    "secret",
    "static",
    "str",
    "string",
    "text",
    "token",
    "true",
    "undefined",
    "unknown",
    "value",
    "void",
];

/// Whether it is names with points between them: `settings.password`, `Self::KEY`.
fn is_path(value: &str) -> bool {
    let names = value.split(['.', ':']).filter(|name| !name.is_empty());
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    value.contains(['.', ':']) && names.clone().count() > 1 && names.clone().all(is_name)
}
