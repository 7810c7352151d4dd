//! Models that refuse a request because it is too long, and agents that know the window, learn it, or give up with the numbers.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::compactors::Truncation;
use epitome::core::{ClassEstimator, Trigger, Usage, count_message};
use epitome::std::agent::{
    Agent, ChatClient, ChatRequest, ClientError, DeltaSink, OVERFLOW_COMPACTIONS_MAX, RunUpdate,
};
use epitome::std::compaction::{
    AutoCompaction, CompactionCx, CompactionOptions, CompactionOutcome, Compactor, RunPoints,
};
use epitome::std::history::{HistoryStore, MemoryStore};
use epitome::std::message::Message;
use epitome::std::models::Model;
use epitome::std::run::{
    Delta, ModelResponse, Persistence, Run, RunError, RunEvent, RunOptions, RunSettings,
};
use epitome::std::session::{AgentSession, SessionError};
use epitome::std::wire::{ContextOverflow, context_overflow};
use epitome_tests::around::{Pauses, StoreWith, pause};
use futures::StreamExt;
use futures::executor::block_on;

use crate::runs::{settings, settings_over};
use crate::support::{Truncating, call, log, texts};

const WINDOW: u64 = 4_000;
const ANSWER: &str = "It is the third door on the left, and the key is under the mat. ";

/// A service whose model has `window` tokens, of which each of its own is `heavier` of the estimator's. It reports what it counts.
#[derive(Clone)]
struct Strict {
    window: u64,
    heavier: u64,
    /// Whether a refusal has numbers.
    tells: bool,
    /// The limit that it names, if that is another.
    claims: Option<u64>,
    /// What a request has to leave for the answer.
    answer_max: u64,
    streams: bool,
    /// Of each request: what it counted, and whether it was answered.
    asked: Arc<Mutex<Vec<(u64, bool)>>>,
}

impl Strict {
    fn new(window: u64) -> Self {
        Self {
            window,
            heavier: 1,
            tells: true,
            claims: None,
            answer_max: 0,
            streams: false,
            asked: Arc::default(),
        }
    }

    fn refusals(&self) -> usize {
        self.asked.lock().unwrap().iter().filter(|(_, answered)| !answered).count()
    }

    fn answer(&self, messages: &[Message]) -> Result<ModelResponse, ClientError> {
        let counter = ClassEstimator::new();
        let count = |message: &Message| count_message(message, &counter).as_u64();
        let sent = messages.iter().map(count).sum::<u64>() * self.heavier;
        let fits = sent <= self.window - self.answer_max;
        self.asked.lock().unwrap().push((sent, fits));
        if fits {
            let answer = Message::assistant(ANSWER.repeat(4));
            return Ok(ModelResponse::new(vec![answer])
                .with_usage(Usage::new(sent, 80))
                .with_finish_reason("stop"));
        }
        let message = match self.tells {
            true if self.answer_max > 0 => format!(
                "input length and `max_tokens` exceed context limit: {sent} + {} > {}",
                self.answer_max, self.window
            ),
            true => {
                format!("prompt is too long: {sent} tokens > {} maximum", self.claims.unwrap_or(self.window))
            }
            false => "Your input exceeds the context window of this model.".to_owned(),
        };
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        Err(context_overflow(400, &body).unwrap().into())
    }
}

#[async_trait]
impl ChatClient for Strict {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        pause().await;
        self.answer(request.messages)
    }

    async fn stream(
        &self,
        request: &ChatRequest<'_>,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<Option<ModelResponse>, ClientError> {
        let response = self.complete(request).await?;
        if !self.streams {
            return Ok(Some(response));
        }
        for _ in 0..4 {
            pause().await;
            on_delta(Delta::text(ANSWER));
        }
        let last = Delta::default().with_finish_reason("stop");
        on_delta(last.with_usage(response.usage.ok_or("it reports its usage")?));
        Ok(None)
    }
}

fn compaction() -> AutoCompaction {
    AutoCompaction::new(Arc::new(Truncating(Truncation::new())))
}

fn agent(settings: RunSettings, client: &Strict) -> Agent {
    Agent::with_settings(settings, client.clone())
}

