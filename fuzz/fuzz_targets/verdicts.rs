//! Any conversation and any script of verdicts on its groups and parts: a draft says to each what its naive twin says, and
//! the plan that comes of it costs what it says.
#![no_main]

use epitome_tests::generate;
use epitome_tests::script::{Figures, compare};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((count, rest)) = bytes.split_first() else { return };
    let (scripted, said) = rest.split_at((usize::from(*count % 48) * 5).min(rest.len()));
    // A longer input finds nothing that this does not, and the twin is quadratic.
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
