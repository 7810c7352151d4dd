//! Secrets that are known by their surroundings: their name (`password=..`, `"client_secret": ".."`), a header, the
//! option of a command, the place in an address.
//!
//! The value may be any word, so that the rules exclude other words: names of types and variables, calls, masks. In
//! doubt a value counts as a secret if it is quoted or follows `=`.

use std::sync::LazyLock;

use regex::Regex;

use super::scan::{Hit, Row, Rules};
use super::table::{has_digit, has_long_run, is_exact};
use super::words::{NO_VALUES, PROSE};

pub(super) const ASSIGNMENT: &str = "assignment";

/// The names of secrets, also at the end of longer names: `DB_PASSWORD`, `openai.api-key`.
macro_rules! names {
    () => {
        r"(?i:password|passwd|passphrase|passwort|secret|api[_-]?key|apikey|access[_-]?key|account[_-]?key|secret[_-]?key|shared[_-]?key|private[_-]?key|signing[_-]?key|(?:access|auth|refresh|session|security|bearer|api|private|bot)[_-]?token|client[_-]?secret)"
    };
}

/// Names with other meanings too: their value is a secret only if it looks like one.
macro_rules! weak_names {
    () => {
        "(?i:token|pwd|auth|credentials?)"
    };
}

/// The text between a name and its value.
macro_rules! sign {
    () => {
        r#"\\{0,8}["'`]?[ \t]{0,4}(?::=|=>|\?=|=|:)[ \t]{0,4}"#
    };
}

/// The value of a form's field, with the text up to the next attribute.
macro_rules! value_first {
    () => {
        r#"(?:[^<>]{0,200}?[ \t])?(?i:value)[ \t]?=[ \t]?\\{0,8}["'](?P<secret>[^"'<>\\\r\n]{4,})\\{0,8}["'](?:[^<>]{0,200}?)[ \t]"#
    };
}

macro_rules! bare {
    () => {
        r#"(?P<secret>[^\s"'`,;&|<>(){}\[\]\\][^\s"'`,;&|<>(){}\[\]\\]*)"#
    };
}

const NAME_SIGNS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "secret",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "account_key",
    "account-key",
    "accountkey",
    "shared_key",
    "shared-key",
    "sharedkey",
    "private_key",
    "private-key",
    "privatekey",
    "signing_key",
    "signing-key",
    "signingkey",
    "access_token",
    "access-token",
    "accesstoken",
    "auth_token",
    "auth-token",
    "authtoken",
    "refresh_token",
    "refresh-token",
    "refreshtoken",
    "session_token",
    "session-token",
    "sessiontoken",
    "security_token",
    "security-token",
    "securitytoken",
    "bearer_token",
    "bearer-token",
    "bearertoken",
    "api_token",
    "api-token",
    "apitoken",
    "private_token",
    "private-token",
    "privatetoken",
    "bot_token",
    "bot-token",
    "bottoken",
];
const WEAK_SIGNS: &[&str] = &["token", "pwd", "auth", "credential"];

pub(super) static CONTEXTS: LazyLock<Rules> = LazyLock::new(|| Rules::new(ROWS, false));

static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(concat!(names!(), "$")).ok());
static WEAK_KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(concat!(weak_names!(), "$")).ok());
static HEADER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)^(?:(?:proxy-)?authorization|(?:set-)?cookie)$").ok());

