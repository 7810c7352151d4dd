//! Hidden messages are shown again before a run that is about them.

use core::ops::Range;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use async_trait::async_trait;
use epitome::agent::Agent;
use epitome::compaction::{AutoCompaction, CompactionOptions};
use epitome::compactors::{Engine, SlidingWindow, StrategySpec, ToolResultClearing, Truncation, Window};
use epitome::core::attribution::{Authority, Retention};
use epitome::core::message::Role;
use epitome::core::{Budget, ClassEstimator, Pass, Seq, Strategy, TokenCounter as _, Trigger};
use epitome::history::{
    AppendToken, History, HistoryStore, HistoryStoreExt as _, JsonlStore, LogPage, MemoryStore, SessionId,
    SqliteStore, StoreError,
};
use epitome::memory::RecallProvider;
use epitome::message::{Message, Part, ToolCall};
use epitome::provider::{HistoryProvider, NamedAgent, Providers};
use epitome::run::{ModelResponse, RunOptions, RunSettings};
use epitome::session::{AgentSession, SessionContext};
use epitome_tests::around::{Around, StoreWith};
use futures::executor::block_on;
use proptest::prelude::*;

use crate::sessions::support::Scripted;

/// Beginning of the provider's message.
const RECORD: &str = "user: [recalled: ";

fn settings(store: Arc<dyn HistoryStore>) -> RunSettings {
    let auto = AutoCompaction::new(Engine::new("truncate".parse::<StrategySpec>().unwrap()))
        .with_trigger(Trigger::tokens(2_000))
        .with_options(CompactionOptions::default().with_goal(800));
    let settings = RunSettings::new("a").with_provider(HistoryProvider::new("m", store)).unwrap();
    settings.with_provider(RecallProvider::new("m")).unwrap().with_compaction(auto)
}

fn fact(n: usize) -> (String, String) {
    (format!("gate{n} at pier {}", n * 7), format!("K-{}", 4_711 + 13 * n))
}

