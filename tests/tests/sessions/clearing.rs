//! Parts that are shortened before a model call, in a run that stores its messages later or never.

use std::sync::Arc;

use epitome::compaction::{AutoCompaction, Compaction, CompactionOptions, RunPoints};
use epitome::compactors::{AgentPreset, Engine, OversizedClamp, ToolResultClearing};
use epitome::core::message::Role;
use epitome::core::{Budget, Clamp, Draft, PartKind, Pass, Strategy, Tokens, Trigger};
use epitome::history::{History, HistoryStore, MemoryStore, SessionId, SqliteStore};
use epitome::message::{Message, Part, Reasoning, ToolCall};
use epitome::provider::{ClosureProvider, HistoryProvider, Providers, boxed_hook};
use epitome::run::{ModelResponse, Persistence, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;

use crate::sessions::runs::settings_over;
use crate::sessions::support::{Truncating, call, log, shown, texts};

const LINE: &str = "the quick brown fox jumps over the lazy dog and then over the next one\n";
const CLEARING: ToolResultClearing<'static> = ToolResultClearing::new().keep(1);

fn stores() -> [Arc<dyn HistoryStore>; 2] {
    [Arc::new(MemoryStore::new()), Arc::new(SqliteStore::open_in_memory().unwrap())]
}

fn before_calls<S: Strategy + core::fmt::Debug + Send + Sync + 'static>(
    strategy: S,
    trigger: u64,
) -> AutoCompaction {
    AutoCompaction::new(Truncating(strategy))
        .with_trigger(Trigger::tokens(trigger))
        .with_points(RunPoints::NONE.and_before_call())
        .with_spacing(0)
}

fn clearing(store: &Arc<dyn HistoryStore>) -> RunSettings {
    settings_over(store).with_instructions("You help.").with_compaction(before_calls(CLEARING, 200))
}

/// The model calls a tool, and gets a long result.
async fn round(run: &mut Run<'_>, id: &str) {
    let prompt = run.prompt().await.unwrap();
    run.record(prompt.handle, ModelResponse::new(vec![call(id, "read")])).await.unwrap();
    run.answer(vec![Message::tool(id, LINE.repeat(8))]).unwrap();
}

/// A number of tool calls, and an answer. Returns the texts of the last request and of the answer.
async fn work(run: &mut Run<'_>, name: &str, rounds: usize) -> Vec<String> {
    for at in 0..rounds {
        round(run, &format!("{name}{at}")).await;
    }
    let prompt = run.prompt().await.unwrap();
    let mut sent = texts(&prompt.messages);
    run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Done.")])).await.unwrap();
    sent.push("assistant: Done.".into());
    sent
}

async fn begin<'a>(settings: &'a RunSettings, session: &'a mut AgentSession) -> Run<'a> {
    begin_with(settings, session, &RunOptions::default()).await
}

async fn begin_with<'a>(
    settings: &'a RunSettings,
    session: &'a mut AgentSession,
    options: &RunOptions,
) -> Run<'a> {
    Run::begin(settings, session, vec![Message::user("Work.")], options).await.unwrap()
}

fn cleared(sent: &[String]) -> usize {
    sent.iter().filter(|text| text.ends_with("[cleared]")).count()
}

fn failures(events: &[RunEvent]) -> usize {
    events.iter().filter(|event| matches!(event, RunEvent::Failed { .. })).count()
}

#[test]
fn results_that_are_cleared_in_a_run_are_cleared_where_it_is_stored() {
    for (store, persistence) in stores()
        .into_iter()
        .zip([Persistence::PerRun; 2])
        .chain(stores().into_iter().zip([Persistence::PerModelCall; 2]))
    {
        let settings = clearing(&store).with_persistence(persistence);
        let mut session = AgentSession::with_id("s");
        let (sent, events) = block_on(async {
            let mut run = begin(&settings, &mut session).await;
            let sent = work(&mut run, "c", 6).await;
            (sent, run.finish().await.unwrap().events)
        });
        assert_eq!(failures(&events), 0, "{events:?}");
        assert_eq!((sent.len(), cleared(&sent)), (15, 5), "the newest result stays");
        assert_eq!(shown(&*store, "s"), sent[1..], "{persistence:?}");
        let log = texts(&log(&*store, "s"));
        assert_eq!((log.len(), cleared(&log)), (14, 0), "the log has what was said");
    }
}

