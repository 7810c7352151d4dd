//! Memories in a run.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_core::attribution::Retention;
use epitome_core::message::Role;

use super::retrieval::{self, text_of};
use super::{FOUND_MAX, InMemoryStore, Memory, MemoryManager, MemoryPersistence, MemoryQuery};
use crate::history::SessionId;
use crate::message::Message;
use crate::provider::{ContextProvider, Hook, source_id};
use crate::session::{SessionContext, SessionError};

/// Adds memories that match the user's input before a run, and stores the messages of the user and the model after it.
///
/// The memories that are found form one message of the context, of retrieved authority and ephemeral, with one memory
/// per line. The message is data: it cannot pass for instructions, and a memory cannot pass for another line. Messages
/// that a history provider has loaded are not added again. For this, put this provider after the history provider in
/// the list.
///
/// It searches memories of other sessions only if the caller allows it, because it does not know their owners.
///
/// ```
/// use std::sync::Arc;
/// use epitome_std::history::MemoryStore;
/// use epitome_std::memory::{InMemoryStore, MemoryContextProvider};
/// use epitome_std::provider::{HistoryProvider, Providers};
///
/// let mut providers = Providers::default();
/// providers.push(HistoryProvider::new("history", Arc::new(MemoryStore::new())))?;
/// providers.push(MemoryContextProvider::new(Arc::new(InMemoryStore::default())).with_found_max(3))?;
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Clone)]
pub struct MemoryContextProvider {
    source_id: Box<str>,
    memories: Arc<dyn MemoryManager>,
    found_max: usize,
    across_sessions: bool,
    files: Option<Files>,
}

/// Location of the memories of each session.
#[derive(Clone)]
struct Files {
    persistence: MemoryPersistence,
    store: Arc<InMemoryStore>,
    /// Whether the memories of other sessions were read.
    has_others: Arc<AtomicBool>,
}

impl Files {
    /// Reads the memories of a session, also those that another process has written meanwhile. If asked to, reads the
    /// memories of all other sessions too, once.
    async fn read(&self, session: &SessionId, others: bool) -> Result<(), SessionError> {
        if others && !self.has_others.load(Ordering::Relaxed) {
            self.persistence.load_all(&self.store).await?;
            self.has_others.store(true, Ordering::Relaxed);
        }
        self.persistence.load(&self.store, session).await.map(|_| ())
    }
}

impl MemoryContextProvider {
    /// A provider over `memories`. It searches the run's own session, and adds at most [`FOUND_MAX`] memories.
    #[must_use]
    pub fn new(memories: Arc<dyn MemoryManager>) -> Self {
        Self {
            source_id: source_id::MEMORY.into(),
            memories,
            found_max: FOUND_MAX,
            across_sessions: false,
            files: None,
        }
    }

    /// A provider over memories in memory with files. It reads the file of the session before each run. After the run
    /// it writes the memories, together with those that another process has written meanwhile. If two processes end a
    /// run of one session at the same moment, one can overwrite the memories of the other. The memories of other
    /// sessions are read once.
    ///
    /// ```
    /// use epitome_std::memory::{MemoryContextProvider, MemoryPersistence};
    ///
    /// # let root = std::env::temp_dir();
    /// let provider = MemoryContextProvider::in_files(MemoryPersistence::new(root));
    /// ```
    #[must_use]
    pub fn in_files(persistence: MemoryPersistence) -> Self {
        let store = Arc::new(InMemoryStore::default());
        let memories: Arc<dyn MemoryManager> = Arc::<InMemoryStore>::clone(&store);
        Self { files: Some(Files { persistence, store, has_others: Arc::default() }), ..Self::new(memories) }
    }

