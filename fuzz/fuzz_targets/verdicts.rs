//! Any conversation and any script of verdicts on its groups and parts: a draft gives the same answers as its naive
//! twin, and the resulting plan has the size that it reports.
#![no_main]

use epitome_tests::generate;
use epitome_tests::script::{Figures, compare};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((count, rest)) = bytes.split_first() else { return };
    let (scripted, said) = rest.split_at((usize::from(*count % 48) * 5).min(rest.len()));
    // A longer input finds no more than this one, and the twin is quadratic.
    if said.len() > 4 * 60 {
        return;
    }
    let figures: Vec<Figures> = scripted
        .as_chunks::<5>()
        .0
        .iter()
        .map(|[what, which, other, high, low]| (*what, *which, *other, u16::from_be_bytes([*high, *low])))
        .collect();
    let messages = generate::from_bytes(said);
    if let Err(why) = compare(&messages, &figures, &mut |_, _, _| {}) {
        panic!("{why}\n{messages:#?}");
    }
});
