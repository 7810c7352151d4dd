//! Faults of the connection and the service: the history is then unchanged, or completely new, and the costs are
//! reported.

use core::error::Error;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_trait::async_trait;
use epitome::compaction::{CompactionCx, CompactionOutcome, Compactor as _};
use epitome::compactors::managed::openai::OpenAiCompaction;
use epitome::compactors::managed::{
    Artefact, Capabilities, CompactionService, Cut, Position, ServiceError, ServiceErrorKind, ServiceRequest,
};
use epitome::compactors::{Engine, Managed, Truncation};
use epitome::core::attribution::{Authority, Retention};
use epitome::core::message::{MediaKind, Role};
use epitome::core::{Basis, Budget, Pass, Tokens, Usage, count_message};
use epitome::history::{HistoryStore, JsonlStore, MemoryStore, SqliteStore};
use epitome::message::{Attribution, CompactionPart, Media, MediaSource, Message, Part, ToolCall};
use epitome::session::{SessionError, SessionErrorKind};
use epitome::wire::{ConversionLoss, ConversionLossKind, Format, convert};
use futures::future::{Either, join_all, select};

use super::sessions::Chat;
use super::{KEY, service};
use crate::managed::support::{all_of, append, block_on, case, compact, managed, open, shown, ten_turns};
use crate::managed::talk::{Talk, auto};

/// A service with these faults, one a request.
fn failing(faults: &str) -> OpenAiCompaction {
    let service = service("openai").with_header("x-case", &case()).unwrap();
    service.with_header("x-faults", faults).unwrap()
}

/// The error of the service, which is the source of a session error.
fn service_error(error: &SessionError) -> &ServiceError {
    error.source().and_then(<dyn Error>::downcast_ref).unwrap_or_else(|| panic!("no service error: {error}"))
}

fn is_compaction(message: &Message) -> bool {
    message.parts().iter().any(|part| matches!(part, Part::Compaction(_)))
}

#[test]
fn what_goes_wrong_leaves_the_history_as_it_was() {
    use ServiceErrorKind as Kind;
    let rate_limited = |secs| Kind::RateLimited { retry_after: Some(Duration::from_secs(secs)) };
    let server_error = || Kind::Invalid("server_error".into());
    // The faults, the error kind, the number of requests, and the number of reported costs.
    let cases = [
        ("401", Kind::Authentication, 1, 0),
        ("403", Kind::Authentication, 1, 0),
        ("404", Kind::Unsupported, 1, 0),
        ("422", server_error(), 1, 0),
        ("context", Kind::ContextTooLong, 1, 0),
        ("429-long", rate_limited(600), 1, 0),
        ("429-date", rate_limited(600), 1, 0),
        ("503,503,503", Kind::Overloaded, 3, 0),
        ("500,disconnect,502", Kind::Unavailable, 3, 0),
        ("disconnect,disconnect,disconnect", Kind::Unavailable, 3, 0),
        ("503,401", Kind::Authentication, 2, 0),
        ("garbage", Kind::Malformed, 1, 0),
        ("none", Kind::Malformed, 1, 1),
        ("two", Kind::Malformed, 1, 1),
        ("503,other", Kind::Malformed, 2, 1),
    ];
    // All cases run at once: most of them wait.
    block_on(join_all(cases.map(|(faults, kind, requests, paid)| async move {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut history = ten_turns(&store).await;
        let before = (shown(&history, &store).await, history.revision());
        let managed = managed(failing(&format!("{faults},503,503,503")));
        let (outcome, usage) = compact(&mut history, &managed).await;
        let error = outcome.unwrap_err();
        assert_eq!(service_error(&error).kind(), &kind, "{faults}");
        assert_eq!(usage.len(), paid, "{faults}");
        assert_eq!((shown(&history, &store).await, history.revision()), before, "{faults}");
        let said = format!("{}{managed:?}{managed:#?}", all_of(&error));
        assert!(!said.contains(KEY) && !said.contains("SECRET-WORDS"), "{said}");
        // The next pass meets the three faults after those of the case.
        let (again, _) = compact(&mut history, &managed).await;
        assert_eq!(service_error(&again.unwrap_err()).kind(), &Kind::Overloaded, "{faults}");
        let (done, _) = compact(&mut history, &managed).await;
        assert!(
            matches!(done, Ok(CompactionOutcome::Compacted(_))),
            "{faults}: {requests} requests, {done:?}"
        );
    })));
}