#[test]
fn before_each_call_a_fresh_process_would_send_the_same() {
    for store in stores() {
        let settings = clearing(&store).with_persistence(Persistence::PerModelCall);
        let mut session = AgentSession::with_id("s");
        block_on(async {
            let mut run = begin(&settings, &mut session).await;
            for at in 0..6 {
                round(&mut run, &format!("c{at}")).await;
                let sent = texts(&run.prompt().await.unwrap().messages);
                assert_eq!(cleared(&sent), at);
                assert_eq!(shown(&*store, "s"), sent[1..]);
            }
            // The process crashes: the run is never finished.
        });
        let mut fresh = AgentSession::with_id("s");
        let settings = settings_over(&store).with_instructions("You help.");
        let sent = block_on(async {
            let mut run =
                Run::begin(&settings, &mut fresh, Vec::new(), &RunOptions::default()).await.unwrap();
            texts(&run.prompt().await.unwrap().messages)
        });
        assert_eq!((sent.len(), cleared(&sent)), (14, 5));
    }
}

#[test]
fn what_was_stored_before_and_what_is_new_are_cleared_together_or_not_at_all() {
    for store in stores() {
        let mut session = AgentSession::with_id("s");
        let plain = settings_over(&store);
        block_on(async {
            let mut run = begin(&plain, &mut session).await;
            work(&mut run, "a", 3).await;
            run.finish().await.unwrap();
        });
        let before = shown(&*store, "s");
        assert_eq!(cleared(&before), 0);
        let settings = clearing(&store);
        block_on(async {
            let mut run = begin(&settings, &mut session).await;
            assert_eq!(cleared(&work(&mut run, "b", 3).await), 5);
            run.abort();
        });
        assert_eq!(shown(&*store, "s"), before, "an abort leaves nothing");
        let sent = block_on(async {
            let mut run = begin(&settings, &mut session).await;
            let sent = work(&mut run, "c", 3).await;
            run.finish().await.unwrap();
            sent
        });
        assert_eq!(cleared(&sent), 5);
        assert_eq!(shown(&*store, "s"), sent[1..]);
    }
}

#[test]
fn a_result_larger_than_the_window_ends_no_run() {
    let huge = LINE.repeat(20_000);
    for store in stores() {
        let auto = AutoCompaction::new(Engine::new(AgentPreset::new()))
            .with_trigger(Trigger::tokens(4_000))
            .with_points(RunPoints::NONE.and_before_call())
            .with_options(CompactionOptions::default().with_window(8_000));
        let settings = settings_over(&store).with_compaction(auto);
        let mut session = AgentSession::with_id("s");
        let events = block_on(async {
            let mut run = begin(&settings, &mut session).await;
            let prompt = run.prompt().await.unwrap();
            let calls = ["one", "two"].map(|id| Part::ToolCall(ToolCall::new(id, "read", "{}")));
            let calls = Message::new(Role::Assistant, calls.to_vec());
            run.record(prompt.handle, ModelResponse::new(vec![calls])).await.unwrap();
            run.answer(vec![Message::tool("one", &*huge), Message::tool("two", "short")]).unwrap();
            let prompt = run.prompt().await.unwrap();
            let sent = texts(&prompt.messages);
            let [_, _, one, two] = &sent[..] else { panic!("{sent:?}") };
            assert!(one.contains(LINE) && (2_000..40_000).contains(&one.len()), "{}", one.len());
            assert!(two.ends_with("short"));
            run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Read.")])).await.unwrap();
            run.finish().await.unwrap().events
        });
        assert_eq!(failures(&events), 0, "{events:?}");
        assert!(texts(&log(&*store, "s")).iter().any(|text| text.contains(&huge)), "the log has it whole");
        let sent = block_on(async {
            let mut run = begin(&settings, &mut session).await;
            texts(&run.prompt().await.unwrap().messages)
        });
        assert!(sent.iter().all(|text| text.len() < 40_000) && sent.last().unwrap().contains("Work."));
    }
}

