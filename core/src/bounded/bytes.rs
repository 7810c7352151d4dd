//! Bytes in and out: the primitives of a record.

use crate::table::Full;

/// Writes from the front of a slice. Past its end it only counts, so that a pass into an empty slice measures the size.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    room: &'a mut [u8],
    len: usize,
    refused: bool,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(room: &'a mut [u8]) -> Self {
        Self { room, len: 0, refused: false }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        let free = self.room.get_mut(self.len..).unwrap_or_default();
        if let Some(place) = free.get_mut(..bytes.len()) {
            fill(place, bytes);
        }
        self.len = self.len.saturating_add(bytes.len());
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.put(&[byte]);
    }

    /// Four bytes, lowest first.
    pub(super) fn word(&mut self, word: u32) {
        self.put(&word.to_le_bytes());
    }

    /// Writes seven bits in a byte, lowest first. The highest bit of a byte is set if more bytes follow.
    pub(super) fn number(&mut self, mut number: u64) {
        while number > 0x7F {
            self.byte(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.byte(number.to_le_bytes()[0]);
    }

    pub(super) fn length(&mut self, len: usize) {
        self.number(len as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.length(text.len());
        self.put(text.as_bytes());
    }

    /// A text that may be absent: its length plus one, or zero.
    pub(super) fn maybe(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                self.number((text.len() as u64).saturating_add(1));
                self.put(text.as_bytes());
            }
            None => self.byte(0),
        }
    }

    /// Marks the record as refused, because a value has no form in a record.
    pub(super) const fn refuse(&mut self) {
        self.refused = true;
    }

    /// Number of bytes that were written, or would have been.
    pub(super) const fn written(&self) -> usize {
        self.len
    }

    /// Number of bytes that were written, if all of them found room and no value was refused.
    pub(super) const fn finish(self) -> Result<usize, Full> {
        if self.refused || self.len > self.room.len() { Err(Full) } else { Ok(self.len) }
    }
}

/// Copies bytes up to the length of the shorter slice. Unlike `copy_from_slice` it leaves no panic in the image of a
/// device.
pub(super) fn fill(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// Moves the bytes at `from` down to `to`. The check of the shift is for the compiler: it proves that nothing can
/// panic.
pub(super) fn move_down(bytes: &mut [u8], from: core::ops::Range<usize>, to: usize) {
    let shift = from.start.saturating_sub(to);
    if let Some(window) = bytes.get_mut(to..from.end).filter(|window| shift <= window.len()) {
        window.copy_within(shift.., 0);
    }
}

/// Reads from the front of a slice. `None` means the end of the slice, or bytes that no writer produces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            // A tenth byte may hold the last bit of 64 and no more.
            if shift > 63 || (shift == 63 && bits > 1) {
                return None;
            }
            number |= bits.wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift = shift.saturating_add(7);
        }
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let len = self.length()?;
        core::str::from_utf8(self.bytes(len)?).ok()
    }

    pub(super) fn maybe(&mut self) -> Option<Option<&'a str>> {
        match self.length()?.checked_sub(1) {
            Some(len) => Some(Some(core::str::from_utf8(self.bytes(len)?).ok()?)),
            None => Some(None),
        }
    }

    /// Four bytes, lowest first.
    pub(super) fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    /// Eight bytes, lowest first.
    pub(super) fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_more_than_64_bits_is_nobodys() {
        let read = |bytes: &[u8]| Reader::new(bytes).number();
        let nine = [0xFF; 9];
        assert_eq!(read(&[&nine[..], &[1]].concat()), Some(u64::MAX));
        assert_eq!(read(&[&nine[..], &[2]].concat()), None);
        assert_eq!(read(&[&nine[..], &[0x81, 0]].concat()), None);
        assert_eq!(read(&nine), None);
        assert_eq!(read(&[0x80, 0]), Some(0));
    }
}
