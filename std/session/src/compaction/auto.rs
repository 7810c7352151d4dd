//! Settings of automatic compactions: trigger, points and options.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use epitome_core::{Pacing, Trigger, TriggerView};

use super::{CompactionHook, Compactor};
use crate::history::Pins;
use crate::message::Str;

/// The compaction of a run: the agent's setting (the default), none, or a setting of its own. The default is not `Off`.
///
/// ```
/// use epitome_std::compaction::Compaction;
/// use epitome_std::run::RunOptions;
///
/// let not_here = RunOptions::default().with_compaction(Compaction::Off);
/// assert!(matches!(not_here.compaction, Compaction::Off));
/// assert!(matches!(RunOptions::default().compaction, Compaction::AgentDefault));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "a run has one, and nobody keeps many")]
pub enum Compaction {
    /// The agent's setting; without one, no compaction.
    #[default]
    AgentDefault,
    /// Not in this run.
    Off,
    /// This compaction, in place of the agent's setting.
    With(AutoCompaction),
}

impl Compaction {
    /// The compaction of a run whose agent has the setting `agent`; `None` if the run does not compact.
    #[must_use]
    pub const fn resolve<'a>(&'a self, agent: Option<&'a AutoCompaction>) -> Option<&'a AutoCompaction> {
        match self {
            Self::AgentDefault => agent,
            Self::Off => None,
            Self::With(compaction) => Some(compaction),
        }
    }
}

/// Automatic compaction: a compactor, its trigger and its options.
///
/// ```
/// use std::sync::Arc;
/// use epitome_core::Trigger;
/// use epitome_std::compaction::{AutoCompaction, CompactionOptions, Held, MessagesCompactor, RunPoints};
///
/// let nothing = MessagesCompactor::new("nothing", |messages: Vec<Held>, _: CompactionOptions| async move { Ok(messages) });
/// let auto = AutoCompaction::new(nothing)
///     .with_trigger(Trigger::tokens(80_000))
///     .with_points(RunPoints::default().and_before_call());
/// assert_eq!(auto.options.window(), None, "that of the agent's model");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AutoCompaction {
    /// The compactor.
    pub compactor: Arc<dyn Compactor>,
    /// The trigger. By default a compaction is due when the next request has more than 78 % of the window: of the
    /// options, else of the model. Without both, the window is 128,000 tokens and the trigger 100,000.
    pub trigger: Trigger<'static>,
    /// A condition of the caller under which a compaction is due too; none by default.
    pub condition: Option<Condition>,
    /// The trigger at which a compactor that can begin early begins: see [`Compactor::begins_early`]. With `None`, the
    /// default, it begins when the next request has more than 80 % of the size that makes a compaction due. If a
    /// compaction has to pay and the provider's cache has expired, the compaction is due at this trigger.
    pub early: Option<Trigger<'static>>,
    /// The points of a run at which the trigger is checked.
    pub points: RunPoints,
    /// The spacing: at most one compaction in this number of requests, unless the next request would not fit. The
    /// default is 2 ([`Pacing::SPACING_TURNS`]). 0 and 1 are no limit.
    pub spacing: u32,
    /// The number of requests within which a compaction has to pay for itself. `None`, the default, is no such rule.
    pub payback: Option<u64>,
    /// Whether the model has a tool that compacts; no by default.
    pub is_tool: bool,
    /// The options of the compactor.
    pub options: CompactionOptions,
}

impl AutoCompaction {
    /// An automatic compaction by `compactor`, with the default trigger, before a run. An `Arc` of a compactor is a
    /// compactor too.
    #[must_use]
    pub fn new(compactor: impl Compactor + 'static) -> Self {
        Self {
            compactor: Arc::new(compactor),
            trigger: Trigger::default(),
            condition: None,
            early: None,
            points: RunPoints::default(),
            spacing: Pacing::SPACING_TURNS,
            payback: None,
            is_tool: false,
            options: CompactionOptions::default(),
        }
    }

    /// Sets the trigger.
    ///
    /// A due pass is not made if it would free less than [`CompactionOptions::min_reclaim`], which is a share of the
    /// window by default. If you set a trigger far below the window, set the minimum as well.
    #[must_use]
    pub const fn with_trigger(mut self, trigger: Trigger<'static>) -> Self {
        self.trigger = trigger;
        self
    }

