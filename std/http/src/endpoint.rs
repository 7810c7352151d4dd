//! The endpoint of a service: its address, key, time limit and retries.

use core::hash::BuildHasher as _;
use core::time::Duration;
use std::hash::RandomState;

use epitome_std::session::{SessionError, SessionErrorKind};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use secrecy::SecretString;
use serde_json::Value;

use crate::{Address, Key, KeyHeader};

/// Default time limit of a request. It is long, because the service may run a model.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of retries of a request, and the delay before the first one; each further delay is twice as long.
const REPETITIONS: u32 = 2;
const DELAY: Duration = Duration::from_millis(500);

/// Maximum size of an answer in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The endpoint of a service.
///
/// *Retries*: after a temporary failure, a request is sent up to twice more. The delays are about half a second and a
/// second, or as long as the service asks for (`retry-after`, in seconds). If that is longer than the time limit of a
/// request, there is no retry.
///
/// *Errors*: `Invalid` if the request must be changed (a wrong key, a wrong address), `NotFound` for the status 404,
/// `Unavailable` if the request may be repeated later. Errors name the service and the HTTP status. They contain
/// nothing of an answer, which may repeat texts of messages.
///
/// ```no_run
/// use epitome_http::{Endpoint, Key, KeyHeader, Repeat};
/// use serde_json::json;
///
/// # async fn ask() -> Result<(), epitome_std::session::SessionError> {
/// let service = Endpoint::new("notes", "https://notes.example")?.with_key(KeyHeader::Authorization("Bearer", Key::from("a-key")));
/// let found = service.post("/search", &json!({"query": "tea"}), Repeat::Always).await?;
/// # drop(found); Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Endpoint {
    name: &'static str,
    http: Client,
    address: Address,
    key: Option<KeyHeader>,
    timeout: Duration,
    delay: Duration,
}

/// Whether a request is sent again after a temporary failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repeat {
    /// Always: the request only reads, or has the same effect when it is repeated.
    Always,
    /// Only if the service has done nothing (429, no connection), because a repetition would have its effect twice.
    IfUndone,
}

/// A request that failed.
struct Failed {
    error: SessionError,
    /// The requests for which a retry makes sense; `None` if a retry would fail too.
    repeat: Option<Repeat>,
    /// The delay that the service asks for.
    wait: Option<Duration>,
}

impl Endpoint {
    /// Makes the endpoint of the service `name` at this address. Errors contain the name. Redirects are not followed,
    /// so that the key is sent to no other address.
    ///
    /// # Errors
    /// `Invalid` if this is not the address of a service: see [`with_base_url`](Self::with_base_url). `Unavailable` if
    /// there is no HTTP client, for example because the system's certificates cannot be read.
    pub fn new(name: &'static str, base_url: &str) -> Result<Self, SessionError> {
        let http = Client::builder().redirect(Policy::none()).build();
        let http = http.map_err(|error| {
            let context = format!("{name}: there is no HTTP client");
            SessionError::new(SessionErrorKind::Unavailable, context).with_source(error)
        })?;
        let address = Address::new(base_url);
        let endpoint = Self { name, http, address, key: None, timeout: TIMEOUT, delay: DELAY };
        endpoint.url("").map(|_| ())?;
        Ok(endpoint)
    }

    /// Sets the address: `http://` or `https://` with a host, without a user, a query or a fragment. With any other
    /// address, each request is `Invalid`.
    #[must_use]
    pub fn with_base_url(mut self, base_url: &str) -> Self {
        self.address = self.address.moved(base_url);
        self
    }

    /// Allows the key to be sent without encryption to another machine: only for a network that you trust.
    #[must_use]
    pub const fn with_plain_http(mut self) -> Self {
        self.address.is_plain_allowed = true;
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: KeyHeader) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the time limit of one request, 30 seconds by default. Each retry has the full time limit.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the delay before the first retry, half a second by default. Each further delay is twice as long.
    #[must_use]
    pub const fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the HTTP client, for an application that already has one. It should not follow redirects, because they
    /// would receive the key.
    #[must_use]
    pub fn with_client(mut self, http: Client) -> Self {
        self.http = http;
        self
    }

    /// Sends this body, and returns the answer.
    ///
    /// # Errors
    /// The errors that the type documents.
    pub async fn post(&self, path: &str, body: &Value, repeat: Repeat) -> Result<Value, SessionError> {
        let text = self.repeated(&self.with_body(Method::POST, path, body)?, repeat, true).await?;
        self.parsed(&text)
    }

    /// Creates or replaces the resource at this path, and returns it as the service has stored it. The request may
    /// always be retried.
    ///
    /// # Errors
    /// The errors that the type documents. If there was no answer, the service may still have done it.
    ///
    /// # Cancel safety
    /// As [`send`](Self::send).
    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, SessionError> {
        let put = self.with_body(Method::PUT, path, body)?;
        let put = || put().header(PREFER, HeaderValue::from_static("return=representation"));
        self.parsed(&self.repeated(&put, Repeat::Always, true).await?)
    }

    /// Sends this body. Of a successful answer only the status is read.
    ///
    /// # Errors
    /// The errors that the type documents. If there was no answer, the service may still have done it.
    ///
    /// # Cancel safety
    /// If the future is dropped, the service may have done it, once.
    pub async fn send(&self, path: &str, body: &Value, repeat: Repeat) -> Result<(), SessionError> {
        self.repeated(&self.with_body(Method::POST, path, body)?, repeat, false).await.map(|_| ())
    }

