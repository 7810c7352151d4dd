//! Texts that an application looks up for a run.

use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_core::message::Role;
use serde_json::Value;

use super::FOUND_MAX;
use crate::message::{Attribution, Message, Part, Str};
use crate::provider::{ContextProvider, Hook};
use crate::session::{SessionContext, SessionError, State};

/// Finds texts for a query: an application's index, vector store or search service.
///
/// ```
/// use async_trait::async_trait;
/// use epitome_std::memory::{Retrieved, Retriever};
/// use epitome_std::session::SessionError;
///
/// /// Where a search of yours would be asked.
/// #[derive(Debug)]
/// struct Handbook;
///
/// #[async_trait]
/// impl Retriever for Handbook {
///     async fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Retrieved>, SessionError> {
///         let pages = [Retrieved::new("The office opens at nine.").with_origin("page 3")];
///         Ok(pages.into_iter().filter(|_| query.contains("office")).take(limit).collect())
///     }
/// }
/// ```
#[async_trait]
pub trait Retriever: Send + Sync + fmt::Debug {
    /// At most `limit` texts for `query`, best first.
    ///
    /// # Errors
    /// The error of the search. The run then ends before the model is called.
    async fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Retrieved>, SessionError>;
}

/// A text that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retrieved {
    /// The text.
    pub text: Str,
    /// The origin of the text, for the model to cite; empty if it is unknown.
    pub origin: Str,
}

impl Retrieved {
    /// A text of unknown origin.
    #[must_use]
    pub fn new(text: impl Into<Str>) -> Self {
        Self { text: text.into(), origin: Str::default() }
    }

    /// Sets the origin of the text.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<Str>) -> Self {
        self.origin = origin.into();
        self
    }
}

/// Adds texts that a [`Retriever`] finds for the messages of a run.
///
/// The texts that are found form one message of the context, of retrieved authority and ephemeral. The message is data,
/// not instructions. Only a history that stores context stores it.
///
/// The query is the input of the run. After a history provider, the query may also contain the messages that it has
/// loaded ([`RetrievalProvider::with_recent`]). Without a history provider, the query may contain a buffer of the
/// latest messages, which the session keeps ([`RetrievalProvider::buffered`]).
///
/// ```
/// use std::sync::Arc;
/// use epitome_std::memory::{KeywordRetriever, RetrievalProvider};
/// use epitome_std::message::Message;
/// use epitome_std::provider::{NamedAgent, Providers};
/// use epitome_std::session::{AgentSession, SessionContext};
///
/// # futures::executor::block_on(async {
/// let retriever = Arc::new(KeywordRetriever::new(["The office opens at nine.", "Lunch is at noon."]));
/// let mut providers = Providers::default();
/// providers.push(RetrievalProvider::new("rag", retriever))?;
/// let mut session = AgentSession::new();
/// let mut context = SessionContext::new(&session, "run-1", vec![Message::user("When does the office open?")]);
/// providers.before_run(&NamedAgent::new("a"), &mut session, &mut context).await?;
/// assert_eq!(context.prompt_messages().count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct RetrievalProvider {
    source_id: Box<str>,
    retriever: Arc<dyn Retriever>,
    found_max: usize,
    recent: usize,
    buffer_window: Option<usize>,
}

/// Default number of exchanges in a buffer: the seed's `buffer_window = 5`.
const BUFFER_WINDOW: usize = 5;

/// The key of the buffer in the provider's state: a list of texts, oldest first.
const BUFFER: &str = "buffer";

impl RetrievalProvider {
    /// A provider over `retriever`. The query is the input, and it adds at most [`FOUND_MAX`] texts.
    #[must_use]
    pub fn new(source_id: impl Into<Box<str>>, retriever: Arc<dyn Retriever>) -> Self {
        Self { source_id: source_id.into(), retriever, found_max: FOUND_MAX, recent: 0, buffer_window: None }
    }

    /// Sets the maximum number of texts.
    #[must_use]
    pub const fn with_found_max(mut self, found_max: usize) -> Self {
        self.found_max = found_max;
        self
    }

    /// Adds the latest messages of the context to the query: as many as `messages`, of the providers before this one.
    #[must_use]
    pub const fn with_recent(mut self, messages: usize) -> Self {
        self.recent = messages;
        self
    }

    /// Puts the last five exchanges into the query.
    #[must_use]
    pub const fn buffered(self) -> Self {
        self.with_buffer(BUFFER_WINDOW)
    }

    /// Puts the last `window` exchanges (twice as many messages) into the query. The state of each session keeps its
    /// own.
    #[must_use]
    pub const fn with_buffer(mut self, window: usize) -> Self {
        self.buffer_window = Some(window);
        self
    }

