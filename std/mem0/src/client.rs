//! Requests to Mem0.

use core::hash::BuildHasher as _;
use core::time::Duration;
use std::hash::RandomState;

use epitome_std::session::{SessionError, SessionErrorKind};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client as Http, RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};

use crate::Key;
use crate::scope::Filter;

/// Where the hosted service is.
const HOSTED: &str = "https://api.mem0.ai";

/// How long a request is waited for, unless the caller says otherwise: a server of your own has a model infer what is stored.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a request is made again that has done nothing, and how long is waited before the first of these; then twice as long.
const RETRIES: u32 = 2;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// No answer is larger.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Whose server it is: each has its own paths, and its own place for the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Hosted,
    SelfHosted,
}

#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) service: Service,
    pub(crate) http: Http,
    pub(crate) base_url: Box<str>,
    pub(crate) key: Option<Key>,
    pub(crate) timeout: Duration,
    pub(crate) retry_delay: Duration,
}

/// Whether a request that failed may be made again.
enum Failed {
    /// It has done nothing.
    Undone(SessionError, Option<Duration>),
    /// It may have been done, but its repetition does no harm if it only reads.
    Unknown(SessionError, Option<Duration>),
    Refused(SessionError),
}

impl Client {
    pub(crate) fn new(
        service: Service,
        base_url: Option<&str>,
        key: Option<Key>,
    ) -> Result<Self, SessionError> {
        // A redirect is not followed, so that the key goes nowhere else.
        let http = Http::builder().redirect(Policy::none()).build();
        let http = http.map_err(|error| {
            SessionError::new(SessionErrorKind::Unavailable, "mem0: there is no HTTP client")
                .with_source(error)
        })?;
        let base_url = base_url.unwrap_or(HOSTED).trim_end_matches('/').into();
        Ok(Self { service, http, base_url, key, timeout: TIMEOUT, retry_delay: RETRY_DELAY })
    }

    /// The memories that are nearest to `query`, among those with these ids; `None` if the answer has another form.
    pub(crate) async fn search(
        &self,
        query: &str,
        filter: &Filter,
        found_max: Option<usize>,
    ) -> Result<Option<Vec<Value>>, SessionError> {
        let path = match self.service {
            Service::Hosted => "/v3/memories/search/",
            Service::SelfHosted => "/search",
        };
        let mut body = json!({"query": query, "filters": filter});
        if let (Some(found_max), Some(body)) = (found_max, body.as_object_mut()) {
            body.insert("top_k".to_owned(), found_max.into());
        }
        Ok(match self.send(path, &body, true).await? {
            Value::Array(found) => Some(found),
            Value::Object(mut answer) => match answer.remove("results") {
                Some(Value::Array(found)) => Some(found),
                _ => None,
            },
            _ => None,
        })
    }

    /// Stores what was said under these ids.
    pub(crate) async fn add(
        &self,
        messages: Vec<Value>,
        stamp: Filter,
        infer: Option<bool>,
    ) -> Result<(), SessionError> {
        let mut body = Map::new();
        body.insert("messages".to_owned(), messages.into());
        let path = match self.service {
            Service::Hosted => {
                body.insert("filters".to_owned(), stamp.into());
                "/v3/memories/add/"
            }
            Service::SelfHosted => {
                body.extend(stamp);
                "/memories"
            }
        };
        body.extend(infer.map(|infer| ("infer".to_owned(), infer.into())));
        self.send(path, &body.into(), false).await.map(|_| ())
    }

    /// The answer to `body`. A request that failed for a moment only is made again.
    async fn send(&self, path: &str, body: &Value, only_reads: bool) -> Result<Value, SessionError> {
        let mut delay = self.retry_delay;
        for _ in 0..RETRIES {
            let wait = match self.attempt(path, body).await {
                Ok(answer) => return Ok(answer),
                Err(Failed::Undone(_, wait)) => wait,
                Err(Failed::Unknown(_, wait)) if only_reads => wait,
                Err(failed) => return Err(failed.into_error()),
            };
            // A service that wants to be left alone for longer than a request may take is not waited for.
            let wait = wait.unwrap_or_else(|| jittered(delay));
            if wait > self.timeout {
                break;
            }
            tokio::time::sleep(wait).await;
            delay = delay.saturating_mul(2);
        }
        self.attempt(path, body).await.map_err(Failed::into_error)
    }

