//! Damage, by accident and on purpose.

use super::*;

#[test]
fn damage_to_a_snapshot_is_found() {
    let calls = [ToolCallView::new("c1", "read", "a.txt")];
    let mut history = History::new();
    rounds(&mut history, 3);
    push(&mut history, &SimpleMessage::calls(&calls));
    push(&mut history, &SimpleMessage::user("Never mind."));
    push(&mut history, &SimpleMessage::assistant("Well."));
    drop_only(&mut history, &[2, 7]);
    let mut page = [0; History::snapshot_bytes_max()];
    let len = history.snapshot(&mut page).unwrap();
    let mut other = History::new();
    push(&mut other, &SimpleMessage::user("Something else."));
    let before = state(&other);
    let step = if cfg!(miri) { 37 } else { 1 };
    for at in (0..len).step_by(step) {
        assert_eq!(other.restore(&page[..at]), Err(SnapshotError::Corrupt));
        for bit in 0..8 {
            let mut torn = page;
            torn[at] ^= 1 << bit;
            assert_eq!(other.restore(&torn), Err(SnapshotError::Corrupt), "byte {at}");
        }
    }
    assert_eq!(state(&other), before);
    other.restore(&page).unwrap();
    assert_eq!(state(&other), state(&history));
    assert_eq!(BoundedHistory::<4, 768>::new().restore(&page), Err(SnapshotError::Full));
    assert!(history.snapshot(&mut page[..len - 1]).is_err());
}

/// What a forger writes under a right checksum is refused or read, never a panic.
#[test]
fn a_forged_snapshot_is_refused_or_sound() {
    let mut history = History::new();
    rounds(&mut history, 3);
    let mut page = [0; History::snapshot_bytes_max()];
    let len = history.snapshot(&mut page).unwrap();
    let step = if cfg!(miri) { 29 } else { 1 };
    for at in (5..len - 4).step_by(step) {
        for forged in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut page = page;
            page[at] = forged;
            let sum = crate::bounded::snapshot::crc32(&page[..len - 4]);
            page[len - 4..len].copy_from_slice(&sum.to_le_bytes());
            let mut other = History::new();
            match other.restore(&page) {
                Ok(()) => assert_eq!(other.messages().count(), other.len()),
                Err(_) => assert!(other.is_empty()),
            }
        }
    }
}
