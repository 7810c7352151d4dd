//! Requests that the provider refuses because they are longer than the model's window: the compactions after a refusal,
//! their number, and the error of the caller if they do not help. The tests of windows that are learned from refusals
//! are in `window`.

use std::sync::Arc;

use async_trait::async_trait;
use epitome::agent::{OVERFLOW_COMPACTIONS_MAX, RunUpdate};
use epitome::compaction::{
    AutoCompaction, CompactionCx, CompactionOptions, CompactionOutcome, Compactor, RunPoints,
};
use epitome::compactors::Truncation;
use epitome::core::Trigger;
use epitome::history::{HistoryStore, MemoryStore};
use epitome::message::Message;
use epitome::models::Model;
use epitome::run::{ModelResponse, Persistence, Run, RunError, RunEvent, RunOptions};
use epitome::session::SessionError;
use epitome::wire::ContextOverflow;
use epitome_tests::around::{Pauses, StoreWith, pause};
use futures::StreamExt;
use futures::executor::block_on;

use crate::sessions::runs::{settings, settings_over};
use crate::sessions::strict::{Strict, WINDOW, agent, compaction, compactions, talk};
use crate::sessions::support::{Truncating, call, log, texts};

/// A refusal also shows the count of the service. The service counts three times as many tokens as the agent, and its
/// first request is already too long.
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

/// The service names a limit that is larger than the one it accepts: the second refusal halves the request.
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

/// A refusal of the next request of the run counts as a first refusal again.
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
            // The same request is refused once more.
            run.refused(prompt.handle, ContextOverflow::new(Some(size), None)).await.unwrap();
            let prompt = run.prompt().await.unwrap();
            assert!(prompt.size.tokens <= left / 4 + 1, "{times}: {} of {left}", prompt.size.tokens);
            run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("So far.")])).await.unwrap();
        }
    });
}

/// After a second refusal the third request has at most half the size of the second one. The refusals contain no
/// numbers.
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

/// The task leaves less of the window free than is reserved for the answer: the turns after the task are hidden all the
/// same, and the session goes on.
#[test]
fn what_is_protected_may_take_the_place_of_the_answer() {
    for tells in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let strict = Strict { tells, ..Strict::new(WINDOW) };
        let settings =
            settings(&store).with_model_row(Model::new("small", WINDOW)).with_compaction(compaction());
        let (limit, agent) = (settings.budget().limit(), agent(settings, &strict));
        let mut session = agent.create_session(Some("s"), None);
        let task = "word ".repeat(usize::try_from(limit - 100).unwrap());
        block_on(agent.run(&mut session, task, &RunOptions::default())).unwrap();
        let before = strict.asked.lock().unwrap()[0].0;
        assert!(before + 300 < WINDOW && before < limit, "{before} of {limit}");
        let events = talk(&agent, &mut session, 12);
        let sent = strict.asked.lock().unwrap().iter().filter(|(size, fits)| *fits && *size > limit).count();
        assert!(sent > 0 && compactions(&events) > 1, "{tells}: {:?}", strict.asked);
    }
}

/// With an enforced limit no message is hidden in vain: a request that fits only without the reserve is not sent.
#[test]
fn an_enforced_limit_keeps_the_place_of_the_answer() {
    let (store, strict) = (Arc::new(MemoryStore::new()), Strict::new(WINDOW * 4 / 5));
    let settings = settings(&store)
        .with_model_row(Model::new("small", WINDOW))
        .with_compaction(compaction().with_trigger(Trigger::never()));
    let agent = agent(settings.with_enforced_limit(), &strict);
    let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
    block_on(agent.run(&mut session, "word ".repeat(2_850), &options)).unwrap();
    let mut events = Vec::new();
    let error = (0..12).find_map(|run| {
        match block_on(agent.run(&mut session, format!("{run}: where is it?"), &options)) {
            Ok(outcome) => {
                events.extend(outcome.events);
                None
            }
            Err(error) => Some(error),
        }
    });
    assert!(
        matches!(error, Some(RunError::ContextOverflow { compactions: 0, cause: Some(_), .. })),
        "{error:?}"
    );
    assert_eq!(compactions(&events), 0, "{events:?}");
}

/// With any trigger and any points of a compaction, and also without a compaction: no request is larger than an
/// enforced limit, and the messages are stored.
#[test]
fn an_enforced_limit_is_kept_or_told() {
    let often =
        || compaction().with_trigger(Trigger::turns(100)).with_spacing(50).with_points(RunPoints::NONE);
    for (compaction, refused) in [(Some(often()), None), (None, Some(9)), (Some(often()), Some(30))] {
        let (store, free) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
        let can_compact = compaction.is_some();
        let mut settings = settings(&store).with_model_row(Model::new("small", WINDOW)).with_enforced_limit();
        settings.compaction = compaction;
        let limit = settings.budget().limit();
        let agent = agent(settings, &free);
        let mut session = agent.create_session(Some("s"), None);
        let mut compacted = 0;
        for at in 0..40 {
            let words = if can_compact && refused == Some(at) { 4_000 } else { 300 };
            let (question, options) = ("word ".repeat(words), RunOptions::default());
            let run = match at % 2 {
                0 => block_on(agent.run(&mut session, question, &options)),
                _ => block_on(agent.run_stream(&mut session, question, &options).finish()),
            };
            match run {
                Ok(outcome) => {
                    compacted += compactions(&outcome.events);
                    assert!(
                        !outcome.events.iter().any(|it| matches!(it, RunEvent::OverLimit { .. })),
                        "{at}"
                    );
                }
                Err(RunError::OverLimit { size, limit: told }) => {
                    assert!(told == limit && size > limit && refused == Some(at), "{at}: {size} of {told}");
                    assert!(
                        log(&*store, "s").last().unwrap().text().len() == 5 * words,
                        "{at}: it is stored"
                    );
                    break;
                }
                Err(other) => panic!("{at}: {other}"),
            }
            assert_ne!(refused, Some(at), "it was sent");
        }
        assert_eq!(compacted > 0, can_compact);
        let asked = free.asked.lock().unwrap();
        assert!(
            asked.iter().all(|(sent, _)| *sent <= limit) && asked.len() == refused.unwrap_or(40),
            "{asked:?}"
        );
    }
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
        // The messages are stored, and the session goes on with a larger window.
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

/// A goal near the limit applies to compactions that are due. After a refusal at most half of the sent request is left.
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

/// A request of a session that the service keeps is refused: it is not compacted locally, and the error gives the
/// reason.
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

/// A compactor that pauses, like a compactor that calls a model.
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

/// A run that is dropped while its request is refused and compacted leaves a session that can be used, with no message
/// stored twice.
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
            let agent = agent(settings.with_compaction(AutoCompaction::new(Slow)), &strict);
            let mut session = agent.create_session(Some("s"), None);
            let options = RunOptions::default().with_run_token("t");
            let question = "And where is the key?";
            let done = match streams {
                true => crate::sessions::cancel::drive(
                    agent.run_stream(&mut session, question, &options).finish(),
                    polls,
                ),
                false => crate::sessions::cancel::drive(agent.run(&mut session, question, &options), polls),
            };
            let is_done = done.map(Result::unwrap).is_some();
            if is_done {
                assert_eq!(strict.refusals(), 1);
            } else {
                match block_on(agent.run(&mut session, question, &options)) {
                    Ok(_) | Err(RunError::AlreadyStored { .. }) => {}
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
