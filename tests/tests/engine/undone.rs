//! A compaction that is undone: its hidden messages are visible again, and are not hidden again at once.

use std::sync::Arc;

use epitome::compaction::{AutoCompaction, CompactionOptions};
use epitome::compactors::{Engine, Truncation};
use epitome::core::{Seq, Trigger, Usage, WaitReason};
use epitome::history::{HistoryStore, SqliteStore};
use epitome::message::Message;
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{Compactions, ModelResponse, Run, RunEvent, RunOptions, RunSettings, compact, rewind};
use epitome::session::{AgentSession, SessionErrorKind};
use futures::executor::block_on;

use super::support::{check, history, open, shown};

fn settings(store: &Arc<dyn HistoryStore>, window: u64) -> RunSettings {
    let auto = AutoCompaction::new(Engine::new(Truncation::new()))
        .with_trigger(Trigger::tokens(2_000))
        .with_options(CompactionOptions::default().with_window(window));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::clone(store))).unwrap();
    RunSettings::new("agent").with_providers(providers).with_compaction(auto)
}

/// A run with one request. Returns its events.
fn turn(settings: &RunSettings, session: &mut AgentSession) -> Vec<RunEvent> {
    block_on(async {
        let input = vec![Message::user("And what is next?")];
        let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        let answer = Message::assistant("So it goes on, and on. ".repeat(12));
        run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
        run.finish().await.unwrap().events
    })
}

fn compacted(events: &[RunEvent]) -> bool {
    events.iter().any(|event| matches!(event, RunEvent::Compacted { .. }))
}

/// A session that has just been compacted in a run.
fn just_compacted(settings: &RunSettings) -> AgentSession {
    let mut session = AgentSession::with_id("session");
    let turns = (0..100).take_while(|_| !compacted(&turn(settings, &mut session))).count();
    assert!((5..90).contains(&turns), "{turns}");
    session
}

#[test]
fn what_is_undone_is_not_done_again_at_once() {
    let store: Arc<dyn HistoryStore> = Arc::new(SqliteStore::open_in_memory().unwrap());
    let settings = settings(&store, 40_000);
    let mut session = just_compacted(&settings);
    let visible = history(&store).live().len();
    let (made, hidden) = block_on(async {
        let mut compactions = Compactions::open(&settings, &mut session).await.unwrap();
        let made = compactions.latest().await.unwrap().unwrap().revision;
        let mut hidden = 0;
        let mut next = Some(Seq(0));
        while let Some(from) = next {
            let page = compactions.expand(made, from, 3).await.unwrap();
            assert!(page.messages.iter().all(|logged| logged.hidden_by == Some(made)));
            (hidden, next) = (hidden + page.messages.len(), page.next);
        }
        let undone = compactions.undo(made).await.unwrap();
        assert_eq!(compactions.undo(made).await.unwrap(), undone, "the same answer again");
        assert_eq!(compactions.latest().await.unwrap(), None);
        (made, hidden)
    });
    assert!(hidden > 4);
    let shows = history(&store);
    assert_eq!(shows.live().len(), visible + hidden);
    check(&shows, &store).unwrap();
    // Compaction waits for as many requests as after failures, and each run reports the wait.
    let mut rested = 0;
    let again = loop {
        let events = turn(&settings, &mut session);
        if compacted(&events) {
            break events;
        }
        let rests = |event: &RunEvent| matches!(event, RunEvent::Resting { wait, .. } if wait.reason == WaitReason::Undone);
        assert!(events.iter().any(rests), "{events:?}");
        rested += 1;
    };
    assert_eq!(rested, 10);
    assert!(compacted(&again) && history(&store).revision() > made);
}

#[test]
fn a_request_that_does_not_fit_does_not_wait() {
    let store: Arc<dyn HistoryStore> = Arc::new(SqliteStore::open_in_memory().unwrap());
    // With this window a compaction is due only if the request does not fit.
    let settings = settings(&store, 2_100);
    let mut session = just_compacted(&settings);
    block_on(async {
        let mut compactions = Compactions::open(&settings, &mut session).await.unwrap();
        let made = compactions.latest().await.unwrap().unwrap().revision;
        compactions.undo(made).await.unwrap();
    });
    assert!(compacted(&turn(&settings, &mut session)));
}

#[test]
fn a_run_goes_on_from_where_a_session_was_taken_back_to() {
    let store: Arc<dyn HistoryStore> = Arc::new(SqliteStore::open_in_memory().unwrap());
    let settings = settings(&store, 40_000);
    let mut session = AgentSession::with_id("session");
    for _ in 0..3 {
        turn(&settings, &mut session);
    }
    session.record_usage(Some(&Usage::new(700, 0)));
    let all = shown(&history(&store)).1;
    let made = block_on(rewind(&settings, &mut session, Seq(2))).unwrap();
    assert_eq!(shown(&history(&store)).1, all[..2]);
    assert_eq!(session.token_count(), 0, "what was reported is of what was taken back");
    // The call is repeated, as if it had been dropped after its commit.
    session.record_usage(Some(&Usage::new(700, 0)));
    assert_eq!(block_on(rewind(&settings, &mut session, Seq(2))).unwrap(), made);
    assert_eq!(session.token_count(), 0);
    turn(&settings, &mut session);
    assert_eq!(shown(&history(&store)).1.len(), 4);
    let undone = block_on(async {
        let mut compactions = Compactions::open(&settings, &mut session).await.unwrap();
        assert_eq!(compactions.latest().await.unwrap().unwrap().revision, made);
        compactions.undo(made).await.unwrap();
        shown(compactions.history()).1
    });
    assert_eq!((&undone[..6], undone.len()), (&all[..], 8));
    check(&history(&store), &store).unwrap();
    let error = block_on(rewind(&settings, &mut session, Seq(99))).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Invalid);
    let nobody = block_on(rewind(&RunSettings::new("nobody"), &mut session, Seq(0))).unwrap_err();
    assert_eq!(nobody.kind(), SessionErrorKind::NotFound);
}

#[test]
fn the_compaction_of_another_is_undone_first() {
    let store: Arc<dyn HistoryStore> = Arc::new(SqliteStore::open_in_memory().unwrap());
    let settings = settings(&store, 40_000);
    let (mut session, mut other) = (just_compacted(&settings), AgentSession::with_id("session"));
    let own = block_on(async {
        let mut compactions = Compactions::open(&settings, &mut session).await.unwrap();
        let own = compactions.latest().await.unwrap().unwrap().revision;
        let engine = Engine::new(Truncation::new());
        compact(&settings, &mut other, &engine, CompactionOptions::default()).await.unwrap();
        let before = shown(&open(&store).await);
        let error = compactions.undo(own).await.unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Conflict);
        assert_eq!(
            shown(compactions.history()),
            before,
            "it has loaded what the other did, and changed nothing"
        );
        let theirs = compactions.latest().await.unwrap().unwrap().revision;
        assert!(theirs > own);
        compactions.undo(theirs).await.unwrap();
        compactions.undo(own).await.unwrap();
        own
    });
    let (shows, mut again) = (history(&store), AgentSession::with_id("session"));
    let visible = shows.live().len();
    check(&shows, &store).unwrap();
    let error = block_on(async {
        let compactions = Compactions::open(&settings, &mut again).await.unwrap();
        assert_eq!(compactions.history().live().len(), visible);
        compactions.expand(epitome::core::Revision(own.0 + 100), Seq(0), 1).await.unwrap_err()
    });
    assert_eq!(error.kind(), SessionErrorKind::Invalid);
}
