//! The context provider over Mem0.

use core::num::NonZeroUsize;
use std::collections::HashSet;

use async_trait::async_trait;
use epitome_http::{Endpoint, KeyHeader};
use epitome_std::memory::{cut, remembered, retrieved_message};
use epitome_std::message::Message;
use epitome_std::provider::{ContextProvider, Hook, source_id};
use epitome_std::session::{SessionError, SessionErrorKind};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::client::{Client, Service};
use crate::filter::{Filter, filters, stamp};
use crate::{Key, Scope};

/// Default text before the memories.
pub const PROMPT: &str = "## Memories\nConsider the following memories when answering user questions:";

/// Address of the hosted service.
const HOSTED: &str = "https://api.mem0.ai";

/// Maximum number of memories that are added to a run: twice the default number of results of a self-hosted server.
const MEMORIES_MAX: usize = 40;

/// Maximum length of a memory in bytes. A longer memory is cut, and a mark shows the cut.
const MEMORY_BYTES_MAX: usize = 4 << 10;

/// Key in the provider's state for the token of the latest stored run.
const LAST_RUN: &str = "last_run";

/// Context provider over Mem0: adds the memories that are nearest to the input before a run, and stores the messages of
/// the run after it.
///
/// The found memories are list entries of one context message, which is ephemeral and has retrieved authority: they are
/// data, and cannot pass for instructions or for another entry. A blank input starts no search. The provider stores the
/// texts of user, model and system messages, except ephemeral ones. A stored run is not stored again, even if the hook
/// is called again for it.
///
/// *Scopes*: [`with_storage`](Self::with_storage) sets the ids that are stored with each memory, and
/// [`with_search`](Self::with_search) sets the owners whose memories are searched. The search scope never follows from
/// the storage scope. Without a storage scope, both hooks return an error; without a search scope, there is no search.
/// The memories of the user and those of the agent are searched separately. If the search scope has an application or a
/// thread, each search is limited to it. Only the service of mem0.ai has applications; Mem0 calls a thread a run.
/// Without a user and an agent, the search covers all memories of the application and the thread of the scope. A found
/// memory with other ids than those of the search is not shown.
///
/// *Failures*: a failed search adds nothing and does not end the run; it is reported as a `tracing` event without any
/// text. A failed store is an error of the hook, and the other providers still do their part.
///
/// *Repetitions*: after a transient error, a search is repeated up to two times. A store is repeated only if the
/// service has done nothing, because a second store makes a second memory. If the service gave no answer, or the future
/// of the hook was dropped, the run may have been stored; the next call of the hook stores it again. See [`Endpoint`],
/// also for errors and limits.
///
/// ```
/// use epitome_mem0::{Mem0ContextProvider, Scope};
///
/// let scope = Scope::default().with_user("alice");
/// let provider = Mem0ContextProvider::self_hosted("http://127.0.0.1:8888")?
///     .with_storage(scope.clone())
///     .with_search(scope)
///     .with_infer(false);
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mem0ContextProvider {
    source_id: Box<str>,
    client: Client,
    storage: Scope,
    search: Scope,
    prompt: Box<str>,
    found_max: Option<NonZeroUsize>,
    infer: Option<bool>,
}

impl Mem0ContextProvider {
    /// Creates a provider over the service of mem0.ai.
    ///
    /// # Errors
    /// `Unavailable` if the HTTP client cannot be made, for example because the system's certificates cannot be read.
    pub fn hosted(key: impl Into<Key>) -> Result<Self, SessionError> {
        Self::new(Service::Hosted, HOSTED).map(|provider| provider.with_key(key))
    }

    /// Creates a provider over a self-hosted server (`server` in Mem0's repository), without a key.
    ///
    /// # Errors
    /// As [`hosted`](Self::hosted).
    pub fn self_hosted(base_url: &str) -> Result<Self, SessionError> {
        Self::new(Service::SelfHosted, base_url)
    }

    fn new(service: Service, base_url: &str) -> Result<Self, SessionError> {
        let endpoint = Endpoint::new("mem0", base_url)?;
        Ok(Self {
            source_id: source_id::MEM0.into(),
            client: Client { service, endpoint },
            storage: Scope::default(),
            search: Scope::default(),
            prompt: PROMPT.into(),
            found_max: None,
            infer: None,
        })
    }

