//! The requests, sent.

use core::fmt;
use core::time::Duration;
use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_std::message::Str;
use epitome_std::wire::WireError;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret as _, SecretString};

use super::super::{
    Artefact, Capabilities, CompactionService, Cut, ServiceError, ServiceErrorKind, ServiceRequest,
};
use super::{
    CompactOptions, MODEL, ResponsesVendor, compact_body, compact_previous_body, compacted,
    compacted_previous, refusal, retry_after, trigger_body, triggered,
};

/// OpenAI's own compaction as a [`CompactionService`], and that of others who speak Responses.
///
/// *Concurrency*: one serves any number of sessions; its connections are shared. It runs on tokio.
///
/// *Cancel safety*: a dropped future ends the request; the service may ask for its price.
///
/// Proxies that the environment names are used (`HTTPS_PROXY`, `NO_PROXY`), and the system's certificates are trusted. A redirect is
/// not followed, so that the key goes nowhere else. Nothing prints the key.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_compactors::Managed;
/// use epitome_compactors::managed::openai::OpenAiCompaction;
///
/// let service = OpenAiCompaction::new("sk-secret".into())?.with_base_url("https://gateway.example/v1");
/// assert!(!format!("{service:?}").contains("sk-secret"));
/// let managed = Managed::new(Arc::new(service))?;
/// # Ok::<(), epitome_compactors::managed::ServiceError>(())
/// ```
#[derive(Clone)]
pub struct OpenAiCompaction {
    http: Client,
    vendor: ResponsesVendor,
    base_url: Str,
    query: Option<Str>,
    auth: Auth,
    key: SecretString,
    headers: HeaderMap,
    model: Str,
    options: CompactOptions,
    in_band: bool,
}

/// Where the key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Auth {
    Bearer,
    ApiKey,
}

/// How long one request is waited for: the service reads a whole window and writes thousands of tokens.
const TIMEOUT: Duration = Duration::from_secs(120);

/// No answer is larger: it holds what the user said, and one item.
const ANSWER_BYTES_MAX: usize = 64 << 20;

impl OpenAiCompaction {
    /// OpenAI itself, with the model [`MODEL`].
    ///
    /// # Errors
    /// `Unavailable` if there can be no TLS here.
    pub fn new(key: SecretString) -> Result<Self, ServiceError> {
        Self::of(ResponsesVendor::openai(), "https://api.openai.com/v1", key)
    }

    /// Azure: `endpoint` is that of the resource, such as `https://NAME.openai.azure.com`, and the model is the name of a
    /// deployment.
    ///
    /// # Errors
    /// As [`OpenAiCompaction::new`].
    pub fn azure(endpoint: &str, deployment: &str, key: SecretString) -> Result<Self, ServiceError> {
        let base = format!("{}/openai/v1", endpoint.trim_end_matches('/'));
        let azure = Self::of(ResponsesVendor::azure(), &base, key)?.with_model(deployment);
        Ok(Self { auth: Auth::ApiKey, ..azure })
    }

    /// xAI, with one of its models.
    ///
    /// # Errors
    /// As [`OpenAiCompaction::new`].
    pub fn xai(model: &str, key: SecretString) -> Result<Self, ServiceError> {
        Ok(Self::of(ResponsesVendor::xai(), "https://api.x.ai/v1", key)?.with_model(model))
    }

    /// Another vendor, at this base URL, to which `/responses/compact` is added.
    ///
    /// # Errors
    /// As [`OpenAiCompaction::new`].
    pub fn of(vendor: ResponsesVendor, base_url: &str, key: SecretString) -> Result<Self, ServiceError> {
        let http = Client::builder().timeout(TIMEOUT).redirect(Policy::none()).build();
        let http = http.map_err(|error| {
            let context = format!("{}: there is no HTTP client", vendor.provider());
            ServiceError::new(ServiceErrorKind::Unavailable, context).with_source(error)
        })?;
        Ok(Self {
            http,
            vendor,
            base_url: base_url.trim_end_matches('/').into(),
            query: None,
            auth: Auth::Bearer,
            key,
            headers: HeaderMap::new(),
            model: MODEL.into(),
            options: CompactOptions::default(),
            in_band: false,
        })
    }

    /// The same at another base URL, to which `/responses/compact` is added.
    #[must_use]
    pub fn with_base_url(mut self, base_url: &str) -> Self {
        self.base_url = base_url.trim_end_matches('/').into();
        self
    }

    /// The same with Azure's `api-version`.
    #[must_use]
    pub fn with_api_version(mut self, version: &str) -> Self {
        self.query = Some(version.into());
        self
    }