/// Runs with questions of some 60 tokens, with and without a listener. Returns what happened in all of them.
fn talk(agent: &Agent, session: &mut AgentSession, runs: usize) -> Vec<RunEvent> {
    let mut happened = Vec::new();
    for run in 0..runs {
        let (question, options) = (format!("{run}: {}", "where is it? ".repeat(15)), RunOptions::default());
        let outcome = match run % 2 {
            0 => block_on(agent.run(session, question, &options)),
            _ => block_on(agent.run_stream(session, question, &options).finish()),
        };
        let outcome = outcome.unwrap();
        assert_eq!(outcome.response.messages, [Message::assistant(ANSWER.repeat(4))], "{run}");
        assert_eq!(outcome.response.finish_reason.as_deref(), Some("stop"));
        happened.extend(outcome.events);
    }
    happened
}

fn compactions(events: &[RunEvent]) -> usize {
    events.iter().filter(|event| matches!(event, RunEvent::Compacted { .. })).count()
}

/// Nothing but the model's figures are configured: no trigger, no window, no counter.
#[test]
fn an_agent_of_a_small_model_that_is_known_is_never_refused() {
    for points in [RunPoints::default(), RunPoints::NONE.and_before_call(), RunPoints::NONE.and_after_run()] {
        let (store, client) = (Arc::new(MemoryStore::new()), Strict::new(WINDOW));
        let settings = settings(&store)
            .with_model_row(Model::new("small", WINDOW))
            .with_compaction(compaction().with_points(points));
        let agent = agent(settings, &client);
        let events = talk(&agent, &mut agent.create_session(Some("s"), None), 200);
        assert_eq!((client.refusals(), log(&*store, "s").len()), (0, 400));
        assert!(compactions(&events) > 5, "{points:?}: {}", compactions(&events));
    }
}

/// The window of an unknown model is taken to be 128,000 tokens. The first refusal tells another, or only that it is less.
#[test]
fn an_agent_of_an_unknown_model_learns_from_a_refusal() {
    for (tells, streams) in [(true, true), (true, false), (false, true)] {
        let store = Arc::new(MemoryStore::new());
        let client = Strict { tells, streams, ..Strict::new(WINDOW) };
        let agent = agent(settings(&store).with_model("new").with_compaction(compaction()), &client);
        let mut session = agent.create_session(Some("s"), None);
        let events = talk(&agent, &mut session, 200);
        assert_eq!(log(&*store, "s").len(), 400, "all is stored, and once");
        let refusals = client.refusals();
        let told = events.iter().filter(|event| matches!(event, RunEvent::Refused { .. })).count();
        assert_eq!(told, refusals);
        // One that tells no window is asked until it refuses, each time that the history has grown again.
        assert!(if tells { refusals == 1 } else { (5..20).contains(&refusals) }, "{refusals}");
    }
}

/// What the service counts is three times what the agent does, and the first request of all is too long already.
#[test]
fn a_refusal_tells_also_how_the_service_counts() {
    let (store, free) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
    let before = agent(settings(&store), &free);
    talk(&before, &mut before.create_session(Some("s"), None), 30);
    let strict = Strict { heavier: 3, ..Strict::new(2 * WINDOW) };
    let agent = agent(settings(&store).with_model("new").with_compaction(compaction()), &strict);
    let events = talk(&agent, &mut agent.create_session(Some("s"), None), 1);
    let [(sent, false), (less, true)] = strict.asked.lock().unwrap()[..] else {
        panic!("{:?}", strict.asked)
    };
    assert!(less <= WINDOW && less > WINDOW / 2, "half of the window: {less}");
    let overflow = ContextOverflow::new(Some(2 * WINDOW), Some(sent));
    let refused =
        |event: &RunEvent| matches!(event, RunEvent::Refused { overflow: told, .. } if *told == overflow);
    assert!(events.iter().any(refused) && compactions(&events) == 1, "{events:?}");
}

/// The limit that the service names is more than it takes, and it names no size.
#[test]
fn a_limit_that_is_too_large_is_halved() {
    let (store, free) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
    let before = agent(settings(&store), &free);
    talk(&before, &mut before.create_session(Some("s"), None), 30);
    let size = free.asked.lock().unwrap().last().unwrap().0;
    let strict = Strict { claims: Some(size), ..Strict::new(size * 3 / 8) };
    let agent = agent(settings(&store).with_model("new").with_compaction(compaction()), &strict);
    talk(&agent, &mut agent.create_session(Some("s"), None), 1);
    assert_eq!(strict.refusals(), 2);
}