    /// Sets the source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Box<str>>) -> Self {
        self.source_id = source_id.into();
        self
    }

    /// Sets the maximum number of memories.
    #[must_use]
    pub const fn with_found_max(mut self, found_max: usize) -> Self {
        self.found_max = found_max;
        self
    }

    /// Searches the memories of all sessions. Use it only if all of them are of one person.
    #[must_use]
    pub const fn across_sessions(mut self) -> Self {
        self.across_sessions = true;
        self
    }

    /// The best memories that are not `known`, none twice, as lines.
    async fn new_lines(
        &self,
        text: &str,
        session: Option<SessionId>,
        known: HashSet<(Role, String)>,
    ) -> Result<Vec<String>, SessionError> {
        let mut query = MemoryQuery::new(text, self.found_max);
        query.session = session;
        loop {
            let found = self.memories.search(&query).await?;
            let mut seen = known.clone();
            let new = found.iter().filter(|it| seen.insert((it.role, it.text.as_str().to_owned())));
            let line = |it: &Memory| format!("{}: {}", it.role.as_str(), it.text.as_str());
            let lines: Vec<String> = new.take(self.found_max).map(line).collect();
            if lines.len() == self.found_max || found.len() < query.limit {
                return Ok(lines);
            }
            // Too many results are known already: search again with twice the limit.
            query.limit = query.limit.saturating_mul(2);
        }
    }
}

#[async_trait]
impl ContextProvider for MemoryContextProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, .. } = hook;
        if let Some(files) = &self.files {
            files.read(context.session_id(), self.across_sessions).await?;
        }
        let texts: Vec<String> =
            context.input_messages().iter().filter(|it| it.role() == Role::User).map(text_of).collect();
        let loaded = context.context_messages().iter().filter(|it| it.loaded).flat_map(|it| &it.messages);
        let loaded: HashSet<(Role, String)> = loaded.map(|it| (it.role(), text_of(it))).collect();
        let session = (!self.across_sessions).then(|| context.session_id().clone());
        let lines = self.new_lines(&texts.join("\n"), session, loaded).await?;
        let message = retrieval::retrieved_message(&self.source_id, "Said in earlier conversation:", &lines);
        context.extend_messages(&*self.source_id, message);
        Ok(())
    }

    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, .. } = hook;
        let said = remembered(context).filter(|it| it.role() != Role::System);
        let memories: Vec<Memory> = said.map(|it| Memory::new(it.role(), text_of(it))).collect();
        if memories.is_empty() {
            return Ok(());
        }
        let session = context.session_id();
        self.memories.add(session, context.run_token(), memories).await?;
        match &self.files {
            Some(files) => {
                files.read(session, false).await?;
                files.persistence.save(&files.store, session).await
            }
            None => Ok(()),
        }
    }
}

impl fmt::Debug for MemoryContextProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryContextProvider")
            .field("source_id", &self.source_id)
            .field("found_max", &self.found_max)
            .field("across_sessions", &self.across_sessions)
            .finish_non_exhaustive()
    }
}

/// The messages of a finished run that a provider of yours may store as memories. These are the messages of its input
/// and its response with a text of a user, the model or a system, except ephemeral ones.
///
/// ```
/// use epitome_std::memory::remembered;
/// use epitome_std::message::Message;
/// use epitome_std::session::{AgentResponse, AgentSession, SessionContext};
///
/// let input = vec![Message::user("I drink tea."), Message::user(" ")];
/// let run = SessionContext::new(&AgentSession::new(), "run-1", input);
/// let run = run.with_response(AgentResponse::new(vec![Message::tool("call-1", "12 cups"), Message::assistant("Noted.")]));
/// let texts: Vec<_> = remembered(&run).map(Message::text).collect();
/// assert_eq!(texts, ["I drink tea.", "Noted."]);
/// ```
pub fn remembered(context: &SessionContext) -> impl Iterator<Item = &Message> {
    let response = context.response().map(|response| response.messages.iter()).into_iter().flatten();
    context.input_messages().iter().chain(response).filter(|message| {
        let is_kept = message.attribution().retention != Retention::Ephemeral;
        let is_said = matches!(message.role(), Role::User | Role::Assistant | Role::System);
        is_kept && is_said && !message.text().trim().is_empty()
    })
}
