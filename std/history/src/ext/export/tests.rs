//! Lines of an export that are too long: the amount that is read and held.

use std::io;

use super::*;

/// A text that is produced only as it is read, and the amount that was read.
struct Endless {
    piece: &'static str,
    read: usize,
}

impl io::Read for Endless {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        unreachable!("lines are read from the buffer")
    }
}

impl BufRead for Endless {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let at = self.read % self.piece.len();
        Ok(self.piece.as_bytes().get(at..).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        self.read += bytes;
    }
}

const LINE_BYTES: usize = 1 << 20;

/// The first line of an export.
const FIRST: &str = "{\"epitome_session\":{\"v\":1,\"id\":\"s\",\"head\":1,\"revision\":0}}\n";

#[test]
fn no_more_of_an_endless_line_is_read_and_held_than_a_line_may_have() {
    // For the last of these pieces, the limit divides a character.
    for piece in ["x", "0123456789abcdef", "\u{65e5}\u{672c}"] {
        let mut endless = Endless { piece, read: 0 };
        let error = Reader::begin(&mut endless, LINE_BYTES).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        let says = "import: line 1 is longer than the 1048576 bytes that a line may have";
        assert_eq!(error.to_string(), says, "{piece}");
        assert_eq!(endless.read, LINE_BYTES, "{piece}");
    }
}

#[test]
fn an_endless_line_behind_others_is_named() {
    let mut endless = Endless { piece: "{ ", read: 0 };
    let mut input = FIRST.as_bytes().chain(&mut endless);
    let mut read = Reader::begin(&mut input, LINE_BYTES).unwrap();
    let error = read.next().map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("import: line 2 is longer than"), "{error}");
    assert_eq!(endless.read, LINE_BYTES);
}

#[test]
fn a_line_may_have_as_many_bytes_as_the_limit_its_break_included() {
    for (limit, is_read) in [(FIRST.len(), true), (FIRST.len() - 1, false)] {
        let mut input = FIRST.as_bytes();
        assert_eq!(Reader::begin(&mut input, limit).is_ok(), is_read, "{limit} bytes");
    }
}
