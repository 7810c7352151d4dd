//! Costs of the mappers of managed compaction, compared with a JSON library on the same conversation.
//!
//! `--smoke` uses a short conversation to check the assertions; its times are not significant.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use epitome::compactors::managed::ServiceRequest;
use epitome::compactors::managed::anthropic::{Summarize, SummaryAnswer, replay, summarize_body, summarized};
use epitome::compactors::managed::openai::{CompactOptions, MODEL, ResponsesVendor, compact_body, compacted};
use epitome_benches::managed::{conversation, list, openai_answer};
use serde_json::{Map, Value, json};

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    println!("| mapper | of serde_json's MB/s | target | shows; matters because |");
    println!("|---|---|---|---|");
    speed(if smoke { 2 } else { 60 });
}

fn anthropic_answer(summary: &str) -> String {
    let block = json!({"type": "compaction", "content": summary, "signature": "EuYB"});
    json!({"type": "message", "role": "assistant", "stop_reason": "compaction", "content": [block]})
        .to_string()
}

fn speed(rounds: u32) {
    let messages = conversation(200);
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told);
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

    let SummaryAnswer::Written(block) = SummaryAnswer::read(&answer).unwrap() else { return };
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

/// Prints the ratio of the median times of two calls. The calls alternate, so that other programs disturb both.
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

/// Minimum speed, as a share of `serde_json`'s MB/s.
const SPEED_MIN: f64 = 0.3;
