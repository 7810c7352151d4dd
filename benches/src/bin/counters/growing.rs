//! Counts of growing text, and counting that stops early.

use core::hint::black_box;

use epitome::core::{TokenCounter, Tokens};
use epitome::tokens::{FastTiktoken, StreamCounter, Tiktoken};

use crate::Sizes;
use crate::clock::Rounds;
use crate::table::Table;

pub(crate) fn run(texts: &[&str], sizes: &Sizes, table: &mut Table) {
    let (fast, slow) = (FastTiktoken::o200k_base(), Tiktoken::o200k_base());
    for (what, split) in
        [(format!("{DELTA_BYTES} bytes"), deltas as fn(&str) -> Vec<&str>), ("one token".to_owned(), tokens)]
    {
        let all: Vec<Vec<&str>> = texts.iter().map(|text| split(text)).collect();
        texts.iter().zip(&all).take(CHECKED).for_each(|(text, deltas)| check(text, deltas));
        let rounds = Rounds::of(
            sizes.rounds,
            [
                &mut || all.iter().map(|deltas| streamed(fast, deltas)).sum(),
                &mut || texts.iter().map(|text| fast.count(text).as_u64()).sum(),
                &mut || texts.iter().map(|text| slow.count(text).as_u64()).sum(),
            ],
        );
        let times = rounds.ratio(0, 1);
        table.row(
            &format!("streams of {what} a delta, asked after each"),
            &format!("{times:.2}x one count of the whole, {:.2}x one by tiktoken-rs", rounds.ratio(0, 2)),
            Some(("<= 3x", times <= 3.0)),
            "shows exact counts of an answer while it comes; matters because counting anew at each delta is quadratic",
        );
    }
    up_to(texts, sizes, table);
}

/// Checks that after each of `deltas` the count equals the count of the whole text so far.
fn check(text: &str, deltas: &[&str]) {
    let counter = FastTiktoken::o200k_base();
    let (mut stream, mut end) = (StreamCounter::new(counter), 0);
    for delta in deltas {
        end += delta.len();
        stream.push(delta);
        assert_eq!(stream.tokens(), counter.count(&text[..end]));
    }
    assert_eq!(end, text.len());
}

pub(crate) fn streamed(counter: FastTiktoken, deltas: &[&str]) -> u64 {
    let mut stream = StreamCounter::new(counter);
    let mut last = Tokens::ZERO;
    for delta in deltas {
        stream.push(delta);
        last = black_box(stream.tokens());
    }
    last.as_u64()
}

/// Splits a text as a model streams it: into single tokens, or several tokens that make one character.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let encoding = tiktoken_rs::o200k_base_singleton();
    let (mut start, mut end, mut deltas) = (0, 0, Vec::new());
    for token in encoding.encode_ordinary(text) {
        end += encoding.decode_bytes(&[token]).map_or(0, |bytes| bytes.len());
        if text.is_char_boundary(end) {
            deltas.push(&text[start..end]);
            start = end;
        }
    }
    deltas
}

/// Splits a text into pieces of a few bytes, at any character.
pub(crate) fn deltas(text: &str) -> Vec<&str> {
    let (mut rest, mut deltas) = (text, Vec::new());
    while !rest.is_empty() {
        let (delta, after) = rest.split_at(rest.ceil_char_boundary(DELTA_BYTES.min(rest.len())));
        deltas.push(delta);
        rest = after;
    }
    deltas
}

/// Measures counting with a limit of a tenth of a long text.
fn up_to(texts: &[&str], sizes: &Sizes, table: &mut Table) {
    let counter = FastTiktoken::o200k_base();
    let text = texts.concat();
    let tokens = counter.count(&text);
    let limit = Tokens(tokens.0 / 10);
    assert_eq!(counter.count_up_to(&text, tokens), Some(tokens));
    assert_eq!(counter.count_up_to(&text, limit), None);
    let rounds = Rounds::of(
        sizes.rounds,
        [
            // One count is short and is repeated: both calls must be long enough for the processor clock.
            &mut || (0..UP_TO).filter_map(|_| counter.count_up_to(black_box(&text), limit)).count() as u64,
            &mut || counter.count(&text).as_u64(),
        ],
    );
    table.row(
        &format!("count {:.1} MB up to a tenth of its tokens", text.len() as f64 / 1e6),
        &format!("{:.2} of the time of counting all", rounds.ratio(0, 1) / UP_TO as f64),
        None,
        "shows that counting stops once the limit is passed; matters for parts that may be far too large",
    );
}

/// Number of counts up to a limit in one timed call.
const UP_TO: usize = 16;
/// The size of a piece of a streamed answer, in bytes: about a token and a half.
const DELTA_BYTES: usize = 6;
/// Number of streams compared with counts of everything so far.
const CHECKED: usize = 100;