/// A refusal of the next request of the run is a first one again.
#[test]
fn only_refusals_of_one_request_are_added_up() {
    let (store, free) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
    let before = agent(settings(&store), &free);
    let mut session = before.create_session(Some("s"), None);
    talk(&before, &mut session, 30);
    let settings = settings(&store).with_compaction(compaction());
    block_on(async {
        let input = vec![Message::user("Work.")];
        let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
        for times in 0..2 {
            for step in 0..40 {
                let (handle, id) = (run.prompt().await.unwrap().handle, format!("c{times}-{step}"));
                run.record(handle, ModelResponse::new(vec![call(&id, "read")])).await.unwrap();
                run.answer(vec![Message::tool(id, "a line of a file; ".repeat(12))]).unwrap();
            }
            let prompt = run.prompt().await.unwrap();
            let size = prompt.size.tokens;
            run.refused(prompt.handle, ContextOverflow::new(Some(size), None)).await.unwrap();
            let prompt = run.prompt().await.unwrap();
            let left = prompt.size.tokens;
            assert!(left <= size / 2 && left > size / 3, "{times}: {left} of {size}");
            // The same request once more.
            run.refused(prompt.handle, ContextOverflow::new(Some(size), None)).await.unwrap();
            let prompt = run.prompt().await.unwrap();
            assert!(prompt.size.tokens <= left / 4 + 1, "{times}: {} of {left}", prompt.size.tokens);
            run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("So far.")])).await.unwrap();
        }
    });
}

/// A service that counts much more than it says is asked a third time, with half of that.
#[test]
fn a_second_refusal_is_answered_harder() {
    let (store, free) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
    let before = agent(settings(&store), &free);
    talk(&before, &mut before.create_session(Some("s"), None), 30);
    let size = free.asked.lock().unwrap().last().unwrap().0;
    let strict = Strict { tells: false, ..Strict::new(size * 3 / 8) };
    let agent = agent(settings(&store).with_model("new").with_compaction(compaction()), &strict);
    talk(&agent, &mut agent.create_session(Some("s"), None), 1);
    let asked = strict.asked.lock().unwrap().clone();
    let [(first, false), (second, false), (third, true)] = asked[..] else { panic!("{asked:?}") };
    assert!(second < first && third <= second / 2 + 1, "{asked:?}");
}

#[test]
fn what_cannot_be_made_to_fit_ends_with_the_numbers() {
    for streams in [true, false] {
        let (store, free) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
        let before = agent(settings(&store), &free);
        talk(&before, &mut before.create_session(Some("s"), None), 30);
        // Not even the question fits.
        let strict = Strict { streams, ..Strict::new(20) };
        let settings = settings(&store).with_model("new").with_compaction(compaction());
        let agent = agent(settings, &strict);
        let mut session = agent.create_session(Some("s"), None);
        let mut ask = || {
            let (input, options) = ("where is it? ".repeat(15), RunOptions::default());
            match streams {
                true => block_on(agent.run_stream(&mut session, input, &options).finish()),
                false => block_on(agent.run(&mut session, input, &options)),
            }
        };
        let error = ask().unwrap_err();
        let RunError::ContextOverflow { overflow, compactions, cause } = &error else { panic!("{error}") };
        let asked = strict.asked.lock().unwrap().clone();
        assert_eq!(*overflow, ContextOverflow::new(Some(20), asked.last().map(|(sent, _)| *sent)));
        assert!(*compactions <= OVERFLOW_COMPACTIONS_MAX && asked.len() == *compactions as usize + 1);
        let text = error.to_string();
        assert!(text.contains("longer than the model's window of 20, after"), "{text}");
        assert!(cause.is_some() == (*compactions < OVERFLOW_COMPACTIONS_MAX), "{text}");
        // What was said is stored, and the session goes on where there is room for it.
        assert_eq!(log(&*store, "s").len(), 61);
        talk(&before, &mut before.create_session(Some("s"), None), 1);
    }
}