#[test]
fn what_is_never_stored_is_shortened_for_the_run_only() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::clone(&store))).unwrap();
    let document = ClosureProvider::before_run(boxed_hook(|hook| {
        Box::pin(async move {
            hook.context.extend_messages("document", [Message::user(LINE.repeat(100))]);
            Ok(())
        })
    }));
    providers.push(document.with_source_id("document")).unwrap();
    let settings = RunSettings::new("a").with_providers(providers);
    let clamping = before_calls(OversizedClamp::new(Tokens(600)), 800);
    let mut session = AgentSession::with_id("s");
    let long = |texts: &[String]| texts.iter().filter(|text| text.len() > LINE.len() * 90).count();
    for (compaction, expected) in [(Compaction::With(clamping), 0), (Compaction::Off, 1)] {
        let options = RunOptions::default().with_compaction(compaction);
        let (sent, events) = block_on(async {
            let mut run = begin_with(&settings, &mut session, &options).await;
            let sent = work(&mut run, "c", 1).await;
            (sent, run.finish().await.unwrap().events)
        });
        assert_eq!((long(&sent), failures(&events)), (expected, 0), "{events:?}");
    }
    assert_eq!(shown(&*store, "s"), texts(&log(&*store, "s")), "nothing of it concerns what is stored");
    let records = block_on(store.records(&SessionId::new("s"), None, 9)).unwrap();
    assert_eq!(records, []);
}

#[test]
fn what_others_have_shortened_meanwhile_is_left_alone() {
    for store in stores() {
        let mut session = AgentSession::with_id("s");
        let plain = settings_over(&store);
        block_on(async {
            let mut run = begin(&plain, &mut session).await;
            work(&mut run, "a", 3).await;
            run.finish().await.unwrap();
        });
        let settings = clearing(&store);
        let events = block_on(async {
            let mut run = begin(&settings, &mut session).await;
            assert_eq!(cleared(&work(&mut run, "b", 2).await), 4);
            let counter = Arc::new(epitome::core::ClassEstimator::new());
            let mut others = History::open(Arc::clone(&store), SessionId::new("s"), counter).await.unwrap();
            let budget = Budget::builder().window(400).reserve(0).build().unwrap();
            let clamp = Ends(Tokens(20));
            others.compact(&budget, Pass::Manual, &clamp).await.unwrap().expect("results are larger");
            run.finish().await.unwrap().events
        });
        assert_eq!(failures(&events), 0, "{events:?}");
        let shown = shown(&*store, "s");
        let result = |id: &str| shown.iter().find(|text| text.contains(&format!("result {id}:"))).unwrap();
        for id in ["a0", "a1"] {
            assert!(!result(id).contains("[cleared]") && result(id).len() < LINE.len() * 8, "{}", result(id));
        }
        assert!(result("b0").contains("[cleared]"), "what the run has said itself is cleared all the same");
    }
}

#[test]
fn a_part_that_is_shortened_twice_in_a_run_is_stored_as_it_was_sent_last() {
    for store in stores() {
        let mut session = AgentSession::with_id("s");
        let settings = settings_over(&store);
        let sent = block_on(async {
            let clamp = Compaction::With(before_calls(Ends(Tokens(30)), 300));
            let mut run =
                begin_with(&settings, &mut session, &RunOptions::default().with_compaction(clamp)).await;
            work(&mut run, "a", 4).await;
            run.finish().await.unwrap();
            // The excerpts of the results are cleared in turn, and the new results too.
            let clear = Compaction::With(before_calls(CLEARING, 100));
            let mut run =
                begin_with(&settings, &mut session, &RunOptions::default().with_compaction(clear)).await;
            let sent = work(&mut run, "b", 3).await;
            run.finish().await.unwrap();
            sent
        });
        assert_eq!(cleared(&sent), 6);
        assert_eq!(shown(&*store, "s"), sent);
        assert_eq!(cleared(&texts(&log(&*store, "s"))), 0);
    }
}