    /// Sends a request without a body, and returns the answer.
    ///
    /// # Errors
    /// The errors that the type documents.
    pub async fn get(&self, path: &str) -> Result<Value, SessionError> {
        let url = self.url(path)?;
        self.parsed(&self.repeated(&|| self.http.get(&url), Repeat::Always, true).await?)
    }

    /// The current key for the body of a request, within the time limit of a request.
    ///
    /// # Errors
    /// The errors of the key; `Unavailable` if it takes longer.
    pub async fn look_up(&self, key: &Key) -> Result<SecretString, SessionError> {
        let late = |_| self.unavailable("no key in time");
        tokio::time::timeout(self.timeout, key.now()).await.map_err(late)?
    }

    fn parsed(&self, text: &[u8]) -> Result<Value, SessionError> {
        // The error of the parser is left out, because it may repeat texts of messages.
        serde_json::from_slice(text).map_err(|_| self.unavailable("the answer is no JSON"))
    }

    fn with_body(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<impl Fn() -> RequestBuilder, SessionError> {
        let (url, body) = (self.url(path)?, body.to_string());
        Ok(move || {
            let request = self.http.request(method.clone(), &url);
            request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.clone())
        })
    }

    fn url(&self, path: &str) -> Result<String, SessionError> {
        let base = self.address.url(self.key.is_some());
        let invalid = |what| SessionError::new(SessionErrorKind::Invalid, format!("{}: {what}", self.name));
        base.map(|base| format!("{base}{path}")).map_err(invalid)
    }

    async fn repeated(
        &self,
        request: &impl Fn() -> RequestBuilder,
        repeat: Repeat,
        is_read: bool,
    ) -> Result<Vec<u8>, SessionError> {
        let mut delay = self.delay;
        for _ in 0..REPETITIONS {
            let failed = match self.in_time(request(), is_read).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let wait = failed.wait.unwrap_or_else(|| jittered(delay));
            let is_repeated = failed.repeat == Some(Repeat::IfUndone) || failed.repeat == Some(repeat);
            if !is_repeated || wait > self.timeout {
                return Err(failed.error);
            }
            tokio::time::sleep(wait).await;
            delay = delay.saturating_mul(2);
        }
        self.in_time(request(), is_read).await.map_err(|failed| failed.error)
    }

    /// One attempt within the time limit: the request for the key, the request itself and its answer.
    async fn in_time(&self, request: RequestBuilder, is_read: bool) -> Result<Vec<u8>, Failed> {
        let attempt = tokio::time::timeout(self.timeout, self.attempt(request, is_read));
        attempt.await.unwrap_or_else(|_| {
            Err(Failed {
                error: self.unavailable("no answer in time"),
                repeat: Some(Repeat::Always),
                wait: None,
            })
        })
    }

    async fn attempt(&self, mut request: RequestBuilder, is_read: bool) -> Result<Vec<u8>, Failed> {
        if let Some(key) = &self.key {
            let (name, value) = key.header(self.name).await.map_err(Failed::for_good)?;
            request = request.header(name, value);
        }
        let answer = request.send().await.map_err(|error| {
            let repeat = if error.is_connect() { Repeat::IfUndone } else { Repeat::Always };
            Failed { error: self.unreachable(error), repeat: Some(repeat), wait: None }
        })?;
        match answer.status() {
            status if status.is_success() && is_read => self.read(answer).await,
            status if status.is_success() => Ok(Vec::new()),
            status => Err(self.refused(status, retry_after(&answer))),
        }
    }

    async fn read(&self, mut answer: Response) -> Result<Vec<u8>, Failed> {
        let mut text = Vec::new();
        let broken =
            |error| Failed { error: self.unreachable(error), repeat: Some(Repeat::Always), wait: None };
        while let Some(chunk) = answer.chunk().await.map_err(broken)? {
            if text.len().saturating_add(chunk.len()) > ANSWER_BYTES_MAX {
                return Err(Failed::for_good(self.unavailable("the answer is larger than 16 MiB")));
            }
            text.extend_from_slice(&chunk);
        }
        Ok(text)
    }

    fn unavailable(&self, what: &str) -> SessionError {
        SessionError::new(SessionErrorKind::Unavailable, format!("{}: {what}", self.name))
    }

    fn unreachable(&self, error: reqwest::Error) -> SessionError {
        self.unavailable("the request failed").with_source(error.without_url())
    }

    fn refused(&self, status: StatusCode, wait: Option<Duration>) -> Failed {
        use SessionErrorKind::{Invalid, NotFound, Unavailable};
        let (kind, repeat, remedy) = match status.as_u16() {
            401 | 403 => (Invalid, None, ": the key is wrong, or may not do this"),
            404 => (NotFound, None, ": there is no such thing at this address"),
            405 => (Invalid, None, ": this is another service"),
            429 => (Unavailable, Some(Repeat::IfUndone), ": too many requests"),
            408 | 500.. => (Unavailable, Some(Repeat::Always), ""),
            _ => (Invalid, None, ": the service refuses the request"),
        };
        let error = SessionError::new(kind, format!("{}: HTTP {}{remedy}", self.name, status.as_u16()));
        Failed { error, repeat, wait }
    }
}

impl Failed {
    const fn for_good(error: SessionError) -> Self {
        Self { error, repeat: None, wait: None }
    }
}

/// The header `retry-after`, if it has a number of seconds.
fn retry_after(answer: &Response) -> Option<Duration> {
    let seconds: f64 = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// A half of `delay` and a random part of the other half, so that the clients of a service do not all retry at the same
/// time.
fn jittered(delay: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) >> 32;
    let half = delay / 2;
    half.saturating_add(half.mul_f64(random as f64 / f64::from(u32::MAX)))
}
