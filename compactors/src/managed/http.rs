//! HTTP requests, the same for all vendors.

use core::time::Duration;
use std::format;
use std::string::String;
use std::vec::Vec;

use epitome_http::Address;
use epitome_std::message::Str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret as _, SecretString};

use super::refusal::{refused, retry_after};
use super::{ServiceError, ServiceErrorKind};

/// The address of a vendor, with its key. It has no debug output.
#[derive(Clone)]
pub(super) struct Endpoint {
    http: Client,
    provider: Str,
    address: Address,
    auth: Auth,
    key: SecretString,
    headers: HeaderMap,
}

/// The place of the key in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Auth {
    /// In `authorization`.
    Bearer,
    /// In a separate header.
    Header(&'static str),
}

/// Time limit of one request: the service reads a whole window and writes thousands of tokens.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum bytes of a response. No response is larger: it contains the messages of the user and one item.
const ANSWER_BYTES_MAX: usize = 64 << 20;

impl Endpoint {
    /// The endpoint of `provider` at this base URL. It follows no redirect, so that the key goes to no other host.
    pub(super) fn new(
        provider: &str,
        base_url: &str,
        auth: Auth,
        key: SecretString,
    ) -> Result<Self, ServiceError> {
        let http = Client::builder().timeout(TIMEOUT).redirect(Policy::none()).build();
        let http = http.map_err(|error| {
            let context = format!("{provider}: there is no HTTP client");
            ServiceError::new(ServiceErrorKind::Unavailable, context).with_source(error)
        })?;
        let (provider, address) = (provider.into(), Address::new(base_url));
        Ok(Self { http, provider, address, auth, key, headers: HeaderMap::new() })
    }

    pub(super) fn with_base_url(mut self, base_url: &str) -> Self {
        self.address = self.address.moved(base_url);
        self
    }

    pub(super) fn with_plain_http(mut self) -> Self {
        self.address = self.address.with_plain_http();
        self
    }

    pub(super) const fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    pub(super) fn with_client(mut self, http: Client) -> Self {
        self.http = http;
        self
    }

    /// Adds a header to each request.
    pub(super) fn with_header(mut self, name: &str, value: &str) -> Result<Self, ServiceError> {
        let (name, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err(self.invalid("header", "a header has a wrong name or value"));
        };
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sends `body`, and returns the body of the response.
    pub(super) async fn post(
        &self,
        path: &str,
        query: Option<(&str, &str)>,
        body: String,
    ) -> Result<String, ServiceError> {
        let base = self.address.url(true).map_err(|what| self.invalid("address", what))?;
        let mut request = self.http.post(format!("{base}{path}"));
        if let Some(query) = query {
            request = request.query(&[query]);
        }
        let (name, value) = self.credentials()?;
        let sent = request
            .headers(self.headers.clone())
            .header(name, value)
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .send();
        let mut answer = sent.await.map_err(|error| self.failed(error))?;
        let (status, wait) = (answer.status(), asks_to_wait(&answer));
        let mut text = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.failed(error))? {
            if text.len().saturating_add(chunk.len()) > ANSWER_BYTES_MAX {
                return Err(self.malformed("the answer is too large"));
            }
            text.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(text).map_err(|_| self.malformed("the answer is no UTF-8"));
        match status.is_success() {
            true => text,
            false => Err(refused(&self.provider, status.as_u16(), wait, &text.unwrap_or_default())),
        }
    }

    fn credentials(&self) -> Result<(HeaderName, HeaderValue), ServiceError> {
        let key = self.key.expose_secret();
        let (name, value) = match self.auth {
            Auth::Bearer => ("authorization", HeaderValue::try_from(format!("Bearer {key}"))),
            Auth::Header(name) => (name, HeaderValue::from_str(key)),
        };
        // The error of an invalid header value would contain the key.
        let mut value = value.map_err(|_| {
            let context = format!("{}: the key cannot stand in a header", &*self.provider);
            ServiceError::new(ServiceErrorKind::Authentication, context)
        })?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(name), value))
    }

    fn failed(&self, error: reqwest::Error) -> ServiceError {
        let (kind, what) = match error.is_timeout() {
            true => (ServiceErrorKind::Timeout, "no answer in time"),
            false => (ServiceErrorKind::Unavailable, "the request failed"),
        };
        // A URL may hold credentials.
        ServiceError::new(kind, format!("{}: {what}", &*self.provider)).with_source(error.without_url())
    }

    fn invalid(&self, code: &str, what: &str) -> ServiceError {
        ServiceError::new(ServiceErrorKind::Invalid(code.into()), format!("{}: {what}", &*self.provider))
    }

    fn malformed(&self, what: &str) -> ServiceError {
        ServiceError::new(ServiceErrorKind::Malformed, format!("{}: {what}", &*self.provider))
    }
}

fn asks_to_wait(answer: &Response) -> Option<Duration> {
    let header = |name| answer.headers().get(name)?.to_str().ok();
    retry_after(header("retry-after"), header("retry-after-ms"), header("date"))
}
