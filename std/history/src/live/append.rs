//! Appends to a loaded session.

use epitome_message::{Message, Part};

use super::History;
use crate::{Append, AppendPosition, AppendToken, Appended, NewState, StateOutcome, StoreError};

impl History {
    /// Appends messages: groups, counts and stores them, all or none.
    ///
    /// The token makes the append idempotent: after an error, repeat the same call; the messages are appended at most
    /// once.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::append`](crate::HistoryStore::append). After `Conflict`, another writer has
    /// appended, and this handle has loaded its messages: decide again. A load may also fail after the messages were
    /// stored: repeat the call with its token.
    pub async fn append(
        &mut self,
        token: &AppendToken,
        messages: Vec<Message>,
    ) -> Result<Appended, StoreError> {
        self.append_telling(token, messages, &mut |_| {}).await
    }

    /// [`History::append`] for many messages. It calls `progress` from time to time with the number of counted
    /// messages. Its own threads count on all cores, before the first message is stored; the executor's thread waits
    /// for them.
    ///
    /// # Errors
    /// The errors of [`History::append`].
    pub async fn append_telling(
        &mut self,
        token: &AppendToken,
        messages: Vec<Message>,
        progress: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Appended, StoreError> {
        let at_head = (AppendPosition::Head, None);
        self.append_keeping(token, messages, at_head, progress).await.map(|(appended, _)| appended)
    }

    /// [`History::append`] that also saves the session's state, in the same step if the store supports it.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::append_with_state`](crate::HistoryStore::append_with_state) and of
    /// [`History::append`].
    pub async fn append_with_state(
        &mut self,
        token: &AppendToken,
        messages: Vec<Message>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        let at_head = (AppendPosition::Head, Some(state));
        let (appended, outcome) = self.append_keeping(token, messages, at_head, &mut |_| {}).await?;
        Ok((appended, outcome.unwrap_or(StateOutcome::Unsupported)))
    }

    /// Appends at the current end of the session, if the store supports it. If there is a state, saves it in the same
    /// step.
    ///
    /// # Errors
    /// The errors of [`History::append_with_state`]; `Conflict` from a store that does not group appended messages.
    #[doc(hidden)]
    pub async fn append_at_end(
        &mut self,
        token: &AppendToken,
        messages: Vec<Message>,
        state: Option<&NewState<'_>>,
    ) -> Result<(Appended, Option<StateOutcome>), StoreError> {
        self.append_keeping(token, messages, (AppendPosition::End, state), &mut |_| {}).await
    }

    async fn append_keeping(
        &mut self,
        token: &AppendToken,
        messages: Vec<Message>,
        (position, state): (AppendPosition, Option<&NewState<'_>>),
        progress: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(Appended, Option<StateOutcome>), StoreError> {
        self.settle().await?;
        self.in_doubt = true;
        let answers = self.tail_only && messages.iter().any(answers_something);
        if answers && self.visible.place(messages.clone(), &*self.counter, &mut |_| {}).looks_back() {
            self.tail_only = false;
            self.reload().await?;
            self.in_doubt = true;
        }
        let head = self.head();
        let placing = self.visible.place(messages, &*self.counter, progress);
        let mut append = Append::new(token, head, placing.entries()).at(Some((self.clock)()));
        append.position = position;
        let answer = match state {
            None => self.store.append(&self.session, &append).await.map(|appended| (appended, None)),
            Some(state) => {
                let stored = self.store.append_with_state(&self.session, &append, state).await;
                stored.map(|(appended, outcome)| (appended, Some(outcome)))
            }
        };
        if answer.as_ref().is_ok_and(move |(appended, _)| placing.accept(*appended)) {
            self.in_doubt = false;
            return answer;
        }
        // The append was refused, was done before, or another writer has appended meanwhile: load the stored session.
        self.reload_after(answer).await
    }
}

fn answers_something(message: &Message) -> bool {
    message.parts().iter().any(|part| matches!(part, Part::ToolResult(_) | Part::ApprovalResponse(_)))
}
