//! Messages of a run that a history provider stores, and their appends.

use epitome_core::Seq;
use epitome_core::attribution::Retention;
use tracing::{Instrument, debug_span};

use super::HistoryProvider;
use crate::history::inner::pause;
use crate::history::{AppendToken, Appended, History, NewState, StateOutcome, StoreErrorKind};
use crate::message::{LABEL_EPHEMERAL, Message};
use crate::session::{AgentSession, ContextMessages, SessionContext, SessionError, State};

impl HistoryProvider {
    /// The messages of a run that are to be stored, in order, as they are stored.
    #[must_use]
    pub fn storable(&self, context: &SessionContext) -> Vec<Message> {
        self.stored_of(context).map(|(_, message)| unlabelled(message)).collect()
    }

    /// Messages of a run that are to be stored, in order, with their places in the run. Additions to the response come last, so that the
    /// list only grows while the run lasts.
    pub(crate) fn stored_of<'a>(
        &'a self,
        context: &'a SessionContext,
    ) -> impl Iterator<Item = (RunPlace, &'a Message)> {
        let sources = context.context_messages().iter().enumerate();
        let from_context = sources.filter(|(_, it)| self.stores_context_of(it)).flat_map(|(source, it)| {
            let places = (0..).map(move |at| RunPlace::Context { source, at });
            places.zip(&it.messages)
        });
        let from_context = from_context.filter(|(_, it)| !is_labelled_ephemeral(it) || self.store_ephemeral);
        let input = context.input_messages().iter().filter(|_| self.store_inputs);
        let input = input.enumerate().map(|(at, message)| (RunPlace::Input(at), message));
        let response = context.response().filter(|_| self.store_responses);
        let response = response.into_iter().flat_map(|response| response.messages.iter().enumerate());
        let said = input.chain(response.map(|(at, message)| (RunPlace::Said(at), message)));
        let said =
            said.filter(|(_, it)| self.store_ephemeral || it.attribution().retention != Retention::Ephemeral);
        from_context.chain(said)
    }

    /// Stores the messages of the run that are not stored yet. It may be called again, after a failure or as the run
    /// goes on.
    ///
    /// A run that was read with its session may have gone on elsewhere: messages that were stored since then under its
    /// token stay, and nothing is added.
    pub(crate) async fn store(
        &self,
        session: &mut AgentSession,
        context: &mut SessionContext,
        state: &mut State,
    ) -> Result<(), SessionError> {
        let messages = self.storable(context);
        loop {
            let progress = context.progress_mut(&self.source_id);
            let is_repeated = progress.is_in_doubt();
            let Some(part) = progress.next_part(messages.len()) else { return Ok(()) };
            let token = self.token(context.run_token(), part.start);
            let mut history = match context.take_history(&self.source_id) {
                Some(history) => history,
                None => self.open_to_append(session, state).await?,
            };
            if context.was_read() && !is_repeated && history.appended(&token).await?.is_some() {
                return Ok(());
            }
            let chunk = messages.get(part.clone()).unwrap_or_default().to_vec();
            let span = debug_span!("store", source_id = &*self.source_id, messages = chunk.len());
            let keep = self.state_to_keep(session, state).unwrap_or_else(|error| {
                context.state_not_kept(&self.source_id, error.kind());
                None
            });
            let made_from = session.known_states.revision(&self.source_id);
            let new = keep.as_deref().map(|text| NewState::new(made_from, text));
            if let Some(text) = &keep {
                session.known_states.send(&self.source_id, text);
            }
            let stored =
                Self::append_keeping(&mut history, &token, chunk, new.as_ref()).instrument(span).await;
            context.put_history(&*self.source_id, history);
            let (appended, outcome) = stored?;
            context.progress_mut(&self.source_id).stored(&part, appended.first);
            if let Some((outcome, text)) = outcome.zip(keep.as_deref()) {
                self.state_was(outcome, text, session, context).await;
            }
        }
    }

    /// Idempotency key of an append of a run, for the stored messages from the `from`th on. Two providers may share a log: each has its own
    /// keys.
    fn token(&self, run_token: &str, from: usize) -> AppendToken {
        AppendToken::new(match from {
            0 => format!("{run_token}/{}", self.source_id),
            from => format!("{run_token}/{}/{from}", self.source_id),
        })
    }

    /// The last message that a run of this token has stored. Reads the history that was opened for the current run.
    pub(crate) async fn last_stored(&self, context: &SessionContext) -> Result<LastStored, SessionError> {
        let Some(history) = context.history(&self.source_id) else { return Ok(LastStored::Nothing) };
        let mut stored = 0_usize;
        let mut end = None;
        while let Some(appended) = history.appended(&self.token(context.run_token(), stored)).await? {
            let count =
                usize::try_from(appended.head.0.saturating_sub(appended.first.0)).unwrap_or(usize::MAX);
            end = Some(appended.head);
            stored = stored.saturating_add(count);
            if count == 0 {
                break;
            }
        }
        let Some(end) = end else { return Ok(LastStored::Nothing) };
        let page = history.log(Seq(end.0.saturating_sub(1))..end, 1).await?;
        let last = page.messages.into_iter().find(|logged| logged.pruned_by.is_none());
        Ok(last
            .map_or(LastStored::Pruned, |logged| LastStored::Message(Message::clone(&logged.entry.message))))
    }

    /// Appends messages at the current end of a history. The token is the idempotency key: a repetition stores nothing
    /// again.
    ///
    /// # Errors
    /// As [`History::append`]; `Conflict` only if other appends come in between again and again.
    ///
    /// # Cancel safety
    /// As [`History::append`].
    pub async fn append(
        history: &mut History,
        token: &AppendToken,
        messages: Vec<Message>,
    ) -> Result<Appended, SessionError> {
        Self::append_keeping(history, token, messages, None).await.map(|(appended, _)| appended)
    }

    /// Appends the messages together with a state, if there is one.
    async fn append_keeping(
        history: &mut History,
        token: &AppendToken,
        messages: Vec<Message>,
        state: Option<&NewState<'_>>,
    ) -> Result<(Appended, Option<StateOutcome>), SessionError> {
        let mut attempts = 1;
        loop {
            let stored = history.append_at_end(token, messages.clone(), state).await;
            match stored {
                Err(error) if error.kind() == StoreErrorKind::Conflict && attempts < APPEND_ATTEMPTS_MAX => {
                    pause(attempts, token).await;
                    attempts = attempts.saturating_add(1);
                }
                stored => return Ok(stored?),
            }
        }
    }

    pub(crate) fn stores_context_of(&self, context: &ContextMessages) -> bool {
        self.store_context_messages
            && match &self.store_context_from {
                Some(sources) => sources.iter().any(|source| context.source_id == **source),
                None => !context.loaded && context.source_id != *self.source_id,
            }
    }
}

/// The last message that a run has stored.
#[derive(Debug)]
pub(crate) enum LastStored {
    Nothing,
    /// A message whose content was deleted since.
    Pruned,
    Message(Message),
}

/// Place of a message in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunPlace {
    /// In the context: the position of the source, and the position of the message in it.
    Context { source: usize, at: usize },
    /// In the input.
    Input(usize),
    /// In the response, tool results included.
    Said(usize),
}

/// Maximum number of attempts of an append before its conflict is returned. Only a store that does not group its
/// appends has conflicts here: before each failed attempt another append succeeded, and this one has loaded its
/// messages. A writer that appends without pause has nothing to load, and so is mostly first. The attempts wait for it,
/// a second and a half in all.
const APPEND_ATTEMPTS_MAX: u32 = 100;

fn is_labelled_ephemeral(message: &Message) -> bool {
    message.attribution().label.as_deref() == Some(LABEL_EPHEMERAL)
}

/// Removes the label, which is for filters while a run lasts. The retention already holds its meaning for storage.
fn unlabelled(message: &Message) -> Message {
    let mut attribution = message.attribution().clone();
    if attribution.label.take().is_none() {
        return message.clone();
    }
    message.clone().with_attribution(attribution)
}
