//! One line of a file: a JSON object with a checksum, a length and the data.

use core::ops::Range;
use std::borrow::Cow;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::StoreError;
use crate::encryption::{Place, Seal};

/// Maximum number of bytes before the data of a line.
pub(super) const HEAD_BYTES_MAX: usize =
    OPEN.len() + SUM_BYTES + LENGTH.len() + LENGTH_DIGITS_MAX + DATA.len();

/// Length of a checksum as text, in bytes.
pub(super) const SUM_BYTES: usize = 32;

/// The text before and after the data of an encrypted line.
const SEALED: [&str; 2] = [r#"{"sealed":""#, r#""}"#];

const OPEN: &[u8] = br#"{"sum":""#;
const LENGTH: &[u8] = br#"","len":"#;
const DATA: &[u8] = br#","data":"#;
const CLOSE: &[u8] = b"}\n";

/// More digits than the length of any file has.
const LENGTH_DIGITS_MAX: usize = 18;

/// A checksum, in hexadecimal.
pub(super) type Sum = [u8; SUM_BYTES];

/// The identity of a file: its own id, and the form of its data. The default applies to the first line.
#[derive(Debug, Clone, Default)]
pub(super) struct Origin {
    pub(super) id: Uuid,
    pub(super) seal: Seal,
}

impl Origin {
    /// The form of `data` in the line at `at`.
    fn close<'a>(&self, at: u64, data: &'a str) -> Result<Cow<'a, str>, StoreError> {
        if self.seal.is_plain() {
            return Ok(Cow::Borrowed(data));
        }
        let [open, close] = SEALED;
        Ok(Cow::Owned([open, &self.seal.close(Place::line(at), data.to_owned())?, close].concat()))
    }

    /// The text in `data`, the data of the line at `at` of an encrypted file.
    pub(super) fn open(&self, at: u64, data: &[u8]) -> Option<String> {
        let [open, close] = SEALED;
        let sealed = core::str::from_utf8(data).ok()?.strip_prefix(open)?.strip_suffix(close)?;
        self.seal.open(Place::line(at), sealed.to_owned())
    }
}

/// The beginning of a line, before its data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    sum: Sum,
    data_at: usize,
    data_len: u64,
}

/// The head of a line that begins with `bytes`. `None` if `bytes` is not the beginning of a line, or is too short.
pub(super) fn head(bytes: &[u8]) -> Option<Head> {
    let (sum, rest) = bytes.strip_prefix(OPEN)?.split_first_chunk::<SUM_BYTES>()?;
    let rest = rest.strip_prefix(LENGTH)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at_checked(digits)?;
    rest.strip_prefix(DATA)?;
    // A number has only one valid form: without leading zeros.
    if digits > LENGTH_DIGITS_MAX || (digits > 1 && number.first() == Some(&b'0')) {
        return None;
    }
    let data_len = core::str::from_utf8(number).ok()?.parse().ok()?;
    let before = OPEN.len().saturating_add(SUM_BYTES).saturating_add(LENGTH.len()).saturating_add(digits);
    Some(Head { sum: *sum, data_at: before.saturating_add(DATA.len()), data_len })
}

impl Head {
    pub(super) const fn sum(&self) -> Sum {
        self.sum
    }

    /// Length of the line, with its end, in bytes.
    pub(super) const fn line_len(&self) -> u64 {
        (self.data_at as u64).saturating_add(self.data_len).saturating_add(CLOSE.len() as u64)
    }
}

/// The range of the data in `line`, the line at `at` of the file `file`. `None` if the line was changed.
pub(super) fn data(file: Uuid, at: u64, line: &[u8]) -> Option<Range<usize>> {
    let head = head(line)?;
    let end = line.len().checked_sub(CLOSE.len())?;
    let data = line.strip_suffix(CLOSE)?.get(head.data_at..)?;
    (data.len() as u64 == head.data_len && sum(file, at, data) == head.sum).then_some(head.data_at..end)
}

/// Appends `data` to `out` as the line at `at` of the file `file`. Returns the checksum of the line.
///
/// # Errors
/// The errors of [`Seal::close`].
pub(super) fn seal(file: &Origin, at: u64, data: &str, out: &mut Vec<u8>) -> Result<Sum, StoreError> {
    let data = file.close(at, data)?;
    let sum = sum(file.id, at, data.as_bytes());
    for piece in [OPEN, &sum, LENGTH, data.len().to_string().as_bytes(), DATA, data.as_bytes(), CLOSE] {
        out.extend_from_slice(piece);
    }
    Ok(sum)
}

/// The beginning of a line that has this checksum.
pub(super) fn begin(sum: &Sum) -> Vec<u8> {
    [OPEN, sum].concat()
}

/// The first half of the SHA-256 of the file's id, of the line's offset and of its data. A line that was moved, or that
/// comes from another file, therefore does not match.
fn sum(file: Uuid, at: u64, data: &[u8]) -> Sum {
    let mut hash = Sha256::new();
    hash.update(file.as_bytes());
    hash.update(at.to_le_bytes());
    hash.update(data);
    let digest: [u8; 32] = hash.finalize().into();
    let mut text = [b'0'; SUM_BYTES];
    for (pair, byte) in text.chunks_exact_mut(2).zip(digest) {
        let digits =
            [byte >> 4, byte & 0xf].map(|digit| HEX.get(usize::from(digit)).copied().unwrap_or(b'0'));
        pair.copy_from_slice(&digits);
    }
    text
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_in_the_documentation_is_one() {
        let mut line = Vec::new();
        seal(&Origin::default(), 0, r#"{"append":{}}"#, &mut line).unwrap();
        let documentation = include_str!("../../../../docs/jsonl.md");
        assert!(documentation.contains(core::str::from_utf8(&line).unwrap()));
    }

    #[test]
    fn a_line_is_json_and_nothing_in_it_may_change() {
        let file = Uuid::from_u128(7);
        let mut line = Vec::new();
        let origin = Origin { id: file, ..Origin::default() };
        seal(&origin, 123, r#"{"append":{}}"#, &mut line).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((&json["len"], &json["data"]["append"]), (&13.into(), &serde_json::json!({})));
        assert_eq!(head(&line).unwrap().line_len(), line.len() as u64);
        assert_eq!(&line[data(file, 123, &line).unwrap()], br#"{"append":{}}"#);
        assert!(data(file, 124, &line).is_none() && data(Uuid::nil(), 123, &line).is_none());
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut other = line.clone();
                other[at] ^= 1 << bit;
                assert!(data(file, 123, &other).is_none(), "bit {bit} of byte {at}");
            }
            assert!(data(file, 123, &line[..at]).is_none());
        }
    }
}
