//! Speed of the readers of texts in a compaction:
//! `cargo run --release -p epitome-benches --bin texts [-- --smoke | --once NAME MEGABYTES]`
//!
//! Shows megabytes of history per second for each reader of texts, at 1 MB and at 100 MB; matters because a user waits
//! for a compaction before the next request. Each result has the result of `serde_json::Value` for the same messages in
//! the same run, because machines differ. Times are processor times of the process, each the median of its rounds.
//! `--once` runs one row once and prints nothing, for a profiler.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use core::time::Duration;
use std::process::ExitCode;
use std::sync::Arc;

use epitome::compaction::{CompactionCx, CompactionOutcome, Compactor};
use epitome::compactors::{Engine, StrategySpec};
use epitome::core::message::{PartView, Parts};
use epitome::core::{Budget, ClassEstimator, Pass};
use epitome::history::{AppendToken, History, MemoryStore, SessionId};
use epitome::identifiers::for_each_identifier;
use epitome::message::Message;
use epitome::search::for_each_term;
use epitome_benches::compare::clock::{Times, timed};
use epitome_benches::generated::{Messages, Pool, write_json};
use epitome_benches::steps;
use futures::executor::block_on;

/// Sizes of the histories in bytes, and the number of rounds.
struct Sizes {
    small: usize,
    large: usize,
    rounds: usize,
}

const FULL: Sizes = Sizes { small: 1_000_000, large: 100_000_000, rounds: 5 };
const SMOKE: Sizes = Sizes { small: 50_000, large: 200_000, rounds: 1 };

/// A row of the table.
struct Reader {
    name: &'static str,
    what: Read,
}

