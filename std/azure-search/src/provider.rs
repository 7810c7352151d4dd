//! The context provider over Azure AI Search.

use core::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_core::message::Role;
use epitome_http::{Endpoint, Key, KeyHeader};
use epitome_std::memory::{Embedder, retrieved_message};
use epitome_std::message::Message;
use epitome_std::provider::{ContextProvider, Hook, source_id};
use epitome_std::session::{SessionError, SessionErrorKind};

use crate::creation::{Creation, KnowledgeModel};
use crate::index::Index;
use crate::knowledge_base::KnowledgeBase;

/// Default text before the found documents.
pub const PROMPT: &str = "Use the following context to answer the question:";

/// Version of the REST interface of the service.
pub(crate) const API_VERSION: &str = "api-version=2026-04-01";

/// Maximum length of a document in bytes. A longer document is cut, and a mark shows the cut.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 10;

/// Default number of documents that a search finds.
const TOP: usize = 5;

/// Default number of messages in a question to a knowledge base: the latest messages of the input.
const MESSAGES_MAX: usize = 10;

/// Context provider over Azure AI Search: before a run, adds the documents of an index or a knowledge base that match
/// the input.
///
/// The found documents are list entries of one context message, which is ephemeral and has retrieved authority. Each
/// entry has the id of its document. Documents are data, and cannot pass for instructions or for another entry. A blank
/// input starts no search. The query is the texts of the user and model messages in the input.
///
/// *Failures*: a failed search ends the run before the model is called. After a transient error, a search is repeated
/// up to two times. See [`Endpoint`] for errors and limits. Vectors, a semantic configuration and a number of documents
/// are options of an index; the number of messages is an option of a knowledge base. With an option of the other kind,
/// the hook returns `Invalid`.
///
/// ```
/// use epitome_azure_search::{AzureAISearchContextProvider, Credential};
///
/// let endpoint = "https://docs.search.windows.net";
/// let by_index = AzureAISearchContextProvider::of_index(endpoint, "handbook", Credential::ApiKey("a-key".into()))?
///     .with_filter("tenant eq 'north'")
///     .with_top(3.try_into()?);
/// let by_base = AzureAISearchContextProvider::of_knowledge_base(endpoint, "handbook-kb", Credential::ApiKey("a-key".into()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct AzureAISearchContextProvider {
    source_id: Box<str>,
    endpoint: Endpoint,
    searched: Searched,
    prompt: Box<str>,
    /// Whether an option was set that only the other kind of target has.
    is_misplaced: bool,
}

/// The credential of a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Credential {
    /// An API key of the service. A query key is enough, except to read the definition of an index.
    ApiKey(Key),
    /// A token of Microsoft Entra for `https://search.azure.com`. Tokens expire, so use [`Key::from_fn`], which can
    /// return a fresh token.
    Token(Key),
}

#[derive(Debug, Clone)]
enum Searched {
    Index(Index),
    KnowledgeBase(KnowledgeBase),
}

impl AzureAISearchContextProvider {
    /// Creates a provider that searches an index: by words; by its only vector field, if the service or an [`Embedder`]
    /// makes the vectors of queries; and by meaning, if there is [a semantic
    /// configuration](Self::with_semantic_configuration).
    ///
    /// # Errors
    /// `Invalid` if the name is not a valid index name; `Unavailable` if the HTTP client cannot be made.
    pub fn of_index(endpoint: &str, index: &str, credential: Credential) -> Result<Self, SessionError> {
        Self::new(endpoint, credential, Searched::Index(Index::new(checked_name(index)?.into(), TOP)))
    }

    /// Creates a provider that asks an existing knowledge base.
    ///
    /// # Errors
    /// As [`of_index`](Self::of_index).
    pub fn of_knowledge_base(
        endpoint: &str,
        name: &str,
        credential: Credential,
    ) -> Result<Self, SessionError> {
        let base = KnowledgeBase::new(checked_name(name)?.into(), MESSAGES_MAX);
        Self::new(endpoint, credential, Searched::KnowledgeBase(base))
    }

    /// Creates a provider that asks a knowledge base over an index, with a model that plans the queries.
    ///
    /// The first hook creates or updates the knowledge base `INDEX-kb`. It also creates the knowledge source
    /// `INDEX-source` if that does not exist. The credential needs the permission to do so, as an admin key has it.
    ///
    /// # Errors
    /// As [`of_index`](Self::of_index).
    pub fn of_knowledge_base_over(
        endpoint: &str,
        index: &str,
        model: KnowledgeModel,
        credential: Credential,
    ) -> Result<Self, SessionError> {
        let creation = Creation::new(index, model)?;
        let base = KnowledgeBase::new(creation.base().into(), MESSAGES_MAX);
        let base = KnowledgeBase { creation: Some(creation), ..base };
        Self::new(endpoint, credential, Searched::KnowledgeBase(base))
    }