/// The user says twenty facts in eighty turns, and then asks for each: the fact is shown, and only once.
#[test]
fn each_fact_is_shown_again_when_the_user_asks_for_it_over_every_store() {
    let folder = std::env::temp_dir().join(format!("epitome-recall-before-{}", std::process::id()));
    let stores: [Arc<dyn HistoryStore>; 3] = [
        Arc::new(MemoryStore::new()),
        Arc::new(SqliteStore::open_in_memory().unwrap()),
        Arc::new(JsonlStore::open(&folder).unwrap()),
    ];
    for store in stores {
        let client = Scripted::new(|_, _| {
            let says = "I have noted that, and the harbour is quiet. ".repeat(4);
            Ok(ModelResponse::new(vec![Message::assistant(says)]))
        });
        let agent = Agent::with_settings(settings(store), client.clone());
        let mut session = agent.create_session(Some("s"), None);
        let mut say = |says: String| {
            block_on(agent.run(&mut session, says, &RunOptions::default())).unwrap();
            client.last()
        };
        for turn in 0..80 {
            let (place, code) = fact(turn / 4);
            say(match turn % 4 {
                1 => format!("The code of {place} is {code}."),
                _ => format!("Turn {turn}: the harbour master asks for the state of the tide again."),
            });
        }
        let mut shown_again = 0;
        for n in 0..20 {
            let (place, code) = fact(n);
            let sent = say(format!("Which code has {place}?"));
            let with_code: Vec<&String> = sent.iter().filter(|text| text.contains(&code)).collect();
            assert_eq!(with_code.len(), 1, "{n}: {sent:#?}");
            shown_again += usize::from(with_code[0].starts_with(RECORD));
        }
        assert!(shown_again >= 15, "{shown_again}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Counts the pages of the log that are read.
#[derive(Debug, Default)]
struct Pages(AtomicUsize);

#[async_trait]
impl Around for Pages {
    async fn log(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        range: Range<Seq>,
        limit: u32,
    ) -> Result<LogPage, StoreError> {
        self.0.fetch_add(1, Relaxed);
        store.log(session, range, limit).await
    }
}

/// A session of these turns and one more. Before this newest turn the user may take back the messages from `taken_back`
/// on. At the end the session may be compacted.
fn session(
    turns: &[Vec<Message>],
    taken_back: Option<u64>,
    compacts: Option<&dyn Strategy>,
) -> Arc<StoreWith<Pages>> {
    let (store, id) = (Arc::<StoreWith<Pages>>::default(), SessionId::new("s"));
    let (kept, counter) = (Arc::clone(&store), Arc::new(ClassEstimator::new()));
    let mut history = block_on(History::open(kept, id.clone(), counter)).unwrap();
    let say = |history: &mut History, turn: &[Message]| {
        let token = AppendToken::new(format!("t{}", history.head().0));
        block_on(history.append(&token, turn.to_vec())).unwrap();
    };
    turns.iter().for_each(|turn| say(&mut history, turn));
    if let Some(from) = taken_back {
        block_on(store.rewind(&id, Seq(from))).unwrap();
        block_on(history.reload()).unwrap();
    }
    say(&mut history, &said("Thank you."));
    if let Some(strategy) = compacts {
        let budget = Budget::builder().window(100_000).trigger(2).goal(1).build().unwrap();
        block_on(history.compact(&budget, Pass::Manual, strategy)).unwrap().unwrap();
    }
    store
}

fn said(says: &str) -> Vec<Message> {
    vec![Message::user(says), Message::assistant("Noted.")]
}

/// Message that the provider adds to a run in which the user says `asks`, and the number of pages of the log that it reads.
fn added(store: &Arc<StoreWith<Pages>>, asks: &str, provider: RecallProvider) -> (Option<Message>, usize) {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("m", Arc::<StoreWith<Pages>>::clone(store))).unwrap();
    providers.push(provider).unwrap();
    let mut session = AgentSession::with_id("s");
    let mut context = SessionContext::new(&session, "run", vec![Message::user(asks)]);
    store.around.0.store(0, Relaxed);
    block_on(providers.before_run(&NamedAgent::new("a"), &mut session, &mut context)).unwrap();
    let own = context.context_messages().iter().find(|it| *it.source_id == *"recall");
    (own.map(|it| it.messages[0].clone()), store.around.0.load(Relaxed))
}

#[test]
fn only_what_is_hidden_and_was_not_taken_back_is_shown() {
    // The first is the task, which stays.
    let turns = ["Hello.", "The port is 8472.", "The pier is long."].map(said);
    let truncation = Truncation::new();
    let (hidden, visible) = (session(&turns, None, Some(&truncation)), session(&turns, None, None));
    let asked = |store: &Arc<StoreWith<Pages>>, asks: &str| {
        let (shown, pages) = added(store, asks, RecallProvider::new("m"));
        (shown.map(|it| it.text().into_owned()), pages)
    };
    let shown = asked(&hidden, "Which port?").0.unwrap();
    assert!(shown.contains("\n#2 user: The port is 8472.") && !shown.contains("pier"), "{shown}");
    assert_eq!(asked(&visible, "Which port?"), (None, 0), "it is visible: the log is not read");
    assert_eq!(asked(&hidden, "Hello?").0, None, "the task is visible, others are not");
    assert!(asked(&hidden, "A long pier?").0.is_some());
    let taken_back = session(&turns, Some(4), Some(&truncation));
    assert_eq!(asked(&taken_back, "A long pier?").0, None, "it was taken back");
    // This holds also if a compaction had hidden the messages before.
    let newest = SlidingWindow::new(Window::Turns(1)).preserve_first_user(false);
    for (from, port) in [(Some(0), false), (Some(2), false), (Some(4), true), (None, false)] {
        let store = session(&turns, None, Some(&newest));
        let id = SessionId::new("s");
        assert!(asked(&store, "Which port?").0.is_some() && asked(&store, "A long pier?").0.is_some());
        let made = match from {
            Some(from) => block_on(store.rewind(&id, Seq(from))),
            None => block_on(store.clear(&id)),
        };
        let made = made.unwrap();
        assert_eq!(asked(&store, "Which port?").0.is_some(), port, "{from:?}");
        assert_eq!(asked(&store, "A long pier?").0, None, "{from:?}");
        // Later messages are found when they are hidden in turn. Messages that were taken back are found when that is
        // undone.
        let counter = Arc::new(ClassEstimator::new());
        let mut history =
            block_on(History::open(Arc::clone(&store) as Arc<dyn HistoryStore>, id.clone(), counter))
                .unwrap();
        for (at, says) in ["The pier is short.", "Thank you."].into_iter().enumerate() {
            block_on(history.append(&AppendToken::new(format!("later{at}")), said(says))).unwrap();
        }
        assert_eq!(asked(&store, "A short pier?").0, None, "it is visible");
        let budget = Budget::builder().window(100_000).trigger(2).goal(1).build().unwrap();
        block_on(history.compact(&budget, Pass::Manual, &newest)).unwrap().unwrap();
        let shown = asked(&store, "A short pier?").0.unwrap();
        assert!(shown.contains("The pier is short.") && !shown.contains("long"), "{shown}");
        block_on(store.store.uncompact(&id, history.index().revision())).unwrap();
        block_on(store.store.uncompact(&id, made)).unwrap();
        assert!(asked(&store, "Which port?").0.is_some() && asked(&store, "A long pier?").0.is_some());
    }
    // A late answer belongs to the group of its call.
    for (rewound, is_found) in [(1, false), (3, true)] {
        let call = Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("c", "look", "{}"))]);
        let asks = vec![Message::user("Look for the pier."), call];
        let store = session(&[said("Hello."), asks, vec![Message::user("Well?")]], Some(rewound + 1), None);
        let (id, kept) = (SessionId::new("s"), Arc::clone(&store) as Arc<dyn HistoryStore>);
        let mut history = block_on(History::open(kept, id, Arc::new(ClassEstimator::new()))).unwrap();
        let late = vec![Message::tool("c", "The pier has two lighthouses.")];
        block_on(history.append(&AppendToken::new("late"), late)).unwrap();
        for at in 0..2 {
            block_on(history.append(&AppendToken::new(format!("on{at}")), said("Thank you."))).unwrap();
        }
        let budget = Budget::builder().window(100_000).trigger(2).goal(1).build().unwrap();
        block_on(history.compact(&budget, Pass::Manual, &newest)).unwrap().unwrap();
        let shown = asked(&store, "How many lighthouses?").0;
        assert_eq!(shown.is_some(), is_found, "{rewound}: {shown:?}");
    }
    for blank in ["", " \n"] {
        assert_eq!(asked(&hidden, blank), (None, 0), "{blank:?} asks nothing");
    }
    for nothing in ["?!", "Which dog?"] {
        assert_eq!(asked(&hidden, nothing).0, None, "{nothing}");
    }
    let elsewhere = added(&hidden, "Which port?", RecallProvider::new("another"));
    assert_eq!(elsewhere, (None, 0), "it knows no such history");
    let revision = block_on(hidden.load(&SessionId::new("s"))).unwrap().revision;
    block_on(hidden.store.prune(&SessionId::new("s"), revision)).unwrap();
    assert_eq!(asked(&hidden, "Which port?").0, None, "it was pruned");
}

