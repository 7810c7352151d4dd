//! A compaction that is prepared while the conversation continues.

use core::fmt;
use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use std::boxed::Box;
use std::sync::Arc;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_std::compaction::{Began, Begun, CompactionCx, CompactionOutcome, Compactor, Discarded};
use epitome_std::history::History;
use epitome_std::session::SessionError;
use futures::FutureExt as _;
use futures::future::{AbortHandle, Abortable, BoxFuture, Shared};
use tracing::debug;

use super::Engine;
use super::again::Again;
use super::attempt::{Attempted, Ready};
use super::region::Region;
use super::written::{Known, Written};
use crate::StrategySpec;

/// A task that an executor polls to its end. Any executor will do.
pub type BackgroundTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An [`Engine`] that prepares compactions early: summaries are written while the conversation continues.
///
/// At a line below the trigger ([`AutoCompaction::early`](epitome_std::compaction::AutoCompaction::early)) it makes
/// a plan for the current history and requests the summaries. Messages can be appended meanwhile. When the trigger
/// fires, it commits the plan and the summaries in one step, without a call of a model; the messages since then
/// stay behind them. It writes one summary for each crossing of the line, however often it is called.
///
/// *If the summary is not ready when the compaction is due*, the conversation continues as long as its request
/// fits; then the pass waits.
///
/// *If the messages of the plan have changed meanwhile* (by another compaction, an answer to a call among them, or
/// another model), or if the preparation failed, the result is discarded and the engine compacts in the usual way.
/// [`CompactionCx::discarded`] reports this, and in a run
/// [`RunEvent::Discarded`](epitome_std::run::RunEvent::Discarded).
///
/// *Runtime*: any. The task is given to `spawn`. Polling it only makes the result ready earlier: a pass that waits
/// for the task polls it too.
///
/// *Cancel safety*: as [`Compactor`]. An early compaction belongs to the session. If any future is dropped, the
/// compaction continues, and the next pass finds it. It ends when the session is dropped, or when it is discarded.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_compactors::{Background, DigestSummarizer, Engine, Summarization};
/// use epitome_core::{ClassEstimator, Budget, Pass};
/// use epitome_std::compaction::{AutoCompaction, Began, Begun, CompactionCx, CompactionOutcome, Compactor};
/// use epitome_std::history::{AppendToken, History, MemoryStore, SessionId};
/// use epitome_std::message::Message;
///
/// # futures::executor::block_on(async {
/// let engine = Engine::new(Summarization::new()).with_summarizer(Arc::new(DigestSummarizer));
/// // On tokio: `|task| drop(tokio::spawn(task))`.
/// let background = Background::new(engine, |task| drop(std::thread::spawn(|| futures::executor::block_on(task))));
///
/// // In runs, this is all: it begins at 80 % of the trigger, or where `with_early` says.
/// let auto = AutoCompaction::new(background.clone());
///
/// // What a run does with it:
/// let store = Arc::new(MemoryStore::new());
/// let mut history = History::open(store, SessionId::new("s"), Arc::new(ClassEstimator::new())).await?;
/// for turn in 0..9 {
///     let said = vec![Message::user("And then?"), Message::assistant("A long answer. ".repeat(40))];
///     history.append(&AppendToken::new(format!("{turn}")), said).await?;
/// }
/// let budget = Budget::builder().window(4_000).trigger(1_500).goal(600).min_reclaim(0).build()?;
/// let mut begun = Begun::default();
/// let mut cx = CompactionCx::new(&mut history, budget, Pass::Proactive).with_begun(&mut begun);
/// assert_eq!(background.begin(&mut cx), Began::Now);
///
/// history.append(&AppendToken::new("more"), vec![Message::user("And at last?")]).await?;
/// let mut cx = CompactionCx::new(&mut history, budget, Pass::Manual).with_begun(&mut begun);
/// assert!(matches!(background.compact(&mut cx).await?, CompactionOutcome::Compacted(_)));
/// assert!(history.projection().last().is_some_and(|last| *last == Message::user("And at last?")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Background {
    engine: Arc<Engine>,
    spawn: Arc<dyn Fn(BackgroundTask) + Send + Sync>,
    /// Whether a finished early compaction is committed at once, before it is due.
    at_once: bool,
}

impl Background {
    /// An engine whose summaries are written by tasks. `spawn` starts a task, and should not wait for its end.
    pub fn new(engine: Engine, spawn: impl Fn(BackgroundTask) + Send + Sync + 'static) -> Self {
        Self { engine: Arc::new(engine), spawn: Arc::new(spawn), at_once: false }
    }

