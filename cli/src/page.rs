//! The common parts of HTML pages: style, list of messages, content security policy.

use base64ct::{Base64, Encoding as _};
use sha2::{Digest as _, Sha256};

pub(crate) const STYLE: &str = include_str!("page/style.css");

/// Functions for the script of a page: a long list of messages.
pub(crate) const LIST_SCRIPT: &str = include_str!("page/list.js");

/// The styles and scripts of a page, and whether it may send requests to its server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy<'a> {
    pub(crate) styles: &'a [&'a str],
    pub(crate) scripts: &'a [&'a str],
    pub(crate) asks: bool,
}

impl Policy<'_> {
    /// The value of `Content-Security-Policy`: only these texts, and nothing from any other place.
    pub(crate) fn to_header(self) -> String {
        let hash =
            |text: &str| format!(" 'sha256-{}'", Base64::encode_string(&Sha256::digest(text.as_bytes())));
        let [styles, scripts] =
            [self.styles, self.scripts].map(|texts| texts.iter().map(|text| hash(text)).collect::<String>());
        let connect = if self.asks { "; connect-src 'self'" } else { "" };
        format!(
            "default-src 'none'; style-src{styles}; script-src{scripts}{connect}; base-uri 'none'; form-action 'none'"
        )
    }
}
