//! Any operations: a history of fixed capacity has the same messages as a list, and its snapshots restore it. A damaged
//! snapshot is refused. A forged one is refused, or gives a usable history.
#![no_main]

use epitome_tests::bounded::{Pair, operations};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // A history has room for 24 messages: a longer input finds nothing that this does not.
    if bytes.len() <= 5 * 100 {
        let mut pair = Pair::default();
        operations(bytes).iter().for_each(|op| pair.apply(op));
    }
});
