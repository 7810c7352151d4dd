//! What the mappers of managed compaction cost beside a JSON library on the same conversation, and how often a session that is
//! compacted by a provider holds a prompt.
//!
//! A program of its own, because counting makes every allocation slower. `--smoke` makes it short: its assertions hold all
//! the same, its times do not matter.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use core::hint::black_box;
use core::time::Duration;
use std::alloc::System;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_trait::async_trait;
use epitome::compactors::Managed;
use epitome::compactors::managed::anthropic::{Summarize, Summary, replay, summarize_body, summarized};
use epitome::compactors::managed::openai::{
    CompactOptions, MODEL, ResponsesVendor, compact_body, compacted, input,
};
use epitome::compactors::managed::{
    Artefact, Capabilities, CompactionService, Cut, ServiceError, ServiceErrorKind, ServiceRequest,
};
use epitome::core::message::Role;
use epitome::core::{Budget, ClassEstimator, Pass};
use epitome::std::compaction::{CompactionCx, CompactionOutcome, Compactor};
use epitome::std::history::{AppendToken, History, MemoryStore, SessionId};
use epitome::std::message::{Message, Part, ToolCall};
use serde_json::{Map, Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let rounds = if smoke { 2 } else { 60 };
    println!("| mapper | of serde_json's MB/s | target | shows; matters because |");
    println!("|---|---|---|---|");
    speed(rounds);
    println!();
    println!("| held at most | copies of a prompt | target | shows; matters because |");
    println!("|---|---|---|---|");
    futures::executor::block_on(memory());
}

/// A conversation of this many turns, each with a call and prose with what JSON escapes.
fn conversation(turns: usize) -> Vec<Message> {
    (0..turns).flat_map(turn).collect()
}

fn turn(at: usize) -> [Message; 4] {
    let id = format!("call_{at}");
    let call = ToolCall::new(id.clone(), "read", format!(r#"{{"path":"src/part_{at}.rs","lines":[1,200]}}"#));
    [
        Message::user(format!("What does part {at} do, and who calls it?\nSay it in a few words.")),
        Message::new(Role::Assistant, vec![Part::ToolCall(call)]),
        Message::tool(id, format!("fn part_{at}() {{\n\tcall(\"näher\", 'x');\n}}\n").repeat(40)),
        Message::assistant("It calls the next one, and \"nobody\" calls it but the one before. ".repeat(6)),
    ]
}

/// The answers of the services.
fn openai_answer(body: &str, sealed: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let users = list(&body, "input").iter().filter(|item| item.get("role") == Some(&json!("user")));
    let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": sealed});
    let output: Vec<Value> = users.cloned().chain([item]).collect();
    let usage = json!({"input_tokens": 9_000, "input_tokens_details": {}, "output_tokens": 700, "total_tokens": 9_700});
    json!({"id": "r", "object": "response.compaction", "created_at": 1, "output": output, "usage": usage})
        .to_string()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).unwrap()
}

fn anthropic_answer(summary: &str) -> String {
    let block = json!({"type": "compaction", "content": summary, "signature": "EuYB"});
    json!({"type": "message", "role": "assistant", "stop_reason": "compaction", "content": [block]})
        .to_string()
}

fn speed(rounds: u32) {
    let messages = conversation(200);
    let request = ServiceRequest::new(&messages);
    let (vendor, options) = (ResponsesVendor::openai(), CompactOptions::default());
    let openai = || compact_body(&vendor, MODEL, &request, &options).unwrap().text;
    let body = openai();
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(list(&value, "input").len(), messages.len());
    let why = "shows the cost of the whole conversation written once; matters because it is paid at each compaction";
    row("OpenAI, request written", rounds, why, &openai, &|| value.to_string());

    let answer = openai_answer(&body, &"gAAAAAB_-".repeat(20_000));
    let read = || compacted(&vendor, MODEL, &request, &answer).unwrap();
    assert_eq!(read().before.len(), 200);
    let why = "shows what checking an answer costs; matters as above";
    row("OpenAI, answer read", rounds, why, &read, &|| serde_json::from_str::<Value>(&answer).unwrap());

    let ask = Summarize::new();
    let anthropic = || summarize_body("m", &request, &ask, &Map::new()).unwrap().text;
    let body = anthropic();
    let value: Value = serde_json::from_str(&body).unwrap();
    assert!(list(&value, "messages").len() <= messages.len());
    let why = "shows the same with the checks of a cut; matters as above";
    row("Anthropic, request written", rounds, why, &anthropic, &|| value.to_string());

    let answer = anthropic_answer(&"They read the parts. ".repeat(20_000));
    let read = || summarized("m", &answer).unwrap();
    assert!(read().text().starts_with("They read"));
    let why = "shows what checking an answer costs; matters as above";
    row("Anthropic, answer read", rounds, why, &read, &|| serde_json::from_str::<Value>(&answer).unwrap());

    let Summary::Written(block) = Summary::read(&answer).unwrap() else { return };
    let whole = {
        let mut value = value.clone();
        value.as_object_mut().unwrap().remove("compaction");
        value.to_string()
    };
    let cut = list(&value, "messages").len() / 2;
    let swapped = || replay(&whole, cut, &block).unwrap();
    assert!(swapped().len() < whole.len() + answer.len());
    let again = || serde_json::from_str::<Value>(&whole).unwrap().to_string();
    let why = "shows a text request changed in place; matters where a client keeps its conversation as such";
    row("Anthropic, block put first", rounds, why, &swapped, &again);
}

/// One after the other, so that what else the machine does meets both; the median of each.
fn row<A, B>(name: &str, rounds: u32, why: &str, ours: &dyn Fn() -> A, theirs: &dyn Fn() -> B) {
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        own.push(time(ours));
        other.push(time(theirs));
    }
    own.sort_unstable();
    other.sort_unstable();
    let middle = |times: &[Duration]| times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64();
    let ratio = middle(&other) / middle(&own);
    let outcome = if ratio >= SPEED_MIN { "met" } else { "**missed**" };
    println!("| {name} | {ratio:.2} | >= {SPEED_MIN}: {outcome} | {why} |");
}

