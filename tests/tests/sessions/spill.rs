//! Tool results above the limit of the settings: shown shortened from their first request on, and stored whole.

use std::sync::Arc;

use epitome::compaction::{AutoCompaction, CompactionOptions};
use epitome::compactors::Truncation;
use epitome::core::message::{MediaKind, Role};
use epitome::core::{Seq, Tokens, Trigger, Usage};
use epitome::history::{HistoryStore, HistoryStoreExt, MemoryStore, Pins, SessionId};
use epitome::message::{Media, MediaSource, Message, Part, ToolCall, ToolResult};
use epitome::provider::HistoryProvider;
use epitome::run::{ModelResponse, Persistence, RecallTool, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;
use proptest::prelude::*;
use serde_json::json;

const LIMIT: Tokens = Tokens(400);

fn call(id: &str) -> Message {
    Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new(id, "build", "{}"))])
}

/// A log of two megabytes with one important line in its middle.
fn huge() -> String {
    let line = |at: usize| match at {
        12_000 => "error[E0277]: src/deep/place.rs:91 cannot be sent between threads\n".to_owned(),
        _ => format!("   Compiling crate-{at} v0.1.0 (path and path and path and path and path and path)\n"),
    };
    (0..24_000).map(line).collect()
}

fn settings(store: &Arc<dyn HistoryStore>) -> RunSettings {
    RunSettings::new("a")
        .with_provider(HistoryProvider::new("m", Arc::clone(store)))
        .unwrap()
        .with_tool_result_limit(LIMIT)
}

fn begin<'r>(settings: &'r RunSettings, session: &'r mut AgentSession, says: Vec<Message>) -> Run<'r> {
    block_on(Run::begin(settings, session, says, &RunOptions::default())).unwrap()
}

/// Text of each tool result in the next request.
fn shown(run: &mut Run<'_>) -> Vec<String> {
    results(&block_on(run.prompt()).unwrap().messages)
}

fn results(messages: &[Message]) -> Vec<String> {
    let said = |part: &Part| match part {
        Part::ToolResult(ToolResult { parts, .. }) => Some(match parts.as_slice() {
            [Part::Text(text)] => text.to_string(),
            parts => format!("{parts:?}"),
        }),
        _ => None,
    };
    messages.iter().flat_map(Message::parts).filter_map(said).collect()
}

/// One run: a question, a call, its result, an answer. Returns the results in the request after the result, and the
/// events.
fn one_run(
    settings: &RunSettings,
    session: &mut AgentSession,
    result: Message,
) -> (Vec<String>, Vec<RunEvent>) {
    let mut run = begin(settings, session, vec![Message::user("Build it.")]);
    let prompt = block_on(run.prompt()).unwrap();
    block_on(run.record(prompt.handle, ModelResponse::new(vec![call("c1")]))).unwrap();
    run.answer(vec![result]).unwrap();
    let prompt = block_on(run.prompt()).unwrap();
    let seen = results(&prompt.messages);
    block_on(run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("It fails.")]))).unwrap();
    (seen, block_on(run.finish()).unwrap().events)
}

