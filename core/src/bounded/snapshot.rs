//! Snapshot of a history as bytes, for flash memory that survives a reset: written as a whole, accepted only with a
//! right checksum.
//!
//! All numbers are little endian. A serialization framework would not make this format shorter: five words for each
//! message, the arena as it is, and the few unanswered calls.
//!
//! ```text
//! version  1 byte: 1
//! length   u32, of all of it
//! counts   u32 messages, u32 bytes of records, u32 results that may be elided, u32 unanswered calls
//! head     u64; revision u64
//! headers  per message: u32 start, tokens, seq, anchor, turn
//! records  as in the arena
//! calls    per unanswered call: 1 if its group is gone, u32 turn, u64 anchor, u32 ordinal, length of the id as a byte, id
//! checksum u32, CRC-32 (IEEE 802.3) of everything before it
//! ```

use core::fmt;

use crate::open_calls::{CALL_ID_MAX, OpenCall, OpenCalls};
use crate::table::Full;
use crate::{Revision, Seq, Tokens, Turn};

use super::bytes::{Reader, Writer, fill};
use super::compact::Calls;
use super::{ArenaMessage, BoundedHistory, Header, OPEN_CALLS_MAX};

/// The reason why a snapshot cannot be restored.
///
/// ```
/// use epitome_core::{BoundedHistory, SnapshotError};
///
/// let erased_flash = [0xFF; 64];
/// assert_eq!(BoundedHistory::<4, 64>::new().restore(&erased_flash), Err(SnapshotError::Corrupt));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes are torn, damaged or not a snapshot. Restore an older one, or begin with an empty history.
    Corrupt,
    /// A newer version of this crate wrote it.
    Version,
    /// The snapshot is complete, but holds more than this history has room for.
    Full,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Corrupt => "the snapshot is torn or damaged: take an older one",
            Self::Version => "a newer version wrote the snapshot",
            Self::Full => "the snapshot holds more than there is room for",
        })
    }
}