#[test]
fn what_passes_is_waited_for() {
    block_on(async {
        for (faults, least) in [("429,429", 60), ("503,429", 530), ("disconnect", 500)] {
            let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
            let mut history = ten_turns(&store).await;
            let begun = Instant::now();
            let (outcome, usage) = compact(&mut history, &managed(failing(faults))).await;
            assert!(matches!(outcome, Ok(CompactionOutcome::Compacted(_))), "{faults}: {outcome:?}");
            assert!(begun.elapsed() >= Duration::from_millis(least), "{faults}: {:?}", begun.elapsed());
            assert_eq!(usage.len(), 1);
            assert!(shown(&history, &store).await.iter().any(is_compaction));
        }
    });
}

#[test]
fn a_service_that_does_not_answer_is_left_in_time() {
    block_on(async {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut history = ten_turns(&store).await;
        let before = shown(&history, &store).await;
        let managed = managed(failing("hang,hang")).with_deadline(Duration::from_millis(300));
        let error = compact(&mut history, &managed).await.0.unwrap_err();
        assert_eq!(service_error(&error).kind(), &ServiceErrorKind::Timeout);
        assert_eq!(error.kind(), SessionErrorKind::Unavailable);
        assert_eq!(shown(&history, &store).await, before);
        // The future is dropped while it waits.
        let patient = managed.with_deadline(Duration::from_secs(60));
        let waits = Box::pin(compact(&mut history, &patient));
        let soon = futures_timer::Delay::new(Duration::from_millis(200));
        let dropped = matches!(select(waits, soon).await, Either::Right(_));
        assert!(dropped);
        assert_eq!(shown(&history, &store).await, before);
        assert!(compact(&mut history, &patient).await.0.is_ok());
        assert!(shown(&history, &store).await.iter().any(is_compaction));
    });
}

#[test]
fn what_the_endpoint_cannot_do_is_an_error_or_left_to_another() {
    let in_band = || Arc::new(service("xai").in_band());
    let error = Managed::new(in_band()).unwrap_err();
    assert_eq!(error.kind(), &ServiceErrorKind::Unsupported);
    block_on(async {
        for service in [in_band() as Arc<dyn CompactionService>, Arc::new(failing("404"))] {
            let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
            let mut history = ten_turns(&store).await;
            let managed = Managed::or_else(service, Arc::new(Engine::new(Truncation::new())));
            let (outcome, _) = compact(&mut history, &managed).await;
            assert!(matches!(outcome, Ok(CompactionOutcome::Compacted(_))));
            assert!(!shown(&history, &store).await.iter().any(is_compaction));
        }
    });
}

/// A service that answers at once, and may change the session before its first answer.
#[derive(Debug)]
struct Scripted {
    store: Option<Arc<dyn HistoryStore>>,
    meanwhile: Meanwhile,
    position: Position,
    cut: Cut,
    sealed: String,
    calls: AtomicUsize,
    seen: Mutex<Vec<(usize, Vec<Message>)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    Append,
    Compact,
    Panic,
    AnotherProvider,
    Empty,
}

impl Scripted {
    fn new(meanwhile: Meanwhile, store: Option<&Arc<dyn HistoryStore>>) -> Self {
        Self {
            store: store.cloned(),
            meanwhile,
            position: Position::InPlace,
            cut: Cut::Group,
            sealed: "c2VhbGVk".into(),
            calls: AtomicUsize::new(0),
            seen: Mutex::default(),
        }
    }
}

