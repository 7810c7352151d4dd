//! Texts and numbers for a program of calls.

use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::border::Wrong;

/// Ids of calls, so few that they meet; the last is one byte too long.
pub(super) const IDS: [&str; 5] =
    ["a", "b", "", "call_0123456789", "0123456789012345678901234567890123456789012345678901234567890123x"];

/// A text of the input itself, which need not be UTF-8, or one that is as long as it says.
pub(super) fn text(program: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    Ok(match program.int_in_range(0..=15)? {
        0 => Vec::new(),
        1 => b" \n\t".to_vec(),
        2 | 3 => {
            let length = program.int_in_range(0..=24)?;
            program.bytes(length.min(program.len()))?.to_vec()
        }
        4..=9 => "x \u{e9}".repeat(program.int_in_range(0..=120)?).into_bytes(),
        _ => "a longer line, 4711\n".repeat(program.int_in_range(0..=30)?).into_bytes(),
    })
}

/// The id of a call.
pub(super) fn id(program: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    Ok(match program.int_in_range(0..=15)? {
        0 => text(program)?,
        1 => IDS[4].into(),
        at => IDS[at % 4].into(),
    })
}

/// Mostly a right one.
pub(super) fn wrong(program: &mut Unstructured<'_>) -> Result<Wrong> {
    Ok(match program.int_in_range(0..=63)? {
        61 => Wrong::Null,
        62 => Wrong::Misaligned,
        63 => Wrong::Inside,
        _ => Wrong::No,
    })
}

/// A number that is near to its limits now and then.
pub(super) fn size(program: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match program.int_in_range(0..=9)? {
        0 => 0,
        1 => u64::MAX,
        2 => u64::MAX - 1,
        3 => program.arbitrary()?,
        4 => u64::from(program.arbitrary::<u16>()?),
        _ => u64::from(program.arbitrary::<u8>()?) * 2,
    })
}