#[test]
fn a_huge_result_is_shown_by_what_matters_and_stored_whole() {
    let folder = std::env::temp_dir().join(format!("epitome-spill-{}", std::process::id()));
    let stores: [Arc<dyn HistoryStore>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(epitome::history::JsonlStore::open(&folder).unwrap())];
    for store in stores {
        for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
            let settings = settings(&store).with_persistence(persistence);
            let name = format!("s-{persistence:?}");
            let mut session = AgentSession::with_id(name.clone());
            let (seen, events) = one_run(&settings, &mut session, Message::tool("c1", huge()));
            let [seen] = seen.as_slice() else { panic!("{seen:?}") };
            assert!(settings.counter().count(seen) <= LIMIT);
            assert!(seen.starts_with("   Compiling crate-0 ") && seen.contains("crate-23999"), "{seen}");
            assert!(seen.contains("error[E0277]: src/deep/place.rs:91"), "{seen}");
            let told = events.iter().find_map(|event| match event {
                RunEvent::ResultsShortened { results, tokens } => Some((*results, *tokens)),
                _ => None,
            });
            assert!(matches!(told, Some((1, tokens)) if tokens > 100_000), "{events:?}");

            // The log has the whole result; a fresh process shows the same excerpt.
            let id = SessionId::new(&*name);
            let log = block_on(store.log(&id, Seq(0)..Seq(9), 9)).unwrap();
            assert_eq!(results(&[log.messages[2].entry.message.clone()]), [huge()]);
            let mut again = AgentSession::with_id(name.clone());
            let mut run = begin(&settings, &mut again, vec![Message::user("And now?")]);
            assert_eq!(shown(&mut run), core::slice::from_ref(seen));
            assert!(run.events().is_empty(), "{:?}", run.events());
            drop(run);
            let made = block_on(store.latest_compaction(&id)).unwrap().unwrap();
            assert_eq!(&*made.record.strategy, "tool_result_limit");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_model_reads_the_rest_by_the_number_in_the_note() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let settings = settings(&store).with_recall();
    let line = "crate-11990 v0.1.0";
    let mut session = AgentSession::with_id("s");
    let mut run = begin(&settings, &mut session, vec![Message::user("Build it.")]);
    let prompt = block_on(run.prompt()).unwrap();
    block_on(run.record(prompt.handle, ModelResponse::new(vec![call("c1")]))).unwrap();
    run.answer(vec![Message::tool("c1", huge())]).unwrap();
    let prompt = block_on(run.prompt()).unwrap();
    let cut = results(&prompt.messages).remove(0);
    assert!(!cut.contains(line) && settings.counter().count(&cut) <= Tokens(RecallTool::TOKENS_MAX));
    let number: String = cut.split('#').nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    let arguments = json!({"messages": number, "from": huge().find(line).unwrap()}).to_string();
    let asks = Part::ToolCall(ToolCall::new("r1", RecallTool::NAME, arguments));
    let asks = ModelResponse::new(vec![Message::new(Role::Assistant, vec![asks])]);
    block_on(run.record(prompt.handle, asks)).unwrap();
    assert_eq!(block_on(run.run_own_calls()).unwrap().len(), 1);
    let [again, read] = &shown(&mut run)[..] else { panic!() };
    assert!(*again == cut && read.contains(line), "{read}");
    assert!(settings.counter().count(read) > LIMIT, "what is read again is not cut again: {read}");
}

#[test]
fn pins_media_and_what_is_small_stay_whole() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let compaction = |pins: Pins| {
        let options = CompactionOptions::default().with_pins(pins);
        AutoCompaction::new(epitome::compactors::Engine::new(Truncation::new()))
            .with_trigger(Trigger::never())
            .with_options(options)
    };
    let all = Pins::default().with_where(|message| message.role() == Role::Tool);
    let pinned = settings(&store).with_compaction(compaction(all));
    let (seen, events) = one_run(&pinned, &mut AgentSession::with_id("pinned"), Message::tool("c1", huge()));
    // The whole result is larger than the window.
    assert!(seen == [huge()] && matches!(events[..], [RunEvent::OverLimit { .. }]), "{events:?}");

    let image = Part::Media(Media::new(MediaKind::Image, "image/png", MediaSource::Uri("a.png".into())));
    let parts = vec![Part::Text("three of them".into()), image.clone(), image.clone(), image];
    let result = Message::new(Role::Tool, vec![Part::ToolResult(ToolResult::new("c1", parts))]);
    let limited = settings(&store);
    let (seen, events) = one_run(&limited, &mut AgentSession::with_id("media"), result);
    assert!(seen[0].matches("Media").count() >= 3 && events.is_empty(), "{seen:?}");

    let small = "a line of it\n".repeat(60);
    let (seen, events) =
        one_run(&limited, &mut AgentSession::with_id("small"), Message::tool("c1", small.clone()));
    assert!(seen == [small] && events.is_empty(), "{events:?}");
}

#[test]
fn it_needs_no_store_and_no_compaction() {
    let settings = RunSettings::new("a").with_tool_result_limit(Tokens(0));
    let mut session = AgentSession::with_id("s");
    let (seen, _) = one_run(&settings, &mut session, Message::tool("c1", huge()));
    let (tokens, most) = (settings.counter().count(&seen[0]), epitome::core::ELIDED_TOKENS_MAX);
    assert!(tokens <= most && tokens.0 > most.0 / 2, "a smaller limit counts as that: {}", seen[0]);
}