impl core::error::Error for SnapshotError {}

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// The largest size of a snapshot of a history of this type, in bytes.
    ///
    /// ```
    /// use epitome_core::BoundedHistory;
    ///
    /// const PAGE: usize = BoundedHistory::<16, 1024>::snapshot_bytes_max();
    /// assert!(PAGE < 2_048);
    /// ```
    #[must_use]
    pub const fn snapshot_bytes_max() -> usize {
        const CALLS: usize = OPEN_CALLS_MAX.saturating_mul(CALL_BYTES.saturating_add(CALL_ID_MAX));
        let headers = MESSAGES.saturating_mul(size_of::<Header>());
        FIXED_BYTES.saturating_add(headers).saturating_add(BYTES).saturating_add(CALLS)
    }

    /// Writes the history to the front of `to` and returns the number of bytes. A plan is not part of the snapshot.
    ///
    /// # Errors
    /// [`Full`] if `to` is too short; see [`snapshot_bytes_max`](Self::snapshot_bytes_max).
    ///
    /// ```
    /// # use epitome_core::message::SimpleMessage;
    /// # use epitome_core::{BoundedHistory, ClassEstimator, SnapshotError};
    /// let mut history = BoundedHistory::<16, 1024>::new();
    /// history.push(&SimpleMessage::user("Hello"), &ClassEstimator::new())?;
    /// let mut page = [0; 2048];
    /// let len = history.snapshot(&mut page)?;
    ///
    /// let mut after_reset = BoundedHistory::<16, 1024>::new();
    /// after_reset.restore(&page)?;
    /// assert_eq!((after_reset.len(), after_reset.head()), (1, history.head()));
    /// assert_eq!(after_reset.restore(&page[..len - 1]), Err(SnapshotError::Corrupt));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn snapshot(&self, to: &mut [u8]) -> Result<usize, Full> {
        let open = self.index.open_calls();
        let (mut calls, mut id_bytes) = (0_u32, 0_usize);
        open.for_each(&mut |id, _| {
            calls = calls.saturating_add(1);
            id_bytes = id_bytes.saturating_add(CALL_BYTES).saturating_add(id.len());
        });
        let headers = self.len.saturating_mul(size_of::<Header>());
        let len = FIXED_BYTES.saturating_add(headers).saturating_add(self.used).saturating_add(id_bytes);
        let sealed = len.checked_sub(CHECKSUM_BYTES).ok_or(Full)?;
        let (body, checksum) =
            to.get_mut(..len).and_then(|to| to.split_at_mut_checked(sealed)).ok_or(Full)?;
        let mut writer = Writer::new(body);
        writer.byte(VERSION);
        for number in [len, self.len, self.used, self.index.view().part_count()] {
            writer.word(u32::try_from(number).map_err(|_| Full)?);
        }
        writer.word(calls);
        writer.put(&self.index.head().0.to_le_bytes());
        writer.put(&self.index.view().revision().0.to_le_bytes());
        for header in self.headers() {
            let words = [header.start, header.tokens.0, header.seq, header.anchor, header.turn.0];
            words.into_iter().for_each(|word| writer.word(word));
        }
        writer.put(self.arena.get(..self.used).unwrap_or_default());
        open.for_each(&mut |id, call| {
            writer.byte(u8::from(call.span == OpenCall::HIDDEN));
            writer.word(call.turn.0);
            writer.put(&call.anchor.0.to_le_bytes());
            writer.word(call.ordinal);
            writer.length(id.len());
            writer.put(id);
        });
        writer.finish()?;
        fill(checksum, &crc32(body).to_le_bytes());
        Ok(len)
    }

    /// Replaces the content of the history with a snapshot.
    ///
    /// The bytes of `from` behind the snapshot are ignored, so that you can pass a whole page of flash memory.
    ///
    /// # Errors
    /// [`SnapshotError`]: `Corrupt` for torn, damaged or contradictory bytes, `Version` for a snapshot of a newer
    /// version, `Full` if the snapshot holds more than this history has room for. Accidental damage is found before
    /// anything changes. A forged snapshot with a right checksum and contradictory content leaves the history empty.
    pub fn restore(&mut self, from: &[u8]) -> Result<(), SnapshotError> {
        let mut reader = Reader::new(sealed(from).ok_or(SnapshotError::Corrupt)?);
        if reader.byte() != Some(VERSION) {
            return Err(SnapshotError::Version);
        }
        let counts = Counts::read(&mut reader).ok_or(SnapshotError::Corrupt)?;
        let few = PARTS > 0 && counts.results > PARTS;
        if counts.messages > MESSAGES || counts.bytes > BYTES || counts.calls > OPEN_CALLS_MAX || few {
            return Err(SnapshotError::Full);
        }
        self.clear();
        let done = self.restore_from(&mut reader, &counts);
        if done.is_none() {
            self.clear();
        }
        done.ok_or(SnapshotError::Corrupt)
    }

    fn restore_from(&mut self, from: &mut Reader<'_>, counts: &Counts) -> Option<()> {
        for place in self.headers.get_mut(..counts.messages)? {
            let (start, tokens, seq) = (from.word()?, Tokens(from.word()?), from.word()?);
            *place = Header { start, tokens, seq, anchor: from.word()?, turn: Turn(from.word()?) };
        }
        fill(self.arena.get_mut(..counts.bytes)?, from.bytes(counts.bytes)?);
        (self.len, self.used) = (counts.messages, counts.bytes);
        let mut calls = Calls::new();
        for _ in 0..counts.calls {
            let span = if from.byte()? == 0 { 0 } else { OpenCall::HIDDEN };
            let (turn, anchor, ordinal) = (Turn(from.word()?), Seq(from.long()?), from.word()?);
            let id = from.text()?;
            calls.open(id.as_bytes(), OpenCall { turn, anchor, ordinal, span, tool: 0 }).ok()?;
        }
        if !from.is_empty() || !self.is_sound(counts.head) {
            return None;
        }
        self.restore_index(&calls, counts.head, counts.revision).ok()
    }

    /// Whether headers and records have the form that this history writes.
    fn is_sound(&self, head: Seq) -> bool {
        let ascend = self.headers().is_sorted_by(|a, b| a.start <= b.start && a.seq < b.seq);
        let begins = self.headers().first().map_or(self.used, |first| first.start as usize) == 0;
        let members = self.headers().iter().all(|header| header.anchor <= header.seq && header.seq() < head);
        ascend
            && begins
            && members
            && (0..self.len).all(|at| self.message(at).is_some_and(|m: ArenaMessage<'_>| m.is_sound()))
    }
}

/// Figures at the beginning of a snapshot.
#[derive(Debug)]
struct Counts {
    messages: usize,
    bytes: usize,
    results: usize,
    calls: usize,
    head: Seq,
    revision: Revision,
}

impl Counts {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        // The length was checked already.
        let _ = from.word()?;
        let mut count = || usize::try_from(from.word()?).ok();
        let (messages, bytes, results, calls) = (count()?, count()?, count()?, count()?);
        let (head, revision) = (Seq(from.long()?), Revision(from.long()?));
        Some(Self { messages, bytes, results, calls, head, revision })
    }
}

/// The bytes that the checksum covers, if the checksum is right.
fn sealed(from: &[u8]) -> Option<&[u8]> {
    let len = usize::try_from(Reader::new(from.get(1..)?).word()?).ok()?;
    let (body, checksum) = from.get(..len)?.split_last_chunk::<CHECKSUM_BYTES>()?;
    (crc32(body) == u32::from_le_bytes(*checksum)).then_some(body)
}

/// CRC-32 as in Ethernet and zip, half a byte in a step: 64 bytes of table instead of 1,024.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 4) ^ NIBBLES.get((crc & 0xF) as usize).copied().unwrap_or(0);
    !bytes.iter().fold(u32::MAX, |crc, byte| step(step(crc ^ u32::from(*byte))))
}

/// The remainders of the sixteen half bytes by the reflected polynomial `EDB8_8320`.
#[rustfmt::skip]
const NIBBLES: [u32; 16] = [
    0x0000_0000, 0x1DB7_1064, 0x3B6E_20C8, 0x26D9_30AC, 0x76DC_4190, 0x6B6B_51F4, 0x4DB2_6158, 0x5005_713C,
    0xEDB8_8320, 0xF00F_9344, 0xD6D6_A3E8, 0xCB61_B38C, 0x9B64_C2B0, 0x86D3_D2D4, 0xA00A_E278, 0xBDBD_F21C,
];

const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
/// Version, length, four counts, head and revision, checksum.
const FIXED_BYTES: usize = 1 + 4 + 16 + 16 + CHECKSUM_BYTES;
/// A call without its id: whether it is hidden, turn, anchor, ordinal, and the id's length, which is below 128.
const CALL_BYTES: usize = 1 + 4 + 8 + 4 + 1;

const _: () = assert!(CALL_ID_MAX < 128, "the length of an id takes one byte");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_ethernet() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
