//! The address of a service, and the check whether a key may be sent there.

use core::net::IpAddr;

use reqwest::Url;

/// The address of a service. A key is sent to another machine only with encryption, unless the caller allows it.
///
/// ```
/// use epitome_http::Address;
///
/// assert_eq!(Address::new("https://notes.example/v1/").url(true), Ok("https://notes.example/v1"));
/// let within = Address::new("http://notes.example");
/// assert!(within.url(false).is_ok() && within.url(true).is_err());
/// let within = within.with_plain_http();
/// assert!(within.url(true).is_ok() && within.moved("http://letters.example").url(true).is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct Address {
    url: Result<Box<str>, &'static str>,
    /// Whether the connection is not encrypted and leads to another machine.
    is_plain: bool,
    pub(crate) is_plain_allowed: bool,
}

impl Address {
    /// Parses an address: `http://` or `https://` with a host, without a user, a query or a fragment.
    #[must_use]
    pub fn new(url: &str) -> Self {
        let parsed = Url::parse(url).ok().filter(is_of_a_service);
        let is_plain = parsed.as_ref().is_some_and(is_plain);
        // The error does not contain the address, which may have a password in it.
        let url = parsed.map(|_| url.trim_end_matches('/').into()).ok_or(
            "the address is http:// or https:// with a host, and without a user, a query or a fragment",
        );
        Self { url, is_plain, is_plain_allowed: false }
    }

    /// Allows a key to be sent without encryption to another machine: only for a network that you trust.
    #[must_use]
    pub const fn with_plain_http(mut self) -> Self {
        self.is_plain_allowed = true;
        self
    }

    /// Makes another address with the same permission for keys.
    #[must_use]
    pub fn moved(self, url: &str) -> Self {
        Self { is_plain_allowed: self.is_plain_allowed, ..Self::new(url) }
    }

    /// The URL without a slash at its end.
    ///
    /// # Errors
    /// A description of the fault, without any part of the address; or that the key would be sent without encryption.
    pub fn url(&self, has_key: bool) -> Result<&str, &'static str> {
        if has_key && self.is_plain && !self.is_plain_allowed {
            return Err(
                "the key would go to another machine without encryption: give https://, or with_plain_http",
            );
        }
        self.url.as_deref().map_err(|wrong| *wrong)
    }
}

fn is_of_a_service(url: &Url) -> bool {
    let has_more = url.query().is_some() || url.fragment().is_some();
    let has_user = !url.username().is_empty() || url.password().is_some();
    matches!(url.scheme(), "http" | "https") && url.has_host() && !has_more && !has_user
}

fn is_plain(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback());
    url.scheme() == "http" && !is_here
}
