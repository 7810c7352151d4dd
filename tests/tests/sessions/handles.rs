//! Notes and summaries contain the numbers of the messages that they stand for. A model that uses these numbers gets
//! all the messages back.

mod generated;
mod notes;
mod stores;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::agent::Agent;
use epitome::compaction::{AutoCompaction, CompactionOptions};
use epitome::compactors::{Engine, StrategySpec, Summarizer, SummaryError, SummaryRequest};
use epitome::core::message::Role;
use epitome::core::{ClassEstimator, Trigger};
use epitome::history::{AppendToken, History, HistoryStore, HistoryStoreExt, SessionId};
use epitome::message::{Message, Part, ToolCall};
use epitome::provider::HistoryProvider;
use epitome::run::{ModelResponse, RecallTool, RunOptions, RunSettings, compact};
use epitome::session::AgentSession;
use futures::executor::block_on;
use serde_json::{Value, json};

use crate::sessions::strict::compactions;
use crate::sessions::support::{Scripted, texts};

const TURNS: usize = 200;
const FACTS: usize = 50;
/// Number of facts in the question of one run.
const AT_ONCE: usize = 5;

fn place(n: usize) -> String {
    format!("gate{n} at pier {}", n * 7)
}

fn fact(n: usize) -> String {
    format!("The code of {} is {}.", place(n), code(n))
}

fn code(n: usize) -> String {
    format!("K-{}", 4_711 + 13 * n)
}

/// A call of the recall tool.
fn recall(id: &str, arguments: &Value) -> Message {
    let call = ToolCall::new(id.to_owned(), RecallTool::NAME, arguments.to_string());
    Message::new(Role::Assistant, vec![Part::ToolCall(call)])
}

/// The numbers in the notes of a text: `; #57]`, `[cleared#57]`, `cut#57 ...]`.
fn named(text: &str) -> Vec<u64> {
    let behind = text.split('#').skip(1);
    let number = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let is_note = [" ...]", "]"].iter().any(|close| rest[end..].starts_with(close));
        rest[..end].parse().ok().filter(|_| is_note)
    };
    behind.filter_map(number).collect()
}

/// The numbers of the messages that a summary stands for, as written in the summary: `3-90`, or `7`.
fn in_full(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("[In full: recall_history, message"))?;
    line.strip_suffix(']')?.rsplit(' ').next()
}

/// One turn: a question, the work and the answer. Every fourth turn contains a fact, each time in another place.
fn turn(turn: usize) -> Vec<Message> {
    let (n, is_fact) = (turn / 4, turn % 4 == 1);
    let line = |at: usize| format!("{turn}-{at}: the water stands at the mark, and nobody is on the pier.");
    let filler = |lines: usize| (0..lines).map(line).collect::<Vec<_>>();
    let with_fact = |lines: usize| {
        let mut lines = filler(lines);
        let middle = lines.len() / 2;
        lines.insert(middle, fact(n));
        lines
    };
    let call = |file: String| {
        let arguments = json!({ "file": file }).to_string();
        Message::new(
            Role::Assistant,
            vec![Part::ToolCall(ToolCall::new(format!("c{turn}"), "read", arguments))],
        )
    };
    let read = |file: String, result: String| {
        let asked = Message::user(format!("Read {file}."));
        let done = Message::assistant(format!("I have read it in turn {turn}."));
        vec![asked, call(file), Message::tool(format!("c{turn}"), result), done]
    };
    let log = format!("gate{n}.log");
    match (is_fact, n % 5) {
        (true, 0) => vec![Message::user(fact(n)), Message::assistant("I have noted that.")],
        (true, 1) => vec![
            Message::user(format!("Is gate{n} open?")),
            Message::assistant(format!("It is. {} I asked.", fact(n))),
        ],
        (true, 2) => read(log, with_fact(8).join("\n")),
        // Every second one is longer than one answer of the recall tool.
        (true, 3) => read(log, with_fact(if n % 2 == 0 { 20 } else { 240 }).join("\n")),
        (true, _) => {
            let rows = with_fact(20).into_iter().enumerate();
            let rows: Vec<_> = rows.map(|(id, says)| json!({ "id": id, "says": says })).collect();
            read(log, json!({ "rows": rows, "total": rows.len() }).to_string())
        }
        _ if turn.is_multiple_of(2) => read(format!("tide{turn}.log"), filler(4).join("\n")),
        _ => vec![
            Message::user(format!("Turn {turn}: what does the harbour master say?")),
            Message::assistant("He says that the tide is late. ".repeat(6)),
        ],
    }
}