    fn new(endpoint: &str, credential: Credential, searched: Searched) -> Result<Self, SessionError> {
        let key = match credential {
            Credential::ApiKey(key) => KeyHeader::Named("api-key", key),
            Credential::Token(key) => KeyHeader::Authorization("Bearer", key),
        };
        Ok(Self {
            source_id: source_id::AZURE_AI_SEARCH.into(),
            endpoint: Endpoint::new("azure ai search", endpoint)?.with_key(key),
            searched,
            prompt: PROMPT.into(),
            is_misplaced: false,
        })
    }

    /// Sets the source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Box<str>>) -> Self {
        self.source_id = source_id.into();
        self
    }

    /// Sets the text before the found documents.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<Box<str>>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Sets the maximum number of documents from an index. The default is 5.
    #[must_use]
    pub fn with_top(self, top: NonZeroUsize) -> Self {
        self.of_its_index(|index| index.top = top.get())
    }

    /// Ranks the found documents again by meaning, with this semantic configuration of the index.
    #[must_use]
    pub fn with_semantic_configuration(self, name: impl Into<Box<str>>) -> Self {
        self.of_its_index(|index| index.semantic_configuration = Some(name.into()))
    }

    /// Limits the search to documents that match a filter, an `OData` expression such as `tenant eq 'north'`. The
    /// filter is sent unchanged: never build it from the text of a user.
    ///
    /// For a knowledge base, all sources must then be indexes, and there may be at most 20; otherwise the hook returns
    /// `Invalid`. The first hook looks the sources up; create a new provider if sources are added later.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Into<Box<str>>) -> Self {
        match &mut self.searched {
            Searched::Index(index) => index.filter = Some(filter.into()),
            Searched::KnowledgeBase(base) => {
                base.filter = Some(filter.into());
                base.sources = Arc::default();
            }
        }
        self
    }

    /// Sets the embedder that makes the vectors of queries to an index, for an index whose vectors the service does not
    /// make.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        self.of_its_index(|index| index.embedder = Some(embedder))
    }

    /// Sets the vector field of an index. The service makes the vectors of queries, unless an [`Embedder`] is set.
    /// Without this setting, the provider reads the definition of the index once.
    #[must_use]
    pub fn with_vector_field(self, field: impl Into<Box<str>>) -> Self {
        self.of_its_index(|index| index.vector_field = Some(field.into()))
    }

    /// Sets the number of input messages in a question to a knowledge base, the latest ones. The default is 10.
    #[must_use]
    pub const fn with_messages_max(mut self, messages: NonZeroUsize) -> Self {
        match &mut self.searched {
            Searched::KnowledgeBase(base) => base.messages_max = messages.get(),
            Searched::Index(_) => self.is_misplaced = true,
        }
        self
    }

    /// Changes the settings of the endpoint: the time limit, or the HTTP client, for example one that the application
    /// already has.
    #[must_use]
    pub fn with_endpoint(mut self, set: impl FnOnce(Endpoint) -> Endpoint) -> Self {
        self.endpoint = set(self.endpoint);
        // The definition of another service's index or knowledge base may differ.
        match &mut self.searched {
            Searched::Index(index) => index.discovered = Arc::default(),
            Searched::KnowledgeBase(base) => base.sources = Arc::default(),
        }
        self
    }

    fn of_its_index(mut self, set: impl FnOnce(&mut Index)) -> Self {
        match &mut self.searched {
            Searched::Index(index) => {
                set(index);
                index.discovered = Arc::default();
            }
            Searched::KnowledgeBase(_) => self.is_misplaced = true,
        }
        self
    }
}

#[async_trait]
impl ContextProvider for AzureAISearchContextProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, .. } = hook;
        if self.is_misplaced {
            let what = "azure ai search: a knowledge base takes no top, semantic configuration, embedder or vector field, and an index no number \
                        of messages";
            return Err(SessionError::new(SessionErrorKind::Invalid, what));
        }
        let said =
            context.input_messages().iter().filter(|it| matches!(it.role(), Role::User | Role::Assistant));
        let said: Vec<_> = said.map(Message::text).filter(|text| !text.trim().is_empty()).collect();
        if said.is_empty() {
            return Ok(());
        }
        let found = match &self.searched {
            Searched::Index(index) => index.search(&self.endpoint, &said.join("\n")).await?,
            Searched::KnowledgeBase(base) => {
                let latest = said.get(said.len().saturating_sub(base.messages_max)..).unwrap_or_default();
                base.retrieve(&self.endpoint, &latest.join("\n")).await?
            }
        };
        context.extend_messages(&*self.source_id, retrieved_message(&self.source_id, &self.prompt, &found));
        Ok(())
    }
}

/// Checks that a name can be part of a URL. Names of the service have letters, digits, dashes and underscores.
pub(crate) fn checked_name(name: &str) -> Result<&str, SessionError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => Ok(name),
        false => Err(SessionError::new(
            SessionErrorKind::Invalid,
            "azure ai search: a name has letters, digits, dashes and underscores",
        )),
    }
}