#[async_trait]
impl CompactionService for Scripted {
    fn provider(&self) -> &str {
        "scripted"
    }

    fn capabilities(&self) -> Option<Capabilities> {
        Some(Capabilities::new(self.position, self.cut))
    }

    async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError> {
        self.seen
            .lock()
            .unwrap()
            .push((request.replaced_from, request.messages.iter().copied().cloned().collect()));
        let first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        if let (true, Some(store)) = (first, &self.store) {
            let mut other = open(store).await;
            match self.meanwhile {
                Meanwhile::Append => append(&mut other, vec![Message::user("By the way.")]).await,
                Meanwhile::Compact => {
                    compact(&mut other, &Engine::new(Truncation::new().preserve_recent(1))).await.0.unwrap();
                }
                _ => {}
            }
        }
        assert!(self.meanwhile != Meanwhile::Panic, "as it was told");
        let provider = if self.meanwhile == Meanwhile::AnotherProvider { "another" } else { "scripted" };
        let sealed = Some(self.sealed.as_str()).filter(|_| self.meanwhile != Meanwhile::Empty);
        let part = CompactionPart::new(provider, "", sealed.map(Into::into)).with_model("m");
        let part = part.with_tokens(Some(Tokens(100)));
        Ok(Artefact::new(part).with_usage(Some(Usage::new(900, 100))))
    }
}

#[test]
fn what_others_do_meanwhile_is_left_whole() {
    block_on(async {
        for meanwhile in [Meanwhile::Nothing, Meanwhile::Append, Meanwhile::Compact] {
            let store: Arc<dyn HistoryStore> = Arc::new(SqliteStore::open_in_memory().unwrap());
            let mut history = ten_turns(&store).await;
            let service = Arc::new(Scripted::new(meanwhile, Some(&store)));
            let managed = Managed::new(Arc::clone(&service) as _).unwrap();
            let (outcome, usage) = compact(&mut history, &managed).await;
            outcome.unwrap();
            let shown = shown(&history, &store).await;
            assert!(shown.iter().any(is_compaction), "{meanwhile:?}");
            assert_eq!(
                shown.iter().any(|it| it == &Message::user("By the way.")),
                meanwhile == Meanwhile::Append
            );
            // Only a change of the replaced messages makes a second call necessary.
            let calls = service.calls.load(Ordering::Relaxed);
            assert_eq!(calls, if meanwhile == Meanwhile::Compact { 2 } else { 1 }, "{meanwhile:?}");
            assert_eq!(usage.len(), calls);
            let legal = convert(&shown, Format::OpenaiChat).unwrap();
            let lost = legal.losses.iter().filter(|loss| {
                !matches!(loss.kind, ConversionLossKind::Compaction | ConversionLossKind::Message)
            });
            assert_eq!(lost.count(), 0, "{:?}", legal.losses);
        }
    });
}

#[test]
fn a_service_that_breaks_its_word_leaves_the_history_as_it_was() {
    block_on(async {
        for meanwhile in [Meanwhile::Panic, Meanwhile::AnotherProvider, Meanwhile::Empty] {
            let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
            let mut history = ten_turns(&store).await;
            let before = shown(&history, &store).await;
            let (outcome, usage) = compact(&mut history, &managed(Scripted::new(meanwhile, None))).await;
            let error = outcome.unwrap_err();
            assert_eq!(service_error(&error).kind(), &ServiceErrorKind::Malformed, "{meanwhile:?}");
            assert_eq!(usage.len(), usize::from(meanwhile != Meanwhile::Panic));
            assert_eq!(shown(&history, &store).await, before);
        }
    });
}