    /// Adds a condition under which a compaction is due too.
    ///
    /// The run evaluates the condition at the points where it checks the trigger, if the trigger has not fired and no
    /// earlier compaction makes the pass wait. Under [`Trigger::never`] the condition decides, as long as no provider
    /// has reported a smaller window and the settings do not enforce the limit. Without a goal in the options, the
    /// strategy decides how much stays.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use epitome_core::Trigger;
    /// use epitome_std::compaction::{AutoCompaction, CompactionOptions, Held, MessagesCompactor};
    ///
    /// # let compactor = MessagesCompactor::new("nothing", |messages: Vec<Held>, _: CompactionOptions| async move { Ok(messages) });
    /// // Many short messages, or few long ones.
    /// let auto = AutoCompaction::new(compactor)
    ///     .with_trigger(Trigger::never())
    ///     .with_condition(|view| view.size() + 50 * u64::from(view.index().messages()) > 80_000);
    /// assert!(auto.condition.is_some());
    /// ```
    #[must_use]
    pub fn with_condition(
        mut self,
        condition: impl Fn(&TriggerView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.condition = Some(Condition(Arc::new(condition)));
        self
    }

    /// Sets the trigger at which a compactor that can begin early begins: a trigger below the one of
    /// [`AutoCompaction::with_trigger`], low enough that the result is ready when that one fires.
    #[must_use]
    pub const fn with_early(mut self, trigger: Trigger<'static>) -> Self {
        self.early = Some(trigger);
        self
    }

    /// Sets the points of a run at which it may compact.
    #[must_use]
    pub const fn with_points(mut self, points: RunPoints) -> Self {
        self.points = points;
        self
    }

    /// Sets the spacing: at most one compaction in this number of requests. A compaction voids the provider's prompt
    /// cache, and the request after it writes the cache anew. A compaction before each request would use no cache at
    /// all.
    #[must_use]
    pub const fn with_spacing(mut self, requests: u32) -> Self {
        self.spacing = requests;
        self
    }

    /// Compacts only if the compaction pays for itself within `requests` requests, at the prices of the agent's model.
    ///
    /// As long as the next request fits, a plan that saves less is not carried out and no model writes its summaries
    /// ([`RunEvent::DoesNotPay`](crate::run::RunEvent::DoesNotPay)).
    /// [`PaybackRule::REQUESTS`](super::PaybackRule::REQUESTS) is a number for agents that work on long tasks.
    /// [`PaybackRule`](super::PaybackRule) has the formula.
    ///
    /// *Prices*: those of [`RunSettings::model_row`](crate::run::RunSettings::model_row). Without them the rule does
    /// not apply, and the run reports it ([`RunEvent::NoPrices`](crate::run::RunEvent::NoPrices)).
    ///
    /// *After idle time*: if the provider's cache has expired since the session's last request, the provider writes the
    /// next request anew, compacted or not. A compaction is then due earlier: at the trigger of
    /// [`AutoCompaction::early`], with the goal of the usual trigger. The session holds the time of its last request,
    /// also after it is written and read again. A session without this time counts as one with a warm cache, and so
    /// does each session of a provider that publishes no lifetime.
    ///
    /// *Compactors*: the rule works with compactors that apply the rule of their context
    /// ([`CompactionCx::payback`](super::CompactionCx::payback)), such as the engine of `epitome-compactors`. A
    /// [`MessagesCompactor`](super::MessagesCompactor) does not apply it: its function may have asked a model already.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use epitome_std::compaction::{AutoCompaction, CompactionOptions, Held, MessagesCompactor, PaybackRule};
    /// use epitome_std::run::RunSettings;
    ///
    /// # let compactor = MessagesCompactor::new("nothing", |messages: Vec<Held>, _: CompactionOptions| async move { Ok(messages) });
    /// let auto = AutoCompaction::new(compactor).with_payback(PaybackRule::REQUESTS);
    /// let settings = RunSettings::new("helper").with_model("claude-sonnet-4-5").with_compaction(auto);
    /// assert!(settings.model_row().is_some_and(|model| model.prices.is_some()));
    /// ```
    #[must_use]
    pub const fn with_payback(mut self, requests: u64) -> Self {
        self.payback = Some(requests);
        self
    }

    /// Gives the model a tool that compacts between two pieces of work, before a compaction is due. The model may name
    /// the subject that must stay known. See [`CompactTool`](super::CompactTool). [`Agent`](crate::agent::Agent)
    /// answers its calls; in a [`Run`](crate::run::Run) call [`run_own_calls`](crate::run::Run::run_own_calls).
    ///
    /// The model reads how many tokens are left: at each tenth of the limit from the fifth on, the run adds a line to
    /// the latest tool result, as a part of its own. The line stays as it is in all later requests, so that the
    /// provider's prompt cache holds. The limit is the size at which a compaction is due.
    ///
    /// A tool of the caller or of a provider with the same name takes precedence. If a service keeps the session there
    /// is nothing to compact, and the result of a call reports this.
    #[must_use]
    pub const fn with_tool(mut self) -> Self {
        self.is_tool = true;
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: CompactionOptions) -> Self {
        self.options = options;
        self
    }
}

/// A condition that the caller has written: see [`AutoCompaction::with_condition`].
#[derive(Clone)]
pub struct Condition(Arc<dyn Fn(&TriggerView<'_>) -> bool + Send + Sync>);

impl Condition {
    /// Whether a compaction is due.
    pub(crate) fn is_due(&self, view: &TriggerView<'_>) -> bool {
        (self.0)(view)
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condition").finish_non_exhaustive()
    }
}

/// The points of a run at which a trigger is checked: before the run by default.
///
/// ```
/// use epitome_std::compaction::RunPoints;
///
/// let points = RunPoints::default().and_before_call();
/// assert!(points.before_run() && points.before_call() && !points.after_run());
/// assert!(!RunPoints::NONE.and_after_run().before_run());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunPoints(u8);

const BEFORE_RUN: u8 = 1;
const BEFORE_CALL: u8 = 2;
const AFTER_RUN: u8 = 4;

impl RunPoints {
    /// No points.
    pub const NONE: Self = Self(0);

    /// Adds the point before a run, for the stored history.
    #[must_use]
    pub const fn and_before_run(self) -> Self {
        Self(self.0 | BEFORE_RUN)
    }

    /// Adds the point before each request to the model, for the whole request, stored or not. The stored history gets its
    /// share of the compaction when the run stores. Messages that are never stored are hidden or shortened for this run
    /// only.
    #[must_use]
    pub const fn and_before_call(self) -> Self {
        Self(self.0 | BEFORE_CALL)
    }

    /// Adds the point after a run, for the history as it is stored then.
    #[must_use]
    pub const fn and_after_run(self) -> Self {
        Self(self.0 | AFTER_RUN)
    }

    /// Whether the trigger is checked before a run.
    #[must_use]
    pub const fn before_run(self) -> bool {
        self.0 & BEFORE_RUN != 0
    }

    /// Whether the trigger is checked before each call of the model.
    #[must_use]
    pub const fn before_call(self) -> bool {
        self.0 & BEFORE_CALL != 0
    }

    /// Whether the trigger is checked after a run.
    #[must_use]
    pub const fn after_run(self) -> bool {
        self.0 & AFTER_RUN != 0
    }
}

impl Default for RunPoints {
    fn default() -> Self {
        Self::NONE.and_before_run()
    }
}

/// The options of a compactor. A compactor may have options of a type of its own: if they are set, they take precedence
/// as a whole.
///
/// ```
/// use epitome_std::compaction::CompactionOptions;
///
/// assert_eq!(CompactionOptions::default().window(), None);
/// let options = CompactionOptions::default().with_window(32_000).with_own("of a type that my compactor knows");
/// assert_eq!(options.window(), Some(32_000));
/// assert_eq!(options.own::<&str>(), Some(&"of a type that my compactor knows"));
/// assert_eq!(options.own::<u8>(), None);
/// ```
#[derive(Clone, Default)]
pub struct CompactionOptions {
    window: Option<u64>,
    reserve: Option<u64>,
    goal: Option<u64>,
    min_reclaim: Option<u64>,
    pins: Pins,
    focus: Option<Str>,
    hook: Option<Arc<dyn CompactionHook>>,
    own: Option<Arc<dyn Any + Send + Sync>>,
}

impl CompactionOptions {
    /// Sets the window in tokens. The default is the window of the model.
    #[must_use]
    pub const fn with_window(mut self, window: u64) -> Self {
        self.window = Some(window);
        self
    }

    /// Sets the reserve: the number of tokens of the window that stay free for the answer. More than half of the window
    /// counts as half of it.
    #[must_use]
    pub const fn with_reserve(mut self, tokens: u64) -> Self {
        self.reserve = Some(tokens);
        self
    }

    /// Sets the goal: the size that a compaction aims at, in tokens of the next request.
    ///
    /// A goal at or above the size that made the compaction due counts as just below it.
    #[must_use]
    pub const fn with_goal(mut self, tokens: u64) -> Self {
        self.goal = Some(tokens);
        self
    }

    /// Sets the minimum number of tokens that a compaction has to free. A compaction that frees less is not made,
    /// unless the next request would not fit. The trigger less the goal is the maximum. With 0 each compaction is made,
    /// also in a conversation of short turns.
    #[must_use]
    pub const fn with_min_reclaim(mut self, tokens: u64) -> Self {
        self.min_reclaim = Some(tokens);
        self
    }

    /// Sets the messages that have to stay, in addition to the messages that are stored as pinned. Before a call of the
    /// model, a pin by source or predicate also holds messages that are not stored yet. Such a message has no number.
    #[must_use]
    pub fn with_pins(mut self, pins: Pins) -> Self {
        self.pins = pins;
        self
    }

    /// Sets the main subject of a summary, for example "the failing test". The model that writes the summary reads it
    /// as the caller's words.
    #[must_use]
    pub fn with_focus(mut self, focus: impl Into<Str>) -> Self {
        self.focus = Some(focus.into());
        self
    }

    /// Sets a hook that is called before and after a compaction.
    #[must_use]
    pub fn with_hook(mut self, hook: Arc<dyn CompactionHook>) -> Self {
        self.hook = Some(hook);
        self
    }

    /// Sets the compactor's own options.
    #[must_use]
    pub fn with_own<T: Any + Send + Sync>(mut self, own: T) -> Self {
        self.own = Some(Arc::new(own));
        self
    }

    /// The window in tokens. `None` stands for the window of the agent's model, which is 128,000 for an unknown model.
    #[must_use]
    pub const fn window(&self) -> Option<u64> {
        self.window
    }

    /// The reserve: the tokens that stay free for the answer. `None` stands for the reserve of the model's budget: an
    /// eighth of the window, and at most 8,192 tokens ([`RESERVE_MAX`](epitome_core::RESERVE_MAX)).
    #[must_use]
    pub const fn reserve(&self) -> Option<u64> {
        self.reserve
    }

    /// The goal: the size that a compaction aims at, in tokens. `None` stands for half of the number of tokens that
    /// made the compaction due. If no number of tokens made it due, or if the caller asked for it, the strategy
    /// decides.
    #[must_use]
    pub const fn goal(&self) -> Option<u64> {
        self.goal
    }

    /// The minimum number of tokens that a compaction has to free. `None` stands for 2 % of the window, and at most the
    /// trigger less the goal. Under a trigger that is small for its window, a compaction then has to reach the goal.
    /// An `Engine` without a set number also requires 5 % of the tokens that it compacts.
    #[must_use]
    pub const fn min_reclaim(&self) -> Option<u64> {
        self.min_reclaim
    }

    /// The pins.
    #[must_use]
    pub const fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The main subject of a summary, if the caller names one.
    #[must_use]
    pub fn focus(&self) -> Option<&str> {
        self.focus.as_deref()
    }

    /// The hook that is called before and after a compaction, if there is one.
    #[must_use]
    pub const fn hook(&self) -> Option<&Arc<dyn CompactionHook>> {
        self.hook.as_ref()
    }

    /// The compactor's own options, if they are of this type.
    #[must_use]
    pub fn own<T: Any>(&self) -> Option<&T> {
        self.own.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for CompactionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionOptions")
            .field("window", &self.window)
            .field("reserve", &self.reserve)
            .field("goal", &self.goal)
            .field("min_reclaim", &self.min_reclaim)
            .field("pins", &self.pins)
            .field("focus", &self.focus.is_some())
            .field("hook", &self.hook)
            .field("own", &self.own.is_some())
            .finish()
    }
}
