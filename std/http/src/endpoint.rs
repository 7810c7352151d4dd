//! Where a service is reached.

use core::hash::BuildHasher as _;
use core::time::Duration;
use std::hash::RandomState;

use epitome_std::session::{SessionError, SessionErrorKind};
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use crate::Placed;

/// How long a request is waited for, unless the caller says otherwise: the model of a service may be at work.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a request is made again, and how long is waited before the first of these; then twice as long.
const REPETITIONS: u32 = 2;
const DELAY: Duration = Duration::from_millis(500);

/// No answer is larger.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A service, and how it is asked.
///
/// *Repetitions*: a request that failed for a moment is made up to twice more, after half a second and a second, about, or after as long
/// as the service asks for (`retry-after`, in seconds). A service that wants to be left alone for longer than the limit of a request is not
/// waited for.
///
/// *Errors*: `Invalid` where the request must be changed (a wrong key, a wrong address), `Unavailable` where it may be repeated later. They
/// name the service and the HTTP status, and hold nothing of an answer, which may repeat what was said.
///
/// ```no_run
/// use epitome_http::{Endpoint, Key, Placed, Repeat};
/// use serde_json::json;
///
/// # async fn ask() -> Result<(), epitome_std::session::SessionError> {
/// let service = Endpoint::new("notes", "https://notes.example")?.with_key(Placed::Authorization("Bearer", Key::from("a-key")));
/// let found = service.post("/search", &json!({"query": "tea"}), Repeat::Always).await?;
/// # drop(found); Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Endpoint {
    name: &'static str,
    http: Client,
    base_url: Box<str>,
    key: Option<Placed>,
    timeout: Duration,
    delay: Duration,
}

/// Whether a request that failed for a moment is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repeat {
    /// It only reads.
    Always,
    /// A second time would do it twice: only if the service has done nothing (429, 503, no connection).
    IfUndone,
}

/// A request that failed.
struct Failed {
    error: SessionError,
    /// The repetitions that make sense; `None` if it fails again.
    repeat: Option<Repeat>,
    /// How long the service asks to wait.
    wait: Option<Duration>,
}

impl Endpoint {
    /// The service `name`, as errors call it, at this address. No redirect is followed, so that a key goes nowhere else.
    ///
    /// # Errors
    /// `Unavailable` if there is no HTTP client: the system's certificates cannot be read, for example.
    pub fn new(name: &'static str, base_url: &str) -> Result<Self, SessionError> {
        let http = Client::builder().redirect(Policy::none()).build();
        let http = http.map_err(|error| {
            SessionError::new(SessionErrorKind::Unavailable, format!("{name}: there is no HTTP client"))
                .with_source(error)
        })?;
        let endpoint =
            Self { name, http, base_url: Box::default(), key: None, timeout: TIMEOUT, delay: DELAY };
        Ok(endpoint.with_base_url(base_url))
    }

    /// Sets the address.
    #[must_use]
    pub fn with_base_url(mut self, base_url: &str) -> Self {
        self.base_url = base_url.trim_end_matches('/').into();
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: Placed) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets how long one request is waited for, 30 seconds unless it is set. A repetition has that time again.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long is waited before the first repetition, half a second unless it is set; then twice as long.
    #[must_use]
    pub const fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the HTTP client, which an application may have already. It should follow no redirects: they would get the key.
    #[must_use]
    pub fn with_client(mut self, http: Client) -> Self {
        self.http = http;
        self
    }

    /// The answer to this body.
    ///
    /// # Errors
    /// As the type says.
    pub async fn post(&self, path: &str, body: &Value, repeat: Repeat) -> Result<Value, SessionError> {
        let body = body.to_string();
        let request = || {
            let request = self.http.post(format!("{}{path}", self.base_url));
            request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.clone())
        };
        self.repeated(request, repeat).await
    }

    /// The answer to a request without a body.
    ///
    /// # Errors
    /// As the type says.
    pub async fn get(&self, path: &str) -> Result<Value, SessionError> {
        self.repeated(|| self.http.get(format!("{}{path}", self.base_url)), Repeat::Always).await
    }

    async fn repeated(
        &self,
        request: impl Fn() -> RequestBuilder,
        repeat: Repeat,
    ) -> Result<Value, SessionError> {
        let mut delay = self.delay;
        for _ in 0..REPETITIONS {
            let failed = match self.attempt(request()).await {
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
        self.attempt(request()).await.map_err(|failed| failed.error)
    }

    async fn attempt(&self, mut request: RequestBuilder) -> Result<Value, Failed> {
        if let Some(key) = &self.key {
            let (name, value) = key.header(self.name).await.map_err(Failed::for_good)?;
            request = request.header(name, value);
        }
        let answer = request.timeout(self.timeout).send().await.map_err(|error| {
            let repeat = if error.is_connect() { Repeat::IfUndone } else { Repeat::Always };
            Failed { error: self.unreachable(error), repeat: Some(repeat), wait: None }
        })?;
        match answer.status() {
            status if status.is_success() => self.read(answer).await,
            status => Err(self.refused(status, retry_after(&answer))),
        }
    }

    async fn read(&self, mut answer: Response) -> Result<Value, Failed> {
        let mut text = Vec::new();
        let broken =
            |error| Failed { error: self.unreachable(error), repeat: Some(Repeat::Always), wait: None };
        while let Some(chunk) = answer.chunk().await.map_err(broken)? {
            if text.len().saturating_add(chunk.len()) > ANSWER_BYTES_MAX {
                return Err(Failed::for_good(self.unavailable("the answer is larger than 16 MiB")));
            }
            text.extend_from_slice(&chunk);
        }
        // The text of a parser's error may repeat what was said.
        serde_json::from_slice(&text).map_err(|_| Failed::for_good(self.unavailable("the answer is no JSON")))
    }

    fn unavailable(&self, what: &str) -> SessionError {
        SessionError::new(SessionErrorKind::Unavailable, format!("{}: {what}", self.name))
    }

    fn unreachable(&self, error: reqwest::Error) -> SessionError {
        let what = if error.is_timeout() { "no answer in time" } else { "the request failed" };
        // A URL may hold credentials.
        self.unavailable(what).with_source(error.without_url())
    }

    fn refused(&self, status: StatusCode, wait: Option<Duration>) -> Failed {
        use SessionErrorKind::{Invalid, NotFound, Unavailable};
        let (kind, repeat, remedy) = match status.as_u16() {
            401 | 403 => (Invalid, None, ": the key is wrong, or may not do this"),
            404 => (NotFound, None, ": there is no such thing at this address"),
            405 => (Invalid, None, ": this is another service"),
            429 => (Unavailable, Some(Repeat::IfUndone), ": too many requests"),
            503 => (Unavailable, Some(Repeat::IfUndone), ""),
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