/// Way in which the model got a fact back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Without a call: the fact was still visible.
    Shown,
    /// By the number in a note, in one call or two.
    Note,
    /// By a search among the messages that a summary or a ledger names.
    Summary,
    /// By one search with the words of the question.
    Search,
}

/// A model that gets the requested facts back only by the information in its prompt.
struct Reader {
    ways: Mutex<BTreeMap<(Way, usize), usize>>,
}

impl Reader {
    /// Calls the tool for all unknown facts at once. Answers when no call is left.
    fn answer(&self, messages: &[Message]) -> Message {
        let all = texts(messages);
        let asked = messages.iter().rposition(|message| message.role() == Role::User).unwrap();
        let gates: Vec<usize> = all[asked].split(' ').filter_map(|word| word.parse().ok()).collect();
        let (mut calls, mut known) = (Vec::new(), Vec::new());
        for n in gates {
            let (earlier, now) = all.split_at(asked);
            let made = now.iter().filter(|text| text.starts_with(&format!("tool: result r{n}-"))).count();
            let says = format!("The code of {} is ", place(n));
            let told = |texts: &[String]| {
                let told = texts.iter().find_map(|text| text.split_once(&says))?.1;
                Some(told.split('.').next().unwrap().to_owned())
            };
            let (way, plan) = self.plan(n, &format!("code of {}", place(n)), (messages, earlier));
            let shown = told(earlier).filter(|_| made == 0);
            match (shown.or_else(|| told(now)), plan.get(made)) {
                (Some(code), _) => known.push(((if made == 0 { Way::Shown } else { way }, made), n, code)),
                (None, Some(arguments)) => {
                    calls.extend(recall(&format!("r{n}-{made}"), arguments).into_parts());
                }
                (None, None) => return Message::assistant(format!("I do not know that of {n}.")),
            }
        }
        if !calls.is_empty() {
            return Message::new(Role::Assistant, calls);
        }
        let mut ways = self.ways.lock().unwrap();
        known.iter().for_each(|(way, ..)| *ways.entry(*way).or_default() += 1);
        let codes: Vec<String> = known.iter().map(|(_, n, code)| format!("{n} has {code}")).collect();
        Message::assistant(format!("{}.", codes.join(", ")))
    }

    /// The calls that the model makes for one fact, one after another, and their way.
    fn plan(&self, n: usize, words: &str, (messages, texts): (&[Message], &[String])) -> (Way, Vec<Value>) {
        let file = format!("\"gate{n}.log\"");
        let call = messages.iter().flat_map(Message::parts).find_map(|part| match part {
            Part::ToolCall(call) if call.name.as_str() == "read" && call.arguments.contains(&file) => {
                Some(call)
            }
            _ => None,
        });
        let result = call.and_then(|call| {
            let begins = format!("tool: result {}: ", call.id.as_str());
            texts.iter().find(|text| text.starts_with(&begins))
        });
        if let Some(number) = result.and_then(|text| named(text).first().copied()) {
            let message = number.to_string();
            return (
                Way::Note,
                vec![json!({"messages": message}), json!({"messages": message, "query": words})],
            );
        }
        if let Some(messages) = texts.iter().find_map(|text| in_full(text)) {
            return (Way::Summary, vec![json!({"messages": messages, "query": words})]);
        }
        (Way::Search, vec![json!({ "query": words })])
    }
}

/// A summarizer that writes summaries without facts.
#[derive(Debug)]
struct Brief;

#[async_trait]
impl Summarizer for Brief {
    fn name(&self) -> &str {
        "brief"
    }

    async fn summarize(&self, _: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        Ok("Logs of gates and tides were read, and codes of gates were told.".into())
    }
}