#[test]
fn what_is_sealed_is_stored_byte_for_byte() {
    let every: String = ('\u{1}'..='\u{2ff}').chain("日本語🦀\u{2028}\u{feff}".chars()).collect();
    let sealed = format!("{every}{}", "gAAAAAB_-+/=".repeat(20_000));
    let folder = std::env::temp_dir().join(format!("epitome-managed-{}", std::process::id()));
    let stores: [Arc<dyn HistoryStore>; 3] = [
        Arc::new(MemoryStore::new()),
        Arc::new(SqliteStore::open_in_memory().unwrap()),
        Arc::new(JsonlStore::open(&folder).unwrap()),
    ];
    block_on(async {
        for store in stores {
            let mut history = ten_turns(&store).await;
            let service = Scripted { sealed: sealed.clone(), ..Scripted::new(Meanwhile::Nothing, None) };
            compact(&mut history, &managed(service)).await.0.unwrap();
            let fresh = open(&store).await;
            let left = fresh.projection().flat_map(Message::parts).find_map(|part| match part {
                Part::Compaction(left) => Some(left.clone()),
                _ => None,
            });
            let left = left.unwrap();
            assert!(left.opaque.as_deref() == Some(sealed.as_str()), "another payload came back");
            assert_eq!((&*left.provider, &*left.model), ("scripted", "m"));
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// Position of the first replaced message in a request to a service of this kind, the messages of the request, and the
/// visible messages after the compaction.
async fn asked(position: Position, cut: Cut, add: Vec<Message>) -> (usize, Vec<Message>, Vec<Message>) {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let mut history = ten_turns(&store).await;
    append(&mut history, add).await;
    let service = Arc::new(Scripted { position, cut, ..Scripted::new(Meanwhile::Nothing, None) });
    let managed = Managed::new(Arc::clone(&service) as _).unwrap().preserve_recent(2);
    compact(&mut history, &managed).await.0.unwrap();
    let (from, messages) = service.seen.lock().unwrap().remove(0);
    (from, messages, shown(&history, &store).await)
}

#[test]
fn a_service_is_asked_for_what_it_can_stand_for() {
    let call =
        |id: &str| Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new(id, "look", "{}"))]);
    let open_work = || vec![Message::user("Look."), call("late")];
    block_on(async {
        let (from, sent, shown) = asked(Position::InPlace, Cut::Group, open_work()).await;
        // The first user message stays, and is sent before the replaced messages.
        assert_eq!((from, &sent[0]), (1, &Message::user("question 0")));
        assert!(matches!(shown[1].parts(), [Part::Text(_)]) && is_compaction(&shown[2]));
        assert!(shown.last().unwrap() == &call("late"), "open work stays");

        let (from, sent, shown) = asked(Position::First, Cut::Turn, open_work()).await;
        // Only instructions are before the compaction part.
        assert_eq!((from, &sent[0]), (0, &Message::user("question 0")));
        assert!(shown[0].role() == Role::System && is_compaction(&shown[1]));
        assert!(shown[2].role() == Role::User, "it ends with a turn");
        assert!(sent.last().unwrap().role() == Role::Assistant);

        // The part has no higher authority than the replaced messages, and lists the messages that it was derived from.
        let told = Attribution::caller(Authority::Retrieved);
        let add = vec![Message::user("Read this.").with_attribution(told), Message::assistant("I see.")];
        let later = (0..3).map(|at| Message::user(format!("later {at}")));
        let (.., shown) = asked(Position::InPlace, Cut::Group, add.into_iter().chain(later).collect()).await;
        let left = shown.iter().find(|message| is_compaction(message)).unwrap().attribution();
        assert_eq!(left.authority, Authority::Retrieved);
        assert!(!left.derived_from.is_empty());
    });
}

#[test]
fn a_pin_is_not_replaced() {
    block_on(async {
        for position in [Position::First, Position::InPlace] {
            let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
            let mut history = ten_turns(&store).await;
            let pinned = Attribution::caller(Authority::Assistant).with_retention(Retention::Pinned);
            let pin = Message::assistant("Remember this.").with_attribution(pinned);
            append(&mut history, vec![pin.clone()]).await;
            for turn in 0..12 {
                let words =
                    vec![Message::user(format!("{turn}?")), Message::assistant("So it is. ".repeat(50))];
                append(&mut history, words).await;
            }
            let service = Scripted { position, ..Scripted::new(Meanwhile::Nothing, None) };
            compact(&mut history, &managed(service)).await.0.unwrap();
            let shown = shown(&history, &store).await;
            let at = |found: &dyn Fn(&Message) -> bool| shown.iter().position(found).unwrap();
            let (pin, left) = (at(&|message| message.parts() == pin.parts()), at(&is_compaction));
            match position {
                Position::First => assert!(left == 1 && left < pin),
                _ => assert!(left < pin || shown[pin - 1].role() == Role::Assistant),
            }
        }
    });
}

#[test]
fn what_is_sealed_counts_what_it_took_to_write_and_the_price_is_no_size() {
    block_on(async {
        for service in [service("openai"), service("openai").in_band()] {
            let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
            let mut history = ten_turns(&store).await;
            let (outcome, usage) = compact(&mut history, &managed(service)).await;
            let CompactionOutcome::Compacted(result) = outcome.unwrap() else {
                panic!("nothing was compacted")
            };
            let written = usage[0].output_total.unwrap();
            let left = history.live().iter().find(|live| is_compaction(&live.entry.message)).unwrap();
            let before = left.entry.message.parts().len() - 1;
            assert!(before >= 6, "what the user said");
            let parts = left.entry.message.parts()[..before].to_vec();
            let beside = count_message(&Message::new(Role::Assistant, parts), history.counter());
            assert!(written > 10);
            assert_eq!(left.entry.count.tokens.as_u64(), beside.as_u64() + written);
            assert_eq!(left.entry.count.basis, Basis::Estimated);
            // The plan, the handle and a fresh process have the same count. The input tokens of the compaction are not
            // used as a size.
            let known = Some(history.index().tokens());
            assert_eq!((result.compacted_tokens, result.basis), (known, Some(Basis::Estimated)));
            assert_eq!(Some(open(&store).await.index().tokens()), known);
            assert!(known < usage[0].input_total, "{known:?}");
        }
    });
}

/// Content that the service has no form for is reported as a loss, by the compaction and by a run.
#[test]
fn what_a_service_is_not_told_is_a_loss() {
    let sound = Media::new(MediaKind::Audio, "audio/wav", MediaSource::Base64("UklG".into()));
    let heard = Message::new(Role::User, vec![Part::Text("Hear this.".into()), Part::Media(sound)]);
    let kinds = |losses: &[ConversionLoss]| losses.iter().map(|loss| loss.kind).collect::<Vec<_>>();
    block_on(async {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut history = open(&store).await;
        append(&mut history, vec![Message::user("Hi"), Message::assistant("Hello.")]).await;
        append(&mut history, vec![heard.clone(), Message::assistant("A bird. ".repeat(300))]).await;
        for turn in 0..4 {
            append(&mut history, vec![Message::user(format!("{turn}?")), Message::assistant("Yes.")]).await;
        }
        let budget = Budget::builder().window(1_000_000).trigger(500_000).without_goal().build().unwrap();
        let mut cx = CompactionCx::new(&mut history, budget, Pass::Manual);
        managed(service("openai")).compact(&mut cx).await.unwrap();
        assert_eq!(kinds(cx.losses()), [ConversionLossKind::Media]);
    });
    let mut talk = Talk::new("m");
    talk.go_on(1, &Chat::new("openai"), auto(managed(service("openai")), 1_000_000));
    talk.hears(heard);
    talk.go_on(20, &Chat::new("openai"), auto(managed(service("openai")), 2_500));
    assert!(talk.compacted > 0, "nothing was compacted");
    assert_eq!(kinds(&talk.not_told), [ConversionLossKind::Media]);
}