    /// Sets the source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Box<str>>) -> Self {
        self.source_id = source_id.into();
        self
    }

    /// Sets the ids that are stored with each memory.
    #[must_use]
    pub fn with_storage(mut self, scope: Scope) -> Self {
        self.storage = scope;
        self
    }

    /// Sets the owners whose memories are searched.
    #[must_use]
    pub fn with_search(mut self, scope: Scope) -> Self {
        self.search = scope;
        self
    }

    /// Sets the text before the memories.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<Box<str>>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Sets the maximum number of memories of each search. Without it, the service decides.
    #[must_use]
    pub const fn with_found_max(mut self, found_max: NonZeroUsize) -> Self {
        self.found_max = Some(found_max);
        self
    }

    /// Sets whether the service infers facts from the messages or stores them unchanged. Without it, the service
    /// decides; its default is to infer.
    #[must_use]
    pub const fn with_infer(mut self, infer: bool) -> Self {
        self.infer = Some(infer);
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(self, key: impl Into<Key>) -> Self {
        let key = match self.client.service {
            Service::Hosted => KeyHeader::Authorization("Token", key.into()),
            Service::SelfHosted => KeyHeader::Named("x-api-key", key.into()),
        };
        self.with_endpoint(|endpoint| endpoint.with_key(key))
    }

    /// Changes the settings of the endpoint: the address, the time limit, or the HTTP client, for example one that the
    /// application already has.
    ///
    /// ```
    /// use core::time::Duration;
    /// use epitome_mem0::Mem0ContextProvider;
    ///
    /// let provider = Mem0ContextProvider::hosted("m0-key")?.with_endpoint(|asked| asked.with_timeout(Duration::from_secs(5)));
    /// # Ok::<(), epitome_std::session::SessionError>(())
    /// ```
    #[must_use]
    pub fn with_endpoint(mut self, set: impl FnOnce(Endpoint) -> Endpoint) -> Self {
        self.client.endpoint = set(self.client.endpoint);
        self
    }

    fn checked(&self) -> Result<(), SessionError> {
        let wrong = |what: &str| Err(SessionError::new(SessionErrorKind::Invalid, format!("mem0: {what}")));
        if self.storage.is_empty() {
            return wrong(
                "nothing says whose memories are stored: with_storage does, by a user, an agent, an application or a thread",
            );
        }
        if self.client.service == Service::SelfHosted
            && (self.storage.application().or(self.search.application()).is_some())
        {
            return wrong("a server of your own knows no application: give a user, an agent or a thread");
        }
        Ok(())
    }

    /// Returns the memories for `query` without duplicates.
    async fn found(&self, query: &str) -> Vec<String> {
        let filters = filters(&self.search);
        let searches = filters.iter().map(|filter| self.client.search(query, filter, self.found_max));
        let (mut seen, mut memories) = (HashSet::new(), Vec::new());
        for (answer, filter) in join_all(searches).await.into_iter().zip(&filters) {
            let found = match answer {
                Ok(Some(found)) => found,
                Ok(None) => {
                    tracing::warn!(
                        source_id = &*self.source_id,
                        "mem0: the answer to a search has another form"
                    );
                    continue;
                }
                Err(error) => {
                    tracing::warn!(source_id = &*self.source_id, %error, "mem0: a search has failed");
                    continue;
                }
            };
            let all = found.len();
            let own: Vec<_> = found.into_iter().filter(|memory| belongs(memory, filter)).collect();
            if own.len() < all {
                let others = all - own.len();
                tracing::warn!(source_id = &*self.source_id, others, "mem0: memories of others are left out");
            }
            for memory in own {
                let is_new = id_of(&memory).is_none_or(|id| seen.insert(id));
                memories.extend(text_of(&memory).filter(|_| is_new));
            }
        }
        memories.truncate(MEMORIES_MAX);
        memories
    }
}

#[async_trait]
impl ContextProvider for Mem0ContextProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, .. } = hook;
        self.checked()?;
        if self.search.is_empty() {
            tracing::warn!(
                source_id = &*self.source_id,
                "mem0: nothing says whose memories are searched: with_search does"
            );
            return Ok(());
        }
        let said: Vec<_> = context
            .input_messages()
            .iter()
            .map(Message::text)
            .filter(|text| !text.trim().is_empty())
            .collect();
        if said.is_empty() {
            return Ok(());
        }
        let memories = self.found(said.join("\n").trim()).await;
        context
            .extend_messages(&*self.source_id, retrieved_message(&self.source_id, &self.prompt, &memories));
        Ok(())
    }

    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, state, .. } = hook;
        self.checked()?;
        let token = Value::from(context.run_token());
        if state.get(LAST_RUN) == Some(&token) {
            return Ok(());
        }
        let messages: Vec<_> = remembered(context).map(stored).collect();
        if !messages.is_empty() {
            self.client.add(messages, stamp(&self.storage), self.infer).await?;
        }
        state.insert(LAST_RUN.to_owned(), token);
        Ok(())
    }
}

/// The form of a message in a request.
fn stored(message: &Message) -> Value {
    json!({"role": message.role().as_str(), "content": message.text()})
}

/// Whether a found memory has no other id than those of the filter.
fn belongs(memory: &Value, filter: &Filter) -> bool {
    filter.iter().all(|(name, id)| match memory.get(name) {
        None | Some(Value::Null) => true,
        Some(found) => found == id,
    })
}

fn id_of(memory: &Value) -> Option<String> {
    match memory.get("id")? {
        Value::String(id) => Some(id.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// The text of a memory, shortened if it is too long; `None` if it has none.
fn text_of(memory: &Value) -> Option<String> {
    let text = memory.get("memory")?.as_str()?.trim();
    (!text.is_empty()).then(|| cut(text, MEMORY_BYTES_MAX).into_owned())
}