fn engine(strategy: &str) -> Engine {
    Engine::new(strategy.parse::<StrategySpec>().unwrap()).with_summarizer(Arc::new(Brief))
}

/// Two hundred turns are compacted to a tenth. Then the user asks for each of fifty facts, with more compactions in
/// between. Returns the number of facts for each way and number of calls.
fn facts_got_back(
    provider: HistoryProvider,
    store: &dyn HistoryStore,
    strategy: &str,
) -> BTreeMap<(Way, usize), usize> {
    let (name, counter) = (SessionId::new(format!("facts-{strategy}")), Arc::new(ClassEstimator::new()));
    let said: Vec<Message> = (0..TURNS).flat_map(turn).collect();
    let reader = Arc::new(Reader { ways: Mutex::default() });
    let client = Scripted::new({
        let reader = Arc::clone(&reader);
        move |_, messages| Ok(ModelResponse::new(vec![reader.answer(messages)]))
    });
    let settings = RunSettings::new("a").with_provider(provider).unwrap().with_recall();
    let mut session = AgentSession::with_id(name.as_str());
    let tokens = block_on(async {
        let memory: Arc<dyn HistoryStore> = Arc::new(epitome::history::MemoryStore::new());
        let mut history = History::open(Arc::clone(&memory), name.clone(), counter).await.unwrap();
        for (at, part) in said.chunks(200).enumerate() {
            history.append(&AppendToken::new(format!("{at}")), part.to_vec()).await.unwrap();
        }
        memory.copy(&name, store, &name).await.unwrap();
        history.index().tokens()
    });
    let goal = tokens / 10;
    let options = CompactionOptions::default().with_goal(goal);
    let first = block_on(compact(&settings, &mut session, &engine(strategy), options.clone())).unwrap();
    assert!(first.compacted_tokens.unwrap() <= goal, "{first:?}");
    let auto = AutoCompaction::new(engine(strategy))
        .with_trigger(Trigger::tokens(goal + goal / 2))
        .with_options(options);
    let agent = Agent::with_settings(settings.with_compaction(auto), client);
    let mut later = 0;
    // The newest facts first: the answers push the oldest messages out.
    for first in (0..FACTS).step_by(AT_ONCE).rev() {
        let gates = || (first..first + AT_ONCE).rev();
        let names: Vec<String> = gates().map(|n| n.to_string()).collect();
        let asks = format!("What are the codes of the gates {} ?", names.join(" "));
        let outcome = block_on(agent.run(&mut session, asks, &RunOptions::default())).unwrap();
        later += compactions(&outcome.events);
        let says = texts(&outcome.response.messages).pop().unwrap();
        let codes: Vec<String> = gates().map(|n| format!("{n} has {}", code(n))).collect();
        assert_eq!(says, format!("assistant: {}.", codes.join(", ")), "{strategy}");
    }
    assert!(later >= 1, "{strategy}: no compaction came between the questions");
    block_on(store.delete(&name)).unwrap();
    drop(agent);
    let ways = reader.ways.lock().unwrap().clone();
    println!(
        "{strategy}: {tokens} tokens to {:?}, {later} compactions later: {ways:?}",
        first.compacted_tokens
    );
    ways
}

/// The presets: without a model, and with one that writes summaries.
const PRESETS: [&str; 2] = ["agent", "summarize"];

/// Checks that all facts are got back, over one store.
fn all_facts_are_got_back(store: &Arc<dyn HistoryStore>, presets: &[&str]) {
    for strategy in presets.iter().copied() {
        let provider = HistoryProvider::new("m", Arc::clone(store));
        let ways = facts_got_back(provider, &**store, strategy);
        let by =
            |way: Way| ways.iter().filter(|((its, _), _)| *its == way).map(|(_, count)| count).sum::<usize>();
        assert_eq!(ways.values().sum::<usize>(), FACTS);
        assert!(ways.keys().all(|(_, calls)| *calls <= 2), "{ways:?}");
        assert!(by(Way::Summary) >= FACTS / 5, "{strategy}: {ways:?}");
        assert!(strategy != "agent" || by(Way::Note) >= 3, "{strategy}: {ways:?}");
    }
}
