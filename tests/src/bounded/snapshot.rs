//! Snapshots that are whole, torn, damaged or forged.

use epitome_core::{ClassEstimator, CompactError, Compacted, Outcome, Pass, Seq};

use super::History;
use super::model::{ALL, shown};
use super::planning::{Masked, budget};

/// A snapshot of the history, in a page of flash.
fn snapshot(history: &History) -> (Vec<u8>, usize) {
    let mut page = vec![0xFF; History::snapshot_bytes_max()];
    let len = history.snapshot(&mut page).expect("a page has room for the largest");
    (page, len)
}

/// A snapshot restores the history as it was, also after the history was cleared.
pub(super) fn reset(history: &mut History) {
    let (page, _) = snapshot(history);
    let (before, head) = (shown(history), history.head());
    history.clear();
    assert!(history.is_empty());
    history.restore(&page).expect("a snapshot can be read");
    assert_eq!((shown(history), history.head()), (before, head));
}

/// A torn or damaged snapshot is refused before anything changes. The checksum always detects two flipped bits.
pub(super) fn damage(history: &mut History, torn: u16, bits: [u16; 2]) {
    let (page, len) = snapshot(history);
    let (before, head) = (shown(history), history.head());
    let torn_at = len * usize::from(torn) / (usize::from(u16::MAX) + 1);
    assert!(history.restore(&page[..torn_at]).is_err());
    let mut damaged = page.clone();
    for bit in bits.map(|bit| usize::from(bit) % (len * 8)) {
        damaged[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(history.restore(&damaged).is_ok(), damaged == page);
    assert_eq!((shown(history), history.head()), (before, head));
}

/// A forged snapshot is refused and leaves an empty history, or it is accepted and gives a usable history. Returns
/// whether it was accepted.
pub(super) fn forge(history: &History, changes: &[(u16, u8)]) -> bool {
    let (mut page, len) = snapshot(history);
    let body = len - 4;
    for (at, byte) in changes {
        page[usize::from(*at) % body] = *byte;
    }
    // The first five bytes are the version and the length.
    let said = u32::from_le_bytes([page[1], page[2], page[3], page[4]]) as usize;
    let sealed = said.checked_sub(4).filter(|sealed| (5..=body).contains(sealed)).unwrap_or(body);
    let checksum = crc32(&page[..sealed]).to_le_bytes();
    page[sealed..sealed + 4].copy_from_slice(&checksum);
    let mut forged = History::new();
    if forged.restore(&page).is_err() {
        assert!(forged.is_empty() && forged.tokens() == 0);
        return false;
    }
    assert_eq!(forged.messages_in(ALL).count(), forged.len());
    assert!(forged.head() >= Seq(forged.len() as u64));
    let again = snapshot(&forged);
    let (projected, stored) = (forged.messages().count(), forged.len());
    assert_eq!(projected, stored);
    let elide = Masked { drop: 0, elide: u32::MAX };
    if let Ok(Outcome::Planned(_)) = forged.plan(&budget(), Pass::Manual, &elide) {
        // The forged size of a result may be too large, so that the note has no room.
        let done = forged.compact_with("x", &ClassEstimator::new());
        assert!(matches!(done, Ok(Compacted { results: 1.., .. }) | Err(CompactError::NoteTooLarge)));
        assert_eq!(forged.messages_in(ALL).count(), stored);
    }
    let drop = Masked { drop: u32::MAX / 3, elide: 0 };
    if let Ok(Outcome::Planned(_)) = forged.plan(&budget(), Pass::Manual, &drop) {
        forged.compact().expect("there is a plan");
        assert!(forged.len() < stored);
    }
    forged.restore(&again.0).expect("what was taken can be written and taken again");
    assert_eq!(forged.len(), stored);
    true
}

/// The checksum of a snapshot, in an independent implementation bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
