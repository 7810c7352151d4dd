//! A session of an agent.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use epitome_core::{
    Budget, ModelKey, Pacing, SavedUsageLedger, Size, Tally, TokenCounter, Usage, UsageLedger,
};
use serde_json::{Map, Value};

use super::known_states::KnownStates;
use super::{IdSource, SessionError, UuidSource, kept};
use crate::compaction::{Begun, Costs};
use crate::history::{MemoryStore, SessionId, Timestamp};
use crate::message::Message;
use crate::run::Left;

/// The state of providers: a JSON object. The state of a session holds one value for each provider, under its source
/// id. The state of a provider holds any values.
///
/// JSON has no NaN and no infinities: `serde_json` turns them into `null` before.
pub type State = Map<String, Value>;

/// A session: its ids, and the state of the agent's providers. It holds no provider and no client.
///
/// ```
/// use epitome_std::session::{AgentSession, ServiceSessionId};
///
/// let session = AgentSession::new();
/// assert_eq!((session.token_count(), session.usage()), (0, None));
/// let kept_elsewhere = AgentSession::with_id("s-1").with_service_session_id("thread_abc123");
/// assert_eq!(kept_elsewhere.service_session_id().and_then(ServiceSessionId::as_text), Some("thread_abc123"));
/// ```
pub struct AgentSession {
    session_id: SessionId,
    service_session_id: Option<ServiceSessionId>,
    pub(super) state: State,
    pub(super) tally: Tally,
    ledger: Option<Known>,
    context_size: Option<Size>,
    /// The pacing of compactions, counted in requests.
    pub(crate) pacing: Pacing,
    pub(crate) requests: u32,
    /// The time of its last request, if the provider publishes how long it caches a request.
    pub(crate) requested: Option<Timestamp>,
    /// Messages that a compaction of the service has left of the session with this id. The next run begins a new
    /// session with them, if the run that asked for the compaction got no answer.
    pub(crate) renewed: Option<(ServiceSessionId, Vec<Message>)>,
    /// Work that its compactor has begun before it is due.
    pub(crate) begun: Begun,
    /// Costs of compactions that the ledger does not know yet.
    pub(crate) costs: Costs,
    /// The window of a model, if a provider has reported a smaller one than was known.
    pub(crate) window_told: Option<(ModelKey, u64)>,
    /// The largest tenth of the limit that was reported to the model since the latest compaction.
    pub(crate) tenth_told: u64,
    /// The counter of the latest run, for histories that have none of their own.
    pub(crate) counter: Option<Arc<dyn TokenCounter + Send + Sync>>,
    /// A run that was dropped in the middle of an answer, to be stored when the next one begins.
    pub(crate) left: Option<Box<Left>>,
    /// Histories of this session that in-memory history providers keep, by source id.
    pub(super) histories: BTreeMap<String, Arc<MemoryStore>>,
    /// The states of the session that the stores have, as far as the session knows.
    pub(crate) known_states: KnownStates,
    /// Whether labels of messages from elsewhere take effect.
    trusts_markers: bool,
    /// Fields of a session that was read, which this release does not know.
    pub(super) unknown: State,
}

/// Knowledge of the sizes of requests.
enum Known {
    /// In use.
    Live(UsageLedger),
    /// Saved, as it was written: it waits for a model.
    Saved(SavedUsageLedger),
}

/// Number of requests without a pass after [`Pacing::FAILURES_MAX`] failures in a row: as many as
/// [`Pacing::REST_TURNS`], because a run may have many requests.
const REQUESTS_REST: u32 = Pacing::REST_TURNS;

/// The id that the service gives a session whose history it keeps itself: a text, or an object of its own.
///
/// ```
/// use epitome_std::session::{AgentSession, ServiceSessionId};
///
/// let id = ServiceSessionId::from("thread_abc123");
/// assert_eq!(id.as_text(), Some("thread_abc123"));
/// assert_eq!(AgentSession::new().with_service_session_id(id.clone()).service_session_id(), Some(&id));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServiceSessionId {
    /// A text, never empty.
    Text(Box<str>),
    /// An object, as some services use it.
    Object(Map<String, Value>),
}

