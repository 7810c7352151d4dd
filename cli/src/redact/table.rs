//! What keys and tokens look like.
//!
//! A key has a prefix so that it can be found: the prefixes are those that the providers document, the lengths at least
//! what they issue, after gitleaks' rules (<https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml>, MIT) and
//! GitHub's list (<https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns>).
//! There is no crate that is only such a list; scanners bring engines and git with them.

use std::sync::LazyLock;

use regex::Regex;

/// One kind of secret.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) kind: &'static str,
    /// One of these is in every text that has one; without any, the pattern is not tried.
    signs: &'static [&'static str],
    /// Its group [`SECRET`] is the secret.
    pub(super) pattern: Regex,
    /// Whether what was found is one.
    pub(super) accepts: fn(&str) -> bool,
}

/// The group of a pattern that is replaced.
pub(super) const SECRET: &str = "secret";

/// Every kind of which a pattern is known, the special before the general.
pub(super) static TABLE: LazyLock<Vec<Rule>> =
    LazyLock::new(|| ROWS.iter().filter_map(|row| Rule::new(row)).collect());

/// A kind, its signs, its pattern, and what else must hold.
type Row = (&'static str, &'static [&'static str], &'static str, fn(&str) -> bool);

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // RFC 7468; the end may be missing where a tool has cut its output.
    ("private-key", &["PRIVATE KEY"],
     r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)", any),
    // https://docs.claude.com/en/api/admin-api: sk-ant-api03-.., sk-ant-admin01-.., sk-ant-oat01-..
    ("anthropic-key", &["sk-ant-"], r"sk-ant-[A-Za-z0-9_-]{16,}", any),
    // sk-.., sk-proj-.., sk-svcacct-..; OpenRouter's sk-or-v1-.. and DeepSeek's sk-.. too.
    ("openai-key", &["sk-"], r"sk-[A-Za-z0-9_-]{20,256}", has_digit),
    // https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/
    ("github-token", &["gh", "github_pat_"], r"gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}", any),
    ("gitlab-token", &["glpat-"], r"glpat-[A-Za-z0-9_.-]{20,}", any),
    // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    ("aws-access-key-id", &["AKIA", "ASIA", "ABIA", "ACCA"], r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", any),
    // Behind its id only: alone, it looks like any digest.
    ("aws-secret-key", &["AKIA", "ASIA", "redacted:aws-access-key-id"],
     r"(?:^|[^A-Za-z0-9/+])(?P<secret>[A-Za-z0-9/+]{40})(?:$|[^A-Za-z0-9/+=])", is_mixed),
    // https://cloud.google.com/docs/authentication/api-keys; OAuth access tokens begin with ya29.
    ("google-key", &["AIza", "ya29."], r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}", any),
    // https://api.slack.com/authentication/token-types
    ("slack-token", &["xox", "xapp-", "hooks.slack.com"],
     r"xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}|https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,}", any),
    ("stripe-key", &["k_live_", "k_test_"], r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}", any),
    ("huggingface-token", &["hf_"], r"hf_[A-Za-z0-9]{30,}", any),
    ("npm-token", &["npm_"], r"npm_[A-Za-z0-9]{36,}", any),
    ("pypi-token", &["pypi-"], r"pypi-[A-Za-z0-9_-]{50,}", any),
    // RFC 7519: two parts that begin with the base64 of `{"`, and a signature that may be empty.
    ("jwt", &["eyJ"], r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", any),
    // RFC 6750, RFC 7617; a word that follows `bearer` in a sentence has no digit.
    ("bearer-token", &["earer", "EARER"], r"(?i:bearer)[ \t]+(?P<secret>[A-Za-z0-9._~+/-]{8,}=*)", has_digit),
    ("basic-credentials", &["asic", "ASIC"], r"(?i:authorization)\W{1,8}(?i:basic)[ \t]+(?P<secret>[A-Za-z0-9+/]{8,}=*)", any),
    // RFC 3986, 3.2.1: the password in the address of a database.
    ("url-password", &["://"], r#"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/:@"'<>]{0,100}:(?P<secret>[^\s/@"'<>]{3,200})@"#, is_literal),
];

impl Rule {
    fn new((kind, signs, pattern, accepts): &Row) -> Option<Self> {
        let secret = match pattern.contains("(?P<secret>") {
            true => format!("(?:{pattern})"),
            false => format!("(?P<secret>{pattern})"),
        };
        // A break of a line in a text within a text is a letter behind a backslash: the key begins behind it.
        let pattern = Regex::new(&format!(r"(?:\b|\\[nrtbf]|^|\W){secret}")).ok()?;
        Some(Self { kind, signs, pattern, accepts: *accepts })
    }

    pub(super) fn may_be_in(&self, text: &str) -> bool {
        self.signs.iter().any(|sign| text.contains(sign))
    }
}

const fn any(_: &str) -> bool {
    true
}

fn has_digit(secret: &str) -> bool {
    secret.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether it is no digest in hexadecimal digits, and no path.
fn is_mixed(secret: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| secret.bytes().any(|byte| kind(&byte));
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

/// Whether it is not the name of a variable, or a mask.
fn is_literal(secret: &str) -> bool {
    !secret.starts_with(['$', '{', '%', '*', '<', '['])
        && !secret.bytes().all(|byte| byte == b'x' || byte == b'.')
}