    /// Commits early work as soon as it is ready, before it is due.
    pub(crate) const fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }

    /// The early work, if this compactor started it for the current model.
    fn own<'c>(&self, cx: &'c mut CompactionCx<'_>) -> Result<&'c Work, Discarded> {
        let (model, own) = (cx.model_key(), cx.options().own::<StrategySpec>().cloned());
        let begun = cx.begun().ok_or(Discarded::Superseded)?;
        if begun.model() != model {
            return Err(Discarded::ModelChanged);
        }
        let is_same = |work: &&Work| Arc::ptr_eq(&work.engine, &self.engine) && work.own == own;
        begun.work::<Work>().filter(is_same).ok_or(Discarded::Superseded)
    }

    fn start(&self, cx: &mut CompactionCx<'_>) {
        let (budget, pass, model) = (*cx.budget(), cx.pass(), cx.model().clone());
        let (key, request, costs) = (cx.model_key(), cx.request().cloned(), cx.costs().clone());
        let (payback, options) = (cx.payback().copied(), cx.options().clone());
        let own = options.own::<StrategySpec>().cloned();
        let mut snapshot = cx.history().snapshot();
        let (engine, revision) = (Arc::clone(&self.engine), snapshot.revision());
        let making = async move {
            let mut written = Written::default();
            let cx = CompactionCx::new(&mut snapshot, budget, pass)
                .with_options(options)
                .with_costs(costs)
                .with_model(model)
                .with_request(request)
                .with_payback(payback);
            match engine.ready(&cx, &mut written).await {
                Ok(Attempted::Ready(Ready { verdicts: again, .. })) => Done::Planned {
                    region: Region::of(&again, snapshot.live()),
                    again,
                    summaries: written.into_summaries(),
                },
                Ok(Attempted::Ended(_)) => Done::Unchanged,
                Err(error) => {
                    debug!(kind = ?error.kind(), "what was begun early has failed");
                    Done::Failed
                }
            }
        };
        // A user's strategy may panic. The waiting pass must not.
        let making =
            AssertUnwindSafe(making).catch_unwind().map(|done| Arc::new(done.unwrap_or(Done::Failed)));
        let done = making.boxed().shared();
        let (aborts, registration) = AbortHandle::new_pair();
        let task = Abortable::new(done.clone(), registration).map(drop);
        let Some(begun) = cx.begun() else { return };
        begun.put(Work { engine: Arc::clone(&self.engine), own, done, aborts }, key, revision);
        (self.spawn)(Box::pin(task));
    }

    /// The early work that can be committed now; `Ok(None)` if it is not ready and the pass can wait.
    async fn ready(&self, cx: &mut CompactionCx<'_>) -> Result<Option<(Again, Vec<Known>)>, Discarded> {
        let done = self.own(cx)?.done.clone();
        let (pass, budget) = (cx.pass(), *cx.budget());
        let done = match done.peek() {
            Some(done) => Arc::clone(done),
            None if pass.can_wait(cx.history().index().tokens(), &budget) => return Ok(None),
            None => done.await,
        };
        done.on(cx.history()).map(Some)
    }
}

#[async_trait]
impl Compactor for Background {
    fn name(&self) -> &str {
        self.engine.name()
    }

    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        if !cx.begun().is_some_and(|begun| begun.is_under_way()) {
            return self.engine.compact(cx).await;
        }
        match self.ready(cx).await {
            Ok(Some((again, summaries))) => {
                let mut written = Written::knowing(summaries);
                let outcome = self.engine.compact_from(cx, Some(again), &mut written).await?;
                // A committed compaction is over. Work that no longer applied was discarded.
                cx.begun().into_iter().for_each(|begun| begun.give_up());
                Ok(outcome)
            }
            Ok(None) => Ok(CompactionOutcome::UnderWay),
            Err(why) => {
                cx.discard(why);
                self.engine.compact(cx).await
            }
        }
    }

    fn begins_early(&self) -> bool {
        true
    }

    fn begin(&self, cx: &mut CompactionCx<'_>) -> Began {
        let Some(begun) = cx.begun() else { return Began::Nothing };
        if begun.is_under_way() {
            match self.own(cx).map(|work| work.done.peek().cloned()) {
                Err(why) => cx.discard(why),
                // Work that failed or found nothing is not repeated before it is due. Unfinished work is checked
                // when it is due.
                Ok(Some(done)) if done.is_edited_in(cx.history()) => cx.discard(Discarded::PrefixEdited),
                Ok(done) => {
                    let revision = cx.history().revision();
                    cx.begun().into_iter().for_each(|begun| begun.holds_at(revision));
                    let has_come =
                        self.at_once && done.is_some_and(|done| matches!(*done, Done::Planned { .. }));
                    return if has_come { Began::Come } else { Began::Earlier };
                }
            }
        }
        if !cx.is_early() {
            return Began::Nothing;
        }
        self.start(cx);
        Began::Now
    }

    fn has_come(&self, begun: &Begun) -> bool {
        let own = begun.work::<Work>().filter(|work| Arc::ptr_eq(&work.engine, &self.engine));
        let done = own.and_then(|work| work.done.peek());
        self.at_once && done.is_some_and(|done| matches!(**done, Done::Planned { .. }))
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Early work of a session.
struct Work {
    /// The engine that started it.
    engine: Arc<Engine>,
    /// The strategy that the caller set for this pass.
    own: Option<StrategySpec>,
    done: Shared<BoxFuture<'static, Arc<Done>>>,
    aborts: AbortHandle,
}

impl Drop for Work {
    fn drop(&mut self) {
        self.aborts.abort();
    }
}

/// Result of the work.
enum Done {
    /// Verdicts, the messages that they apply to, and the summaries for them.
    Planned {
        again: Again,
        region: Region,
        summaries: Vec<Known>,
    },
    Unchanged,
    Failed,
}

impl Done {
    /// The verdicts and the summaries, with the keys of the messages in `history`.
    fn on(&self, history: &History) -> Result<(Again, Vec<Known>), Discarded> {
        let Self::Planned { again, region, summaries } = self else {
            return Err(match self {
                Self::Unchanged => Discarded::NothingToGain,
                _ => Discarded::Failed,
            });
        };
        let numbers = region.numbers_in(history.live()).ok_or(Discarded::PrefixEdited)?;
        let again = again.renumbered(&numbers).ok_or(Discarded::PrefixEdited)?;
        again.on(history).ok_or(Discarded::PrefixEdited)?;
        let known = |(keys, summary): &Known| {
            let keys = keys.iter().map(|key| numbers.get(key).copied()).collect::<Option<Vec<_>>>()?;
            Some((keys, summary.clone()))
        };
        Ok((again, summaries.iter().filter_map(known).collect()))
    }

    fn is_edited_in(&self, history: &History) -> bool {
        matches!(self.on(history), Err(Discarded::PrefixEdited))
    }
}