enum Read {
    /// The reference: a tree of values from the JSON of the messages.
    Value,
    /// Each text of the messages alone.
    Texts(fn(&str) -> u64),
    /// A complete compaction to a quarter of the tokens, including the commit to a store in memory. Its target is
    /// [`MB_PER_SECOND_MIN`].
    Compaction(&'static str),
}

const READERS: &[Reader] = &[
    Reader { name: "serde_json::Value", what: Read::Value },
    Reader { name: "terms", what: Read::Texts(terms) },
    Reader { name: "identifiers", what: Read::Texts(identifiers) },
    Reader { name: "truncate", what: Read::Compaction("truncate") },
    Reader { name: "salience", what: Read::Compaction("salience:near-request=false") },
    Reader { name: "salience with relevance", what: Read::Compaction("salience") },
    Reader { name: "ledger", what: Read::Compaction("truncate | ledger") },
    Reader { name: "excerpts", what: Read::Compaction("clamp:max=120 | truncate") },
    Reader { name: "agent", what: Read::Compaction("agent") },
    Reader { name: "chat", what: Read::Compaction("chat") },
];

/// Minimum speed of each compaction that reads texts.
const MB_PER_SECOND_MIN: f64 = 100.0;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => table(&FULL),
        ["--smoke"] => table(&SMOKE),
        ["--once", name, megabytes] if READERS.iter().any(|reader| reader.name == *name) => {
            let texts = Texts::of(megabytes.parse::<usize>().unwrap().saturating_mul(1_000_000));
            for reader in READERS.iter().filter(|reader| reader.name == *name) {
                texts.prepared(reader)();
            }
        }
        _ => {
            println!("usage: texts [--smoke | --once NAME MEGABYTES]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn table(sizes: &Sizes) {
    let [small, large] = [sizes.small, sizes.large].map(Texts::of);
    println!(
        "| reader | {} | {} | share of the speed | beside `Value` | target |",
        small.title(),
        large.title()
    );
    println!("|---|---:|---:|---:|---:|---|");
    let mut value = None;
    for reader in READERS {
        let both = [&small, &large].map(|texts| texts.mb_per_second(texts.time(reader, sizes.rounds)));
        let [at_small, at_large] = both;
        let [value_small, _] = *value.get_or_insert(both);
        let target = match reader.what {
            Read::Compaction(strategy) if strategy != "truncate" => {
                if at_small.min(at_large) >= MB_PER_SECOND_MIN { "met" } else { "**missed**" }
            }
            _ => "-",
        };
        println!(
            "| {} | {at_small:.0} MB/s | {at_large:.0} MB/s | {:.2} | {:.2}x | {target} |",
            reader.name,
            at_large / at_small,
            at_small / value_small,
        );
    }
}

/// The messages of a history, and the number of bytes of their texts.
struct Texts {
    messages: Vec<Message>,
    json: String,
    bytes: usize,
}

impl Texts {
    /// Generates messages with so many bytes of text.
    fn of(bytes: usize) -> Self {
        let pool = Pool::new();
        let (mut count, mut made) = (0, 0);
        let mut endless = Messages::new(&pool, SEED);
        while made < bytes {
            for_each_text(&endless.next().unwrap(), &mut |text| made += text.len());
            count += 1;
        }
        let made: Vec<_> = Messages::new(&pool, SEED).take(count).collect();
        let messages: Vec<Message> = steps::entries(&made).into_iter().map(|entry| entry.message).collect();
        let mut json = Vec::new();
        write_json(Messages::new(&pool, SEED).take(count), &mut json).unwrap();
        let mut bytes = 0;
        messages.iter().for_each(|message| for_each_text(message, &mut |text| bytes += text.len()));
        Self { messages, json: String::from_utf8(json).unwrap(), bytes }
    }

    fn title(&self) -> String {
        format!("{:.1} MB", self.bytes as f64 / 1e6)
    }

    fn mb_per_second(&self, time: Duration) -> f64 {
        self.bytes as f64 / time.as_secs_f64().max(1e-9) / 1e6
    }

    /// The median time of one reader.
    fn time(&self, reader: &Reader, rounds: usize) -> Duration {
        (0..rounds).map(|_| timed(self.prepared(reader))).collect::<Times>().median().unwrap_or_default()
    }

    /// Prepares a reader, and returns its work as a closure.
    fn prepared(&self, reader: &Reader) -> Box<dyn FnOnce() -> u64 + '_> {
        match reader.what {
            Read::Value => Box::new(|| {
                let value: serde_json::Value = serde_json::from_str(&self.json).unwrap();
                value.as_array().map_or(0, Vec::len) as u64
            }),
            Read::Texts(read) => Box::new(move || {
                let mut sum = 0_u64;
                for message in &self.messages {
                    for_each_text(message, &mut |text| sum = sum.wrapping_add(read(text)));
                }
                sum
            }),
            Read::Compaction(strategy) => {
                let engine = Engine::new(strategy.parse::<StrategySpec>().unwrap());
                let mut history = block_on(self.appended());
                let tokens = history.index().tokens();
                let goal = tokens / 4;
                let budget =
                    Budget::builder().window(tokens.saturating_mul(2)).trigger(tokens / 2).goal(goal);
                let budget = budget.build().unwrap();
                Box::new(move || {
                    let after = compact(&engine, &mut history, budget);
                    assert!(after <= goal, "{strategy} leaves {after} of a goal of {goal}");
                    after
                })
            }
        }
    }

    async fn appended(&self) -> History {
        let (store, counter) = (Arc::new(MemoryStore::new()), Arc::new(ClassEstimator::new()));
        let mut history = History::open(store, SessionId::new("texts"), counter).await.unwrap();
        for (at, batch) in self.messages.chunks(BATCH).enumerate() {
            history.append(&AppendToken::new(format!("{at}")), batch.to_vec()).await.unwrap();
        }
        history
    }
}

/// Not inlined: callgrind selects this function by its name.
#[inline(never)]
fn compact(engine: &Engine, history: &mut History, budget: Budget) -> u64 {
    let mut cx = CompactionCx::new(history, budget, Pass::Manual);
    let outcome = block_on(engine.compact(&mut cx)).unwrap();
    assert!(matches!(outcome, CompactionOutcome::Compacted(_)), "{} compacts", engine.name());
    history.index().tokens()
}

/// Number of messages appended at once.
const BATCH: usize = 1_000;
const SEED: u64 = 1;

fn for_each_text<M: Parts + ?Sized>(message: &M, visit: &mut dyn FnMut(&str)) {
    message.for_each_part(&mut |part| match part {
        PartView::Text(text) => visit(text),
        PartView::ToolCall(call) => visit(call.arguments),
        PartView::ToolResult(result) => result.content.for_each_part(&mut |part| {
            if let PartView::Text(text) = part {
                visit(text);
            }
        }),
        _ => {}
    });
}

fn terms(text: &str) -> u64 {
    let mut sum = 0_u64;
    for_each_term(text, &mut |term| sum = sum.wrapping_add(term));
    sum
}

fn identifiers(text: &str) -> u64 {
    let mut count = 0;
    for_each_identifier(text, true, &mut |_| count += 1);
    count
}
