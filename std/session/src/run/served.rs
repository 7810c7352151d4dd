//! A conversation that a service keeps: the messages that the service has not seen, and the continuation after the
//! service has compacted or forgotten it.

use core::ops::Range;
use core::panic::AssertUnwindSafe;
use std::sync::Arc;

use epitome_core::{Seq, count_message};
use futures::FutureExt;
use tracing::{Instrument, debug_span};

use super::live::Run;
use super::pass::Look;
use super::working::Working;
use super::{Point, RequestHandle, RunError, RunEvent};
use crate::compaction::{AutoCompaction, KeptSession, UnchangedReason};
use crate::message::{Message, Part};
use crate::provider::{ContextProvider, Providers, open_history};
use crate::session::{AgentSession, ServiceSessionId, SessionContext, SessionError};

/// State of a run's conversation that a service keeps.
///
/// The run updates the session when it has finished. A run that does not finish leaves the session at its earlier
/// position.
pub(super) struct Served {
    /// Session that the next request continues; `None` if the request begins a new one.
    id: Option<ServiceSessionId>,
    /// Messages that a compaction of the service has left. A new session of the service begins with them.
    left: Vec<Message>,
    /// Number of messages that the run had when the latest request was made.
    asked: usize,
    /// Number of messages of the run that the service has seen, except the `missed` ones; `None` before the first
    /// answer.
    seen: Option<usize>,
    /// Messages that were added between a request and its answer: the service has seen none of them.
    missed: Range<usize>,
    /// Size of the conversation in the service, by the counter, without the parts that each request repeats.
    tokens: u64,
}

impl Served {
    pub(super) fn of(session: &AgentSession) -> Self {
        let id = session.service_session_id().cloned();
        let left = session.renewed.as_ref().filter(|(of, _)| id.as_ref() == Some(of));
        let left = left.map(|(_, left)| left.clone()).unwrap_or_default();
        Self { id: id.filter(|_| left.is_empty()), left, asked: 0, seen: None, missed: 0..0, tokens: 0 }
    }

    /// Whether the service keeps the conversation, so that the stored history is not sent.
    pub(super) const fn is_kept(&self) -> bool {
        self.id.is_some() || !self.left.is_empty()
    }

    pub(super) const fn id(&self) -> Option<&ServiceSessionId> {
        self.id.as_ref()
    }

    /// Messages that the service has not seen.
    pub(super) fn unseen<'m>(&'m self, context: &'m SessionContext) -> impl Iterator<Item = &'m Message> {
        let said = context.response().map_or(&[][..], |response| &response.messages);
        let first = context.prompt_messages().filter(|_| self.seen.is_none());
        let missed = said.get(self.missed.clone()).unwrap_or_default();
        let rest = said.get(self.seen.unwrap_or_default()..).unwrap_or_default();
        self.left.iter().chain(first).chain(missed).chain(rest)
    }

    /// Records a request. `said` is the number of messages in the response of the run so far.
    pub(super) const fn asked(&mut self, said: usize) {
        self.asked = said;
    }

    /// Records an answer: its range among the messages in the response of the run. Returns whether a new session of the
    /// service has begun with it.
    pub(super) fn answered(&mut self, answer: Range<usize>, id: Option<ServiceSessionId>) -> bool {
        if id.is_none() && !self.left.is_empty() {
            // The service has begun none: the messages that are left are sent again, with all messages after them.
            return false;
        }
        (self.seen, self.missed) = (Some(answer.end), self.asked..answer.start);
        self.id = id.or_else(|| self.id.take());
        !core::mem::take(&mut self.left).is_empty()
    }

    /// Session that the next run continues, once the run has finished; `None` if the run has no answer.
    pub(super) fn settled(&self) -> Option<Option<&ServiceSessionId>> {
        self.seen.map(|_| self.id.as_ref())
    }

    /// Session that could be compacted now; `None` if the run has an answer already, or if a new message answers a call or a question of
    /// the service.
    fn compactable(&self, context: &SessionContext) -> Option<&ServiceSessionId> {
        let answers = |part: &Part| matches!(part, Part::ToolResult(_) | Part::ApprovalResponse(_));
        let mut unseen = self.unseen(context).flat_map(Message::parts);
        self.id.as_ref().filter(|_| self.seen.is_none() && !unseen.any(answers))
    }
}

