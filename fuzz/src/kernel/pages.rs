//! Snapshots: restored, truncated, with changed bits, and forged.

use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::border::*;
use super::machine::Machine;
use super::words;

/// Writes a snapshot into a buffer of any size. The history that is restored from it in another memory is the same.
pub(super) fn carry_over(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let page = machine.snapshot();
    let wrong = words::wrong(program)?;
    let capacity = if program.ratio(1, 2)? { page.len() } else { program.int_in_range(0..=page.len())? };
    let mut expected: Vec<_> = wrong.error().into_iter().collect();
    if expected.is_empty() {
        expected.push(if capacity < page.len() { error::BUFFER } else { error::OK });
    }
    let (mut length, mut to) = (Place::new(), vec![0; capacity]);
    let error = machine.call(&expected, &[], |history| {
        // SAFETY: a buffer of this length, or one of the errors above.
        unsafe { epitome_kernel_snapshot(history, to.as_mut_ptr(), capacity, length.pointer(wrong, history)) }
    });
    if error != error::OK {
        assert!(length.is_untouched());
        return Ok(());
    }
    assert_eq!((length.value(), &to), (page.len(), &page));
    // The bytes after the snapshot are not read.
    to.extend([0xFF; 16]);
    let mut other = Machine::new();
    // SAFETY: a buffer of this length.
    assert_eq!(unsafe { epitome_kernel_restore(other.history, to.as_ptr(), to.len()) }, error::OK);
    assert_eq!((other.snapshot(), other.shown()), (page, machine.shown()));
    // The restored history continues the test. State that is not in a snapshot is lost.
    (other.messages, other.pinned) = (machine.messages.clone(), machine.pinned.clone());
    other.is_forged = machine.is_forged;
    other.next_seq = machine.next_seq;
    other.check();
    *machine = other;
    Ok(())
}

/// A damaged snapshot is refused. A forged one with a right checksum may be accepted, and the history can be used.
pub(super) fn damage(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let mut page = machine.snapshot();
    let is_forged = program.ratio(1, 3)?;
    let at = program.int_in_range(0..=page.len() - 1)?;
    let mut expected = vec![error::CORRUPT];
    match (is_forged, program.int_in_range(0..=3)?) {
        (true, _) => {
            let end = page.len() - 4;
            page[at.min(end - 1)] ^= program.int_in_range(1..=255)?;
            let seal = crc32(&page[..end]);
            page[end..].copy_from_slice(&seal.to_le_bytes());
            expected.extend([error::OK, error::FULL, error::VERSION]);
        }
        (false, 0) => page.truncate(at),
        (false, 1) => {
            page = words::text(program)?;
            expected.push(error::VERSION);
        }
        (false, _) => page[at] ^= 1 << program.int_in_range(0..=7)?,
    }
    let before = machine.state();
    let is_streaming = machine.stream.is_some();
    // SAFETY: a buffer of this length.
    let error = unsafe { epitome_kernel_restore(machine.history, page.as_ptr(), page.len()) };
    if is_streaming {
        expected = vec![error::STREAMING];
    }
    assert!(expected.contains(&error), "{error}, and not one of {expected:?}");
    if is_streaming || !is_forged {
        assert_eq!(machine.state(), before);
        return Ok(());
    }
    assert!(error == error::OK || machine.state() == before || machine.status().messages == 0);
    // From here on the messages are those of the forged snapshot.
    machine.next_seq = machine.status().next_seq;
    machine.messages = machine.shown().into_iter().map(|shown| (shown.seq, shown)).collect();
    machine.pinned.clear();
    machine.is_forged = machine.is_forged || error == error::OK;
    Ok(())
}

/// Checksum of the format, computed bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let shift = |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift))
}
