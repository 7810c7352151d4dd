//! Admission of requests: the host must be this machine, and the address must contain the token that was drawn at the
//! start.

use core::net::Ipv4Addr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64ct::{Base64UrlUnpadded, Encoding as _};
use sha2::{Digest as _, Sha256};

use super::page;
use crate::failure::{Failure, Result, code};

const TOKEN_BYTES: usize = 18;

/// The default port of HTTP, which an address may omit.
const HTTP_PORT: u16 = 80;

#[derive(Debug)]
pub(super) struct Guard {
    token: String,
    port: u16,
}

impl Guard {
    pub(super) fn new(port: u16) -> Result<Self> {
        let mut token = [0; TOKEN_BYTES];
        getrandom::fill(&mut token).map_err(|error| Failure::new(code::IO, error.to_string()))?;
        Ok(Self { token: Base64UrlUnpadded::encode_string(&token), port })
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}:{}/{}/", Ipv4Addr::LOCALHOST, self.port, self.token)
    }

    /// Whether a request comes from a page of this server. A foreign page has another host, even if its name resolves
    /// to this machine.
    fn admits(&self, request: &Request) -> bool {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let here = [Ipv4Addr::LOCALHOST.to_string(), "localhost".to_owned()];
        let is_here = host.is_some_and(|host| {
            here.iter()
                .any(|name| host == format!("{name}:{}", self.port) || self.port == HTTP_PORT && host == name)
        });
        let token = request.uri().path().split('/').nth(1).unwrap_or_default();
        // Compares digests: the time of the comparison reveals nothing about the token.
        is_here && Sha256::digest(token) == Sha256::digest(&self.token)
    }
}

/// Answers only admitted requests, and allows a browser only to show an answer.
pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.admits(&request) {
        true => next.run(request).await,
        false => StatusCode::NOT_FOUND.into_response(),
    };
    let policy = HeaderValue::try_from(page::POLICY.to_header());
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    let headers = response.headers_mut();
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.extend(policy.ok().map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_request_is_admitted_by_its_host_and_its_token() {
        for (port, host, is_admitted) in [
            (80, "127.0.0.1", true),
            (80, "localhost:80", true),
            (8080, "127.0.0.1:8080", true),
            (8080, "localhost:8080", true),
            (8080, "127.0.0.1", false),
            (80, "evil.example", false),
            (8080, "127.0.0.1:80", false),
            (8080, "127.0.0.1:8080.evil.example", false),
        ] {
            let guard = Guard::new(port).unwrap();
            let request = |token: &str| {
                let path = format!("/{token}/sessions");
                Request::builder().uri(path).header(header::HOST, host).body(Body::empty()).unwrap()
            };
            assert_eq!(guard.admits(&request(&guard.token)), is_admitted, "{host} at {port}");
            let other = Guard::new(port).unwrap();
            assert!(!guard.admits(&request(&other.token)) && !guard.admits(&request("")));
        }
    }
}