/// The position of a session in the service, and the messages that a compaction of the service has left of it.
pub(crate) type Before = (Option<ServiceSessionId>, Option<(ServiceSessionId, Vec<Message>)>);

impl Run<'_> {
    /// Computes the size of the conversation in the service: that of the latest report.
    pub(super) fn measure_served(&mut self) {
        if !self.served.left.is_empty() {
            self.served.tokens = self.tokens_of(&self.served.left);
            return;
        }
        let usage = self.session.usage().filter(|_| self.served.is_kept() && self.session.token_count() > 0);
        let total = usage.and_then(|usage| usage.total.or(usage.input_total)).unwrap_or_default();
        let again = self.tokens_of(self.working.instructions()).saturating_add(self.tokens_beside);
        let budget = self.budget();
        let ledger = self.session.ledger_for(self.settings.model_key(), budget);
        self.served.tokens = ledger.correction().counted_from(total).saturating_sub(again);
    }

    /// The size of the next request, by the counter.
    pub(super) fn request_tokens(&self) -> u64 {
        let kept = if self.served.is_kept() { self.working.orphan_tokens() } else { 0 };
        let here = self.working.index().tokens().saturating_add(self.tokens_beside);
        here.saturating_add(self.served.tokens).saturating_add(kept)
    }

    /// Handles a service that no longer knows the session which the request of this handle continues: loads the stored
    /// history, which is sent whole, once. Then call [`Run::prompt`] again.
    ///
    /// If the history has become too long, it is compacted by the settings for the point before a call.
    ///
    /// # Errors
    /// [`RunError::Misuse`] as [`Run::record`], if the service keeps nothing, or if no history provider is the only one that
    /// loads. [`RunError::Session`] if the history cannot be loaded.
    ///
    /// # Cancel safety
    /// The run is as it was, or sends its history. Call [`Run::prompt`] again.
    pub async fn forgotten(&mut self, handle: RequestHandle) -> Result<(), RunError> {
        self.check_idle()?;
        self.check_handle(&handle)?;
        if !self.served.is_kept() {
            return Err(RunError::Misuse(
                "the service keeps nothing of this session: nothing can be forgotten",
            ));
        }
        let Some(primary) = self.providers.primary_history().cloned() else {
            return Err(RunError::Misuse(
                "nothing can be sent anew: no history provider is the only one that loads",
            ));
        };
        let source_id = primary.source_id();
        let history = open_history(&primary, self.session).await?;
        let own: Vec<Seq> = self.context.progress_mut(source_id).seqs().to_vec();
        let behind = self.providers.iter().map(|provider| provider.source_id());
        let behind: Vec<&str> = behind.skip_while(|id| *id != source_id).skip(1).collect();
        self.context.load_late(source_id, history, &behind);
        let mut working = Working::begin_without(
            &self.context,
            Some(source_id),
            Arc::clone(self.settings.counter()),
            &own,
        )?;
        let said = self.context.response().map(|response| response.messages.clone());
        working.push(said.unwrap_or_default());
        self.working = working;
        self.session.set_service_session_id(None);
        self.served = Served::of(self.session);
        self.tell(RunEvent::Forgotten);
        Ok(())
    }

    /// Whether [`Run::forgotten`] can load and send the history.
    pub(crate) fn can_send_anew(&self) -> bool {
        self.served.is_kept() && self.providers.primary_history().is_some()
    }

    /// Whether the service can compact the conversation, and this run checks that before it sends a request.
    pub(super) fn renews(&self) -> bool {
        let looks = |auto: &AutoCompaction| auto.points.before_run() || auto.points.before_call();
        self.can_renew() && self.compaction.as_ref().is_some_and(looks)
    }

    /// Whether the service can compact the conversation, and the run's compactor would ask it to.
    pub(super) fn can_renew(&self) -> bool {
        let asks = |auto: &AutoCompaction| auto.compactor.compacts_kept();
        self.served.is_kept() && self.compaction.as_ref().is_some_and(asks)
    }

    /// Checks the conversation that the service keeps, and asks the service to compact it if a compaction is due or a
    /// request was refused as too long. The next request begins a new session of the service with the messages that are
    /// left. The old session holds until that request is answered. Returns whether the service has compacted.
    pub(super) async fn renew(&mut self, is_refused: bool) -> bool {
        let point = Point::BeforeCall;
        let Some(setup) = self.setup(point) else { return false };
        let compactor = &setup.auto.compactor;
        if !compactor.compacts_kept() {
            return false;
        }
        let Some(id) = self.served.compactable(&self.context).cloned() else { return false };
        let (counted, stamp) = (self.request_tokens(), self.working.stamp());
        let index = self.working.index();
        let look = Look::at(self.session, self.settings, &setup, index, counted, stamp);
        if !is_refused && !self.is_due(point, &look) {
            return false;
        }
        let (instructions, costs) = (self.context.instruction_text(), self.session.costs.clone());
        let kept = KeptSession::new(&id, &costs)
            .with_instructions(instructions.as_deref())
            .with_model(self.settings.model());
        let left = AssertUnwindSafe(async { compactor.compact_kept(&kept).await }).catch_unwind();
        let left = left.instrument(debug_span!("compaction", point = point.as_str(), kept = true)).await;
        // Records the costs in the ledger.
        let budget = self.budget();
        self.session.ledger_for(self.settings.model_key(), budget);
        match left.unwrap_or_else(|_| Err(SessionError::invalid("the compactor panicked"))) {
            Ok(left) if left.is_empty() => {
                self.tell(RunEvent::Unchanged { point, reason: UnchangedReason::NothingByService });
                false
            }
            Ok(left) => {
                self.session.renewed = Some((id, left));
                self.session.pacing.compacted(self.session.requests);
                self.served = Served::of(self.session);
                self.measure_served();
                self.tell(RunEvent::Renewed { point });
                true
            }
            Err(error) => {
                self.failed(point, &error);
                false
            }
        }
    }

    /// The `store` option of the run, if it is set: whether the service is asked to keep the conversation.
    fn stores(&self) -> Option<bool> {
        self.context.options().get("store")?.as_bool()
    }

    /// The id of a conversation that the service has begun to keep, unless it was asked not to.
    pub(super) fn wanted(&mut self, id: Option<ServiceSessionId>) -> Option<ServiceSessionId> {
        if id.is_some() && !self.served.is_kept() && self.stores() == Some(false) {
            self.tell_once(RunEvent::ServiceSessionIgnored);
            return None;
        }
        id
    }

    /// Lets the session itself keep the run, if a service was asked to keep the conversation and the session does not
    /// continue there. Otherwise the next run would know nothing of this one.
    pub(super) fn keep_what_no_service_keeps(&mut self, goes_on: bool) {
        let is_stored = self.providers.histories().next().is_some();
        if self.stores() != Some(true) || goes_on || is_stored {
            return;
        }
        if self.providers.is_empty() {
            self.providers = Providers::in_memory();
        }
        if self.served.settled().is_some() && !self.served.is_kept() {
            self.tell_once(RunEvent::ServiceSessionMissing);
        }
    }

    /// Sets the session to the position of this run in the service. Returns the position before.
    pub(crate) fn settle_served(&mut self) -> Option<Before> {
        let id = self.served.settled()?.cloned();
        let before = (self.session.service_session_id().cloned(), self.session.renewed.take());
        self.session.set_service_session_id(id);
        Some(before)
    }

    /// Restores the position before, if no message of the run is stored here: the run may be made again.
    pub(super) fn unsettle_served(&mut self, before: Option<Before>) {
        let primary = self.providers.primary_history().map(|primary| primary.source_id());
        let is_stored = primary.is_some_and(|id| !self.context.progress_mut(id).seqs().is_empty());
        if let Some((id, renewed)) = before.filter(|_| !is_stored) {
            self.session.set_service_session_id(id);
            self.session.renewed = renewed;
        }
    }

    fn tokens_of<'m>(&self, messages: impl IntoIterator<Item = &'m Message>) -> u64 {
        messages.into_iter().map(|message| count_message(message, &**self.settings.counter()).as_u64()).sum()
    }
}

/// Error of a manual compaction where the service keeps the history.
pub(super) fn service_managed() -> SessionError {
    SessionError::invalid(
        "Cannot compact service-managed sessions. Compaction is only supported for client-managed sessions.",
    )
}
