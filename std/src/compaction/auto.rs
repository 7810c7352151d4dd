//! When a run compacts.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use epitome_core::{Pacing, Trigger, WINDOW_DEFAULT};

use super::{Compactor, PaybackRule};
use crate::history::Pins;
use crate::message::Str;

/// Whether a run compacts: what the agent says (the default), not at all, or as said here. Not saying is not `Off`.
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
    /// As the agent does; if that says nothing, not at all.
    #[default]
    AgentDefault,
    /// Not in this run.
    Off,
    /// In this way, whatever the agent does.
    With(AutoCompaction),
}

impl Compaction {
    /// What holds in a run of an agent that has this default.
    #[must_use]
    pub const fn resolve<'a>(&'a self, agent: Option<&'a AutoCompaction>) -> Option<&'a AutoCompaction> {
        match self {
            Self::AgentDefault => agent,
            Self::Off => None,
            Self::With(compaction) => Some(compaction),
        }
    }
}

/// Compacts by itself, when it is due.
///
/// ```
/// use std::sync::Arc;
/// use epitome_core::Trigger;
/// use epitome_std::compaction::{AutoCompaction, CompactionOptions, Held, MessagesCompactor, RunPoints};
///
/// let nothing = MessagesCompactor::new("nothing", |messages: Vec<Held>, _: CompactionOptions| async move { Ok(messages) });
/// let auto = AutoCompaction::new(Arc::new(nothing))
///     .with_trigger(Trigger::tokens(80_000))
///     .with_points(RunPoints::default().and_before_call());
/// assert_eq!(auto.options.window(), 128_000);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AutoCompaction {
    /// Who compacts.
    pub compactor: Arc<dyn Compactor>,
    /// When it is due; by default when the next request has more than 100,000 tokens.
    pub trigger: Trigger<'static>,
    /// When a compactor that can begin before it is due begins: see [`Compactor::as_early`]. `None`, by default, is when the
    /// next request has more than 80 % of what makes a compaction due. With a [`PaybackRule`], a compaction is due from here
    /// on if the provider's cache has expired.
    pub early: Option<Trigger<'static>>,
    /// Where in a run the trigger is looked at.
    pub points: RunPoints,
    /// In how many requests at most one compaction is made, unless the next request would not fit; 2 by default
    /// ([`Pacing::SPACING_TURNS`]). 0 and 1 are no limit.
    pub spacing: u32,
    /// The rule that a compaction has to pay for itself. `None`, by default, is no such rule.
    pub payback: Option<PaybackRule>,
    /// What the compactor is told.
    pub options: CompactionOptions,
}

impl AutoCompaction {
    /// `compactor` under the default trigger, before a run.
    #[must_use]
    pub fn new(compactor: Arc<dyn Compactor>) -> Self {
        Self {
            compactor,
            trigger: Trigger::default(),
            early: None,
            points: RunPoints::default(),
            spacing: Pacing::SPACING_TURNS,
            payback: None,
            options: CompactionOptions::default(),
        }
    }

    /// The same under another trigger.
    #[must_use]
    pub const fn with_trigger(mut self, trigger: Trigger<'static>) -> Self {
        self.trigger = trigger;
        self
    }

    /// The same with a compactor that can begin early beginning under this trigger: a line below the one of
    /// [`AutoCompaction::with_trigger`], low enough that what it begins is ready when that is reached.
    #[must_use]
    pub const fn with_early(mut self, trigger: Trigger<'static>) -> Self {
        self.early = Some(trigger);
        self
    }

    /// The same at other points of a run.
    #[must_use]
    pub const fn with_points(mut self, points: RunPoints) -> Self {
        self.points = points;
        self
    }

    /// The same with at most one compaction in so many requests. A compaction voids what the provider has cached of the prompt, which
    /// the request after it writes anew: one before each request uses no cache at all.
    #[must_use]
    pub const fn with_spacing(mut self, requests: u32) -> Self {
        self.spacing = requests;
        self
    }