    fn query(&self, context: &SessionContext, state: &State) -> String {
        let before: Vec<&Message> = context.get_messages(&crate::session::MessageFilter::new());
        let recent = before.get(before.len().saturating_sub(self.recent)..).unwrap_or_default();
        let mut texts: Vec<String> = Vec::new();
        if self.buffer_window.is_some() {
            texts.extend(buffer(state).filter_map(Value::as_str).map(str::to_owned));
        }
        texts.extend(recent.iter().map(|message| text_of(message)));
        texts.extend(context.input_messages().iter().map(text_of));
        texts.retain(|text| !text.is_empty());
        texts.join("\n")
    }
}

#[async_trait]
impl ContextProvider for RetrievalProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, state, .. } = hook;
        let query = self.query(context, state);
        if query.is_empty() {
            return Ok(());
        }
        let found = self.retriever.retrieve(&query, self.found_max).await?;
        let line = |found: &Retrieved| match found.origin.as_str() {
            "" => found.text.as_str().to_owned(),
            origin => format!("[{origin}] {}", found.text.as_str()),
        };
        let lines: Vec<String> = found.iter().take(self.found_max).map(line).collect();
        let message = retrieved_message(&self.source_id, "Possibly relevant:", &lines);
        context.extend_messages(&*self.source_id, message);
        Ok(())
    }

    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, state, .. } = hook;
        let Some(window) = self.buffer_window else { return Ok(()) };
        // A repeated call finds the run in the buffer already.
        let token = Value::from(context.run_token());
        if state.get(LAST_RUN) == Some(&token) {
            return Ok(());
        }
        let response = context.response().iter().flat_map(|response| &response.messages).collect::<Vec<_>>();
        let said =
            context.input_messages().iter().chain(response).map(text_of).filter(|text| !text.is_empty());
        let mut texts: Vec<Value> = buffer(state).cloned().chain(said.map(Value::from)).collect();
        let kept = texts.len().saturating_sub(window.saturating_mul(2));
        texts.drain(..kept);
        state.insert(BUFFER.to_owned(), Value::Array(texts));
        state.insert(LAST_RUN.to_owned(), token);
        Ok(())
    }
}

/// The key of the token of the latest run in the buffer.
const LAST_RUN: &str = "last_run";

impl fmt::Debug for RetrievalProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetrievalProvider")
            .field("source_id", &self.source_id)
            .field("retriever", &self.retriever)
            .field("found_max", &self.found_max)
            .field("buffer_window", &self.buffer_window)
            .finish_non_exhaustive()
    }
}

fn buffer(state: &State) -> impl Iterator<Item = &Value> {
    state.get(BUFFER).and_then(Value::as_array).into_iter().flatten()
}

/// Makes one context message of these texts, for a provider of yours. It has retrieved authority and is ephemeral. Each
/// text is an entry of a list. Its further lines are indented, so that it cannot pass for another entry. `None` if
/// there is no text.
///
/// ```
/// use epitome_std::memory::retrieved_message;
///
/// let found = ["The office opens at nine.".to_owned(), "One line.\n- No second entry.".to_owned()];
/// let message = retrieved_message("rag", "Possibly relevant:", &found).unwrap();
/// assert_eq!(message.text(), "Possibly relevant:\n- The office opens at nine.\n- One line.\n  - No second entry.");
/// ```
#[must_use]
pub fn retrieved_message(source_id: &str, heading: &str, texts: &[String]) -> Option<Message> {
    if texts.is_empty() {
        return None;
    }
    let mut body = heading.to_owned();
    for text in texts {
        body.push_str("\n- ");
        // Every kind of line end that a model may take for one.
        let mut lines = text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
        body.push_str(lines.next().unwrap_or_default());
        for line in lines {
            body.push_str("\n  ");
            body.push_str(line);
        }
    }
    let attribution = Attribution::new(source_id, SourceKind::Context, Authority::Retrieved);
    let message = Message::new(Role::User, vec![Part::Text(body.into())]);
    Some(message.with_attribution(attribution.with_retention(Retention::Ephemeral)))
}

/// Keeps at most `bytes_max` bytes of a text. If a part is missing, the mark ` [..]` follows, in addition to these bytes.
///
/// ```
/// assert_eq!(epitome_std::memory::cut("tea", 3), "tea");
/// assert_eq!(epitome_std::memory::cut("thé vert", 3), "th [..]");
/// ```
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.get(..text.floor_char_boundary(bytes_max)) {
        Some(start) if start.len() < text.len() => format!("{start} [..]").into(),
        _ => text.into(),
    }
}

/// The texts of a message, joined by line breaks.
pub(super) fn text_of(message: &Message) -> String {
    let texts = message.parts().iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
