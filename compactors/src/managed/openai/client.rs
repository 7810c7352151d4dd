//! HTTP client for the requests.

use core::fmt;
use std::boxed::Box;
use std::format;
use std::string::String;

use async_trait::async_trait;
use epitome_std::compaction::KeptSession;
use epitome_std::message::Str;
use epitome_std::wire::WireError;
use reqwest::Client;
use secrecy::SecretString;

use super::super::http::{Auth, Endpoint};
use super::super::{
    Artefact, Capabilities, CompactionService, Cut, ServiceError, ServiceErrorKind, ServiceRequest,
};
use super::{
    CompactOptions, MODEL, ResponsesVendor, compact_body, compact_previous_body, compacted,
    compacted_previous, trigger_body, triggered,
};

/// The compaction of OpenAI, and of other vendors with the Responses API, as a [`CompactionService`].
///
/// *Concurrency*: one value serves any number of sessions and shares its connections. It runs on tokio.
///
/// *Cancel safety*: if the future is dropped, the request ends; the service may still charge for it.
///
/// It uses the proxies of the environment (`HTTPS_PROXY`, `NO_PROXY`), and trusts the system's certificates. It
/// follows no redirect, so that the key goes to no other host. No output contains the key.
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
    endpoint: Endpoint,
    vendor: ResponsesVendor,
    query: Option<Str>,
    model: Str,
    options: CompactOptions,
    in_band: bool,
}

impl OpenAiCompaction {
    /// A client for OpenAI, with the model [`MODEL`].
    ///
    /// # Errors
    /// `Unavailable` if TLS cannot be set up.
    pub fn new(key: SecretString) -> Result<Self, ServiceError> {
        Self::of(ResponsesVendor::openai(), "https://api.openai.com/v1", key)
    }

    /// A client for Azure. `endpoint` is the URL of the resource, such as `https://NAME.openai.azure.com`;
    /// `deployment` is the name of a deployment, and is sent as the model.
    ///
    /// # Errors
    /// As [`OpenAiCompaction::new`].
    pub fn azure(endpoint: &str, deployment: &str, key: SecretString) -> Result<Self, ServiceError> {
        let base = format!("{}/openai/v1", endpoint.trim_end_matches('/'));
        let azure = Self::of(ResponsesVendor::azure(), &base, key)?.with_model(deployment);
        Ok(Self { endpoint: azure.endpoint.with_auth(Auth::Header("api-key")), ..azure })
    }

    /// A client for xAI, with one of its models.
    ///
    /// # Errors
    /// As [`OpenAiCompaction::new`].
    pub fn xai(model: &str, key: SecretString) -> Result<Self, ServiceError> {
        Ok(Self::of(ResponsesVendor::xai(), "https://api.x.ai/v1", key)?.with_model(model))
    }

    /// A client for another vendor at this base URL, to which `/responses/compact` is added.
    ///
    /// # Errors
    /// As [`OpenAiCompaction::new`].
    pub fn of(vendor: ResponsesVendor, base_url: &str, key: SecretString) -> Result<Self, ServiceError> {
        Ok(Self {
            endpoint: Endpoint::new(vendor.provider(), base_url, Auth::Bearer, key)?,
            vendor,
            query: None,
            model: MODEL.into(),
            options: CompactOptions::default(),
            in_band: false,
        })
    }

    /// Sets the base URL, to which `/responses/compact` is added: `http://` or `https://` with a host, without a
    /// user, a query or a fragment. With any other URL each compaction fails with `Invalid`; likewise if the key
    /// would go to another machine without encryption.
    #[must_use]
    pub fn with_base_url(mut self, base_url: &str) -> Self {
        self.endpoint = self.endpoint.with_base_url(base_url);
        self
    }

    /// Allows the key to be sent to another machine without encryption. Use it only within a network that you
    /// trust.
    #[must_use]
    pub fn with_plain_http(mut self) -> Self {
        self.endpoint = self.endpoint.with_plain_http();
        self
    }

    /// Sets Azure's `api-version`.
    #[must_use]
    pub fn with_api_version(mut self, version: &str) -> Self {
        self.query = Some(version.into());
        self
    }