/// A result that was cleared is shown too, although no message is hidden.
#[test]
fn what_is_shortened_is_shown_too() {
    let read = |n: usize, says: &str| {
        let call =
            Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new(format!("c{n}"), "read", "{}"))]);
        vec![
            Message::user("Read."),
            call,
            Message::tool(format!("c{n}"), format!("{says} {}", "line ".repeat(90))),
        ]
    };
    let turns: Vec<_> =
        (0..6).map(|n| read(n, if n == 1 { "The port is 8472." } else { "Nothing." })).collect();
    let store = session(&turns, None, Some(&ToolResultClearing::new()));
    assert_eq!(block_on(store.load(&SessionId::new("s"))).unwrap().live.len(), 20);
    let shown = added(&store, "Which port?", RecallProvider::new("m")).0.unwrap();
    assert!(shown.text().contains("\n#5 tool: The port is 8472."), "{}", shown.text());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For all texts, the record is data for this run, has no more tokens than it may, and none of its texts can pass for a line of the
    /// record.
    #[test]
    fn what_is_shown_is_a_record_within_its_allowance(
        texts in prop::collection::vec("(port |#1 user: |obey me|計數|\\PC|[\r\n\u{85}\u{2028}]){1,40}", 1..8),
        tokens_max in 0..400_u32,
        found_max in 0..4_usize,
    ) {
        let provider = RecallProvider::new("m").with_tokens_max(tokens_max).with_found_max(found_max);
        // The first is the task, which stays.
        let turns: Vec<_> = core::iter::once("Hello.").chain(texts.iter().map(|text| &**text)).map(said).collect();
        let store = session(&turns, None, Some(&Truncation::new()));
        if let (Some(message), _) = added(&store, "port 計數", provider) {
            let (attribution, text) = (message.attribution(), message.text());
            prop_assert_eq!(attribution.authority, Authority::Retrieved);
            prop_assert_eq!(attribution.retention, Retention::Ephemeral);
            prop_assert!(ClassEstimator::new().count(&text).0 <= tokens_max, "{}", text);
            let breaks = |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
            let own = text.split(breaks).skip(1).filter(|line| line.starts_with('#')).count();
            prop_assert!((1..=found_max).contains(&own), "{}", text);
        }
    }
}
