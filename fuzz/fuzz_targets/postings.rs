//! Any bytes in the place of a row of an index of words: read, or refused. A row that is read is written as the same postings.
#![no_main]

use epitome_std::search::{Postings, Term};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(([moved, gone], row)) = bytes.split_first_chunk::<2>() else { return };
    let mark = Term::mark("fuzz", "mark");
    let found = Postings::find(row, mark);

    let mut read = Postings::new();
    if read.add_row(row, u32::from(*moved), |number| number % 7 == u32::from(*gone)).is_err() {
        return;
    }
    assert!(found.is_ok(), "a row that can be read can be looked through");
    let rows = read.into_rows();
    assert!(rows.is_sorted_by_key(|(first, _)| *first));
    let mut again = Postings::new();
    for (_, row) in &rows {
        again.add_row(row, 0, |_| false).expect("what was written is read");
    }
    assert_eq!(again.into_rows(), rows);
});
