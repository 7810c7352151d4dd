//! The context provider over the search of Redis.

use core::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_history::RemoteOptions;
use epitome_redis::RedisServer;
use epitome_std::memory::{Scope, remembered, retrieved_message};
use epitome_std::message::Message;
use epitome_std::provider::{ContextProvider, Hook, source_id};
use epitome_std::session::{SessionContext, SessionError, SessionErrorKind};
use redis::{Cmd, cmd};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::answer::found;
use crate::filter::Filter;
use crate::index::{CONTENT, Index};
use crate::once::Once;
use crate::query::{Search, words};
use crate::service::{Service, invalid};
use crate::vectors::VectorSearch;

/// Default text before the memories.
pub const PROMPT: &str = "## Memories\nConsider the following memories when answering user questions:";

/// Default name of the index and default prefix of the keys, as in Agent Framework.
const NAME: &str = "context";

/// Default number of memories that a search finds, as in Agent Framework.
const FOUND_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9);

/// Key in the provider's state for the token of the latest stored run.
const LAST_RUN: &str = "last_run";

/// Context provider over the search of Redis: adds the memories that are nearest to the input before a run, and stores
/// the messages of the run after it.
///
/// The found memories are list entries of one context message, which is ephemeral and has retrieved authority: they are
/// data, and cannot pass for instructions or for another entry. A blank input starts no search. The query is the words
/// of the input, and their vector [if there is a model for it](Self::with_vectors). The provider stores the texts of
/// user, model and system messages, except ephemeral ones.
///
/// *Scope*: [`with_scope`](Self::with_scope) sets the owner of the memories. A stored memory has all ids of the scope.
/// A search finds the memories of all sessions that have all ids of the scope. With a thread, it finds only the
/// memories of that thread; without one, a stored memory has the id of its session as its thread. A scope needs an
/// application, an agent or a user; otherwise both hooks return an error. A found memory with another id is not shown.
///
/// *Index*: the first hook creates the index, or checks the existing index of that name. An index with another schema
/// is an `Invalid` error, which names the differences.
///
/// *Failures*: a failed search ends the run before the model is called; a failed store is an error of the hook. If the
/// server did not answer, both are repeated according to [`RemoteOptions`]. Keys follow from the run: a repeated store
/// of a run does not duplicate its memories.
///
/// ```
/// use epitome_redis_search::{Password, RedisContextProvider, RedisServer, RemoteOptions, Scope};
///
/// # async fn token() -> Result<String, epitome_history::StoreError> { Ok("a-token".to_owned()) }
/// let server = RedisServer::new("docs.redis.cache.windows.net")
///     .with_user("0f3c5a5e-object-id")
///     .with_password(Password::from_fn(|| Box::pin(async { Ok(token().await?.into()) })));
/// let memories = RedisContextProvider::new(&server, RemoteOptions::default().with_retries(1))?
///     .with_scope(Scope::default().with_user("alice"))
///     .with_index("memories")
///     .with_prefix("memories");
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RedisContextProvider {
    source_id: Box<str>,
    service: Arc<Service>,
    index: Index,
    /// Whether the index was created or checked.
    ready: Arc<Once>,
    scope: Scope,
    prompt: Box<str>,
    found_max: NonZeroUsize,
}

impl RedisContextProvider {
    /// Creates a provider over a server. The connection is opened at the first use.
    ///
    /// # Errors
    /// `Invalid` if the settings of the server are not valid.
    pub fn new(server: &RedisServer, remote: RemoteOptions) -> Result<Self, SessionError> {
        Ok(Self {
            source_id: source_id::REDIS.into(),
            service: Arc::new(Service::new(server, remote)?),
            index: Index { name: NAME.into(), prefix: NAME.into(), vectors: None },
            ready: Arc::default(),
            scope: Scope::default(),
            prompt: PROMPT.into(),
            found_max: FOUND_MAX,
        })
    }