impl ServiceSessionId {
    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Object(_) => None,
        }
    }
}

impl From<&str> for ServiceSessionId {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for ServiceSessionId {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Map<String, Value>> for ServiceSessionId {
    fn from(object: Map<String, Value>) -> Self {
        Self::Object(object)
    }
}

impl Default for AgentSession {
    fn default() -> Self {
        Self::new()
    }
}

impl AgentSession {
    /// A new session; its id is a random UUID.
    #[must_use]
    pub fn new() -> Self {
        Self::with_id_source(&UuidSource)
    }

    /// A new session; its id is the next of `ids`.
    #[must_use]
    pub fn with_id_source(ids: &dyn IdSource) -> Self {
        Self::with_id(ids.new_id())
    }

    /// The session of this id, without any state.
    #[must_use]
    pub fn with_id(id: impl Into<Box<str>>) -> Self {
        Self {
            session_id: SessionId::new(id),
            service_session_id: None,
            state: State::new(),
            tally: Tally::default(),
            ledger: None,
            context_size: None,
            // Counted in requests. Each compaction sets its own spacing.
            pacing: Pacing::new(Pacing::SPACING_TURNS, Pacing::FAILURES_MAX, REQUESTS_REST),
            requests: 0,
            requested: None,
            renewed: None,
            begun: Begun::default(),
            costs: Costs::default(),
            window_told: None,
            tenth_told: 0,
            counter: None,
            left: None,
            histories: BTreeMap::new(),
            known_states: KnownStates::default(),
            trusts_markers: false,
            unknown: State::new(),
        }
    }

    /// Sets the id under which the service keeps the history. Nothing is then loaded from history providers.
    #[must_use]
    pub fn with_service_session_id(mut self, id: impl Into<ServiceSessionId>) -> Self {
        self.service_session_id = Some(id.into());
        self
    }

    /// Trusts the labels of the messages in a list that a provider's state has from elsewhere: `important` pins a message, and `ephemeral`
    /// makes it ephemeral, as [`Message::with_label`] does. Otherwise they are data: text from outside must not pin itself. Call it before
    /// the first run of a session that was read.
    #[must_use]
    pub const fn trust_markers(mut self) -> Self {
        self.trusts_markers = true;
        self
    }

    /// Sets or removes the id under which the service keeps the history; a service may give one with its first answer.
    pub fn set_service_session_id(&mut self, id: Option<ServiceSessionId>) {
        self.service_session_id = id;
    }

    /// Its id.
    #[must_use]
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The id under which the service keeps the history, if it keeps one.
    #[must_use]
    pub const fn service_session_id(&self) -> Option<&ServiceSessionId> {
        self.service_session_id.as_ref()
    }

    /// The state of the providers, by source id. During a hook it lacks the state of the hook's own provider, which the
    /// hook holds.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The state, to be changed.
    pub const fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// The input tokens of the latest report: 0 before any, and after a compaction.
    #[must_use]
    pub const fn token_count(&self) -> u64 {
        self.tally.token_count()
    }

    /// Input and total of the latest report and the sum of all outputs; `None` before any report. It is kept over
    /// compactions.
    #[must_use]
    pub const fn usage(&self) -> Option<Usage> {
        self.tally.usage()
    }

    /// The size of the latest request, as it was computed before it was sent, and the basis of the size. Triggers check
    /// this size. It does not include the answer. `None` before the first run.
    #[must_use]
    pub const fn context_size(&self) -> Option<Size> {
        self.context_size
    }

    /// Records the usage of a response; `None` is ignored. For a stream, record the last report.
    pub const fn record_usage(&mut self, usage: Option<&Usage>) {
        self.tally.record(usage);
    }

    /// Records a compaction: the latest report no longer describes the history.
    pub const fn note_compaction(&mut self) {
        self.tally.compacted();
        self.tenth_told = 0;
    }