    /// The same, which compacts only if the compaction pays within the requests that `rule` expects. A plan that saves less is not
    /// carried out and no model writes its summaries, as long as the next request fits
    /// ([`RunEvent::DoesNotPay`](crate::run::RunEvent::DoesNotPay)).
    ///
    /// *After idle time*: if the provider's cache has expired since the session's last request, the next request is written anew,
    /// compacted or not. A compaction is then due earlier: at the line of [`AutoCompaction::early`], with the goal that the trigger
    /// has. The session notes the time of its last request under a rule, also when it is written and read again. A session without
    /// such a note counts as one with a warm cache, and so does each session of a provider that publishes no lifetime.
    ///
    /// *Which compactors*: those that apply the rule of their context ([`CompactionCx::payback`](super::CompactionCx::payback)),
    /// such as the engine of `epitome-compactors`. A [`MessagesCompactor`](super::MessagesCompactor) does not: its function may have
    /// asked a model already.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use epitome_std::compaction::{AutoCompaction, CompactionOptions, Held, MessagesCompactor, PaybackRule};
    /// use epitome_std::models::Models;
    ///
    /// # let compactor = MessagesCompactor::new("nothing", |messages: Vec<Held>, _: CompactionOptions| async move { Ok(messages) });
    /// let model = Models::builtin().find("claude-sonnet-4-5")?;
    /// let mut auto = AutoCompaction::new(Arc::new(compactor));
    /// if let Some(prices) = model.prices {
    ///     auto = auto.with_payback(PaybackRule::new(prices).with_requests(30));
    /// }
    /// assert_eq!(auto.payback.map(|rule| rule.requests), Some(30));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_payback(mut self, rule: PaybackRule) -> Self {
        self.payback = Some(rule);
        self
    }

    /// The same with other options.
    #[must_use]
    pub fn with_options(mut self, options: CompactionOptions) -> Self {
        self.options = options;
        self
    }
}

/// Where in a run a trigger is looked at: before the run by default.
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
    /// Nowhere.
    pub const NONE: Self = Self(0);

    /// Also before a run, on what is stored.
    #[must_use]
    pub const fn and_before_run(self) -> Self {
        Self(self.0 | BEFORE_RUN)
    }

    /// Also before each call of the model, on all that is sent, stored or not. What is stored learns of it when
    /// the run stores; what is never stored is hidden or shortened for this run only.
    #[must_use]
    pub const fn and_before_call(self) -> Self {
        Self(self.0 | BEFORE_CALL)
    }

    /// Also after a run, on what is then stored.
    #[must_use]
    pub const fn and_after_run(self) -> Self {
        Self(self.0 | AFTER_RUN)
    }

    /// Whether before a run.
    #[must_use]
    pub const fn before_run(self) -> bool {
        self.0 & BEFORE_RUN != 0
    }

    /// Whether before each call of the model.
    #[must_use]
    pub const fn before_call(self) -> bool {
        self.0 & BEFORE_CALL != 0
    }

    /// Whether after a run.
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

/// What a compactor is told beside the history. A compactor may have options of a type of its own: those, if they are
/// there, win whole.
///
/// ```
/// use epitome_std::compaction::CompactionOptions;
///
/// assert_eq!(CompactionOptions::default().window(), 128_000);
/// let options = CompactionOptions::default().with_window(32_000).with_own("of a type that my compactor knows");
/// assert_eq!(options.own::<&str>(), Some(&"of a type that my compactor knows"));
/// assert_eq!(options.own::<u8>(), None);
/// ```
#[derive(Clone)]
pub struct CompactionOptions {
    window: u64,
    pins: Pins,
    focus: Option<Str>,
    own: Option<Arc<dyn Any + Send + Sync>>,
}

impl CompactionOptions {
    /// The same with another window, in tokens: what the model takes.
    #[must_use]
    pub const fn with_window(mut self, window: u64) -> Self {
        self.window = window;
        self
    }

    /// The same with what has to stay, beside what is stored as pinned. Before a call of the model what is not stored yet can
    /// be pinned too, by source or predicate: it has no number.
    #[must_use]
    pub fn with_pins(mut self, pins: Pins) -> Self {
        self.pins = pins;
        self
    }

    /// The same with the subject that a summary should attend to most: "the failing test". It is told to the model that
    /// writes the summary, as the caller's words.
    #[must_use]
    pub fn with_focus(mut self, focus: impl Into<Str>) -> Self {
        self.focus = Some(focus.into());
        self
    }

    /// The same with the compactor's own options.
    #[must_use]
    pub fn with_own<T: Any + Send + Sync>(mut self, own: T) -> Self {
        self.own = Some(Arc::new(own));
        self
    }

    /// What the model takes, in tokens.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// What has to stay.
    #[must_use]
    pub const fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The subject that a summary should attend to most, if the caller names one.
    #[must_use]
    pub fn focus(&self) -> Option<&str> {
        self.focus.as_deref()
    }

    /// The compactor's own options, if they are of this type.
    #[must_use]
    pub fn own<T: Any>(&self) -> Option<&T> {
        self.own.as_ref()?.downcast_ref()
    }
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self { window: WINDOW_DEFAULT, pins: Pins::default(), focus: None, own: None }
    }
}

impl fmt::Debug for CompactionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionOptions")
            .field("window", &self.window)
            .field("pins", &self.pins)
            .field("focus", &self.focus.is_some())
            .field("own", &self.own.is_some())
            .finish()
    }
}
