//! The context provider that shows hidden messages again before a run that is about them.

use async_trait::async_trait;
use epitome_core::Seq;
use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_core::message::Role;

use super::FOUND_MAX;
use super::retrieval::text_of;
use crate::history::{History, Live};
use crate::message::{Attribution, Message, Part};
use crate::provider::{ContextProvider, Hook};
use crate::search::nearest_record;
use crate::session::SessionError;

/// Shows messages of the session that compactions have hidden or shortened, before a run. It chooses the messages that
/// are nearest to the user's input, by BM25.
///
/// The messages that are found form one message of the context, of retrieved authority and ephemeral. The message
/// states that it is a record: it is data, not instructions. Each found message has its number in the log, by which
/// [`RecallTool`](crate::run::RecallTool) reads more of it. Pruned messages are not found, nor messages that the user
/// has taken back.
///
/// Put it after the history provider in the list of providers; the source id names that provider. Nothing is searched
/// if the input has no text of the user, or if no message of the session is hidden or shortened. It shows messages of
/// the run's own session only.
///
/// *Cost*: a run reads the records of the session, and makes one search of its log
/// ([`HistoryStore::search`](crate::history::HistoryStore::search)).
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_std::history::MemoryStore;
/// use epitome_std::memory::RecallProvider;
/// use epitome_std::provider::HistoryProvider;
/// use epitome_std::run::RunSettings;
///
/// let settings = RunSettings::new("helper")
///     .with_provider(HistoryProvider::new("history", Arc::new(MemoryStore::new())))?
///     .with_provider(RecallProvider::new("history"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecallProvider {
    source_id: Box<str>,
    history: Box<str>,
    found_max: usize,
    tokens_max: u32,
}

/// The default source id.
const SOURCE_ID: &str = "recall";

/// The default maximum of tokens: half of the maximum of an answer of the tool.
const TOKENS_MAX: u32 = 1_000;

impl RecallProvider {
    /// A provider for the history provider with the source id `history`: at most [`FOUND_MAX`] messages, in at most
    /// 1,000 tokens.
    #[must_use]
    pub fn new(history: impl Into<Box<str>>) -> Self {
        Self {
            source_id: SOURCE_ID.into(),
            history: history.into(),
            found_max: FOUND_MAX,
            tokens_max: TOKENS_MAX,
        }
    }

    /// Sets the source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Box<str>>) -> Self {
        self.source_id = source_id.into();
        self
    }

    /// Sets the maximum number of messages.
    #[must_use]
    pub const fn with_found_max(mut self, found_max: usize) -> Self {
        self.found_max = found_max;
        self
    }

    /// Sets the maximum number of tokens, by the counter of the history. A maximum below some hundred has no room for a
    /// message.
    #[must_use]
    pub const fn with_tokens_max(mut self, tokens_max: u32) -> Self {
        self.tokens_max = tokens_max;
        self
    }

    /// The record of the messages that are nearest to `query`, if there are any.
    async fn found(&self, history: &History, query: &str) -> Result<Option<String>, SessionError> {
        let limit = u32::try_from(self.found_max).unwrap_or(u32::MAX);
        let unseen = history.unseen().await?;
        let nearest = unseen.nearest(query, Seq(0)..history.head(), limit).await?;
        let nearest = nearest.iter().map(|logged| (logged.seq.0, &logged.entry.message));
        Ok(nearest_record(query, nearest, history.counter(), self.tokens_max))
    }
}

#[async_trait]
impl ContextProvider for RecallProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, .. } = hook;
        let says = context.input_messages().iter().filter(|message| message.role() == Role::User);
        let query = says.map(text_of).collect::<Vec<_>>().join("\n");
        let Some(history) = context.history(&self.history) else { return Ok(()) };
        if query.trim().is_empty() || is_whole(history) {
            return Ok(());
        }
        let Some(text) = self.found(history, &query).await? else { return Ok(()) };
        let attribution = Attribution::new(&*self.source_id, SourceKind::Context, Authority::Retrieved);
        let message = Message::new(Role::User, vec![Part::Text(text.into())])
            .with_attribution(attribution.with_retention(Retention::Ephemeral));
        context.extend_messages(&*self.source_id, Some(message));
        Ok(())
    }
}

/// Whether a history shows all messages of its log, unchanged.
fn is_whole(history: &History) -> bool {
    let live = history.live();
    live.len() as u64 == history.head().0 && live.iter().all(Live::is_whole)
}
