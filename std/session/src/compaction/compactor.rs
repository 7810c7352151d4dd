//! The compactor that a run calls.

use core::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_core::{Basis, Budget, ModelKey, Pass, Usage};

use super::{
    Began, Begun, CompactionOptions, CompactionOutcome, CompactionResult, Costs, Discarded, FellBack,
    KeptSession, LiveRequest, PaybackRule,
};
use crate::history::{History, Live};
use crate::message::{Message, Str};
use crate::session::SessionError;
use crate::wire::ConversionLoss;

/// Shrinks a history.
///
/// *For implementers*: hide messages with [`History::commit`], in one step; delete nothing. A compactor that fails
/// leaves the history as it was. A compactor holds no data of a session, so that one compactor serves any number of
/// sessions.
///
/// *Cancel safety*: dropping the future leaves the history as it was, or compacted.
///
/// ```
/// use async_trait::async_trait;
/// use epitome_core::{Draft, Strategy};
/// use epitome_std::compaction::{CompactionCx, CompactionOutcome, Compactor};
/// use epitome_std::session::{SessionError, SessionErrorKind};
///
/// /// Drops the oldest groups until the goal is met.
/// #[derive(Debug)]
/// struct Oldest;
///
/// impl Strategy for Oldest {
///     fn name(&self) -> &'static str {
///         "oldest"
///     }
///
///     fn plan(&self, draft: &mut Draft<'_>) {
///         draft.drop_oldest();
///     }
/// }
///
/// #[async_trait]
/// impl Compactor for Oldest {
///     fn name(&self) -> &str {
///         "oldest"
///     }
///
///     async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
///         let (budget, pass, before) = (*cx.budget(), cx.pass(), cx.measure());
///         match cx.history().compact(&budget, pass, self).await {
///             Ok(Some(_)) => Ok(CompactionOutcome::Compacted(cx.result_since(before))),
///             Ok(None) => Ok(CompactionOutcome::Unchanged("nothing to drop".into())),
///             Err(error) => Err(SessionError::new(SessionErrorKind::Infeasible, "oldest").with_source(error)),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Compactor: Send + Sync + fmt::Debug {
    /// The name of the compactor in records and events.
    fn name(&self) -> &str;

    /// Compacts, if there is anything to gain.
    ///
    /// # Errors
    /// `Infeasible` if the protected messages alone exceed the limit; otherwise the error of the store or of a model.
    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError>;

    /// Whether the compactor can begin before a compaction is due, so that slow work is done by then. The default is
    /// `false`.
    fn begins_early(&self) -> bool {
        false
    }

    /// Begins the work for a compaction that will be due soon, if it is not under way and [`CompactionCx::is_early`]
    /// allows it. Called only if [`begins_early`](Self::begins_early) returns `true`.
    ///
    /// *For callers*: the [`Begun`] of the session, which [`CompactionCx::with_begun`] passes, holds the work. Call
    /// this method again as the conversation grows, before and after the size at which a compaction is due. When it is
    /// due, compact.
    ///
    /// *For implementers*: change nothing and wait for nothing. Begin at most one compaction of a session. The budget
    /// of `cx` is the one to reach when the compaction is due.
    fn begin(&self, cx: &mut CompactionCx<'_>) -> Began {
        let _ = cx;
        Began::Nothing
    }

    /// Whether the result of early work is ready and should be used before a compaction is due: the caller then calls
    /// [`begin`](Self::begin) again. The default is `false`: the result waits.
    fn has_come(&self, begun: &Begun) -> bool {
        let _ = begun;
        false
    }

    /// Whether the compactor can ask a service to compact a session that the service keeps. The default is `false`.
    fn compacts_kept(&self) -> bool {
        false
    }

    /// Asks the service to compact `session`, and returns the messages that a new session begins with. Called only if
    /// [`compacts_kept`](Self::compacts_kept) returns `true`.
    ///
    /// *For implementers*: do not change the session itself. Another session begins with the returned messages, and the
    /// next messages of the conversation follow them. A failure changes nothing.
    ///
    /// # Errors
    /// The error of the service.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the session as it was. The service may still charge for the compaction.
    async fn compact_kept(&self, session: &KeptSession<'_>) -> Result<Vec<Message>, SessionError> {
        let _ = session;
        Ok(Vec::new())
    }
}

/// A shared compactor.
#[async_trait]
impl<T: Compactor + ?Sized> Compactor for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        (**self).compact(cx).await
    }

    fn begins_early(&self) -> bool {
        (**self).begins_early()
    }

    fn begin(&self, cx: &mut CompactionCx<'_>) -> Began {
        (**self).begin(cx)
    }

    fn has_come(&self, begun: &Begun) -> bool {
        (**self).has_come(begun)
    }

    fn compacts_kept(&self) -> bool {
        (**self).compacts_kept()
    }

    async fn compact_kept(&self, session: &KeptSession<'_>) -> Result<Vec<Message>, SessionError> {
        (**self).compact_kept(session).await
    }
}

/// The history, the budget and the options that a compactor works on.
#[derive(Debug)]
pub struct CompactionCx<'a> {
    history: &'a mut History,
    budget: Budget,
    pass: Pass,
    options: CompactionOptions,
    model: Str,
    request: Option<Arc<LiveRequest>>,
    model_key: Option<ModelKey>,
    costs: Costs,
    losses: Vec<ConversionLoss>,
    fell_back: Option<FellBack>,
    begun: Option<&'a mut Begun>,
    is_early: bool,
    discarded: Option<Discarded>,
    payback: Option<PaybackRule>,
}

