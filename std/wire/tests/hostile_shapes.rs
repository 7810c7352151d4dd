//! The work on files of hostile shapes grows with their size, and not with its square. A separate test, because it
//! counts the allocations of its process. With `--nocapture` it prints a table, for the size in `HOSTILE_SIZE`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "hostile_shapes/shapes.rs"]
mod shapes;
#[path = "hostile_shapes/work.rs"]
mod work;

use std::alloc::System;
use std::time::Instant;

use shapes::SHAPES;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use work::WORK;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of lines or items of the smaller text of a shape.
const SIZE: usize = 500;
/// Maximum growth of the work when the text is doubled, in percent: vectors and maps grow by doubling.
const GROWTH_PERCENT_MAX: usize = 240;

#[test]
fn twice_the_text_is_twice_the_work() {
    let size = std::env::var_os("HOSTILE_SIZE").and_then(|size| size.to_str()?.parse().ok()).unwrap_or(SIZE);
    let mut failed = Vec::new();
    println!(
        "{:<58} {:<8} {:>9} {:>11} {:>6} {:>9} {:>6}",
        "shape", "work", "file", "bytes", "grows", "time", "grows"
    );
    for (name, format, shape) in SHAPES {
        let texts = [size, 2 * size].map(shape);
        assert!(texts[1].len() < texts[0].len() * 5 / 2, "{name}");
        for (what, work) in WORK {
            let [once, twice] = texts.each_ref().map(|text| {
                let (before, start) = (ALLOCATOR.stats(), Instant::now());
                work(text, *format);
                let (time, all) = (start.elapsed().as_micros(), ALLOCATOR.stats() - before);
                (all.bytes_allocated, all.allocations + all.reallocations, time)
            });
            let percent = |once: usize, twice: usize| twice * 100 / once.max(1);
            let [bytes, calls] = [percent(once.0, twice.0), percent(once.1, twice.1)];
            println!(
                "{name:<58} {what:<8} {:>7} K {:>9} K {bytes:>5}% {:>6} ms {:>5}%",
                texts[1].len() >> 10,
                twice.0 >> 10,
                twice.2 / 1_000,
                twice.2 * 100 / once.2.max(1),
            );
            if bytes.max(calls) > GROWTH_PERCENT_MAX {
                failed.push(format!("{name}, {what}: {bytes} % of the bytes, {calls} % of the allocations"));
            }
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), SHAPES.len() * WORK.len(), failed.join("\n"));
}