    /// Sets the model. In band, the model of the conversation is used instead, if it is known.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Str>) -> Self {
        self.model = model.into();
        self
    }

    /// Sets the options of the request.
    #[must_use]
    pub fn with_options(mut self, options: CompactOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets a header of each request, such as `OpenAI-Project`. Debug output does not contain its value.
    ///
    /// # Errors
    /// `Invalid` if the name or the value cannot be in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ServiceError> {
        self.endpoint = self.endpoint.with_header(name, value)?;
        Ok(self)
    }

    /// Sets the HTTP client, with its own proxies, certificates and timeout. It should follow no redirect.
    #[must_use]
    pub fn with_client(mut self, http: Client) -> Self {
        self.endpoint = self.endpoint.with_client(http);
        self
    }

    /// Compacts in band: by a request with the conversation's model and tools, so that the prompt cache covers it.
    #[must_use]
    pub const fn in_band(mut self) -> Self {
        self.in_band = true;
        self
    }

    /// Compacts the messages up to a response that the service has stored.
    ///
    /// The conversation continues with the artefact as its input, and without the id of that response. The artefact
    /// is for any model: see [`CompactionPart::with_model`](epitome_std::message::CompactionPart::with_model). The
    /// instructions of that response do not apply.
    ///
    /// # Errors
    /// [`ServiceError`]. There is no retry.
    pub async fn compact_response(
        &self,
        previous_response_id: &str,
        instructions: Option<&str>,
    ) -> Result<Artefact, ServiceError> {
        let body = compact_previous_body(&self.model, previous_response_id, instructions, &self.options);
        compacted_previous(&self.vendor, "", &self.post("/responses/compact", body).await?)
    }

    async fn post(&self, path: &str, body: String) -> Result<String, ServiceError> {
        let version = self.query.as_ref().map(|version| ("api-version", version.as_str()));
        self.endpoint.post(path, version, body).await
    }

    fn unwritable(&self, error: WireError) -> ServiceError {
        let context = format!("{}: the conversation cannot be written", self.vendor.provider());
        ServiceError::new(ServiceErrorKind::Invalid("conversation".into()), context).with_source(error)
    }
}

#[async_trait]
impl CompactionService for OpenAiCompaction {
    fn provider(&self) -> &str {
        self.vendor.provider()
    }

    /// `None` for xAI in band, which xAI does not document.
    fn capabilities(&self) -> Option<Capabilities> {
        let able = !self.in_band || self.vendor.returns_users;
        let capabilities = Capabilities::new(self.vendor.position(), Cut::Group);
        // xAI documents only the compaction of messages in the request.
        let keeps = self.vendor.returns_users;
        able.then_some(if keeps { capabilities.with_kept_sessions() } else { capabilities })
    }

    async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError> {
        let Self { vendor, model, options, .. } = self;
        if self.in_band {
            let model = if request.model.is_empty() { model.as_str() } else { request.model };
            let body = trigger_body(vendor, model, request, options);
            let body = body.map_err(|error| self.unwritable(error))?;
            let answer = self.post("/responses", body.text).await?;
            return Ok(triggered(vendor, model, request, &answer)?.with_losses(body.losses));
        }
        let body = compact_body(vendor, model, request, options).map_err(|error| self.unwritable(error))?;
        let answer = self.post("/responses/compact", body.text).await?;
        // Another model may have written the artefact, which is for the model of the conversation.
        Ok(compacted(vendor, request.model, request, &answer)?.with_losses(body.losses))
    }

    /// By a separate request, also in band: see [`OpenAiCompaction::compact_response`].
    async fn compact_kept(&self, session: &KeptSession<'_>) -> Result<Artefact, ServiceError> {
        let Some(id) = session.id.as_text() else {
            let context = format!("{}: the id of a response is a text", self.vendor.provider());
            return Err(ServiceError::new(ServiceErrorKind::Invalid("previous_response_id".into()), context));
        };
        self.compact_response(id, session.instructions).await
    }
}

/// Without the key, the headers and the URL, which may hold credentials.
impl fmt::Debug for OpenAiCompaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiCompaction")
            .field("provider", &self.vendor.provider())
            .field("model", &self.model)
            .field("in_band", &self.in_band)
            .finish_non_exhaustive()
    }
}
