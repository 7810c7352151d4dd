//! Creation of a knowledge base over an index, with the model that plans its queries.

use epitome_http::{Endpoint, Key, Repeat};
use epitome_std::session::{SessionError, SessionErrorKind};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::provider::{API_VERSION, checked_name};

/// The kind of a knowledge source over an index.
pub(crate) const OF_INDEX: &str = "searchIndex";

/// A model in Azure OpenAI that plans the queries of a knowledge base.
///
/// ```
/// use epitome_azure_search::KnowledgeModel;
///
/// let model = KnowledgeModel::new("https://docs.openai.azure.com", "gpt-4.1-mini").with_key("a-key");
/// assert!(!format!("{model:?}").contains("a-key"));
/// ```
#[derive(Debug, Clone)]
pub struct KnowledgeModel {
    resource_url: Box<str>,
    deployment: Box<str>,
    key: Option<Key>,
}

impl KnowledgeModel {
    /// Selects a deployment in a resource of Azure OpenAI. The name of the deployment must also be the name of its
    /// model. Without a key, the search service uses its managed identity.
    #[must_use]
    pub fn new(resource_url: impl Into<Box<str>>, deployment: impl Into<Box<str>>) -> Self {
        Self { resource_url: resource_url.into(), deployment: deployment.into(), key: None }
    }

    /// Sets the key of the resource. The provider looks the key up when it makes the knowledge base, and stores the key
    /// with the knowledge base.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Key>) -> Self {
        self.key = Some(key.into());
        self
    }

    async fn definition(&self, endpoint: &Endpoint) -> Result<Value, SessionError> {
        let mut parameters = json!({
            "resourceUri": self.resource_url, "deploymentId": self.deployment, "modelName": self.deployment,
        });
        if let (Some(key), Some(parameters)) = (&self.key, parameters.as_object_mut()) {
            let key = endpoint.look_up(key).await?;
            parameters.insert("apiKey".to_owned(), key.expose_secret().into());
        }
        Ok(json!({"kind": "azureOpenAI", "azureOpenAIParameters": parameters}))
    }
}

/// The knowledge base of an index, and its only source.
#[derive(Debug, Clone)]
pub(crate) struct Creation {
    index: Box<str>,
    model: KnowledgeModel,
}

impl Creation {
    pub(crate) fn new(index: &str, model: KnowledgeModel) -> Result<Self, SessionError> {
        Ok(Self { index: checked_name(index)?.into(), model })
    }

    /// The name of the knowledge base.
    pub(crate) fn base(&self) -> String {
        format!("{}-kb", self.index)
    }

    /// The name of the knowledge source.
    pub(crate) fn source(&self) -> String {
        format!("{}-source", self.index)
    }

    /// Makes the knowledge source if it does not exist, and creates or updates the knowledge base.
    ///
    /// # Cancel safety
    /// If the future is dropped, the knowledge source may exist without the knowledge base. A repeated call completes
    /// the work.
    pub(crate) async fn ensure(&self, endpoint: &Endpoint) -> Result<(), SessionError> {
        self.ensure_source(endpoint).await?;
        let (base, index) = (self.base(), &self.index);
        let definition = json!({
            "name": base,
            "description": format!("Knowledge Base for multi-hop retrieval across {index}"),
            "knowledgeSources": [{"name": self.source()}],
            "models": [self.model.definition(endpoint).await?],
        });
        endpoint.put(&format!("/knowledgebases('{base}')?{API_VERSION}"), &definition).await.map(|_| ())
    }

    async fn ensure_source(&self, endpoint: &Endpoint) -> Result<(), SessionError> {
        let path = format!("/knowledgesources('{}')?{API_VERSION}", self.source());
        let source = match endpoint.get(&path).await {
            Err(error) if error.kind() == SessionErrorKind::NotFound => {
                let Err(error) = self.create_source(endpoint).await else { return Ok(()) };
                // Another process may have been faster, or the answer was lost.
                endpoint.get(&path).await.map_err(|_| error)?
            }
            source => source?,
        };
        let index = source.get("searchIndexParameters").and_then(|it| it.get("searchIndexName"));
        if index.and_then(Value::as_str) == Some(&*self.index) {
            return Ok(());
        }
        let what = "azure ai search: the knowledge source of this index's name is over something else; delete it, or name the knowledge base";
        Err(SessionError::new(SessionErrorKind::Invalid, what))
    }

    async fn create_source(&self, endpoint: &Endpoint) -> Result<(), SessionError> {
        let index = &self.index;
        let definition = json!({
            "name": self.source(),
            "kind": OF_INDEX,
            "description": format!("Knowledge source for {index} search index"),
            "searchIndexParameters": {"searchIndexName": index},
        });
        endpoint.send(&format!("/knowledgesources?{API_VERSION}"), &definition, Repeat::IfUndone).await
    }
}
