//! Compactions by a service that begin before they are due, and are committed when their result is there. At any time
//! the history is the old one or the new one, and whole.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use epitome::agent::ChatClient;
use epitome::compaction::{
    AutoCompaction, Began, Begun, CompactionCx, CompactionOptions, CompactionOutcome, Compactor, Discarded,
    RunPoints,
};
use epitome::compactors::managed::openai::OpenAiCompaction;
use epitome::compactors::{Engine, Managed, Truncation};
use epitome::core::{Budget, ClassEstimator, ModelKey, Pass, Trigger};
use epitome::history::{History, HistoryStore, MemoryStore};
use epitome::message::Message;
use epitome::session::SessionError;
use epitome_tests::around::StoreWith;
use futures::future::join_all;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::managed::commits::{Fate, Next, fresh};
use crate::managed::openai::sessions::check_replay;
use crate::managed::support::{append, block_on, case, compact, managed, open, shown, ten_turns};
use crate::managed::talk::Talk;
use crate::managed::{anthropic, openai};

fn ahead(managed: Managed) -> Managed {
    managed.in_background(|task| drop(tokio::spawn(task)))
}

/// Tasks of the early work.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl Tasks {
    fn watch(&self, managed: Managed) -> Managed {
        let Self(tasks) = self.clone();
        managed.in_background(move |task| tasks.lock().unwrap().push(tokio::spawn(task)))
    }

    /// Waits until all tasks have ended, and fails after the deadline.
    async fn end_within(&self, deadline: Duration) {
        let tasks = core::mem::take(&mut *self.0.lock().unwrap());
        assert!(!tasks.is_empty());
        let over = tokio::time::timeout(deadline, join_all(tasks)).await;
        over.expect("it ends").into_iter().for_each(|ended| ended.unwrap());
    }
}

/// A compaction that begins at 7,000 tokens, and is not due before 20,000.
fn never_due(managed: Managed) -> AutoCompaction {
    AutoCompaction::new(ahead(managed))
        .with_early(Trigger::tokens(7_000))
        .with_trigger(Trigger::tokens(20_000))
        .with_options(CompactionOptions::default().with_window(26_000))
        .with_points(RunPoints::NONE.and_before_call())
}

