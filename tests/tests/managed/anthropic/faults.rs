//! Faults of the connection and the service: the history is then unchanged, or completely new, and the costs are
//! reported.

use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use epitome::compaction::CompactionOutcome;
use epitome::compactors::managed::anthropic::{AnthropicCompaction, ON_DEMAND_BETA};
use epitome::compactors::managed::{ServiceError, ServiceErrorKind};
use epitome::core::message::Role;
use epitome::history::{HistoryStore, MemoryStore};
use epitome::message::{Message, Part};
use epitome::wire::{Format, convert};
use futures::future::{Either, join_all, select};
use serde_json::Value;

use super::client::post;
use super::{KEY, MODEL, service};
use crate::managed::support::{block_on, case, compact, managed, shown, ten_turns};

/// A service with these faults, one a request.
fn failing(faults: &str) -> AnthropicCompaction {
    service().with_header("x-case", &case()).unwrap().with_header("x-faults", faults).unwrap()
}

/// An API request with the visible messages.
pub(crate) fn request(shown: &[Message]) -> String {
    let mut body: Value = serde_json::from_str(&convert(shown, Format::Anthropic).unwrap().text).unwrap();
    (body["model"], body["max_tokens"]) = (MODEL.into(), 100.into());
    body.to_string()
}

#[test]
fn what_goes_wrong_leaves_the_history_as_it_was() {
    use ServiceErrorKind as Kind;
    let wait = |secs| Kind::RateLimited { retry_after: Some(Duration::from_secs(secs)) };
    let invalid = |code: &str| Kind::Invalid(code.into());
    let paid = [false, true];
    let cases = [
        ("401", Kind::Authentication, paid[0]),
        ("400", invalid("server_error"), paid[0]),
        ("503,503,503", Kind::Overloaded, paid[0]),
        ("unavailable,unavailable,unavailable", Kind::Overloaded, paid[0]),
        ("429-long", wait(600), paid[0]),
        ("context", Kind::ContextTooLong, paid[0]),
        ("disconnect,disconnect,disconnect", Kind::Unavailable, paid[0]),
        ("garbage", Kind::Malformed, paid[0]),
        ("none", invalid("max_tokens"), paid[1]),
        ("two", Kind::Malformed, paid[1]),
        ("other", Kind::Malformed, paid[1]),
        ("unsigned", Kind::Malformed, paid[1]),
        ("empty", Kind::Malformed, paid[1]),
    ];
    // All cases run at once: most of them wait.
    block_on(join_all(cases.map(|(faults, kind, paid)| async move {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut history = ten_turns(&store).await;
        let before = shown(&history, &store).await;
        let (outcome, usage) = compact(&mut history, &managed(failing(faults))).await;
        let error = outcome.unwrap_err();
        let own = error.source().and_then(<dyn Error>::downcast_ref::<ServiceError>);
        assert_eq!(own.map(ServiceError::kind), Some(&kind), "{faults}: {error}");
        assert_eq!(shown(&history, &store).await, before, "{faults}");
        assert_eq!(usage.len(), usize::from(paid), "{faults}");
        let told = format!("{error} {error:?} {error:#?}");
        assert!(!told.contains(KEY) && !told.contains("SECRET-WORDS") && !told.contains("FACT-"), "{told}");
    })));
}

#[test]
fn what_passes_is_tried_again_and_leaves_the_new_history_whole() {
    block_on(join_all(["ok", "503", "unavailable,429", "disconnect,503"].map(|faults| async move {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut history = ten_turns(&store).await;
        let (outcome, usage) = compact(&mut history, &managed(failing(faults))).await;
        assert!(matches!(outcome, Ok(CompactionOutcome::Compacted(_))), "{faults}: {outcome:?}");
        assert_eq!(usage.len(), 1, "{faults}");
        let shown = shown(&history, &store).await;
        let [system, left, rest @ ..] = &*shown else { panic!("{} messages", shown.len()) };
        let [Part::Compaction(left)] = left.parts() else { panic!("{faults}") };
        assert_eq!((system.role(), &*left.provider, &*left.model), (Role::System, "anthropic", MODEL));
        assert_eq!(rest.first().map(Message::role), Some(Role::User), "the cut is before a turn");
        // The API accepts the compaction part that it returned, and the part contains all facts.
        let (accepted, answer) = post(&request(&shown), &[ON_DEMAND_BETA], None).await;
        assert!(accepted && answer.contains(" 10 facts"), "{answer}");
    })));
}

#[test]
fn a_dropped_future_leaves_the_history_as_it_was() {
    block_on(async {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut history = ten_turns(&store).await;
        let before = shown(&history, &store).await;
        let managed = managed(failing("hang"));
        {
            let compacting = core::pin::pin!(compact(&mut history, &managed));
            let soon = futures_timer::Delay::new(Duration::from_millis(300));
            assert!(matches!(select(compacting, soon).await, Either::Right(_)), "it hangs");
        }
        assert_eq!(shown(&history, &store).await, before);
        let (outcome, _) = compact(&mut history, &crate::managed::support::managed(service())).await;
        assert!(matches!(outcome, Ok(CompactionOutcome::Compacted(_))), "{outcome:?}");
    });
}

#[test]
fn a_service_that_does_not_answer_in_time_has_failed() {
    block_on(async {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut history = ten_turns(&store).await;
        let before = shown(&history, &store).await;
        let managed = managed(failing("hang")).with_deadline(Duration::from_millis(200));
        let (outcome, _) = compact(&mut history, &managed).await;
        let error = outcome.unwrap_err();
        let own = error.source().and_then(<dyn Error>::downcast_ref::<ServiceError>);
        assert_eq!(own.map(ServiceError::kind), Some(&ServiceErrorKind::Timeout), "{error}");
        assert_eq!(shown(&history, &store).await, before);
    });
}
