//! Storage of the session itself, with its history.

use std::sync::Arc;

use tracing::{Instrument, debug_span};

use super::{Backing, HistoryProvider};
use crate::history::{HistoryStore, NewState, SessionId, StateOutcome, StoreErrorKind};
use crate::session::{AgentSession, SessionContext, SessionError, SessionErrorKind, State};

impl HistoryProvider {
    /// Loads the latest stored state of the session `id`: see [`HistoryProvider::keep_state`]. Returns a new session if
    /// none is stored.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use epitome_std::history::MemoryStore;
    /// use epitome_std::message::Message;
    /// use epitome_std::provider::{HistoryProvider, Providers};
    /// use epitome_std::run::{ModelResponse, Run, RunOptions, RunSettings};
    ///
    /// # futures::executor::block_on(async {
    /// let history = HistoryProvider::new("main", Arc::new(MemoryStore::new())).keep_state(true);
    /// let mut providers = Providers::default();
    /// providers.push(history.clone())?;
    /// let settings = RunSettings::new("helper").with_providers(providers);
    ///
    /// let mut session = history.load_session("s-1").await?;
    /// session.state_mut().insert("mood".into(), "good".into());
    /// let input = vec![Message::user("Hi")];
    /// let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await?;
    /// let prompt = run.prompt().await?;
    /// run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Hello.")])).await?;
    /// run.finish().await?;
    ///
    /// assert_eq!(history.load_session("s-1").await?.state()["mood"], "good");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `Invalid` if this is a history in the session itself, or its store keeps no states; `Corrupt` if the stored text
    /// is not a state of this session; otherwise as [`HistoryStore::state`].
    pub async fn load_session(&self, id: impl Into<Box<str>>) -> Result<AgentSession, SessionError> {
        let id = SessionId::new(id);
        let Backing::Store(store) = &self.backing else {
            return Err(SessionError::invalid("a history in the session itself keeps no session"));
        };
        let kept = match store.state(&self.name(&id)).await {
            Err(error) if error.kind() == StoreErrorKind::NotFound => None,
            kept => kept?,
        };
        let Some(kept) = kept else { return Ok(AgentSession::with_id(id.as_str())) };
        let mut session = AgentSession::from_json(&kept.text)?;
        if session.session_id() != &id {
            let context = "load: what is kept of the session is another session";
            return Err(SessionError::new(SessionErrorKind::Corrupt, context));
        }
        session.known_states.kept(&self.source_id, kept.revision, &kept.text);
        Ok(session)
    }

    /// The store of the session states, if this provider keeps them.
    fn state_store(&self) -> Option<&Arc<dyn HistoryStore>> {
        match &self.backing {
            Backing::Store(store) if self.keep_state => Some(store),
            _ => None,
        }
    }

    /// State of the session that is stored with an append. `state` is the state of this provider, which the session
    /// lacks meanwhile.
    pub(super) fn state_to_keep(
        &self,
        session: &mut AgentSession,
        state: &State,
    ) -> Result<Option<String>, SessionError> {
        if self.state_store().is_none() {
            return Ok(None);
        }
        session.put_state(&self.source_id, state.clone());
        let text = session.to_json();
        session.take_state(&self.source_id)?;
        text.map(Some)
    }

    /// Handles the outcome of a state that was sent with an append.
    pub(super) async fn state_was(
        &self,
        outcome: StateOutcome,
        text: &str,
        session: &mut AgentSession,
        context: &mut SessionContext,
    ) {
        let why = match outcome {
            StateOutcome::Kept(revision) => {
                session.known_states.kept(&self.source_id, revision, text);
                return;
            }
            StateOutcome::Stale => self.save_state(session, text).await.err().map(|error| error.kind()),
            StateOutcome::Unsupported => Some(SessionErrorKind::Invalid),
        };
        if let Some(why) = why {
            context.state_not_kept(&self.source_id, why);
        }
    }

    /// Stores the session if it has changed since the run has stored. A failure is only noted, because the messages are
    /// stored.
    pub(crate) async fn keep_changed_state(&self, session: &mut AgentSession, context: &mut SessionContext) {
        let is_noted = context.states_not_kept().iter().any(|(source_id, _)| **source_id == *self.source_id);
        if self.state_store().is_none() || is_noted {
            return;
        }
        let kept = async {
            let text = session.to_json()?;
            if session.known_states.is(&self.source_id, &text) {
                return Ok(());
            }
            self.save_state(session, &text).await
        };
        let span = debug_span!("keep_state", source_id = &*self.source_id);
        if let Err(error) = kept.instrument(span).await {
            context.state_not_kept(&self.source_id, error.kind());
        }
    }

    /// Stores a state without an append. After a conflict, the stored state may be of this session: sent by a future
    /// that was dropped. If there is no stored state, the stored session was deleted meanwhile.
    async fn save_state(&self, session: &mut AgentSession, text: &str) -> Result<(), SessionError> {
        let Some(store) = self.state_store() else { return Ok(()) };
        let (name, known) = (self.name(session.session_id()), &mut session.known_states);
        known.send(&self.source_id, text);
        let mut saved = store.save_state(&name, &NewState::new(known.revision(&self.source_id), text)).await;
        if saved.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Conflict) {
            let kept = store.state(&name).await?;
            if kept.as_ref().is_none_or(|kept| known.has_sent(&self.source_id, kept)) {
                let revision = kept.map(|kept| kept.revision).unwrap_or_default();
                known.found(&self.source_id, revision);
                saved = store.save_state(&name, &NewState::new(revision, text)).await;
            }
        }
        match saved {
            // The store has nothing of this session.
            Err(error) if error.kind() == StoreErrorKind::NotFound => {}
            saved => known.kept(&self.source_id, saved?, text),
        }
        Ok(())
    }
}
