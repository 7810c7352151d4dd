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

/// The text before what was found, unless the caller says otherwise.
pub const PROMPT: &str = "Use the following context to answer the question:";

/// The version of the service's interface.
pub(crate) const API_VERSION: &str = "api-version=2026-04-01";

/// Maximum length of a document in bytes: the rest is left out, with a mark.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 10;

/// Default number of documents that a search finds.
const TOP: usize = 5;

/// Default number of messages in a question to a knowledge base, the latest of the input.
const MESSAGES_MAX: usize = 10;

/// Before a run, adds the documents of an index or a knowledge base of Azure AI Search that match the input.
///
/// The found documents stand in one message of the context, of retrieved authority and ephemeral, each document an entry of a list with its
/// id: they are data, and cannot pass for instructions or for another entry. A blank input asks nothing. The query is the texts of the user
/// and of the model in the input.
///
/// *Failures*: a search that fails ends the run before the model is called; a search that fails for a moment is made up to twice more. See
/// [`Endpoint`] for errors and limits. The options of an index alone (vectors, a number of documents) are refused for a knowledge base, and
/// the number of messages for an index: the hook is then `Invalid`.
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
    /// Whether something was set that only an index has, or only a knowledge base.
    is_misplaced: bool,
}

/// The credential of a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Credential {
    /// A key of the service: a query key is enough, but for looking at the definition of an index.
    ApiKey(Key),
    /// A token of Microsoft Entra for `https://search.azure.com`; it expires, so that it is asked for: see [`Key::from_fn`].
    Token(Key),
}

#[derive(Debug, Clone)]
enum Searched {
    Index(Index),
    KnowledgeBase(KnowledgeBase),
}

impl AzureAISearchContextProvider {
    /// Searches an index: by its words, by its only vector field if the service or an [`Embedder`] makes vectors for it, and by meaning if
    /// there is [a semantic configuration](Self::with_semantic_configuration).
    ///
    /// # Errors
    /// `Invalid` if no index can have this name; `Unavailable` if there is no HTTP client.
    pub fn of_index(endpoint: &str, index: &str, credential: Credential) -> Result<Self, SessionError> {
        Self::new(endpoint, credential, Searched::Index(Index::new(checked_name(index)?.into(), TOP)))
    }

    /// Asks a knowledge base, which must be there.
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

    /// Asks a knowledge base over this index, which plans queries by this model: the first hook makes the knowledge base `INDEX-kb`, or brings
    /// it up to date, and its source `INDEX-source` unless that is there. The credential must be allowed to do so, as an admin key is.
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

    /// Sets the text before what was found.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<Box<str>>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Sets how many documents of an index are found at most, 5 unless it is set.
    #[must_use]
    pub fn with_top(self, top: NonZeroUsize) -> Self {
        self.of_its_index(|index| index.top = top.get())
    }

    /// Ranks the documents of an index anew by meaning, as this configuration of the index says.
    #[must_use]
    pub fn with_semantic_configuration(self, name: impl Into<Box<str>>) -> Self {
        self.of_its_index(|index| index.semantic_configuration = Some(name.into()))
    }

    /// Searches only documents that this filter takes, an `OData` expression: `tenant eq 'north'`. It is sent as it is: never make it of what
    /// a user says.
    ///
    /// The sources of a knowledge base must all be indexes then, at most 20: the hook is `Invalid` otherwise. They are looked up at the first
    /// hook; make a new provider where sources are added later.
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

    /// Makes the vectors of queries to an index, where the service does not.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        self.of_its_index(|index| index.embedder = Some(embedder))
    }

    /// Sets the vector field of an index, for which the service makes the vectors of queries unless there is an [`Embedder`]; unless it is
    /// set, the definition of the index is looked at, once.
    #[must_use]
    pub fn with_vector_field(self, field: impl Into<Box<str>>) -> Self {
        self.of_its_index(|index| index.vector_field = Some(field.into()))
    }

    /// Sets how many of the latest messages of the input a knowledge base is asked about, 10 unless it is set.
    #[must_use]
    pub const fn with_messages_max(mut self, messages: NonZeroUsize) -> Self {
        match &mut self.searched {
            Searched::KnowledgeBase(base) => base.messages_max = messages.get(),
            Searched::Index(_) => self.is_misplaced = true,
        }
        self
    }

    /// Sets how the service is asked: with another limit of time, by an HTTP client that the application has already.
    #[must_use]
    pub fn with_endpoint(mut self, set: impl FnOnce(Endpoint) -> Endpoint) -> Self {
        self.endpoint = set(self.endpoint);
        // Another service has another index.
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

/// A name that can stand in an address: those of the service are letters, digits, dashes and underscores.
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