#[test]
fn an_agent_that_does_not_compact_says_so() {
    let (store, client) = (Arc::new(MemoryStore::new()), Strict::new(300));
    let agent = agent(settings(&store), &client);
    let mut session = agent.create_session(Some("s"), None);
    let error = loop {
        match block_on(agent.run(&mut session, "where is it? ".repeat(8), &RunOptions::default())) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    let RunError::ContextOverflow { compactions: 0, cause: Some(cause), .. } = &error else {
        panic!("{error}")
    };
    assert!(matches!(&**cause, RunError::Misuse(what) if what.contains("no compactor")), "{cause}");
    assert_eq!(texts(&log(&*store, "s")).last().unwrap(), &format!("user: {}", "where is it? ".repeat(8)));
}

/// What a service tells that is confused does not shrink what fits: the next refusal is helped as if it had told nothing.
#[test]
fn a_limit_that_cannot_be_is_not_kept_in_mind() {
    for limit in [0, 1, 128, 1_023, u64::MAX] {
        let store = Arc::new(MemoryStore::new());
        let client = Strict { claims: Some(limit), ..Strict::new(3_000) };
        let settings = settings(&store).with_model_row(Model::new("small", WINDOW));
        let agent = agent(settings.with_compaction(compaction()), &client);
        let mut session = agent.create_session(Some("s"), None);
        talk(&agent, &mut session, 200);
        // Without a limit it is refused each time that it has grown to 3,000 again.
        assert!((5..20).contains(&client.refusals()), "{limit}: {}", client.refusals());
        assert_eq!(session.window_told(), None);
    }
}

/// A session of an endpoint with a small window goes on at one with a larger window: the first answer that shows it is believed.
#[test]
fn a_window_that_was_told_is_forgotten_when_more_is_answered() {
    let (store, small, large) = (Arc::new(MemoryStore::new()), Strict::new(2_000), Strict::new(WINDOW));
    let settings = settings(&store).with_model_row(Model::new("m", WINDOW)).with_compaction(compaction());
    let (at_small, at_large) = (agent(settings.clone(), &small), agent(settings, &large));
    let mut session = at_small.create_session(Some("s"), None);
    talk(&at_small, &mut session, 40);
    assert_eq!((small.refusals(), session.window_told()), (1, Some(2_000)));
    let long = "where is it? ".repeat(500);
    block_on(at_large.run(&mut session, long, &RunOptions::default())).unwrap();
    assert_eq!(session.window_told(), None);
    assert_eq!(large.refusals(), 0);
}

/// The service counts `max_tokens` as a part of the request. Where the run's options say how much that is, it stays free; where only
/// the client knows, each refusal is helped.
#[test]
fn what_a_request_keeps_for_its_answer_stays_free() {
    for (known, refusals) in [(true, 0..1), (false, 5..25)] {
        let store = Arc::new(MemoryStore::new());
        let client = Strict { answer_max: 1_600, ..Strict::new(WINDOW) };
        let settings = settings(&store).with_model_row(Model::new("m", WINDOW)).with_compaction(compaction());
        let agent = agent(settings, &client);
        let mut session = agent.create_session(Some("s"), None);
        let options = RunOptions::default();
        let options = if known { options.with_option("max_tokens", 1_600) } else { options };
        for run in 0..200 {
            let question = format!("{run}: {}", "where is it? ".repeat(15));
            block_on(agent.run(&mut session, question, &options)).unwrap();
        }
        assert!(refusals.contains(&client.refusals()), "{known}: {}", client.refusals());
        assert_eq!(session.window_told(), None, "the window is the one that was known");
    }
    // An answer that may have all of it is not to be helped.
    let (store, client) =
        (Arc::new(MemoryStore::new()), Strict { answer_max: WINDOW, ..Strict::new(WINDOW) });
    let agent = agent(settings(&store).with_compaction(compaction()), &client);
    let mut session = agent.create_session(Some("s"), None);
    let error = block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap_err();
    assert!(error.to_string().ends_with("lower the limit of the answer"), "{error}");
    assert_eq!(client.refusals(), 1);
}

/// A goal near the limit is for what is due. After a refusal half of what was sent is left at most.
#[test]
fn a_goal_does_not_weaken_what_follows_a_refusal() {
    let (store, free) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
    let before = agent(settings(&store), &free);
    talk(&before, &mut before.create_session(Some("s"), None), 30);
    let size = free.asked.lock().unwrap().last().unwrap().0;
    let strict = Strict { tells: false, ..Strict::new(size / 4) };
    let options = CompactionOptions::default().with_goal(size * 4 / 5);
    let agent = agent(settings(&store).with_compaction(compaction().with_options(options)), &strict);
    talk(&agent, &mut agent.create_session(Some("s"), None), 1);
    assert_eq!(strict.refusals(), 2);
}

/// A trigger for a larger window, and sessions that are written and read between their runs.
#[test]
fn a_window_that_was_told_counts_under_every_trigger_and_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let client = Strict::new(WINDOW);
    let auto = compaction().with_trigger(Trigger::tokens(80_000));
    let agent = agent(settings(&store).with_model("new").with_compaction(auto), &client);
    let mut session = agent.create_session(Some("s"), None);
    for _ in 0..100 {
        talk(&agent, &mut session, 2);
        session = AgentSession::from_json(&session.to_json().unwrap()).unwrap();
    }
    assert_eq!((client.refusals(), session.window_told()), (1, Some(WINDOW)));
}

