//! A compaction that is made while the conversation goes on.

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

/// Work that is to be polled to its end, by whatever executor there is.
pub type BackgroundTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An [`Engine`] that has its summaries written before they are due, while the conversation goes on.
///
/// At a line below the trigger ([`AutoCompaction::early`](epitome_std::compaction::AutoCompaction::early)) it plans on what
/// there is then and has what is missing written. Messages are appended meanwhile as ever. When the trigger is passed, what
/// was planned is committed with what was written: in one step, without a call of a model, and behind it stands all that
/// was said since. One summary is written for one crossing, whoever asks how often.
///
/// *If it is not ready when it is due*, the conversation goes on as long as its request fits; then it is waited for.
///
/// *If what it is about has changed meanwhile* (another compaction, an answer to a call in it, another model), it is discarded,
/// which is told by [`CompactionCx::discarded`], and in a run by [`RunEvent::Discarded`](epitome_std::run::RunEvent::Discarded).
/// So it is if it failed. Then the engine compacts as ever.
///
/// *No runtime is chosen*: the work is given to `spawn`. Whether anybody polls it decides only how early it is ready: who
/// has to wait for it polls it too.
///
/// *Cancel safety*: as [`Compactor`]. What was begun belongs to the session: whichever future is dropped, it goes on, and the
/// next pass finds it. It ends where the session is dropped, or it is discarded.
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
    /// Whether what has come does not wait until it is due.
    at_once: bool,
}

impl Background {
    /// An engine that has its summaries written by tasks that are given to `spawn`, which should not wait for them.
    pub fn new(engine: Engine, spawn: impl Fn(BackgroundTask) + Send + Sync + 'static) -> Self {
        Self { engine: Arc::new(engine), spawn: Arc::new(spawn), at_once: false }
    }

    /// Commits early work as soon as it is ready, without waiting until it is due.
    pub(crate) const fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }

    /// Early work, if this compactor has begun it for this model.
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
        // A strategy of the user's may panic; whoever waits shall not.
        let making =
            AssertUnwindSafe(making).catch_unwind().map(|done| Arc::new(done.unwrap_or(Done::Failed)));
        let done = making.boxed().shared();
        let (aborts, registration) = AbortHandle::new_pair();
        let task = Abortable::new(done.clone(), registration).map(drop);
        let Some(begun) = cx.begun() else { return };
        begun.put(Work { engine: Arc::clone(&self.engine), own, done, aborts }, key, revision);
        (self.spawn)(Box::pin(task));
    }

    /// Early work that can be committed now; `Ok(None)` if it is not ready and the pass can wait.
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
                // What is committed is over; what was changed in the last moment was discarded.
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
                // What failed, or found nothing, is not tried again before it is due; what is not ready is looked at then.
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
    /// Engine that has begun it.
    engine: Arc<Engine>,
    /// The strategy that the caller has named for it.
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
    /// Verdicts, the messages that they are about, and what was written for them.
    Planned {
        again: Again,
        region: Region,
        summaries: Vec<Known>,
    },
    Unchanged,
    Failed,
}

impl Done {
    /// The verdicts and what was written, by the numbers that messages have in `history`.
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