/// The usage report of a request still determines the size of the next request.
#[test]
fn what_a_provider_reported_is_still_known() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let size = |limit: bool| {
        let mut settings =
            RunSettings::new("a").with_provider(HistoryProvider::new("m", Arc::clone(&store))).unwrap();
        if limit {
            settings = settings.with_tool_result_limit(LIMIT);
        }
        let mut session = AgentSession::with_id(format!("s-{limit}"));
        let mut run = begin(&settings, &mut session, vec![Message::user("Build it.")]);
        let prompt = block_on(run.prompt()).unwrap();
        let response = ModelResponse::new(vec![call("c1")]).with_usage(Usage::new(50_000, 20));
        block_on(run.record(prompt.handle, response)).unwrap();
        run.answer(vec![Message::tool("c1", huge())]).unwrap();
        block_on(run.prompt()).unwrap();
        run.session().context_size().unwrap().tokens
    };
    let (whole, short) = (size(false), size(true));
    assert!(whole > 300_000, "{whole}");
    assert!((50_000..53_000).contains(&short), "the report and the rest: {short}");
}

/// A result of any shape: lines, one long line, JSON, CJK, nothing.
fn result() -> impl Strategy<Value = String> {
    (0..6_u8, 0..4_000_usize).prop_map(|(kind, size)| match kind {
        0 => String::new(),
        1 => "x".repeat(size * 4),
        2 => (0..size).map(|at| format!("line {at} of /work/file-{at}.rs\n")).collect(),
        3 => "検索結果".repeat(size),
        4 => json!({"rows": (0..size).map(|at| json!({"id": at, "name": format!("n{at}")})).collect::<Vec<_>>()}).to_string(),
        _ => "\n".repeat(size),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// No request holds more of a result than the limit, a second request holds the same, and the log has every result whole.
    #[test]
    fn no_request_holds_more_than_the_limit(
        turns in prop::collection::vec(prop::collection::vec(result(), 1..4), 1..5),
        per_call in any::<bool>(), compacts in any::<bool>(), recalls in any::<bool>(),
    ) {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut settings = settings(&store);
        if per_call {
            settings = settings.with_persistence(Persistence::PerModelCall);
        }
        if compacts {
            let auto = AutoCompaction::new(epitome::compactors::Engine::new(Truncation::new()))
                .with_trigger(Trigger::tokens(1_500))
                .with_points(epitome::compaction::RunPoints::default().and_before_call());
            settings = settings.with_compaction(auto);
        }
        if recalls {
            settings = settings.with_recall();
        }
        let limit = if recalls { LIMIT.max(Tokens(RecallTool::TOKENS_MAX)) } else { LIMIT };
        let mut session = AgentSession::with_id("s");
        let whole: Vec<String> = turns.iter().flatten().cloned().collect();
        for (turn, results_of_turn) in turns.into_iter().enumerate() {
            let mut run = begin(&settings, &mut session, vec![Message::user("Go on.")]);
            for (at, result) in results_of_turn.into_iter().enumerate() {
                let id = format!("c{turn}-{at}");
                let prompt = block_on(run.prompt()).unwrap();
                block_on(run.record(prompt.handle, ModelResponse::new(vec![call(&id)]))).unwrap();
                run.answer(vec![Message::tool(id, result)]).unwrap();
                let seen = shown(&mut run);
                prop_assert!(seen.iter().all(|text| settings.counter().count(text) <= limit), "{:?}", seen);
                let again = shown(&mut run);
                prop_assert!(compacts || again == seen, "a second request says something else");
            }
            let prompt = block_on(run.prompt()).unwrap();
            block_on(run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Done.")]))).unwrap();
            block_on(run.finish()).unwrap();
        }
        let (mut logged, mut from) = (Vec::new(), Some(Seq(0)));
        while let Some(next) = from {
            let page = block_on(store.log(&SessionId::new("s"), next..Seq(u64::MAX), 100)).unwrap();
            logged.extend(page.messages.into_iter().map(|logged| logged.entry.message));
            from = page.next;
        }
        let of = |message: &Message| match message.parts() {
            [Part::ToolResult(result)] => result.parts.iter().map(|part| match part {
                Part::Text(text) => text.to_string(),
                part => panic!("{part:?}"),
            }).collect::<String>(),
            _ => panic!("{message:?}"),
        };
        let logged: Vec<_> = logged.iter().filter(|message| message.role() == Role::Tool).map(of).collect();
        let sizes = |texts: &[String]| texts.iter().map(String::len).collect::<Vec<_>>();
        prop_assert!(logged == whole, "{:?} instead of {:?}", sizes(&logged), sizes(&whole));
    }
}