    /// Records the size of the next request.
    pub const fn note_context_size(&mut self, size: Size) {
        self.context_size = Some(size);
    }

    /// The ledger of the session, for this model and budget. It forgets the data of another model.
    pub fn ledger_for(&mut self, model: ModelKey, budget: Budget) -> &mut UsageLedger {
        let live = match self.ledger.take() {
            None => UsageLedger::new(model, budget),
            Some(Known::Saved(saved)) => UsageLedger::restore(saved, model, budget),
            Some(Known::Live(mut ledger)) => {
                ledger.set_model(model, budget);
                ledger
            }
        };
        match self.ledger.insert(Known::Live(live)) {
            Known::Live(ledger) => {
                self.costs.take().iter().for_each(|usage| ledger.record_compaction(usage));
                ledger
            }
            #[expect(clippy::unreachable, reason = "inserted just before")]
            Known::Saved(_) => unreachable!(),
        }
    }

    /// The ledger of the session; `None` before the first run, and for a session that was read, before its next run.
    /// The costs of a compaction whose future was dropped are in it from the session's next request on.
    #[must_use]
    pub const fn ledger(&self) -> Option<&UsageLedger> {
        match &self.ledger {
            Some(Known::Live(ledger)) => Some(ledger),
            _ => None,
        }
    }

    pub(super) fn saved_ledger(&self) -> Option<SavedUsageLedger> {
        self.ledger.as_ref().map(|known| match known {
            Known::Live(ledger) => {
                let mut ledger = ledger.clone();
                self.costs.told().iter().for_each(|usage| ledger.record_compaction(usage));
                ledger.save()
            }
            Known::Saved(saved) => *saved,
        })
    }

    pub(super) const fn set_saved_ledger(&mut self, saved: Option<SavedUsageLedger>) {
        self.ledger = match saved {
            Some(saved) => Some(Known::Saved(saved)),
            None => None,
        };
    }

    /// The window that the provider of a model has reported when it refused a request, in tokens. `None` if no provider
    /// has reported one, or if a larger request was answered since. It holds for runs with that model, and is written
    /// with the session.
    #[must_use]
    pub const fn window_told(&self) -> Option<u64> {
        match self.window_told {
            Some((_, window)) => Some(window),
            None => None,
        }
    }

    /// The history that the session itself keeps for the in-memory provider `source_id`.
    ///
    /// `state` is the state of that provider: a list of messages in it replaces the history that was kept before.
    pub(crate) async fn memory_store(
        &mut self,
        source_id: &str,
        state: &mut State,
        counter: Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Arc<MemoryStore>, SessionError> {
        if let Some(found) = kept::take(&self.session_id, state, counter, self.trusts_markers).await? {
            self.histories.insert(source_id.to_owned(), found);
        }
        Ok(Arc::clone(self.histories.entry(source_id.to_owned()).or_default()))
    }

    /// Whether the provider `source_id` keeps data in this session.
    pub(crate) fn has_state(&self, source_id: &str) -> bool {
        self.histories.contains_key(source_id) || self.state.contains_key(source_id)
    }

    /// Takes a provider's state out, to be put back with [`AgentSession::put_state`]; an empty one if there is none.
    pub(crate) fn take_state(&mut self, source_id: &str) -> Result<State, SessionError> {
        match self.state.get_mut(source_id) {
            None => Ok(State::new()),
            Some(Value::Object(state)) => Ok(core::mem::take(state)),
            Some(_) => Err(SessionError::invalid(format!(
                "the session's state of {source_id:?} is not an object: replace it by one, or remove it"
            ))),
        }
    }

    pub(crate) fn put_state(&mut self, source_id: &str, state: State) {
        self.state.insert(source_id.to_owned(), Value::Object(state));
    }
}

impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The state may contain message text.
        let sources: Vec<&String> = self.state.keys().collect();
        f.debug_struct("AgentSession")
            .field("session_id", &self.session_id)
            .field("service_managed", &self.service_session_id.is_some())
            .field("state", &sources)
            .field("token_count", &self.token_count())
            .finish_non_exhaustive()
    }
}
