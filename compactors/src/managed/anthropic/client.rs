//! The request for a summary, sent.

use core::fmt;
use std::boxed::Box;
use std::string::String;

use async_trait::async_trait;
use epitome_std::message::Str;
use reqwest::Client;
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::super::http::{Auth, Endpoint};
use super::super::{Artefact, Capabilities, CompactionService, Cut, Position, ServiceError, ServiceRequest};
use super::{ON_DEMAND_BETA, PROVIDER, Summarize, summarize_body, summarized};

/// Anthropic's compaction on demand as a [`CompactionService`].
///
/// What it leaves stands first in every later request, which has to name the beta [`ON_DEMAND_BETA`]; `convert` writes it so.
/// It has a text, which other providers read in its place.
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
/// use epitome_compactors::managed::anthropic::AnthropicCompaction;
///
/// let service = AnthropicCompaction::new("claude-opus-5-5", "sk-ant-secret".into())?;
/// assert!(!format!("{service:?}").contains("sk-ant-secret"));
/// let managed = Managed::new(Arc::new(service))?;
/// # Ok::<(), epitome_compactors::managed::ServiceError>(())
/// ```
#[derive(Clone)]
pub struct AnthropicCompaction {
    endpoint: Endpoint,
    model: Str,
    ask: Summarize,
    fields: Map<String, Value>,
}

impl AnthropicCompaction {
    /// Anthropic itself. `model` summarizes where the conversation's own is not known; otherwise that does, so that
    /// thinking behind the summary stays valid.
    ///
    /// # Errors
    /// `Unavailable` if there can be no TLS here.
    pub fn new(model: impl Into<Str>, key: SecretString) -> Result<Self, ServiceError> {
        let endpoint = Endpoint::new(PROVIDER, "https://api.anthropic.com", Auth::Header("x-api-key"), key)?
            .with_header("anthropic-version", "2023-06-01")?
            .with_header("anthropic-beta", ON_DEMAND_BETA)?;
        Ok(Self { endpoint, model: model.into(), ask: Summarize::new(), fields: Map::new() })
    }

    /// Sets the base URL, to which `/v1/messages` is added: `http://` or `https://` with a host, without a user, a query or a fragment. With
    /// another one each compaction is `Invalid`, and so it is where the key would go to another machine without encryption.
    #[must_use]
    pub fn with_base_url(mut self, base_url: &str) -> Self {
        self.endpoint = self.endpoint.with_base_url(base_url);
        self
    }

    /// Lets the key be sent without encryption to another machine: within a network that you trust.
    #[must_use]
    pub fn with_plain_http(mut self) -> Self {
        self.endpoint = self.endpoint.with_plain_http();
        self
    }

    /// Sends the key as a bearer token, as gateways want it.
    #[must_use]
    pub fn with_bearer(mut self) -> Self {
        self.endpoint = self.endpoint.with_auth(Auth::Bearer);
        self
    }

    /// Sets a header of each request. Further betas are named with [`ON_DEMAND_BETA`] in `anthropic-beta`. The value is not printed.
    ///
    /// # Errors
    /// `Invalid` if it cannot be a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ServiceError> {
        self.endpoint = self.endpoint.with_header(name, value)?;
        Ok(self)
    }

    /// Sets the HTTP client, with proxies, certificates and a timeout of its own. It should follow no redirect.
    #[must_use]
    pub fn with_client(mut self, http: Client) -> Self {
        self.endpoint = self.endpoint.with_client(http);
        self
    }

    /// Sets the instructions and `max_tokens`, which is 4,096 by default.
    #[must_use]
    pub fn with_summarize(mut self, ask: Summarize) -> Self {
        self.ask = ask;
        self
    }

    /// Sets a member of each request, as the conversation's own requests have it: `thinking`, for example.
    #[must_use]
    pub fn with_field(mut self, key: impl Into<String>, value: Value) -> Self {
        self.fields.insert(key.into(), value);
        self
    }
}

#[async_trait]
impl CompactionService for AnthropicCompaction {
    fn provider(&self) -> &str {
        PROVIDER
    }

    fn capabilities(&self) -> Option<Capabilities> {
        Some(Capabilities::new(Position::First, Cut::Turn).with_portable_text())
    }

    async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError> {
        let model = if request.model.is_empty() { self.model.as_str() } else { request.model };
        let body = summarize_body(model, request, &self.ask, &self.fields)?;
        let answer = self.endpoint.post("/v1/messages", None, body.text).await?;
        Ok(summarized(model, &answer)?.with_losses(body.losses))
    }
}

/// Neither the key nor what stands in headers, nor a URL that may hold credentials.
impl fmt::Debug for AnthropicCompaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicCompaction").field("model", &self.model).finish_non_exhaustive()
    }
}