    /// Sets the source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Box<str>>) -> Self {
        self.source_id = source_id.into();
        self
    }

    /// Sets the owner of the stored and searched memories.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the text before the memories.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<Box<str>>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Sets the maximum number of memories that a search finds. The default is 10.
    #[must_use]
    pub const fn with_found_max(mut self, found_max: NonZeroUsize) -> Self {
        self.found_max = found_max;
        self
    }

    /// Sets the name of the index. The default is `context`.
    #[must_use]
    pub fn with_index(self, name: impl Into<Box<str>>) -> Self {
        self.with_other(|index| index.name = name.into())
    }

    /// Sets the prefix of the keys. The default is `context`. If the prefix of another index is the beginning of this
    /// prefix, that index finds the same memories.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<Box<str>>) -> Self {
        self.with_other(|index| index.prefix = prefix.into())
    }

    /// Stores vectors with the texts, and searches by vectors too.
    #[must_use]
    pub fn with_vectors(self, vectors: VectorSearch) -> Self {
        self.with_other(|index| index.vectors = Some(vectors))
    }

    fn with_other(mut self, set: impl FnOnce(&mut Index)) -> Self {
        set(&mut self.index);
        self.ready = Arc::default();
        self
    }

    async fn ensure_index(&self) -> Result<(), SessionError> {
        self.ready.ensure(|| self.index.ensure(&self.service)).await
    }

    /// Returns the memories for `text`.
    async fn search(&self, text: &str, filter: &Filter) -> Result<Vec<String>, SessionError> {
        let vectors = self.index.vectors.as_ref();
        let words = match vectors {
            Some(vectors) if !vectors.with_words => Vec::new(),
            _ => words(text),
        };
        if words.is_empty() && vectors.is_none() {
            return Ok(Vec::new());
        }
        self.ensure_index().await?;
        let vector = match vectors {
            Some(vectors) => Some((vectors, vectors.embed(text).await?)),
            None => None,
        };
        let found_max = self.found_max.get();
        let search = Search { index: &self.index.name, filter, words: &words, vector, found_max };
        let answer = self.service.ask("search", &search.command()).await.inspect_err(|error| {
            // The index was dropped, perhaps by mistake: the next run creates it again.
            if error.kind() == SessionErrorKind::NotFound {
                self.ready.forget();
            }
        })?;
        let other = || {
            invalid(
                "the answer to a search has another form; Redis 8 or RediSearch 2.10 is needed, or a later one",
            )
        };
        let found = found(&answer, filter, found_max).ok_or_else(other)?;
        if found.others > 0 {
            tracing::warn!(
                source_id = &*self.source_id,
                others = found.others,
                "redis: memories of others are left out"
            );
        }
        Ok(found.texts)
    }

    /// The command that stores a message, the `at`th of its run.
    async fn stored(
        &self,
        context: &SessionContext,
        filter: &Filter,
        at: usize,
        message: &Message,
    ) -> Result<Cmd, SessionError> {
        let (text, session) = (message.text(), context.session_id().as_str());
        let mut command = cmd("HSET");
        command.arg(self.key(context, filter, at));
        command.arg("role").arg(message.role().as_str()).arg(CONTENT).arg(&*text);
        command.arg("conversation_id").arg(session);
        for (field, value) in [("message_id", message.id()), ("author_name", message.name())] {
            if let Some(value) = value {
                command.arg(field).arg(value);
            }
        }
        for (field, id) in filter.ids() {
            command.arg(field).arg(id);
        }
        if self.scope.thread().is_none() {
            command.arg("thread_id").arg(session);
        }
        if let Some(vectors) = &self.index.vectors {
            command.arg(&*vectors.field).arg(vectors.embed(&text).await?);
        }
        Ok(command)
    }

    /// The key of a message. It is the same for each repeated store of the run, and differs between owners.
    fn key(&self, context: &SessionContext, filter: &Filter, at: usize) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        };
        for (field, id) in filter.ids() {
            add(field);
            add(id);
        }
        add(context.session_id().as_str());
        add(context.run_token());
        let digest = hash.finalize();
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{}:{name}-{at}", self.index.prefix)
    }
}

#[async_trait]
impl ContextProvider for RedisContextProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, .. } = hook;
        let filter = Filter::of(&self.scope)?;
        let said = context.input_messages().iter().map(Message::text);
        let said: Vec<_> = said.filter(|text| !text.trim().is_empty()).collect();
        if said.is_empty() {
            return Ok(());
        }
        let memories = self.search(said.join("\n").trim(), &filter).await?;
        context
            .extend_messages(&*self.source_id, retrieved_message(&self.source_id, &self.prompt, &memories));
        Ok(())
    }

    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, state, .. } = hook;
        let filter = Filter::of(&self.scope)?;
        let token = Value::from(context.run_token());
        if state.get(LAST_RUN) == Some(&token) {
            return Ok(());
        }
        let messages: Vec<_> = remembered(context).collect();
        if !messages.is_empty() {
            self.ensure_index().await?;
        }
        let mut commands = Vec::with_capacity(messages.len());
        for (at, message) in messages.into_iter().enumerate() {
            commands.push(self.stored(context, &filter, at, message).await?);
        }
        for command in &commands {
            self.service.ask("store", command).await?;
        }
        state.insert(LAST_RUN.to_owned(), token);
        Ok(())
    }
}
