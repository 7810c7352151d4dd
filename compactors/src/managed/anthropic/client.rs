//! HTTP client for summaries on demand.

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

/// Anthropic's compaction on demand, as a [`CompactionService`].
///
/// Its artefact is first in every later request. These requests need the beta [`ON_DEMAND_BETA`]; `convert` writes
/// the artefact in this place. The artefact has a text, which other providers read instead.
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
    /// A client for Anthropic's own endpoint. It uses the conversation's model, so that thinking behind the summary
    /// stays valid; `model` is used only if the conversation's model is not known.
    ///
    /// # Errors
    /// `Unavailable` if TLS cannot be set up.
    pub fn new(model: impl Into<Str>, key: SecretString) -> Result<Self, ServiceError> {
        let endpoint = Endpoint::new(PROVIDER, "https://api.anthropic.com", Auth::Header("x-api-key"), key)?
            .with_header("anthropic-version", "2023-06-01")?
            .with_header("anthropic-beta", ON_DEMAND_BETA)?;
        Ok(Self { endpoint, model: model.into(), ask: Summarize::new(), fields: Map::new() })
    }

    /// Sets the base URL, to which `/v1/messages` is added: `http://` or `https://` with a host, without a user, a
    /// query or a fragment. With any other URL each compaction fails with `Invalid`; likewise if the key would go
    /// to another machine without encryption.
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

    /// Sends the key as a bearer token, as gateways require it.
    #[must_use]
    pub fn with_bearer(mut self) -> Self {
        self.endpoint = self.endpoint.with_auth(Auth::Bearer);
        self
    }

    /// Sets a header of each request. A value for `anthropic-beta` must also contain [`ON_DEMAND_BETA`]. Debug
    /// output does not contain the value.
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

    /// Sets the instructions and `max_tokens`, which is 4,096 by default.
    #[must_use]
    pub fn with_summarize(mut self, ask: Summarize) -> Self {
        self.ask = ask;
        self
    }

    /// Sets a member of each request, for example `thinking`, to its value in the conversation's own requests.
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

/// Without the key, the headers and the URL, which may hold credentials.
impl fmt::Debug for AnthropicCompaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicCompaction").field("model", &self.model).finish_non_exhaustive()
    }
}