/// Leaves this number of tokens at each end of a tool result.
#[derive(Debug)]
struct Ends(Tokens);

impl Strategy for Ends {
    fn name(&self) -> &'static str {
        "ends"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        for part in draft.index().parts().filter(|part| part.kind() == PartKind::ToolResult) {
            // A result stays if it is protected, or not longer than that.
            let _ = draft.clamp(&part, Clamp { head: self.0, tail: self.0 });
        }
    }
}

/// Shortens the first part that may be shortened, and no other.
#[derive(Debug)]
struct First;

impl Strategy for First {
    fn name(&self) -> &'static str {
        "first"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let (index, note) = (draft.index(), Tokens(9));
        if let Some(part) = index.parts().find(|part| draft.may_elide(part, note)) {
            draft.elide(&part, note).expect("it may be");
        }
    }
}

#[test]
fn parts_of_one_message_are_shortened_one_after_the_other() {
    for store in stores() {
        let mut session = AgentSession::with_id("s");
        let arguments = format!("{{\"text\":\"{}\"}}", LINE.trim().repeat(8));
        let call = |id: &'static str| Part::ToolCall(ToolCall::new(id, "write", arguments.clone()));
        let thought = Part::Reasoning(Reasoning::new(LINE.repeat(4)));
        let asked = Message::new(Role::Assistant, vec![thought, call("c1"), call("c2")]);
        let (plain, options) = (settings_over(&store), RunOptions::default());
        block_on(async {
            let mut run = begin(&plain, &mut session).await;
            let prompt = run.prompt().await.unwrap();
            run.record(prompt.handle, ModelResponse::new(vec![asked.clone()])).await.unwrap();
            run.answer(["c1", "c2"].map(|id| Message::tool(id, "ok")).to_vec()).unwrap();
            work(&mut run, "a", 1).await;
            run.finish().await.unwrap();
        });
        let settings = settings_over(&store).with_compaction(before_calls(First, 1));
        let sent = block_on(async {
            let mut run = begin_with(&settings, &mut session, &options).await;
            let mut sent = Vec::new();
            for _ in 0..4 {
                let messages = run.prompt().await.unwrap().messages;
                sent.push(messages[1].clone());
            }
            run.finish().await.unwrap();
            sent
        });
        let left: Vec<usize> = sent.iter().map(said_in).collect();
        let all = said_in(&asked);
        let (thought, input) = (LINE.len() * 4, arguments.len());
        assert_eq!(
            left,
            [all - thought, 2 + input, 4, 4],
            "reasoning, one input, the other; then the result"
        );
        let loaded = block_on(store.load(&SessionId::new("s"))).unwrap();
        assert_eq!(loaded.live[1].entry.message.parts(), sent[3].parts());
        assert_eq!(log(&*store, "s")[1].parts(), asked.parts());
    }
}

/// Number of bytes of a message of reasoning and calls.
fn said_in(message: &Message) -> usize {
    let parts = message.parts().iter().map(|part| match part {
        Part::Reasoning(reasoning) => reasoning.text.len(),
        Part::ToolCall(call) => call.arguments.len(),
        other => panic!("{other:?}"),
    });
    parts.sum()
}

#[test]
fn a_session_that_keeps_its_history_itself_keeps_what_was_shortened() {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory()).unwrap();
    let settings = RunSettings::new("a").with_providers(providers);
    let settings = settings.with_compaction(before_calls(CLEARING, 200));
    let mut session = AgentSession::with_id("s");
    let sent = block_on(async {
        let mut run = begin(&settings, &mut session).await;
        let sent = work(&mut run, "c", 5).await;
        run.finish().await.unwrap();
        sent
    });
    assert_eq!(cleared(&sent), 4);
    let dict = session.to_dict().unwrap();
    let mut session = AgentSession::from_dict(dict).unwrap();
    let options = RunOptions::default().with_compaction(Compaction::Off);
    let next = block_on(async {
        let mut run = begin_with(&settings, &mut session, &options).await;
        texts(&run.prompt().await.unwrap().messages)
    });
    assert_eq!(next[..sent.len()], sent);
}
