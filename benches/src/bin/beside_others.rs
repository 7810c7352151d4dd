//! Epitome's side of a comparison with a program in another language: both read the same file.
//!
//! `beside_others generate MESSAGES FILE` writes a made-up history (see `generated`) as Chat Completions JSON.
//! `beside_others truncate FILE PERCENT` truncates it to that share of its own tokens, and prints what it took and what
//! stays as JSON: times are medians in milliseconds, `kept` are positions.

#![expect(clippy::print_stdout, reason = "a command-line tool: its report is its output")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a measurement that cannot be made ends the run"
)]

use core::error::Error;
use core::hint::black_box;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use epitome::compactors::Truncation;
use epitome::core::{
    Budget, Cell, ClassEstimator, IndexBuf, OpenCallTree, Outcome, Pass, Span, Tokens, count_message, plan,
};
use epitome::std::wire::document;
use epitome::std::wire::openai_chat::ChatView;
use epitome_benches::generated::{Messages, Pool, write_json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["generate", messages, file] => {
            let mut out = BufWriter::new(File::create(file)?);
            write_json(Messages::new(&Pool::new(), 1).take(messages.parse()?), &mut out)?;
            out.flush()?;
        }
        ["truncate", file, percent] => truncate(&std::fs::read_to_string(file)?, percent.parse()?)?,
        _ => return Err("generate MESSAGES FILE, or truncate FILE PERCENT".into()),
    }
    Ok(())
}

fn truncate(text: &str, percent: u64) -> Result<(), Box<dyn Error>> {
    let (read_ms, views) = median_ms(|| read(text));
    let (count_ms, tokens) = median_ms(|| {
        views.iter().map(|view| count_message(view, &ClassEstimator::new())).collect::<Vec<_>>()
    });
    let (group_ms, index) = median_ms(|| group(&views, &tokens));
    let total = index.view().tokens();
    let budget = Budget::builder().window(total * 2).trigger(total).goal(total * percent / 100).build()?;
    let mut cells = vec![Cell::default(); index.view().span_count()];
    let (plan_ms, (after, kept)) = median_ms(|| {
        match plan(index.view(), &budget, Pass::Manual, &Truncation::new(), &mut cells).unwrap() {
            Outcome::Planned(plan) => (plan.tokens_after(), plan.projection().flatten().collect::<Vec<_>>()),
            Outcome::Unchanged(why) => panic!("nothing to do: {why:?}"),
        }
    });
    let naive: u64 = kept.iter().map(|at| tokens[*at as usize].as_u64()).sum();
    assert_eq!(after, naive, "the plan's total is the sum of what it keeps");
    let report = serde_json::json!({
        "read_ms": read_ms, "count_ms": count_ms, "group_ms": group_ms, "plan_ms": plan_ms,
        "tokens_before": total, "tokens_after": after, "kept": kept,
    });
    println!("{report}");
    Ok(())
}

fn read(text: &str) -> Vec<ChatView<'_>> {
    let conversation = document::conversation(text).unwrap();
    conversation.iter().map(|message| ChatView::parse(message).unwrap()).collect()
}

fn group(views: &[ChatView<'_>], tokens: &[Tokens]) -> IndexBuf<Vec<Span>, OpenCallTree> {
    let mut index = IndexBuf::new();
    for (view, tokens) in views.iter().zip(tokens) {
        index.push(view, *tokens).unwrap();
    }
    index
}

/// The median time of some calls, and what the last one made.
fn median_ms<T>(mut call: impl FnMut() -> T) -> (f64, T) {
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        let made = black_box(call());
        times.push(start.elapsed().as_secs_f64() * 1e3);
        if times.len() == ROUNDS {
            times.sort_by(f64::total_cmp);
            return (times[ROUNDS / 2], made);
        }
    }
}

const ROUNDS: usize = 9;
