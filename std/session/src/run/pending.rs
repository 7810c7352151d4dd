//! Effects of a run's compactions on the stored history.

use std::collections::BTreeMap;

use epitome_core::Seq;
use tracing::{Instrument, debug, debug_span};

use super::Point;
use super::live::Run;
use crate::history::inner::{PendingRecord, pause};
use crate::history::{History, StoreError, StoreErrorKind};
use crate::provider::{ContextProvider, HistoryProvider, RunPlace, open_history};
use crate::session::{SessionError, SessionErrorKind};

/// Maximum number of attempts of a commit before its conflict is returned: before each failed attempt another commit
/// has succeeded.
const COMMIT_ATTEMPTS_MAX: u32 = 16;

impl Run<'_> {
    /// Commits the compactions of this run to the stored history. The messages of the run must be stored before.
    ///
    /// After a failure that may pass, the next commit includes them again.
    pub(super) async fn commit_pending(&mut self) {
        if !self.working.is_ahead() {
            return;
        }
        let Some(primary) = self.providers.primary_history().cloned() else { return };
        let source_id = primary.source_id();
        let logged = self.logged(&primary);
        if self.names_other_numbers(&logged) {
            debug!("others have appended meanwhile: the notes of this run would name their messages");
            return self.working.committed();
        }
        let pending = self.working.pending(&logged);
        if pending.hides.is_empty() && pending.edits.is_empty() {
            return;
        }
        let history = match self.context.take_history(source_id) {
            Some(history) => Ok(history),
            None => open_history(&primary, self.session).await,
        };
        let committed = async {
            let mut history = history?;
            commit(&mut history, &pending).await?;
            Ok::<_, SessionError>(history)
        };
        let committed = committed.instrument(debug_span!("commit", source_id));
        let error = committed.await.map(|history| self.context.put_history(source_id, history)).err();
        if let Some(error) = &error {
            self.failed(Point::BeforeCall, error);
        }
        if error.is_none_or(|error| error.kind() != SessionErrorKind::Unavailable) {
            self.working.committed();
        }
    }

    /// The numbers in the stored history of the messages that the run has stored there itself.
    pub(super) fn logged(&mut self, primary: &HistoryProvider) -> BTreeMap<Seq, Seq> {
        let places: Vec<RunPlace> = primary.stored_of(&self.context).map(|(place, _)| place).collect();
        let seqs = self.context.progress_mut(primary.source_id()).seqs().iter().copied();
        let numbers = places.into_iter().map(|place| self.working.number_of(place)).zip(seqs);
        numbers.filter_map(|(number, seq)| Some((number?, seq))).collect()
    }
}

/// Commits the part of `pending` that fits the stored history. Messages that other writers have changed meanwhile are
/// left alone, and a summary of them is not shown.
async fn commit(history: &mut History, pending: &PendingRecord) -> Result<(), StoreError> {
    for attempt in 1..=COMMIT_ATTEMPTS_MAX {
        let Some(record) = history.record_pending(pending) else {
            debug!("the run's compactions no longer fit what is stored");
            return Ok(());
        };
        match history.commit(&record).await {
            Err(error) if error.kind() == StoreErrorKind::Conflict && attempt < COMMIT_ATTEMPTS_MAX => {
                pause(attempt, &(record.head, record.tokens_after)).await;
            }
            answer => return answer.map(drop),
        }
    }
    Ok(())
}