fn two_hundred_turns(chat: &(impl ChatClient + Clone + 'static), model: &str, managed: Managed) {
    let mut talk = Talk::new(model);
    let last = talk.go_on(200, chat, never_due(managed));
    assert!(last.ends_with(" 200 facts"), "{last}");
    assert!(talk.compacted >= 5, "{} compactions", talk.compacted);
    assert!((talk.compacted..=talk.compacted + 1).contains(&talk.begun), "{} begun", talk.begun);
    assert_eq!(talk.discarded, []);
}

/// Checks that early work is committed before it is due: otherwise some request would have more than `bytes`.
fn stay_small(sent: &[Value], bytes: usize) {
    let longest = sent.iter().map(|body| body.to_string().len()).max().unwrap();
    assert!(longest < bytes, "{longest} bytes");
}

#[test]
fn in_runs_at_anthropic() {
    let chat = anthropic::sessions::Chat::new();
    two_hundred_turns(&chat, anthropic::MODEL, anthropic::sessions::managed());
    let sent = chat.sent.lock().unwrap();
    // The longest request has 9,362 bytes, and 22,410 if the compaction waits.
    stay_small(&sent, 15_000);
    let first = |body: &&Value| body["messages"][0]["content"][0]["type"] == "compaction";
    assert!(sent.iter().filter(first).count() > 300, "it stands there as soon as it has come");
}

#[test]
fn in_runs_at_openai() {
    for service in [openai::service("openai"), openai::service("openai").in_band()] {
        let chat = openai::sessions::Chat::new("openai");
        two_hundred_turns(&chat, "m", managed(service));
        let sent = chat.sent.lock().unwrap();
        // The longest request has 29,131 bytes, and 80,043 if the compaction waits.
        stay_small(&sent, 50_000);
        check_replay(&sent, true);
    }
}

/// A history with early work.
struct Session {
    history: History,
    store: Arc<dyn HistoryStore>,
    begun: Begun,
    model: &'static str,
}

impl Session {
    async fn new(store: Arc<dyn HistoryStore>) -> Self {
        Self { history: ten_turns(&store).await, store, begun: Begun::default(), model: "m" }
    }

    fn cx(&mut self, pass: Pass) -> CompactionCx<'_> {
        let budget = Budget::builder().window(4_000).trigger(1_500).goal(300).min_reclaim(0);
        let budget = budget.build().unwrap();
        let key = ModelKey::new(self.model, &ClassEstimator::new());
        CompactionCx::new(&mut self.history, budget, pass).with_model_key(key).with_begun(&mut self.begun)
    }

    fn begin(&mut self, managed: &Managed) -> (Began, Option<Discarded>) {
        let mut cx = self.cx(Pass::Proactive);
        let began = managed.begin(&mut cx);
        (began, cx.discarded())
    }

    /// Like [`Session::begin`], at a point where no compaction is due soon: only a result that is ready is used.
    fn take_up(&mut self, managed: &Managed) -> (Began, Option<Discarded>) {
        let mut cx = self.cx(Pass::Proactive).for_what_has_come();
        let began = managed.begin(&mut cx);
        (began, cx.discarded())
    }

    async fn compact(
        &mut self,
        managed: &Managed,
    ) -> (Result<CompactionOutcome, SessionError>, Option<Discarded>) {
        let mut cx = self.cx(Pass::Proactive);
        let outcome = managed.compact(&mut cx).await;
        (outcome, cx.discarded())
    }

    /// Waits until the early work has a result or has failed, for at most 400 sleeps of 5 ms.
    async fn goes_on(&mut self, managed: &Managed) {
        for _ in 0..400 {
            if managed.has_come(&self.begun) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn shown(&self) -> Vec<Message> {
        shown(&self.history, &self.store).await
    }
}

fn failing(faults: &str) -> OpenAiCompaction {
    let service = openai::service("openai").with_header("x-case", &case()).unwrap();
    service.with_header("x-faults", faults).unwrap()
}

fn more() -> Vec<Message> {
    vec![Message::user("And this: FACT-99?"), Message::assistant("That too.")]
}

/// The result replaces exactly the messages that were sent. Messages that were appended meanwhile stay behind it.
#[test]
fn what_has_come_takes_the_place_of_what_was_sent() {
    for service in [ahead(managed(openai::service("openai"))), ahead(managed(anthropic::service()))] {
        block_on(async {
            let mut session = Session::new(Arc::new(MemoryStore::new())).await;
            let at_once = {
                let mut other = Session::new(Arc::new(MemoryStore::new())).await;
                assert!(other.compact(&service).await.0.is_ok());
                other.shown().await
            };
            let before = session.shown().await;
            assert_eq!(session.begin(&service), (Began::Now, None));
            assert_eq!(session.begin(&service), (Began::Earlier, None), "no other is begun");
            append(&mut session.history, more()).await;
            assert_eq!(session.shown().await, [before, more()].concat(), "until it comes nothing is changed");
            session.goes_on(&service).await;
            assert_eq!(session.begin(&service), (Began::Come, None));
            let (outcome, discarded) = session.compact(&service).await;
            assert!(matches!(outcome, Ok(CompactionOutcome::Compacted(_))), "{outcome:?}");
            assert_eq!(discarded, None);
            assert_eq!(session.shown().await, [at_once, more()].concat());
            assert!(!session.begun.is_under_way());
        });
    }
}

#[test]
fn what_fails_is_discarded_and_the_history_is_as_it_was() {
    // The faults of each case, one a request.
    let faults = ["503,503,503", "401", "context", "none", "garbage", "disconnect,disconnect,disconnect"];
    block_on(join_all(faults.map(|faults| async move {
        let tasks = Tasks::default();
        let managed = tasks.watch(managed(failing(faults)));
        let mut session = Session::new(Arc::new(MemoryStore::new())).await;
        let before = session.shown().await;
        assert_eq!(session.begin(&managed).0, Began::Now);
        tasks.end_within(Duration::from_secs(20)).await;
        // Until the compaction is due, the failure is not reported, and the work is not tried again.
        assert_eq!(session.begin(&managed), (Began::Earlier, None), "{faults}");
        assert_eq!(session.shown().await, before, "{faults}");
        // The service works again: a due compaction is made as usual.
        let (outcome, discarded) = session.compact(&managed).await;
        assert_eq!(discarded, Some(Discarded::Failed), "{faults}");
        assert!(matches!(outcome, Ok(CompactionOutcome::Compacted(_))), "{faults}: {outcome:?}");
        let after = session.shown().await;
        assert!(after.len() < before.len(), "{faults}");
    })));
}

#[test]
fn what_is_not_well_again_leaves_the_history_to_the_fallback_or_as_it_was() {
    let hopeless = "503,503,503,503,503,503";
    block_on(join_all([false, true].map(|with_fallback| async move {
        let managed = match with_fallback {
            true => Managed::or_else(Arc::new(failing(hopeless)), Arc::new(Engine::new(Truncation::new()))),
            false => managed(failing(hopeless)),
        };
        let managed = ahead(managed);
        let mut session = Session::new(Arc::new(MemoryStore::new())).await;
        let before = session.shown().await;
        assert_eq!(session.begin(&managed).0, Began::Now);
        let outcome = loop {
            match session.compact(&managed).await {
                (Ok(CompactionOutcome::UnderWay), None) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                (outcome, discarded) => {
                    assert_eq!(discarded, Some(Discarded::Failed));
                    break outcome;
                }
            }
        };
        assert_eq!(outcome.is_ok(), with_fallback, "{outcome:?}");
        assert_eq!(session.shown().await == before, !with_fallback);
    })));
}

#[test]
fn what_was_changed_meanwhile_is_discarded() {
    block_on(async {
        let managed = ahead(managed(openai::service("openai")));
        // Another model: a result that is bound to one model is not used for another.
        let mut session = Session::new(Arc::new(MemoryStore::new())).await;
        let before = session.shown().await;
        assert_eq!(session.begin(&managed).0, Began::Now);
        session.goes_on(&managed).await;
        session.model = "another";
        assert_eq!(session.begin(&managed), (Began::Now, Some(Discarded::ModelChanged)));
        assert_eq!(session.shown().await, before);
        // Another compaction: the messages that were sent are no longer the visible ones.
        let mut session = Session::new(Arc::new(MemoryStore::new())).await;
        assert_eq!(session.begin(&managed).0, Began::Now);
        session.goes_on(&managed).await;
        let other = Engine::new(Truncation::new());
        assert!(matches!(compact(&mut session.history, &other).await.0, Ok(CompactionOutcome::Compacted(_))));
        let between = session.shown().await;
        // The result is checked because it has come. Far below the trigger no new work begins in its place.
        assert_eq!(session.take_up(&managed), (Began::Nothing, Some(Discarded::PrefixEdited)));
        assert!(!session.begun.is_under_way());
        assert_eq!(session.begin(&managed), (Began::Now, None));
        assert_eq!(session.shown().await, between);
    });
}

/// A store that fails at the commit shows the old history or the new one, and the service is not called again.
#[test]
fn a_store_that_fails_shows_the_old_history_or_the_new_one() {
    block_on(async {
        let mut whole = None;
        for fate in [Fate::Fine, Fate::Lost, Fate::Unanswered, Fate::Dropped] {
            // A second request would be refused.
            let managed = ahead(managed(failing("ok,401,401,401")));
            let unreliable = Arc::new(StoreWith::<Next>::default());
            let mut session = Session::new(Arc::clone(&unreliable) as _).await;
            assert_eq!(session.begin(&managed).0, Began::Now);
            append(&mut session.history, more()).await;
            session.goes_on(&managed).await;
            let (old, store) = (fresh(&session.store).await, Arc::clone(&session.store));
            unreliable.around.set(fate);
            if fate == Fate::Dropped {
                let committed = async {
                    while fresh(&store).await == old {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                let ended =
                    futures::future::select(Box::pin(session.compact(&managed)), Box::pin(committed)).await;
                assert!(matches!(ended, futures::future::Either::Right(_)), "it hangs");
            } else {
                assert_eq!(session.compact(&managed).await.0.is_ok(), fate == Fate::Fine, "{fate:?}");
            }
            assert_eq!(fresh(&store).await == old, fate == Fate::Lost, "{fate:?}");
            assert_eq!(session.begun.is_under_way(), fate != Fate::Fine, "{fate:?}");
            if fate != Fate::Fine {
                session.history = open(&store).await;
                let (again, discarded) = session.compact(&managed).await;
                if fate == Fate::Lost {
                    // The result is still there.
                    assert!(matches!(again, Ok(CompactionOutcome::Compacted(_))), "{again:?}");
                    assert_eq!(discarded, None);
                } else {
                    // The result was committed, and is not committed again.
                    assert_eq!(discarded, Some(Discarded::PrefixEdited), "{fate:?}: {again:?}");
                }
                assert!(!session.begun.is_under_way(), "{fate:?}");
            }
            let shown = fresh(&store).await;
            assert_eq!(*whole.get_or_insert_with(|| shown.clone()), shown, "{fate:?}");
        }
    });
}

/// While the request fits, no pass waits for early work without a result. Early work that is given up changes nothing.
#[test]
fn what_has_not_come_is_not_waited_for() {
    block_on(async {
        let tasks = Tasks::default();
        let managed = tasks.watch(managed(failing("hang")));
        let mut session = Session::new(Arc::new(MemoryStore::new())).await;
        let before = session.shown().await;
        assert_eq!(session.begin(&managed).0, Began::Now);
        let outcome = tokio::time::timeout(Duration::from_secs(5), session.compact(&managed)).await;
        assert!(matches!(outcome, Ok((Ok(CompactionOutcome::UnderWay), None))), "{outcome:?}");
        session.begun.give_up();
        tasks.end_within(Duration::from_secs(5)).await;
        assert_eq!(session.shown().await, before);
    });
}

/// A request that does not fit waits for the early work, and the service is called once.
#[test]
fn what_has_not_come_is_waited_for_where_nothing_fits() {
    block_on(async {
        let managed = ahead(managed(failing("ok,401,401,401")));
        let mut session = Session::new(Arc::new(MemoryStore::new())).await;
        assert_eq!(session.begin(&managed).0, Began::Now);
        let outcome = managed.compact(&mut session.cx(Pass::Overflow)).await;
        assert!(matches!(outcome, Ok(CompactionOutcome::Compacted(_))), "{outcome:?}");
        assert!(!session.begun.is_under_way());
    });
}