/// A provider refuses what a service keeps.
#[test]
fn what_a_service_keeps_is_not_compacted_here_and_that_is_said() {
    let (store, client) = (Arc::new(MemoryStore::new()), Strict::new(20));
    let agent = agent(settings(&store).with_compaction(compaction()), &client);
    let mut session = agent.create_session(Some("s"), Some("r1".into()));
    let long = "where is it? ".repeat(15);
    let error = block_on(agent.run(&mut session, long, &RunOptions::default())).unwrap_err();
    let RunError::ContextOverflow { cause: Some(cause), .. } = &error else { panic!("{error}") };
    assert_eq!(cause.to_string(), "the service keeps the history of this session");
}

#[test]
fn the_events_of_a_run_that_fails_are_told_by_its_stream() {
    let (store, client) = (Arc::new(MemoryStore::new()), Strict::new(20));
    let agent = agent(settings(&store).with_compaction(compaction()), &client);
    let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
    let stream = agent.run_stream(&mut session, "where is it? ".repeat(15), &options);
    let updates: Vec<_> = block_on(stream.collect());
    let refused =
        |it: &Result<RunUpdate, RunError>| matches!(it, Ok(RunUpdate::Event(RunEvent::Refused { .. })));
    assert!(updates.iter().any(refused) && updates.last().is_some_and(Result::is_err), "{updates:?}");
}

/// One counter for a run and its history: what is stored was counted as what is sent.
#[test]
fn a_history_counts_as_its_run_does() {
    let (store, client) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
    let agent = agent(settings(&store).with_model("claude-sonnet-4-5"), &client);
    let mut session = agent.create_session(Some("s"), None);
    talk(&agent, &mut session, 3);
    let name = agent.settings().counter().name().to_owned();
    assert!(name.ends_with("@claude-sonnet-4-5"), "{name}");
    let page = block_on(async {
        use epitome::core::Seq;
        use epitome::std::history::SessionId;
        store.log(&SessionId::new("s"), Seq(0)..Seq(u64::MAX), u32::MAX).await.unwrap()
    });
    assert!(page.messages.iter().all(|logged| logged.entry.count.counter.as_str() == name));
}

/// A compactor that takes its time, as one does that asks a model.
#[derive(Debug)]
struct Slow;

#[async_trait]
impl Compactor for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        pause().await;
        let done = Truncating(Truncation::new()).compact(cx).await;
        pause().await;
        done
    }
}

/// A run that is dropped while its request is refused and compacted leaves a session that can be used, with nothing twice.
#[test]
fn a_run_that_is_dropped_while_it_is_refused_can_be_made_again() {
    for (per_call, streams) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut points = 0;
        for polls in 0.. {
            let store = Arc::new(StoreWith::<Pauses>::default());
            let as_store: Arc<dyn HistoryStore> = store.clone();
            let free = Strict::new(u64::MAX);
            let before = agent(settings_over(&as_store), &free);
            talk(&before, &mut before.create_session(Some("s"), None), 12);
            let strict = Strict { streams, ..Strict::new(1_500) };
            let persistence = if per_call { Persistence::PerModelCall } else { Persistence::PerRun };
            let settings = settings_over(&as_store).with_model("new").with_persistence(persistence);
            let agent = agent(settings.with_compaction(AutoCompaction::new(Arc::new(Slow))), &strict);
            let mut session = agent.create_session(Some("s"), None);
            let options = RunOptions::default().with_run_token("t");
            let question = "And where is the key?";
            let done = match streams {
                true => {
                    crate::cancel::drive(agent.run_stream(&mut session, question, &options).finish(), polls)
                }
                false => crate::cancel::drive(agent.run(&mut session, question, &options), polls),
            };
            let is_done = done.map(Result::unwrap).is_some();
            if is_done {
                assert_eq!(strict.refusals(), 1);
            } else {
                match block_on(agent.run(&mut session, question, &options)) {
                    Ok(_) | Err(RunError::AlreadyStored) => {}
                    Err(error) => panic!("after {polls} polls: {error}"),
                }
            }
            let said = texts(&log(&store.store, "s"));
            let asked = said.iter().filter(|text| **text == format!("user: {question}")).count();
            assert_eq!(asked, 1, "after {polls} polls: {said:?}");
            points = polls;
            if is_done {
                break;
            }
        }
        assert!(points > 6, "only {points} await points");
    }
}
