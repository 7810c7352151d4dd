//! The memory for files of hostile shapes grows with their size, and not with its square. A separate test, because it
//! counts the memory of its process. With `--nocapture` it prints a table, for the size in `HOSTILE_SIZE`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "hostile_shapes/shapes.rs"]
mod shapes;
#[path = "hostile_shapes/work.rs"]
mod work;

use peak_alloc::PeakAlloc;
use shapes::SHAPES;
use work::WORK;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Number of lines or items of the smaller text of a shape.
const SIZE: usize = 500;
/// Maximum growth of the peak when the text is doubled, in percent: vectors and maps grow by doubling.
const GROWTH_PERCENT_MAX: usize = 240;
/// Maximum memory in addition to the text while its conversations are listed: a multiple of its bytes, and bytes for
/// each line or item, which a nearly empty message takes. See `docs/formats.md`.
const PEAK_FACTOR: usize = 3;
const LINE_BYTES: usize = 1_024;

#[test]
fn twice_the_text_takes_twice_the_memory() {
    let size = std::env::var_os("HOSTILE_SIZE").and_then(|size| size.to_str()?.parse().ok()).unwrap_or(SIZE);
    let mut failed = Vec::new();
    println!("{:<58} {:<8} {:>9} {:>11} {:>7} {:>6}", "shape", "work", "file", "peak", "of file", "grows");
    for (name, format, shape) in SHAPES {
        let texts = [size, 2 * size].map(shape);
        for (what, work) in WORK {
            let [once, twice] = texts.each_ref().map(|text| {
                let held = ALLOCATOR.current_usage();
                ALLOCATOR.reset_peak_usage();
                work(text, *format);
                ALLOCATOR.peak_usage() - held
            });
            let (grows, bytes) = (twice * 100 / once.max(1), texts[1].len());
            println!(
                "{name:<58} {what:<8} {:>7} K {:>9} K {:>6.1}x {grows:>5}%",
                bytes >> 10,
                twice >> 10,
                twice as f64 / bytes as f64
            );
            let may_take = PEAK_FACTOR * bytes + LINE_BYTES * 2 * size;
            if grows > GROWTH_PERCENT_MAX || (what == "list" && twice > may_take) {
                failed.push(format!("{name}, {what}: {grows} %, {twice} of {may_take} bytes"));
            }
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), SHAPES.len() * WORK.len(), failed.join("\n"));
}