    /// The same with this model. In band it is the conversation's, if that is known.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Str>) -> Self {
        self.model = model.into();
        self
    }

    /// The same with these options.
    #[must_use]
    pub fn with_options(mut self, options: CompactOptions) -> Self {
        self.options = options;
        self
    }

    /// The same with another header in each request, such as `OpenAI-Project`. Its value is not printed.
    ///
    /// # Errors
    /// `Invalid` if it cannot be a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ServiceError> {
        let (name, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
        let (Ok(name), Ok(mut value)) = (name, value) else {
            let context = format!("{}: a header has a wrong name or value", self.vendor.provider());
            return Err(ServiceError::new(ServiceErrorKind::Invalid("header".into()), context));
        };
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// The same over this client, which has its own proxies, certificates and timeout. It should follow no redirect.
    #[must_use]
    pub fn with_client(mut self, http: Client) -> Self {
        self.http = http;
        self
    }

    /// The same in band: as a request of the conversation's own, with its model and tools, so that the prompt cache serves it.
    #[must_use]
    pub const fn in_band(mut self) -> Self {
        self.in_band = true;
        self
    }

    /// Compacts what stands behind a response that the service keeps. A conversation goes on with what is left as its
    /// input, and without that response's id. Instructions are not those of that response.
    ///
    /// # Errors
    /// [`ServiceError`]. It is not tried again.
    pub async fn compact_response(
        &self,
        previous_response_id: &str,
        instructions: Option<&str>,
    ) -> Result<Artefact, ServiceError> {
        let body =
            compact_previous_body(&self.model, previous_response_id, instructions, &self.options);
        compacted_previous(&self.vendor, &self.model, &self.post("/responses/compact", body).await?)
    }

    async fn post(&self, path: &str, body: String) -> Result<String, ServiceError> {
        let mut request = self.http.post(format!("{}{path}", &*self.base_url));
        if let Some(version) = &self.query {
            request = request.query(&[("api-version", version.as_str())]);
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
            false => Err(refusal(&self.vendor, status.as_u16(), wait, &text.unwrap_or_default())),
        }
    }

    fn credentials(&self) -> Result<(HeaderName, HeaderValue), ServiceError> {
        let key = self.key.expose_secret();
        let (name, value) = match self.auth {
            Auth::Bearer => ("authorization", HeaderValue::try_from(format!("Bearer {key}"))),
            Auth::ApiKey => ("api-key", HeaderValue::from_str(key)),
        };
        // What is wrong with it would tell it.
        let mut value = value.map_err(|_| {
            let context = format!("{}: the key cannot stand in a header", self.vendor.provider());
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
        ServiceError::new(kind, format!("{}: {what}", self.vendor.provider())).with_source(error.without_url())
    }

    fn malformed(&self, what: &str) -> ServiceError {
        ServiceError::new(ServiceErrorKind::Malformed, format!("{}: {what}", self.vendor.provider()))
    }

    fn unwritable(&self, error: WireError) -> ServiceError {
        let context = format!("{}: the conversation cannot be written", self.vendor.provider());
        ServiceError::new(ServiceErrorKind::Invalid("conversation".into()), context).with_source(error)
    }
}

fn asks_to_wait(answer: &Response) -> Option<Duration> {
    let header = |name| answer.headers().get(name)?.to_str().ok();
    retry_after(header("retry-after"), header("retry-after-ms"))
}

#[async_trait]
impl CompactionService for OpenAiCompaction {
    fn provider(&self) -> &str {
        self.vendor.provider()
    }

    /// None for xAI in band: it documents no such thing.
    fn capabilities(&self) -> Option<Capabilities> {
        let able = !self.in_band || self.vendor.returns_users;
        able.then(|| Capabilities::new(self.vendor.position(), Cut::Group))
    }

    async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError> {
        let Self { vendor, model, options, .. } = self;
        if self.in_band {
            let model = if request.model.is_empty() { model.as_str() } else { request.model };
            let body = trigger_body(vendor, model, request, options);
            let body = body.map_err(|error| self.unwritable(error))?;
            return triggered(vendor, model, request, &self.post("/responses", body).await?);
        }
        let body = compact_body(vendor, model, request, options).map_err(|error| self.unwritable(error))?;
        compacted(vendor, model, request, &self.post("/responses/compact", body).await?)
    }
}

/// Neither the key nor what stands in headers, nor a URL that may hold credentials.
impl fmt::Debug for OpenAiCompaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiCompaction")
            .field("provider", &self.vendor.provider())
            .field("model", &self.model)
            .field("in_band", &self.in_band)
            .finish_non_exhaustive()
    }
}