    async fn attempt(&self, path: &str, body: &Value) -> Result<Value, Failed> {
        let request = self.http.post(format!("{}{path}", self.base_url)).timeout(self.timeout);
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        let request = self.with_key(request).await.map_err(Failed::Refused)?;
        let answer = request.send().await.map_err(|error| {
            let is_undone = error.is_connect();
            let failed = unreachable(error);
            if is_undone { Failed::Undone(failed, None) } else { Failed::Unknown(failed, None) }
        })?;
        match answer.status() {
            status if status.is_success() => read(answer).await,
            status => Err(refused(status, retry_after(&answer))),
        }
    }

    async fn with_key(&self, request: RequestBuilder) -> Result<RequestBuilder, SessionError> {
        let Some(key) = &self.key else { return Ok(request) };
        let key = key.now().await?;
        let key = key.expose_secret();
        let (name, value) = match self.service {
            Service::Hosted => (HeaderName::from_static("authorization"), format!("Token {key}")),
            Service::SelfHosted => (HeaderName::from_static("x-api-key"), key.to_owned()),
        };
        // What is wrong with it would tell it.
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            SessionError::new(SessionErrorKind::Invalid, "mem0: the key cannot stand in a header")
        })?;
        value.set_sensitive(true);
        Ok(request.header(name, value))
    }
}

impl Failed {
    fn into_error(self) -> SessionError {
        match self {
            Self::Undone(error, _) | Self::Unknown(error, _) | Self::Refused(error) => error,
        }
    }
}

async fn read(mut answer: Response) -> Result<Value, Failed> {
    let mut text = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| Failed::Unknown(unreachable(error), None))? {
        if text.len().saturating_add(chunk.len()) > ANSWER_BYTES_MAX {
            return Err(Failed::Refused(malformed("the answer is larger than 16 MiB")));
        }
        text.extend_from_slice(&chunk);
    }
    // The text of a parser's error may repeat what was said.
    serde_json::from_slice(&text).map_err(|_| Failed::Refused(malformed("the answer is no JSON")))
}

fn malformed(what: &str) -> SessionError {
    SessionError::new(SessionErrorKind::Unavailable, format!("mem0: {what}"))
}

fn unreachable(error: reqwest::Error) -> SessionError {
    let what = if error.is_timeout() { "no answer in time" } else { "the request failed" };
    // A URL may hold credentials.
    malformed(what).with_source(error.without_url())
}

/// The error that an HTTP status is. The body of the answer may repeat what was said: it is not told.
fn refused(status: StatusCode, wait: Option<Duration>) -> Failed {
    let error =
        |kind, remedy: &str| SessionError::new(kind, format!("mem0: HTTP {}{remedy}", status.as_u16()));
    match status.as_u16() {
        401 | 403 => {
            Failed::Refused(error(SessionErrorKind::Invalid, ": the key is wrong, or may not do this"))
        }
        404 | 405 => Failed::Refused(error(
            SessionErrorKind::Invalid,
            ": there is no Mem0 of this kind at this address",
        )),
        429 => Failed::Undone(error(SessionErrorKind::Unavailable, ": too many requests"), wait),
        503 => Failed::Undone(error(SessionErrorKind::Unavailable, ""), wait),
        408 | 500.. => Failed::Unknown(error(SessionErrorKind::Unavailable, ""), wait),
        _ => Failed::Refused(error(SessionErrorKind::Invalid, ": the service refuses the request")),
    }
}

/// The header of that name, if it is in seconds.
fn retry_after(answer: &Response) -> Option<Duration> {
    let seconds: f64 = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// A half of `delay`, and a random part of the other half: not all clients of a service that was gone come back at once.
fn jittered(delay: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) >> 32;
    let half = delay / 2;
    half.saturating_add(half.mul_f64(random as f64 / f64::from(u32::MAX)))
}