impl<'a> CompactionCx<'a> {
    /// A compaction of `history` within `budget`.
    #[must_use]
    pub fn new(history: &'a mut History, budget: Budget, pass: Pass) -> Self {
        Self {
            history,
            budget,
            pass,
            options: CompactionOptions::default(),
            model: Str::default(),
            request: None,
            model_key: None,
            costs: Costs::default(),
            losses: Vec::new(),
            fell_back: None,
            begun: None,
            is_early: true,
            discarded: None,
            payback: None,
        }
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: CompactionOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the model of the conversation.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Str>) -> Self {
        self.model = model.into();
        self
    }

    /// Sets the request that would be sent next.
    #[must_use]
    pub fn with_request(mut self, request: Option<Arc<LiveRequest>>) -> Self {
        self.request = request;
        self
    }

    /// Sets the model and the counter that an early compaction is for.
    #[must_use]
    pub const fn with_model_key(mut self, key: ModelKey) -> Self {
        self.model_key = Some(key);
        self
    }

    /// Sets the receiver of the costs. The owner of a clone knows them even if the future of the compaction is dropped.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Sets the place for early work of this session, which may hold work that was begun before a compaction is due.
    #[must_use]
    pub fn with_begun(mut self, begun: &'a mut Begun) -> Self {
        self.begun = Some(begun);
        self
    }

    /// Sets the rule that the compaction has to pay for itself, if there is one.
    #[must_use]
    pub const fn with_payback(mut self, rule: Option<PaybackRule>) -> Self {
        self.payback = rule;
        self
    }

    /// Allows only the result of early work that is ready: no new work begins before a compaction is due.
    #[must_use]
    pub const fn for_what_has_come(mut self) -> Self {
        self.is_early = false;
        self
    }

    /// Whether new work may begin before a compaction is due.
    #[must_use]
    pub const fn is_early(&self) -> bool {
        self.is_early
    }

    /// The model of the conversation and its token counter, if they are known.
    #[must_use]
    pub const fn model_key(&self) -> Option<ModelKey> {
        self.model_key
    }

    /// The early work for this session; `None` where there is no place for it.
    pub fn begun(&mut self) -> Option<&mut Begun> {
        self.begun.as_deref_mut()
    }

    /// Gives up the early work, for the reason `why`.
    pub fn discard(&mut self, why: Discarded) {
        if let Some(begun) = self.begun() {
            begun.give_up();
            self.discarded = Some(why);
        }
    }

    /// The reason why the early work was given up; `None` if it was not.
    #[must_use]
    pub const fn discarded(&self) -> Option<Discarded> {
        self.discarded
    }

    /// The request that would be sent next; `None` if the stored history is compacted, and not a request before a call
    /// of the model.
    #[must_use]
    pub const fn request(&self) -> Option<&Arc<LiveRequest>> {
        self.request.as_ref()
    }

    /// The model of the conversation: the model of the request, if there is one; empty if it is unknown.
    #[must_use]
    pub fn model(&self) -> &Str {
        self.request
            .as_ref()
            .map(|request| &request.model)
            .filter(|model| !model.is_empty())
            .unwrap_or(&self.model)
    }

    /// The history.
    pub const fn history(&mut self) -> &mut History {
        self.history
    }

    /// The history, for reading.
    #[must_use]
    pub const fn as_history(&self) -> &History {
        self.history
    }

    /// The messages that are visible in the history, and the summaries among them.
    #[must_use]
    pub fn live(&self) -> &[Live] {
        self.history.live()
    }

    /// The budget of the request.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The kind of the pass.
    #[must_use]
    pub const fn pass(&self) -> Pass {
        self.pass
    }

    /// The rule that the compaction has to pay for itself, if there is one. If it does not pay and can wait
    /// ([`Pass::can_wait`]), the compactor returns [`CompactionOutcome::DoesNotPay`] and changes nothing.
    #[must_use]
    pub const fn payback(&self) -> Option<&PaybackRule> {
        self.payback.as_ref()
    }

    /// The options of the caller.
    #[must_use]
    pub const fn options(&self) -> &CompactionOptions {
        &self.options
    }

    /// Records the usage of a model call for this compaction, whatever its outcome. The session's ledger counts it as
    /// spent, and not as the size of a request.
    pub fn spent(&mut self, usage: Usage) {
        self.costs.tell(usage);
    }

    /// The receiver of the costs.
    #[must_use]
    pub const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Records content that a compaction in another format did not receive. The stand-in knows nothing of this content.
    pub fn lost(&mut self, loss: ConversionLoss) {
        self.losses.push(loss);
    }

    /// The losses that were recorded.
    #[must_use]
    pub fn losses(&self) -> &[ConversionLoss] {
        &self.losses
    }

    /// Records that another strategy compacted than the intended one.
    pub fn fall_back(&mut self, fell_back: FellBack) {
        self.fell_back = Some(fell_back);
    }

    /// The strategy that failed and the one that stood in, if there are any.
    #[must_use]
    pub const fn fell_back(&self) -> Option<&FellBack> {
        self.fell_back.as_ref()
    }

    /// The current size: messages and tokens.
    #[must_use]
    pub fn measure(&self) -> (u64, u64) {
        (self.history.live().len() as u64, self.history.index().tokens())
    }

    /// The result of the compaction since [`CompactionCx::measure`] gave `before`.
    #[must_use]
    pub fn result_since(&self, before: (u64, u64)) -> CompactionResult {
        let (compacted_count, after) = self.measure();
        let mut result = CompactionResult::new(before.0, compacted_count);
        (result.original_tokens, result.compacted_tokens) = (Some(before.1), Some(after));
        result.goal = self.budget.goal();
        let counters = self.history.live().iter().map(|live| live.entry.count.basis);
        result.basis = counters.max_by_key(|basis| *basis == Basis::Estimated);
        result
    }
}
