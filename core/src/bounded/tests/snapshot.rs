//! Snapshots with accidental and deliberate damage.

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
    assert_eq!(BoundedHistory::<24, 8>::new().restore(&page), Err(SnapshotError::Full));
    assert!(history.snapshot(&mut page[..len - 1]).is_err());
}

/// A forged snapshot with a right checksum is refused or read, and never causes a panic.
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
                Ok(()) => {
                    assert_eq!(other.messages().count(), other.len());
                    for message in other.messages() {
                        let mut parts = 0;
                        message.for_each_part(&mut |_| parts += 1);
                        assert!(parts > 0, "what byte {at} holds makes a part that cannot be read");
                    }
                }
                Err(_) => assert!(other.is_empty()),
            }
        }
    }
}

/// Headers that contradict each other are refused. Each case has one contradiction.
#[test]
fn headers_that_contradict_each_other_are_refused() {
    // After version, length, four counts, head and revision, there are five words per message.
    const HEADERS: usize = 1 + 4 + 16 + 16;
    let (start, seq, anchor) = (0, 2, 3);
    let mut history = History::new();
    rounds(&mut history, 3);
    let mut page = [0; History::snapshot_bytes_max()];
    let len = history.snapshot(&mut page).unwrap();
    let forge = |message: usize, word: usize, value: u32| {
        let (mut page, at) = (page, HEADERS + message * 20 + word * 4);
        let old = u32::from_le_bytes(page[at..at + 4].try_into().unwrap());
        page[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let sum = crate::bounded::snapshot::crc32(&page[..len - 4]);
        page[len - 4..len].copy_from_slice(&sum.to_le_bytes());
        (old, History::new().restore(&page))
    };
    // Unchanged values, to check that the words are at these places.
    assert_eq!((forge(1, seq, 1), forge(2, anchor, 2)), ((1, Ok(())), (2, Ok(()))));
    for (message, word, value) in
        [(0, start, 1), (2, start, 0), (1, seq, 0), (1, seq, 3), (5, seq, 6), (0, anchor, 1), (5, anchor, 6)]
    {
        let (old, restored) = forge(message, word, value);
        assert_ne!(old, value);
        assert_eq!(restored, Err(SnapshotError::Corrupt), "word {word} of message {message} is {value}");
    }
}

/// Message numbers have 32 bits in a header: the last number is used, and then the history stays full.
#[test]
fn the_numbers_of_messages_come_to_an_end() {
    let mut history = History::new();
    push(&mut history, &SimpleMessage::user("Hello"));
    let mut page = [0; History::snapshot_bytes_max()];
    let len = history.snapshot(&mut page).unwrap();
    // The head follows the version, the length and four counts.
    page[21..29].copy_from_slice(&u64::from(u32::MAX).to_le_bytes());
    let sum = crate::bounded::snapshot::crc32(&page[..len - 4]);
    page[len - 4..len].copy_from_slice(&sum.to_le_bytes());
    history.restore(&page).unwrap();
    assert_eq!(history.head(), Seq(u64::from(u32::MAX)));
    push(&mut history, &SimpleMessage::assistant("The last."));
    assert_eq!(history.messages().last().unwrap().seq(), Seq(u64::from(u32::MAX)));
    let before = state(&history);
    let one_more = history.push(&SimpleMessage::user("One more"), &ClassEstimator::new());
    assert_eq!((one_more, state(&history)), (Err(Full), before));
}
