//! Number of copies of a prompt in the memory of a session while a provider compacts it.
//!
//! This is a separate program, because counting makes every allocation slower.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::compaction::{CompactionCx, CompactionOutcome, Compactor};
use epitome::compactors::Managed;
use epitome::compactors::managed::openai::{
    CompactOptions, MODEL, ResponsesVendor, compact_body, compacted, input,
};
use epitome::compactors::managed::{
    Artefact, Capabilities, CompactionService, Cut, ServiceError, ServiceErrorKind, ServiceRequest,
};
use epitome::core::{Budget, ClassEstimator, Pass};
use epitome::history::{AppendToken, History, MemoryStore, SessionId};
use epitome::message::{Message, Part};
use epitome_benches::managed::{openai_answer, turn};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() {
    println!("| held at most | copies of a prompt | target | shows; matters because |");
    println!("|---|---|---|---|");
    futures::executor::block_on(memory());
}

/// The peak of the memory: the texts of the history, and everything that was added to the heap meanwhile. Short-lived
/// memory counts too, for example while a text grows or its source still exists.
#[derive(Debug, Default)]
struct Copies {
    /// Heap of the history, including all hidden messages.
    others: usize,
    /// Size of the texts of the history that are sent.
    texts: usize,
    held: usize,
    /// Size of the largest prompt.
    prompt: usize,
}

impl Copies {
    fn begin(&mut self, history: &History) {
        let parts = history.projection().flat_map(|message| message.parts());
        self.texts = parts.map(text_bytes).sum();
        self.others = HEAP.current_usage();
        HEAP.reset_peak_usage();
    }

    fn look(&mut self, prompt: usize) {
        self.held = self.held.max(self.texts + HEAP.peak_usage().saturating_sub(self.others));
        self.prompt = self.prompt.max(prompt);
    }

    fn row(&self, when: &str, most: f64, why: &str) {
        let copies = self.held as f64 / self.prompt as f64;
        assert!(copies <= most, "{when}: {copies:.2} copies of a prompt");
        let outcome = if copies <= COPIES_MAX { "met" } else { "**missed**" };
        println!("| {when} | {copies:.2} | <= {COPIES_MAX}: {outcome} | {why} |");
    }
}

fn text_bytes(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.len(),
        Part::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.call_id.len() + result.parts.iter().map(text_bytes).sum::<usize>(),
        Part::Compaction(left) => left.text.len() + left.opaque.as_deref().map_or(0, str::len),
        Part::Unknown(item) => item.raw.len(),
        _ => 0,
    }
}

/// A service that maps requests and responses as the client does, without HTTP.
#[derive(Debug)]
struct Watched {
    vendor: ResponsesVendor,
    sealed: String,
    copies: Arc<Mutex<Copies>>,
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
        let mut copies = self.copies.lock().unwrap();
        copies.look(body.text.len());
        let answer = openai_answer(&body.text, &self.sealed).into_boxed_str();
        drop(body);
        // The memory that was used to make the response belongs to the service and does not count.
        HEAP.reset_peak_usage();
        compacted(&self.vendor, MODEL, request, &answer)
    }
}

async fn memory() {
    let sealed = "gAAAAAB_-".repeat(2_000);
    let (mut sent, compacted) = (Copies::default(), Arc::new(Mutex::new(Copies::default())));
    let vendor = ResponsesVendor::openai();
    let service = Watched { vendor: vendor.clone(), sealed: sealed.clone(), copies: Arc::clone(&compacted) };
    let managed = Managed::new(Arc::new(service)).unwrap();
    let session = SessionId::new("s");
    let mut history =
        History::open(Arc::new(MemoryStore::new()), session, Arc::new(ClassEstimator::new())).await.unwrap();
    let budget = Budget::builder().window(1_000_000).trigger(500_000).without_goal().build().unwrap();
    let mut passes = 0;
    for at in 0..200 {
        let said = turn(at).to_vec();
        history.append(&AppendToken::new(format!("{at}")), said).await.unwrap();
        sent.begin(&history);
        let prompt = input(&vendor, history.projection()).unwrap().text.len();
        sent.look(prompt);
        if at % 40 == 39 {
            compacted.lock().unwrap().begin(&history);
            let mut cx = CompactionCx::new(&mut history, budget, Pass::Manual);
            let outcome = managed.compact(&mut cx).await.unwrap();
            passes += usize::from(matches!(outcome, CompactionOutcome::Compacted(_)));
            compacted.lock().unwrap().look(0);
        }
    }
    assert_eq!(passes, 5, "compactions");
    let why = "shows the history's texts, and what is on the heap while they are written; matters because a prompt is most \
               of what a process holds";
    sent.row("while a request is written, in a session of 200 turns", COPIES_MAX, why);
    let why = "shows the same, with what is left and committed; matters because it is when memory is short";
    compacted.lock().unwrap().row("while a provider compacts it, five times", COMPACTING_MAX, why);
    let left: Vec<&Message> = history.projection().collect();
    let holds =
        |part: &Part| matches!(part, Part::Compaction(left) if left.opaque.as_deref() == Some(&*sealed));
    let found = left.iter().flat_map(|message| message.parts()).filter(|part| holds(part)).count();
    assert_eq!(found, 1, "the artefact stands once in what is shown");
}

/// Maximum number of copies while a request is sent: the copy of the history, and the copy that is sent.
const COPIES_MAX: f64 = 2.0;
/// Maximum number of copies during a compaction: the current value, which should not grow. The compacted messages are
/// in memory together with the messages that they replace.
const COMPACTING_MAX: f64 = 2.5;