fn time<T>(step: &dyn Fn() -> T) -> Duration {
    let begun = Instant::now();
    black_box(step());
    begun.elapsed()
}

/// What is on the heap now, in bytes: what a reallocation adds or gives back is in both numbers.
fn held() -> usize {
    let stats = HEAP.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Maps as the client does, without HTTP, and looks at the heap where most is held: when a text is whole, and what it was
/// made of is still there.
#[derive(Debug)]
struct Watched {
    vendor: ResponsesVendor,
    sealed: String,
    /// The largest prompt, and the most that was held for one beside the history.
    seen: Arc<Mutex<(usize, usize)>>,
    before: Arc<Mutex<usize>>,
}

impl Watched {
    fn look(&self, prompt: usize) {
        let more = held().saturating_sub(*self.before.lock().unwrap());
        let mut seen = self.seen.lock().unwrap();
        *seen = (seen.0.max(prompt), seen.1.max(more));
    }
}

#[async_trait]
impl CompactionService for Watched {
    fn provider(&self) -> &str {
        self.vendor.provider()
    }

    fn capabilities(&self) -> Option<Capabilities> {
        Some(Capabilities::new(self.vendor.position(), Cut::Group))
    }

    async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError> {
        let body =
            compact_body(&self.vendor, MODEL, request, &CompactOptions::default()).map_err(|error| {
                ServiceError::new(ServiceErrorKind::Invalid(String::new()), "the bench").with_source(error)
            })?;
        self.look(body.text.len());
        let answer = openai_answer(&body.text, &self.sealed);
        drop(body);
        // The answer is the service's until it is read.
        *self.before.lock().unwrap() += answer.capacity();
        let artefact = compacted(&self.vendor, MODEL, request, &answer);
        self.look(0);
        *self.before.lock().unwrap() -= answer.capacity();
        artefact
    }
}

async fn memory() {
    let sealed = "gAAAAAB_-".repeat(2_000);
    let (seen, before) = (Arc::new(Mutex::new((0, 0))), Arc::new(Mutex::new(0)));
    let vendor = ResponsesVendor::openai();
    let service = Watched {
        vendor: vendor.clone(),
        sealed: sealed.clone(),
        seen: Arc::clone(&seen),
        before: Arc::clone(&before),
    };
    let managed = Managed::new(Arc::new(service)).unwrap();
    let session = SessionId::new("s");
    let mut history =
        History::open(Arc::new(MemoryStore::new()), session, Arc::new(ClassEstimator::new())).await.unwrap();
    let budget = Budget::builder().window(1_000_000).trigger(500_000).without_goal().build().unwrap();
    let mut passes = 0;
    for at in 0..200 {
        let said = turn(at).to_vec();
        history.append(&AppendToken::new(format!("{at}")), said).await.unwrap();
        *before.lock().unwrap() = held();
        let shown: Vec<&Message> = history.projection().collect();
        let prompt = input(&vendor, shown).unwrap().text;
        let more = held().saturating_sub(*before.lock().unwrap());
        {
            let mut seen = seen.lock().unwrap();
            *seen = (seen.0.max(prompt.len()), seen.1.max(more));
        }
        drop(prompt);
        if at % 40 == 39 {
            let mut cx = CompactionCx::new(&mut history, budget, Pass::Manual);
            let outcome = managed.compact(&mut cx).await.unwrap();
            passes += usize::from(matches!(outcome, CompactionOutcome::Compacted(_)));
        }
    }
    assert_eq!(passes, 5, "compactions");
    let (prompt, more) = *seen.lock().unwrap();
    let copies = 1.0 + more as f64 / prompt as f64;
    let outcome = if copies <= COPIES_MAX { "met" } else { "**missed**" };
    println!(
        "| by a session of 200 turns, of prompts up to {prompt} B | {copies:.2} | <= {COPIES_MAX}: {outcome} | shows the \
         history and what is written of it; matters because a prompt is most of what a process holds |"
    );
    let left: Vec<&Message> = history.projection().collect();
    let holds =
        |part: &Part| matches!(part, Part::Compaction(left) if left.opaque.as_deref() == Some(&*sealed));
    let found = left.iter().flat_map(|message| message.parts()).filter(|part| holds(part)).count();
    assert_eq!(found, 1, "the artefact stands once in what is shown");
}

/// Of `serde_json`'s MB/s.
const SPEED_MIN: f64 = 0.3;
/// The history's own, and the one that is sent.
const COPIES_MAX: f64 = 2.0;