const fn row(
    kind: &'static str,
    signs: &'static [&'static str],
    pattern: &'static str,
    accepts: fn(&Hit<'_>) -> bool,
) -> Row {
    Row { kind, signs, back: 0, pattern, accepts }
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // RFC 7616: in a digest, the field that is made of the password; the rest is no secret.
    row("authorization", &["authorization"],
        r#"(?i:authorization)\\{0,8}["'`]?[ \t]{0,4}[:=,][ \t]{0,4}\\{0,8}["'`]?(?i:digest)[ \t][^\r\n]{0,480}?[ ,](?i:response)=\\{0,8}["'](?P<secret>[A-Fa-f0-9]{16,})"#, any),
    // RFC 6750, RFC 7617, and schemes of vendors; the value alone is a secret too.
    row("authorization", &["authorization"],
        r#"(?i:authorization)\\{0,8}["'`]?[ \t]{0,4}[:=,][ \t]{0,4}\\{0,8}["'`]?(?i:basic|bearer|token|apikey|api-key|key|bot|negotiate|ssws)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/:=-]{3,})"#, is_literal_word),
    row("bearer-token", &["bearer"], r"(?i:bearer)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/-]{8,}={0,2})", is_random),
    row("authorization", &["authorization"], r#"(?i:authorization)\\{0,8}["'`]?[ \t]{0,4}[:=][ \t]{0,4}\\{0,8}["'`]?(?P<secret>[A-Za-z0-9._~+/=-]{16,})"#, is_random),
    // RFC 3986, 3.2.1. A password may have `@` and `/` in it, a port has digits only.
    row("url-password", &["://"], r#"://[^\s/:@"'<>]{0,100}:(?P<secret>[^\s"'<>`]*[^\s"'<>/`])@[A-Za-z0-9\[.$_%-]"#, is_url_password),
    row(ASSIGNMENT, NAME_SIGNS, concat!(names!(), sign!(), r#"\\{0,8}"(?P<secret>[^"\\\r\n]{4,})\\{0,8}""#), is_quoted),
    row(ASSIGNMENT, NAME_SIGNS, concat!(names!(), sign!(), r"\\{0,8}['`](?P<secret>[^'`\\\r\n]{4,})\\{0,8}['`]"), is_quoted),
    row(ASSIGNMENT, NAME_SIGNS, concat!(names!(), sign!(), bare!()), is_bare),
    row(ASSIGNMENT, WEAK_SIGNS, concat!(weak_names!(), sign!(), r#"\\{0,8}["'`](?P<secret>[^\s"'`\\]{8,})\\{0,8}["'`]"#), is_random),
    row(ASSIGNMENT, WEAK_SIGNS, concat!(weak_names!(), sign!(), r#"(?P<secret>[^\s"'`,;&|<>(){}\[\]\\=]+={0,2})"#), is_weak_bare),
    // Options of commands.
    row(ASSIGNMENT, NAME_SIGNS, concat!(names!(), r#"[ \t]{1,4}["']?"#, bare!()), is_option),
    row(ASSIGNMENT, WEAK_SIGNS, concat!(weak_names!(), r#"[ \t]{1,4}["']?"#, bare!()), is_option),
    row("command-password", &[" -u", " --user"], r#" (?:-u|--user)[ =]{0,4}["']?[^\s:"']{1,128}:(?P<secret>[^\s"']{1,})"#, |hit| is_command(hit, &["curl"])),
    row("command-password", &[" -p"], r#" -p[ ]?["']?(?P<secret>[^\s"'-][^\s"']{3,})"#, |hit| is_command(hit, &["mysql", "mariadb", "sshpass"])),
    // XML and HTML.
    row(ASSIGNMENT, NAME_SIGNS, concat!(names!(), r"(?:[ \t][^<>]*)?>(?P<secret>[^<>\r\n]{4,})</"), is_quoted),
    row(ASSIGNMENT, NAME_SIGNS, concat!(names!(), r#"["']?(?:[ \t][^<>\r\n]*?)?[ \t]value[ \t]?=[ \t]?["'](?P<secret>[^"'<>\r\n]{4,})["']"#), is_quoted),
    row(ASSIGNMENT, &["<input"], concat!(r"(?i:<input)[ \t]", value_first!(), r#"(?i:type)[ \t]?=[ \t]?\\{0,8}["']?(?i:password)"#), is_quoted),
    row(ASSIGNMENT, &["<input"], concat!(r"(?i:<input)[ \t]", value_first!(), r#"(?i:name|id)[ \t]?=[ \t]?\\{0,8}["']?[A-Za-z0-9_.-]{0,64}?"#, names!(), r#"\\{0,8}["'/ >]"#), is_quoted),
    // Databases: statements of SQL, and addresses that are lists of settings.
    row(ASSIGNMENT, &["identified"], r#"(?i:identified)[ \t]{1,4}(?:(?i:with)[ \t]{1,4}[A-Za-z0-9_'"`]{1,64}[ \t]{1,4})?(?i:by|as)[ \t]{1,4}\\{0,8}["'](?P<secret>[^"'\\\r\n]{3,})\\{0,8}["']"#, |hit| is_value(hit.secret)),
    row(ASSIGNMENT, &["with", "encrypted", "login"], r"(?i:with|encrypted|login)[ \t]{1,4}(?i:password)[ \t]{1,4}\\{0,8}'(?P<secret>[^'\\\r\n]{3,})\\{0,8}'", |hit| is_value(hit.secret)),
    row(ASSIGNMENT, &["pwd="], r#"(?i:pwd)=(?P<secret>[^\s"'`,;&|<>(){}\[\]\\]{3,})"#, is_setting),
    // wpa_supplicant.conf(5).
    row(ASSIGNMENT, &["psk="], r#"(?i:psk)=\\{0,8}["'](?P<secret>[^"'\\\r\n]{8,})\\{0,8}["']"#, |hit| is_value(hit.secret)),
    row(ASSIGNMENT, &["psk="], r"(?i:psk)=(?P<secret>[A-Fa-f0-9]{64})", any),
    // Headers in JSON and in code.
    row("cookie", &["cookie\"", "cookie'", "cookie\\"], r#"(?i:cookie)\\{0,8}["'][ \t]{0,4}[:=,][ \t]{0,4}\[?\s{0,16}\\{0,8}["'](?P<secret>[A-Za-z0-9_.-]{1,64}=[^\r\n"'\\]+)"#, any),
    // Files of passwords: .netrc, .pgpass.
    row(ASSIGNMENT, &["login "], r"login [ \t]{0,4}\S{1,128}\s{1,8}password [ \t]{0,4}(?P<secret>\S{3,})", any),
    row(ASSIGNMENT, &[":5432:", ":5433:", ":6432:", ":*:"], r":[0-9*]{1,5}:[^\s:]{1,64}:[^\s:]{1,64}:(?P<secret>[^\s:]{3,})", begins_line),
    // config.json of Docker: the base64 of a name and a password.
    row(ASSIGNMENT, &["auth"], r#"auth\\{0,8}"[ \t]{0,4}:[ \t]{0,4}\\{0,8}"(?P<secret>[A-Za-z0-9+/]{8,}={0,2})\\{0,8}""#, |hit| is_base64(hit.secret)),
    // https://core.telegram.org/bots/tutorial: after the number of a bot.
    row("telegram-token", &[":AA"], r":(?P<secret>AA[A-Za-z0-9_-]{32,34})", |hit| is_exact(hit) && follows_number(hit.before)),
    // https://learn.microsoft.com/azure/storage/common/storage-sas-overview
    row("azure-signature", &["?sig=", "&sig="], r"[?&]sig=(?P<secret>[A-Za-z0-9%+/]{30,}={0,2})", any),
];

const fn any(_: &Hit<'_>) -> bool {
    true
}

fn is_literal_word(hit: &Hit<'_>) -> bool {
    is_value(hit.secret)
}

/// Whether the value looks like a key rather than a word.
fn is_random(hit: &Hit<'_>) -> bool {
    looks_random(hit.secret)
}

fn looks_random(value: &str) -> bool {
    let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    value.len() >= KEY_BYTES_MIN
        && is_value(value)
        && ((has_digit(value) && has_letter) || has_long_run(value))
        && !value.starts_with(['/', '~', '.'])
        && !is_path(value)
}

/// Whether the text between quotes is a value rather than words for a reader.
fn is_quoted(hit: &Hit<'_>) -> bool {
    let value = hit.secret.trim();
    is_value(value)
        && !is_constant(value)
        && (!value.contains(char::is_whitespace) || (takes_phrase(hit.lead) && is_phrase(value)))
}

/// Whether a value with this name may have blanks: the name begins or ends with such a word.
fn takes_phrase(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "passphrase", "passwort"]
        .iter()
        .any(|word| name.starts_with(word) || name.ends_with(word))
}

/// Whether words are a pass phrase rather than a sentence, a label or code.
fn is_phrase(value: &str) -> bool {
    value.len() <= PHRASE_BYTES_MAX
        && !value.ends_with(['.', ':', '?', '!', '…'])
        && !value.contains(['{', '}', '$', '%', '<', '>', '(', ')', '=', ',', '[', ']'])
        && !value.contains("[redacted:")
        && !value.split_whitespace().any(|word| PROSE.iter().any(|prose| word.eq_ignore_ascii_case(prose)))
}

/// Whether a value without quotes is a secret: a call, an index, a template or the path of a variable in code is none.
fn is_bare(hit: &Hit<'_>) -> bool {
    let value = hit.secret;
    // No word is this long.
    if value.len() > WORD_BYTES_MAX {
        return true;
    }
    if !is_value(value) || hit.after.starts_with(['(', '[', '{', '<']) || is_path(value) || goes_on(hit.after)
    {
        return false;
    }
    let object = hit.before.rsplit(char::is_whitespace).next().unwrap_or_default();
    if is_word(value) && OBJECTS.iter().any(|own| object.starts_with(own)) {
        return false;
    }
    // In a sentence, `password: the` is no password; at the end of a line, it is one.
    !is_word(value) || hit.lead.trim_end().ends_with('=') || ends_line(hit.after)
}

/// Whether the value of a name such as `token` is a secret: it looks like a key, or it is the value of an environment
/// variable.
fn is_weak_bare(hit: &Hit<'_>) -> bool {
    let is_code = hit.after.starts_with(['(', '[', '{', '<']);
    let is_variable = hit.lead.trim_start_matches(|one: char| one.is_ascii_uppercase()) == "=";
    let has_other = || !hit.secret.bytes().all(|byte| byte.is_ascii_digit());
    !is_code
        && !hit.secret.starts_with(':')
        && (looks_random(hit.secret) || (is_variable && has_other() && is_bare(hit) && !is_file(hit.secret)))
}

/// Whether the value is one of several settings with semicolons between them, as in the address of a database.
fn is_setting(hit: &Hit<'_>) -> bool {
    (hit.before.trim_end().ends_with(';') || hit.after.starts_with(';'))
        && is_value(hit.secret)
        && !is_file(hit.secret)
}

/// Whether the value is the path of a file, as in the variable `PWD`.
fn is_file(value: &str) -> bool {
    value.starts_with(['/', '~', '.']) || value.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/")
}

/// Whether the name is an option of a command, and its value is no word of a sentence or a manual.
fn is_option(hit: &Hit<'_>) -> bool {
    let option = hit.before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_placeholder = !hit.secret.bytes().any(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    option.starts_with("--")
        && is_value(hit.secret)
        && !hit.secret.starts_with('-')
        && !is_placeholder
        && !is_path(hit.secret)
        && (!is_word(hit.secret) || hit.lead.ends_with(['"', '\'']) || ends_line(hit.after))
}

/// Whether the line contains one of these commands.
fn is_command(hit: &Hit<'_>, commands: &[&str]) -> bool {
    let line = hit.before.rsplit('\n').next().unwrap_or_default();
    commands.iter().any(|command| line.contains(command)) && is_value(hit.secret)
}

/// Whether only the name of a host precedes the match on its line.
fn begins_line(hit: &Hit<'_>) -> bool {
    let host = hit.before.rsplit('\n').next().unwrap_or_default();
    !host.is_empty() && !host.contains([' ', '\t', ':', '/', '"']) && is_value(hit.secret)
}

/// Whether `before` ends with a number of eight digits or more.
fn follows_number(before: &str) -> bool {
    before.bytes().rev().take_while(u8::is_ascii_digit).count() >= 8
}

/// Whether the value is base64 rather than a word. Its length is a multiple of four, at least [`KEY_BYTES_MIN`]. At
/// least two capitals follow small letters in it, or it ends with `=`.
fn is_base64(value: &str) -> bool {
    let turns = value.as_bytes().windows(2).filter(|two| matches!(two, [b'a'..=b'z', b'A'..=b'Z'])).count();
    value.len().is_multiple_of(4) && value.len() >= KEY_BYTES_MIN && (turns >= 2 || value.ends_with('='))
}

/// Whether the value is not the name of a variable, a mask, or a port.
fn is_url_password(hit: &Hit<'_>) -> bool {
    let first = hit.secret.split('/').next().unwrap_or_default();
    let is_port = first.len() < hit.secret.len() && first.bytes().all(|byte| byte.is_ascii_digit());
    hit.secret.len() >= 3
        && !is_port
        && !hit.secret.starts_with(['$', '{', '%', '*', '<', '['])
        && !hit.secret.bytes().all(|byte| byte == b'x' || byte == b'.')
}

/// Whether a line ends here. In a text within a text, a line break is a letter after a backslash.
fn ends_line(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['\n', '\r']) || rest.starts_with("\\n") || rest.starts_with("\\r")
}

/// Whether the JSON text `value` under `key` is a secret.
pub(super) fn is_secret_under(key: &str, value: &str) -> bool {
    let is_key = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(key));
    let has_blank = value.contains(char::is_whitespace);
    if value.len() > VALUE_BYTES_MAX || value.contains("[redacted:") || !is_value(value) {
        return false;
    }
    (is_key(&KEY) && (!has_blank || (takes_phrase(key) && is_phrase(value))))
        || (is_key(&WEAK_KEY)
            && !has_blank
            && (looks_random(value) || (key.ends_with("auth") && is_base64(value))))
        || (is_key(&HEADER)
            && value.len() >= KEY_BYTES_MIN
            && (has_blank || value.contains('=') || looks_random(value)))
}

/// Whether `key` names a header, so that each value in a list under it is a value of that header.
pub(super) fn is_header(key: &str) -> bool {
    HEADER.as_ref().is_some_and(|header| header.is_match(key))
}

/// Minimum length of a value: shorter ones are words such as `no`.
const VALUE_BYTES_MIN: usize = 4;
/// Minimum length of a key.
const KEY_BYTES_MIN: usize = 8;
/// Maximum length of a word: names of types and variables are shorter.
const WORD_BYTES_MAX: usize = 256;
/// Maximum length of a pass phrase: sentences are longer.
const PHRASE_BYTES_MAX: usize = 100;
/// Maximum length of a value, longer than any key: a longer text is of another kind.
const VALUE_BYTES_MAX: usize = 4_096;

/// Whether the value is not a type, a state, the name of a variable, or a mask.
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

fn is_word(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

/// Whether the value is names with points between them: `settings.password`, `Self::KEY`, `node.colon2_token`.
fn is_path(value: &str) -> bool {
    let names = value.split(['.', ':']).filter(|name| !name.is_empty());
    value.contains(['.', ':']) && names.clone().count() > 1 && names.clone().all(is_name)
}

/// Whether this is the name of a variable: a word, in which one digit may precede `_` and the next word.
fn is_name(name: &str) -> bool {
    match name.split_once(|one: char| one.is_ascii_digit()) {
        Some((word, rest)) => !word.is_empty() && is_word(word) && rest.starts_with('_') && is_word(rest),
        None => is_word(name),
    }
}

/// Whether the value is the name of a constant: words in capitals with `_` between them. With one `_` it ends with
/// `_SECRET`. With more, it has no digits or contains `_SECRET_`.
fn is_constant(value: &str) -> bool {
    let mut bytes = value.bytes();
    bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && match value.matches('_').count() {
            0 => false,
            1 => value.ends_with("_SECRET"),
            _ => !has_digit(value) || value.contains("_SECRET_"),
        }
}

/// Whether a call on the value follows after white space: then it is code.
fn goes_on(after: &str) -> bool {
    let next = after.trim_start();
    next.len() < after.len() && next.starts_with('.') && !next.starts_with("..")
}

/// Names of the current object in code.
const OBJECTS: &[&str] = &["self.", "this."];
